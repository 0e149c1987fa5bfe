//! Walks in tiles, for operands that are dense along different dims.

use crate::operand::BLOCK;
use osteon_spec::{Plan, PlanDim};

/// A tile's side: its elements are a block.
const SIDE: usize = 32;
const _: () = assert!(SIDE * SIDE == BLOCK);

/// Tiles along the other dim before the next step along the inner one: as many lines lie next to
/// each other for the operands that lie across, and the pages of all stay in the TLB.
const GROUP: usize = 8;

/// The dim along which an input is dense that is not dense along the inner dim, if tiles pay.
pub(crate) fn across<const N: usize>(plan: &Plan<N>, widths: [usize; N]) -> Option<usize> {
    let dims = plan.dims();
    let inner = dims.first().filter(|d| d.size >= SIDE)?;
    (1..N)
        .filter(|&k| inner.strides[k] != 0 && inner.strides[k] != widths[k] as isize)
        .find_map(|k| {
            let dense = |d: &PlanDim<N>| d.size >= SIDE && d.strides[k] == widths[k] as isize;
            dims.iter().position(dense)
        })
}

/// Splits a plan into parts that together are its elements: those made of tiles along the inner dim
/// and `dim`, of which each [`BLOCK`] of elements is one, and the edges. `f` gets each part, and
/// the unit in which it may be split.
pub(crate) fn split<const N: usize>(
    plan: &Plan<N>,
    dim: usize,
    mut f: impl FnMut(&Plan<N>, usize),
) {
    let dims = plan.dims();
    let (inner, outer) = (dims[0], dims[dim]);
    let rest = || {
        dims[1..]
            .iter()
            .enumerate()
            .filter(|(i, _)| i + 1 != dim)
            .map(|(_, d)| *d)
    };
    let begin = |cols: usize, rows: usize| {
        let mut offsets = plan.offsets();
        for (k, offset) in offsets.iter_mut().enumerate() {
            *offset += cols as isize * inner.strides[k] + rows as isize * outer.strides[k];
        }
        offsets
    };
    // `size` steps of `by` elements along a dim.
    let steps = |along: PlanDim<N>, size: usize, by: usize| PlanDim {
        size,
        strides: along.strides.map(|s| s * by as isize),
    };
    let across = inner.size / SIDE;
    let mut done = 0;
    while outer.size - done >= SIDE {
        let group = GROUP.min((outer.size - done) / SIDE);
        let groups = (outer.size - done) / (SIDE * group);
        let tiles = [
            steps(inner, SIDE, 1),
            steps(outer, SIDE, 1),
            steps(outer, group, SIDE),
            steps(inner, across, SIDE),
            steps(outer, groups, SIDE * group),
        ];
        f(
            &Plan::from_dims(begin(0, done), tiles.into_iter().chain(rest())),
            BLOCK,
        );
        done += groups * group * SIDE;
    }
    let below = [
        steps(inner, across * SIDE, 1),
        steps(outer, outer.size - done, 1),
    ];
    f(
        &Plan::from_dims(begin(0, done), below.into_iter().chain(rest())),
        1,
    );
    let beside = [steps(inner, inner.size - across * SIDE, 1), outer];
    f(
        &Plan::from_dims(begin(across * SIDE, 0), beside.into_iter().chain(rest())),
        1,
    );
}
