//! Which blocks would have to go for a request to be met.

use super::small::{SMALL_MAX, Small};
use super::space::PAGE;
use super::{Pool, walk::SegmentInfo};
use crate::block::{BlockInfo, BlockState, PoolKind};
use crate::raw::RawMemory;

/// Neighbouring pieces of the large half of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// The address of the first byte.
    pub(crate) start: usize,
    /// The address behind the last.
    pub(crate) end: usize,
    /// What freeing the live ones costs.
    pub(crate) cost: usize,
}

impl<R: RawMemory> Pool<R> {
    /// The bytes that a block of that many takes in the pool; those of its run for a small one.
    pub(crate) fn chunk_size(bytes: usize) -> usize {
        if bytes <= SMALL_MAX {
            Small::run_bytes(bytes)
        } else {
            bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
        }
    }

    /// The unit of what is mapped and given back.
    pub(crate) fn granule(&self) -> usize {
        self.granule
    }

    /// Whether what is idle can be given back to the system, and mapped anew elsewhere.
    pub(crate) fn gives_back(&self) -> bool {
        self.raw.can_unmap()
    }

    /// The bytes of whole granules that are free.
    pub(crate) fn idle_bytes(&self) -> usize {
        self.idle()
    }

    /// The neighbouring blocks of large segments whose going costs the least of those that yield at least that many
    /// bytes: in one run, or (`new_granules`) in granules that were not free before. `cost` says what the block with a
    /// tag costs. Walks everything, allocates nothing.
    pub(crate) fn cheapest_window(
        &self,
        bytes: usize,
        new_granules: bool,
        cost: impl Fn(u64, usize) -> usize,
    ) -> Option<Window> {
        let cost = |b: &BlockInfo| match b.state {
            BlockState::Live { tag, .. } => cost(tag, b.size),
            BlockState::Free => 0,
        };
        // What a free block has of whole granules is free already.
        let counted = |b: &BlockInfo| match b.state {
            BlockState::Free if new_granules => self.whole(b.address, b.address + b.size),
            _ => 0,
        };
        let yields = |start, end, counted| match new_granules {
            true => self.whole(start, end) - counted,
            false => end - start,
        };
        let mut best: Option<Window> = None;
        for segment in self.large() {
            let mut pieces = segment.blocks().peekable();
            let (mut already, mut sum) = (0, 0);
            for last in segment.blocks() {
                let end = last.address + last.size;
                already += counted(&last);
                sum += cost(&last);
                while let Some(&piece) = pieces.peek()
                    && yields(piece.address + piece.size, end, already - counted(&piece)) >= bytes
                {
                    already -= counted(&piece);
                    sum -= cost(&piece);
                    pieces.next();
                }
                if let Some(piece) = pieces.peek()
                    && yields(piece.address, end, already) >= bytes
                    && best.is_none_or(|b| sum < b.cost)
                {
                    let (start, cost) = (piece.address, sum);
                    best = Some(Window { start, end, cost });
                }
            }
        }
        best
    }

    /// The bytes of the whole granules in a range of addresses.
    pub(crate) fn whole(&self, start: usize, end: usize) -> usize {
        let end = end & !(self.granule - 1);
        end.saturating_sub(start.next_multiple_of(self.granule))
    }

    /// The live blocks of the large half: tag, address, size.
    pub(crate) fn large_blocks(&self) -> impl Iterator<Item = (u64, usize, usize)> {
        self.large()
            .flat_map(|s| s.blocks())
            .filter_map(|b| match b.state {
                BlockState::Live { tag, .. } => Some((tag, b.address, b.size)),
                BlockState::Free => None,
            })
    }

    /// Each segment of the large half, with the bytes of its granules that are free.
    pub(crate) fn large_windows(
        &self,
        cost: impl Fn(u64, usize) -> usize,
    ) -> impl Iterator<Item = (Window, usize)> {
        self.large().map(move |s| {
            let (mut sum, mut free) = (0, 0);
            for b in s.blocks() {
                match b.state {
                    BlockState::Live { tag, .. } => sum += cost(tag, b.size),
                    BlockState::Free => free += self.whole(b.address, b.address + b.size),
                }
            }
            let (start, end, cost) = (s.address, s.address + s.size, sum);
            (Window { start, end, cost }, free)
        })
    }

    fn large(&self) -> impl Iterator<Item = SegmentInfo<'_>> {
        self.segments().filter(|s| s.kind == PoolKind::Large)
    }
}
