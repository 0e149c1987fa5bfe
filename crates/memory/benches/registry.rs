//! What making and dropping storages and registered views costs, in nanoseconds: the median of
//! many batches. `cargo bench -p osteon-memory --bench registry`.

use osteon_memory::{Role, Storage, Viewer, hold};
use osteon_spec::{DType, Device, Layout};
use std::hint::black_box;
use std::panic::Location;
use std::time::Instant;

/// The median time of one call, over batches that are long against the clock's resolution.
fn median(name: &str, mut call: impl FnMut()) {
    const BATCH: u32 = 1000;
    let mut times: Vec<f64> = (0..301)
        .map(|_| {
            let start = Instant::now();
            (0..BATCH).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<44} {:8.1} ns", times[times.len() / 2]);
}

fn main() {
    let (cpu, site) = (Device::cpu(), Location::caller());
    let make = |bytes| Storage::allocate(bytes, &cpu, "bench", site).unwrap();
    for (name, bytes) in [
        ("storage of 0 B", 0),
        ("storage of 64 B", 64),
        ("storage of 1 KiB", 1 << 10),
        ("storage of 64 MiB, reused", 64 << 20),
    ] {
        median(name, || drop(black_box(make(bytes))));
    }
    let storage = make(1 << 10);
    let layout = Layout::contiguous(&[16, 16]).unwrap();
    median("registered view", || {
        let layout = black_box(&layout).clone();
        drop(
            Viewer::register(
                storage.clone(),
                layout,
                DType::F32,
                "bench",
                site,
                Role::View,
            )
            .unwrap(),
        );
    });
    let viewer = Viewer::register(
        storage.clone(),
        layout,
        DType::F32,
        "bench",
        site,
        Role::View,
    )
    .unwrap();
    median("another handle to a view", || {
        drop(black_box(viewer.clone()))
    });
    let (a, b) = (make(64), make(64));
    median("hold of three storages", || {
        drop(black_box(hold(&[&a, &b], &[&storage]).unwrap()))
    });
}
