//! The pages in a real browser: what the pointer and the keyboard do, light and dark, and no error in the console.
//!
//! Without Chromium (`CHROMIUM=path`, or one on the path) the tests say so and pass. `OSTEON_SHOTS=dir` keeps screenshots.

mod chromium;
mod picture;
mod recording;
#[path = "../samples/mod.rs"]
mod samples;
mod timeline;

use chromium::Chromium;
use std::sync::{Mutex, PoisonError};

/// One browser at a time, so that what is timed has the machine to itself.
static ALONE: Mutex<()> = Mutex::new(());

/// A browser, where one is installed.
fn browser(name: &str) -> Option<Chromium> {
    let program = chromium::installed();
    if program.is_none() {
        println!("skipped: no Chromium is installed (apt-get install -y chromium)");
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Some(Chromium::start(&program?, name, alone))
}
