//! Moving elements, blind to their dtype: by width in bytes.

use crate::par::par_for;
use crate::runs::move_strided;
use crate::transpose::transpose;
use osteon_spec::Plan;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// Bytes of dense memory that one thread copies at a time: large enough for `memcpy` to stream.
const DENSE_GRAIN: usize = 1 << 20;

/// Copies every element of operand 1 to operand 0. `width` is an element's bytes: 1, 2, 4, 8 or 16.
///
/// Reads and writes each element once whatever the strides; dense runs go by `memcpy`, transposed
/// ones through tiles of cache lines.
///
/// # Safety
/// The walk contract (see the [crate] documentation) with elements of `width` bytes, and source and
/// destination do not overlap at all.
///
/// # Panics
/// When `width` is none of the five.
pub unsafe fn copy(plan: &Plan<2>, dst: *mut u8, src: *const u8, width: usize) {
    let at = Pointers { dst, src };
    let [dst_stride, src_stride] = plan.inner().strides;
    let dense = width as isize;
    // SAFETY: the caller's contract, passed on; each branch reads and writes what the plan says.
    unsafe {
        match () {
            () if plan.numel() <= 1 || (dst_stride, src_stride) == (dense, dense) => {
                copy_runs(plan, at, width);
            }
            () if transpose(plan, dst, src, width) => {}
            () => match width {
                1 => copy_strided::<u8>(plan, at),
                2 => copy_strided::<u16>(plan, at),
                4 => copy_strided::<u32>(plan, at),
                8 => copy_strided::<u64>(plan, at),
                16 => copy_strided::<u128>(plan, at),
                _ => panic!("no element has {width} bytes"),
            },
        }
    }
}

/// The two base pointers, for closures that several threads run.
#[derive(Clone, Copy)]
struct Pointers {
    dst: *mut u8,
    src: *const u8,
}

// SAFETY: threads get disjoint parts of the destination, and nobody else writes the source.
unsafe impl Sync for Pointers {}

/// # Safety
/// As [`copy`]; every run is dense in both.
unsafe fn copy_runs(plan: &Plan<2>, at: Pointers, width: usize) {
    par_for(plan.numel(), DENSE_GRAIN / width, |range| {
        let at = &at;
        plan.for_each_run_in(range, |[d, s], len, _| {
            // SAFETY: the run lies in both, dense; they do not overlap.
            unsafe {
                std::ptr::copy_nonoverlapping(at.src.offset(s), at.dst.offset(d), len * width);
            }
        });
    });
}

/// # Safety
/// As [`copy`] with elements of `T`'s size.
unsafe fn copy_strided<T: Copy>(plan: &Plan<2>, at: Pointers) {
    par_for(plan.numel(), GRAIN, |range| {
        let at = &at;
        plan.for_each_run_in(range, |[d, s], len, [ds, ss]| {
            // SAFETY: the run's positions lie in both.
            unsafe { move_strided::<T>(at.dst.offset(d), ds, at.src.offset(s), ss, len) };
        });
    });
}
