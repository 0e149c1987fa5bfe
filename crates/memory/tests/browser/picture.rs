//! The memory picture's page.

use crate::browser;
use crate::chromium::Chromium;
use crate::samples::{hostile, huge, training_step};
use osteon_memory::picture::{Lang, Picture, Saver};
use serde_json::json;
use std::path::PathBuf;

const WINDOW: (u32, u32) = (1440, 900);

fn page(name: &str, picture: &Picture) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("picture");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name).with_extension("html");
    picture.write_html(&path).unwrap();
    path
}

fn cursor(b: &mut Chromium) -> String {
    b.text(".cursor .name")
}

fn fits(b: &mut Chromium) -> bool {
    b.eval("document.documentElement.scrollWidth <= innerWidth") == true
}

fn clean(b: &Chromium) {
    assert_eq!(b.problems, Vec::<String>::new());
    assert!(
        b.requests.iter().all(|url| url.starts_with("file:")),
        "{:?}",
        b.requests
    );
}

#[test]
fn the_graph_is_told_apart() {
    let Some(mut b) = browser("picture-graph") else {
        return;
    };
    let mut picture = training_step();
    let saver = |op: &str, storages, bytes| Saver {
        op: op.into(),
        site: Some("src/<b>model</b>.rs:7".into()),
        storages,
        bytes,
    };
    picture.graph = vec![saver("mul", 3, 6 << 20), saver("exp", 1, 2 << 20)];
    let path = page("graph", &picture);
    b.open(&path, WINDOW, false);
    assert_eq!(
        b.text("#graph summary"),
        "8.00 MiB kept by the graph of derivatives alone"
    );
    b.click_on("#graph summary");
    assert_eq!(b.count("#graph li"), 2);
    assert_eq!(
        b.text("#graph li"),
        "6.00 MiB 3 storages saved for backward by mul at src/<b>model</b>.rs:7"
    );
    assert!(fits(&mut b));
    clean(&b);
    // Without a graph there is no such line.
    let path = page("no-graph", &training_step());
    b.open(&path, WINDOW, true);
    assert_eq!(b.eval("document.getElementById('graph').hidden"), true);
    clean(&b);
}

#[test]
fn search_and_keyboard() {
    let Some(mut b) = browser("picture-keys") else {
        return;
    };
    let path = page("train", &training_step());
    b.open(&path, WINDOW, false);
    assert_eq!(
        cursor(&mut b),
        "first_rows",
        "opens on the tensor that pins most"
    );
    assert_eq!(b.text(".pins b"), "pins 256 MiB that it does not reach");
    let names =
        b.eval("[...document.querySelectorAll('.head .name')].slice(0, 3).map((n) => n.innerText)");
    assert_eq!(
        names,
        json!(["storage #17", "storage #37", "replay"]),
        "by waste"
    );
    b.press(&["/"]);
    assert_eq!(b.eval("document.activeElement.id"), "search");
    b.type_text("kv nowhere");
    assert_eq!(
        (b.count(".head"), b.text("#count")),
        (0, "0 storages, 0 tensors".into())
    );
    b.press(&["Escape"]);
    assert_eq!(b.count(".head"), 7);
    b.press(&["/"]);
    b.type_text("narrow buffer.rs");
    b.press(&["Enter"]);
    assert_eq!(
        (b.count(".head"), b.count(".tensor")),
        (1, 2),
        "by op and origin"
    );
    assert_eq!(b.eval("document.activeElement.id"), "list");
    b.press(&["/", "Escape", "Home"]);
    let mut walk = vec![];
    for _ in 0..4 {
        walk.push(cursor(&mut b));
        b.press(&["ArrowDown"]);
    }
    assert_eq!(walk, ["storage #17", "first_rows", "storage #37", "q"]);
    b.press(&["ArrowLeft", "ArrowLeft"]);
    assert_eq!(
        b.eval("document.querySelector('.cursor').ariaExpanded"),
        "false",
        "to the storage, then folded"
    );
    b.press(&["Enter"]);
    assert_eq!(
        b.eval("document.querySelector('.cursor').ariaExpanded"),
        "true"
    );
    let active = "document.getElementById(document.getElementById('list').getAttribute('aria-activedescendant')).classList.contains('cursor')";
    assert_eq!(b.eval(active), true);
    clean(&b);
}

#[test]
fn pointer_scale_and_theme() {
    let Some(mut b) = browser("picture-pointer") else {
        return;
    };
    let path = page("train", &training_step());
    b.open(&path, WINDOW, false);
    b.click_on(".tensor:not(.cursor)");
    assert_eq!(b.count(".bar.focus-runs"), 1, "runs are marked on the bar");
    let at = b.place(".head.storage .bar", (0.7, 0.5));
    b.point(at);
    assert!(b.text("#tip").contains("reached by none"));
    b.keep("picture-tip");
    let lengths =
        "new Set([...document.querySelectorAll('.head .bar')].map((b) => b.offsetWidth)).size";
    assert_eq!(b.eval(lengths), 7);
    b.click_on("#scale label:last-child span");
    let part = b.eval("(() => { const w = [...document.querySelectorAll('.head .bar')].map((b) => parseFloat(b.style.width)); return w[1] / w[0]; })()");
    assert!(
        (part.as_f64().unwrap() - 18_874_368.0 / 268_435_456.0).abs() < 0.001,
        "linear"
    );
    b.keep("picture-linear");
    b.click_on("#theme");
    assert_eq!(
        b.eval("getComputedStyle(document.body).backgroundColor"),
        "rgb(23, 24, 22)"
    );
    b.click_on("#fold");
    assert_eq!((b.count(".head"), b.count(".tensor")), (7, 0));
    for (width, dark) in [
        (1600, false),
        (1440, true),
        (1200, false),
        (1000, true),
        (800, false),
    ] {
        b.open(&path, (width, 900), dark);
        assert!(fits(&mut b), "sideways at {width}");
        b.keep(&format!("picture-{width}"));
    }
    let zh = page("train-zh", &training_step().lang(Lang::Zh));
    b.open(&zh, WINDOW, false);
    assert_eq!(
        (
            b.text("#totals dt"),
            b.eval("document.documentElement.lang")
        ),
        ("已分配".into(), json!("zh"))
    );
    b.keep("picture-zh");
    clean(&b);
}

#[test]
fn twenty_thousand_tensors() {
    let Some(mut b) = browser("picture-huge") else {
        return;
    };
    let path = page("huge", &huge());
    let opened = b.open(&path, WINDOW, false);
    assert!(opened.as_millis() < 3000, "opened in {opened:?}");
    let names: Vec<String> = serde_json::from_value(
        b.eval("[...document.querySelectorAll('.head .name')].map((n) => n.innerText)"),
    )
    .unwrap();
    assert!(names.len() < 30, "grouped");
    assert!(
        ["model.layers.*.norm.weight", "mul at src/train.rs:40"]
            .iter()
            .all(|n| names.iter().any(|own| own == n)),
        "{names:?}"
    );
    b.keep("picture-huge");
    b.press(&["/"]);
    b.type_text("row.");
    b.press(&["Enter"]);
    assert_eq!(b.text("#count"), "1 storage, 12,000 tensors");
    b.press(&["End", "Enter"]);
    assert!(
        b.eval("document.getElementById('list').offsetHeight")
            .as_u64()
            .unwrap()
            > 12_000 * 40,
        "shows all"
    );
    assert!(
        (10..80).contains(&b.count(".tensor")),
        "draws only the window"
    );
    b.press(&["End", "ArrowUp"]);
    let seen = "(() => { const r = document.querySelector('.cursor').getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; })()";
    assert_eq!(
        (cursor(&mut b), b.eval(seen)),
        ("row.11999".into(), json!(true))
    );
    let slowest = b.eval(
        "(async () => {
            let worst = 0;
            for (let y = 0; y < 60; y++) {
                const t = performance.now();
                window.scrollTo(0, y * 9001);
                await new Promise(requestAnimationFrame);
                worst = Math.max(worst, performance.now() - t);
            }
            return worst;
        })()",
    );
    assert!(
        slowest.as_f64().unwrap() < 250.0,
        "a frame of scrolling took {slowest} ms"
    );
    b.open(&path, WINDOW, false);
    b.press(&["/", "Enter", "End", "Home"]);
    assert!(b.eval("scrollY").as_f64().unwrap() < 300.0);
    b.press(&["ArrowRight"]);
    assert!(b.count(".head.storage") > 3, "unfolds a group");
    b.keep("picture-huge-group");
    clean(&b);
}

#[test]
fn hostile_names_stay_text() {
    let Some(mut b) = browser("picture-hostile") else {
        return;
    };
    let path = page("hostile", &hostile());
    for dark in [false, true] {
        b.open(&path, WINDOW, dark);
        assert!(b.eval("document.title").as_str().unwrap().contains("<img"));
        assert_eq!((b.count("img"), b.count("script")), (0, 2));
        assert!(b.text("h1").contains("\\u{202e}gnp.exe\\u{a}"));
        assert!(fits(&mut b));
        b.keep(if dark {
            "picture-hostile-dark"
        } else {
            "picture-hostile-light"
        });
    }
    let none = page(
        "none",
        &Picture::new("Memory map", "nothing yet", vec![]).unwrap(),
    );
    b.open(&none, WINDOW, false);
    assert_eq!(
        b.eval("document.getElementById('list').dataset.message"),
        "No storages: nothing is held."
    );
    clean(&b);
}
