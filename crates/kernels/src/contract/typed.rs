//! What of a product knows the elements' type.

use super::micro::{self, Micro};
use super::pack::{self, Pack};
use crate::convert::Convert;
use crate::dot::{Row, row_times_matrix};
use crate::micro::{Factor, Sum, is_dense, pack_lane};
use crate::simd::{Level, vectorized};
use crate::with_element;
use half::{bf16, f16};
use osteon_spec::DType;

/// Writes a tile of sums, `stride` bytes from row to row, to the elements at `ptr + rows[i] + cols[j]`, or adds it to them.
pub(super) type Merge = unsafe fn(*const u8, usize, *mut u8, &[isize], &[isize], bool);

#[derive(Clone, Copy, Debug)]
pub(super) struct Typed {
    pub(super) micro: Micro,
    pub(super) sum_size: usize,
    /// Whether sums are elements: then they grow where the result will be.
    pub(super) in_place: bool,
    pub(super) pack: Pack,
    pub(super) merge: Merge,
    pub(super) row: Row,
    /// Packs the row for [`Typed::row`].
    pub(super) pack_row: unsafe fn(*mut u8, *const u8, &[isize]),
}

impl Typed {
    /// The loops for a dtype at a level; none for a dtype without products.
    pub(super) fn new(dtype: DType, level: Level) -> Option<Typed> {
        let plain = with_element!(int: dtype, T => of::<T>(level))
            .or_else(|| with_element!(float: dtype, T => of::<T>(level)))
            .or_else(|| with_element!(complex: dtype, T => of::<T>(level)))
            .or_else(|| (dtype == DType::F16).then(|| of::<f16>(level)))
            .or_else(|| (dtype == DType::BF16).then(|| of::<bf16>(level)))?;
        let pairs = (dtype == DType::BF16).then(|| pairs(level)).flatten();
        Some(match pairs {
            Some((micro, pack)) => Typed {
                micro,
                pack,
                ..plain
            },
            None => plain,
        })
    }
}

fn of<T: Factor>(level: Level) -> Typed {
    Typed {
        micro: micro::of::<T::Sum>(level),
        sum_size: size_of::<T::Sum>(),
        in_place: size_of::<T>() == size_of::<T::Sum>(),
        pack: pack::of::<T>(level),
        merge: merge::<T>,
        row: row_times_matrix::<T>,
        pack_row: pack_lane::<T>,
    }
}

/// Dot products of pairs of `bfloat16`, where the CPU has them.
fn pairs(level: Level) -> Option<(Micro, Pack)> {
    #[cfg(target_arch = "x86_64")]
    if level == Level::Avx512Bf16 {
        return Some((micro::pairs(), pack::pairs()));
    }
    let _ = level;
    None
}

/// See [`Merge`].
///
/// # Safety
/// The tile holds that many sums, and the elements may be written, and read if they are added to.
unsafe fn merge<T: Factor>(
    tile: *const u8,
    stride: usize,
    ptr: *mut u8,
    rows: &[isize],
    cols: &[isize],
    add: bool,
) {
    vectorized(
        #[inline(always)]
        || {
            let dense = is_dense::<T>(cols);
            for (i, &row) in rows.iter().enumerate() {
                // SAFETY: the caller's contract.
                unsafe {
                    let from = tile.add(i * stride).cast::<T::Sum>();
                    let put = |at: *mut T, j: usize| {
                        let sum = from.add(j).read_unaligned();
                        let before = if add {
                            at.read_unaligned().to()
                        } else {
                            T::Sum::ZERO
                        };
                        at.write_unaligned(if add { before.plus(sum) } else { sum }.to());
                    };
                    if dense {
                        let to = ptr.offset(row + cols[0]).cast::<T>();
                        for j in 0..cols.len() {
                            put(to.add(j), j);
                        }
                    } else {
                        for (j, &col) in cols.iter().enumerate() {
                            put(ptr.offset(row + col).cast::<T>(), j);
                        }
                    }
                }
            }
        },
    );
}
