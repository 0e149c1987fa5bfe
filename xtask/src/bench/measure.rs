//! Times of repeated runs.

use std::process::Command;
use std::time::{Duration, Instant};

/// How long a case is measured.
const BUDGET: Duration = Duration::from_millis(120);
const MOST: usize = 400;

/// Nanoseconds a run: the median, and the tenths at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
}

/// Measures `run` as the peers' script does: warmed up, in samples of at least some 20 µs, until the budget is spent.
pub fn measure<E>(mut run: impl FnMut() -> Result<(), E>) -> Result<Times, E> {
    let start = Instant::now();
    run()?;
    let mut one = start.elapsed();
    if one < Duration::from_millis(2) {
        let start = Instant::now();
        for _ in 0..3 {
            run()?;
        }
        one = start.elapsed() / 3;
    }
    let inner = if one < Duration::from_micros(20) {
        (40_000 / one.as_nanos().max(1) + 1).min(20_000) as usize
    } else {
        1
    };
    for _ in 0..inner.min(1000) {
        run()?;
    }
    let (mut samples, begin) = (Vec::with_capacity(MOST), Instant::now());
    loop {
        let start = Instant::now();
        for _ in 0..inner {
            run()?;
        }
        samples.push(start.elapsed().as_nanos() as f64 / inner as f64);
        let (n, spent) = (samples.len(), begin.elapsed());
        if n >= MOST || (n >= 5 && spent >= BUDGET) || (n >= 3 && spent >= 3 * BUDGET) {
            break;
        }
    }
    samples.sort_by(f64::total_cmp);
    let at = |share: usize| samples[samples.len() * share / 10];
    Ok(Times {
        median: at(5),
        p10: at(1),
        p90: at(9),
    })
}

/// Runs something while another process keeps a core busy, as a neighbour on the machine would; none where it cannot be started.
pub fn beside_another<R>(run: impl FnOnce() -> R) -> Option<R> {
    let mut other = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .ok()?;
    let result = run();
    let _ = other.kill().and_then(|()| other.wait());
    Some(result)
}

/// A line of `/proc/self/status` in bytes.
pub fn status(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|l| l.starts_with(key))?;
    line.split_whitespace()
        .nth(1)?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

/// Lets the largest resident set begin anew at the present one.
pub fn reset_peak_rss() {
    // Where the system does not allow it, the figure is an upper bound.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}
