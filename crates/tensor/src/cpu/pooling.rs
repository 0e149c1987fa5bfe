//! Windows.

use super::scratch::with_scratch;
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

/// See [`Backend::weighted`](crate::backend::Backend::weighted).
pub(super) fn weighted(
    dst: &View,
    src: &View,
    weight: &View,
    how: &Pooling<'_>,
    backwards: bool,
) -> Result<()> {
    let kernel = [weight.shape()[1], weight.shape()[2]];
    let mut strides: [isize; 3] =
        std::array::from_fn(|d| (weight.stride()[d] * weight.element_size()) as isize);
    let mut weights = first(weight);
    if backwards {
        for d in 0..2 {
            weights = weights.wrapping_offset((kernel[d] - 1) as isize * strides[d + 1]);
            strides[d + 1] = -strides[d + 1];
        }
    }
    let work = kernels::weighted(dst.dtype(), kernel, strides)
        .ok_or_else(|| undefined("a product", dst.dtype()))?;
    let (bytes, device) = (work.scratch(how.channels), dst.device());
    with_scratch(bytes, &device, "scratch of a product", |scratch| {
        let _held = held(dst, [src.into(), weight.into()])?;
        if dst.numel() > 0 {
            // SAFETY: as above.
            unsafe { work.run(how, [first(dst), weights, first(src)], scratch) };
        }
        Ok(())
    })
}
