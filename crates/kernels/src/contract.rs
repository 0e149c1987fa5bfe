//! Sums of products over any strides: matrix products, their batches, tensor contractions and convolutions.
//!
//! `dst[b, i, j] = Σ lhs[b, i, p] · rhs[b, p, j]` over all `p`, where each of `b`, `i`, `j` and `p` may stand for several dims.
//! Blocks of both operands are packed into slivers as the innermost loop wants them, whatever their strides, and
//! widened on the way; a tile of results stays in the precision of its sums until it is complete. Every result is
//! summed in the same order whatever the number of threads.

use crate::dot::{Row, row_times_matrix};
use crate::micro::{Factor, Micro, Sum, pack, unpack};
use crate::par::{num_threads, par_for};
use crate::with_element;
use half::{bf16, f16};
use osteon_spec::{DType, Plan};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Steps of a sum that are packed at a time: a sliver of them stays in the first-level cache.
const DEPTH: usize = 256;
/// The same for a single row.
const ROW_DEPTH: usize = 4096;
/// The most rows and columns of a tile: its packed operands stay in the second-level cache.
const ROWS: usize = 480;
const COLS: usize = 768;
/// Multiplications that are worth a thread.
const GRAIN: usize = 1 << 16;
/// Bytes to which scratch is aligned.
const ALIGN: usize = 64;

/// One dim of a contraction: its size, and the strides in bytes of destination, left and right operand.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The number of steps.
    pub size: usize,
    /// Bytes from one step to the next; 0 for an operand that lacks the dim.
    pub strides: [isize; 3],
}

/// A contraction, looked up for a dtype, its dims sorted by what they do.
#[derive(Debug)]
pub struct Contraction {
    batch: Plan<3>,
    /// Destination and left operand.
    rows: Plan<2>,
    /// Destination and right operand.
    cols: Plan<2>,
    /// Left and right operand.
    depth: Plan<2>,
    /// Which pointer is the left operand, and which the right.
    sides: [usize; 2],
    typed: Typed,
    shape: Tiles,
}

/// The parts of the work that know the elements' type.
#[derive(Clone, Copy, Debug)]
struct Typed {
    micro: Micro,
    sum_size: usize,
    pack: unsafe fn(*mut u8, usize, *const u8, &[isize], &[isize]),
    unpack: unsafe fn(*const u8, usize, *mut u8, &[isize], &[isize]),
    row: Row,
}

fn typed<T: Factor>() -> Typed {
    Typed {
        micro: T::Sum::micro(),
        sum_size: size_of::<T::Sum>(),
        pack: pack::<T>,
        unpack: unpack::<T>,
        row: row_times_matrix::<T>,
    }
}

/// The size of tiles, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Tiles {
    rows: usize,
    cols: usize,
    across: usize,
    down: usize,
    count: usize,
    workers: usize,
}

impl Contraction {
    /// The contraction in a dtype: `axes` are those of the destination, `summed` those that it lacks, each list from the
    /// outermost to the innermost. `None` for a dtype without products: `bool` and 8-bit floats.
    ///
    /// # Panics
    /// When the product of the sizes does not fit.
    pub fn new(dtype: DType, axes: &[Axis], summed: &[Axis]) -> Option<Contraction> {
        let typed = with_element!(int: dtype, T => typed::<T>())
            .or_else(|| with_element!(float: dtype, T => typed::<T>()))
            .or_else(|| with_element!(complex: dtype, T => typed::<T>()))
            .or_else(|| (dtype == DType::F16).then(typed::<f16>))
            .or_else(|| (dtype == DType::BF16).then(typed::<bf16>))?;
        // A dim that one operand lacks is a dim of the other's matrix, not of the batch.
        let of = |which: fn(&Axis) -> bool| axes.iter().filter(move |a| which(a));
        let batch = plan([0, 1, 2], of(|a| a.strides[1] != 0 && a.strides[2] != 0));
        let mut rows = plan([0, 1], of(|a| a.strides[2] == 0));
        let mut cols = plan([0, 2], of(|a| a.strides[1] == 0 && a.strides[2] != 0));
        let mut depth = plan([1, 2], summed.iter());
        let mut sides = [1, 2];
        if cols.numel() < rows.numel().min(typed.micro.cols) {
            // A tile is wider than high: the longer side goes across.
            (rows, cols) = (cols, rows);
            depth = depth.select([1, 0]);
            sides = [2, 1];
        }
        let shape = tiles(
            &typed.micro,
            batch.numel(),
            rows.numel(),
            cols.numel(),
            depth.numel(),
        );
        Some(Contraction {
            batch,
            rows,
            cols,
            depth,
            sides,
            typed,
            shape,
        })
    }

    /// Whether the left matrix is a single row: then nothing is packed but that.
    fn is_vector(&self) -> bool {
        self.rows.numel() == 1
    }

    /// The steps of a sum that are done at a time.
    fn chunk(&self) -> usize {
        if self.is_vector() { ROW_DEPTH } else { DEPTH }
    }

    /// The bytes of scratch that [`Contraction::run`] needs.
    pub fn scratch(&self) -> usize {
        self.shape.workers * self.parts().total() + ALIGN
    }

    fn parts(&self) -> Parts {
        let (typed, shape) = (&self.typed, &self.shape);
        let depth = self.depth.numel().min(self.chunk());
        let vector = self.is_vector();
        let rows = if vector {
            1
        } else {
            shape.rows.next_multiple_of(typed.micro.rows)
        };
        let cols = if vector {
            shape.cols
        } else {
            shape.cols.next_multiple_of(typed.micro.cols)
        };
        let sums = |n: usize| (n * typed.sum_size).next_multiple_of(ALIGN);
        let offsets = |n: usize| (n * size_of::<isize>()).next_multiple_of(ALIGN);
        Parts {
            lhs: sums(rows * depth),
            rhs: if vector {
                sums(depth)
            } else {
                sums(cols * depth)
            },
            tile: sums(rows * cols),
            rows: offsets(shape.rows),
            cols: offsets(shape.cols),
            depth: offsets(depth),
        }
    }

    /// Writes every element of the destination at `ptrs[0]`.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation) of all positions of the axes, of elements of the dtype; the
    /// destination overlaps no operand.
    ///
    /// # Panics
    /// When there is less scratch than [`Contraction::scratch`] says.
    pub unsafe fn run(&self, ptrs: [*mut u8; 3], scratch: &mut [MaybeUninit<u8>]) {
        assert!(scratch.len() >= self.scratch(), "too little scratch");
        let parts = self.parts();
        let base = scratch.as_mut_ptr().cast::<u8>();
        let work = Work {
            what: self,
            ptrs: [ptrs[0], ptrs[self.sides[0]], ptrs[self.sides[1]]],
            scratch: base.wrapping_add(base.align_offset(ALIGN)),
            parts,
        };
        let shape = &self.shape;
        let next = AtomicUsize::new(0);
        let chunk = (shape.count / (shape.workers * 8).max(1)).max(1);
        par_for(shape.workers, 1, |workers| {
            let work = &work;
            for worker in workers {
                loop {
                    let start = next.fetch_add(chunk, Ordering::Relaxed);
                    if start >= shape.count {
                        break;
                    }
                    for tile in start..shape.count.min(start + chunk) {
                        // SAFETY: the caller's contract; tiles are disjoint, and each worker has its own scratch.
                        unsafe { work.tile(tile, worker) };
                    }
                }
            }
        });
    }
}

/// A walk over these axes by these operands, in the order that suits the first of them.
fn plan<'a, const N: usize>(operands: [usize; N], axes: impl Iterator<Item = &'a Axis>) -> Plan<N> {
    let axes: SmallVec<[&Axis; 8]> = axes.collect();
    let shape: SmallVec<[usize; 8]> = axes.iter().map(|a| a.size).collect();
    let strides: [SmallVec<[isize; 8]>; N] =
        operands.map(|k| axes.iter().map(|a| a.strides[k]).collect());
    Plan::from_strides(&shape, [0; N], strides.each_ref().map(|s| &s[..])).sorted()
}

/// Tiles as large as the cache allows, but several for each thread.
fn tiles(micro: &Micro, batch: usize, rows: usize, cols: usize, depth: usize) -> Tiles {
    let vector = rows == 1;
    let (row_unit, col_unit) = (micro.rows, if vector { 64 } else { micro.cols });
    let mut tile = [rows.min(ROWS), cols.min(COLS)];
    let count = |[r, c]: [usize; 2]| batch * rows.div_ceil(r.max(1)) * cols.div_ceil(c.max(1));
    let work = batch
        .saturating_mul(rows)
        .saturating_mul(cols)
        .saturating_mul(depth.max(1));
    let threads = num_threads().min(work.div_ceil(GRAIN)).max(1);
    while threads > 1 && count(tile) < 3 * threads && tile[0] * tile[1] * depth > GRAIN {
        let [r, c] = tile;
        let smaller = if r > row_unit && (r >= c || c <= col_unit) {
            [(r / 2).next_multiple_of(row_unit), c]
        } else {
            [r, (c / 2).next_multiple_of(col_unit)]
        };
        if smaller == tile {
            break;
        }
        tile = smaller;
    }
    let count = count(tile);
    Tiles {
        rows: tile[0],
        cols: tile[1],
        across: cols.div_ceil(tile[1].max(1)),
        down: rows.div_ceil(tile[0].max(1)),
        count,
        workers: threads.min(count),
    }
}

/// Bytes of a worker's scratch.
#[derive(Clone, Copy)]
struct Parts {
    lhs: usize,
    rhs: usize,
    tile: usize,
    rows: usize,
    cols: usize,
    depth: usize,
}

impl Parts {
    fn total(&self) -> usize {
        self.lhs + self.rhs + self.tile + 2 * (self.rows + self.cols + self.depth)
    }
}

struct Work<'a> {
    what: &'a Contraction,
    ptrs: [*mut u8; 3],
    scratch: *mut u8,
    parts: Parts,
}

// SAFETY: threads read both operands and write disjoint tiles, each with scratch of its own.
unsafe impl Sync for Work<'_> {}

impl Work<'_> {
    /// # Safety
    /// The contract of [`Contraction::run`]; nobody else does this tile or uses this worker's scratch.
    unsafe fn tile(&self, tile: usize, worker: usize) {
        let Contraction {
            batch,
            rows,
            cols,
            depth,
            typed,
            shape,
            sides,
            ..
        } = self.what;
        let parts = &self.parts;
        let mut rest = self.scratch.wrapping_add(worker * parts.total());
        let mut take = |bytes: usize| {
            let part = rest;
            rest = rest.wrapping_add(bytes);
            part
        };
        let (lhs, rhs, sums) = (take(parts.lhs), take(parts.rhs), take(parts.tile));
        let mut lists = || {
            [
                take(parts.rows),
                take(parts.rows),
                take(parts.cols),
                take(parts.cols),
                take(parts.depth),
                take(parts.depth),
            ]
        };
        let [row_dst, row_lhs, col_dst, col_rhs, step_lhs, step_rhs] = lists();
        let (matrix, col) = (tile / shape.across, tile % shape.across);
        let (matrix, row) = (matrix / shape.down, matrix % shape.down);
        let part = |at: usize, step: usize, size: usize| at * step..size.min((at + 1) * step);
        let mut ptrs = self.ptrs;
        batch.for_each_run_in(matrix..matrix + 1, |offsets, _, _| {
            let offsets = [offsets[0], offsets[sides[0]], offsets[sides[1]]];
            for (ptr, offset) in ptrs.iter_mut().zip(offsets) {
                *ptr = ptr.wrapping_offset(offset);
            }
        });
        let [dst, from_lhs, from_rhs] = ptrs;
        // SAFETY: each list has room for as many positions as a tile has rows, columns or steps.
        let (row_at, col_at) = unsafe {
            (
                positions(
                    rows,
                    part(row, shape.rows, rows.numel()),
                    [row_dst, row_lhs],
                ),
                positions(
                    cols,
                    part(col, shape.cols, cols.numel()),
                    [col_dst, col_rhs],
                ),
            )
        };
        let vector = self.what.is_vector();
        let (height, width) = (typed.micro.rows, typed.micro.cols);
        let size = typed.sum_size;
        let across = col_at[0].len();
        // A sum of nothing is a step of nothing.
        for start in (0..depth.numel().max(1)).step_by(self.what.chunk()) {
            let first = start == 0;
            let steps = start..depth.numel().min(start + self.what.chunk());
            let n = steps.len();
            // SAFETY: positions of the plans; scratch has room for a tile's operands and sums.
            unsafe {
                let step_at = positions(depth, steps, [step_lhs, step_rhs]);
                if vector {
                    (typed.pack)(lhs, 1, from_lhs, row_at[1], step_at[0]);
                    (typed.row)(sums, lhs, from_rhs, col_at[1], step_at[1], rhs, first);
                    continue;
                }
                for j in (0..across).step_by(width) {
                    let lanes = &col_at[1][j..across.min(j + width)];
                    (typed.pack)(rhs.add(j * n * size), width, from_rhs, lanes, step_at[1]);
                }
                for i in (0..row_at[0].len()).step_by(height) {
                    let lanes = &row_at[1][i..row_at[1].len().min(i + height)];
                    (typed.pack)(lhs.add(i * n * size), height, from_lhs, lanes, step_at[0]);
                }
                let mut sums = sums;
                for j in (0..across).step_by(width) {
                    for i in (0..row_at[0].len()).step_by(height) {
                        let (a, b) = (lhs.add(i * n * size), rhs.add(j * n * size));
                        (typed.micro.run)(sums, a, b, n, first);
                        sums = sums.add(height * width * size);
                    }
                }
            }
        }
        // SAFETY: all sums are complete, and the tile's elements may be written.
        unsafe {
            if vector {
                (typed.unpack)(sums, across, dst, row_at[0], col_at[0]);
                return;
            }
            let mut sums = sums;
            for cols in col_at[0].chunks(width) {
                for rows in row_at[0].chunks(height) {
                    (typed.unpack)(sums, width, dst, rows, cols);
                    sums = sums.add(height * width * size);
                }
            }
        }
    }
}

/// The positions of two operands along a part of a walk.
///
/// # Safety
/// Both lists have room for the part, and nobody else uses them meanwhile.
unsafe fn positions<'a>(
    plan: &Plan<2>,
    part: Range<usize>,
    lists: [*mut u8; 2],
) -> [&'a [isize]; 2] {
    let len = part.len();
    let lists = lists.map(<*mut u8>::cast::<isize>);
    let mut filled = 0;
    plan.for_each_run_in(part, |[a, b], len, [da, db]| {
        for i in 0..len {
            // SAFETY: the caller's contract: runs add up to the part.
            unsafe {
                lists[0].add(filled + i).write(a + da * i as isize);
                lists[1].add(filled + i).write(b + db * i as isize);
            }
        }
        filled += len;
    });
    // SAFETY: filled above, as the walk reports every element of the part.
    lists.map(|list| unsafe { std::slice::from_raw_parts(list, len) })
}
