//! Reductions and scans.

use super::scratch::with_scratch;
use super::undefined;
use crate::View;
use crate::reduce::Reduction;
use osteon_kernels::{self as kernels, Lines, Out, ReduceOp, Reducer};
use osteon_memory::{Held, Storage, hold};
use osteon_spec::{Plan, Result};
use smallvec::SmallVec;

/// A loop over source and destinations, by sizes and byte strides.
#[derive(Default)]
struct Walk {
    sizes: SmallVec<[usize; 6]>,
    strides: [SmallVec<[isize; 6]>; 3],
}

impl Walk {
    fn push(&mut self, size: usize, strides: [isize; 3]) {
        self.sizes.push(size);
        for (all, stride) in self.strides.iter_mut().zip(strides) {
            all.push(stride);
        }
    }

    fn plan(&self, offsets: [isize; 3]) -> Plan<3> {
        Plan::from_strides(
            &self.sizes,
            offsets,
            self.strides.each_ref().map(|s| &s[..]),
        )
    }
}

/// The walk over the dims that stay, and the one over those that `how` reduces.
fn walks(how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> [Walk; 2] {
    let bytes = |view: &View, d: usize| (view.stride()[d] * view.element_size()) as isize;
    let [mut kept, mut reduced] = [Walk::default(), Walk::default()];
    for d in 0..src.dim() {
        let is_reduced = how.dims.contains(&d);
        // A destination may lack the dims that are reduced.
        let of = |dst: Option<&View>| match dst {
            Some(dst) if dst.dim() == src.dim() => bytes(dst, d),
            Some(dst) if !is_reduced => bytes(dst, d - how.dims.iter().filter(|&&r| r < d).count()),
            _ => 0,
        };
        let walk = if is_reduced { &mut reduced } else { &mut kept };
        walk.push(src.shape()[d], [bytes(src, d), of(dst[0]), of(dst[1])]);
    }
    [kept, reduced]
}

fn reducer(how: &Reduction<'_>) -> Result<Reducer> {
    kernels::reduce(how.op, how.dtype, how.number).ok_or_else(|| undefined(how.op, how.dtype))
}

fn held<'a>(dst: [Option<&'a View>; 2], src: &'a View) -> Result<Held<'a>> {
    let written: SmallVec<[&Storage; 2]> = dst.iter().flatten().map(|v| v.storage()).collect();
    hold(&[src.storage()], &written)
}

fn outs(dst: [Option<&View>; 2]) -> [Out; 2] {
    dst.map(|v| v.map(|v| (v.storage().data_mut(), v.dtype())))
}

fn offsets(dst: [Option<&View>; 2], src: &View) -> [isize; 3] {
    let of = |v: Option<&View>| v.map_or(0, |v| (v.storage_offset() * v.element_size()) as isize);
    [of(Some(src)), of(dst[0]), of(dst[1])]
}

/// See [`Backend::reduce`](crate::backend::Backend::reduce).
pub(super) fn reduce(how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> Result<()> {
    let reducer = reducer(how)?;
    let [kept, reduced] = walks(how, dst, src);
    let reduced = reduced.plan([0; 3]).select([0]);
    // Places are counted in row-major order.
    let in_order = matches!(how.op, ReduceOp::Max | ReduceOp::Min);
    let reduced = if in_order { reduced } else { reduced.sorted() };
    let kept = kept.plan(offsets(dst, src)).sorted();
    let (own, device) = (src.dtype(), src.device());
    let bytes = reducer.scratch(&kept, &reduced, own);
    with_scratch(bytes, &device, "scratch of a reduction", |scratch| {
        let _held = held(dst, src)?;
        let from = src.storage().data_ptr();
        // SAFETY: the walk contract, as in `run`: the walks are made of the views' own dims, and a destination is
        // fresh or apart from the source.
        unsafe { reducer.run(&kept, &reduced, from, own, outs(dst), scratch) };
        Ok(())
    })
}

/// See [`Backend::scan`](crate::backend::Backend::scan).
pub(super) fn scan(how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> Result<()> {
    let reducer = reducer(how)?;
    let _held = held(dst, src)?;
    let [starts, line] = walks(how, dst, src);
    let (starts, line) = (starts.plan(offsets(dst, src)).sorted(), line.plan([0; 3]));
    // SAFETY: as in `reduce`; a destination may also be the source itself, element for element.
    unsafe {
        reducer.scan(
            &starts,
            &line,
            src.storage().data_ptr(),
            src.dtype(),
            outs(dst),
        )
    };
    Ok(())
}

/// See [`Backend::recurrence`](crate::backend::Backend::recurrence).
pub(super) fn recurrence(
    dst: &View,
    [x, factor]: [&View; 2],
    dim: usize,
    backwards: bool,
) -> Result<()> {
    let _held = hold(&[x.storage(), factor.storage()], &[dst.storage()])?;
    let views = [dst, x, factor];
    let bytes = |view: &View, d: usize| (view.stride()[d] * view.element_size()) as isize;
    let len = dst.shape()[dim];
    let (mut lines, mut offsets) = (Walk::default(), offsets([Some(x), Some(factor)], dst));
    let mut steps = views.map(|view| bytes(view, dim));
    for d in (0..dst.dim()).filter(|&d| d != dim) {
        lines.push(dst.shape()[d], views.map(|view| bytes(view, d)));
    }
    // The factor of the second step comes first: the second one of all, or the last.
    let last = len.saturating_sub(1) as isize;
    let begins = if backwards { [last; 3] } else { [0, 0, 1] };
    for k in 0..3 {
        offsets[k] += begins[k] * steps[k];
        if backwards {
            steps[k] = -steps[k];
        }
    }
    let lines = Lines {
        starts: lines.plan(offsets).sorted(),
        steps,
        len,
    };
    let pointers = [
        dst.storage().data_mut(),
        x.storage().data_ptr().cast_mut(),
        factor.storage().data_ptr().cast_mut(),
    ];
    // SAFETY: the walk contract, as in `reduce`; the destination is fresh.
    let run = unsafe { kernels::recurrence(&lines, pointers, dst.dtype()) };
    debug_assert!(run, "the dtype was checked");
    Ok(())
}
