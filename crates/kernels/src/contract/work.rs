//! The rounds of a product: a block's panels are packed, then its tiles multiplied.

use super::Dims;
use super::blocking::Blocking;
use super::list::{DEEPEST, LONGEST, List};
use super::micro::{Source, Store};
use super::pack::Slivers;
use super::typed::Typed;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Looks at an unfinished task before others get the core.
const SPINS: usize = 1000;
/// Bytes of the largest tile of sums.
const TILE: usize = 2048;

/// A product, for all who work on it.
pub(super) struct Work<'a> {
    dims: &'a Dims,
    typed: &'a Typed,
    blocking: &'a Blocking,
    /// Destination, left and right operand.
    ptrs: [*mut u8; 3],
}

// SAFETY: threads read both operands, and no two write the same element at a time.
unsafe impl Sync for Work<'_> {}

/// Pointers for all workers, each of which touches a part of its own at a time.
#[derive(Clone, Copy)]
pub(super) struct Shared<T>(pub(super) T);

// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub(super) fn get(&self) -> T {
        self.0
    }
}

impl<'a> Work<'a> {
    pub(super) fn new(
        dims: &'a Dims,
        typed: &'a Typed,
        blocking: &'a Blocking,
        ptrs: [*mut u8; 3],
    ) -> Work<'a> {
        Work {
            dims,
            typed,
            blocking,
            ptrs,
        }
    }

    pub(super) fn worker(&'a self, scratch: *mut u8, number: usize) -> Worker<'a> {
        let share = if self.blocking.team { 0 } else { number };
        let first = scratch.wrapping_add(share * self.blocking.share());
        let [lhs, rhs, _] = self.blocking.parts;
        Worker {
            work: self,
            panels: [first, first.wrapping_add(lhs)],
            sums: first.wrapping_add(lhs + rhs),
            rows: List::new(),
            cols: List::new(),
            steps: List::new(),
        }
    }
}

/// The tasks of a team, in the order in which they are begun. A task of a phase waits for all of the phases before.
#[derive(Default)]
pub(super) struct Tickets {
    next: AtomicUsize,
    done: AtomicUsize,
}

impl Tickets {
    /// Takes tasks of `rounds` times two phases of these sizes until none is left. Whoever takes a task is running, so the
    /// first unfinished one never waits.
    fn work(&self, rounds: usize, sizes: [usize; 2], mut task: impl FnMut(usize, usize, usize)) {
        let each = sizes[0] + sizes[1];
        loop {
            let ticket = self.next.fetch_add(1, Ordering::Relaxed);
            let (round, at) = (ticket / each, ticket % each);
            if round >= rounds {
                return;
            }
            let (phase, start) = if at < sizes[0] { (0, 0) } else { (1, sizes[0]) };
            // Nothing of this phase is done yet, so the count is complete when all before it is.
            let mut looks = 0;
            while self.done.load(Ordering::Acquire) < round * each + start {
                looks += 1;
                if looks < SPINS {
                    std::hint::spin_loop();
                } else {
                    std::thread::yield_now();
                }
            }
            task(round, phase, at - start);
            self.done.fetch_add(1, Ordering::Release);
        }
    }
}

/// A block of one matrix of the batch.
#[derive(Clone, Copy)]
struct Round {
    ptrs: [*mut u8; 3],
    /// The number of the block along rows, columns and depth.
    at: [usize; 3],
}

pub(super) struct Worker<'a> {
    work: &'a Work<'a>,
    panels: [*mut u8; 2],
    sums: *mut u8,
    rows: List<LONGEST>,
    cols: List<LONGEST>,
    steps: List<DEEPEST>,
}

impl Worker<'_> {
    /// All rounds of these matrices.
    ///
    /// # Safety
    /// The contract of [`Contraction::run`](super::Contraction::run); nobody else works on these matrices, or with this
    /// worker's scratch.
    pub(super) unsafe fn alone(&mut self, matrices: Range<usize>) {
        let work = self.work;
        let Blocking {
            blocks,
            tasks,
            packs,
            ..
        } = *work.blocking;
        work.dims
            .batch
            .for_each_run_in(matrices, |offsets, len, strides| {
                for i in 0..len as isize {
                    let ptrs = self.offset(offsets, strides, i);
                    for round in 0..blocks.iter().product() {
                        let round = self.round(ptrs, round);
                        // SAFETY: the caller's contract; one after the other.
                        unsafe {
                            for task in 0..packs[0] + packs[1] {
                                self.pack(round, task);
                            }
                            for task in 0..tasks[0] * tasks[1] {
                                self.multiply(round, task);
                            }
                        }
                    }
                }
            });
    }

    /// What of all rounds this worker of a team comes to do.
    ///
    /// # Safety
    /// As for [`Worker::alone`], but for the team.
    pub(super) unsafe fn in_team(&mut self, matrices: usize, tickets: &Tickets) {
        let work = self.work;
        let Blocking {
            blocks,
            tasks,
            packs,
            ..
        } = *work.blocking;
        let each: usize = blocks.iter().product();
        let sizes = [packs[0] + packs[1], tasks[0] * tasks[1]];
        tickets.work(matrices * each, sizes, |round, phase, task| {
            let (matrix, round) = (round / each, round % each);
            let mut ptrs = work.ptrs;
            work.dims
                .batch
                .for_each_run_in(matrix..matrix + 1, |offsets, _, strides| {
                    ptrs = self.offset(offsets, strides, 0);
                });
            let round = self.round(ptrs, round);
            // SAFETY: the caller's contract: tasks of a phase write apart, and phases follow each other.
            unsafe {
                match phase {
                    0 => self.pack(round, task),
                    _ => self.multiply(round, task),
                }
            }
        });
    }

    /// The pointers of a matrix: the `i`th of a run along the batch.
    fn offset(&self, offsets: [isize; 3], strides: [isize; 3], i: isize) -> [*mut u8; 3] {
        let [lhs, rhs] = self.work.dims.sides;
        let mut ptrs = self.work.ptrs;
        for (ptr, k) in ptrs.iter_mut().zip([0, lhs, rhs]) {
            *ptr = ptr.wrapping_offset(offsets[k] + strides[k] * i);
        }
        ptrs
    }

    fn round(&self, ptrs: [*mut u8; 3], round: usize) -> Round {
        let [down, _, deep] = self.work.blocking.blocks;
        let (rest, step) = (round / deep, round % deep);
        Round {
            ptrs,
            at: [rest % down, rest / down, step],
        }
    }

    /// The part of a dim that task `task` of a block has: along rows, or along columns.
    fn part(&self, round: Round, dim: usize, task: usize) -> Range<usize> {
        let Dims { rows, cols, .. } = self.work.dims;
        let Blocking {
            block, task: size, ..
        } = *self.work.blocking;
        let first = round.at[dim] * block[dim];
        let end = [rows, cols][dim].numel().min(first + block[dim]);
        let start = (first + task * size[dim]).min(end);
        start..end.min(start + size[dim])
    }

    fn depth(&self, round: Round) -> Range<usize> {
        let (all, step) = (self.work.dims.depth.numel(), self.work.blocking.block[2]);
        let start = round.at[2] * step;
        start..all.min(start + step)
    }

    /// Bytes that a lane takes in this round's panels.
    fn lane(&self, round: Round) -> usize {
        let micro = &self.work.typed.micro;
        self.depth(round).len().div_ceil(micro.fold) * micro.step
    }

    /// Packs the part of a panel that belongs to one task: first those of the left operand, then those of the right.
    ///
    /// # Safety
    /// As for [`Worker::alone`]; nobody else packs this part, or reads it.
    unsafe fn pack(&mut self, round: Round, task: usize) {
        let Blocking {
            packs,
            task: size,
            blocks,
            ..
        } = *self.work.blocking;
        let typed = self.work.typed;
        let (side, task) = if task < packs[0] {
            (0, task)
        } else {
            (1, task - packs[0])
        };
        if side == 1 && blocks[2] == 1 && round.at[0] > 0 {
            // Packed for the blocks above.
            return;
        }
        let lane = self.lane(round);
        let part = self.part(round, side, task);
        let depth = self.depth(round);
        let Dims { rows, cols, .. } = self.work.dims;
        let lanes = match side {
            0 => self.rows.of(rows, part)[1],
            _ => self.cols.of(cols, part)[1],
        };
        let steps = self.steps.of(&self.work.dims.depth, depth)[side];
        let micro = &typed.micro;
        let slivers = Slivers {
            lanes: [micro.rows, micro.cols][side],
            unit: [micro.row_unit, micro.lanes][side],
        };
        // SAFETY: the caller's contract; the panel has room for every task's part.
        unsafe {
            let to = self.panels[side].add(task * size[side] * lane);
            (typed.pack)(to, slivers, round.ptrs[1 + side], lanes, steps);
        }
    }

    /// A sliver of an operand, from this lane on: in its panel, or where it lies.
    fn source(&self, round: Round, side: usize, from: usize, lanes: usize) -> Source {
        let Work {
            dims,
            typed,
            blocking,
            ..
        } = *self.work;
        let micro = &typed.micro;
        if let Some([lane, step]) = dims.direct[side] {
            let skipped = self.depth(round).start as isize * step;
            return Source {
                ptr: round.ptrs[1 + side].wrapping_offset(from as isize * lane + skipped),
                lane,
                step: step * micro.fold as isize,
            };
        }
        let before = from - round.at[side] * blocking.block[side];
        Source {
            ptr: self.panels[side].wrapping_add(before * self.lane(round)),
            lane: micro.step as isize,
            step: (lanes * micro.step) as isize,
        }
    }

    /// Multiplies the slivers of both panels that meet in one task.
    ///
    /// # Safety
    /// As for [`Worker::alone`]; nobody else does this task, and the panels are packed.
    unsafe fn multiply(&mut self, round: Round, task: usize) {
        let Work {
            typed, blocking, ..
        } = *self.work;
        let Typed { micro, .. } = *typed;
        let sliver = [micro.rows, micro.cols];
        let [down, across] = [task / blocking.tasks[1], task % blocking.tasks[1]];
        let steps = self.depth(round).len().div_ceil(micro.fold);
        let parts = [self.part(round, 0, down), self.part(round, 1, across)];
        let (first, last) = (round.at[2] == 0, round.at[2] + 1 == blocking.blocks[2]);
        let mut tile = MaybeUninit::<Tile>::uninit();
        let tile = tile.as_mut_ptr().cast::<u8>();
        let dst = round.ptrs[0];
        let slot = sliver[0] * sliver[1] * typed.sum_size;
        let dims = self.work.dims;
        for j in parts[1].clone().step_by(sliver[1]) {
            let wide = (parts[1].end - j).min(sliver[1]);
            let width = wide.next_multiple_of(micro.lanes);
            let b = self.source(round, 1, j, width);
            for i in parts[0].clone().step_by(sliver[0]) {
                let tall = (parts[0].end - i).min(sliver[0]);
                let height = tall.next_multiple_of(micro.row_unit);
                let a = self.source(round, 0, i, height);
                let run = micro.tile(height, width);
                // SAFETY: slivers that are packed or lie as both plans say, tiles that this task alone writes.
                unsafe {
                    let fits = height == tall && (width == wide || micro.reaches);
                    let place = match dims.plain {
                        Some(down) if fits => {
                            let at = i as isize * down + (j * typed.sum_size) as isize;
                            Some((dst.offset(at), down))
                        }
                        None if fits && typed.in_place => {
                            let rows = self.rows.of(&dims.rows, parts[0].clone())[0];
                            let cols = self.cols.of(&dims.cols, parts[1].clone())[0];
                            let rows = &rows[i - parts[0].start..][..tall];
                            let cols = &cols[j - parts[1].start..][..wide];
                            strided(rows)
                                .filter(|_| strided(cols) == Some(typed.sum_size as isize))
                                .map(|down| (dst.offset(rows[0] + cols[0]), down))
                        }
                        _ => None,
                    };
                    if let Some((to, stride)) = place {
                        let aligned = (to as usize | stride as usize).is_multiple_of(64);
                        let how = match first {
                            true if blocking.stream && aligned && width == wide => Store::Stream,
                            true => Store::Write,
                            false => Store::Add,
                        };
                        run(to, stride, wide, a, b, steps, how);
                        continue;
                    }
                    let waits = blocking.wait;
                    let to = if waits {
                        let [i, j] = [(0, i), (1, j)]
                            .map(|(k, at)| (at - round.at[k] * blocking.block[k]) / sliver[k]);
                        let slivers = blocking.block[1].div_ceil(sliver[1]);
                        self.sums.add((i * slivers + j) * slot)
                    } else {
                        tile
                    };
                    let stride = width * typed.sum_size;
                    let how = if waits && !first {
                        Store::Add
                    } else {
                        Store::Write
                    };
                    run(to, stride as isize, wide, a, b, steps, how);
                    if !waits || last {
                        let rows = self.rows.of(&dims.rows, parts[0].clone())[0];
                        let cols = self.cols.of(&dims.cols, parts[1].clone())[0];
                        let rows = &rows[i - parts[0].start..][..tall];
                        let cols = &cols[j - parts[1].start..][..wide];
                        (typed.merge)(to, stride, dst, rows, cols, !waits && !first);
                    }
                }
            }
        }
    }
}

#[repr(align(64))]
#[expect(dead_code, reason = "room for sums of any type")]
struct Tile([u8; TILE]);

/// The step from each position to the next, where it is the same for all of them.
fn strided(positions: &[isize]) -> Option<isize> {
    let step = match positions {
        [a, b, ..] => b - a,
        _ => return Some(0),
    };
    positions
        .windows(2)
        .all(|w| w[1] - w[0] == step)
        .then_some(step)
}
