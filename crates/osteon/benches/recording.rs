//! What recording costs small operations, in nanoseconds: medians of many batches, with the flight recorder alone and with
//! a timeline that is being recorded.
//!
//! `cargo bench -p osteon --bench recording`; without the recorder:
//! `RUSTFLAGS="--cfg unrecorded" cargo bench -p osteon --bench recording`.

use osteon::{DType, Device, Tensor, memory};
use std::hint::black_box;
use std::time::Instant;

/// The median time of one call.
fn median(mut call: impl FnMut()) -> f64 {
    const BATCH: u32 = 500;
    let mut times: Vec<f64> = (0..201)
        .map(|_| {
            let start = Instant::now();
            (0..BATCH).for_each(|_| call());
            start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let cpu = Device::cpu();
    let x = Tensor::zeros([16], DType::F32, &cpu).unwrap();
    let y = Tensor::ones([16], DType::F32, &cpu).unwrap();
    let cases: [(&str, &dyn Fn()); 5] = [
        ("a view, made and dropped", &|| {
            drop(black_box(x.slice(0, 1..9).unwrap()));
        }),
        ("empty of 64 B, made and dropped", &|| {
            drop(black_box(Tensor::empty([16], DType::F32, &cpu).unwrap()));
        }),
        ("copy of 64 B", &|| drop(black_box(x.copy().unwrap()))),
        ("add of 16 floats", &|| drop(black_box(x.add(&y).unwrap()))),
        ("add_ of 16 floats", &|| x.add_(&y).unwrap()),
    ];
    println!("{:<34} {:>12} {:>12}", "", "no timeline", "timeline");
    for (name, call) in cases {
        let without = median(call);
        let recording = memory::record().unwrap();
        let with = median(call);
        // What was recorded is not read back.
        drop(recording);
        println!("{name:<34} {without:9.1} ns {with:9.1} ns");
    }
}
