//! The innermost loops of products: a tile of sums from a sliver of each packed operand.

#[cfg(target_arch = "x86_64")]
mod fused;
mod portable;

use crate::micro::Sum;
use crate::simd::Level;

/// What becomes of a tile's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// They are the first part of the result.
    Write,
    /// The same, past the caches: addresses are multiples of a line.
    Stream,
    /// They are added to the parts before.
    Add,
}

/// Where a tile finds an operand: `step` bytes from one step of the sum to the next, `lane` from one row of the left operand
/// to the next; columns of the right one follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) ptr: *const u8,
    pub(super) lane: isize,
    pub(super) step: isize,
}

/// `tile(to, stride, cols, lhs, rhs, steps, store)`: the products of `steps` columns of the left sliver with as many rows of
/// the right one, stored in rows of sums that are `stride` bytes apart, the last vector of each as far as there are columns.
///
/// # Safety
/// Both operands hold that many steps, of the tile's rows and of `cols` columns; the sums may be written, and are
/// initialised for [`Store::Add`]. No alignment is asked for but by [`Store::Stream`], which is of whole vectors.
pub(super) type Tile = unsafe fn(*mut u8, isize, usize, Source, Source, usize, Store);

/// The tiles of a type of sums, of every size that a sliver may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micro {
    /// The most rows and columns.
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Of which a sliver's rows and columns are multiples; lanes beyond the matrix are zeros.
    pub(super) row_unit: usize,
    pub(super) lanes: usize,
    /// Steps of the sum that are packed as one, and the bytes of that in a lane.
    pub(super) fold: usize,
    pub(super) step: usize,
    /// Whether tiles of any number of columns find operands of any strides: else packed slivers of whole vectors.
    pub(super) reaches: bool,
    /// By columns, then rows, in their units.
    tiles: &'static [&'static [Tile]],
}

impl Micro {
    /// The tile of this size.
    pub(super) fn tile(&self, rows: usize, cols: usize) -> Tile {
        self.tiles[cols.div_ceil(self.lanes) - 1][rows.div_ceil(self.row_unit) - 1]
    }
}

/// The tiles of sums at a level.
pub(super) fn of<S: Sum>(level: Level) -> Micro {
    #[cfg(target_arch = "x86_64")]
    if let Some(micro) = fused::of::<S>(level) {
        return micro;
    }
    let _ = level;
    portable::of::<S>()
}

/// The tiles of `float32` sums of pairs of `bfloat16`.
#[cfg(target_arch = "x86_64")]
pub(super) fn pairs() -> Micro {
    fused::pairs()
}
