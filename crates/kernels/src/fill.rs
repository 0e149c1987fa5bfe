//! One value everywhere.

use crate::par::par_for;
use crate::runs::fill_run;
use crate::simd::vectorized;
use osteon_spec::Plan;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 16;

/// Writes the `width` bytes at `value` (1, 2, 4, 8 or 16) to every element. Positions may repeat.
///
/// # Safety
/// The walk contract (see the [crate] documentation) with elements of `width` bytes; `width` bytes
/// at `value` can be read, and are not part of the destination.
///
/// # Panics
/// When `width` is none of the five.
pub unsafe fn fill(plan: &Plan<1>, dst: *mut u8, value: *const u8, width: usize) {
    // SAFETY: the caller's contract, passed on.
    unsafe {
        match width {
            1 => fill_with(plan, dst, value.cast::<u8>().read_unaligned()),
            2 => fill_with(plan, dst, value.cast::<u16>().read_unaligned()),
            4 => fill_with(plan, dst, value.cast::<u32>().read_unaligned()),
            8 => fill_with(plan, dst, value.cast::<u64>().read_unaligned()),
            16 => fill_with(plan, dst, value.cast::<u128>().read_unaligned()),
            _ => panic!("no element has {width} bytes"),
        }
    }
}

struct Destination(*mut u8);

// SAFETY: threads write disjoint parts, or (an expanded destination) the same value; see below.
unsafe impl Sync for Destination {}

/// # Safety
/// As [`fill`] with elements of `T`'s size.
unsafe fn fill_with<T: Copy + Sync>(plan: &Plan<1>, dst: *mut u8, value: T) {
    let dst = Destination(dst);
    let write = |range| {
        let dst = &dst;
        plan.for_each_run_in(range, |[d], len, [stride]| {
            // Around each run: the walk is too long to be compiled into every variant.
            // SAFETY: the run's positions lie in the destination.
            vectorized(|| unsafe { fill_run(dst.0.offset(d), stride, len, value) });
        });
    };
    // Two threads must not write one element, even the same value: only plans in which no position
    // can repeat (each dim steps over all of the dims inside it) are shared out.
    let mut reach = 0;
    let disjoint = plan.dims().iter().all(|dim| {
        let stride = dim.strides[0].unsigned_abs();
        let apart = stride > reach;
        reach = reach.saturating_add(stride.saturating_mul(dim.size - 1));
        apart
    });
    if disjoint {
        par_for(plan.numel(), GRAIN, write);
    } else if plan.numel() > 0 {
        write(0..plan.numel());
    }
}
