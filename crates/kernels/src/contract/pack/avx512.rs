//! Packing by whole vectors. Lanes that lie next to each other are copied, also where a vector of them is made of some lines
//! of an image, or of every other element; else vectors of steps are transposed in registers.

use super::{Pack, Slivers, apart};
use crate::micro::{Factor, in_runs, is_dense};
use crate::simd::Level;
use osteon_spec::DType;
use std::arch::x86_64::*;
use std::ops::Range;

/// Steps that are packed of one sliver after the other where lanes lie next to each other: rows of the matrix are read by
/// longer runs than a sliver is wide, on few pages at a time.
const STEPS: usize = 8;
/// Loads of a vector of lanes up to which those of steps are not worth their turn, and steps next to each other that are.
const FEW: usize = 4;
const TURN: usize = 4;

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
    /// Bytes of an element.
    const SIZE: isize;
    /// Steps that are packed as one.
    const FOLD: usize = 1;
    /// Lanes of a vector.
    const LANES: usize = 16;

    /// These elements, those of the mask replaced by what follows each other at the pointer: element `i` of a vector lies
    /// at place `i`, and only those of the mask are read.
    ///
    /// # Safety
    /// The CPU has AVX-512, and the elements of the mask may be read.
    unsafe fn merge(into: __m512i, mask: u32, ptr: *const u8) -> __m512i;

    /// The same where element `i` lies at place `2 i`.
    ///
    /// # Safety
    /// As for [`Source::merge`].
    unsafe fn merge_every_other(into: __m512i, mask: u32, ptr: *const u8) -> __m512i;

    /// Elements of steps that follow each other, as they are packed.
    ///
    /// # Safety
    /// The CPU has AVX-512.
    unsafe fn along(elements: __m512i) -> __m512i;

    /// Elements of lanes, of the one step or of two that are packed as one.
    ///
    /// # Safety
    /// As for [`Source::along`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn across([elements, _]: [__m512i; 2]) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { Self::along(elements) }
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

/// Every bit of sixteen doubled in distance.
#[inline]
#[target_feature(enable = "bmi2")]
fn spread(mask: u32) -> u32 {
    _pdep_u32(mask, 0x5555_5555)
}

impl Source for Words {
    const SIZE: isize = 4;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn merge(into: __m512i, mask: u32, ptr: *const u8) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { _mm512_mask_loadu_epi32(into, mask as __mmask16, ptr.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    unsafe fn merge_every_other(into: __m512i, mask: u32, ptr: *const u8) -> __m512i {
        let places = spread(mask);
        let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        // SAFETY: the caller's contract.
        unsafe {
            let low = _mm512_maskz_loadu_epi32(places as __mmask16, ptr.cast());
            let after = ptr.wrapping_add(64);
            let high = _mm512_maskz_loadu_epi32((places >> 16) as __mmask16, after.cast());
            let all = _mm512_permutex2var_epi32(low, even, high);
            _mm512_mask_mov_epi32(into, mask as __mmask16, all)
        }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn along(elements: __m512i) -> __m512i {
        elements
    }
}

impl Source for Doubles {
    const SIZE: isize = 8;
    const LANES: usize = 8;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn merge(into: __m512i, mask: u32, ptr: *const u8) -> __m512i {
        // SAFETY: the caller's contract.
        unsafe { _mm512_mask_loadu_epi64(into, mask as __mmask8, ptr.cast()) }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    unsafe fn merge_every_other(into: __m512i, mask: u32, ptr: *const u8) -> __m512i {
        let places = spread(mask);
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        // SAFETY: the caller's contract.
        unsafe {
            let low = _mm512_maskz_loadu_epi64(places as __mmask8, ptr.cast());
            let after = ptr.wrapping_add(64);
            let high = _mm512_maskz_loadu_epi64((places >> 8) as __mmask8, after.cast());
            let all = _mm512_permutex2var_epi64(low, even, high);
            _mm512_mask_mov_epi64(into, mask as __mmask8, all)
        }
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn along(elements: __m512i) -> __m512i {
        elements
    }
}

/// Elements of 2 bytes, 32 of them, or 16 where every other one is read.
macro_rules! shorts {
    () => {
        const SIZE: isize = 2;
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn merge(into: __m512i, mask: u32, ptr: *const u8) -> __m512i {
            // SAFETY: the caller's contract.
            unsafe { _mm512_mask_loadu_epi16(into, mask, ptr.cast()) }
        }
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
        unsafe fn merge_every_other(into: __m512i, mask: u32, ptr: *const u8) -> __m512i {
            // SAFETY: the caller's contract.
            let all = unsafe { _mm512_maskz_loadu_epi16(spread(mask), ptr.cast()) };
            let all = _mm512_castsi256_si512(_mm512_cvtepi32_epi16(all));
            _mm512_mask_mov_epi16(into, mask, all)
        }
    };
}

impl Source for Halves {
    shorts! {}
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn along(elements: __m512i) -> __m512i {
        _mm512_castps_si512(_mm512_cvtph_ps(_mm512_castsi512_si256(elements)))
    }
}

impl Source for Brains {
    shorts! {}
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn along(elements: __m512i) -> __m512i {
        _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(elements)))
    }
}

impl Source for Pairs {
    shorts! {}
    const FOLD: usize = 2;
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn along(elements: __m512i) -> __m512i {
        elements
    }
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn across(steps: [__m512i; 2]) -> __m512i {
        let [low, high] = steps.map(|step| _mm512_cvtepu16_epi32(_mm512_castsi512_si256(step)));
        _mm512_or_si512(low, _mm512_slli_epi32::<16>(high))
    }
}

/// The lowest `n` of sixteen lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n.min(16)) - 1) as __mmask16
}

/// The lowest `n` of 32 elements.
#[inline(always)]
fn lowest(n: usize) -> u32 {
    ((1u64 << n.min(32)) - 1) as u32
}

/// See [`Pack`].
///
/// # Safety
/// That contract, and the CPU has AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn pack<T: Factor, S: Source>(
    to: *mut u8,
    slivers: Slivers,
    ptr: *const u8,
    lanes: &[isize],
    steps: &[isize],
) {
    let packed = steps.len().div_ceil(S::FOLD);
    // SAFETY: for the whole body: the caller's contract.
    unsafe {
        if is_dense::<T>(lanes) {
            for start in (0..packed).step_by(STEPS) {
                let end = packed.min(start + STEPS);
                fetch(
                    ptr,
                    lanes,
                    &steps
                        [steps.len().min(end * S::FOLD)..steps.len().min((end + STEPS) * S::FOLD)],
                );
                each::<S>(to, slivers, lanes, steps, |part| {
                    part.copy::<S>(ptr, start..end);
                });
            }
            return;
        }
        // Vectors of steps cost a turn, those of lanes do not.
        let turned = in_runs::<T>(steps, TURN);
        each::<S>(to, slivers, lanes, steps, |part| {
            let pieces = Pieces::of::<S>(part.lanes);
            if pieces.len > FEW && turned {
                return match part.lanes.len() {
                    // All of a vector, and the height of a tile.
                    16 => part.transpose::<S, 16>(ptr),
                    12 => part.transpose::<S, 12>(ptr),
                    _ => part.transpose::<S, 0>(ptr),
                };
            }
            match pieces.len {
                1 => part.join::<S, 1>(ptr, &pieces),
                2 => part.join::<S, 2>(ptr, &pieces),
                3 => part.join::<S, 3>(ptr, &pieces),
                _ => part.join::<S, 0>(ptr, &pieces),
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

/// Positions that follow each other, or are two elements apart, within a vector.
#[derive(Clone, Copy)]
struct Piece {
    /// Which elements of the vector they are.
    mask: u32,
    /// Where the first element of the vector would be.
    at: isize,
    apart: isize,
}

/// The positions of a vector's elements, at most 32, as a few loads find them.
struct Pieces {
    len: usize,
    list: [Piece; 32],
}

impl Pieces {
    fn of<S: Source>(at: &[isize]) -> Pieces {
        let empty = Piece {
            mask: 0,
            at: 0,
            apart: S::SIZE,
        };
        let mut pieces = Pieces {
            len: 0,
            list: [empty; 32],
        };
        let mut start = 0;
        while start < at.len() {
            // Of those that are two apart a piece has 16 at most: they lie in two vectors.
            let two = start + 1 < at.len().min(16)
                && at[start + 1].wrapping_sub(at[start]) == 2 * S::SIZE;
            let (apart, end) = if two {
                (2 * S::SIZE, 16)
            } else {
                (S::SIZE, 32)
            };
            let end = end.min(at.len());
            let mut next = start + 1;
            while next < end && at[next].wrapping_sub(at[next - 1]) == apart {
                next += 1;
            }
            pieces.list[pieces.len] = Piece {
                mask: lowest(next) & !lowest(start),
                at: at[start].wrapping_sub(start as isize * apart),
                apart,
            };
            pieces.len += 1;
            start = next;
        }
        pieces
    }

    /// The elements, zeros for those that are missing; of `N` pieces exactly, unless that is 0.
    ///
    /// # Safety
    /// The CPU has AVX-512, and those elements may be read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    unsafe fn load<S: Source, const N: usize>(&self, ptr: *const u8) -> __m512i {
        let mut elements = _mm512_setzero_si512();
        let len = if N > 0 { N } else { self.len };
        for piece in self.list.iter().take(len) {
            let from = ptr.wrapping_offset(piece.at);
            // SAFETY: the caller's contract.
            unsafe {
                elements = if piece.apart == S::SIZE {
                    S::merge(elements, piece.mask, from)
                } else {
                    S::merge_every_other(elements, piece.mask, from)
                };
            }
        }
        elements
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
        let mask = lowest(self.lanes.len());
        for p in steps {
            let mut lanes = [_mm512_setzero_si512(); 2];
            // SAFETY: the caller's contract.
            unsafe {
                for (lanes, step) in lanes.iter_mut().zip(self.folded::<S>(p)) {
                    *lanes = S::merge(*lanes, mask, from.offset(*step));
                }
                self.put(p, packed, S::across(lanes));
            }
        }
    }

    /// Packs all steps of lanes that are so many pieces, or any number of them if that is 0.
    ///
    /// # Safety
    /// As for [`pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    unsafe fn join<S: Source, const N: usize>(&self, ptr: *const u8, pieces: &Pieces) {
        let packed = self.steps.len().div_ceil(S::FOLD);
        for p in 0..packed {
            let mut lanes = [_mm512_setzero_si512(); 2];
            // SAFETY: the caller's contract.
            unsafe {
                for (lanes, step) in lanes.iter_mut().zip(self.folded::<S>(p)) {
                    *lanes = pieces.load::<S, N>(ptr.offset(*step));
                }
                self.put(p, packed, S::across(lanes));
            }
        }
    }

    /// The steps that are packed as the `p`th.
    #[inline(always)]
    fn folded<S: Source>(&self, p: usize) -> &[isize] {
        let steps = &self.steps[p * S::FOLD..];
        &steps[..steps.len().min(S::FOLD)]
    }

    /// Packs vectors of steps: `N` lanes exactly, unless that is 0.
    ///
    /// # Safety
    /// As for [`pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
    unsafe fn transpose<S: Source, const N: usize>(&self, ptr: *const u8) {
        let count = if N > 0 { N } else { self.lanes.len() };
        let packed = self.steps.len().div_ceil(S::FOLD);
        for p in (0..packed).step_by(S::LANES) {
            let left = packed - p;
            let steps = &self.steps[p * S::FOLD..];
            let steps = &steps[..steps.len().min(S::LANES * S::FOLD)];
            let pieces = Pieces::of::<S>(steps);
            let mut rows = [_mm512_setzero_si512(); 16];
            // SAFETY: the caller's contract.
            unsafe {
                for (i, row) in rows.iter_mut().enumerate().take(S::LANES) {
                    if i < count {
                        let from = ptr.offset(*self.lanes.get_unchecked(i));
                        *row = S::along(match pieces.len {
                            1 => pieces.load::<S, 1>(from),
                            _ => pieces.load::<S, 0>(from),
                        });
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
