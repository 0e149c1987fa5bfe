//! What the machine can do at most, measured in the same run as what it is compared with.

use std::time::Instant;

use osteon::limits;
use osteon::{DType, Device, Result, Tensor};
use serde::{Deserialize, Serialize};

use super::Record;

/// Bytes a nanosecond, and floating-point operations a nanosecond.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    pub copy: f64,
    pub triad: f64,
    pub read: f64,
    pub flops: f64,
    /// The rounds of the comparison that it was measured with.
    pub rounds: usize,
}

impl Limits {
    /// As a line among the figures of a comparison.
    pub fn to_record(self, threads: usize) -> Record {
        Record {
            peer: "limits".into(),
            group: "limits".into(),
            threads,
            limits: Some(self),
            ..Record::default()
        }
    }
}

const FLOATS: usize = 1 << 24;
const ROUNDS: usize = 7;

/// Measures with this many threads, for a comparison of so many rounds, on memory of the engine's own.
pub fn measure(threads: usize, rounds: usize) -> Result<Limits> {
    let make = || Tensor::ones([FLOATS], DType::F32, &Device::cpu());
    let (dst, a, b) = (make()?, make()?, make()?);
    let (a, b) = (a.read::<f32>()?, b.read::<f32>()?);
    let mut dst = dst.write::<f32>()?;
    let (Some(a), Some(b), Some(dst)) = (a.as_slice(), b.as_slice(), dst.as_mut_slice()) else {
        return Ok(Limits::default());
    };
    let part = FLOATS.div_ceil(threads);
    let bytes = (4 * FLOATS) as f64;
    let copy = best(|| {
        std::thread::scope(|s| {
            for (d, a) in dst.chunks_mut(part).zip(a.chunks(part)) {
                s.spawn(|| limits::copy(d, a));
            }
        });
    });
    let triad = best(|| {
        std::thread::scope(|s| {
            for ((d, a), b) in dst.chunks_mut(part).zip(a.chunks(part)).zip(b.chunks(part)) {
                s.spawn(|| limits::triad(d, a, b));
            }
        });
    });
    let read = best(|| {
        std::thread::scope(|s| {
            for a in a.chunks(part) {
                s.spawn(|| std::hint::black_box(limits::read(a)));
            }
        });
    });
    let mut flops = 0;
    let fma = best(|| {
        std::thread::scope(|s| {
            let all: Vec<_> = (0..threads)
                .map(|_| s.spawn(|| limits::multiply_adds(1 << 20)))
                .collect();
            flops = all
                .into_iter()
                .filter_map(|t| t.join().ok())
                .map(|(n, _)| n)
                .sum();
        });
    });
    Ok(Limits {
        copy: 2.0 * bytes / copy,
        triad: 3.0 * bytes / triad,
        read: bytes / read,
        flops: flops as f64 / fma,
        rounds,
    })
}

/// The median of some runs, in nanoseconds.
fn best(mut run: impl FnMut()) -> f64 {
    run();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_nanos() as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[ROUNDS / 2]
}
