//! The timeline's page.

use crate::browser;
use crate::recording::{hostile, million, training};
use osteon_memory::picture::Lang;
use osteon_memory::timeline::Timeline;
use std::path::PathBuf;

fn page(name: &str, timeline: &Timeline, lang: Lang) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("timeline");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name).with_extension("html");
    timeline.write_html_in(lang, &path).unwrap();
    path
}

#[test]
fn look() {
    let Some(mut b) = browser("look") else { return };
    let train = page("train", &training(4), Lang::En);
    b.open(&train, (1600, 1200), false);
    b.keep("t-light");
    b.open(&train, (1600, 1200), true);
    b.keep("t-dark");
    let zh = page("train-zh", &training(4), Lang::Zh);
    b.open(&zh, (1440, 1000), false);
    b.keep("t-zh");
    println!("{:?}", b.problems);
    let t = std::time::Instant::now();
    let big = page("million", &million(), Lang::En);
    println!(
        "written in {:?}, {} bytes",
        t.elapsed(),
        std::fs::metadata(&big).unwrap().len()
    );
    println!("{:?}", b.open(&big, (1600, 1200), false));
    b.keep("t-million");
    let bad = page("hostile", &hostile(), Lang::En);
    b.open(&bad, (1600, 1200), false);
    b.keep("t-hostile");
    println!("{:?} {:?}", b.problems, b.requests);
}
