//! Tiles in vector registers: as many sums as they hold, so that loads never limit the multiplications. A tile of every
//! height and of one or two vectors is compiled, so that no edge of a matrix multiplies zeros but in its last vector.

use super::{Micro, Source, Store, Tile};
use crate::micro::Sum;
use crate::simd::Level;
use num_complex::Complex;
use std::any::TypeId;
use std::arch::x86_64::*;
use std::mem::transmute;

/// Rows whose addresses are one register and multiples of their distance that an instruction can add: a pointer for each of
/// twelve rows would not fit into the registers.
const NEAR: usize = 3;

macro_rules! fused {
    ($name:ident, $features:literal, $sum:ty, $lanes:literal, $zero:ident $splat:ident $load:ident $fma:ident,
     $get:ident $put:ident $stream:ident $add:ident, $mask:ident $part:ident $get_part:ident $put_part:ident) => {
        /// See [`Tile`].
        ///
        /// # Safety
        /// That contract, and the CPU has the features.
        #[target_feature(enable = $features)]
        unsafe fn $name<const ROWS: usize, const VECTORS: usize>(
            to: *mut u8,
            stride: isize,
            cols: usize,
            lhs: Source,
            rhs: Source,
            steps: usize,
            store: Store,
        ) {
            let mut sums = [[$zero(); VECTORS]; ROWS];
            let whole = cols == VECTORS * $lanes;
            let mask = $mask(cols - (VECTORS - 1) * $lanes);
            let mut near: [*const u8; 4] =
                std::array::from_fn(|i| lhs.ptr.wrapping_offset((i * NEAR) as isize * lhs.lane));
            let mut b_at = rhs.ptr;
            // SAFETY: the caller's contract.
            unsafe {
                if store != Store::Stream {
                    // They come while the products are summed.
                    for i in 0..ROWS {
                        for j in 0..VECTORS {
                            let at = to
                                .offset(i as isize * stride)
                                .cast::<$sum>()
                                .add(j * $lanes);
                            _mm_prefetch::<_MM_HINT_T0>(at.cast());
                        }
                    }
                }
                for _ in 0..steps {
                    let line = b_at.cast::<$sum>();
                    let mut b = [$part(line.add((VECTORS - 1) * $lanes).cast(), mask); VECTORS];
                    for j in 0..VECTORS - 1 {
                        b[j] = $load(line.add(j * $lanes).cast());
                    }
                    for (i, row) in sums.iter_mut().enumerate() {
                        let a = $splat(
                            near[i / NEAR]
                                .wrapping_offset((i % NEAR) as isize * lhs.lane)
                                .cast(),
                        );
                        for j in 0..VECTORS {
                            row[j] = $fma(row[j], a, b[j]);
                        }
                    }
                    for at in &mut near {
                        *at = at.wrapping_offset(lhs.step);
                    }
                    b_at = b_at.wrapping_offset(rhs.step);
                }
                for (i, row) in sums.iter().enumerate() {
                    for (j, &sum) in row.iter().enumerate() {
                        let at = to
                            .offset(i as isize * stride)
                            .cast::<$sum>()
                            .add(j * $lanes);
                        let part = j + 1 == VECTORS && !whole;
                        match store {
                            Store::Write if part => $put_part(at, mask, sum),
                            Store::Write => $put(at, sum),
                            Store::Stream => $stream(at, sum),
                            Store::Add if part => {
                                $put_part(at, mask, $add($get_part(at, mask), sum));
                            }
                            Store::Add => $put(at, $add($get(at), sum)),
                        }
                    }
                }
            }
        }
    };
}

/// One operand of a multiplication, and a step of a sum of them.
macro_rules! operands {
    ($features:literal, $packed:ty, $vector:ty, $mask:ty, $sum:ty, $splat:ident = $set:expr, $load:ident = $get:expr,
     $part:ident = $get_part:expr, $fma:ident = $product:expr) => {
        /// # Safety
        /// The CPU has the features; the pointer may be read.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $splat(at: *const $packed) -> $vector {
            // SAFETY: the caller's contract.
            unsafe { $set(at) }
        }
        /// # Safety
        /// The CPU has the features; a vector may be read at the pointer.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $load(at: *const $packed) -> $vector {
            // SAFETY: the caller's contract.
            unsafe { $get(at) }
        }
        /// # Safety
        /// The same, of the lanes of the mask.
        #[inline]
        #[target_feature(enable = $features)]
        unsafe fn $part(at: *const $packed, mask: $mask) -> $vector {
            // SAFETY: the caller's contract.
            unsafe { $get_part(at, mask) }
        }
        #[inline]
        #[target_feature(enable = $features)]
        fn $fma(sum: $sum, a: $vector, b: $vector) -> $sum {
            $product(sum, a, b)
        }
    };
}

operands! { "avx512f", f32, __m512, __mmask16, __m512,
splat_ps512 = |p: *const f32| _mm512_set1_ps(p.read_unaligned()), load_ps512 = |p| _mm512_loadu_ps(p),
part_ps512 = |p, m| _mm512_maskz_loadu_ps(m, p), fma_ps512 = |s, a, b| _mm512_fmadd_ps(a, b, s) }
operands! { "avx512f", f64, __m512d, __mmask8, __m512d,
splat_pd512 = |p: *const f64| _mm512_set1_pd(p.read_unaligned()), load_pd512 = |p| _mm512_loadu_pd(p),
part_pd512 = |p, m| _mm512_maskz_loadu_pd(m, p), fma_pd512 = |s, a, b| _mm512_fmadd_pd(a, b, s) }
operands! { "avx2,fma", f32, __m256, __m256i, __m256,
splat_ps256 = |p: *const f32| _mm256_set1_ps(p.read_unaligned()), load_ps256 = |p| _mm256_loadu_ps(p),
part_ps256 = |p, m| _mm256_maskload_ps(p, m), fma_ps256 = |s, a, b| _mm256_fmadd_ps(a, b, s) }
operands! { "avx2,fma", f64, __m256d, __m256i, __m256d,
splat_pd256 = |p: *const f64| _mm256_set1_pd(p.read_unaligned()), load_pd256 = |p| _mm256_loadu_pd(p),
part_pd256 = |p, m| _mm256_maskload_pd(p, m), fma_pd256 = |s, a, b| _mm256_fmadd_pd(a, b, s) }
operands! { "avx512f,avx512bf16", i32, __m512i, __mmask16, __m512,
splat_pairs = |p: *const i32| _mm512_set1_epi32(p.read_unaligned()), load_pairs = |p: *const i32| _mm512_loadu_si512(p.cast()),
part_pairs = |p, m| _mm512_maskz_loadu_epi32(m, p),
// SAFETY: both are 64 bytes.
fma_pairs = |s, a, b| unsafe { _mm512_dpbf16_ps(s, transmute::<__m512i, __m512bh>(a), transmute::<__m512i, __m512bh>(b)) } }

/// The lowest `n` lanes, as vectors of each kind have them.
#[inline(always)]
fn lanes_16(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}
#[inline(always)]
fn lanes_8(n: usize) -> __mmask8 {
    ((1u32 << n) - 1) as __mmask8
}
#[inline]
#[target_feature(enable = "avx2")]
fn words_8(n: usize) -> __m256i {
    _mm256_cmpgt_epi32(
        _mm256_set1_epi32(n as i32),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
    )
}
#[inline]
#[target_feature(enable = "avx2")]
fn words_4(n: usize) -> __m256i {
    _mm256_cmpgt_epi64(_mm256_set1_epi64x(n as i64), _mm256_setr_epi64x(0, 1, 2, 3))
}

fused! { single_512, "avx512f", f32, 16, _mm512_setzero_ps splat_ps512 load_ps512 fma_ps512,
_mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_add_ps, lanes_16 part_ps512 part_ps512 _mm512_mask_storeu_ps }
fused! { double_512, "avx512f", f64, 8, _mm512_setzero_pd splat_pd512 load_pd512 fma_pd512,
_mm512_loadu_pd _mm512_storeu_pd _mm512_stream_pd _mm512_add_pd, lanes_8 part_pd512 part_pd512 _mm512_mask_storeu_pd }
fused! { pairs_512, "avx512f,avx512bf16", f32, 16, _mm512_setzero_ps splat_pairs load_pairs fma_pairs,
_mm512_loadu_ps _mm512_storeu_ps _mm512_stream_ps _mm512_add_ps, lanes_16 part_pairs part_ps512 _mm512_mask_storeu_ps }
fused! { single_256, "avx2,fma", f32, 8, _mm256_setzero_ps splat_ps256 load_ps256 fma_ps256,
_mm256_loadu_ps _mm256_storeu_ps _mm256_stream_ps _mm256_add_ps, words_8 part_ps256 part_ps256 _mm256_maskstore_ps }
fused! { double_256, "avx2,fma", f64, 4, _mm256_setzero_pd splat_pd256 load_pd256 fma_pd256,
_mm256_loadu_pd _mm256_storeu_pd _mm256_stream_pd _mm256_add_pd, words_4 part_pd256 part_pd256 _mm256_maskstore_pd }

/// Complex numbers lie in slivers as twice as many rows and columns of reals, whose products are all that is needed: parts
/// meet when they are summed.
macro_rules! complex {
    ($name:ident, $features:literal, $reals:ident, $lanes:literal) => {
        /// See [`Tile`].
        ///
        /// # Safety
        /// That contract, and the CPU has the features.
        #[target_feature(enable = $features)]
        unsafe fn $name<const ROWS: usize, const VECTORS: usize>(
            to: *mut u8,
            stride: isize,
            _cols: usize,
            lhs: Source,
            rhs: Source,
            steps: usize,
            store: Store,
        ) {
            let mut reals = [[[0f64; $lanes]; VECTORS]; ROWS];
            let width = (VECTORS * $lanes * size_of::<f64>()) as isize;
            let lhs = Source {
                lane: size_of::<f64>() as isize,
                ..lhs
            };
            // SAFETY: the caller's contract, and room for the sums.
            unsafe {
                $reals::<ROWS, VECTORS>(
                    reals.as_mut_ptr().cast(),
                    width,
                    VECTORS * $lanes,
                    lhs,
                    rhs,
                    steps,
                    Store::Write,
                );
                for (i, rows) in reals.chunks_exact(2).enumerate() {
                    let to = to.offset(i as isize * stride).cast::<[f64; 2]>();
                    let (with_re, with_im) = (rows[0].as_flattened(), rows[1].as_flattened());
                    for (j, (a, b)) in with_re
                        .chunks_exact(2)
                        .zip(with_im.chunks_exact(2))
                        .enumerate()
                    {
                        let mut sum = [a[0] - b[1], a[1] + b[0]];
                        if store == Store::Add {
                            let before = to.add(j).read_unaligned();
                            sum = [before[0] + sum[0], before[1] + sum[1]];
                        }
                        to.add(j).write_unaligned(sum);
                    }
                }
            }
        }
    };
}

complex! { complex_512, "avx512f", double_512, 8 }
complex! { complex_256, "avx2,fma", double_256, 4 }

macro_rules! tiles {
    ($name:ident: $($rows:literal)*) => {
        &[&[$($name::<$rows, 1> as Tile),*], &[$($name::<$rows, 2> as Tile),*]]
    };
}

/// The tiles of these sums, if the level has some. A variant is chosen only where the CPU has its features.
pub(super) fn of<S: Sum>(level: Level) -> Option<Micro> {
    let is = |id: TypeId| TypeId::of::<S>() == id;
    let (single, double) = (is(TypeId::of::<f32>()), is(TypeId::of::<f64>()));
    let complex = is(TypeId::of::<Complex<f64>>());
    let (rows, lanes, step, tiles): (_, _, _, &'static [&'static [Tile]]) = match level {
        Level::Avx512 | Level::Avx512Bf16 if single => (
            12,
            16,
            4,
            const { tiles!(single_512: 1 2 3 4 5 6 7 8 9 10 11 12) },
        ),
        Level::Avx512 | Level::Avx512Bf16 if double => (
            12,
            8,
            8,
            const { tiles!(double_512: 1 2 3 4 5 6 7 8 9 10 11 12) },
        ),
        Level::Avx512 | Level::Avx512Bf16 if complex => {
            (6, 4, 16, const { tiles!(complex_512: 2 4 6 8 10 12) })
        }
        Level::Avx2 if complex => (3, 2, 16, const { tiles!(complex_256: 2 4 6) }),
        Level::Avx2 if single => (6, 8, 4, const { tiles!(single_256: 1 2 3 4 5 6) }),
        Level::Avx2 if double => (6, 4, 8, const { tiles!(double_256: 1 2 3 4 5 6) }),
        _ => return None,
    };
    Some(Micro {
        rows,
        cols: 2 * lanes,
        row_unit: 1,
        lanes,
        fold: 1,
        step,
        reaches: !complex,
        tiles,
    })
}

/// Only where the CPU has dot products of `bfloat16`.
pub(super) fn pairs() -> Micro {
    Micro {
        rows: 12,
        cols: 32,
        row_unit: 1,
        lanes: 16,
        fold: 2,
        step: 4,
        reaches: true,
        tiles: const { tiles!(pairs_512: 1 2 3 4 5 6 7 8 9 10 11 12) },
    }
}
