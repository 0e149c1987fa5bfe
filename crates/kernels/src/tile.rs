//! Walks in tiles, for operands that are dense along different dims.

use crate::stream;
use crate::transpose::transpose_matrix;
use osteon_spec::{Plan, PlanDim};
use std::mem::MaybeUninit;

/// Elements of a row of a tile, at most: rows are runs that a loop does in one call.
const SIDE: usize = 256;

/// Bytes of the columns of a tile: whole cache lines, so that each line of an operand that lies across is read once, by
/// one tile, and four of them, because memory serves what lies together faster; but see [`SMALL`].
const COLUMN: usize = 4 * stream::LINE;

/// Bytes of an operand that the second-level cache holds: one line is as good as four, and leaves the tile in the first.
const SMALL: usize = 1 << 18;

/// A tile of an operand that lies across, turned: in the second-level cache.
#[repr(C, align(64))]
pub(crate) struct Turned(MaybeUninit<[u8; SIDE * COLUMN]>);

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
    are_far: bool,
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
        let are_far = plan.numel() * widest > SMALL;
        let column = if are_far { COLUMN } else { stream::LINE };
        let around = rest.iter().enumerate().filter(|(d, _)| *d != dim);
        Some(Tiles {
            inner: *inner,
            outer,
            around: Plan::from_dims(plan.offsets(), around.map(|(_, d)| *d)),
            widths,
            is_across,
            are_far,
            rows: (column / widest).min(outer.size),
            cols: SIDE.min(inner.size),
        })
    }

    /// Whether an operand is to be turned.
    pub(crate) fn is_across(&self, k: usize) -> bool {
        self.is_across[k]
    }

    /// Whether operands come from beyond the second-level cache.
    pub(crate) fn are_far(&self) -> bool {
        self.are_far
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

impl Turned {
    pub(crate) const NEW: Turned = Turned(MaybeUninit::uninit());

    /// Turns a tile of elements of `width` bytes that lies at `from`, `apart` bytes from one column to the next. Gives
    /// where it lies then, and the bytes from one row to the next.
    ///
    /// # Safety
    /// The tile's elements may be read; it is one of [`Tiles`].
    pub(crate) unsafe fn fill<const N: usize>(
        &mut self,
        tile: &Tile<N>,
        from: *const u8,
        apart: isize,
        width: usize,
    ) -> (*mut u8, isize) {
        let (to, row) = (self.0.as_mut_ptr().cast::<u8>(), (SIDE * width) as isize);
        if tile.rows * width <= stream::LINE {
            // SAFETY: the tile, for which there is room.
            unsafe { transpose_matrix((to, row), (from, apart), tile.rows, tile.cols, width) };
            return (to, row);
        }
        // Strips of columns, each of which asks for the next one, and the last one for the tile below: hardware foresees
        // no step to another column.
        let strip = stream::LINE / width;
        for c in (0..tile.cols).step_by(strip) {
            let cols = strip.min(tile.cols - c);
            let next = match c + cols < tile.cols {
                true => from.wrapping_offset((c + cols) as isize * apart),
                false => from.wrapping_add(tile.rows * width),
            };
            for i in 0..strip as isize {
                for line in (0..tile.rows * width).step_by(stream::LINE) {
                    stream::prefetch(next.wrapping_offset(i * apart).wrapping_add(line));
                }
            }
            // SAFETY: a strip of the tile, for which there is room.
            unsafe {
                let to = (to.add(c * width), row);
                let from = (from.offset(c as isize * apart), apart);
                transpose_matrix(to, from, tile.rows, cols, width);
            }
        }
        (to, row)
    }
}
