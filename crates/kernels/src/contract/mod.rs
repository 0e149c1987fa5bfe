//! Sums of products over any strides: matrix products, their batches, tensor contractions and convolutions.
//!
//! `dst[b, i, j] = Σ lhs[b, i, p] · rhs[b, p, j]` over all `p`, where each of `b`, `i`, `j` and `p` may stand for several dims.
//! Blocks of operands are packed once into slivers as the innermost loop wants them, whatever their strides, and widened on
//! the way; threads share what is packed. What would be packed for a few products is read where it lies. Sums grow in the
//! destination itself where it has their precision. Every result is summed in the same order whatever the number of threads.

mod blocking;
mod list;
mod micro;
mod pack;
mod row;
mod typed;
mod work;

use crate::par::par_for;
use crate::simd::level;
use crate::stream;
use blocking::Blocking;
use osteon_spec::{DType, Plan};
use row::RowWork;
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use typed::Typed;
use work::{Tickets, Work};

/// Bytes to which scratch is aligned.
const ALIGN: usize = 64;
/// Rows that are so many bytes apart fall into the same lines of a first-level cache, which has room for a few of them:
/// tiles that read them where they lie are lower.
const PAGE: isize = 4096;
const WAYS: usize = 6;
/// Lanes that are few beside those of the other operand: they are packed as vectors, and the others are read where they lie.
const FEW: usize = 64;

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
    dims: Dims,
    typed: Typed,
    blocking: Blocking,
}

/// What there is to multiply.
#[derive(Debug)]
struct Dims {
    batch: Plan<3>,
    /// Destination and left operand.
    rows: Plan<2>,
    /// Destination and right operand.
    cols: Plan<2>,
    /// Left and right operand.
    depth: Plan<2>,
    /// Which pointer is the left operand, and which the right.
    sides: [usize; 2],
    /// The distance of the destination's rows, where tiles of sums are stored in it as they are.
    plain: Option<isize>,
    /// Of an operand that is read where it lies, the distances of its lanes and of its steps.
    direct: [Option<[isize; 2]>; 2],
}

/// The distances from one position of a walk to the next, where there is but one for each operand.
fn line(plan: &Plan<2>) -> Option<[isize; 2]> {
    match plan.dims() {
        [] => Some([0; 2]),
        [dim] => Some(dim.strides),
        _ => None,
    }
}

impl Contraction {
    /// The contraction in a dtype: `axes` are those of the destination, `summed` those that it lacks, each list from the
    /// outermost to the innermost. `None` for a dtype without products: `bool` and 8-bit floats.
    ///
    /// # Panics
    /// When the product of the sizes does not fit.
    pub fn new(dtype: DType, axes: &[Axis], summed: &[Axis]) -> Option<Contraction> {
        Contraction::with(Typed::new(dtype, level())?, dtype, axes, summed)
    }

    fn with(mut typed: Typed, dtype: DType, axes: &[Axis], summed: &[Axis]) -> Option<Contraction> {
        // A dim that one operand lacks is a dim of the other's matrix, not of the batch. One that both lack (a gradient that
        // was expanded has no strides) joins the columns if there are rows without it: matrices are better than long lines.
        let of = |lacks: [bool; 2]| {
            let is = move |a: &&Axis| lacks == [a.strides[1] == 0, a.strides[2] == 0];
            axes.iter().filter(is)
        };
        let has_rows = of([false, true]).any(|a| a.size > 1);
        let both = |more: bool| of([true, true]).filter(move |_| more);
        let batch = plan([0, 1, 2], of([false, false]));
        let mut rows = plan([0, 1], both(!has_rows).chain(of([false, true])));
        let mut cols = plan([0, 2], both(has_rows).chain(of([true, false])));
        // Sums go along the operand of more lanes: more of it is packed.
        let mut depth = match rows.numel() < cols.numel() {
            true => plan([2, 1], summed.iter()).select([1, 0]),
            false => plan([1, 2], summed.iter()),
        };
        let mut sides = [1, 2];
        // A tile is written along its columns: that is where the destination is dense, unless they would not fill a vector.
        let narrow = |plan: &Plan<2>| 2 * plan.numel() <= typed.micro.lanes;
        let dense = |plan: &Plan<2>| plan.inner().strides[0] == dtype.size() as isize;
        let few = |plan: &Plan<2>| plan.numel() <= FEW;
        // Many lanes that meet few are read where they lie, if they are a line.
        let many = match [few(&rows), few(&cols)] {
            [true, false] if rows.numel() > 1 => line(&cols),
            [false, true] if cols.numel() > 1 => line(&rows),
            _ => None,
        }
        .filter(|_| typed.reaches(dtype.size()));
        let swap = match (narrow(&rows), narrow(&cols)) {
            // As vectors if they lie as such, else one by one.
            _ if let Some([_, apart]) = many => few(&cols) == (apart == dtype.size() as isize),
            (false, false) => dense(&rows) && !dense(&cols),
            (true, true) => cols.numel() < rows.numel(),
            (_, narrow) => narrow,
        };
        if swap {
            (rows, cols) = (cols, rows);
            depth = depth.select([1, 0]);
            sides = [2, 1];
        }
        let sizes = [&rows, &cols, &depth].map(Plan::numel);
        let bytes = batch.numel() * sizes[0] * sizes[1] * dtype.size();
        let lines = [line(&rows), line(&cols), line(&depth)];
        let direct = typed.direct(dtype.size(), sizes, lines);
        if let Some([apart, _]) = direct[0]
            && apart % PAGE == 0
        {
            typed.micro.rows = typed.micro.rows.min(WAYS);
        }
        let plain = match lines {
            [Some([down, _]), Some([across, _]), _] if typed.in_place => {
                (across == typed.sum_size as isize || sizes[1] == 1).then_some(down)
            }
            _ => None,
        };
        let alone = direct.map(|d| d.is_some());
        let blocking = Blocking::new(&typed, batch.numel(), sizes, alone, stream::pays(bytes));
        Some(Contraction {
            dims: Dims {
                batch,
                rows,
                cols,
                depth,
                sides,
                plain,
                direct,
            },
            typed,
            blocking,
        })
    }

    /// The product of a single row with a matrix, of which nothing is packed.
    fn row(&self) -> Option<RowWork<'_>> {
        (self.dims.rows.numel() == 1).then(|| RowWork::new(&self.dims, &self.typed))
    }

    /// The bytes of scratch that [`Contraction::run`] needs.
    pub fn scratch(&self) -> usize {
        ALIGN
            + match self.row() {
                Some(row) => row.scratch(),
                None => self.blocking.scratch(),
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
        let base = scratch.as_mut_ptr().cast::<u8>();
        let scratch = base.wrapping_add(base.align_offset(ALIGN));
        let ptrs = [0, self.dims.sides[0], self.dims.sides[1]].map(|k| ptrs[k]);
        if let Some(row) = self.row() {
            // SAFETY: the caller's contract.
            return unsafe { row.run(ptrs, scratch) };
        }
        let blocking = &self.blocking;
        let work = Work::new(&self.dims, &self.typed, blocking, ptrs);
        let matrices = self.dims.batch.numel();
        let (tickets, next) = (Tickets::default(), AtomicUsize::new(0));
        let chunk = (matrices / (blocking.workers * 8)).max(1);
        let scratch = work::Shared(scratch);
        par_for(blocking.workers, 1, |workers| {
            for worker in workers {
                let mut worker = work.worker(scratch.get(), worker);
                if blocking.team {
                    // SAFETY: the caller's contract; all that work on it share these tickets.
                    unsafe { worker.in_team(matrices, &tickets) };
                } else {
                    loop {
                        let start = next.fetch_add(chunk, Ordering::Relaxed);
                        if start >= matrices {
                            break;
                        }
                        // SAFETY: the caller's contract; matrices are disjoint, and each worker has its own scratch.
                        unsafe { worker.alone(start..matrices.min(start + chunk)) };
                    }
                }
                if blocking.stream {
                    stream::fence();
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

#[cfg(test)]
mod tests;
