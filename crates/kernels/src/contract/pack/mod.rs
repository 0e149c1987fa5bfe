//! Packing: blocks of an operand of any strides become slivers, each of which holds its lanes (rows of the left operand,
//! columns of the right) next to each other for one step after the other.

#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::micro::{Factor, Sum, is_dense};
use crate::simd::{Level, vectorized};

/// How lanes become slivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slivers {
    /// Lanes of a sliver, but for the last.
    pub(super) lanes: usize,
    /// Of which the last one's are a multiple: zeros are added.
    pub(super) unit: usize,
}

impl Slivers {
    /// The slivers of these lanes, each with its lanes, their number with zeros, and where it begins, in steps of a lane.
    fn of<'a>(&self, lanes: &'a [isize]) -> impl Iterator<Item = (&'a [isize], usize, usize)> {
        let Slivers { lanes: most, unit } = *self;
        let slivers = lanes.chunks(most).enumerate();
        slivers.map(move |(i, lanes)| match lanes.len() {
            n if n == most => (lanes, n, i * n),
            n => (lanes, n.next_multiple_of(unit), i * most),
        })
    }
}

/// `pack(to, slivers, ptr, lanes, steps)`: packs the elements at `ptr + lanes[i] + steps[p]`.
///
/// # Safety
/// All those elements may be read, and `to` has room for what is packed of each lane, zeros included.
pub(super) type Pack = unsafe fn(*mut u8, Slivers, *const u8, &[isize], &[isize]);

/// How elements of a type are packed at a level.
pub(super) fn of<T: Factor>(level: Level) -> Pack {
    #[cfg(target_arch = "x86_64")]
    if let Some(pack) = avx512::of::<T>(level) {
        return pack;
    }
    let _ = level;
    portable::<T>
}

/// How `bfloat16` is packed in pairs of steps; only with AVX-512.
#[cfg(target_arch = "x86_64")]
pub(super) fn pairs() -> Pack {
    avx512::pairs()
}

/// How far the first two positions are apart.
fn apart(at: &[isize]) -> usize {
    at.get(1).map_or(usize::MAX, |b| b.abs_diff(at[0]))
}

/// See [`Pack`].
unsafe fn portable<T: Factor>(
    to: *mut u8,
    slivers: Slivers,
    ptr: *const u8,
    lanes: &[isize],
    steps: &[isize],
) {
    vectorized(
        #[inline(always)]
        || {
            // SAFETY: the caller's contract.
            let read =
                |at: isize| unsafe { ptr.offset(at).cast::<T>().read_unaligned().to::<T::Sum>() };
            for (lanes, width, start) in slivers.of(lanes) {
                // SAFETY: the caller's contract.
                unsafe {
                    let to = to.cast::<T::Sum>().add(start * steps.len());
                    let size = size_of::<T>() as isize;
                    if is_dense::<T>(lanes) {
                        for (p, &step) in steps.iter().enumerate() {
                            for i in 0..lanes.len() {
                                to.add(p * width + i)
                                    .write(read(lanes[0] + step + i as isize * size));
                            }
                        }
                    } else if apart(lanes) < apart(steps) {
                        for (p, &step) in steps.iter().enumerate() {
                            for (i, &lane) in lanes.iter().enumerate() {
                                to.add(p * width + i).write(read(lane + step));
                            }
                        }
                    } else {
                        for (i, &lane) in lanes.iter().enumerate() {
                            for (p, &step) in steps.iter().enumerate() {
                                to.add(p * width + i).write(read(lane + step));
                            }
                        }
                    }
                    for p in 0..steps.len() {
                        for i in lanes.len()..width {
                            to.add(p * width + i).write(T::Sum::ZERO);
                        }
                    }
                }
            }
        },
    );
}
