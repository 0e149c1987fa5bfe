//! The product of a single row with a matrix, which is read where it is: in tiles of columns, or, where the matrix has its
//! rows in memory one after the other, in parts of these rows, whose sums are added in the end.

use super::list::positions;
use super::work::Shared;
use super::{ALIGN, Dims, Typed, line};
use crate::par::{num_threads, par_for};
use osteon_spec::Plan;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of a sum that are done at a time: as much of the row stays in the caches.
const DEPTH: usize = 4096;
/// The most columns of a tile, and the unit of fewer.
const COLS: usize = 2048;
const UNIT: usize = 64;
/// Multiplications that are worth a thread.
const GRAIN: usize = 1 << 16;
/// Parts that the steps are in, at most, and the least steps of one.
const PARTS: usize = 16;
const PART: usize = 256;
/// Columns of a tile of such a part, bytes of the sums of all parts, and columns that are added up at a time.
const WIDE: usize = 8192;
const PARTIAL: usize = 1 << 20;
const ADDED: usize = 1024;

/// A row times a matrix, cut into tiles of columns and parts of the steps.
pub(super) struct RowWork<'a> {
    dims: &'a Dims,
    typed: &'a Typed,
    /// Columns of a tile, and the number of tiles of the batch.
    cols: usize,
    count: usize,
    parts: usize,
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
        let parts = parts(dims, typed);
        let mut tile = cols.clamp(1, if parts > 1 { WIDE } else { COLS });
        let count = |tile: usize| batch * cols.div_ceil(tile);
        let shares_tiles = parts == 1 && threads > 1;
        while shares_tiles && count(tile) < 2 * threads && tile * depth > GRAIN && tile > UNIT {
            tile = (tile / 2).next_multiple_of(UNIT);
        }
        RowWork {
            dims,
            typed,
            cols: tile,
            count: count(tile),
            parts,
            workers: threads.min(count(tile) * parts),
        }
    }

    /// The bytes of the sums of all parts.
    fn partial(&self) -> usize {
        match self.parts {
            1 => 0,
            parts => (parts * self.dims.cols.numel() * self.typed.sum_size).next_multiple_of(ALIGN),
        }
    }

    fn shares(&self) -> Parts {
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
        self.partial() + self.workers * self.shares().total()
    }

    /// # Safety
    /// The contract of [`Contraction::run`](super::Contraction::run); there is [`RowWork::scratch`].
    pub(super) unsafe fn run(&self, ptrs: [*mut u8; 3], scratch: *mut u8) {
        let next = AtomicUsize::new(0);
        let count = self.count * self.parts;
        let chunk = (count / (self.workers * 8).max(1)).max(1);
        let shared = Shared((ptrs, scratch));
        par_for(self.workers, 1, |workers| {
            let (ptrs, scratch) = shared.get();
            for number in workers {
                let own = self.partial() + number * self.shares().total();
                let mut worker = Worker::new(self, scratch.wrapping_add(own));
                loop {
                    let start = next.fetch_add(chunk, Ordering::Relaxed);
                    if start >= count {
                        break;
                    }
                    for task in start..count.min(start + chunk) {
                        // SAFETY: the caller's contract; tiles are disjoint, and so are sums of parts; each worker has its own
                        // scratch.
                        unsafe {
                            match self.parts {
                                1 => worker.tile(task, ptrs),
                                _ => worker.part(task, ptrs, scratch),
                            }
                        }
                    }
                }
            }
        });
        if self.parts > 1 {
            par_for(self.dims.cols.numel(), ADDED, |range| {
                let (ptrs, partial) = shared.get();
                // SAFETY: the caller's contract; the parts are done, and threads have columns of their own.
                unsafe { self.add_up(range, ptrs[0], partial) };
            });
        }
    }

    /// Writes the sums of all parts, of these columns.
    ///
    /// # Safety
    /// The contract of [`RowWork::run`]; nobody else writes these columns, and the parts are done.
    unsafe fn add_up(&self, range: Range<usize>, dst: *mut u8, partial: *mut u8) {
        let mut lists = [[MaybeUninit::uninit(); ADDED]; 2];
        for start in range.clone().step_by(ADDED) {
            let some = start..range.end.min(start + ADDED);
            let lists = lists.each_mut().map(|list| &mut list[..some.len()]);
            let [to, _] = positions(&self.dims.cols, some, lists);
            for part in 0..self.parts {
                let place = part * self.dims.cols.numel() + start;
                let sums = partial.wrapping_add(place * self.typed.sum_size);
                // SAFETY: the caller's contract.
                unsafe { (self.typed.merge)(sums, 0, dst, &[0], to, part > 0) };
            }
        }
    }
}

/// In how many parts the steps are: only where sums are added in the destination as exactly as elsewhere, and where the columns of
/// a single matrix follow each other, so that whole rows are read.
fn parts(dims: &Dims, typed: &Typed) -> usize {
    let (cols, depth) = (dims.cols.numel(), dims.depth.numel());
    let lies = line(&dims.cols).is_some_and(|[_, apart]| apart == typed.sum_size as isize);
    let bytes = cols.saturating_mul(typed.sum_size);
    if typed.in_place && lies && dims.batch.numel() == 1 && cols > UNIT {
        PARTS.min(depth / PART).min(PARTIAL / bytes).max(1)
    } else {
        1
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
        let parts = work.shares();
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
        // SAFETY: the caller's contract.
        unsafe {
            let to = self.sum(tile, 0..dims.depth.numel(), ptrs, self.sums);
            (typed.merge)(self.sums, 0, ptrs[0], &[0], to, false);
        }
    }

    /// A part of the steps of a tile, whose sums are left in the scratch.
    ///
    /// # Safety
    /// As [`Worker::tile`].
    unsafe fn part(&mut self, task: usize, ptrs: [*mut u8; 3], partial: *mut u8) {
        let RowWork {
            dims,
            typed,
            parts,
            cols,
            ..
        } = *self.work;
        let (tile, part) = (task / parts, task % parts);
        let depth = dims.depth.numel();
        let bound = |part: usize| part * depth / parts;
        let place = part * dims.cols.numel() + tile * cols;
        let sums = partial.wrapping_add(place * typed.sum_size);
        // SAFETY: the caller's contract: each part has sums of its own.
        unsafe { self.sum(tile, bound(part)..bound(part + 1), ptrs, sums) };
    }

    /// Sums these steps of a tile, and gives the positions of its columns in the destination.
    ///
    /// # Safety
    /// As [`Worker::tile`]; there is room for the tile's sums.
    unsafe fn sum<'b>(
        &mut self,
        tile: usize,
        depth: Range<usize>,
        [_, from_lhs, from_rhs]: [*mut u8; 3],
        sums: *mut u8,
    ) -> &'b [isize] {
        let RowWork { dims, typed, .. } = *self.work;
        let start = tile * self.work.cols;
        let part = start..dims.cols.numel().min(start + self.work.cols);
        // SAFETY: lists and sums have room for a tile's columns, or for the steps that are done at a time.
        unsafe {
            let cols = listed(&dims.cols, part, self.cols, &mut self.listed[0]);
            let mut start = depth.start;
            // A sum of nothing is a step of nothing.
            while start < depth.end || start == depth.start {
                let steps = start..depth.end.min(start + DEPTH);
                let steps = listed(&dims.depth, steps, self.depth, &mut self.listed[1]);
                (typed.pack_row)(self.row, from_lhs, steps[0]);
                let first = start == depth.start;
                let (row, column) = (self.row, self.column);
                (typed.row)(sums, row, from_rhs, cols[1], steps[1], column, first);
                start += DEPTH;
            }
            cols[0]
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
