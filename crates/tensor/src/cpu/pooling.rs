//! Windows.

use super::{held, undefined};
use crate::View;
use osteon_kernels::{self as kernels, Divisor, Pooling};
use osteon_memory::hold;
use osteon_spec::Result;

fn first(view: &View) -> *mut u8 {
    view.storage()
        .data_mut()
        .wrapping_add(view.storage_offset() * view.element_size())
}

/// See [`Backend::max_pool`](crate::backend::Backend::max_pool).
pub(super) fn max_pool(
    dst: &View,
    positions: Option<&View>,
    src: &View,
    how: &Pooling<'_>,
) -> Result<()> {
    let run = kernels::max_pool(dst.dtype()).ok_or_else(|| undefined("max_pool", dst.dtype()))?;
    let _held = match positions {
        None => hold(&[src.storage()], &[dst.storage()])?,
        Some(at) => hold(&[src.storage()], &[dst.storage(), at.storage()])?,
    };
    if dst.numel() > 0 {
        let at = positions.map_or(std::ptr::null_mut(), first);
        // SAFETY: the walk contract, as in `run`: strides are the views' own, and spans lie within the input; results
        // and positions are fresh.
        unsafe { run(how, [first(dst), at, first(src)]) };
    }
    Ok(())
}

/// See [`Backend::avg_pool`](crate::backend::Backend::avg_pool).
pub(super) fn avg_pool(dst: &View, src: &View, how: &Pooling<'_>, divisor: Divisor) -> Result<()> {
    let run = kernels::avg_pool(dst.dtype()).ok_or_else(|| undefined("avg_pool", dst.dtype()))?;
    let _held = held(dst, [src.into()])?;
    if dst.numel() > 0 {
        // SAFETY: as above.
        unsafe { run(how, [first(dst), std::ptr::null_mut(), first(src)], divisor) };
    }
    Ok(())
}

/// See [`Backend::avg_spread`](crate::backend::Backend::avg_spread).
pub(super) fn avg_spread(
    dst: &View,
    src: &View,
    how: &Pooling<'_>,
    divisor: Divisor,
) -> Result<()> {
    let run = kernels::avg_spread(dst.dtype()).ok_or_else(|| undefined("avg_pool", dst.dtype()))?;
    let _held = held(dst, [src.into()])?;
    if dst.numel() > 0 && src.numel() > 0 {
        // SAFETY: as above; `dst` is fresh.
        unsafe { run(how, [first(src), std::ptr::null_mut(), first(dst)], divisor) };
    }
    Ok(())
}
