//! Products against sums written out. The numbers are small integers, so that sums are exact in every dtype and order, and
//! the one rounding at the end is that of the conversion.

use super::*;
use crate::micro::Factor;
use crate::simd::Level;
use half::{bf16, f16};
use num_complex::Complex;

/// Every level that this CPU has.
fn levels() -> impl Iterator<Item = Level> {
    let all = [
        Level::Baseline,
        Level::Avx2,
        Level::Avx512,
        Level::Avx512Bf16,
    ];
    all.into_iter().filter(|&l| l <= crate::simd::best())
}

/// Sizes of batch, rows, columns and depth, and for each operand (destination, left, right) strides in elements along these.
type Case = ([usize; 4], [[usize; 4]; 3]);

/// How a matrix of some rows and columns, and a batch of them, may lie: strides of batch, rows and columns.
fn layouts(rows: usize, cols: usize) -> [[usize; 3]; 5] {
    [
        [rows * cols, cols, 1],
        [rows * cols, 1, rows],
        // Steps in both, and matrices that lie in each other.
        [2 * rows * (cols + 3), 2 * (cols + 3), 2],
        [cols, cols * 7, 1],
        [rows, 1, rows * 7 + 1],
    ]
}

fn check<T: Factor>(level: Level, (sizes, strides): Case) {
    let [batch, rows, cols, depth] = sizes;
    let extent = |k: usize| {
        let reach: usize = (0..4).map(|d| (sizes[d] - 1) * strides[k][d]).sum();
        reach + 1
    };
    let number = |i: usize, k: usize| (i * [0, 5, 11][k] + i / 7 + k) as i64 % 9 - 4;
    let operand =
        |k: usize| -> Vec<T> { (0..extent(k)).map(|i| T::from_int(number(i, k))).collect() };
    let (mut lhs, mut rhs) = (operand(1), operand(2));
    let mut dst = vec![T::from_int(77); extent(0)];
    let mut wanted = dst.clone();
    for b in 0..batch {
        for i in 0..rows {
            for j in 0..cols {
                let at = |k: usize, p: usize| {
                    let index = [b, i, j, p];
                    (0..4).map(|d| index[d] * strides[k][d]).sum::<usize>()
                };
                let sum = (0..depth)
                    .map(|p| number(at(1, p), 1) * number(at(2, p), 2))
                    .sum();
                wanted[at(0, 0)] = T::from_int(sum);
            }
        }
    }
    let size = size_of::<T>() as isize;
    let axis = |d: usize| Axis {
        size: sizes[d],
        strides: [0, 1, 2].map(|k| strides[k][d] as isize * size),
    };
    let typed = Typed::new(T::DTYPE, level).expect("a dtype with products");
    let axes = [axis(0), axis(1), axis(2)];
    let work = Contraction::with(typed, T::DTYPE, &axes, &[axis(3)]).expect("the same");
    let mut scratch = vec![MaybeUninit::uninit(); work.scratch()];
    let ptrs = [dst.as_mut_ptr(), lhs.as_mut_ptr(), rhs.as_mut_ptr()].map(|p| p.cast::<u8>());
    // SAFETY: the buffers reach as far as their strides, and elements of the destination differ.
    unsafe { work.run(ptrs, &mut scratch) };
    let bytes = |v: &[T]| bytemuck::cast_slice::<T, u8>(v).to_vec();
    assert!(
        bytes(&dst) == bytes(&wanted),
        "{} {level:?} {sizes:?} {strides:?}",
        T::DTYPE
    );
}

/// All layouts of both operands, or of the destination, for a size.
fn check_layouts<T: Factor>(level: Level, sizes: [usize; 4]) {
    let [_, rows, cols, depth] = sizes;
    let case = |d: [usize; 3], l: [usize; 3], r: [usize; 3]| {
        let strides = [
            [d[0], d[1], d[2], 0],
            [l[0], l[1], 0, l[2]],
            [r[0], 0, r[2], r[1]],
        ];
        check::<T>(level, (sizes, strides));
    };
    let (dst, lhs, rhs) = (
        layouts(rows, cols),
        layouts(rows, depth),
        layouts(depth, cols),
    );
    for l in lhs {
        for r in rhs {
            case(dst[0], l, r);
        }
    }
    for d in [dst[1], dst[2]] {
        case(d, lhs[0], rhs[0]);
    }
    // Operands that are broadcast along a dim.
    case(dst[0], [0, depth, 1], rhs[0]);
    case(dst[0], lhs[0], [0, cols, 1]);
    case(dst[0], [rows, 1, 0], rhs[1]);
}

const SIZES: [[usize; 4]; 6] = [
    [1, 2, 3, 1],
    [3, 7, 5, 2],
    [1, 13, 33, 17],
    [2, 31, 50, 40],
    [9, 12, 16, 5],
    [1, 25, 70, 300],
];

#[test]
fn every_dtype_layout_and_level() {
    for level in levels() {
        for sizes in SIZES {
            check_layouts::<f32>(level, sizes);
            check_layouts::<f64>(level, sizes);
            check_layouts::<f16>(level, sizes);
            check_layouts::<bf16>(level, sizes);
        }
    }
    // Blocks of several depths are those of the last size; these types have no other code for them.
    for level in levels() {
        for sizes in &SIZES[..5] {
            check_layouts::<u8>(level, *sizes);
            check_layouts::<i32>(level, *sizes);
            check_layouts::<i64>(level, *sizes);
            check_layouts::<Complex<f32>>(level, *sizes);
            check_layouts::<Complex<f64>>(level, *sizes);
        }
    }
}

#[test]
fn every_height_and_width_of_a_tile() {
    for level in levels() {
        for n in 2..40 {
            let sizes = [1, n.min(26), n, 19];
            let [_, _, cols, depth] = sizes;
            let strides = [[0, cols, 1, 0], [0, depth, 0, 1], [0, 0, 1, cols]];
            check::<f32>(level, (sizes, strides));
            check::<f64>(level, (sizes, strides));
            check::<bf16>(level, (sizes, strides));
        }
    }
}

#[test]
fn blocks_that_threads_share() {
    for level in levels() {
        for sizes in [
            [1, 60, 130, 1100],
            [1, 30, 70, 2100],
            [2, 200, 97, 80],
            [1, 1100, 530, 3],
        ] {
            let [_, rows, cols, depth] = sizes;
            for lhs in [[rows * depth, depth, 0, 1], [rows * depth, 1, 0, rows]] {
                let rhs = [depth * cols, 0, 1, cols];
                let dst = [rows * cols, cols, 1, 0];
                check::<f32>(level, (sizes, [dst, lhs, rhs]));
                check::<bf16>(level, (sizes, [dst, lhs, rhs]));
            }
        }
    }
}

#[test]
fn operands_that_are_read_where_they_lie() {
    // Many lanes against few, lines a page apart, and more lanes than are read so.
    let sizes = [
        [1, 70, 16, 1024],
        [1, 16, 70, 1024],
        [2, 130, 40, 64],
        [1, 5, 200, 31],
        [1, 200, 5, 32],
    ];
    for level in levels() {
        for sizes in sizes {
            let [_, rows, cols, depth] = sizes;
            let dst = [rows * cols, cols, 1, 0];
            for lhs in [[rows * depth, depth, 0, 1], [rows * depth, 1, 0, rows]] {
                for rhs in [[depth * cols, 0, 1, cols], [depth * cols, 0, depth, 1]] {
                    check::<f32>(level, (sizes, [dst, lhs, rhs]));
                    check::<f64>(level, (sizes, [dst, lhs, rhs]));
                    check::<bf16>(level, (sizes, [dst, lhs, rhs]));
                }
            }
        }
    }
}

#[test]
fn a_row_against_long_columns_in_parts() {
    for level in levels() {
        for sizes in [[1, 1, 70, 1100], [1, 1, 1030, 513], [1, 1, 8300, 520]] {
            let cols = sizes[2];
            // Dense, with other columns between, and results that lie apart.
            for (apart, pitch) in [(1, cols), (1, cols + 7), (3, cols)] {
                let strides = [[0, 0, apart, 0], [0, 0, 0, 1], [0, 0, 1, pitch]];
                check::<f32>(level, (sizes, strides));
                if cols < 1000 {
                    check::<f64>(level, (sizes, strides));
                    check::<Complex<f64>>(level, (sizes, strides));
                    check::<bf16>(level, (sizes, strides));
                }
            }
        }
    }
}

/// A contraction of any dims, sizes with strides in elements, against the sums written out.
fn check_dims<T: Factor>(
    level: Level,
    axes: &[(usize, [usize; 3])],
    summed: &[(usize, [usize; 3])],
) {
    let all: Vec<_> = axes.iter().chain(summed).copied().collect();
    let extent = |k: usize| 1 + all.iter().map(|(n, s)| (n - 1) * s[k]).sum::<usize>();
    let number = |i: usize| (i * 5 + i / 3) as i64 % 5 - 2;
    let operand = |k: usize| -> Vec<T> { (0..extent(k)).map(|i| T::from_int(number(i))).collect() };
    let (mut lhs, mut rhs) = (operand(1), operand(2));
    let mut sums = vec![0; extent(0)];
    for i in 0..all.iter().map(|(n, _)| n).product() {
        let (mut rest, mut at) = (i, [0; 3]);
        for (n, strides) in &all {
            for k in 0..3 {
                at[k] += rest % n * strides[k];
            }
            rest /= n;
        }
        sums[at[0]] += number(at[1]) * number(at[2]);
    }
    let axis = |&(size, strides): &(usize, [usize; 3])| Axis {
        size,
        strides: strides.map(|s| (s * size_of::<T>()) as isize),
    };
    let list = |dims: &[(usize, [usize; 3])]| dims.iter().map(axis).collect::<Vec<_>>();
    let typed = Typed::new(T::DTYPE, level).expect("a dtype with products");
    let work = Contraction::with(typed, T::DTYPE, &list(axes), &list(summed)).expect("the same");
    let mut dst = vec![T::from_int(0); extent(0)];
    let mut scratch = vec![MaybeUninit::uninit(); work.scratch()];
    let ptrs = [dst.as_mut_ptr(), lhs.as_mut_ptr(), rhs.as_mut_ptr()].map(|p| p.cast::<u8>());
    // SAFETY: the buffers reach as far as their strides, and elements of the destination differ.
    unsafe { work.run(ptrs, &mut scratch) };
    let wanted: Vec<T> = sums.into_iter().map(T::from_int).collect();
    assert!(
        bytemuck::cast_slice::<T, u8>(&dst) == bytemuck::cast_slice::<T, u8>(&wanted),
        "{} {level:?} {axes:?} {summed:?}",
        T::DTYPE
    );
}

#[test]
fn a_row_against_windows() {
    // Kernels of 3 × 3 over planes of their own, and what their derivative is: 2 images, 3 channels, `w` results a line.
    for level in levels() {
        for w in [2, 5, 21, 45] {
            let (line, plane) = (w + 2, (w + 2) * 9);
            let kernel = [(3, [0, 3, line]), (3, [0, 1, 1])];
            let outer = [(2, [3 * 7 * w, 0, 3 * plane]), (3, [7 * w, 9, plane])];
            let results = [(7, [w, 0, line]), (w, [1, 0, 1])];
            let axes = [outer, results].concat();
            check_dims::<f32>(level, &axes, &kernel);
            check_dims::<bf16>(level, &axes, &kernel);
            let channel = (3, [9, 7 * w, plane]);
            let weight = [channel, (3, [3, 0, line]), (3, [1, 0, 1])];
            let images = [
                (2, [0, 3 * 7 * w, 3 * plane]),
                (7, [0, w, line]),
                (w, [0, 1, 1]),
            ];
            check_dims::<f32>(level, &weight, &images);
            check_dims::<f64>(level, &weight, &images);
            check_dims::<bf16>(level, &weight, &images);
        }
    }
}
