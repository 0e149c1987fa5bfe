//! Windows against loops written out. The numbers are small integers, so that sums are exact in every order.

use super::*;
use std::mem::MaybeUninit;

/// Batch, channels, rows and columns of the input, then kernel, stride, border and dilation along both dims.
type Case = ([usize; 4], usize, usize, usize, usize);

/// An element of a window: its place among the weights and in the image, and its number.
type Element = (usize, usize, i64);

fn spans(size: usize, kernel: usize, stride: usize, border: usize, dilation: usize) -> Vec<Span> {
    let reach = dilation * (kernel - 1) + 1;
    let results = (size + 2 * border - reach) / stride + 1;
    let one = |i: usize| {
        let inside = |k: &usize| {
            let at = i * stride + k * dilation;
            at >= border && at - border < size
        };
        let first = (0..kernel).find(inside).unwrap_or(kernel);
        Span {
            start: (i * stride + first * dilation).saturating_sub(border),
            count: (0..kernel).filter(inside).count(),
            skipped: first,
            full: kernel,
        }
    };
    (0..results).map(one).collect()
}

/// Strides in elements of an image batch: dense, channels last, and with gaps.
fn layouts([batch, channels, rows, cols]: [usize; 4]) -> [[usize; 4]; 3] {
    let _ = batch;
    [
        [channels * rows * cols, rows * cols, cols, 1],
        [rows * cols * channels, 1, cols * channels, channels],
        [
            channels * (rows + 1) * cols * 3,
            (rows + 1) * cols * 3,
            cols * 3,
            3,
        ],
    ]
}

fn extent(sizes: [usize; 4], strides: [usize; 4]) -> usize {
    1 + (0..4).map(|d| (sizes[d] - 1) * strides[d]).sum::<usize>()
}

fn offset(index: [usize; 4], strides: [usize; 4]) -> usize {
    (0..4).map(|d| index[d] * strides[d]).sum()
}

fn bytes<T>(strides: [usize; 4]) -> [isize; 4] {
    strides.map(|s| (s * size_of::<T>()) as isize)
}

/// What is made of a window: the elements with their places in it and in the image.
fn check<T: Pooled + crate::micro::Factor>((sizes, kernel, stride, border, dilation): Case) {
    let [batch, channels, rows, cols] = sizes;
    let lists = [rows, cols].map(|n| spans(n, kernel, stride, border, dilation));
    let results = [batch, channels, lists[0].len(), lists[1].len()];
    let number = |i: usize| (i * 7 + i / 5) as i64 % 9 - if T::DTYPE == DType::U8 { 0 } else { 4 };
    for (from, to) in layouts(sizes).into_iter().zip(layouts(results)) {
        let input: Vec<T> = (0..extent(sizes, from))
            .map(|i| T::from_int(number(i)))
            .collect();
        let weights: Vec<T> = (0..channels * kernel * kernel)
            .map(|i| T::from_int(number(i + 3) / 2))
            .collect();
        let places = extent(results, to);
        let mut out = vec![T::from_int(77); places];
        let mut positions = vec![-1i64; places];
        let pool = Pooling {
            batch,
            channels,
            spans: [&lists[0], &lists[1]],
            step: [dilation; 2],
            width: cols,
            strides: [bytes::<T>(to), bytes::<i64>(to), bytes::<T>(from)],
        };
        let [src, dst] = [
            input.as_ptr().cast_mut().cast::<u8>(),
            out.as_mut_ptr().cast(),
        ];
        let compare = |out: &[T], what: &str, wanted: &dyn Fn(&[Element]) -> i64| {
            for i in 0..results.iter().product::<usize>() {
                let (mut rest, mut index) = (i, [0; 4]);
                for d in (0..4).rev() {
                    index[d] = rest % results[d];
                    rest /= results[d];
                }
                let [b, c, y, x] = index;
                let mut window = Vec::new();
                for k in 0..kernel * kernel {
                    let at = [
                        y * stride + k / kernel * dilation,
                        x * stride + k % kernel * dilation,
                    ];
                    let inside = |d: usize| at[d] >= border && at[d] - border < [rows, cols][d];
                    if inside(0) && inside(1) {
                        let [y, x] = at.map(|at| at - border);
                        let place = offset([b, c, y, x], from);
                        window.push((c * kernel * kernel + k, y * cols + x, number(place)));
                    }
                }
                let got = out[offset(index, to)].to::<f64>();
                assert_eq!(
                    got,
                    T::from_int(wanted(&window)).to::<f64>(),
                    "{what} of {} at {index:?}: {sizes:?}, {kernel} {stride} {border} {dilation}, {from:?}",
                    T::DTYPE
                );
            }
        };
        // SAFETY: buffers reach as far as their strides, and results differ.
        unsafe {
            weighted(
                T::DTYPE,
                [kernel; 2],
                [kernel * kernel, kernel, 1].map(|s| (s * size_of::<T>()) as isize),
            )
            .map(|work| {
                let mut scratch = vec![MaybeUninit::uninit(); work.scratch(channels)];
                work.run(
                    &pool,
                    [dst, weights.as_ptr().cast_mut().cast(), src],
                    &mut scratch,
                );
            })
        }
        .expect("a dtype with products");
        let weight = |tap: usize| number(tap + 3) / 2;
        compare(&out, "sum", &|window| {
            window.iter().map(|&(tap, _, n)| n * weight(tap)).sum()
        });
        if border * 2 > kernel {
            continue;
        }
        let max = max_pool(T::DTYPE).expect("a dtype with an order");
        let largest = |window: &[Element]| {
            window.iter().fold(
                (i64::MIN, 0),
                |best, &(_, at, n)| if n > best.0 { (n, at) } else { best },
            )
        };
        // SAFETY: as above.
        unsafe { max(&pool, [dst, std::ptr::null_mut(), src]) };
        compare(&out, "maximum", &|window| largest(window).0);
        out.fill(T::from_int(77));
        let dst = out.as_mut_ptr().cast();
        // SAFETY: as above.
        unsafe { max(&pool, [dst, positions.as_mut_ptr().cast(), src]) };
        compare(&out, "maximum", &|window| largest(window).0);
        for (out, at) in out.iter_mut().zip(&positions) {
            *out = T::from_int(at % 100);
        }
        compare(&out, "position", &|window| largest(window).1 as i64 % 100);
        if let Some(average) = avg_pool(T::DTYPE).filter(|_| T::DTYPE != DType::I64) {
            let dst = out.as_mut_ptr().cast();
            // SAFETY: as above.
            unsafe { average(&pool, [dst, std::ptr::null_mut(), src], Divisor::Fixed(1)) };
            compare(&out, "average", &|window| {
                window.iter().map(|&(_, _, n)| n).sum()
            });
        }
    }
}

#[test]
fn every_dtype_and_layout() {
    let cases: [Case; 8] = [
        ([2, 3, 5, 6], 2, 2, 0, 1),
        ([1, 2, 9, 41], 3, 1, 1, 1),
        ([2, 1, 11, 75], 3, 2, 1, 1),
        ([1, 70, 6, 5], 3, 1, 1, 1),
        ([1, 2, 13, 40], 3, 2, 2, 2),
        // Windows that are alike but for where in the border they begin.
        ([1, 2, 5, 4], 4, 1, 3, 2),
        ([1, 9, 12, 12], 12, 1, 0, 1),
        ([1, 2, 30, 50], 10, 10, 0, 1),
    ];
    for case in cases {
        check::<f32>(case);
        check::<f64>(case);
        check::<f16>(case);
        check::<i32>(case);
        check::<u8>(case);
        check::<i64>(case);
    }
    // Sums of many are beyond its whole numbers.
    for case in &cases[..6] {
        check::<bf16>(*case);
    }
}

#[test]
fn a_nan_is_the_largest() {
    let list = spans(9, 2, 1, 0, 1);
    let mut input = [1.0f32; 9];
    (input[4], input[7]) = (f32::NAN, f32::NEG_INFINITY);
    let (mut out, mut at) = ([0.0f32; 8], [0i64; 8]);
    let line = spans(1, 1, 1, 0, 1);
    let pool = Pooling {
        batch: 1,
        channels: 1,
        spans: [&line, &list],
        step: [1; 2],
        width: 9,
        strides: [[32, 32, 32, 4], [64, 64, 64, 8], [36, 36, 36, 4]],
    };
    let max = max_pool(DType::F32).expect("floats have an order");
    let ptrs = [
        out.as_mut_ptr().cast::<u8>(),
        at.as_mut_ptr().cast(),
        input.as_mut_ptr().cast(),
    ];
    // SAFETY: the arrays are as long as their strides say.
    unsafe { max(&pool, ptrs) };
    assert_eq!(at, [0, 1, 2, 4, 4, 5, 6, 8]);
    assert!(out[3].is_nan() && out[4].is_nan() && out[6] == 1.0);
}
