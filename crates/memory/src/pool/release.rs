//! How much free memory a pool keeps, and what it does when it may keep no more.
//!
//! Keeping freed memory mapped is what makes a pool fast: to fault 64 MiB in again costs
//! milliseconds, more than most operations on them. But a cache must not double a program's
//! memory. Three rules bound it. "Peak" is the highest allocated size of late; "of late" ends
//! when eight times the peak has been allocated twice over, so that a long training step still
//! counts as one and a phase that has passed is forgotten.
//!
//! 1. *Growth.* Before memory is mapped, idle memory goes back to the system as far as needed to
//!    hold what is reserved within the peak + 1/16 + 4 MiB. A program whose steps are alike
//!    finds all it needs within its own peak, and holes too small to use do not add up.
//! 2. *Idleness.* When memory is freed, no more than max(256 MiB, half the peak) stays idle, so
//!    that the process shrinks after a phase that needed much. [`Pool::set_idle_limit`] sets
//!    another bound.
//! 3. *Limit.* An allocation that would pass [`Pool::set_limit`], or that the system refuses,
//!    gets all idle memory given back first.
//!
//! What goes is whole granules (2 MiB) inside free chunks, the longest idle first, wherever they
//! are: a live neighbour does not keep them.

use super::Pool;
use super::space::Range;
use crate::block::PoolKind;
use crate::raw::RawMemory;

/// Idle memory that is kept whatever the peak is.
const IDLE_FLOOR: usize = 256 << 20;

/// What the reserved size may exceed the peak by, besides one sixteenth.
const SLACK: usize = 4 << 20;

/// The highest allocated size of late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    /// In the present epoch.
    now: usize,
    /// In the epoch before.
    before: usize,
    /// Bytes allocated in the present epoch.
    volume: usize,
}

impl Recent {
    pub(super) const ZERO: Recent = Recent {
        now: 0,
        before: 0,
        volume: 0,
    };

    /// Epochs are no shorter than this many allocated bytes.
    const SHORTEST: usize = 64 << 20;

    /// Notes that `bytes` were allocated and `live` are so now.
    pub(super) fn note(&mut self, bytes: usize, live: usize) {
        self.now = self.now.max(live);
        self.volume = self.volume.saturating_add(bytes);
        if self.volume > self.now.saturating_mul(8).max(Recent::SHORTEST) {
            *self = Recent {
                now: live,
                before: self.now,
                volume: 0,
            };
        }
    }

    fn peak(&self) -> usize {
        self.now.max(self.before)
    }
}

impl<R: RawMemory> Pool<R> {
    /// The bytes of whole granules that are free.
    pub(super) fn idle(&self) -> usize {
        let t = &self.tally;
        t.reserved_bytes.all() - t.allocated_bytes.all() - t.inactive_split_bytes.all()
    }

    /// Rule 1: before memory is mapped for a chunk of `size` bytes.
    pub(super) fn make_way(&mut self, kind: PoolKind, size: usize) {
        let live = self.tally.allocated_bytes.all().saturating_add(size);
        let peak = live.max(self.recent.peak());
        let ceiling = peak.saturating_add(peak / 16).saturating_add(SLACK);
        loop {
            // What goes may have been part of what was to be extended, so look again.
            let more = self.growth(kind, size).0;
            let after = self.tally.reserved_bytes.all().saturating_add(more);
            // Past the limit, rule 3 frees what is needed, and nothing for a request in vain.
            if after <= ceiling
                || self.limit.is_some_and(|limit| after > limit)
                || self.release(after - ceiling) == 0
            {
                return;
            }
        }
    }

    /// Rule 2: after memory was freed.
    pub(super) fn trim(&mut self) {
        let limit = self
            .idle_limit
            .unwrap_or(IDLE_FLOOR.max(self.recent.peak() / 2));
        let idle = self.idle();
        if idle > limit {
            self.release(idle - limit);
        }
    }

    /// Gives at least `bytes` idle bytes back to the system, the longest idle first, or all there
    /// are. Returns how many went.
    pub(super) fn release(&mut self, bytes: usize) -> usize {
        let mut released = 0;
        while released < bytes && self.raw.can_unmap() {
            let left = bytes - released;
            let most = left
                .checked_next_multiple_of(self.granule)
                .unwrap_or(usize::MAX);
            let Some((kind, chunk, range)) = self.oldest(most) else {
                break;
            };
            // Books first: what cannot be written down must not happen.
            if self.spaces[kind as usize].reserve(2, 1).is_err() {
                break;
            }
            let ptr = super::pointer(range.addr);
            // SAFETY: granules inside a free chunk: mapped by `raw`, and in no block.
            if unsafe { self.raw.unmap(ptr, range.size) }.is_err() {
                break;
            }
            self.tally.num_device_free += 1;
            self.spaces[kind as usize].detach(chunk, range, &mut self.tally);
            released += range.size;
        }
        released
    }

    /// Moves up to `bytes` idle bytes from the other half of the pool to this one: the last
    /// resort where memory can be neither mapped nor unmapped. Returns whether any moved.
    pub(super) fn annex(&mut self, kind: PoolKind, bytes: usize) -> bool {
        let other = kind.other();
        let bytes = bytes.next_multiple_of(self.granule);
        let mut moved = 0;
        while moved < bytes {
            let Some((_, chunk, range)) = self.spaces[other as usize].oldest(bytes - moved) else {
                break;
            };
            let books = self.spaces[kind as usize].reserve(2, 1);
            if books
                .and(self.spaces[other as usize].reserve(2, 1))
                .is_err()
            {
                break;
            }
            self.spaces[other as usize].detach(chunk, range, &mut self.tally);
            self.spaces[kind as usize].attach(range, self.tick, &mut self.tally);
            moved += range.size;
        }
        moved > 0
    }

    /// The longest idle range of both halves, at most `most` bytes of it.
    fn oldest(&self, most: usize) -> Option<(PoolKind, u32, Range)> {
        let halves = PoolKind::BOTH.map(|kind| {
            let (since, chunk, range) = self.spaces[kind as usize].oldest(most)?;
            Some((since, (kind, chunk, range)))
        });
        let oldest = halves
            .into_iter()
            .flatten()
            .min_by_key(|&(since, _)| since)?;
        Some(oldest.1)
    }

    /// Frees the empty runs that are kept for reuse.
    pub(super) fn drop_spares(&mut self) {
        while let Some(chunk) = self.small.drop_spare() {
            self.free_run(chunk);
        }
    }
}
