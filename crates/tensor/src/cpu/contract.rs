//! Sums of products.

use super::scratch::with_scratch;
use super::{held, undefined};
use crate::View;
use osteon_kernels::{Axis, Contraction};
use osteon_spec::Result;

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
    let device = dst.device();
    with_scratch(work.scratch(), &device, "scratch of a product", |scratch| {
        let _held = held(dst, [lhs.into(), rhs.into()])?;
        let first = |v: &View| {
            v.storage()
                .data_mut()
                .wrapping_add(v.storage_offset() * v.element_size())
        };
        // SAFETY: the walk contract, as in `run`: the axes are made of the views' own dims, so every position is in
        // bounds, and the destination is fresh.
        unsafe { work.run([first(dst), first(lhs), first(rhs)], scratch) };
        Ok(())
    })
}
