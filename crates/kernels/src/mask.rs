//! Elements that are true: counting them, where they are, and moving them.

use crate::operand::{BLOCK, Block, Operand, Staging};
use crate::runs::move_run;
use osteon_spec::{DType, Plan};

/// Calls `f(position, truth)` for blocks of an operand in the order of its plan; a byte is 1 where
/// the element is true (not zero), else 0.
///
/// # Safety
/// The walk contract.
unsafe fn for_each_block(
    plan: &Plan<1>,
    ptr: *const u8,
    dtype: DType,
    mut f: impl FnMut(usize, &[u8]),
) {
    // A `bool`'s bytes may be anything; as `uint8` numbers, they turn into true and false.
    let own = if dtype == DType::Bool {
        DType::U8
    } else {
        dtype
    };
    let operand = Operand::input(ptr, plan.clone(), own, DType::Bool);
    let mut block = Block::NEW;
    let mut staging = Staging::new(&mut block);
    let mut scratch = Block::NEW;
    for start in (0..plan.numel()).step_by(BLOCK) {
        let part = start..plan.numel().min(start + BLOCK);
        // SAFETY: the caller's contract; `load` gives a byte for each element of the part.
        unsafe {
            let truth = operand.load(&part, &mut staging, &mut scratch);
            f(start, std::slice::from_raw_parts(truth, part.len()));
        }
    }
}

/// The number of elements that are not zero.
///
/// # Safety
/// The walk contract (see the [crate] documentation).
pub unsafe fn count_nonzero(plan: &Plan<1>, ptr: *const u8, dtype: DType) -> usize {
    let mut count = 0;
    // SAFETY: the caller's contract.
    unsafe {
        for_each_block(plan, ptr, dtype, |_, truth| {
            // A block's sum fits 16 bits, which keeps the loop in vectors.
            count += truth.iter().map(|&t| t as u16).sum::<u16>() as usize;
        });
    }
    count
}

/// Writes the coordinates of every element that is not zero, in row-major order of `shape`:
/// coordinate `d` of the `n`th at `out + n·strides[0] + d·strides[1]` (in bytes), as `int64`. The
/// plan is in row-major order ([`Plan::row_major`]).
///
/// # Safety
/// The walk contract; `out` has room for `count_nonzero` rows of `shape.len()` coordinates.
pub unsafe fn nonzero(
    shape: &[usize],
    plan: &Plan<1>,
    ptr: *const u8,
    dtype: DType,
    out: *mut u8,
    strides: [isize; 2],
) {
    let mut row = out;
    // SAFETY: the caller's contract: a row for every element that is true.
    unsafe {
        for_each_block(plan, ptr, dtype, |start, truth| {
            for (i, _) in truth.iter().enumerate().filter(|(_, t)| **t != 0) {
                let mut rest = start + i;
                for (d, &size) in shape.iter().enumerate().rev() {
                    let to = row.offset(d as isize * strides[1]).cast::<i64>();
                    to.write_unaligned((rest % size) as i64);
                    rest /= size;
                }
                row = row.wrapping_offset(strides[0]);
            }
        });
    }
}

/// Copies the elements of operand 0 at which the mask, operand 1 (`bool` or `uint8`), is true to
/// `dst`, dense, in row-major order: `masked_select`. The plan is in that order
/// ([`Plan::row_major`]).
///
/// # Safety
/// The walk contract; `dst` has room for as many elements of `width` bytes as the mask has true
/// ones.
pub unsafe fn masked_select(
    plan: &Plan<2>,
    dst: *mut u8,
    src: *const u8,
    mask: *const u8,
    width: usize,
) {
    let mut to = dst;
    // SAFETY: the caller's contract.
    unsafe {
        for_each_true(plan, src.cast_mut(), mask, |from| {
            move_run(to, width as isize, from, width as isize, 1, width);
            to = to.wrapping_add(width);
        });
    }
}

/// Copies elements from `src`, dense, to the elements of operand 0 at which the mask, operand 1
/// (`bool` or `uint8`), is true, in row-major order: `masked_scatter`. The plan is in that order
/// ([`Plan::row_major`]).
///
/// # Safety
/// The walk contract; `src` has as many elements of `width` bytes as the mask has true ones.
pub unsafe fn masked_scatter(
    plan: &Plan<2>,
    dst: *mut u8,
    mask: *const u8,
    src: *const u8,
    width: usize,
) {
    let mut from = src;
    // SAFETY: the caller's contract.
    unsafe {
        for_each_true(plan, dst, mask, |to| {
            move_run(to, width as isize, from, width as isize, 1, width);
            from = from.wrapping_add(width);
        });
    }
}

/// Calls `f` with each element of operand 0 at which operand 1 is true.
///
/// # Safety
/// The walk contract.
unsafe fn for_each_true(plan: &Plan<2>, ptr: *mut u8, mask: *const u8, mut f: impl FnMut(*mut u8)) {
    plan.for_each_run(|[at, m], len, [step, mask_step]| {
        for i in 0..len as isize {
            // SAFETY: positions of the plan.
            unsafe {
                if mask.offset(m + i * mask_step).read() != 0 {
                    f(ptr.offset(at + i * step));
                }
            }
        }
    });
}
