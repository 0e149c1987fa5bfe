//! `osteon report`, as users run it.

mod common;

use common::{data, osteon};
use osteon::memory::timeline::Timeline;
use osteon::{DType, Device, Tensor, copies, memory, s};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use tempfile::TempDir;

/// A folder with a report in it.
fn saved(json: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("saved.json");
    fs::write(&path, json).unwrap();
    (dir, path.to_str().unwrap().to_owned())
}

/// What is printed, and the page.
fn report(json: &str, args: &[&str]) -> (String, String) {
    let (dir, path) = saved(json);
    let told = osteon(&[&["report", &path], args].concat());
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{json}");
    let page = dir.path().join("page.html");
    let drawn = osteon(&[&["report", &path, "--html", page.to_str().unwrap()], args].concat());
    assert_eq!((drawn.code, drawn.err.as_str()), (0, ""));
    assert!(drawn.out.contains("page.html"), "{}", drawn.out);
    (told.out, fs::read_to_string(page).unwrap())
}

fn timeline() -> Value {
    let stays = [
        "id", "device", "bytes", "size", "address", "from", "to", "before", "op", "site", "scope",
        "label", "thread", "version",
    ];
    let views = [
        "storage", "from", "to", "before", "op", "site", "scope", "label", "view", "dtype",
        "shape", "stride", "offset",
    ];
    let figures = |a| json!({"time": 2000, "allocated": a, "requested": a, "reserved": 4 << 20});
    json!({
        "schema": 1, "kind": "timeline", "title": "train.rs", "duration": 9_000_000, "events": 7, "lost": 0,
        "strings": ["", "zeros", "src/a.rs:1:2", "weights", "float32", "large", "contiguous", "src/b.rs:9:1"],
        "devices": [{"device": "cpu", "start": figures(0), "end": figures(1 << 20), "peak": figures(3 << 20), "peak_reserved": figures(0)}],
        "storages": {"columns": stays, "rows": [
            [2, 0, 2 << 20, 2 << 20, 65536, 2000, 5000, false, 1, 7, 0, 0, 1, 0],
            [1, 0, 1 << 20, 1 << 20, 0, 1000, null, false, 1, 2, 0, 3, 1, 0],
        ]},
        "views": {"columns": views, "rows": [[1, 1000, null, false, 1, 2, 0, 3, false, 4, [512, 512], [512, 1], 0]]},
        "segments": {"columns": ["device", "address", "size", "kind", "from", "to"], "rows": [[0, 0, 4 << 20, 5, 1000, null]]},
        "copies": {"columns": ["time", "duration", "bytes", "reason", "op", "site", "scope", "from", "to", "thread"], "rows": [[2000, 1500, 2 << 20, 6, 6, 7, 0, 1, 2, 1]]},
        "writes": {"columns": ["time", "storage", "op", "site", "scope", "thread"], "rows": []},
        "marks": {"columns": ["time", "kind", "text", "value", "thread"], "rows": []},
    })
}

/// For tests that look at all that is in memory.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_live_map() {
    let _alone = ALONE.lock();
    let batch = Tensor::zeros([64, 1000], DType::F32, &Device::cpu())
        .unwrap()
        .named("batch <b>");
    let first = batch.i(s![0]).unwrap().named("first");
    drop(batch);
    let (told, page) = report(&memory::map().to_json().unwrap(), &[]);
    // One row of 64: 4,000 bytes of 256,000.
    for part in [
        "Memory map",
        "250 KiB",
        "3.91 KiB",
        "246 KiB",
        "\n  first ",
        "    float32 [1000]  index",
        "\n  1 tensor on 1 storage: 256,000 bytes\n",
        "zeros at crates/cli/tests/report.rs",
        "252,000 bytes are reached by no tensor",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    assert!(page.contains("\"reached_bytes\":4000") && page.contains("\"name\":\"first\""));
    let (zh, page) = report(&memory::map().to_json().unwrap(), &["--lang", "zh"]);
    assert!(zh.contains("内存图") && zh.contains("252,000 字节没有任何张量可达"));
    assert!(page.contains("<html lang=\"zh\">"));
    drop(first);
}

#[test]
fn a_picture_and_a_map_of_files() {
    let map = osteon(&["map", "--json", &data("tied.pt"), &data("transposed.pt")]).out;
    let (told, page) = report(&map, &[]);
    assert!(
        told.contains("lm_head.weight") && told.contains("2,320 bytes are reached by no tensor"),
        "{told}"
    );
    assert!(page.contains("lm_head.weight"));
    let picture = osteon::memory::picture::Picture::new("heading", "line", vec![]).unwrap();
    let (told, page) = report(&picture.to_json().unwrap(), &[]);
    assert!(
        told.starts_with("heading\nline\n") && told.contains("0 tensors on 0 storages"),
        "{told}"
    );
    assert!(page.contains("<title>heading</title>"));
}

#[test]
fn an_out_of_memory_report() {
    let error = Tensor::zeros([1 << 40], DType::F64, &Device::cpu()).unwrap_err();
    let json = error.oom_report().unwrap().to_json().unwrap();
    let (told, page) = report(&json, &[]);
    for part in [
        "Out of memory",
        "request bytes",
        "8 TiB",
        "request op",
        "zeros",
        "advice",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    assert!(page.contains("8 TiB"));
    assert!(report(&json, &["--lang", "zh"]).0.starts_with("内存不足\n"));
}

#[test]
fn a_timeline() {
    let json = timeline().to_string();
    let (told, page) = report(&json, &[]);
    for part in [
        "train.rs",
        "9.0 ms",
        "cpu allocated  0 B → 1 MiB, peak 3 MiB (2.0 µs)",
        "cpu at the peak, by line\n  bytes  storages  op     site          label\n  2 MiB         1  zeros  src/b.rs:9:1\n  1 MiB         1  zeros  src/a.rs:1:2  weights\n",
        "cpu made while recording and still there, by line\n  bytes  storages  op     site          label\n  1 MiB         1  zeros  src/a.rs:1:2  weights\n",
        "1  1.5 µs  contiguous  src/b.rs:9:1  contiguous",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    assert!(page.contains("id=\"chart\"") && page.contains("src/b.rs:9:1"));
    // What is written is what was read.
    let read = Timeline::read_json(json.as_bytes()).unwrap();
    let mut again = Vec::new();
    read.write_json(&mut again).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&again).unwrap()["storages"],
        timeline()["storages"]
    );
    assert_eq!(Timeline::read_json(again.as_slice()).unwrap(), read);
}

#[test]
fn figures_and_lists_of_any_other_report() {
    let events: Vec<_> = (0..50).map(|i| json!({"kind": "alloc", "bytes": 1u64 << i, "op": "zeros", "site": "src/main.rs:1:2", "label": null})).collect();
    let recent = json!({"schema": 1, "kind": "recent", "missed": 3, "events": events}).to_string();
    let (told, page) = report(&recent, &[]);
    assert!(
        told.starts_with("The last events\n  missed  3\n\nevents\n"),
        "{told}"
    );
    assert!(
        told.contains("… and 10 more (--all)")
            && told.ends_with("  alloc  512 TiB  zeros  src/main.rs:1:2\n")
            && !told.contains("label"),
        "{told}"
    );
    assert_eq!(page.matches("src/main.rs:1:2").count(), 50);
    let all = report(&recent, &["--all"]).0;
    assert_eq!(all.matches("src/main.rs").count(), 50);
    let copies = json!({"schema": 1, "kind": "copies", "count": 2, "bytes": 2048, "sites": [{"op": "contiguous", "site": "a.rs:1:1", "reason": "contiguous", "count": 2, "bytes": 2048, "time_ns": 1500, "hint": "leave it out"}]});
    let told = report(&copies.to_string(), &[]).0;
    assert!(
        told.contains("2 KiB  1.5 µs      2  contiguous  contiguous  a.rs:1:1  leave it out"),
        "{told}"
    );
    // One that a later version may write.
    let told = report(
        r#"{"schema": 1, "kind": "something_new", "leaks": [{"site": "x.rs:4", "count": 7}]}"#,
        &[],
    )
    .0;
    assert!(
        told.starts_with("something new\n") && told.contains("x.rs:4"),
        "{told}"
    );
}

#[test]
fn reports_of_the_library() {
    let _alone = ALONE.lock();
    let mark = memory::mark();
    let held = Tensor::zeros([64, 1000], DType::F32, &Device::cpu()).unwrap();
    let first = held.i(s![0]).unwrap().named("first of held");
    let copy = first.t().unwrap().copy().unwrap();
    memory::step();
    let first_only = {
        drop(held);
        first
    };
    for (json, title, parts) in [
        (
            memory::holders(&first_only).unwrap().to_json().unwrap(),
            "Who holds this storage",
            ["250 KiB", "first of held"],
        ),
        (
            memory::pins().unwrap().to_json().unwrap(),
            "What views keep beyond what they reach",
            ["246 KiB", "first of held"],
        ),
        (
            memory::dominators().unwrap().to_json().unwrap(),
            "What would go with each tensor",
            ["252 KiB", "first of held"],
        ),
        (
            memory::diff(&mark).to_json().unwrap(),
            "What changed between two maps",
            ["250 KiB", "crates/cli/tests/report.rs"],
        ),
        (
            memory::step().to_json().unwrap(),
            "What only grows from step to step",
            ["step", "complete"],
        ),
        (
            copies::summary().to_json().unwrap(),
            "Copies by line",
            ["3.91 KiB", "crates/cli/tests/report.rs"],
        ),
    ] {
        let (told, page) = report(&json, &[]);
        assert!(told.starts_with(title), "{told}");
        for part in parts {
            assert!(told.contains(part), "{part} in\n{told}");
        }
        assert!(page.contains(title));
    }
    drop((first_only, copy));
}

#[test]
fn what_is_no_report_is_one_clear_line() {
    let mut broken = timeline();
    broken["storages"]["rows"][0][8] = 99.into();
    let mut short = timeline();
    short["views"]["rows"][0].as_array_mut().unwrap().pop();
    let mut backwards = timeline();
    backwards["storages"]["rows"][0][6] = 1.into();
    let mut nowhere = timeline();
    nowhere["segments"]["rows"][0][0] = 7.into();
    let tensor = |shape: Value, dtype: &str| json!({"schema": 1, "kind": "map", "storages": [{"id": 1, "nbytes": 8, "device": "cpu", "origin": "x", "tensors": [{"dtype": dtype, "shape": shape, "stride": [1], "offset": 0}]}]});
    let cases = [
        (String::new(), "EOF while parsing"),
        ("\u{1}".into(), "expected value"),
        ("[]".into(), "not a report of osteon"),
        ("{}".into(), "it has no schema"),
        (
            r#"{"schema": 2, "kind": "map"}"#.into(),
            "its schema is 2, and this version knows 1",
        ),
        (
            r#"{"schema": 1}"#.into(),
            "neither a kind nor storages nor files",
        ),
        (
            r#"{"schema": 1, "kind": "map", "storages": 5}"#.into(),
            "invalid type",
        ),
        (
            r#"{"schema": 1, "kind": "timeline"}"#.into(),
            "missing field",
        ),
        (broken.to_string(), "row 0 of storages names string 99 of 8"),
        (short.to_string(), "invalid length 12"),
        (backwards.to_string(), "storage 2 ends before it begins"),
        (nowhere.to_string(), "device 7 of 1"),
        (tensor(json!([9]), "float32").to_string(), "which has 8"),
        (
            tensor(json!([9, 9]), "float32").to_string(),
            "mismatch in length",
        ),
        (
            tensor(json!([u64::MAX]), "float32").to_string(),
            "saved.json",
        ),
        (
            tensor(json!([1]), "float7").to_string(),
            "no dtype is named \"float7\"",
        ),
        (
            format!(
                r#"{{"schema": 1, "kind": "x", "a": {}{}}}"#,
                "[".repeat(100_000),
                "]".repeat(100_000)
            ),
            "recursion limit",
        ),
    ];
    for (json, why) in cases {
        let (dir, path) = saved(&json);
        let page = dir.path().join("page.html");
        for args in [
            &["report", path.as_str()][..],
            &["report", &path, "--html", page.to_str().unwrap()],
        ] {
            let ran = osteon(args);
            let shown = &json[..json.len().min(300)];
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{shown}");
            assert!(
                ran.err.starts_with("osteon: ")
                    && ran.err.contains("saved.json")
                    && ran.err.contains(why),
                "{shown}: {}",
                ran.err
            );
            assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        }
        assert!(!page.exists());
    }
    let ran = osteon(&["report", "nowhere.json"]);
    assert!(
        ran.code == 1 && ran.err.contains("nowhere.json"),
        "{}",
        ran.err
    );
}

#[test]
fn names_neither_steer_the_terminal_nor_the_page() {
    let name = "\u{1b}]0;owned\u{7}\u{202e}</script><img src=x>\n";
    let odd = json!({"schema": 1, "kind": "x\u{1b}[2J", "a\u{1b}[2J": name, "rows": [{name: name, "op": name}], "none": {"deep": [{"er": {"est": [name, {"x": name}]}}]}});
    let mut time = timeline();
    time["strings"][2] = name.into();
    time["title"] = name.into();
    let map = json!({"schema": 1, "kind": "map", "storages": [{"id": 1, "nbytes": 0, "label": name, "device": name, "origin": name, "tensors": []}]});
    for json in [odd, time, map] {
        let (told, page) = report(&json.to_string(), &["--all"]);
        let bad = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!told.contains(bad), "{told:?}");
        assert!(told.contains("]0;owned"));
        assert!(!page.contains("<img"));
    }
}

#[test]
fn the_report_is_not_overwritten() {
    let (_dir, path) = saved("{}");
    let ran = osteon(&["report", &path, "--html", &path]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("would be overwritten"), "{}", ran.err);
    assert_eq!(fs::read_to_string(PathBuf::from(path)).unwrap(), "{}");
}

/// A list whose every row has fields of its own has as many cells as the square of its rows.
#[test]
fn wide_lists_stay_small() {
    let rows: Vec<_> = (0..20_000)
        .map(|i| json!({format!("field {i}"): i}))
        .collect();
    let (told, page) = report(
        &json!({"schema": 1, "kind": "x", "rows": rows}).to_string(),
        &["--all"],
    );
    assert!(told.len() < 20_000_000 && page.len() < 20_000_000);
}
