//! Walks in tiles, for operands that are dense along different dims.

use crate::operand::BLOCK_BYTES;
use osteon_spec::{Plan, PlanDim};

/// Elements of a row of a tile, at most: rows are runs that a loop does in one call.
pub(crate) const SIDE: usize = 256;

/// Bytes of the columns of a tile: a cache line, so that each line of an operand that lies across
/// is read once, by one tile.
const LINE: usize = 64;
const _: () = assert!(SIDE * LINE <= BLOCK_BYTES);

/// Tiles with fewer rows or columns are mostly edge.
const LEAST: usize = 8;

/// The tiles of a plan: their rows lie along the inner dim, their columns along another one, along
/// which at least one input is dense that is not dense along the inner one.
pub(crate) struct Tiles<const N: usize> {
    inner: PlanDim<N>,
    outer: PlanDim<N>,
    /// The dims around the matrix of these two.
    around: Plan<N>,
    widths: [usize; N],
    is_across: [bool; N],
    /// Rows and columns of a tile that lies at no edge.
    rows: usize,
    cols: usize,
}

/// One of them.
pub(crate) struct Tile<const N: usize> {
    pub(crate) offsets: [isize; N],
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

impl<const N: usize> Tiles<N> {
    /// The tiles of a plan with elements of these bytes, if they pay.
    #[inline]
    pub(crate) fn new(plan: &Plan<N>, widths: [usize; N]) -> Option<Tiles<N>> {
        let (inner, rest) = plan.dims().split_first()?;
        let lies_across =
            |k: usize| k > 0 && inner.strides[k] != 0 && inner.strides[k] != widths[k] as isize;
        if inner.size < LEAST || !(1..N).any(lies_across) {
            return None;
        }
        let is_dense =
            |d: &PlanDim<N>, k: usize| d.size >= LEAST && d.strides[k] == widths[k] as isize;
        let dim = (1..N)
            .filter(|&k| lies_across(k))
            .find_map(|k| rest.iter().position(|d| is_dense(d, k)))?;
        let outer = rest[dim];
        let is_across = std::array::from_fn(|k| lies_across(k) && is_dense(&outer, k));
        let widest = (0..N).filter(|&k| is_across[k]).map(|k| widths[k]).max()?;
        let around = rest.iter().enumerate().filter(|(d, _)| *d != dim);
        Some(Tiles {
            inner: *inner,
            outer,
            around: Plan::from_dims(plan.offsets(), around.map(|(_, d)| *d)),
            widths,
            is_across,
            rows: (LINE / widest).min(outer.size),
            cols: SIDE.min(inner.size),
        })
    }

    /// Whether an operand is to be turned.
    pub(crate) fn is_across(&self, k: usize) -> bool {
        self.is_across[k]
    }

    /// Bytes from one element of a row to the next, for turned operands in their tile.
    pub(crate) fn steps(&self) -> [isize; N] {
        std::array::from_fn(|k| match self.is_across[k] {
            true => self.widths[k] as isize,
            false => self.inner.strides[k],
        })
    }

    /// Bytes from one row to the next.
    pub(crate) fn down(&self) -> [isize; N] {
        self.outer.strides
    }

    fn sides(&self) -> [usize; 2] {
        let of = |size: usize, by: usize| size.div_ceil(by);
        [
            of(self.outer.size, self.rows),
            of(self.inner.size, self.cols),
        ]
    }

    /// The number of tiles.
    pub(crate) fn count(&self) -> usize {
        let [down, along] = self.sides();
        down * along * self.around.numel()
    }

    /// Elements of a tile.
    pub(crate) fn area(&self) -> usize {
        self.rows * self.cols
    }

    /// The `n`th tile. One below the other come first: what turned operands read next lies next
    /// to what they have read.
    pub(crate) fn get(&self, n: usize) -> Tile<N> {
        let [down, along] = self.sides();
        let (r, rest) = (n % down * self.rows, n / down);
        let (c, matrix) = (rest % along * self.cols, rest / along);
        let mut offsets = self.around.offsets();
        if self.around.numel() > 1 {
            self.around
                .for_each_run_in(matrix..matrix + 1, |at, _, _| offsets = at);
        }
        for (k, offset) in offsets.iter_mut().enumerate() {
            *offset += r as isize * self.outer.strides[k] + c as isize * self.inner.strides[k];
        }
        Tile {
            offsets,
            rows: self.rows.min(self.outer.size - r),
            cols: self.cols.min(self.inner.size - c),
        }
    }
}
