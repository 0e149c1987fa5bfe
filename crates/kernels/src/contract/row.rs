//! The product of a single row with a matrix, which is read where it is.

use super::list::positions;
use super::work::Shared;
use super::{ALIGN, Dims, Typed};
use crate::par::{num_threads, par_for};
use osteon_spec::Plan;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of a sum that are done at a time: as much of the row stays in the caches.
const DEPTH: usize = 4096;
/// The most columns of a tile, and the unit of fewer.
const COLS: usize = 2048;
const UNIT: usize = 64;
/// Multiplications that are worth a thread.
const GRAIN: usize = 1 << 16;

/// A row times a matrix, cut into tiles of columns.
pub(super) struct RowWork<'a> {
    dims: &'a Dims,
    typed: &'a Typed,
    /// Columns of a tile, and the number of tiles of the batch.
    cols: usize,
    count: usize,
    workers: usize,
}

/// Bytes of a worker's scratch: row and column as they are multiplied, sums, positions of columns and of steps.
struct Parts {
    line: usize,
    sums: usize,
    cols: usize,
    depth: usize,
}

impl<'a> RowWork<'a> {
    pub(super) fn new(dims: &'a Dims, typed: &'a Typed) -> RowWork<'a> {
        let (batch, cols, depth) = (dims.batch.numel(), dims.cols.numel(), dims.depth.numel());
        let work = batch.saturating_mul(cols).saturating_mul(depth.max(1));
        let threads = num_threads().min(work.div_ceil(GRAIN)).max(1);
        let mut tile = cols.clamp(1, COLS);
        let count = |tile: usize| batch * cols.div_ceil(tile);
        while threads > 1 && count(tile) < 2 * threads && tile * depth > GRAIN && tile > UNIT {
            tile = (tile / 2).next_multiple_of(UNIT);
        }
        RowWork {
            dims,
            typed,
            cols: tile,
            count: count(tile),
            workers: threads.min(count(tile)),
        }
    }

    fn parts(&self) -> Parts {
        let depth = self.dims.depth.numel().min(DEPTH);
        let sums = |n: usize| (n * self.typed.sum_size).next_multiple_of(ALIGN);
        let offsets = |n: usize| (n * size_of::<isize>()).next_multiple_of(ALIGN);
        Parts {
            line: sums(depth),
            sums: sums(self.cols),
            cols: offsets(self.cols),
            depth: offsets(depth),
        }
    }

    /// The bytes of scratch for all workers.
    pub(super) fn scratch(&self) -> usize {
        self.workers * self.parts().total()
    }

    /// # Safety
    /// The contract of [`Contraction::run`](super::Contraction::run); there is [`RowWork::scratch`].
    pub(super) unsafe fn run(&self, ptrs: [*mut u8; 3], scratch: *mut u8) {
        let next = AtomicUsize::new(0);
        let chunk = (self.count / (self.workers * 8).max(1)).max(1);
        let shared = Shared((ptrs, scratch));
        par_for(self.workers, 1, |workers| {
            let (ptrs, scratch) = shared.get();
            for number in workers {
                let own = scratch.wrapping_add(number * self.parts().total());
                let mut worker = Worker::new(self, own);
                loop {
                    let start = next.fetch_add(chunk, Ordering::Relaxed);
                    if start >= self.count {
                        break;
                    }
                    for tile in start..self.count.min(start + chunk) {
                        // SAFETY: the caller's contract; tiles are disjoint, and each worker has its own scratch.
                        unsafe { worker.tile(tile, ptrs) };
                    }
                }
            }
        });
    }
}

/// A worker's part of the scratch.
struct Worker<'a> {
    work: &'a RowWork<'a>,
    row: *mut u8,
    column: *mut u8,
    sums: *mut u8,
    cols: [*mut u8; 2],
    depth: [*mut u8; 2],
    /// Which columns and steps are listed: those of one matrix are those of the next.
    listed: [Range<usize>; 2],
}

impl<'a> Worker<'a> {
    fn new(work: &'a RowWork<'a>, scratch: *mut u8) -> Worker<'a> {
        let parts = work.parts();
        let mut rest = scratch;
        let mut take = |bytes: usize| {
            let part = rest;
            rest = rest.wrapping_add(bytes);
            part
        };
        Worker {
            work,
            row: take(parts.line),
            column: take(parts.line),
            sums: take(parts.sums),
            cols: [take(parts.cols), take(parts.cols)],
            depth: [take(parts.depth), take(parts.depth)],
            listed: [0..0, 0..0],
        }
    }

    /// # Safety
    /// The contract of [`RowWork::run`]; nobody else does this tile or uses this scratch.
    unsafe fn tile(&mut self, tile: usize, mut ptrs: [*mut u8; 3]) {
        let RowWork { dims, typed, .. } = *self.work;
        let matrices = dims.batch.numel();
        let (tile, matrix) = (tile / matrices, tile % matrices);
        let [lhs, rhs] = dims.sides;
        dims.batch
            .for_each_run_in(matrix..matrix + 1, |offsets, _, _| {
                for (ptr, k) in ptrs.iter_mut().zip([0, lhs, rhs]) {
                    *ptr = ptr.wrapping_offset(offsets[k]);
                }
            });
        let [dst, from_lhs, from_rhs] = ptrs;
        let start = tile * self.work.cols;
        let part = start..dims.cols.numel().min(start + self.work.cols);
        // SAFETY: lists and sums have room for a tile's columns, or for the steps that are done at a time.
        unsafe {
            let cols = listed(&dims.cols, part, self.cols, &mut self.listed[0]);
            // A sum of nothing is a step of nothing.
            for start in (0..dims.depth.numel().max(1)).step_by(DEPTH) {
                let steps = start..dims.depth.numel().min(start + DEPTH);
                let steps = listed(&dims.depth, steps, self.depth, &mut self.listed[1]);
                (typed.pack_row)(self.row, from_lhs, steps[0]);
                let first = start == 0;
                (typed.row)(
                    self.sums,
                    self.row,
                    from_rhs,
                    cols[1],
                    steps[1],
                    self.column,
                    first,
                );
            }
            (typed.merge)(self.sums, 0, dst, &[0], cols[0], false);
        }
    }
}

/// The positions of a part of a walk, written to both lists unless they have them.
///
/// # Safety
/// The lists are this worker's and have room.
unsafe fn listed<'b>(
    plan: &Plan<2>,
    part: Range<usize>,
    lists: [*mut u8; 2],
    before: &mut Range<usize>,
) -> [&'b [isize]; 2] {
    let len = part.len();
    if *before != part {
        *before = part.clone();
        // SAFETY: the caller's contract.
        let lists = lists.map(|at| unsafe { std::slice::from_raw_parts_mut(at.cast(), len) });
        positions(plan, part, lists);
    }
    // SAFETY: written above or before.
    lists.map(|at| unsafe { std::slice::from_raw_parts(at.cast::<isize>().cast_const(), len) })
}

impl Parts {
    fn total(&self) -> usize {
        2 * self.line + self.sums + 2 * (self.cols + self.depth)
    }
}
