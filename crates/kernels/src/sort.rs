//! Order along a dim: sorting, and what needs only a part of it.
//!
//! Elements become integers ([`crate::order_keys`]) with their index below: one sort for all dtypes, which is
//! stable because no two are equal. Whole lanes are sorted digit by digit.

use crate::key::{Keys, key_of_nan, keys};
use crate::par::{num_threads, par_for, par_slices};
use crate::radix::order;
use crate::simd::vectorized;
use osteon_spec::{DType, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 13;

/// Keys that are made at a time.
const PIECE: usize = 512;

/// Keys that are compared with a bound at a time.
const FEW: usize = 32;

/// Elements beside those that are wanted which are put down before the others are dropped, at least.
const MORE: usize = 64;

/// Elements of lanes that threads sort together, at least, where there are fewer lanes than threads.
const LONG: usize = 1 << 15;

/// Elements of lanes that are sorted digit by digit, at least.
const SHORT: usize = 32;

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

impl Lanes {
    /// How many words [`sort`] needs to sort lanes one after the other, each on all threads; none where it does not.
    pub fn words(&self, pick: &Pick) -> usize {
        if pick.is_of_all(self.len)
            && self.len >= LONG
            && (self.starts.numel() == 1 || self.starts.numel() < num_threads())
        {
            self.len.saturating_mul(LISTS)
        } else {
            0
        }
    }
}

/// Lists of words that the order of a lane takes: keys, places, and others.
const LISTS: usize = 3;

impl Pick {
    /// Whether most elements of a lane, and of one that is long enough to be worth it, have to be in order.
    fn is_of_all(&self, len: usize) -> bool {
        match self {
            Pick::Ranks { ranks, .. } => len >= SHORT && ranks.len() > len / 2,
            Pick::Mode => true,
            Pick::Median | Pick::NanMedian => false,
        }
    }
}

/// Why a call did nothing, or not all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSorted {
    /// The dtype has no order.
    NoOrder,
    /// There was no memory for the keys of a lane.
    NoMemory,
}

/// Writes the elements that are asked for, and their places in their lane (as `int64`). There are as many `words` as
/// [`Lanes::words`] says.
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
    words: &mut [u64],
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
    if !words.is_empty() {
        // SAFETY: the caller's contract.
        unsafe { sorter.run_all(0..lanes.starts.numel(), words) };
        return Ok(());
    }
    let is_of_all = pick.is_of_all(lanes.len);
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
                if is_of_all {
                    sorter
                        .own_words()
                        .map(|mut words| sorter.run_all(range, &mut words))
                } else if narrow {
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
trait Packed: Copy + Ord + Send + Sync {
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
                        let found = self.picked(&mut packed);
                        self.put(found.len(), |j| found[j].index(), [v, i, s]);
                    }
                }
            });
        Some(())
    }

    /// Words to sort a lane with.
    fn own_words(&self) -> Option<Vec<u64>> {
        let mut words = Vec::new();
        words
            .try_reserve_exact(self.lanes.len.checked_mul(LISTS)?)
            .ok()?;
        words.resize(self.lanes.len * LISTS, 0);
        Some(words)
    }

    /// Does these lanes, each of which is sorted as a whole.
    ///
    /// # Safety
    /// The contract of [`sort`].
    unsafe fn run_all(&self, range: Range<usize>, words: &mut [u64]) {
        let len = self.lanes.len;
        let (keys, words) = words.split_at_mut(len);
        let (places, spare) = words.split_at_mut(len);
        self.lanes
            .starts
            .for_each_run_in(range, |starts, run, across| {
                for lane in 0..run as isize {
                    let at = std::array::from_fn(|k| starts[k] + lane * across[k]);
                    // SAFETY: the elements of a lane, and its results.
                    unsafe {
                        self.keys_of(at[2], keys);
                        order(keys, places, spare);
                        let wanted = match &self.pick {
                            Pick::Ranks { ranks, .. } => ranks.clone(),
                            _ => {
                                let last = most_often(len, |i| keys[places[i] as usize]);
                                last..last + 1
                            }
                        };
                        let places = &places[wanted];
                        self.put(places.len(), |j| places[j] as usize, at);
                    }
                }
            });
    }

    /// Writes the keys of the lane that begins at an offset.
    ///
    /// # Safety
    /// There are as many elements.
    unsafe fn keys_of(&self, offset: isize, keys: &mut [u64]) {
        let step = self.lanes.steps[2];
        par_slices(keys, GRAIN, |start, keys| {
            // SAFETY: the caller's contract.
            unsafe { (self.keys)(self.src.offset(offset + start as isize * step), step, keys) };
            if self.is_descending() {
                keys.iter_mut().for_each(|key| *key = self.turned(*key));
            }
        });
    }

    /// How many elements of a lane are put down at a time: all of them, or where few of the first are wanted, those and some more.
    fn room(&self) -> usize {
        let len = self.lanes.len;
        match &self.pick {
            Pick::Ranks { ranks, .. } if ranks.start == 0 => {
                len.min(ranks.end + MORE.max(ranks.end))
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
            if self.is_descending() {
                keys.iter_mut().for_each(|key| *key = self.turned(*key));
            }
            if room == len {
                let places = keys.iter().zip(start..);
                packed.extend(places.map(|(&key, at)| P::pack(key, at)));
                continue;
            }
            for (keys, start) in keys.chunks(FEW).zip((start..).step_by(FEW)) {
                // Soon there are none in most chunks.
                let most = bound.key();
                if !any_below(keys, most) {
                    continue;
                }
                for x in keys.iter().zip(start..).map(|(&key, at)| P::pack(key, at)) {
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
    }

    fn is_descending(&self) -> bool {
        matches!(
            self.pick,
            Pick::Ranks {
                descending: true,
                ..
            }
        )
    }

    /// A key, or what is in the opposite order.
    #[inline(always)]
    fn turned(&self, key: u64) -> u64 {
        match self.is_descending() {
            true if self.dtype.size() == 8 => !key,
            true => u64::from(!(key as u32)),
            false => key,
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
            Pick::Mode => unreachable!("it takes all of a lane"),
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

    /// Writes the results of a lane, which begins at these offsets: the elements at so many indices.
    ///
    /// # Safety
    /// The lane has them, and there is room for the results.
    unsafe fn put(&self, count: usize, index: impl Fn(usize) -> usize + Sync, at: [isize; 3]) {
        // SAFETY: the caller's contract.
        par_for(count, GRAIN, |range| unsafe {
            match self.dtype.size() {
                1 => self.put_as::<u8>(range, &index, at),
                2 => self.put_as::<u16>(range, &index, at),
                4 => self.put_as::<u32>(range, &index, at),
                _ => self.put_as::<u64>(range, &index, at),
            }
        });
    }

    /// # Safety
    /// As [`Sorter::put`], of elements of `T`'s size.
    #[inline(always)]
    unsafe fn put_as<T: Copy>(
        &self,
        range: Range<usize>,
        index: impl Fn(usize) -> usize,
        [v, i, s]: [isize; 3],
    ) {
        let [value_step, index_step, step] = self.lanes.steps;
        for j in range {
            let at = index(j) as isize;
            // SAFETY: the caller's contract.
            unsafe {
                let value = self.src.offset(s + at * step).cast::<T>().read_unaligned();
                let j = j as isize;
                let to = self.values.offset(v + j * value_step);
                to.cast::<T>().write_unaligned(value);
                let to = self.indices.offset(i + j * index_step);
                to.cast::<i64>().write_unaligned(at as i64);
            }
        }
    }
}

/// Whether any key is at most this.
fn any_below(keys: &[u64], most: u64) -> bool {
    vectorized(
        #[inline(always)]
        || keys.iter().fold(false, |any, &key| any | (key <= most)),
    )
}

/// The end of the longest run of equal keys in a sorted list, the first of several.
fn most_often(len: usize, key: impl Fn(usize) -> u64) -> usize {
    let (mut best, mut last, mut start) = (0, 0, 0);
    for i in 0..len {
        if key(i) != key(start) {
            start = i;
        }
        if i + 1 - start > best {
            (best, last) = (i + 1 - start, i);
        }
    }
    last
}
