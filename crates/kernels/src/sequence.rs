//! Numbers in equal steps.

use crate::convert::Convert;
use crate::par::par_for;
use crate::simd::vectorized;
use crate::with_element;
use osteon_spec::{DType, Plan};
use std::ops::Range;

/// What number is at each position of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sequence {
    /// The first, and what is added at each position; wrapping.
    Integers(i64, i64),
    /// The same with floats: position `i` has `first + i·step`, each rounded.
    Floats(f64, f64),
    /// So many from the first to the last, counted from the nearer end, so that both are exact.
    Between(f64, f64, usize),
}

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 14;

/// Writes a sequence to every element, converted as [`cast`](crate::cast()) converts; elements count in the order of the
/// plan.
///
/// # Safety
/// The walk contract (see the [crate] documentation).
pub unsafe fn sequence(plan: &Plan<1>, dst: *mut u8, dtype: DType, how: Sequence) {
    struct Destination(*mut u8);
    // SAFETY: threads write disjoint elements.
    unsafe impl Sync for Destination {}
    let dst = Destination(dst);
    with_element!(dtype, T => par_for(plan.numel(), GRAIN, |range| {
        let dst = &dst;
        let mut first = range.start;
        plan.for_each_run_in(range, |[offset], len, [step]| {
            // SAFETY: a run of the plan.
            vectorized(#[inline(always)] || unsafe {
                run::<T>(dst.0.offset(offset), step, first..first + len, how)
            });
            first += len;
        });
    }));
}

/// # Safety
/// As many elements as there are positions may be written from `to` on, `step` bytes apart.
#[inline(always)]
unsafe fn run<T: Convert>(to: *mut u8, step: isize, positions: Range<usize>, how: Sequence) {
    let Range { start, end } = positions;
    // SAFETY: the caller's contract.
    unsafe {
        match how {
            Sequence::Integers(first, by) => {
                let first = first.wrapping_add(by.wrapping_mul(start as i64));
                put(to, step, end - start, |i| {
                    T::from_int(first.wrapping_add(by.wrapping_mul(i)))
                });
            }
            Sequence::Floats(first, by) => {
                let from = start as f64;
                put(to, step, end - start, |i| {
                    T::from_f64(first + by * (from + i as f64))
                });
            }
            Sequence::Between(first, last, count) => {
                let by = (last - first) / (count - 1) as f64;
                // Rounded once, as PyTorch's loop is.
                let middle = (count / 2).clamp(start, end);
                let from = start as f64;
                put(to, step, middle - start, |i| {
                    T::from_f64(by.mul_add(from + i as f64, first))
                });
                let to = to.offset((middle - start) as isize * step);
                let left = (count - 1) as f64 - middle as f64;
                put(to, step, end - middle, |i| {
                    T::from_f64((-by).mul_add(left - i as f64, last))
                });
            }
        }
    }
}

/// Writes a function of the position in the run.
///
/// # Safety
/// As [`run`].
#[inline(always)]
unsafe fn put<T>(to: *mut u8, step: isize, len: usize, item: impl Fn(i64) -> T) {
    let dense = size_of::<T>() as isize;
    // SAFETY: the caller's contract.
    let write = |i: usize, step| unsafe {
        to.offset(i as isize * step)
            .cast::<T>()
            .write_unaligned(item(i as i64));
    };
    if step == dense {
        (0..len).for_each(|i| write(i, dense));
    } else {
        (0..len).for_each(|i| write(i, step));
    }
}
