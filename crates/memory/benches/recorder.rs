//! What events cost, in nanoseconds, on one thread, on two that record side by side, and while a timeline is recorded: the
//! median of many batches.
//!
//! `cargo bench -p osteon-memory --bench recorder`; without the flight recorder:
//! `RUSTFLAGS="--cfg unrecorded" cargo bench -p osteon-memory --bench recorder`.

use osteon_memory::copies::{self, CopyReason};
use osteon_memory::{Role, Storage, Viewer, record};
use osteon_spec::{DType, Device, Layout};
use std::panic::Location;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

const BATCH: usize = 2_000;

/// The median time of one call, on each of `threads` threads.
fn medians(threads: usize, call: &(dyn Fn(usize) + Sync)) -> Vec<f64> {
    let start = Barrier::new(threads);
    let run = |t: usize| {
        start.wait();
        let mut times: Vec<f64> = (0..301)
            .map(|_| {
                let start = Instant::now();
                (0..BATCH).for_each(|_| call(t));
                start.elapsed().as_secs_f64() * 1e9 / BATCH as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    thread::scope(|s| {
        let run = &run;
        let all: Vec<_> = (0..threads).map(|t| s.spawn(move || run(t))).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn main() {
    let (cpu, site) = (Device::cpu(), Location::caller());
    let make = || Storage::allocate(64, &cpu, "bench", site).unwrap();
    let storages = [make(), make()];
    let layout = Layout::contiguous(&[16]).unwrap();
    let view = |t: usize| {
        let (of, layout) = (storages[t].clone(), layout.clone());
        drop(Viewer::register(of, layout, DType::F32, "bench", site, Role::View).unwrap());
    };
    let copy = |t: usize| {
        let side = (&storages[t], DType::F32, &layout);
        copies::record(
            copies::begin(64),
            CopyReason::Cast,
            "bench",
            site,
            side,
            side,
        );
    };
    let cases: [(&str, &(dyn Fn(usize) + Sync)); 4] = [
        ("a view, made and dropped", &view),
        ("a storage of 64 B, made and dropped", &|_| drop(make())),
        ("a write in place", &|t| {
            storages[t].record_write("bench_", site)
        }),
        ("a copy of 64 B, without the copying", &copy),
    ];
    println!(
        "{:<38}{:>12}{:>12}{:>12}",
        "", "1 thread", "2 threads", "timeline"
    );
    for (name, call) in cases {
        let (one, two) = (worst(medians(1, call)), worst(medians(2, call)));
        let recording = record().unwrap();
        let recorded = worst(medians(1, call));
        // What was recorded is not read back.
        drop(recording);
        println!("{name:<38}{one:>9.1} ns{two:>9.1} ns{recorded:>9.1} ns");
    }
}

fn worst(times: Vec<f64>) -> f64 {
    times.into_iter().fold(0.0, f64::max)
}
