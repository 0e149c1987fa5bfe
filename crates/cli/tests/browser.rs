//! The page of a report in a real browser; without Chromium the test says so and passes.

#[path = "../../memory/tests/browser/chromium.rs"]
#[allow(dead_code, reason = "the driver of the larger pages, too")]
mod chromium;
mod common;

use chromium::Chromium;
use common::osteon;
use serde_json::json;
use std::path::Path;
use std::sync::Mutex;

static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn a_report_sorts_by_any_column() {
    let Some(program) = chromium::installed() else {
        println!("skipped: no Chromium is installed (apt-get install -y chromium)");
        return;
    };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (saved, page) = (dir.join("report.json"), dir.join("report.html"));
    let site = |name: &str, bytes: u64, time: u64| json!({"site": name, "bytes": bytes, "time_ns": time, "op": "</script><b>"});
    let sites = [
        site("a", 1 << 20, 5_000),
        site("b", 900, 70_000_000),
        site("c", 3 << 30, 6),
    ];
    let report = json!({"schema": 1, "kind": "copies", "count": 3, "sites": sites});
    std::fs::write(&saved, report.to_string()).unwrap();
    let ran = osteon(&[
        "report",
        saved.to_str().unwrap(),
        "--html",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut b = Chromium::start(&program, "report", ALONE.lock().unwrap());
    for dark in [false, true] {
        b.open(&page, (1200, 700), dark);
        b.keep(if dark { "report-dark" } else { "report-light" });
    }
    assert_eq!(
        (b.text("h1"), b.text(".facts dd")),
        ("Copies by line".into(), "3".into())
    );
    let column =
        "[...document.querySelectorAll('tbody tr')].map((tr) => tr.cells[3].textContent).join('')";
    let mut sorted_by = |name: &str| {
        b.eval(&format!("[...document.querySelectorAll('th button')].find((x) => x.textContent === '{name}').click()"));
        b.eval(column)
    };
    assert_eq!(
        ["bytes", "bytes", "time", "site"].map(&mut sorted_by),
        ["cab", "bac", "bac", "cba"]
    );
    assert_eq!((b.count("b"), b.problems.len()), (0, 0), "{:?}", b.problems);
    assert!(b.requests.iter().all(|url| url.starts_with("file:")));
}
