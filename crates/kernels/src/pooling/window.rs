//! The elements of windows, read for several results at a time.

use super::{Place, Pooling};
use crate::convert::Convert;
use crate::element::Element;

/// Results of a block in registers: many, and as many as are worth a vector.
const MANY: usize = 32;
const SOME: usize = 8;

/// How the elements of a block's results lie: next to each other, every other one, each with its neighbour of the same
/// window, or else.
pub(super) const DENSE: u8 = 0;
pub(super) const PAIRS: u8 = 1;
pub(super) const APART: u8 = 2;

/// What is made of the windows of `N` results, which read alike.
pub(super) trait Block<T: Convert> {
    /// # Safety
    /// The contract of the operation, of these results.
    unsafe fn block<const N: usize, const HOW: u8>(&self, window: &Window<'_>);
}

/// The windows of a place's results from one on.
pub(super) struct Window<'a> {
    pub(super) pool: &'a Pooling<'a>,
    pub(super) place: &'a Place,
    pub(super) first: usize,
}

/// Calls `block` with all results of a place, the last of many once more rather than one by one.
///
/// # Safety
/// The contract of the operation.
#[inline(always)]
pub(super) unsafe fn in_blocks<T: Convert>(
    pool: &Pooling<'_>,
    place: &Place,
    block: &impl Block<T>,
) {
    let (step, size) = (place.step[2], size_of::<T>() as isize);
    let lies = pool.strides[2][3] == size && pool.step[1] == 1;
    // SAFETY: the caller's contract.
    unsafe {
        if step == size {
            blocks::<T, DENSE>(pool, place, block);
        } else if step == 2 * size && size <= 4 && lies && place.spans[1].count > 1 {
            blocks::<T, PAIRS>(pool, place, block);
        } else {
            blocks::<T, APART>(pool, place, block);
        }
    }
}

/// # Safety
/// The contract of the operation; the elements lie so.
#[inline(always)]
unsafe fn blocks<T: Convert, const HOW: u8>(
    pool: &Pooling<'_>,
    place: &Place,
    block: &impl Block<T>,
) {
    let window = |first: usize| Window { pool, place, first };
    let mut first = 0;
    // SAFETY: the caller's contract.
    unsafe {
        while HOW != APART && place.lanes - first > SOME && place.lanes >= MANY {
            first = first.min(place.lanes - MANY);
            block.block::<MANY, HOW>(&window(first));
            first += MANY;
        }
        while place.lanes > first && place.lanes >= SOME {
            first = first.min(place.lanes - SOME);
            block.block::<SOME, HOW>(&window(first));
            first += SOME;
        }
        while place.lanes > first {
            block.block::<1, APART>(&window(first));
            first += 1;
        }
    }
}

impl Window<'_> {
    /// The pointers to result, position and elements of the first result.
    #[inline(always)]
    pub(super) fn lane(&self, ptrs: [*mut u8; 3]) -> [*mut u8; 3] {
        let Place { at, step, .. } = self.place;
        std::array::from_fn(|k| ptrs[k].wrapping_offset(at[k] + step[k] * self.first as isize))
    }

    /// The position of an element of the window, and the bytes to the place's first one.
    #[inline(always)]
    pub(super) fn tap(&self, i: usize, j: usize) -> (usize, isize) {
        let [_, _, down, across] = self.pool.strides[2];
        let [rows, cols] = self.place.spans;
        let y = rows.start + i * self.pool.step[0];
        let x = cols.start + j * self.pool.step[1];
        let at = self.place.at[2] + y as isize * down + x as isize * across;
        (y * self.pool.width + x, at)
    }

    /// Whether the elements of a window's lines lie next to each other.
    #[inline(always)]
    pub(super) fn lies<T: Element>(&self) -> bool {
        self.pool.strides[2][3] == size_of::<T>() as isize && self.pool.step[1] == 1
    }

    /// Calls `f` with the elements of all results at each place of the window, with the first one's position, and the
    /// place's row and column among those within the input.
    ///
    /// # Safety
    /// `N` results are left, and their elements lie so and may be read.
    #[inline(always)]
    pub(super) unsafe fn for_each_tap<T: Convert, A: Convert, const N: usize, const HOW: u8>(
        &self,
        src: *const u8,
        mut f: impl FnMut([A; N], usize, [usize; 2]),
    ) {
        let [rows, cols] = self.place.spans;
        let step = self.place.step[2];
        let src = src.wrapping_offset(step * self.first as isize);
        for i in 0..rows.count {
            for j in 0..cols.count {
                let (position, at) = self.tap(i, j);
                let from = src.wrapping_offset(at);
                // SAFETY: the caller's contract.
                let value = unsafe {
                    if HOW == DENSE {
                        line::<T, A, N>(from, 0)
                    } else if HOW == PAIRS {
                        let second = j + 1 == cols.count;
                        let before = if second { size_of::<T>() } else { 0 };
                        halves::<T, A, N>(from.wrapping_sub(before), second)
                    } else {
                        let mut value = [zero::<A>(); N];
                        for (l, value) in value.iter_mut().enumerate() {
                            let at = from.offset(step * l as isize).cast::<T>();
                            *value = at.read_unaligned().to();
                        }
                        value
                    }
                };
                f(value, position, [i, j]);
            }
        }
    }

    /// Writes results, or positions, that are `step` bytes apart.
    ///
    /// # Safety
    /// They may be written.
    #[inline(always)]
    pub(super) unsafe fn write<T: Element, const N: usize>(
        &self,
        to: *mut u8,
        step: isize,
        values: [T; N],
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            if step == size_of::<T>() as isize {
                return to.cast::<[T; N]>().write_unaligned(values);
            }
            for (l, value) in values.into_iter().enumerate() {
                to.offset(step * l as isize)
                    .cast::<T>()
                    .write_unaligned(value);
            }
        }
    }
}

/// Zero, of which arrays are made: what the standard library has for arrays would be a call in the middle of a loop.
#[inline(always)]
pub(super) fn zero<A: Convert>() -> A {
    A::from_int(0)
}

/// All elements of an array as others.
#[inline(always)]
pub(super) fn converted<T: Convert, A: Convert, const N: usize>(from: [T; N]) -> [A; N] {
    let mut to = [zero::<A>(); N];
    for l in 0..N {
        to[l] = from[l].to();
    }
    to
}

/// `N` elements that follow each other, from one on.
///
/// # Safety
/// They may be read.
#[inline(always)]
pub(super) unsafe fn line<T: Convert, A: Convert, const N: usize>(
    from: *const u8,
    at: usize,
) -> [A; N] {
    // SAFETY: the caller's contract.
    converted(unsafe { from.cast::<T>().add(at).cast::<[T; N]>().read_unaligned() })
}

/// The first or the second of `N` pairs of elements of 4 bytes or fewer: as vectors of wider numbers, which the compiler
/// narrows as a whole.
///
/// # Safety
/// All pairs may be read.
#[inline(always)]
unsafe fn halves<T: Convert, A: Convert, const N: usize>(from: *const u8, second: bool) -> [A; N] {
    let bits = if second != cfg!(target_endian = "big") {
        8 * size_of::<T>() as u32
    } else {
        0
    };
    macro_rules! narrowed {
        ($wide:ty => $narrow:ty) => {{
            let pairs = from.cast::<[$wide; N]>().read_unaligned();
            let mut half = [0 as $narrow; N];
            for l in 0..N {
                half[l] = (pairs[l] >> bits) as $narrow;
            }
            converted(std::mem::transmute_copy::<[$narrow; N], [T; N]>(&half))
        }};
    }
    // SAFETY: the caller's contract; elements are plain bytes, of the numbers' size.
    unsafe {
        match size_of::<T>() {
            4 => narrowed!(u64 => u32),
            2 => narrowed!(u32 => u16),
            _ => narrowed!(u16 => u8),
        }
    }
}

/// The lines of a window whose elements lie next to each other: their number, the bytes from one to the next and to the
/// first, and the elements of one. Lines that follow each other are one.
#[inline(always)]
pub(super) fn lines<T: Element>(window: &Window<'_>) -> (usize, isize, isize, usize) {
    let [rows, cols] = window.place.spans;
    let apart = window.pool.strides[2][2] * window.pool.step[0] as isize;
    let first = window.tap(0, 0).1 + window.place.step[2] * window.first as isize;
    if apart == (cols.count * size_of::<T>()) as isize {
        (1, 0, first, rows.count * cols.count)
    } else {
        (rows.count, apart, first, cols.count)
    }
}
