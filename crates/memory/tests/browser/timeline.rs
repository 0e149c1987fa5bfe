//! The timeline's page.

use crate::browser;
use crate::chromium::Chromium;
use crate::recording::{Recording, hostile, million, training};
use osteon_memory::picture::Lang;
use osteon_memory::timeline::{Text, Timeline};
use osteon_memory::{Storage, record, scope};
use osteon_spec::Device;
use std::collections::BTreeMap;
use std::path::PathBuf;

const WINDOW: (u32, u32) = (1600, 1200);

fn page(name: &str, timeline: &Timeline, lang: Lang) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("timeline");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name).with_extension("html");
    timeline.write_html_in(lang, &path).unwrap();
    path
}

/// Bytes as the page writes them.
fn shown(mut n: f64) -> String {
    let mut unit = 0;
    while n >= 1023.5 {
        n /= 1024.0;
        unit += 1;
    }
    let digits = match n {
        _ if unit == 0 || n >= 99.95 => 0,
        _ if n >= 9.995 => 1,
        _ => 2,
    };
    // The page rounds halves up, Rust to even.
    let n = if digits == 0 { n.round() } else { n };
    format!("{n:.digits$} {}", ["B", "KiB", "MiB", "GiB"][unit])
}

/// The bytes in blocks at a moment, by group, from the rows alone.
fn live(
    timeline: &Timeline,
    at: u64,
    group: impl Fn(&osteon_memory::timeline::Stay) -> Text,
) -> BTreeMap<String, u64> {
    let mut groups = BTreeMap::new();
    for s in &timeline.storages {
        if s.from <= at && s.to.is_none_or(|to| at < to) {
            *groups
                .entry(timeline.strings[group(s).0 as usize].clone())
                .or_default() += s.size;
        }
    }
    groups
}

/// The drawing as a table: stretch, lowest, highest, largest group.
fn stretches(b: &mut Chromium) -> Vec<Vec<String>> {
    b.eval("document.getElementById('table').open = true");
    b.settle();
    b.settle();
    let rows = b.eval("[...document.querySelectorAll('#table tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent))");
    serde_json::from_value(rows).unwrap()
}

/// From where to where the window goes, in milliseconds.
fn window(b: &mut Chromium) -> (f64, f64) {
    let rows = stretches(b);
    let ms = |text: &str| {
        let (number, unit) = text.trim().split_once(' ').unwrap();
        number.parse::<f64>().unwrap()
            * match unit {
                "ms" => 1.0,
                "µs" => 1e-3,
                _ => 1e-6,
            }
    };
    let ends = |row: &[String]| {
        let (from, to) = row[0].split_once('–').unwrap();
        (ms(from), ms(to))
    };
    (ends(&rows[0]).0, ends(&rows[23]).1)
}

fn moment(b: &mut Chromium) -> u64 {
    b.eval("Number(document.getElementById('chart').getAttribute('aria-valuenow'))")
        .as_u64()
        .unwrap()
}

fn focus(b: &mut Chromium, id: &str) {
    b.eval(&format!(
        "document.getElementById('{id}').focus({{ preventScroll: true }})"
    ));
}

#[test]
fn figures_are_those_of_the_rows() {
    let Some(mut b) = browser("figures") else {
        return;
    };
    let train = training(3);
    let path = page("figures", &train, Lang::En);
    b.open(&path, WINDOW, false);
    let mut times: Vec<u64> = train
        .storages
        .iter()
        .flat_map(|s| [Some(s.from), s.to])
        .flatten()
        .collect();
    times.sort_unstable();
    times.dedup();
    let total = |at| live(&train, at, |s| s.label).values().sum::<u64>();
    let rows = stretches(&mut b);
    for (i, row) in rows.iter().enumerate() {
        let edge = |i: usize| train.duration as f64 * i as f64 / 24.0;
        let within = times
            .iter()
            .copied()
            .filter(|&t| edge(i) < t as f64 && (t as f64) < edge(i + 1));
        let values: Vec<u64> = std::iter::once(edge(i) as u64)
            .chain(within)
            .map(total)
            .collect();
        let (low, high) = (values.iter().min().unwrap(), values.iter().max().unwrap());
        assert_eq!(
            [&row[1], &row[2]],
            [&shown(*low as f64), &shown(*high as f64)],
            "{row:?}"
        );
    }
    // The page opens on the peak, which the recording names too.
    let peak = train.devices[0].peak;
    assert_eq!(total(peak.time.unwrap()), peak.allocated);
    assert_eq!(
        b.text("#totals div:nth-child(3) dd"),
        shown(peak.allocated as f64)
    );
    assert!(
        b.text("#now")
            .contains(&format!("{} allocated", shown(peak.allocated as f64))),
        "{}",
        b.text("#now")
    );
    for (by, of) in [
        (
            "scope",
            (|s| s.scope) as fn(&osteon_memory::timeline::Stay) -> Text,
        ),
        ("line", |s| s.site),
    ] {
        b.eval(&format!(
            "document.querySelector('#by input[value={by}]').click()"
        ));
        b.settle();
        // A line is shown without its folders and after its op; tables fold numbers where there are many names.
        let named = |group: &str| match by {
            _ if group.is_empty() => "no scope".to_owned(),
            "line" => group.rsplit('/').next().unwrap().to_owned(),
            _ => group.to_owned(),
        };
        let groups = live(&train, peak.time.unwrap(), of);
        let rows = b.eval("[...document.querySelectorAll('#legend tbody tr')].map((tr) => [tr.cells[0].innerText, tr.cells[1].innerText])");
        let rows: Vec<(String, String)> = serde_json::from_value(rows).unwrap();
        assert!((2..=12).contains(&rows.len()), "{rows:?}");
        let mut compared = 0;
        for (group, bytes) in groups {
            let name = named(&group);
            let suffix = format!(" {name}");
            if let Some((_, now)) = rows
                .iter()
                .find(|(own, _)| *own == name || own.ends_with(&suffix))
            {
                assert_eq!(*now, shown(bytes as f64), "{name}");
                compared += 1;
            }
        }
        assert!(compared >= 3, "{rows:?}");
    }
    assert_eq!(b.problems, Vec::<String>::new());
}

#[test]
fn a_recording_of_this_process() {
    let Some(mut b) = browser("recording") else {
        return;
    };
    let recording = record().unwrap();
    let site = std::panic::Location::caller();
    let kept = {
        let _in = scope("outer");
        let kept = Storage::allocate(3 << 20, &Device::cpu(), "demo", site).unwrap();
        kept.set_label("kept");
        let _inner = scope("inner");
        drop(Storage::allocate(5 << 20, &Device::cpu(), "scratch", site).unwrap());
        kept
    };
    let timeline = recording.stop().unwrap();
    let path = page("recording", &timeline, Lang::En);
    b.open(&path, WINDOW, false);
    // Other tests of this process draw, and allocate nothing here.
    assert!(
        b.text("#now")
            .contains("8.00 MiB allocated — no label 5.00 MiB, kept 3.00 MiB"),
        "{}",
        b.text("#now")
    );
    let at = b.eval(
        "[...document.querySelectorAll('.stay')].findIndex((s) => s.innerText.includes('kept'))",
    );
    b.click_on(&format!(".stay:nth-child({})", at.as_u64().unwrap() + 1));
    let told = b.text("#details");
    let line = format!("{}:{}", site.file(), site.line());
    for part in [
        "kept",
        "3,145,728 B",
        "demo",
        &line,
        "outer",
        "still there at the end",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    b.keep("timeline-recording");
    assert_eq!(b.problems, Vec::<String>::new());
    drop(kept);
}

#[test]
fn keyboard() {
    let Some(mut b) = browser("keyboard") else {
        return;
    };
    let path = page("train", &training(4), Lang::En);
    b.open(&path, WINDOW, false);
    b.press(&["Tab", "Tab", "Tab", "Tab", "Tab", "Tab", "Tab", "Tab"]);
    assert_eq!(
        b.eval("document.activeElement.id"),
        "chart",
        "the drawing can be reached"
    );
    let peak = moment(&mut b);
    b.press(&["ArrowRight", "ArrowRight", "ArrowLeft"]);
    assert_eq!(moment(&mut b), peak + 1);
    b.press(&["Home"]);
    assert_eq!(moment(&mut b), 0);
    b.press(&["Shift+ArrowRight"]);
    assert!(moment(&mut b) > 10);
    b.press(&["p"]);
    assert_eq!(moment(&mut b), peak);
    let all = window(&mut b);
    focus(&mut b, "chart");
    b.press(&["+", "+"]);
    let near = window(&mut b);
    assert!(
        ((near.1 - near.0) / (all.1 - all.0) - 0.25).abs() < 0.01,
        "{all:?} {near:?}"
    );
    b.press(&["Home", "p", "["]);
    let from_here = window(&mut b);
    b.press(&["Shift+ArrowRight", "]"]);
    let to_here = window(&mut b);
    assert!(
        from_here.0 > near.0 && (from_here.0 - to_here.0).abs() < 1e-3 && to_here.1 < from_here.1
    );
    b.keep("timeline-zoomed");
    b.press(&["a"]);
    assert_eq!(window(&mut b), all);
    // Up and down walk the stack; the panel tells about what is there.
    focus(&mut b, "chart");
    b.press(&["p", "ArrowUp", "ArrowUp"]);
    let told = b.text("#details");
    for what in [
        "matmul",
        "examples/train.rs:53:17",
        "step.forward.layers.0",
        "6.00 MiB",
        "1 tensor on it",
        "float32 [16, 128, 768]",
    ] {
        assert!(told.contains(what), "{what} in {told}");
    }
    b.keep("timeline-selected");
    assert_eq!(b.count(".stay.chosen"), 1);
    focus(&mut b, "stays");
    b.press(&["Home", "ArrowDown"]);
    assert_eq!(
        b.eval("document.querySelector('.stay.chosen') === document.querySelectorAll('.stay')[1]"),
        true
    );
    assert_eq!(b.eval("document.getElementById('stays').getAttribute('aria-activedescendant') === document.querySelector('.stay.chosen').id"), true);
    focus(&mut b, "chart");
    b.press(&["Escape"]);
    assert_eq!(b.count(".stay.chosen"), 0);
    assert_eq!(b.problems, Vec::<String>::new());
}

#[test]
fn pointer() {
    let Some(mut b) = browser("pointer") else {
        return;
    };
    let path = page("train", &training(4), Lang::En);
    b.open(&path, WINDOW, true);
    let all = window(&mut b);
    // A block of the first forward pass, half way up the lowest band.
    let at = b.place("#marks", (0.18, 0.8));
    b.point(at);
    assert!(b.text("#tip").contains("matmul"), "{}", b.text("#tip"));
    b.click(at);
    let told = b.text("#details");
    assert!(
        told.starts_with("matmul")
            && told.contains("examples/train.rs:5")
            && told.contains("step.forward.layers."),
        "{told}"
    );
    b.keep("timeline-dark");
    b.click_on("#theme");
    assert_eq!(
        b.eval("getComputedStyle(document.body).backgroundColor"),
        "rgb(250, 248, 245)"
    );
    b.keep("timeline-light");
    let (a, z) = (b.place("#marks", (0.3, 0.6)), b.place("#marks", (0.5, 0.6)));
    b.drag(a, z, false);
    let near = window(&mut b);
    let part = (near.1 - near.0) / (all.1 - all.0);
    assert!((0.2..0.25).contains(&part), "{near:?}");
    b.drag(z, a, true);
    let moved = window(&mut b);
    assert!(
        moved.0 > near.0 && ((moved.1 - moved.0) - (near.1 - near.0)).abs() < 0.01,
        "{near:?} {moved:?}"
    );
    b.wheel(a, (0.0, -200.0), true);
    let nearer = window(&mut b);
    assert!(
        nearer.1 - nearer.0 < 0.6 * (moved.1 - moved.0),
        "{moved:?} {nearer:?}"
    );
    b.wheel(a, (120.0, 0.0), false);
    assert!(window(&mut b).0 > nearer.0);
    b.click_on("#whole");
    assert_eq!(window(&mut b), all);
    // The strip: its left edge, then its window.
    let (edge, half) = (
        b.eval("document.getElementById('overview').getBoundingClientRect().left + 70")
            .as_f64()
            .unwrap(),
        b.place("#overview", (0.5, 0.5)),
    );
    b.drag((edge, half.1), half, false);
    let right = window(&mut b);
    assert!(
        (right.0 / all.1 - 0.46).abs() < 0.02 && right.1 == all.1,
        "{right:?}"
    );
    b.drag((half.0 + 200.0, half.1), (half.0, half.1), false);
    assert!(window(&mut b).0 < right.0);
    b.click_on("#whole");
    // One group alone, and all again.
    b.click_on("#legend [data-group='0']");
    assert_eq!(b.count("#legend tr.faint"), b.count("#legend tbody tr") - 1);
    b.keep("timeline-alone");
    b.click_on("#legend [data-group='0']");
    assert_eq!(b.count("#legend tr.faint"), 0);
    let block = b.place("#blocks", (0.02, 0.05));
    b.click(block);
    assert!(
        b.text("#details").starts_with("layers.0.qkv.weight"),
        "{}",
        b.text("#details")
    );
    b.click_on("#axis label:last-child span");
    assert!(stretches(&mut b)[0][0].starts_with("0 – "));
    b.keep("timeline-changes");
    assert_eq!(b.problems, Vec::<String>::new());
    assert!(
        b.requests.iter().all(|url| url.starts_with("file:")),
        "{:?}",
        b.requests
    );
}

#[test]
fn fits_any_window_in_both_languages() {
    let Some(mut b) = browser("windows") else {
        return;
    };
    for (name, lang) in [("train", Lang::En), ("train-zh", Lang::Zh)] {
        let path = page(name, &training(4), lang);
        for (width, dark) in [(1600, false), (1440, true), (1100, false), (800, true)] {
            b.open(&path, (width, 1000), dark);
            assert_eq!(
                b.eval("document.documentElement.scrollWidth <= innerWidth"),
                true,
                "{width}"
            );
            b.keep(&format!("timeline-{name}-{width}"));
        }
    }
    assert_eq!(b.text("#totals dt"), "录制时长");
    assert_eq!(b.problems, Vec::<String>::new());
}

#[test]
fn a_million_events() {
    let Some(mut b) = browser("million") else {
        return;
    };
    let path = page("million", &million(), Lang::En);
    assert!(path.metadata().unwrap().len() < 20 << 20);
    let opened = b.open(&path, WINDOW, false);
    assert!(opened.as_secs() < 5, "opened in {opened:?}");
    b.keep("timeline-million");
    let took = b.eval(
        "(async () => {
            const chart = document.getElementById('chart');
            const took = [];
            for (const key of ['p', '+', '+', '+', 'PageDown', 'PageUp', 'ArrowRight', 'ArrowUp', '+', '+', '+', '+', '-', '-', '-', '-', 'a', 'ArrowUp']) {
                const start = performance.now();
                chart.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
                await new Promise(requestAnimationFrame);
                await new Promise(requestAnimationFrame);
                took.push(performance.now() - start);
            }
            return took.sort((a, b) => a - b);
        })()",
    );
    let took: Vec<f64> = serde_json::from_value(took).unwrap();
    let (middle, slowest) = (took[took.len() / 2], took[took.len() - 1]);
    println!(
        "a million events: opened in {opened:?}; a move took {middle:.0} ms, the slowest of {} {slowest:.0} ms",
        took.len()
    );
    assert!(middle < 200.0 && slowest < 1000.0, "{took:?}");
    let line = b.eval("(() => { const t = performance.now(); document.querySelector('#by input[value=line]').click(); return performance.now() - t; })()");
    assert!(line.as_f64().unwrap() < 2000.0, "{line}");
    b.settle();
    b.keep("timeline-million-lines");
    assert!(b.count("#legend tbody tr") == 12 && b.text("#legend tbody tr").contains("others"));
    assert_eq!(b.problems, Vec::<String>::new());
}

#[test]
fn hostile_names_stay_text() {
    let Some(mut b) = browser("hostile") else {
        return;
    };
    let path = page("hostile", &hostile(), Lang::En);
    b.open(&path, WINDOW, false);
    assert_eq!(
        (b.count("img"), b.count("script"), b.count("svg")),
        (0, 1, 0)
    );
    assert!(
        b.eval("document.title")
            .as_str()
            .unwrap()
            .starts_with("</script><img")
    );
    assert!(b.text("h1").contains("\\u{202e}gnp.exe\\u{a}"));
    let at = b.place("#marks", (0.1, 0.5));
    b.click(at);
    assert!(b.text("#details").contains("<svg onload=alert(1)>"));
    b.keep("timeline-hostile");
    assert_eq!((b.count("img"), b.count("script")), (0, 1));
    assert_eq!(b.problems, Vec::<String>::new());
    assert!(
        b.requests.iter().all(|url| url.starts_with("file:")),
        "{:?}",
        b.requests
    );
}

#[test]
fn nothing_to_draw() {
    let Some(mut b) = browser("nothing") else {
        return;
    };
    let mut none = Recording::new("nothing");
    none.wait(1000);
    let none = none.stop();
    let nowhere = Timeline {
        devices: vec![],
        ..none.clone()
    };
    for (name, timeline) in [("nothing", none), ("nowhere", nowhere)] {
        let path = page(name, &timeline, Lang::En);
        b.open(&path, WINDOW, false);
        assert_eq!(
            b.text("footer"),
            "Nothing was allocated while this was recorded."
        );
        focus(&mut b, "chart");
        b.press(&["ArrowUp", "ArrowRight", "p", "+", "[", "]", "a", "End"]);
        b.click_on("#axis label:last-child span");
        b.keep("timeline-nothing");
        assert_eq!(b.problems, Vec::<String>::new());
    }
}
