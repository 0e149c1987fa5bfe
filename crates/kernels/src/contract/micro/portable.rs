//! Tiles of any sums, as the compiler vectorises them.

use super::{Micro, Source, Store, Tile};
use crate::micro::Sum;
use crate::simd::vectorized;

const ROWS: usize = 4;
const COLS: usize = 8;

pub(super) fn of<S: Sum>() -> Micro {
    Micro {
        rows: ROWS,
        cols: COLS,
        row_unit: ROWS,
        lanes: COLS,
        fold: 1,
        step: size_of::<S>(),
        reaches: false,
        tiles: const { &[&[tile::<S> as Tile]] },
    }
}

/// See [`Tile`].
unsafe fn tile<S: Sum>(
    to: *mut u8,
    stride: isize,
    _cols: usize,
    lhs: Source,
    rhs: Source,
    steps: usize,
    store: Store,
) {
    vectorized(
        #[inline(always)]
        || {
            let mut sums = [[S::ZERO; COLS]; ROWS];
            let (lhs, rhs) = (lhs.ptr.cast::<[S; ROWS]>(), rhs.ptr.cast::<[S; COLS]>());
            // SAFETY: the caller's contract.
            unsafe {
                for p in 0..steps {
                    let (a, b) = (lhs.add(p).read_unaligned(), rhs.add(p).read_unaligned());
                    for (row, a) in sums.iter_mut().zip(a) {
                        for (sum, b) in row.iter_mut().zip(b) {
                            *sum = sum.plus_product(a, b);
                        }
                    }
                }
                for (i, row) in sums.iter_mut().enumerate() {
                    let to = to.offset(i as isize * stride).cast::<[S; COLS]>();
                    if store == Store::Add {
                        for (sum, before) in row.iter_mut().zip(to.read_unaligned()) {
                            *sum = before.plus(*sum);
                        }
                    }
                    to.write_unaligned(*row);
                }
            }
        },
    );
}
