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
const STAGE: usize = 48 << 10;

/// Blocks that a thread copies one after the other before it asks for more work.
const UNIT: usize = 16;

/// Bytes of a row of the destination up to which it is written together with the next ones.
const NARROW: usize = 512;

/// The same where its rows begin on lines, with four lines of each column: memory serves what lies together faster.
const WIDE: usize = 256;

/// Bytes of a column of a block from which on hardware foresees the rest of it.
const FORESEEN: usize = 1024;

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
    let task = Task::new(plan, dim, at, width);
    let beside = task.beside.size;
    let rest = dims.iter().enumerate().skip(1).filter(|(i, _)| *i != dim);
    let rest = rest.map(|(i, d)| match i {
        1 => PlanDim {
            size: d.size / beside,
            strides: d.strides.map(|s| s * beside as isize),
        },
        _ => *d,
    });
    let outer = Plan::from_dims(plan.offsets(), rest);
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
    /// Matrices whose rows go on where those of the one before end, copied together.
    beside: PlanDim<2>,
    width: usize,
    /// Where both are dense and large enough for registers.
    turner: Option<Turner>,
    streamed: bool,
    /// Whether blocks follow each other from row to row, not from column to column.
    down: bool,
    /// Rows and columns of a block.
    block: [usize; 2],
    /// Blocks of a unit.
    unit: usize,
    /// No block has fewer rows and columns, or as many more than it should have.
    least: [usize; 2],
}

// SAFETY: threads take disjoint blocks of the destination, and nobody else writes the source.
unsafe impl Sync for Task {}

#[repr(align(64))]
struct Stage(MaybeUninit<[u8; STAGE]>);

impl Task {
    fn new(plan: &Plan<2>, dim: usize, at: Pointers, width: usize) -> Task {
        let (cols, rows) = (plan.dims()[0], plan.dims()[dim]);
        let (dense, line) = (width as isize, LINE / width);
        let row = cols.size * width;
        let matrix = Matrix {
            to: at.dst,
            to_row: rows.strides[0],
            from: at.src,
            from_col: cols.strides[1],
            rows: rows.size,
            cols: cols.size,
        };
        let turned = (cols.strides[0], rows.strides[1]) == (dense, dense) && matrix.fits(width);
        let least = [rows.size, cols.size].map(|n| if turned { least(width).min(n) } else { 1 });
        // Columns of the source that follow each other and are short.
        let dense_cols = rows.strides[1] == dense
            && cols.strides[1] == (rows.size * width) as isize
            && rows.size <= line;
        // Rows of the destination that follow each other and are short: blocks are runs.
        let packed = cols.strides[0] == dense && rows.strides[0] == row as isize;
        let narrow = row <= if packed { NARROW } else { LINE };
        let next = plan.dims()[1];
        let beside =
            match row <= NARROW / 2 && turned && dim != 1 && next.strides[0] == row as isize {
                true => (1..=NARROW / row)
                    .rev()
                    .find(|n| next.size.is_multiple_of(*n))
                    .unwrap_or(1),
                false => 1,
            };
        // Lines of many rows at once compete for the same few places of a cache: it holds less of them than of a run.
        let streamed = (turned || narrow && packed || dense_cols && cols.strides[0] == dense)
            && stream::pays(2 * plan.numel() * width);
        // Whether all rows of the destination begin on a line.
        let first = at.dst as isize + plan.offsets()[0];
        let starts = plan.dims()[1..]
            .iter()
            .fold(first, |bits, d| bits | d.strides[0]);
        let aligned = starts % LINE as isize == 0;
        let pitch = |row: usize| {
            if packed {
                row
            } else {
                row.next_multiple_of(LINE)
            }
        };
        let wide = (STAGE / (WIDE + LINE) - least[0]) / line * line;
        let block = match () {
            () if beside > 1 => [STAGE / pitch(beside * row) - least[0], cols.size],
            // Long loops along either side.
            () if narrow => [STAGE / 3 / pitch(row), cols.size],
            () if dense_cols => [rows.size, STAGE / 3 / rows.size / LINE * line],
            // A line of each column is read as a whole; a row is written in so many lines that those at its ends
            // count for little.
            () if turned && streamed && !aligned => {
                [line, (STAGE / (line + least[1]) - LINE) / width - least[1]]
            }
            () if turned && streamed && width <= 4 => [wide.min(4 * line), WIDE / width],
            () if turned => [line, 2 * line],
            () => [line, 16 * line],
        };
        let bytes = block[0].min(rows.size) * block[1].min(cols.size) * width * beside;
        Task {
            at,
            rows,
            cols,
            beside: PlanDim {
                size: beside,
                strides: [row as isize, next.strides[1]],
            },
            width,
            turner: turned.then(|| turner(width)),
            streamed,
            // Reads go on in the same page.
            down: cols.strides[1].abs() >= PAGE,
            block,
            unit: if streamed {
                (STAGE / bytes).clamp(1, UNIT)
            } else {
                UNIT
            },
            least,
        }
    }

    /// Units of work of a matrix: some blocks that follow each other.
    fn units(&self) -> usize {
        let ([high, wide], [least_rows, least_cols]) = (self.unit(), self.least);
        count(self.rows.size, high, least_rows) * count(self.cols.size, wide, least_cols)
    }

    fn unit(&self) -> [usize; 2] {
        let [high, wide] = self.block;
        if self.down {
            [self.unit * high, wide]
        } else {
            [high, self.unit * wide]
        }
    }

    /// Copies these units of the matrix at these byte offsets; the next one lies `next` bytes from it in the source.
    ///
    /// # Safety
    /// It lies in both.
    unsafe fn run(&self, d: isize, s: isize, units: Range<usize>, next: isize) {
        let ([high, wide], [least_rows, least_cols]) = (self.unit(), self.least);
        let rows = count(self.rows.size, high, least_rows);
        let cols = count(self.cols.size, wide, least_cols);
        let mut stage = Stage(MaybeUninit::uninit());
        if self.rows.size <= self.block[0] && self.cols.size <= self.block[1] {
            // SAFETY: the caller's contract.
            return unsafe {
                let (to, from) = (self.at.dst.offset(d), self.at.src.offset(s));
                self.block(to, from, self.rows.size, self.cols.size, next, &mut stage);
            };
        }
        for unit in units {
            let (r, c) = if self.down {
                (unit % rows, unit / rows)
            } else {
                (unit / cols, unit % cols)
            };
            let all_rows = nth(self.rows.size, high, least_rows, r);
            let all_cols = nth(self.cols.size, wide, least_cols, c);
            let [high, wide] = self.block;
            for r in 0..count(all_rows.len(), high, least_rows) {
                let rows = nth(all_rows.len(), high, least_rows, r);
                for c in 0..count(all_cols.len(), wide, least_cols) {
                    let cols = nth(all_cols.len(), wide, least_cols, c);
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
        let staged = stage.0.as_mut_ptr().cast::<u8>();
        let (row, to_row) = (self.beside.size * cols * self.width, self.rows.strides[0]);
        // SAFETY: the caller's contract; a block fits the stage.
        unsafe {
            if !self.streamed && self.beside.size == 1 {
                return self.turn((to, to_row), from, rows, cols, ahead);
            }
            // A row after the other, or each from a line on.
            let run = to_row == row as isize;
            let pitch = if run { row } else { row.next_multiple_of(LINE) };
            debug_assert!(rows * pitch <= STAGE);
            for i in 0..self.beside.size as isize {
                let [to, from] = [
                    staged.offset(i * self.beside.strides[0]).cast_const(),
                    from.offset(i * self.beside.strides[1]),
                ];
                let ahead = match i + 1 < self.beside.size as isize {
                    true => self.beside.strides[1],
                    false => ahead - i * self.beside.strides[1],
                };
                self.turn((to.cast_mut(), pitch as isize), from, rows, cols, ahead);
            }
            if !self.streamed {
                let (to, from) = (
                    Side {
                        at: to,
                        step: self.width as isize,
                        row: to_row,
                    },
                    Side {
                        at: staged.cast_const(),
                        step: self.width as isize,
                        row: pitch as isize,
                    },
                );
                move_rows(to, from, row / self.width, rows, self.width);
            } else if run {
                stream::store(to, staged, rows * row);
            } else {
                for r in 0..rows {
                    stream::store(to.offset(r as isize * to_row), staged.add(r * pitch), row);
                }
            }
        }
    }

    /// Copies a block of one matrix to where its rows are this far apart.
    ///
    /// # Safety
    /// The block lies in both.
    unsafe fn turn(
        &self,
        (to, to_row): (*mut u8, isize),
        from: *const u8,
        rows: usize,
        cols: usize,
        ahead: isize,
    ) {
        let [to_col, from_col] = self.cols.strides;
        let Some(turner) = self.turner else {
            let (to, from) = (
                Side {
                    at: to,
                    step: to_row,
                    row: to_col,
                },
                Side {
                    at: from,
                    step: self.rows.strides[1],
                    row: from_col,
                },
            );
            // SAFETY: the caller's contract.
            return unsafe {
                if rows > cols {
                    move_rows(to, from, rows, cols, self.width)
                } else {
                    move_rows(to.turned(), from.turned(), cols, rows, self.width)
                }
            };
        };
        // Strips of columns where these are high, so that not all of a block is asked for at once.
        let [_, least] = self.least;
        let strip = if rows * self.width >= 2 * LINE {
            LINE / self.width
        } else {
            cols
        };
        for i in 0..count(cols, strip, least) {
            let part = nth(cols, strip, least, i);
            let at = part.start as isize;
            if rows * self.width < FORESEEN && from_col.unsigned_abs() >= 2 * LINE {
                let lines = (rows * self.width).div_ceil(LINE);
                for c in part.clone() {
                    let next = from.wrapping_offset(ahead + c as isize * from_col);
                    for line in 0..lines {
                        stream::prefetch(next.wrapping_add(line * LINE));
                    }
                }
            }
            // SAFETY: the caller's contract.
            unsafe {
                turner(&Matrix {
                    to: to.add(part.start * self.width),
                    to_row,
                    from: from.offset(at * from_col),
                    from_col,
                    rows,
                    cols: part.len(),
                })
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
