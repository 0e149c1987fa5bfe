//! Sums of products.

use super::{held, undefined};
use crate::View;
use crate::create::reserved;
use osteon_kernels::{Axis, Contraction};
use osteon_spec::Result;
use std::mem::MaybeUninit;

/// See [`Backend::contract`](crate::backend::Backend::contract).
pub(super) fn contract(
    dst: &View,
    lhs: &View,
    rhs: &View,
    axes: &[Axis],
    summed: &[Axis],
) -> Result<()> {
    let work = Contraction::new(dst.dtype(), axes, summed)
        .ok_or_else(|| undefined("a product", dst.dtype()))?;
    let mut scratch: Vec<MaybeUninit<u8>> = reserved(work.scratch(), "matmul")?;
    scratch.resize(work.scratch(), MaybeUninit::uninit());
    let _held = held(dst, [lhs.into(), rhs.into()])?;
    let first = |v: &View| {
        v.storage()
            .data_mut()
            .wrapping_add(v.storage_offset() * v.element_size())
    };
    // SAFETY: the walk contract, as in `run`: the axes are made of the views' own dims, so every position is in
    // bounds, and the destination is fresh.
    unsafe { work.run([first(dst), first(lhs), first(rhs)], &mut scratch) };
    Ok(())
}
