//! Reductions against plain counting: along rows and across them, in lengths around those at which loops change.

use osteon_kernels::{DType, ReduceOp, reduce};
use osteon_spec::Plan;
use std::mem::MaybeUninit;

/// Sizes around those of vectors, groups, blocks and parts.
const SIZES: [usize; 12] = [1, 3, 8, 15, 17, 127, 129, 255, 520, 1030, 2050, 4101];

/// Numbers between −1 and 1, far from each other.
fn numbers(n: usize) -> Vec<f32> {
    let mut state = 12345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// What `op` gives for each of `lines` lines of `len` elements, which lie dense or, with `across`, side by side.
fn reduced<T: Copy>(
    op: ReduceOp,
    (dtype, number): (DType, f64),
    x: &[T],
    (lines, len): (usize, usize),
    across: bool,
) -> (Vec<f64>, Vec<f64>) {
    let reducer = reduce(op, dtype, number).unwrap();
    let size = size_of::<T>() as isize;
    let [step, next] = match across {
        true => [lines as isize * size, size],
        false => [size, len as isize * size],
    };
    let kept = Plan::from_strides(&[lines], [0; 3], [&[next], &[8], &[8]]);
    let each = Plan::from_strides(&[len], [0], [&[step]]);
    let mut outs = [vec![0.0; lines], vec![0.0; lines]];
    let pointers = outs
        .each_mut()
        .map(|out| Some((out.as_mut_ptr().cast(), DType::F64)));
    let mut scratch = vec![MaybeUninit::uninit(); reducer.scratch(&kept, &each, dtype)];
    // SAFETY: the walks are those of the vectors.
    unsafe {
        let from = x.as_ptr().cast();
        reducer.run(&kept, &each, from, dtype, pointers, &mut scratch)
    };
    let [first, second] = outs;
    (first, second)
}

/// Line `i`, as it lies.
fn line<T: Copy>(x: &[T], (lines, len): (usize, usize), across: bool, i: usize) -> Vec<T> {
    let at = |j: usize| if across { j * lines + i } else { i * len + j };
    (0..len).map(|j| x[at(j)]).collect()
}

fn each(check: impl Fn((usize, usize), bool)) {
    for len in SIZES {
        for lines in [1, 5, 600, 1100] {
            if len * lines <= 1_200_000 {
                check((lines, len), false);
                check((lines, len), true);
            }
        }
    }
}

#[test]
fn sums_and_variances_are_those_of_float64() {
    each(|shape, across| {
        let x = numbers(shape.0 * shape.1);
        // Far from zero, where squares of distances are small beside the numbers.
        let x: Vec<f32> = x.iter().map(|x| 1000.0 + x).collect();
        let sums = reduced(ReduceOp::Sum, (DType::F32, 0.0), &x, shape, across).0;
        let norms = reduced(ReduceOp::Norm, (DType::F32, 2.0), &x, shape, across).0;
        let (vars, means) = reduced(ReduceOp::Var, (DType::F32, 0.0), &x, shape, across);
        for i in 0..shape.0 {
            let line: Vec<f64> = line(&x, shape, across, i)
                .iter()
                .map(|&x| x as f64)
                .collect();
            let n = line.len() as f64;
            let sum: f64 = line.iter().sum();
            let mean = sum / n;
            let var = line.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            let norm = line.iter().map(|x| x * x).sum::<f64>().sqrt();
            let near = |got: f64, want: f64, what: &str| {
                let error = (got - want).abs();
                let bound = 2e-7 * want.abs();
                assert!(
                    error <= bound,
                    "{what} {shape:?} {across}: {got}, not {want}"
                );
            };
            near(sums[i], sum, "sum");
            near(norms[i], norm, "norm");
            near(means[i], mean, "mean");
            assert!(
                (vars[i] - var).abs() <= 3e-7 * var + 1e-12,
                "var {shape:?} {across}: {}, not {var}",
                vars[i]
            );
        }
    });
}

#[test]
fn extremes_and_their_places() {
    each(|shape, across| {
        // Few different numbers, so that many are equal, and a NaN in some lines.
        let mut x: Vec<f32> = numbers(shape.0 * shape.1)
            .iter()
            .map(|x| (x * 9.0).round())
            .collect();
        for i in (0..x.len()).step_by(3001).skip(1) {
            x[i] = f32::NAN;
        }
        let ops = [
            ReduceOp::Amax,
            ReduceOp::Amin,
            ReduceOp::Max,
            ReduceOp::Min,
            ReduceOp::LastMax,
            ReduceOp::LastMin,
        ];
        for op in ops {
            let (values, places) = reduced(op, (DType::F32, 0.0), &x, shape, across);
            let has_place = !matches!(op, ReduceOp::Amax | ReduceOp::Amin);
            let is_max = matches!(op, ReduceOp::Amax | ReduceOp::Max | ReduceOp::LastMax);
            let is_last = matches!(op, ReduceOp::LastMax | ReduceOp::LastMin);
            for i in 0..shape.0 {
                let line = line(&x, shape, across, i);
                let mut best = 0;
                for (j, &x) in line.iter().enumerate() {
                    let old = line[best];
                    let beyond = if is_max { x > old } else { x < old };
                    let newer = beyond || x.is_nan() && !old.is_nan();
                    if newer || is_last && (x == old || x.is_nan()) {
                        best = j;
                    }
                }
                let want = line[best] as f64;
                let same = values[i] == want || values[i].is_nan() && want.is_nan();
                assert!(same, "{op:?} {shape:?} {across}: {}, not {want}", values[i]);
                if has_place {
                    assert_eq!(places[i], best as f64, "{op:?} {shape:?} {across}");
                }
            }
        }
    });
}

#[test]
fn exponentials_add_up() {
    each(|shape, across| {
        let x: Vec<f32> = numbers(shape.0 * shape.1)
            .iter()
            .map(|x| x * 20.0)
            .collect();
        let (maxima, logs) = reduced(ReduceOp::LogSoftmax, (DType::F32, 0.0), &x, shape, across);
        for i in 0..shape.0 {
            let line = line(&x, shape, across, i);
            let max = line.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f64 = line.iter().map(|&x| (x as f64 - max as f64).exp()).sum();
            assert_eq!(maxima[i], max as f64);
            assert!(
                (logs[i] - sum.ln()).abs() <= 1e-5,
                "{shape:?} {across}: {}, not {}",
                logs[i],
                sum.ln()
            );
        }
    });
}

#[test]
fn what_few_terms_cannot_hold_all_together_can() {
    let n = 1024;
    for across in [false, true] {
        let of = |op, number, x: &[f32]| {
            let (value, mean) = reduced(op, (DType::F32, number), x, (1, x.len()), across);
            (value[0], mean[0])
        };
        // Neighbours, and what is some lanes apart, overflow together.
        let x: Vec<f32> = (0..n)
            .map(|i| if i % 256 < 128 { 3e38 } else { -3e38 })
            .collect();
        assert_eq!(of(ReduceOp::Sum, 0.0, &x).0, 0.0);
        let (large, small) = (vec![1e25f32; n], vec![1e-25f32; n]);
        for (x, norm) in [(&large, 1e25f32), (&small, 1e-25)] {
            let got = of(ReduceOp::Norm, 2.0, x).0;
            let want = norm as f64 * (n as f64).sqrt();
            assert!((got / want - 1.0).abs() < 1e-6, "{got}, not {want}");
        }
        // Infinite elements have an infinite mean and no variance.
        let mut x = numbers(n);
        x[700] = f32::INFINITY;
        let (var, mean) = of(ReduceOp::Var, 0.0, &x);
        assert!(var.is_nan() && mean == f64::INFINITY, "{var} {mean}");
        x[0] = f32::INFINITY;
        let (var, mean) = of(ReduceOp::Var, 0.0, &x);
        assert!(var.is_nan() && mean == f64::INFINITY, "{var} {mean}");
        x[5] = f32::NAN;
        let (var, mean) = of(ReduceOp::Var, 0.0, &x);
        assert!(var.is_nan() && mean.is_nan(), "{var} {mean}");
    }
}
