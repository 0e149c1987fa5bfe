//! What of a product knows the elements' type.

use super::PAGE;
use super::micro::{self, Micro};
use super::pack::{self, Pack};
use crate::convert::Convert;
use crate::dot::{Row, row_times_matrix};
use crate::micro::{Factor, Sum, in_runs, is_dense, pack_lane, runs};
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

/// Columns next to each other in the destination that are worth a loop.
const RUN: usize = 4;
/// Lanes of one operand up to which the other is read where it lies, if its steps lie apart: it would be packed for too few
/// products.
const FEW: usize = 128;
/// Bytes over which steps are spread that are read again and again where they lie: with more, those of equal distance push
/// each other out of the caches.
const NEAR: usize = 128 << 10;

impl Typed {
    /// Whether elements of this size are multiplied as they lie in memory.
    pub(super) fn reaches(&self, size: usize) -> bool {
        self.micro.reaches && size * self.micro.fold == self.micro.step
    }

    /// Which operands tiles read where they lie, with the distances of their lanes and of their steps, by sizes and lines of
    /// rows, columns and depth.
    pub(super) fn direct(
        &self,
        size: usize,
        [rows, cols, depth]: [usize; 3],
        [row, col, step]: [Option<[isize; 2]>; 3],
    ) -> [Option<[isize; 2]>; 2] {
        let (Some([left, right]), true) = (step, self.reaches(size)) else {
            return [None; 2];
        };
        let (unit, fold) = (size as isize, self.micro.fold);
        let near = |step: isize| depth.saturating_mul(step.unsigned_abs()) <= NEAR;
        // The left operand is read number by number, and where steps follow each other, a line of the cache has many:
        // packing gains nothing however often they are read. Steps that are multiplied as one follow each other.
        // Low tiles, as rows that push each other out of the caches want them, are too slow for products that are multiplied as one.
        let few = cols <= FEW;
        let lhs = match fold {
            1 => left == unit || few && near(left),
            _ => {
                let aliased = row.is_some_and(|[_, apart]| apart % PAGE == 0);
                left == unit && depth.is_multiple_of(fold) && (few || !aliased)
            }
        };
        let rhs = fold == 1 && (rows <= FEW && near(right) || rows <= 2 * self.micro.rows);
        let dense = |[_, apart]: &[isize; 2]| *apart == unit || cols == 1;
        [
            row.filter(|_| lhs).map(|[_, apart]| [apart, left]),
            col.filter(|col| rhs && dense(col)).map(|_| [unit, right]),
        ]
    }

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

/// Writes a sum, or adds it.
///
/// # Safety
/// The element may be written, and read if it is added to.
#[inline(always)]
unsafe fn put<T: Factor>(at: *mut T, sum: T::Sum, add: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        let sum = if add {
            at.read_unaligned().to::<T::Sum>().plus(sum)
        } else {
            sum
        };
        at.write_unaligned(sum.to());
    }
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
            let long = in_runs::<T>(cols, RUN);
            if !long && is_dense::<T>(rows) {
                // Lines of the destination are written one after the other.
                for (j, &col) in cols.iter().enumerate() {
                    for i in 0..rows.len() {
                        // SAFETY: the caller's contract.
                        unsafe {
                            let sum = tile
                                .add(i * stride)
                                .cast::<T::Sum>()
                                .add(j)
                                .read_unaligned();
                            put(ptr.offset(rows[0] + col).cast::<T>().add(i), sum, add);
                        }
                    }
                }
                return;
            }
            for (i, &row) in rows.iter().enumerate() {
                // SAFETY: the caller's contract.
                unsafe {
                    let from = tile.add(i * stride).cast::<T::Sum>();
                    let put = |at: *mut T, j: usize| put(at, from.add(j).read_unaligned(), add);
                    if !long {
                        for (j, &col) in cols.iter().enumerate() {
                            put(ptr.offset(row + col).cast::<T>(), j);
                        }
                        continue;
                    }
                    let mut before = 0;
                    for run in runs::<T>(cols) {
                        let to = ptr.offset(row + run[0]).cast::<T>();
                        for j in 0..run.len() {
                            put(to.add(j), before + j);
                        }
                        before += run.len();
                    }
                }
            }
        },
    );
}
