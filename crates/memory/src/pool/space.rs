//! A space: mapped ranges of addresses, tiled by chunks that are in use or free.
//!
//! Invariants, checked by [`pool_is_valid`](crate::pool_is_valid):
//!
//! 1. A segment is a maximal contiguous mapped range. It starts and ends on a granule. Its chunks
//!    and one `Edge` node form a ring in address order; the edge holds the segment's own address
//!    and size.
//! 2. The chunks of a segment tile it, and no two free chunks are neighbours.
//! 3. Exactly the free chunks are in `fit`, and exactly those with a whole granule inside in
//!    `idle`, oldest first.
//! 4. `inactive_split(_bytes)` counts the parts of free chunks outside their whole granules.
//!
//! Only [`Space::reserve`] allocates, and it comes before any change.

use std::collections::TryReserveError;

use super::fit::Fit;
use super::list::{Linked, Links, List, NIL};
use crate::block::PoolKind;
use crate::stats::Tally;

/// Sizes and addresses of chunks are multiples of this.
pub(super) const PAGE: usize = 4096;

/// A piece of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) addr: usize,
    pub(super) size: usize,
    pub(super) state: State,
    /// Neighbours in the segment's ring; for a spare node `next` is the next spare.
    pub(super) prev: u32,
    pub(super) next: u32,
    /// Children in `fit`.
    pub(super) child: [u32; 2],
    /// Neighbours in `idle`.
    pub(super) idle: Links,
}

impl Linked for Chunk {
    fn links(&mut self) -> &mut Links {
        &mut self.idle
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A node that is not in use.
    Spare,
    /// The node that closes a segment's ring.
    Edge,
    /// Free since the given tick.
    Free { since: u64 },
    /// A block on loan.
    Live { tag: u64, requested: usize },
    /// A run of small blocks.
    Run(u32),
}

/// A range of addresses to map or unmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) addr: usize,
    pub(super) size: usize,
}

pub(super) struct Space {
    kind: PoolKind,
    /// The unit of segments, a power of two.
    granule: usize,
    pub(super) chunks: Vec<Chunk>,
    /// Nodes that are not in use, linked through `next`, and how many they are.
    spare: u32,
    spares: usize,
    /// The edges of all segments in order of address.
    pub(super) segments: Vec<u32>,
    pub(super) fit: Fit,
    pub(super) idle: List,
    /// Counts the changes of segments.
    pub(super) changes: u64,
}

impl Space {
    pub(super) const fn new(kind: PoolKind, granule: usize) -> Space {
        Space {
            kind,
            granule,
            chunks: Vec::new(),
            spare: NIL,
            spares: 0,
            segments: Vec::new(),
            fit: Fit::EMPTY,
            idle: List::EMPTY,
            changes: 0,
        }
    }

    /// Makes room for that many further nodes and segments.
    pub(super) fn reserve(&mut self, nodes: usize, segments: usize) -> Result<(), TryReserveError> {
        self.chunks.try_reserve(nodes.saturating_sub(self.spares))?;
        self.segments.try_reserve(segments)
    }

    fn node(&mut self, addr: usize, size: usize, state: State) -> u32 {
        let (prev, next) = (NIL, NIL);
        let chunk = Chunk {
            addr,
            size,
            state,
            prev,
            next,
            child: [NIL; 2],
            idle: Links::NONE,
        };
        match self.spare {
            NIL => {
                debug_assert!(
                    self.chunks.len() < self.chunks.capacity(),
                    "node was reserved"
                );
                self.chunks.push(chunk);
                (self.chunks.len() - 1) as u32
            }
            i => {
                self.spare = self.chunks[i as usize].next;
                self.spares -= 1;
                self.chunks[i as usize] = chunk;
                i
            }
        }
    }

    fn discard(&mut self, i: u32) {
        let spare = self.spare;
        let c = &mut self.chunks[i as usize];
        (c.state, c.next) = (State::Spare, spare);
        self.spare = i;
        self.spares += 1;
    }

    /// The nodes that are not in use.
    pub(super) fn spare_nodes(&self) -> impl Iterator<Item = u32> {
        let next = |&i: &u32| self.chunks.get(i as usize).map(|c| c.next);
        std::iter::successors(Some(self.spare), next).take_while(|&i| i != NIL)
    }

    pub(super) fn chunk(&self, i: u32) -> &Chunk {
        &self.chunks[i as usize]
    }

    pub(super) fn is_free(&self, i: u32) -> bool {
        matches!(self.chunks[i as usize].state, State::Free { .. })
    }

    fn link(&mut self, first: u32, second: u32) {
        self.chunks[first as usize].next = second;
        self.chunks[second as usize].prev = first;
    }

    /// The whole granules inside a chunk.
    pub(super) fn granules(&self, i: u32) -> Range {
        let c = &self.chunks[i as usize];
        let start = c.addr.next_multiple_of(self.granule);
        let end = (c.addr + c.size) & !(self.granule - 1);
        Range {
            addr: start,
            size: end.saturating_sub(start),
        }
    }

    /// Enters a free chunk into `fit`, `idle` (behind `older`) and the statistics.
    fn file(&mut self, i: u32, older: u32, tally: &mut Tally) {
        self.fit.insert(&mut self.chunks, i);
        let whole = self.granules(i).size;
        if whole > 0 {
            self.idle.insert(&mut self.chunks, older, i);
        }
        let rest = self.chunks[i as usize].size - whole;
        tally.inactive_split_bytes.add(self.kind, rest);
        tally.inactive_split.add(self.kind, usize::from(rest > 0));
    }

    /// Takes a free chunk out again and returns what was before it in `idle`, so that what
    /// remains of it can keep its place.
    fn unfile(&mut self, i: u32, tally: &mut Tally) -> u32 {
        self.fit.remove(&mut self.chunks, i);
        let whole = self.granules(i).size;
        if whole > 0 {
            self.idle.remove(&mut self.chunks, i);
        }
        let rest = self.chunks[i as usize].size - whole;
        tally.inactive_split_bytes.sub(self.kind, rest);
        tally.inactive_split.sub(self.kind, usize::from(rest > 0));
        self.chunks[i as usize].idle.before
    }

    /// Takes `size` bytes from the front of the best fitting free chunk; the caller sets the state
    /// of what it gets. `None` if no chunk is large enough.
    pub(super) fn take(
        &mut self,
        size: usize,
        tally: &mut Tally,
    ) -> Result<Option<u32>, TryReserveError> {
        self.reserve(1, 0)?;
        let i = self.fit.best(&self.chunks, size);
        if i == NIL {
            return Ok(None);
        }
        let older = self.unfile(i, tally);
        let Chunk {
            addr,
            size: whole,
            state,
            next,
            ..
        } = self.chunks[i as usize];
        if whole > size {
            let rest = self.node(addr + size, whole - size, state);
            self.link(i, rest);
            self.link(rest, next);
            self.chunks[i as usize].size = size;
            self.file(rest, older, tally);
        }
        Ok(Some(i))
    }

    /// Frees a chunk in use and joins it with free neighbours.
    pub(super) fn give(&mut self, i: u32, now: u64, tally: &mut Tally) {
        self.chunks[i as usize].state = State::Free { since: now };
        let next = self.chunks[i as usize].next;
        if self.is_free(next) {
            self.unfile(next, tally);
            self.swallow(i, next);
        }
        let prev = self.chunks[i as usize].prev;
        let mut joined = i;
        if self.is_free(prev) {
            self.unfile(prev, tally);
            self.chunks[prev as usize].state = State::Free { since: now };
            self.swallow(prev, i);
            joined = prev;
        }
        self.file(joined, self.idle.last, tally);
    }

    /// Makes the neighbour `next` a part of `i`.
    fn swallow(&mut self, i: u32, next: u32) {
        let Chunk {
            size, next: after, ..
        } = self.chunks[next as usize];
        self.chunks[i as usize].size += size;
        self.link(i, after);
        self.discard(next);
    }

    /// Where in `segments` the first segment at or above an address is.
    fn segment_at(&self, addr: usize) -> usize {
        self.segments
            .partition_point(|&e| self.chunks[e as usize].addr < addr)
    }

    /// Adds a mapped range as free memory and joins it with the segments that it touches.
    /// Two nodes and one segment must be reserved.
    pub(super) fn attach(&mut self, range: Range, now: u64, tally: &mut Tally) {
        self.changes += 1;
        let edge = self.node(range.addr, range.size, State::Edge);
        // Not filed yet: `give` frees it below, when its neighbours are known.
        let chunk = self.node(range.addr, range.size, State::Free { since: now });
        self.link(edge, chunk);
        self.link(chunk, edge);
        let mut at = self.segment_at(range.addr);
        self.segments.insert(at, edge);
        let mut joins = 0;
        if at > 0 && self.touches(at - 1) {
            at -= 1;
            self.join(at);
            joins += 1;
        }
        if at + 1 < self.segments.len() && self.touches(at) {
            self.join(at);
            joins += 1;
        }
        match joins {
            0 => tally.segment.add(self.kind, 1),
            1 => {}
            _ => tally.segment.sub(self.kind, 1),
        }
        tally.reserved_bytes.add(self.kind, range.size);
        self.give(chunk, now, tally);
    }

    /// Whether a segment ends where the next one begins.
    fn touches(&self, at: usize) -> bool {
        let low = self.chunk(self.segments[at]);
        low.addr + low.size == self.chunk(self.segments[at + 1]).addr
    }

    /// Joins a segment with the next one.
    fn join(&mut self, at: usize) {
        let (low, high) = (self.segments[at], self.segments.remove(at + 1));
        let Chunk {
            size,
            prev: last,
            next: first,
            ..
        } = self.chunks[high as usize];
        let seam = self.chunks[low as usize].prev;
        self.link(seam, first);
        self.link(last, low);
        self.chunks[low as usize].size += size;
        self.discard(high);
    }

    /// The size of a chunk if it is free, or else 0.
    pub(super) fn free_size(&self, i: u32) -> usize {
        if self.is_free(i) {
            self.chunk(i).size
        } else {
            0
        }
    }

    /// The chunk that has been idle for longest, since when, and the last granules inside it, at
    /// most `most` bytes (a multiple of the granule).
    pub(super) fn oldest(&self, most: usize) -> Option<(u64, u32, Range)> {
        let i = self.idle.first;
        let State::Free { since } = self.chunks.get(i as usize)?.state else {
            unreachable!("only free chunks are idle")
        };
        let whole = self.granules(i);
        let size = whole.size.min(most);
        Some((
            since,
            i,
            Range {
                addr: whole.addr + whole.size - size,
                size,
            },
        ))
    }

    /// Takes whole granules out of a free chunk and so out of the space. Two nodes and one
    /// segment must be reserved.
    pub(super) fn detach(&mut self, i: u32, range: Range, tally: &mut Tally) {
        self.changes += 1;
        let older = self.unfile(i, tally);
        let Chunk {
            addr,
            size,
            state,
            prev,
            next,
            ..
        } = self.chunks[i as usize];
        let (end, cut) = (addr + size, range.addr + range.size);
        let at = self.segment_at(range.addr + 1) - 1;
        let edge = self.segments[at];
        let Chunk {
            addr: low,
            size: whole,
            ..
        } = self.chunks[edge as usize];
        let high_end = low + whole;
        match (low < range.addr, cut < high_end) {
            (true, true) => tally.segment.add(self.kind, 1),
            (false, false) => tally.segment.sub(self.kind, 1),
            _ => {}
        }
        tally.reserved_bytes.sub(self.kind, range.size);
        self.segments.remove(at);

        // What is left above the hole, up to the end of the segment: a segment of its own.
        let mut above = next;
        if cut < end {
            above = self.node(cut, end - cut, state);
            self.link(above, next);
            self.file(above, older, tally);
        }
        if cut < high_end {
            let last = self.chunks[edge as usize].prev;
            let high = self.node(cut, high_end - cut, State::Edge);
            self.link(high, above);
            self.link(last, high);
            self.segments.insert(at, high);
        }

        // What is left below it keeps the edge.
        let mut below = prev;
        if addr < range.addr {
            self.chunks[i as usize].size = range.addr - addr;
            self.file(i, older, tally);
            below = i;
        } else {
            self.discard(i);
        }
        if low < range.addr {
            self.chunks[edge as usize].size = range.addr - low;
            self.link(below, edge);
            self.segments.insert(at, edge);
        } else {
            self.discard(edge);
        }
    }
}
