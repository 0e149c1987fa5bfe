//! The pages in a real browser: what the pointer and the keyboard do, light and dark, and no error in the console.
//!
//! Without Chromium (`CHROMIUM=path`, or one on the path) the tests say so and pass. `OSTEON_SHOTS=dir` keeps screenshots.

mod chromium;
mod recording;
mod timeline;

use chromium::Chromium;

/// A browser, where one is installed.
fn browser(name: &str) -> Option<Chromium> {
    let program = chromium::installed();
    if program.is_none() {
        println!("skipped: no Chromium is installed (apt-get install -y chromium)");
    }
    Some(Chromium::start(&program?, name))
}
