//! The caching allocator.
//!
//! Two halves share one source of memory ([`RawMemory`]). *Large* blocks are chunks of a
//! [`Space`]: cut to 4 KiB from mapped ranges, best fit, joined again when freed. *Small* blocks
//! are slots of runs, and runs are chunks of a space of their own. Freed memory stays mapped for
//! reuse, within the bounds that [`release`] states.
//!
//! All books are kept apart from the memory itself, in `Vec`s that are reserved before anything
//! changes, so that a failure leaves all as it was and no stray write can damage them.

mod check;
mod fit;
mod list;
mod release;
mod room;
mod small;
mod space;
mod walk;

use std::collections::TryReserveError;
use std::fmt;
use std::num::NonZero;
use std::ptr::NonNull;

use crate::block::{AllocError, AllocReason, Block, Home, PoolKind};
use crate::raw::RawMemory;
use crate::stats::{MemoryStats, Tally};
use release::Recent;
use small::{Small, Taken};
use space::{PAGE, Range, Space, State};

pub use check::pool_is_valid;
pub(crate) use room::Window;
pub use small::SMALL_MAX;
pub use walk::SegmentInfo;

/// A caching allocator over a source of memory.
///
/// It is used by one thread at a time (`&mut self`); who shares it wraps it in a lock.
///
/// ```
/// use osteon_memory::{Pool, SystemMemory};
/// let mut pool = Pool::new(SystemMemory::new());
/// let block = pool.alloc(1000, 7)?;
/// assert_eq!((block.requested(), block.size()), (1000, 1024));
/// pool.free(block);
/// assert_eq!(pool.stats().allocated_bytes.all.peak, 1024);
/// # Ok::<(), osteon_memory::AllocError>(())
/// ```
pub struct Pool<R: RawMemory> {
    raw: R,
    granule: usize,
    spaces: [Space; 2],
    small: Small,
    tally: Tally,
    recent: Recent,
    limit: Option<usize>,
    idle_limit: Option<usize>,
    /// Counts the chunks freed, to tell which has been idle for longer.
    tick: u64,
}

/// A pointer to memory that a [`RawMemory`] mapped, from the address that the books hold.
#[inline]
fn pointer(addr: usize) -> NonNull<u8> {
    let addr = NonZero::new(addr).expect("mapped memory is not at address 0");
    // `attach` exposed the provenance of every mapped range.
    NonNull::with_exposed_provenance(addr)
}

impl<R: RawMemory> Pool<R> {
    /// An empty pool. Allocates nothing.
    pub fn new(raw: R) -> Pool<R> {
        let granule = raw.granularity();
        debug_assert!(granule.is_power_of_two() && granule >= PAGE);
        Pool {
            raw,
            granule,
            spaces: PoolKind::BOTH.map(|kind| Space::new(kind, granule)),
            small: Small::EMPTY,
            tally: Tally::ZERO,
            recent: Recent::ZERO,
            limit: None,
            idle_limit: None,
            tick: 0,
        }
    }

    /// A block of at least `bytes` bytes, initialised, with unspecified contents, aligned to 64
    /// bytes (above [`SMALL_MAX`] bytes to 4096).
    ///
    /// `tag` says whose it is in [`segments`](Self::segments) and
    /// [`largest_free`](Self::largest_free). For 0 bytes the block is the smallest there is.
    ///
    /// Up to [`SMALL_MAX`] bytes it costs some nanoseconds and at most 12.5 % in rounding; larger
    /// ones cost some tens of nanoseconds where free memory fits, and are rounded to 4 KiB.
    ///
    /// # Errors
    ///
    /// No memory within the limit or in the system, even after idle memory was given back.
    #[inline]
    pub fn alloc(&mut self, bytes: usize, tag: u64) -> Result<Block, AllocError> {
        if bytes <= SMALL_MAX {
            if let Some(taken) = self.small.take(bytes, tag) {
                return Ok(self.lend_slot(taken, bytes));
            }
            self.alloc_run(bytes, tag)
                .map_err(|reason| self.failed(bytes, reason))
        } else {
            self.alloc_large(bytes, tag)
                .map_err(|reason| self.failed(bytes, reason))
        }
    }

    /// Takes a block back. Its memory is free for the next [`alloc`](Self::alloc) at once.
    ///
    /// # Panics
    ///
    /// If the block is another pool's.
    #[inline]
    pub fn free(&mut self, block: Block) {
        let addr = block.ptr.addr().get();
        match block.home {
            Home::Slot { run, slot } => {
                let given = self.small.give(run, slot, addr);
                let (t, kind) = (&mut self.tally, PoolKind::Small);
                t.allocation.sub(kind, 1);
                t.allocated_bytes.sub(kind, given.size);
                t.requested_bytes.sub(kind, given.requested);
                t.inactive_split_bytes.add(kind, given.size);
                t.inactive_split.add(kind, usize::from(given.was_full));
                if given.empty {
                    self.retire_run(run);
                }
            }
            Home::Chunk(chunk) => self.free_large(chunk, addr),
        }
    }

    #[inline]
    fn lend_slot(&mut self, taken: Taken, requested: usize) -> Block {
        let Taken {
            addr,
            size,
            run,
            slot,
            filled,
        } = taken;
        let (t, kind) = (&mut self.tally, PoolKind::Small);
        t.allocation.add(kind, 1);
        t.allocated_bytes.add(kind, size);
        t.requested_bytes.add(kind, requested);
        t.inactive_split_bytes.sub(kind, size);
        if filled {
            t.inactive_split.sub(kind, 1);
        }
        Block {
            ptr: pointer(addr),
            size,
            requested,
            home: Home::Slot { run, slot },
        }
    }

    /// A small block from a new run.
    #[cold]
    fn alloc_run(&mut self, bytes: usize, tag: u64) -> Result<Block, AllocReason> {
        let run = self.small.new_run(bytes).map_err(no_books)?;
        let size = Small::run_bytes(bytes);
        let chunk = self.take(PoolKind::Small, size)?;
        let c = &mut self.spaces[PoolKind::Small as usize].chunks[chunk as usize];
        c.state = State::Run(self.small.add_run(run, c.addr, chunk));
        self.tally.inactive_split_bytes.add(PoolKind::Small, size);
        self.tally.inactive_split.add(PoolKind::Small, 1);
        let taken = self
            .small
            .take(bytes, tag)
            .expect("a new run has free slots");
        let block = self.lend_slot(taken, bytes);
        self.recent.note(size, self.tally.allocated_bytes.all());
        Ok(block)
    }

    fn retire_run(&mut self, run: u32) {
        if let Some(chunk) = self.small.retire(run, self.idle_limit != Some(0)) {
            self.free_run(chunk);
            self.trim();
        }
    }

    /// Frees the chunk of an empty run.
    fn free_run(&mut self, chunk: u32) {
        let space = &mut self.spaces[PoolKind::Small as usize];
        let size = space.chunk(chunk).size;
        self.tally.inactive_split_bytes.sub(PoolKind::Small, size);
        self.tally.inactive_split.sub(PoolKind::Small, 1);
        self.tick += 1;
        space.give(chunk, self.tick, &mut self.tally);
    }

    fn alloc_large(&mut self, bytes: usize, tag: u64) -> Result<Block, AllocReason> {
        // Nothing that rounds to more than `isize::MAX` has addresses.
        if bytes > isize::MAX as usize - self.granule {
            return Err(AllocReason::TooLarge);
        }
        let size = bytes.next_multiple_of(PAGE);
        let chunk = self.take(PoolKind::Large, size)?;
        let c = &mut self.spaces[PoolKind::Large as usize].chunks[chunk as usize];
        c.state = State::Live {
            tag,
            requested: bytes,
        };
        let ptr = pointer(c.addr);
        let (t, kind) = (&mut self.tally, PoolKind::Large);
        t.allocation.add(kind, 1);
        t.allocated_bytes.add(kind, size);
        t.requested_bytes.add(kind, bytes);
        self.recent.note(size, t.allocated_bytes.all());
        Ok(Block {
            ptr,
            size,
            requested: bytes,
            home: Home::Chunk(chunk),
        })
    }

    fn free_large(&mut self, chunk: u32, addr: usize) {
        let space = &mut self.spaces[PoolKind::Large as usize];
        let (size, requested) = match space.chunks.get(chunk as usize) {
            Some(c) if c.addr == addr => match c.state {
                State::Live { requested, .. } => (c.size, requested),
                _ => panic!("a block given back to a pool that did not make it"),
            },
            _ => panic!("a block given back to a pool that did not make it"),
        };
        let (t, kind) = (&mut self.tally, PoolKind::Large);
        t.allocation.sub(kind, 1);
        t.allocated_bytes.sub(kind, size);
        t.requested_bytes.sub(kind, requested);
        self.tick += 1;
        space.give(chunk, self.tick, t);
        self.trim();
    }

    /// A chunk of exactly `size` bytes in the given half: from free memory, or else from new.
    /// The caller sets its state.
    fn take(&mut self, kind: PoolKind, size: usize) -> Result<u32, AllocReason> {
        if let Some(chunk) = self.take_free(kind, size)? {
            return Ok(chunk);
        }
        if kind == PoolKind::Small {
            self.drop_spares();
            if let Some(chunk) = self.take_free(kind, size)? {
                return Ok(chunk);
            }
        }
        self.make_way(kind, size);
        let mut retry = false;
        while let Err(Shortage { reason, over }) = self.grow(kind, size) {
            self.drop_spares();
            if !retry
                && self.annex(kind, size)
                && let Some(chunk) = self.take_free(kind, size)?
            {
                self.tally.num_alloc_retries += 1;
                return Ok(chunk);
            }
            // A request that no release can satisfy leaves the cache alone.
            let need = over.unwrap_or(self.idle());
            if need > self.idle() || self.release(need) == 0 {
                return Err(reason);
            }
            self.tally.num_alloc_retries += u64::from(!retry);
            retry = true;
        }
        let chunk = self.take_free(kind, size)?;
        Ok(chunk.expect("a range just mapped holds what it was mapped for"))
    }

    fn take_free(&mut self, kind: PoolKind, size: usize) -> Result<Option<u32>, AllocReason> {
        self.spaces[kind as usize]
            .take(size, &mut self.tally)
            .map_err(no_books)
    }

    /// How to make room for a chunk of `size` bytes: the bytes to map (whole granules), and the
    /// end of the segment to map them behind, whose free tail makes up the rest.
    ///
    /// Of all segments with enough addresses free behind them, the one that needs the least, and
    /// among equals the one in front of the smallest hole.
    fn growth(&self, kind: PoolKind, size: usize) -> (usize, Option<usize>) {
        let mut best = (size.next_multiple_of(self.granule), None);
        let mut least = (usize::MAX, usize::MAX);
        let mut segments = self.segments().peekable();
        while let Some(segment) = segments.next() {
            let end = segment.address + segment.size;
            let (gap, head) = match segments.peek() {
                Some(next) if next.kind == kind => (next.address - end, next.free_head()),
                Some(next) => (next.address - end, 0),
                None => (usize::MAX - end, 0),
            };
            let missing = size.saturating_sub(segment.free_tail());
            let bytes = missing.next_multiple_of(self.granule).min(gap);
            let fits = missing <= gap.saturating_add(head);
            if segment.kind == kind && fits && (bytes, gap) < least {
                (best, least) = ((bytes, Some(end)), (bytes, gap));
            }
        }
        best
    }

    /// Maps memory for a chunk of `size` bytes.
    fn grow(&mut self, kind: PoolKind, size: usize) -> Result<(), Shortage> {
        const SYSTEM: Shortage = Shortage {
            reason: AllocReason::System,
            over: None,
        };
        // Two nodes for the range and one to split it, so that what follows cannot fail.
        self.spaces[kind as usize]
            .reserve(3, 1)
            .map_err(|_| SYSTEM)?;
        if let (bytes, Some(end)) = self.growth(kind, size) {
            self.within_limit(bytes)?;
            if let Ok(ptr) = self.raw.extend(pointer(end), bytes) {
                self.attach(kind, ptr, bytes);
                return Ok(());
            }
        }
        let bytes = size.next_multiple_of(self.granule);
        self.within_limit(bytes)?;
        let ptr = self.raw.map(bytes).map_err(|_| SYSTEM)?;
        self.attach(kind, ptr, bytes);
        Ok(())
    }

    fn within_limit(&self, more: usize) -> Result<(), Shortage> {
        let after = self.tally.reserved_bytes.all().saturating_add(more);
        match self.limit {
            Some(limit) if after > limit => {
                let (reason, over) = (AllocReason::Limit { limit }, Some(after - limit));
                Err(Shortage { reason, over })
            }
            _ => Ok(()),
        }
    }

    fn attach(&mut self, kind: PoolKind, ptr: NonNull<u8>, size: usize) {
        self.tally.num_device_alloc += 1;
        let range = Range {
            addr: ptr.as_ptr().expose_provenance(),
            size,
        };
        self.spaces[kind as usize].attach(range, self.tick, &mut self.tally);
    }

    #[cold]
    fn failed(&mut self, requested: usize, reason: AllocReason) -> AllocError {
        self.tally.num_ooms += 1;
        AllocError { requested, reason }
    }

    /// Bounds what the pool may reserve from the system; `None` for no bound. What is reserved
    /// beyond a new limit goes back as far as it is idle.
    pub fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit;
        if let Some(limit) = limit {
            let over = self.tally.reserved_bytes.all().saturating_sub(limit);
            if over > 0 {
                self.drop_spares();
                self.release(over);
            }
        }
    }

    /// The bound set by [`set_limit`](Self::set_limit).
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Bounds the free memory that stays mapped for reuse, in whole granules of 2 MiB; `None`
    /// for the rule max(256 MiB, half the highest allocated size of late). 0 keeps none, which
    /// makes every large allocation a system call and page faults.
    pub fn set_idle_limit(&mut self, limit: Option<usize>) {
        self.idle_limit = limit;
        if limit == Some(0) {
            self.drop_spares();
        }
        self.trim();
    }

    /// Gives all idle memory back to the system: every granule (2 MiB) that no live block lies
    /// in, also in the midst of a segment. Returns the bytes that went.
    pub fn empty_cache(&mut self) -> usize {
        self.drop_spares();
        self.release(usize::MAX)
    }

    /// Counts how often the segments changed.
    pub(crate) fn changes(&self) -> u64 {
        self.spaces.iter().map(|s| s.changes).sum()
    }

    /// The statistics now.
    pub fn stats(&self) -> MemoryStats {
        self.tally.snapshot()
    }

    /// Sets every peak to the current value.
    pub fn reset_peak(&mut self) {
        self.tally.reset_peak();
    }

    /// Zeroes all that was ever added or taken away, and the counters.
    pub fn reset_accumulated(&mut self) {
        self.tally.reset_accumulated();
    }
}

/// Why memory could not be mapped, and by how much the limit would be passed.
struct Shortage {
    reason: AllocReason,
    over: Option<usize>,
}

/// The pool's own books could not grow.
fn no_books(_: TryReserveError) -> AllocReason {
    AllocReason::System
}

impl<R: RawMemory> fmt::Debug for Pool<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("allocated", &self.tally.allocated_bytes.all())
            .field("reserved", &self.tally.reserved_bytes.all())
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl<R: RawMemory> Drop for Pool<R> {
    /// Gives back what no live block lies in. Blocks that are still out stay valid: their memory
    /// is leaked rather than taken from under them.
    fn drop(&mut self) {
        self.empty_cache();
    }
}
