//! Sums of windows, each element times a weight of its place and channel: convolutions of each channel by itself.

use super::window::{Block, Window, converted, in_blocks};
use super::{Pointers, Pooling};
use crate::micro::{Factor, Sum};
use crate::with_element;
use half::{bf16, f16};
use osteon_spec::DType;
use std::mem::MaybeUninit;

/// Bytes to which scratch is aligned.
const ALIGN: usize = 64;

/// Weights of each place of a window and each channel.
#[derive(Clone, Copy, Debug)]
pub struct Weighted {
    /// Rows and columns of a window.
    pub kernel: [usize; 2],
    /// Strides in bytes along channels, rows and columns.
    pub strides: [isize; 3],
    size: usize,
    run: Run,
}

type Run = unsafe fn(&Weighted, &Pooling<'_>, [*mut u8; 3], *mut u8);

/// The weighted sums of windows for this dtype; `None` where products are not defined.
pub fn weighted(dtype: DType, kernel: [usize; 2], strides: [isize; 3]) -> Option<Weighted> {
    let (size, run) = with_element!(int: dtype, T => of::<T>())
        .or_else(|| with_element!(float: dtype, T => of::<T>()))
        .or_else(|| with_element!(complex: dtype, T => of::<T>()))
        .or_else(|| (dtype == DType::F16).then(of::<f16>))
        .or_else(|| (dtype == DType::BF16).then(of::<bf16>))?;
    Some(Weighted {
        kernel,
        strides,
        size,
        run,
    })
}

fn of<T: Factor>() -> (usize, Run) {
    (size_of::<T::Sum>(), sums::<T>)
}

impl Weighted {
    /// The bytes of scratch that [`Weighted::run`] needs: the weights as they are multiplied.
    pub fn scratch(&self, channels: usize) -> usize {
        ALIGN + self.kernel[0] * self.kernel[1] * channels * self.size
    }

    /// Writes all results at `ptrs[0]`, by the weights at `ptrs[1]` and the input at `ptrs[2]`; the positions' strides are
    /// not used.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation) of results, weights and the windows' elements.
    ///
    /// # Panics
    /// When there is less scratch than [`Weighted::scratch`] says.
    pub unsafe fn run(
        &self,
        pool: &Pooling<'_>,
        ptrs: [*mut u8; 3],
        scratch: &mut [MaybeUninit<u8>],
    ) {
        assert!(
            scratch.len() >= self.scratch(pool.channels),
            "too little scratch"
        );
        let base = scratch.as_mut_ptr().cast::<u8>();
        // SAFETY: the caller's contract, and room for all weights.
        unsafe { (self.run)(self, pool, ptrs, base.add(base.align_offset(ALIGN))) };
    }
}

/// # Safety
/// The contract of [`Weighted::run`]; the scratch is aligned.
unsafe fn sums<T: Factor>(
    weights: &Weighted,
    pool: &Pooling<'_>,
    [dst, from, src]: [*mut u8; 3],
    scratch: *mut u8,
) {
    let (packed, [rows, cols]) = (scratch.cast::<T::Sum>(), weights.kernel);
    let [apart, down, across] = weights.strides;
    for c in 0..pool.channels {
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            let at = c as isize * apart + i as isize * down + j as isize * across;
            // SAFETY: the caller's contract.
            unsafe {
                let weight = from.offset(at).cast::<T>().read_unaligned().to();
                packed.add((i * cols + j) * pool.channels + c).write(weight);
            }
        }
    }
    let block = Sums {
        ptrs: Pointers([dst, scratch, src]),
        cols,
    };
    pool.for_each(
        size_of::<T>(),
        false,
        #[inline(always)]
        // SAFETY: the caller's contract.
        |place| unsafe { in_blocks::<T>(pool, &place, &block) },
    );
}

struct Sums {
    /// Results, packed weights, input.
    ptrs: Pointers,
    /// Columns of a window.
    cols: usize,
}

impl<T: Factor> Block<T> for Sums {
    #[inline(always)]
    unsafe fn block<const N: usize, const HOW: u8>(&self, window: &Window<'_>) {
        let place = window.place;
        let [dst, ..] = window.lane(self.ptrs.0);
        let weights = self.ptrs.0[1].cast::<T::Sum>().wrapping_add(place.channel);
        let skipped = place.spans.map(|span| span.skipped);
        let mut sums = [T::Sum::ZERO; N];
        // SAFETY: for the whole body: the caller's contract, and that of the packed weights.
        unsafe {
            window.for_each_tap::<T, T::Sum, N, HOW>(
                self.ptrs.0[2],
                #[inline(always)]
                |value, _, [i, j]| {
                    let tap = (skipped[0] + i) * self.cols + skipped[1] + j;
                    let weight = weights.add(tap * window.pool.channels);
                    let factors = if place.by_channel {
                        weight.add(window.first).cast::<[T::Sum; N]>().read()
                    } else {
                        [weight.read(); N]
                    };
                    for l in 0..N {
                        sums[l] = sums[l].plus_product(value[l], factors[l]);
                    }
                },
            );
            window.write(dst, place.step[0], converted::<_, T, N>(sums));
        }
    }
}
