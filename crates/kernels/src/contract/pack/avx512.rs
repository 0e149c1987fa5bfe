//! Packing by whole vectors: lanes that lie next to each other are copied, steps that do are transposed in registers, and
//! where neither do, elements are gathered along the nearer of both.

use super::{Pack, Slivers, apart};
use crate::micro::{Factor, is_dense};
use crate::simd::Level;
use osteon_spec::DType;
use std::arch::x86_64::*;
use std::ops::Range;

/// Steps that are packed of one sliver after the other where lanes lie next to each other: rows of the matrix are read by
/// longer runs than a sliver is wide, on few pages at a time.
const STEPS: usize = 8;

/// How elements of a type are packed, if there is more to it than the compiler finds.
pub(super) fn of<T: Factor>(level: Level) -> Option<Pack> {
    if level < Level::Avx512 {
        return None;
    }
    match (size_of::<T>(), size_of::<T::Sum>()) {
        (4, 4) => Some(pack::<T, Words>),
        (8, 8) => Some(pack::<T, Doubles>),
        _ if T::DTYPE == DType::F16 => Some(pack::<T, Halves>),
        _ if T::DTYPE == DType::BF16 => Some(pack::<T, Brains>),
        _ => None,
    }
}

/// `bfloat16` in pairs of steps, each of which is a word; an odd last step is paired with zeros.
pub(super) fn pairs() -> Pack {
    pack::<half::bf16, Pairs>
}

/// How elements become vectors of what is packed.
trait Source {
    /// Steps that are packed as one.
    const FOLD: usize = 1;
    /// Lanes of a vector.
    const LANES: usize = 16;

    /// So many elements that follow each other (at most [`Source::LANES`] times [`Source::FOLD`]), as steps are packed;
    /// zeros for those that are missing.
    ///
    /// # Safety
    /// The CPU has AVX-512, and those elements may be read.
    unsafe fn load(ptr: *const u8, count: usize) -> __m512i;

    /// The same of elements at these positions.
    ///
    /// # Safety
    /// As for [`Source::load`].
    unsafe fn gather(ptr: *const u8, at: &[isize]) -> __m512i;

    /// So many lanes that follow each other, at the first [`Source::FOLD`] of these steps.
    ///
    /// # Safety
    /// As for [`Source::load`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn lanes(ptr: *const u8, steps: &[isize], count: usize) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { Self::load(ptr.offset(steps[0]), count) }
    }

    /// The same of lanes at these positions.
    ///
    /// # Safety
    /// As for [`Source::load`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather_lanes(ptr: *const u8, steps: &[isize], lanes: &[isize]) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { Self::gather(ptr.offset(steps[0]), lanes) }
    }
}

/// Elements of 4 bytes, and of 8.
struct Words;
struct Doubles;
/// `float16` and `bfloat16`, as `float32`.
struct Halves;
struct Brains;
/// `bfloat16`, two steps in a word.
struct Pairs;

impl Source for Words {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(ptr: *const u8, count: usize) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { _mm512_maskz_loadu_epi32(first(count), ptr.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather(ptr: *const u8, at: &[isize]) -> __m512i {
        let mut words = [0u32; 16];
        for (word, at) in words.iter_mut().zip(at) {
            // SAFETY: the caller's contract.
            *word = unsafe { ptr.offset(*at).cast::<u32>().read_unaligned() };
        }
        // SAFETY: 64 bytes.
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }
}

impl Source for Doubles {
    const LANES: usize = 8;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(ptr: *const u8, count: usize) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { _mm512_maskz_loadu_epi64(first(count) as __mmask8, ptr.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather(ptr: *const u8, at: &[isize]) -> __m512i {
        let mut doubles = [0u64; 8];
        for (double, at) in doubles.iter_mut().zip(at) {
            // SAFETY: the caller's contract.
            *double = unsafe { ptr.offset(*at).cast::<u64>().read_unaligned() };
        }
        // SAFETY: 64 bytes.
        unsafe { _mm512_loadu_si512(doubles.as_ptr().cast()) }
    }
}

impl Source for Halves {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(ptr: *const u8, count: usize) -> __m512i {
        // SAFETY: the caller's contract.
        let halves = unsafe { _mm256_maskz_loadu_epi16(first(count), ptr.cast()) };
        _mm512_castps_si512(_mm512_cvtph_ps(halves))
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather(ptr: *const u8, at: &[isize]) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { Self::load(shorts(ptr, at).as_ptr().cast(), 16) }
    }
}

impl Source for Brains {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(ptr: *const u8, count: usize) -> __m512i {
        // SAFETY: the caller's contract.
        let brains = unsafe { _mm256_maskz_loadu_epi16(first(count), ptr.cast()) };
        _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(brains))
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather(ptr: *const u8, at: &[isize]) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { Self::load(shorts(ptr, at).as_ptr().cast(), 16) }
    }
}

impl Source for Pairs {
    const FOLD: usize = 2;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(ptr: *const u8, count: usize) -> __m512i {
        let mask = ((1u64 << count.min(32)) - 1) as __mmask32;
        // SAFETY: the caller's contract.
        unsafe { _mm512_maskz_loadu_epi16(mask, ptr.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather(ptr: *const u8, at: &[isize]) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { Self::load(shorts(ptr, at).as_ptr().cast(), 32) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn lanes(ptr: *const u8, steps: &[isize], count: usize) -> __m512i {
        let mut pair = [_mm512_setzero_si512(); 2];
        for (half, step) in pair.iter_mut().zip(steps) {
            // SAFETY: the caller's contract.
            let lanes = unsafe { _mm256_maskz_loadu_epi16(first(count), ptr.offset(*step).cast()) };
            *half = _mm512_cvtepu16_epi32(lanes);
        }
        _mm512_or_si512(pair[0], _mm512_slli_epi32::<16>(pair[1]))
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather_lanes(ptr: *const u8, steps: &[isize], lanes: &[isize]) -> __m512i {
        let mut pair = [[0; 32]; 2];
        for (half, step) in pair.iter_mut().zip(steps) {
            // SAFETY: the caller's contract.
            *half = unsafe { shorts(ptr.offset(*step), lanes) };
        }
        // SAFETY: as above, of the arrays.
        unsafe {
            let [low, high] =
                pair.map(|half| _mm512_cvtepu16_epi32(_mm256_loadu_si256(half.as_ptr().cast())));
            _mm512_or_si512(low, _mm512_slli_epi32::<16>(high))
        }
    }
}

/// Elements of 2 bytes at these positions, at most 32.
///
/// # Safety
/// They may be read.
#[inline(always)]
unsafe fn shorts(ptr: *const u8, at: &[isize]) -> [u16; 32] {
    let mut shorts = [0; 32];
    for (short, at) in shorts.iter_mut().zip(at) {
        // SAFETY: the caller's contract.
        *short = unsafe { ptr.offset(*at).cast::<u16>().read_unaligned() };
    }
    shorts
}

/// The lowest `n` of sixteen lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n.min(16)) - 1) as __mmask16
}

/// See [`Pack`].
///
/// # Safety
/// That contract, and the CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn pack<T: Factor, S: Source>(
    to: *mut u8,
    slivers: Slivers,
    ptr: *const u8,
    lanes: &[isize],
    steps: &[isize],
) {
    let along = Along::of::<T>(lanes, steps);
    let packed = steps.len().div_ceil(S::FOLD);
    // SAFETY: for the whole body: the caller's contract.
    unsafe {
        if matches!(along, Along::Dense | Along::Lanes) {
            for start in (0..packed).step_by(STEPS) {
                let end = packed.min(start + STEPS);
                fetch(
                    ptr,
                    lanes,
                    &steps
                        [steps.len().min(end * S::FOLD)..steps.len().min((end + STEPS) * S::FOLD)],
                );
                each::<S>(to, slivers, lanes, steps, |part| match along {
                    Along::Dense => part.copy::<S>(ptr, start..end),
                    _ => part.gather::<S>(ptr, start..end),
                });
            }
            return;
        }
        each::<S>(to, slivers, lanes, steps, |part| {
            if is_dense::<T>(part.lanes) {
                return part.copy::<S>(ptr, 0..packed);
            }
            match (along, part.lanes.len()) {
                // All of a vector, and the height of a tile.
                (Along::Steps, 16) => part.transpose::<S, 16>(ptr, true),
                (Along::Steps, 12) => part.transpose::<S, 12>(ptr, true),
                (Along::Steps, _) => part.transpose::<S, 0>(ptr, true),
                _ => part.transpose::<S, 0>(ptr, false),
            }
        });
    }
}

/// Asks for the elements of some steps: runs of lanes that are far apart are not foreseen by the hardware.
#[inline(always)]
fn fetch(ptr: *const u8, lanes: &[isize], steps: &[isize]) {
    let every = (64 / apart(lanes).max(1)).clamp(1, 64);
    for step in steps {
        for lane in lanes.iter().step_by(every) {
            // SAFETY: a prefetch reads nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(ptr.wrapping_offset(lane + step).cast()) };
        }
    }
}

/// Calls `pack` with the lanes of all slivers, those of a vector at a time.
#[inline(always)]
fn each<S: Source>(
    to: *mut u8,
    slivers: Slivers,
    lanes: &[isize],
    steps: &[isize],
    mut pack: impl FnMut(Part),
) {
    let packed = steps.len().div_ceil(S::FOLD);
    // Words of a lane.
    let words = 16 / S::LANES;
    for (lanes, width, start) in slivers.of(lanes) {
        let to = to.cast::<u32>().wrapping_add(start * packed * words);
        // From the last vector of a step to the first, as each may spill over into the next step: see `Part::put`.
        for lane in (0..width).step_by(S::LANES).rev() {
            pack(Part {
                to: to.wrapping_add(lane * words),
                width: width * words,
                left: (width - lane) * words,
                lanes: &lanes[lane.min(lanes.len())..lanes.len().min(lane + S::LANES)],
                steps,
            });
        }
    }
}

/// How elements are found that are near each other.
#[derive(Clone, Copy)]
enum Along {
    /// Lanes follow each other.
    Dense,
    /// Steps follow each other.
    Steps,
    /// Lanes are nearer than steps.
    Lanes,
    /// They are not.
    Neither,
}

impl Along {
    fn of<T: Factor>(lanes: &[isize], steps: &[isize]) -> Along {
        if is_dense::<T>(lanes) {
            Along::Dense
        } else if steps.len() > 1 && is_dense::<T>(steps) {
            Along::Steps
        } else if apart(lanes) < apart(steps) {
            Along::Lanes
        } else {
            Along::Neither
        }
    }
}

/// Lanes of a sliver, as many as a vector holds, as words are packed.
#[derive(Clone, Copy)]
struct Part<'a> {
    /// The first of them.
    to: *mut u32,
    /// Words of a step of the sliver, and those from these lanes on.
    width: usize,
    left: usize,
    lanes: &'a [isize],
    steps: &'a [isize],
}

impl Part<'_> {
    /// Stores a step, each after the one before it: a whole vector, as what is beyond the sliver belongs to the next step,
    /// which is stored later, but at the end.
    ///
    /// # Safety
    /// The CPU has AVX-512, and the sliver has room for so many steps.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn put(&self, step: usize, steps: usize, lanes: __m512i) {
        // SAFETY: the caller's contract.
        unsafe {
            let at = self.to.add(step * self.width);
            if (steps - step - 1) * self.width + self.left >= 16 {
                _mm512_storeu_si512(at.cast(), lanes);
            } else {
                _mm512_mask_storeu_epi32(at.cast(), first(self.left), lanes);
            }
        }
    }

    /// Packs some steps of lanes that follow each other.
    ///
    /// # Safety
    /// As for [`pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn copy<S: Source>(&self, ptr: *const u8, steps: Range<usize>) {
        let packed = self.steps.len().div_ceil(S::FOLD);
        let from = ptr.wrapping_offset(self.lanes.first().copied().unwrap_or(0));
        for p in steps {
            // SAFETY: the caller's contract.
            unsafe {
                let lanes = S::lanes(from, &self.steps[p * S::FOLD..], self.lanes.len());
                self.put(p, packed, lanes);
            }
        }
    }

    /// Packs lanes that are nearer than steps.
    ///
    /// # Safety
    /// As for [`pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn gather<S: Source>(&self, ptr: *const u8, steps: Range<usize>) {
        let packed = self.steps.len().div_ceil(S::FOLD);
        for p in steps {
            // SAFETY: the caller's contract.
            unsafe {
                let lanes = S::gather_lanes(ptr, &self.steps[p * S::FOLD..], self.lanes);
                self.put(p, packed, lanes);
            }
        }
    }

    /// Packs vectors of steps: `N` lanes exactly, unless that is 0; steps follow each other, or are gathered.
    ///
    /// # Safety
    /// As for [`pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn transpose<S: Source, const N: usize>(&self, ptr: *const u8, dense: bool) {
        let count = if N > 0 { N } else { self.lanes.len() };
        let packed = self.steps.len().div_ceil(S::FOLD);
        for p in (0..packed).step_by(S::LANES) {
            let left = packed - p;
            let steps = &self.steps[p * S::FOLD..];
            let steps = &steps[..steps.len().min(S::LANES * S::FOLD)];
            let mut rows = [_mm512_setzero_si512(); 16];
            // SAFETY: the caller's contract.
            unsafe {
                for (i, row) in rows.iter_mut().enumerate().take(S::LANES) {
                    if i < count {
                        let from = ptr.offset(*self.lanes.get_unchecked(i));
                        *row = if dense {
                            S::load(from.offset(steps[0]), steps.len())
                        } else {
                            S::gather(from, steps)
                        };
                    }
                }
                let steps = if S::LANES == 16 {
                    transpose_words(rows)
                } else {
                    transpose_doubles(rows)
                };
                for (i, step) in steps.into_iter().enumerate().take(S::LANES) {
                    if i < left {
                        self.put(p + i, packed, step);
                    }
                }
            }
        }
    }
}

/// Sixteen by sixteen words: pairs, then fours, then quarters of the vectors change places.
///
/// # Safety
/// The CPU has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn transpose_words(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for i in (0..16).step_by(2) {
        pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    // fours[4 g + c]: column c of each quarter, of rows 4 g to 4 g + 3.
    let mut fours = rows;
    for g in (0..16).step_by(4) {
        for h in 0..2 {
            let (a, b) = (pairs[g + h], pairs[g + 2 + h]);
            fours[g + 2 * h] = _mm512_unpacklo_epi64(a, b);
            fours[g + 2 * h + 1] = _mm512_unpackhi_epi64(a, b);
        }
    }
    let mut out = rows;
    for c in 0..4 {
        let (a, b, d, e) = (fours[c], fours[4 + c], fours[8 + c], fours[12 + c]);
        let (low, high) = (
            _mm512_shuffle_i32x4::<0x44>(a, b),
            _mm512_shuffle_i32x4::<0x44>(d, e),
        );
        out[c] = _mm512_shuffle_i32x4::<0x88>(low, high);
        out[4 + c] = _mm512_shuffle_i32x4::<0xdd>(low, high);
        let (low, high) = (
            _mm512_shuffle_i32x4::<0xee>(a, b),
            _mm512_shuffle_i32x4::<0xee>(d, e),
        );
        out[8 + c] = _mm512_shuffle_i32x4::<0x88>(low, high);
        out[12 + c] = _mm512_shuffle_i32x4::<0xdd>(low, high);
    }
    out
}

/// Eight by eight: as [`transpose_words`].
///
/// # Safety
/// The CPU has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn transpose_doubles(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for i in (0..8).step_by(2) {
        pairs[i] = _mm512_unpacklo_epi64(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi64(rows[i], rows[i + 1]);
    }
    let mut out = rows;
    for c in 0..2 {
        let (a, b, d, e) = (pairs[c], pairs[2 + c], pairs[4 + c], pairs[6 + c]);
        let (low, high) = (
            _mm512_shuffle_i64x2::<0x44>(a, b),
            _mm512_shuffle_i64x2::<0x44>(d, e),
        );
        out[c] = _mm512_shuffle_i64x2::<0x88>(low, high);
        out[2 + c] = _mm512_shuffle_i64x2::<0xdd>(low, high);
        let (low, high) = (
            _mm512_shuffle_i64x2::<0xee>(a, b),
            _mm512_shuffle_i64x2::<0xee>(d, e),
        );
        out[4 + c] = _mm512_shuffle_i64x2::<0x88>(low, high);
        out[6 + c] = _mm512_shuffle_i64x2::<0xdd>(low, high);
    }
    out
}
