//! What a pool holds, in order of address, for reports.

use std::fmt;
use std::iter;

use super::Pool;
use super::small::{Run, Small};
use super::space::{Space, State};
use crate::block::{BlockInfo, BlockState, FreeInfo, PoolKind};
use crate::raw::RawMemory;

/// A contiguous range mapped from the system.
#[derive(Clone, Copy)]
pub struct SegmentInfo<'a> {
    /// The address of its first byte.
    pub address: usize,
    /// Its bytes.
    pub size: usize,
    /// The half of the pool that uses it.
    pub kind: PoolKind,
    edge: u32,
    space: &'a Space,
    small: &'a Small,
}

impl fmt::Debug for SegmentInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SegmentInfo {
            address,
            size,
            kind,
            ..
        } = self;
        write!(f, "{kind:?} segment of {size} bytes at {address:#x}")
    }
}

impl<'a> SegmentInfo<'a> {
    /// The bytes of the chunk at its start, if that is free.
    pub(super) fn free_head(&self) -> usize {
        self.space.free_size(self.space.chunk(self.edge).next)
    }

    /// The bytes of the chunk at its end, if that is free.
    pub(super) fn free_tail(&self) -> usize {
        self.space.free_size(self.space.chunk(self.edge).prev)
    }

    /// Its pieces, live and free, in order of address. They tile it. Allocates nothing.
    pub fn blocks(&self) -> impl Iterator<Item = BlockInfo> + use<'a> {
        let SegmentInfo {
            edge, space, small, ..
        } = *self;
        let (mut chunk, mut slot) = (space.chunk(edge).next, 0);
        iter::from_fn(move || {
            let c = space.chunk(chunk);
            let (address, size) = (c.addr, c.size);
            let piece = match c.state {
                State::Edge | State::Spare => return None,
                State::Free { .. } => BlockInfo {
                    address,
                    size,
                    state: BlockState::Free,
                },
                State::Live { tag, requested } => BlockInfo {
                    address,
                    size,
                    state: BlockState::Live { tag, requested },
                },
                State::Run(run) => slots(&small.runs[run as usize], size, &mut slot),
            };
            if piece.address + piece.size == address + size {
                (chunk, slot) = (c.next, 0);
            }
            Some(piece)
        })
    }
}

/// The piece of a run (of `size` bytes) that begins at a slot: one live slot, or all free ones up
/// to the next live one or the end. Moves the slot to the next piece.
fn slots(run: &Run, size: usize, slot: &mut usize) -> BlockInfo {
    let first = *slot;
    let address = run.addr + first * run.slot_size();
    *slot += 1;
    if let Some((tag, requested)) = run.live_slot(first) {
        let state = BlockState::Live { tag, requested };
        return BlockInfo {
            address,
            size: run.slot_size(),
            state,
        };
    }
    while *slot < run.slots() && run.live_slot(*slot).is_none() {
        *slot += 1;
    }
    let end = if *slot < run.slots() {
        run.addr + *slot * run.slot_size()
    } else {
        run.addr + size
    };
    BlockInfo {
        address,
        size: end - address,
        state: BlockState::Free,
    }
}

impl<R: RawMemory> Pool<R> {
    /// All segments in order of address. Allocates nothing.
    pub fn segments(&self) -> impl Iterator<Item = SegmentInfo<'_>> {
        let mut lists = PoolKind::BOTH.map(|kind| {
            let space = &self.spaces[kind as usize];
            let info = move |&edge: &u32| {
                let c = space.chunk(edge);
                let (address, size, small) = (c.addr, c.size, &self.small);
                SegmentInfo {
                    address,
                    size,
                    kind,
                    edge,
                    space,
                    small,
                }
            };
            space.segments.iter().map(info).peekable()
        });
        iter::from_fn(move || {
            let [small, large] = &mut lists;
            match (small.peek(), large.peek()) {
                (Some(s), Some(l)) if s.address < l.address => small.next(),
                (Some(_), None) => small.next(),
                _ => large.next(),
            }
        })
    }

    /// The largest free piece and who bounds it: what an out-of-memory report wants to know.
    /// Walks everything.
    pub fn largest_free(&self) -> Option<FreeInfo> {
        let mut largest: Option<FreeInfo> = None;
        for segment in self.segments() {
            let mut below = None;
            // Whether `largest` lies in this segment and nothing live above it was seen yet.
            let mut open = false;
            for BlockInfo {
                address,
                size,
                state,
            } in segment.blocks()
            {
                match state {
                    BlockState::Live { tag, .. } => {
                        below = Some(tag);
                        if let (true, Some(l)) = (open, &mut largest) {
                            l.above = below;
                        }
                        open = false;
                    }
                    BlockState::Free if largest.is_none_or(|l| size > l.size) => {
                        let kind = segment.kind;
                        largest = Some(FreeInfo {
                            address,
                            size,
                            kind,
                            below,
                            above: None,
                        });
                        open = true;
                    }
                    BlockState::Free => {}
                }
            }
        }
        largest
    }
}
