//! `osteon map`, as users run it.

mod common;

use common::{command, data, osteon, ran, safetensors, shared};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// A file's map with storages called by the tensors on them, since their numbers are free.
fn canonical(file: &Value) -> Value {
    let tensors = file["tensors"].as_object().unwrap();
    let mut on: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, tensor) in tensors {
        on.entry(tensor["storage"].to_string())
            .or_default()
            .push(name);
    }
    let called: BTreeMap<_, _> = on
        .iter()
        .map(|(id, names)| (id.clone(), names.join(" ")))
        .collect();
    let tensor = |(name, tensor): (&String, &Value)| {
        let mut tensor = tensor.clone();
        let storage = called[&tensor["storage"].to_string()].as_str().into();
        tensor["storage"] = storage;
        tensor.as_object_mut().unwrap().remove("sum");
        (name.clone(), tensor)
    };
    let storage = |(id, storage): (&String, &Value)| {
        let bytes =
            json!({"nbytes": storage["nbytes"], "reachable_bytes": storage["reachable_bytes"]});
        (called[id].clone(), bytes)
    };
    json!({
        "file_bytes": file["file_bytes"],
        "tensors": tensors.iter().map(tensor).collect::<Map<_, _>>(),
        "storages": file["storages"].as_object().unwrap().iter().map(storage).collect::<Map<_, _>>(),
    })
}

fn map_json(args: &[&str]) -> Value {
    let ran = osteon(&[&["map", "--json"], args].concat());
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    serde_json::from_str(&ran.out).unwrap()
}

/// Compares with facts.json, written beside the files by the script that made them.
fn check_all(dir: &Path) -> usize {
    let facts = std::fs::read(dir.join("facts.json")).unwrap();
    let facts: Value = serde_json::from_slice(&facts).unwrap();
    let mut checked = 0;
    for (file, facts) in facts.as_object().unwrap() {
        let path = dir.join(file);
        if !path.exists() {
            continue;
        }
        let path = path.to_str().unwrap();
        let map = map_json(&[path]);
        assert_eq!(
            (&map["schema"], map["files"].as_array().unwrap().len()),
            (&json!(1), 1)
        );
        let entry = &map["files"][0];
        assert_eq!(entry["path"], path);
        assert_eq!(canonical(entry), canonical(facts), "{file}");
        for (id, storage) in entry["storages"].as_object().unwrap() {
            for name in storage["tensors"].as_array().unwrap() {
                assert_eq!(
                    entry["tensors"][name.as_str().unwrap()]["storage"].to_string(),
                    *id
                );
            }
        }
        checked += 1;
    }
    checked
}

#[test]
fn json_agrees_with_the_writers() {
    assert_eq!(check_all(Path::new(&data(""))), 16);
    if let Some(dir) = shared() {
        assert!(check_all(&dir) > 16);
    }
}

#[test]
fn an_index_is_its_shards() {
    let map = map_json(&[&data("model.safetensors.index.json"), &data("one.npy")]);
    let entries = map["files"].as_array().unwrap();
    let names: Vec<_> = entries
        .iter()
        .map(|f| f["tensors"].as_object().unwrap().keys().next().unwrap())
        .collect();
    assert_eq!(names, ["layer.0.w", "layer.1.w", "one"]);
}

#[test]
fn without_a_file_the_built_in_checkpoint() {
    let ran = osteon(&["map"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    // What data/make_built_in.py says: 128 of 1,024 floats; tied; 48 bytes as 2,304; all in all.
    for told in [
        "last_row  float32 [128]  offset 896",
        "3.50 KiB  87.5 %",
        "embed.weight  float32 [16, 24]",
        "attention.weight_t  float32 [12, 24]  stride [1, 12]",
        "mask  bool [48, 48]  stride [0, 1]",
        "6 tensors on 5 storages (1 shared by several): 6,896 bytes\n  3,584 bytes (52.0 %) are reached by no tensor",
        "nothing was executed",
    ] {
        assert!(ran.out.contains(told), "{told}\n{}", ran.out);
    }
    assert!(!ran.out.contains('\x1b'));
    let zh = osteon(&["map", "--lang", "zh"]).out;
    assert!(
        zh.contains("6 个张量，5 个存储（1 个由多个张量共享）：6,896 字节\n  3,584 字节（52.0 %）"),
        "{zh}"
    );
}

#[test]
fn budgets() {
    // 3,584 of 6,896 bytes are wasted: 51.97 %.
    for (budget, code) in [
        ("52%", 0),
        ("51.9%", 3),
        ("3584", 0),
        ("3583", 3),
        ("3.5KiB", 0),
        ("3.4KiB", 3),
        ("100%", 0),
        ("0%", 3),
    ] {
        for more in [&[][..], &["--json"]] {
            let ran = osteon(&[&["map", "--max-waste", budget], more].concat());
            assert_eq!(ran.code, code, "{budget}");
            if code == 3 {
                let line = format!(
                    "osteon: built_in.pt: 3,584 of 6,896 bytes (52.0 %) are reached by no tensor, more than --max-waste {budget}\n"
                );
                assert_eq!(ran.err, line);
            }
        }
    }
    // Each file has the budget to itself.
    let ran = osteon(&[
        "map",
        "--max-waste",
        "5%",
        &data("clean.pt"),
        &data("transposed.pt"),
        &data("tied.pt"),
    ]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.err
            .contains("transposed.pt: 2,320 of 5,120 bytes (45.3 %)"),
        "{}",
        ran.err
    );
    assert_eq!(ran.err.lines().count(), 1);
}

#[test]
fn usage_errors_are_2() {
    for args in [
        &["map", "--max-waste", "lots"][..],
        &["map", "--nope"],
        &["nope"],
        &["compact", "x"],
    ] {
        let ran = osteon(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(!ran.err.is_empty());
    }
}

#[test]
fn broken_files_are_one_clear_line_that_names_the_file() {
    let mut dirs = vec![Path::new(&data("bad")).to_owned()];
    dirs.extend(shared().map(|d| d.join("bad")));
    let mut seen = 0;
    for entry in dirs.iter().flat_map(|d| std::fs::read_dir(d).unwrap()) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let ran = osteon(&["map", path.to_str().unwrap()]);
        if name == "evil.pt" {
            assert_eq!((ran.code, ran.err.as_str()), (0, ""));
            assert!(
                ran.out.contains("posix.system") && ran.out.contains("w  float32 [2]"),
                "{}",
                ran.out
            );
        } else {
            assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{name}");
            assert!(
                ran.err.starts_with("osteon: ") && ran.err.contains(name),
                "{}",
                ran.err
            );
            assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
        }
        seen += 1;
    }
    assert!(seen >= 9);
    let warnings = &map_json(&[&data("bad/evil.pt")])["files"][0]["warnings"];
    assert!(warnings[0].as_str().unwrap().contains("posix.system"));
}

#[test]
fn a_broken_file_does_not_hide_the_others() {
    for args in [&[][..], &["--json"]] {
        let files = [data("nowhere.pt"), data("tied.pt")];
        let ran = osteon(&[&["map", &files[0], &files[1]], args].concat());
        assert_eq!(ran.code, 1);
        assert!(
            ran.err.contains("nowhere.pt") && ran.err.lines().count() == 1,
            "{}",
            ran.err
        );
        assert!(ran.out.contains("lm_head.weight"));
    }
}

#[test]
fn names_cannot_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.safetensors");
    let names = [
        r"\u001b]0;owned\u0007",
        r"\u009b31m",
        r"a\nb\r",
        r"\u202etxt",
        r"\udb40\udc41",
    ];
    safetensors(&file, &names.map(String::from));
    let html = dir.path().join("x.html");
    for args in [
        &["--all"][..],
        &["--json"],
        &["--html", html.to_str().unwrap()],
    ] {
        let ran = osteon(&[&["map", file.to_str().unwrap()], args].concat());
        assert_eq!(ran.code, 0);
        let bad = |c: char| c != '\n' && (c.is_control() || "\u{202e}\u{e0041}".contains(c));
        assert!(!ran.out.contains(bad), "{:?}", ran.out);
        assert!(ran.out.contains("]0;owned"));
    }
    // In errors too: a name that is given twice.
    safetensors(&file, &[names[0].into(), names[0].into()]);
    let ran = osteon(&["map", file.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1));
    assert!(
        !ran.err.contains(|c: char| c != '\n' && c.is_control()),
        "{:?}",
        ran.err
    );
}

#[test]
fn many_storages_are_cut_short_unless_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("many.safetensors");
    safetensors(
        &file,
        &(0..3000)
            .map(|i| format!("layer.{i:04}"))
            .collect::<Vec<_>>(),
    );
    let file = file.to_str().unwrap();
    let short = osteon(&["map", file]).out;
    assert!(
        short.contains("… and 2,980 more storages of 2.91 KiB, none wasted (--all)"),
        "{short}"
    );
    assert!(short.contains("layer.0019") && !short.contains("layer.0020"));
    let all = osteon(&["map", "--all", file]).out;
    assert!(all.contains("layer.2999") && !all.contains("--all"));
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    for args in [&["map", "--json"][..], &["map", "--all"], &["tour"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = ran(command(args).stdout(writer).output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(
        ran(command(&["map", "--max-waste", "1%"])
            .stdout(writer)
            .output()
            .unwrap())
        .code,
        3
    );
}

#[test]
fn the_picture() {
    let dir = tempfile::tempdir().unwrap();
    let html = dir.path().join("map.html");
    let ran = osteon(&[
        "map",
        &data("tied.pt"),
        "--html",
        html.to_str().unwrap(),
        "--lang",
        "zh",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<html lang=\"zh\">"));
    assert!(page.contains("lm_head.weight") && page.contains("storage 0 of"));
    // What is read is never written over.
    let copy = dir.path().join("copy.pt");
    std::fs::copy(data("tied.pt"), &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let ran = osteon(&[
        "map",
        copy.to_str().unwrap(),
        "--html",
        copy.to_str().unwrap(),
    ]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("would be overwritten"), "{}", ran.err);
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    // A folder that is not there.
    let nowhere = dir.path().join("none/x.html");
    let ran = osteon(&["map", "--html", nowhere.to_str().unwrap()]);
    assert_eq!((ran.code, ran.err.lines().count()), (1, 1));
}
