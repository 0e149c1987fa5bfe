//! Order along a dim: sorting, and what needs only a part of it.
//!
//! Elements become integers ([`crate::order_keys`]) with their index below: one sort for all dtypes, which is
//! stable because no two are equal.

use crate::key::{Keys, key_of_nan, keys};
use crate::par::par_for;
use crate::runs::move_run;
use osteon_spec::{DType, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 13;

/// Keys that are made at a time.
const PIECE: usize = 512;

/// What is wanted of each lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The elements of these ranks, in order: NaN counts as the largest; equal ones in the order of
    /// their places.
    Ranks {
        /// Which of them, from 0.
        ranks: Range<usize>,
        /// From the largest down.
        descending: bool,
    },
    /// The lower of the two in the middle; NaN if there is one.
    Median,
    /// The same of those that are not NaN, or NaN.
    NanMedian,
    /// The smallest of those that occur most often, at the last place where it does.
    Mode,
}

/// The lanes of one call.
#[derive(Debug)]
pub struct Lanes {
    /// Where each lane begins in values, indices and source.
    pub starts: Plan<3>,
    /// Bytes from one element of a lane to the next.
    pub steps: [isize; 3],
    /// Elements of a lane of the source.
    pub len: usize,
}

/// Why a call did nothing, or not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSorted {
    /// The dtype has no order.
    NoOrder,
    /// There was no memory for the keys of a lane.
    NoMemory,
}

/// Writes the elements that are asked for, and their places in their lane (as `int64`).
///
/// # Errors
/// [`NotSorted`]; without memory some results may have been written.
///
/// # Safety
/// The walk contract (see the [crate] documentation): values and indices have room for what is
/// asked for, one element but for [`Pick::Ranks`]. Ranks are within the lanes, which are not empty.
pub unsafe fn sort(
    pick: &Pick,
    lanes: &Lanes,
    [values, indices, src]: [*mut u8; 3],
    dtype: DType,
) -> Result<(), NotSorted> {
    let keys = keys(dtype).ok_or(NotSorted::NoOrder)?;
    let sorter = Sorter {
        pick,
        lanes,
        values,
        indices,
        src,
        keys,
        dtype,
    };
    let failed = AtomicBool::new(false);
    par_for(
        lanes.starts.numel(),
        (GRAIN / lanes.len.max(1)).max(1),
        |range| {
            let sorter = &sorter;
            // Key and index in one integer, the narrower one where both fit.
            let narrow = dtype.size() <= 4 && u32::try_from(lanes.len).is_ok();
            // SAFETY: the caller's contract.
            let done = unsafe {
                if narrow {
                    sorter.run::<u64>(range)
                } else {
                    sorter.run::<u128>(range)
                }
            };
            if done.is_none() {
                failed.store(true, Ordering::Relaxed);
            }
        },
    );
    if failed.into_inner() {
        Err(NotSorted::NoMemory)
    } else {
        Ok(())
    }
}

/// A key with an index below it.
trait Packed: Copy + Ord {
    const MOST: Self;
    fn pack(key: u64, index: usize) -> Self;
    fn key(self) -> u64;
    fn index(self) -> usize;
}

macro_rules! packed {
    ($ty:ty, $bits:literal) => {
        impl Packed for $ty {
            const MOST: $ty = <$ty>::MAX;
            #[inline(always)]
            fn pack(key: u64, index: usize) -> $ty {
                (key as $ty) << $bits | index as $ty
            }
            #[inline(always)]
            fn key(self) -> u64 {
                (self >> $bits) as u64
            }
            #[inline(always)]
            fn index(self) -> usize {
                (self & ((1 << $bits) - 1)) as usize
            }
        }
    };
}

packed!(u64, 32);
packed!(u128, 64);

struct Sorter<'a> {
    pick: &'a Pick,
    lanes: &'a Lanes,
    values: *mut u8,
    indices: *mut u8,
    src: *const u8,
    keys: Keys,
    dtype: DType,
}

// SAFETY: threads write the results of different lanes, and nobody writes the source.
unsafe impl Sync for Sorter<'_> {}

impl Sorter<'_> {
    /// Does these lanes; none where there is no memory.
    ///
    /// # Safety
    /// The contract of [`sort`].
    unsafe fn run<P: Packed>(&self, range: Range<usize>) -> Option<()> {
        // Keys are made piece by piece, so that they stay in a cache.
        let mut keys = [0; PIECE];
        let room = self.room();
        let mut packed = Vec::<P>::new();
        packed.try_reserve_exact(room).ok()?;
        self.lanes
            .starts
            .for_each_run_in(range, |starts, run, across| {
                for lane in 0..run as isize {
                    let [v, i, s] = std::array::from_fn(|k| starts[k] + lane * across[k]);
                    // SAFETY: the elements of a lane, and its results.
                    unsafe {
                        self.pack(self.src.offset(s), &mut keys, &mut packed, room);
                        for (j, found) in self.picked(&mut packed).iter().enumerate() {
                            self.put(j as isize, found.index(), [v, i, s]);
                        }
                    }
                }
            });
        Some(())
    }

    /// How many elements of a lane are put down at a time: all of them, or where few of the first are wanted, those and some more.
    fn room(&self) -> usize {
        let len = self.lanes.len;
        match &self.pick {
            Pick::Ranks { ranks, .. } if ranks.start == 0 => {
                len.min(ranks.end + PIECE.max(ranks.end))
            }
            _ => len,
        }
    }

    /// Puts down the elements of a lane among which those that are asked for are.
    ///
    /// # Safety
    /// The lane begins at `from`.
    unsafe fn pack<P: Packed>(
        &self,
        from: *const u8,
        keys: &mut [u64; PIECE],
        packed: &mut Vec<P>,
        room: usize,
    ) {
        let (len, step) = (self.lanes.len, self.lanes.steps[2]);
        packed.clear();
        // What is not before this one is not among the first.
        let mut bound = P::MOST;
        for start in (0..len).step_by(PIECE) {
            let keys = &mut keys[..PIECE.min(len - start)];
            // SAFETY: the caller's contract.
            unsafe { (self.keys)(from.offset(start as isize * step), step, keys) };
            let places = keys.iter().zip(start..);
            let pack = |(&key, at)| P::pack(self.turned(key), at);
            if room == len {
                packed.extend(places.map(pack));
                continue;
            }
            for x in places.map(pack) {
                if x > bound {
                    continue;
                }
                if packed.len() == room
                    && let Pick::Ranks { ranks, .. } = &self.pick
                {
                    let wanted = ranks.end.max(1);
                    bound = *packed.select_nth_unstable(wanted - 1).1;
                    packed.truncate(wanted);
                }
                packed.push(x);
            }
        }
    }

    /// A key, or what is in the opposite order.
    #[inline(always)]
    fn turned(&self, key: u64) -> u64 {
        match self.pick {
            Pick::Ranks {
                descending: true, ..
            } if self.dtype.size() == 8 => !key,
            Pick::Ranks {
                descending: true, ..
            } => u64::from(!(key as u32)),
            _ => key,
        }
    }

    /// The elements that are asked for, in order.
    fn picked<'b, P: Packed>(&self, lane: &'b mut [P]) -> &'b [P] {
        let is_nan = |x: &P| Some(x.key()) == key_of_nan(self.dtype);
        let len = lane.len();
        let middle = |n: usize| n.saturating_sub(1) / 2;
        let ranks = match self.pick {
            Pick::Ranks { ranks, .. } => ranks.clone(),
            // NaN is the largest, so the last of them.
            Pick::Median if lane.iter().any(is_nan) => len - 1..len,
            Pick::Median => middle(len)..middle(len) + 1,
            Pick::NanMedian => {
                let at = middle(lane.iter().filter(|x| !is_nan(x)).count());
                at..at + 1
            }
            Pick::Mode => {
                lane.sort_unstable();
                let last = most_often(lane);
                last..last + 1
            }
        };
        if ranks.end < len {
            lane.select_nth_unstable(ranks.end);
        }
        let lane = &mut lane[..ranks.end];
        if 0 < ranks.start && ranks.start < lane.len() {
            lane.select_nth_unstable(ranks.start);
        }
        let lane = &mut lane[ranks.start..];
        lane.sort_unstable();
        lane
    }

    /// Writes result `j` of a lane: the element at an index.
    ///
    /// # Safety
    /// Both are of the lane, which begins at these offsets.
    unsafe fn put(&self, j: isize, index: usize, [v, i, s]: [isize; 3]) {
        let [value_step, index_step, step] = self.lanes.steps;
        let width = self.dtype.size();
        // SAFETY: the caller's contract.
        unsafe {
            let to = self.values.offset(v + j * value_step);
            let from = self.src.offset(s + index as isize * step);
            move_run(to, width as isize, from, width as isize, 1, width);
            let to = self.indices.offset(i + j * index_step);
            to.cast::<i64>().write_unaligned(index as i64);
        }
    }
}

/// The end of the longest run of equal keys, the first of several.
fn most_often<P: Packed>(sorted: &[P]) -> usize {
    let (mut best, mut last, mut start) = (0, 0, 0);
    for i in 0..sorted.len() {
        if sorted[i].key() != sorted[start].key() {
            start = i;
        }
        if i + 1 - start > best {
            (best, last) = (i + 1 - start, i);
        }
    }
    last
}
