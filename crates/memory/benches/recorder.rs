//! What an event costs, in nanoseconds, on one thread and on two that record side by side: the median of many
//! batches. `cargo bench -p osteon-memory --bench recorder`.

use osteon_memory::Storage;
use osteon_spec::Device;
use std::panic::Location;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

const BATCH: usize = 10_000;

/// The median time of one call, on each of `threads` threads.
fn medians(threads: usize, call: impl Fn(usize) + Sync) -> Vec<f64> {
    let start = Barrier::new(threads);
    let run = |t: usize| {
        start.wait();
        let mut times: Vec<f64> = (0..501)
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
    let show = |name: &str, times: Vec<f64>| {
        let worst = times.iter().copied().fold(0.0, f64::max);
        println!("{name:<44} {worst:8.1} ns");
    };
    for threads in [1, 2] {
        show(
            &format!("write recorded, {threads} threads"),
            medians(threads, |t| storages[t].record_write("bench_", site)),
        );
        show(
            &format!("storage made and dropped, {threads} threads"),
            medians(threads, |_| drop(make())),
        );
    }
}
