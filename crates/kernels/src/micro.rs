//! The innermost loops of products: one tile of results from packed slivers of both operands.

use crate::convert::Convert;
use crate::element::Element;
use half::{bf16, f16};
use num_complex::Complex;

/// `run(tile, lhs, rhs, depth, first)`: the products of `depth` columns of `rows` elements with as many rows of `cols`
/// elements, written to the dense `rows × cols` tile where it is the `first` part of the sum, else added to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Micro {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) run: unsafe fn(*mut u8, *const u8, *const u8, usize, bool),
}

/// What products are summed in.
pub(crate) trait Sum: Factor<Sum = Self> {
    /// The tile loop for this CPU.
    fn micro() -> Micro;
    /// Zero.
    const ZERO: Self;
    /// `self + a · b`.
    fn plus_product(self, a: Self, b: Self) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

/// An element and what its products are summed in: `float32` for half precision, `complex128` for complex numbers (their
/// parts may cancel), and integers of 32 or 64 bits without
/// regard to sign, since products that wrap have the same low bits whatever the width and sign.
pub(crate) trait Factor: Convert {
    type Sum: Sum;
}

macro_rules! factors {
    ($($ty:ty => $sum:ty;)*) => {$(
        impl Factor for $ty {
            type Sum = $sum;
        }
    )*};
}

factors! {
    u8 => u32; i8 => u32; u16 => u32; i16 => u32; u32 => u32; i32 => u32; u64 => u64; i64 => u64;
    f16 => f32; bf16 => f32; f32 => f32; f64 => f64;
    Complex<f32> => Complex<f64>; Complex<f64> => Complex<f64>;
}

macro_rules! sums {
    ($($ty:ty: $zero:expr, |$s:ident, $a:ident, $b:ident| $product:expr, $plus:expr, $micro:expr;)*) => {$(
        impl Sum for $ty {
            const ZERO: $ty = $zero;
            #[inline(always)]
            fn plus_product(self, $a: $ty, $b: $ty) -> $ty {
                let $s = self;
                $product
            }
            #[inline(always)]
            fn plus(self, $b: $ty) -> $ty {
                let $s = self;
                $plus
            }
            fn micro() -> Micro {
                $micro
            }
        }
    )*};
}

sums! {
    u32: 0, |s, a, b| s.wrapping_add(a.wrapping_mul(b)), s.wrapping_add(b), plain::<u32>();
    u64: 0, |s, a, b| s.wrapping_add(a.wrapping_mul(b)), s.wrapping_add(b), plain::<u64>();
    f32: 0.0, |s, a, b| s + a * b, s + b, fused::single();
    f64: 0.0, |s, a, b| s + a * b, s + b, fused::double();
    Complex<f64>: Complex::new(0.0, 0.0), |s, a, b| s + a * b, s + b, plain::<Complex<f64>>();
}

const ROWS: usize = 4;
const COLS: usize = 8;

fn plain<S: Sum>() -> Micro {
    Micro {
        rows: ROWS,
        cols: COLS,
        run: portable::<S>,
    }
}

/// # Safety
/// The slivers hold `depth` times `ROWS` and `COLS` sums, the tile has room for `ROWS × COLS`, and holds them unless
/// this is the first part; all are aligned.
unsafe fn portable<S: Sum>(
    tile: *mut u8,
    lhs: *const u8,
    rhs: *const u8,
    depth: usize,
    first: bool,
) {
    let mut sums = [[S::ZERO; COLS]; ROWS];
    let (lhs, rhs) = (lhs.cast::<[S; ROWS]>(), rhs.cast::<[S; COLS]>());
    let tile = tile.cast::<[[S; COLS]; ROWS]>();
    // SAFETY: the caller's contract.
    unsafe {
        for p in 0..depth {
            let (a, b) = (lhs.add(p).read(), rhs.add(p).read());
            for (row, a) in sums.iter_mut().zip(a) {
                for (sum, b) in row.iter_mut().zip(b) {
                    *sum = sum.plus_product(a, b);
                }
            }
        }
        if !first {
            let before = tile.read();
            for (row, before) in sums.iter_mut().zip(before) {
                for (sum, before) in row.iter_mut().zip(before) {
                    *sum = before.plus(*sum);
                }
            }
        }
        tile.write(sums);
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod fused {
    use super::{Micro, plain};

    pub(super) fn single() -> Micro {
        plain::<f32>()
    }

    pub(super) fn double() -> Micro {
        plain::<f64>()
    }
}

/// Tiles in vector registers: as many sums as they hold, so that loads never limit the multiplications.
#[cfg(target_arch = "x86_64")]
mod fused {
    use super::{Micro, plain};
    use crate::simd::{Level, level};
    use std::arch::x86_64::*;

    macro_rules! fused {
        ($name:ident, $features:literal, $ty:ty, $lanes:literal, $rows:literal,
         $zero:ident $splat:ident $load:ident $store:ident $fma:ident $add:ident) => {
            /// # Safety
            /// The CPU has the features; as for `portable`, without regard to alignment.
            #[target_feature(enable = $features)]
            unsafe fn $name(
                tile: *mut u8,
                lhs: *const u8,
                rhs: *const u8,
                depth: usize,
                first: bool,
            ) {
                let (mut lhs, mut rhs) = (lhs.cast::<$ty>(), rhs.cast::<$ty>());
                let mut sums = [[$zero(); 2]; $rows];
                // SAFETY: the caller's contract.
                unsafe {
                    for _ in 0..depth {
                        let b = [$load(rhs), $load(rhs.add($lanes))];
                        for (i, row) in sums.iter_mut().enumerate() {
                            let a = $splat(*lhs.add(i));
                            row[0] = $fma(a, b[0], row[0]);
                            row[1] = $fma(a, b[1], row[1]);
                        }
                        lhs = lhs.add($rows);
                        rhs = rhs.add(2 * $lanes);
                    }
                    for (i, row) in sums.iter().enumerate() {
                        for (j, &sum) in row.iter().enumerate() {
                            let at = tile.cast::<$ty>().add((2 * i + j) * $lanes);
                            $store(at, if first { sum } else { $add($load(at), sum) });
                        }
                    }
                }
            }
        };
    }

    fused! { single_512, "avx512f", f32, 16, 12,
    _mm512_setzero_ps _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_fmadd_ps _mm512_add_ps }
    fused! { double_512, "avx512f", f64, 8, 12,
    _mm512_setzero_pd _mm512_set1_pd _mm512_loadu_pd _mm512_storeu_pd _mm512_fmadd_pd _mm512_add_pd }
    fused! { single_256, "avx2,fma", f32, 8, 6,
    _mm256_setzero_ps _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_fmadd_ps _mm256_add_ps }
    fused! { double_256, "avx2,fma", f64, 4, 6,
    _mm256_setzero_pd _mm256_set1_pd _mm256_loadu_pd _mm256_storeu_pd _mm256_fmadd_pd _mm256_add_pd }

    // The contract of a `Micro` speaks of its pointers alone: a variant is chosen only where the CPU has its features.
    pub(super) fn single() -> Micro {
        match level() {
            Level::Avx512 | Level::Avx512Bf16 => Micro {
                rows: 12,
                cols: 32,
                run: single_512,
            },
            Level::Avx2 => Micro {
                rows: 6,
                cols: 16,
                run: single_256,
            },
            Level::Baseline => plain::<f32>(),
        }
    }

    pub(super) fn double() -> Micro {
        match level() {
            Level::Avx512 | Level::Avx512Bf16 => Micro {
                rows: 12,
                cols: 16,
                run: double_512,
            },
            Level::Avx2 => Micro {
                rows: 6,
                cols: 8,
                run: double_256,
            },
            Level::Baseline => plain::<f64>(),
        }
    }
}

/// Packs `depth.len()` steps of at most `width` lanes as a sliver: `width` sums for each step, zeros beyond the lanes.
/// Element (lane, step) lies at `ptr + lanes[lane] + depth[step]`.
///
/// # Safety
/// All those elements may be read; `to` is aligned and has room.
pub(crate) unsafe fn pack<T: Factor>(
    to: *mut u8,
    width: usize,
    ptr: *const u8,
    lanes: &[isize],
    depth: &[isize],
) {
    let to = to.cast::<T::Sum>();
    // SAFETY: the caller's contract.
    let read = |at: isize| unsafe { ptr.offset(at).cast::<T>().read_unaligned().to::<T::Sum>() };
    if lanes.len() == width && is_dense::<T>(lanes) {
        for (p, &step) in depth.iter().enumerate() {
            for i in 0..width {
                // SAFETY: the caller's contract.
                unsafe {
                    to.add(p * width + i)
                        .write(read(lanes[0] + step + (i * size_of::<T>()) as isize))
                };
            }
        }
        return;
    }
    for i in 0..width {
        let Some(&lane) = lanes.get(i) else {
            for p in 0..depth.len() {
                // SAFETY: the caller's contract.
                unsafe { to.add(p * width + i).write(T::Sum::ZERO) };
            }
            continue;
        };
        for (p, &step) in depth.iter().enumerate() {
            // SAFETY: the caller's contract.
            unsafe { to.add(p * width + i).write(read(lane + step)) };
        }
    }
}

/// Writes a dense tile of sums, `stride` apart from row to row, to the elements at `ptr + rows[i] + cols[j]`.
///
/// # Safety
/// The tile holds all of them, and they may be written.
pub(crate) unsafe fn unpack<T: Factor>(
    tile: *const u8,
    stride: usize,
    ptr: *mut u8,
    rows: &[isize],
    cols: &[isize],
) {
    let tile = tile.cast::<T::Sum>();
    let dense = is_dense::<T>(cols);
    for (i, &row) in rows.iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe {
            let from = tile.add(i * stride);
            if dense {
                let to = ptr.offset(row + cols[0]).cast::<T>();
                for j in 0..cols.len() {
                    to.add(j).write_unaligned(from.add(j).read().to());
                }
            } else {
                for (j, &col) in cols.iter().enumerate() {
                    ptr.offset(row + col)
                        .cast::<T>()
                        .write_unaligned(from.add(j).read().to());
                }
            }
        }
    }
}

/// Whether positions follow each other like the elements of an array.
pub(crate) fn is_dense<T: Element>(positions: &[isize]) -> bool {
    positions
        .windows(2)
        .all(|w| w[1] - w[0] == size_of::<T>() as isize)
}
