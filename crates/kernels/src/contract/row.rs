//! The product of a single row with a matrix, which is read where it is.

use super::list::positions;
use super::work::Shared;
use super::{ALIGN, Dims, Typed};
use crate::par::{num_threads, par_for};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of a sum that are done at a time: as much of the row stays in the caches.
const DEPTH: usize = 4096;
/// The most columns of a tile, and the unit of fewer.
const COLS: usize = 768;
const UNIT: usize = 64;
/// Multiplications that are worth a thread.
const GRAIN: usize = 1 << 16;

/// A row times a matrix, cut into tiles of columns.
pub(super) struct RowWork<'a> {
    dims: &'a Dims,
    typed: &'a Typed,
    /// Columns of a tile, and the number of tiles of a matrix and of the batch.
    cols: usize,
    across: usize,
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
        while threads > 1 && count(tile) < 3 * threads && tile * depth > GRAIN && tile > UNIT {
            tile = (tile / 2).next_multiple_of(UNIT);
        }
        RowWork {
            dims,
            typed,
            cols: tile,
            across: cols.div_ceil(tile),
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
            for worker in workers {
                loop {
                    let start = next.fetch_add(chunk, Ordering::Relaxed);
                    if start >= self.count {
                        break;
                    }
                    for tile in start..self.count.min(start + chunk) {
                        let own = scratch.wrapping_add(worker * self.parts().total());
                        // SAFETY: the caller's contract; tiles are disjoint, and each worker has its own scratch.
                        unsafe { self.tile(tile, ptrs, own) };
                    }
                }
            }
        });
    }

    /// # Safety
    /// The contract of [`RowWork::run`]; nobody else does this tile or uses this scratch.
    unsafe fn tile(&self, tile: usize, mut ptrs: [*mut u8; 3], scratch: *mut u8) {
        let (dims, typed, parts) = (self.dims, self.typed, self.parts());
        let mut rest = scratch;
        let mut take = |bytes: usize| {
            let part = rest;
            rest = rest.wrapping_add(bytes);
            part
        };
        let (row, column, sums) = (take(parts.line), take(parts.line), take(parts.sums));
        let col_lists = [take(parts.cols), take(parts.cols)];
        let step_lists = [take(parts.depth), take(parts.depth)];
        let (matrix, tile) = (tile / self.across, tile % self.across);
        let [lhs, rhs] = dims.sides;
        dims.batch
            .for_each_run_in(matrix..matrix + 1, |offsets, _, _| {
                for (ptr, k) in ptrs.iter_mut().zip([0, lhs, rhs]) {
                    *ptr = ptr.wrapping_offset(offsets[k]);
                }
            });
        let [dst, from_lhs, from_rhs] = ptrs;
        let start = tile * self.cols;
        let part = start..dims.cols.numel().min(start + self.cols);
        // SAFETY: lists and sums have room for a tile's columns, or for the steps that are done at a time.
        unsafe {
            let list = |at: *mut u8, len: usize| std::slice::from_raw_parts_mut(at.cast(), len);
            let lists = col_lists.map(|at| list(at, part.len()));
            let cols = positions(&dims.cols, part, lists);
            // A sum of nothing is a step of nothing.
            for start in (0..dims.depth.numel().max(1)).step_by(DEPTH) {
                let steps = start..dims.depth.numel().min(start + DEPTH);
                let lists = step_lists.map(|at| list(at, steps.len()));
                let steps = positions(&dims.depth, steps, lists);
                (typed.pack_row)(row, from_lhs, steps[0]);
                (typed.row)(sums, row, from_rhs, cols[1], steps[1], column, start == 0);
            }
            (typed.merge)(sums, 0, dst, &[0], cols[0], false);
        }
    }
}

impl Parts {
    fn total(&self) -> usize {
        2 * self.line + self.sums + 2 * (self.cols + self.depth)
    }
}
