//! Attention.

use super::held;
use super::scratch::with_scratch;
use crate::View;
use crate::attention::Attention;
use osteon_kernels as kernels;
use osteon_spec::{Plan, Result};
use smallvec::SmallVec;

/// See [`Backend::attention`](crate::backend::Backend::attention).
pub(super) fn attention(dst: &View, of: [&View; 3], how: &Attention<'_>) -> Result<()> {
    let [query, key, value] = of;
    // In place of a mask that is not there, something with a place of its own.
    let mask = how.mask.unwrap_or(query);
    let views = [dst, query, key, value, mask];
    let size = |v: &View| v.element_size() as isize;
    let outer = dst.dim() - 2;
    let strides: [SmallVec<[isize; 8]>; 5] = views.map(|v| {
        let all = v.stride().iter().map(|&s| s as isize * size(v));
        all.collect()
    });
    let work = kernels::Attention {
        heads: Plan::from_strides(
            &dst.shape()[..outer],
            [0; 5],
            strides.each_ref().map(|s| &s[..outer]),
        ),
        sizes: [
            query.shape()[outer],
            key.shape()[outer],
            query.shape()[outer + 1],
            value.shape()[outer + 1],
        ],
        strides: strides.each_ref().map(|s| [s[outer], s[outer + 1]]),
        scale: how.scale_of(query),
        mask: how.mask.map(View::dtype),
        is_causal: how.is_causal,
        dtype: dst.dtype(),
    };
    let device = dst.device();
    with_scratch(work.scratch(), &device, "scratch of attention", |scratch| {
        let _held = held(dst, [query, key, value, mask].map(Into::into))?;
        let first = |v: &View| {
            v.storage()
                .data_mut()
                .wrapping_add(v.storage_offset() * v.element_size())
        };
        // SAFETY: the walk contract, as in `run`: sizes and strides are the views' own, so every position is in
        // bounds, and the destination is fresh.
        unsafe { work.run(views.map(first), scratch) };
        Ok(())
    })
}
