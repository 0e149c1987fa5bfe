//! Copies whose source is dense along another dim than the destination: blocks of a matrix.

use super::{GRAIN, Pointers};
use crate::par::par_for;
use crate::runs::{Side, move_rows};
use crate::stream::{self, LINE};
use crate::transpose::{Matrix, Turner, least, turner};
use osteon_spec::{Plan, PlanDim};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes of a block that waits in the cache to go past it.
const STAGE: usize = 1 << 15;

/// Blocks that a thread copies one after the other before it asks for more work.
const UNIT: usize = 16;

/// Bytes between columns from which on the next column lies in another page.
const PAGE: isize = 4096;

/// The dim along which the source lies closer together than along the inner one, if it then shares lines.
pub(super) fn dim(plan: &Plan<2>) -> Option<usize> {
    let (inner, outer) = plan.dims().split_first()?;
    let apart = |d: &PlanDim<2>| d.strides[1].unsigned_abs();
    let (at, closest) = outer
        .iter()
        .enumerate()
        .filter(|(_, d)| apart(d) > 0)
        .min_by_key(|(_, d)| apart(d))?;
    (apart(closest) < apart(inner).min(LINE)).then_some(at + 1)
}

/// Copies operand 1 to operand 0 in blocks along the inner dim and `dim`.
///
/// # Safety
/// As [`crate::copy`].
pub(super) unsafe fn copy(plan: &Plan<2>, dim: usize, at: Pointers, width: usize) {
    let dims = plan.dims();
    // Lines of many rows at once compete for the same few places of a cache.
    let task = Task::new(plan, dim, at, width);
    let rest = dims[1..].iter().enumerate().filter(|(i, _)| i + 1 != dim);
    let outer = Plan::from_dims(plan.offsets(), rest.map(|(_, d)| *d));
    let units = task.units();
    let bytes = plan.numel() * width / (outer.numel() * units);
    par_for(outer.numel() * units, GRAIN / bytes.max(1), |range| {
        let task = &task;
        let mut before = range.start / units * units;
        let matrices = range.start / units..range.end.div_ceil(units);
        outer.for_each_run_in(matrices, |[d, s], count, [next_d, next_s]| {
            for i in 0..count as isize {
                let own = range.start.saturating_sub(before)..units.min(range.end - before);
                // SAFETY: the units of a matrix whose positions are the plan's.
                unsafe { task.run(d + i * next_d, s + i * next_s, own, next_s) };
                before += units;
            }
        });
        if task.streamed {
            stream::fence();
        }
    });
}

/// How a matrix of rows (along which the source is closest together) and columns (along which the destination is) is
/// copied.
struct Task {
    at: Pointers,
    rows: PlanDim<2>,
    cols: PlanDim<2>,
    width: usize,
    /// Where both are dense and large enough for registers.
    turner: Option<Turner>,
    streamed: bool,
    /// Whether blocks follow each other from row to row, not from column to column.
    down: bool,
    /// Rows and columns of a block.
    block: [usize; 2],
    /// No block has fewer, or as many more than it should have.
    least: usize,
}

// SAFETY: threads take disjoint blocks of the destination, and nobody else writes the source.
unsafe impl Sync for Task {}

#[repr(align(64))]
struct Stage(MaybeUninit<[u8; STAGE]>);

impl Task {
    fn new(plan: &Plan<2>, dim: usize, at: Pointers, width: usize) -> Task {
        let (cols, rows) = (plan.dims()[0], plan.dims()[dim]);
        let (dense, least, line) = (width as isize, least(width), LINE / width);
        let turned = (cols.strides[0], rows.strides[1]) == (dense, dense)
            && rows.size.min(cols.size) >= least;
        // Lines of many rows at once compete for the same few places of a cache: it holds less of them than of a run.
        let packed = cols.strides[0] == dense && rows.strides[0] == (cols.size * width) as isize;
        let narrow = cols.size <= line;
        let streamed = (turned || narrow && packed) && stream::pays(2 * plan.numel() * width);
        // Whether all rows of the destination begin on a line.
        let first = at.dst as isize + plan.offsets()[0];
        let starts = plan.dims()[1..]
            .iter()
            .fold(first, |bits, d| bits | d.strides[0]);
        let aligned = starts % LINE as isize == 0;
        let block = match () {
            // A line of each column is read as a whole; a row is written in whole lines, or in so many that those
            // at its ends count for little.
            () if turned && streamed && !aligned => {
                [line, (STAGE / (line + least) - LINE) / width - least]
            }
            () if turned => [line, 2 * line],
            // Long loops along either side.
            () if narrow => [STAGE / 2 / (cols.size * width), line],
            () => [line, 16 * line],
        };
        Task {
            at,
            rows,
            cols,
            width,
            turner: turned.then(|| turner(width)),
            streamed,
            // Reads go on in the same page.
            down: cols.strides[1].abs() >= PAGE,
            block,
            least: if turned { least } else { 1 },
        }
    }

    /// Units of work of a matrix: some blocks that follow each other.
    fn units(&self) -> usize {
        let [high, wide] = self.unit();
        count(self.rows.size, high, self.least) * count(self.cols.size, wide, self.least)
    }

    fn unit(&self) -> [usize; 2] {
        let [high, wide] = self.block;
        if self.down {
            [UNIT * high, wide]
        } else {
            [high, UNIT * wide]
        }
    }

    /// Copies these units of the matrix at these byte offsets; the next one lies `next` bytes from it in the source.
    ///
    /// # Safety
    /// It lies in both.
    unsafe fn run(&self, d: isize, s: isize, units: Range<usize>, next: isize) {
        let [high, wide] = self.unit();
        let rows = count(self.rows.size, high, self.least);
        let cols = count(self.cols.size, wide, self.least);
        let mut stage = Stage(MaybeUninit::uninit());
        for unit in units {
            let (r, c) = if self.down {
                (unit % rows, unit / rows)
            } else {
                (unit / cols, unit % cols)
            };
            let all_rows = nth(self.rows.size, high, self.least, r);
            let all_cols = nth(self.cols.size, wide, self.least, c);
            let [high, wide] = self.block;
            for r in 0..count(all_rows.len(), high, self.least) {
                let rows = nth(all_rows.len(), high, self.least, r);
                for c in 0..count(all_cols.len(), wide, self.least) {
                    let cols = nth(all_cols.len(), wide, self.least, c);
                    let first = [all_rows.start + rows.start, all_cols.start + cols.start];
                    // Hardware foresees no step to another column or matrix.
                    let ahead = match self.down {
                        true if first[0] + rows.len() < self.rows.size => {
                            rows.len() as isize * self.rows.strides[1]
                        }
                        true => next - first[0] as isize * self.rows.strides[1],
                        false if first[1] + cols.len() < self.cols.size => {
                            cols.len() as isize * self.cols.strides[1]
                        }
                        false => next - first[1] as isize * self.cols.strides[1],
                    };
                    let at = |k: usize| {
                        first[0] as isize * self.rows.strides[k]
                            + first[1] as isize * self.cols.strides[k]
                    };
                    // SAFETY: the block lies in the matrix.
                    unsafe {
                        let to = self.at.dst.offset(d + at(0));
                        let from = self.at.src.offset(s + at(1));
                        self.block(to, from, rows.len(), cols.len(), ahead, &mut stage);
                    }
                }
            }
        }
    }

    /// # Safety
    /// The block lies in both.
    unsafe fn block(
        &self,
        to: *mut u8,
        from: *const u8,
        rows: usize,
        cols: usize,
        ahead: isize,
        stage: &mut Stage,
    ) {
        let (width, [to_row, from_row]) = (self.width, self.rows.strides);
        let [to_col, from_col] = self.cols.strides;
        let Some(turner) = self.turner else {
            let (to_cols, from_cols) = (
                Side {
                    at: to,
                    step: to_row,
                    row: to_col,
                },
                Side {
                    at: from,
                    step: from_row,
                    row: from_col,
                },
            );
            // SAFETY: the caller's contract; a block fits the stage, and is one run of the destination if it is streamed.
            unsafe {
                if self.streamed {
                    let staged = stage.0.as_mut_ptr().cast::<u8>();
                    move_rows(
                        Side {
                            at: staged,
                            ..to_cols
                        },
                        from_cols,
                        rows,
                        cols,
                        width,
                    );
                    stream::store(to, staged, rows * cols * width);
                } else if rows > cols {
                    move_rows(to_cols, from_cols, rows, cols, width);
                } else {
                    move_rows(to_cols.turned(), from_cols.turned(), cols, rows, width);
                }
            }
            return;
        };
        for c in 0..cols as isize {
            stream::prefetch(from.wrapping_offset(ahead + c * from_col));
        }
        let mut matrix = Matrix {
            to,
            to_row,
            from,
            from_col,
            rows,
            cols,
        };
        // SAFETY: the caller's contract; a block fits the stage.
        unsafe {
            if !self.streamed {
                return turner(&matrix);
            }
            let pitch = (cols * width).next_multiple_of(LINE);
            debug_assert!(rows * pitch <= STAGE);
            let staged = stage.0.as_mut_ptr().cast::<u8>();
            (matrix.to, matrix.to_row) = (staged, pitch as isize);
            turner(&matrix);
            for r in 0..rows {
                stream::store(
                    to.offset(r as isize * to_row),
                    staged.add(r * pitch),
                    cols * width,
                );
            }
        }
    }
}

/// How many parts of `step` make `len` when none may be shorter than `least`: the last one takes what would be.
fn count(len: usize, step: usize, least: usize) -> usize {
    ((len + step - least) / step).max(1)
}

/// The `i`th of these parts.
fn nth(len: usize, step: usize, least: usize, i: usize) -> Range<usize> {
    let end = if i + 1 == count(len, step, least) {
        len
    } else {
        (i + 1) * step
    };
    i * step..end
}
