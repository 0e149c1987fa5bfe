//! What a view costs, in nanoseconds: the median of many batches.
//! `cargo bench -p osteon-tensor --bench views`.

use osteon_spec::{DType, Device, Scalar};
use osteon_tensor::View;
use std::hint::black_box;
use std::time::Instant;

/// The median time of one call, over batches that are long against the clock's resolution.
fn median<T>(name: &str, mut call: impl FnMut() -> T) {
    const BATCH: u32 = 1000;
    let mut times: Vec<f64> = (0..301)
        .map(|_| {
            let start = Instant::now();
            (0..BATCH).for_each(|_| drop(black_box(call())));
            start.elapsed().as_secs_f64() * 1e9 / f64::from(BATCH)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name:<44} {:8.1} ns", times[times.len() / 2]);
}

fn main() {
    let a = View::zeros(&[16, 16], DType::F32, &Device::cpu()).unwrap();
    let a = black_box(&a);
    median("slice", || a.slice(0, Some(2), Some(9), 1).unwrap());
    median("transpose", || a.transpose(0, 1).unwrap());
    median("select", || a.select(0, 3).unwrap());
    median("view of another shape", || a.view(&[4, 64]).unwrap());
    median("empty of 1 KiB", || {
        View::empty(&[256], DType::F32, &Device::cpu()).unwrap()
    });
    median("fill of 1 KiB", || a.fill_(Scalar::Int(1)).unwrap());
    median("read guard", || a.read::<f32>().unwrap());
}
