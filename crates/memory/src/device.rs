//! The memory of each device: its allocator, its statistics and the list of its storages, behind one lock.

use crate::block::{AllocError, AllocReason};
#[cfg(not(any(loom, unrecorded)))]
use crate::events;
use crate::list::List;
use crate::oom::Report;
use crate::os::SystemMemory;
use crate::pool::{Pool, SMALL_MAX};
use crate::raw::{RawError, RawMemory};
use crate::stats::MemoryStats;
use crate::storage::{Inner, Owner, Site};
use crate::timeline::spool;
use osteon_spec::Device;
use std::any::Any;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard};

/// What a device knows, under its lock.
///
/// Invariant **D1**: `storages` lists exactly the storages whose owner is not `Unlisted`, and the pool's live
/// blocks are those of the listed storages: both change in one critical section.
pub(crate) struct State {
    device: Device,
    /// Made at the first use.
    pool: Option<Pool<Box<dyn RawMemory>>>,
    pub(crate) storages: List<Inner>,
    /// The time of the last allocation or free.
    clock: u64,
    /// Bytes of the program's heap, set aside so that the error of an allocation that failed, and its report, can be
    /// made where the heap is full. Given back then, and set aside again when a large block could be had.
    reserve: Vec<u8>,
}

/// The bytes of [`State::reserve`]: some times what a short report needs.
const RESERVE: usize = 64 << 10;

/// When a storage got or gave back its block, and the block's bytes; 0 for bytes of somebody else's.
#[derive(Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) clock: u64,
    pub(crate) allocated: u64,
}

/// The memory of one device.
pub(crate) struct DeviceMemory {
    state: Mutex<State>,
}

static CPU: DeviceMemory = DeviceMemory::new(Device::cpu());
static META: DeviceMemory = DeviceMemory::new(Device::meta());

/// The memory of a device.
#[inline]
pub(crate) fn of(device: &Device) -> &'static DeviceMemory {
    if device.is_meta() { &META } else { &CPU }
}

/// The memory of every device.
pub(crate) fn all() -> [&'static DeviceMemory; 2] {
    [&CPU, &META]
}

impl DeviceMemory {
    const fn new(device: Device) -> DeviceMemory {
        DeviceMemory {
            state: Mutex::new(State {
                device,
                pool: None,
                storages: List::new(),
                clock: 0,
                reserve: Vec::new(),
            }),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock stops half-way, so a panic elsewhere need not stop everybody.
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl State {
    #[inline]
    pub(crate) fn pool(&mut self) -> &mut Pool<Box<dyn RawMemory>> {
        let device = self.device;
        self.pool.get_or_insert_with(|| {
            Pool::new(if device.is_meta() {
                Box::new(Nowhere { next: META_BASE }) as Box<dyn RawMemory>
            } else {
                Box::new(SystemMemory::new())
            })
        })
    }

    pub(crate) fn stats(&mut self) -> MemoryStats {
        self.pool().stats()
    }

    /// Takes memory from another source from now on; `Err` while blocks of the present one are in use.
    pub(crate) fn set_source(&mut self, source: Box<dyn RawMemory>) -> Result<(), u64> {
        match self.stats().allocation.all.current {
            0 => {
                self.pool = Some(Pool::new(source));
                Ok(())
            }
            live => Err(live),
        }
    }

    /// Gives a new storage its bytes and enters it in the list.
    #[inline]
    pub(crate) fn adopt(&mut self, storage: &Inner, nbytes: usize) -> Result<Stamp, Box<Report>> {
        let (ptr, owner) = self.take(storage, nbytes)?;
        let allocated = owner.allocated();
        // SAFETY: the lock is held (`self`), the storage is new, and `take` gave `nbytes` initialised bytes.
        unsafe { storage.set_bytes(ptr, nbytes, owner) };
        // SAFETY: a new storage is in no list, and its handle keeps it until `release`.
        unsafe { self.storages.push(storage) };
        self.spool_alloc(storage, storage.origin().maker());
        Ok(self.stamp(storage, allocated))
    }

    #[cfg(not(any(loom, unrecorded)))]
    /// A time later than every allocation and free here.
    pub(crate) fn tick(&mut self) -> u64 {
        self.clock = events::tick(self.clock);
        self.clock
    }

    /// The time of what has just happened to a storage that is new, or about to go.
    #[inline]
    fn stamp(&mut self, storage: &Inner, allocated: usize) -> Stamp {
        self.stamp_at(storage.tick_alone(self.clock), allocated)
    }

    #[inline]
    fn stamp_at(&mut self, clock: u64, allocated: usize) -> Stamp {
        self.clock = clock;
        Stamp {
            clock,
            allocated: allocated as u64,
        }
    }

    /// Enters a new storage of foreign bytes, which are set already, in the list.
    pub(crate) fn adopt_foreign(
        &mut self,
        storage: &Inner,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Stamp {
        // SAFETY: the lock is held, the storage is new, and its bytes stay as they are.
        unsafe { storage.set_bytes(storage.ptr(), storage.nbytes(), Owner::Foreign(owner)) };
        // SAFETY: as in `adopt`.
        unsafe { self.storages.push(storage) };
        self.spool_alloc(storage, storage.origin().maker());
        self.stamp(storage, 0)
    }

    /// Moves a storage to a larger block, and says what became of the old one and the new one. The caller holds it as a
    /// writing operation.
    pub(crate) fn grow(
        &mut self,
        storage: &Inner,
        nbytes: usize,
        by: (&'static str, Option<Site>),
    ) -> Result<[Stamp; 2], Box<Report>> {
        let (ptr, owner) = self.take(storage, nbytes)?;
        let allocated = owner.allocated();
        let (old, len) = (storage.ptr(), storage.nbytes());
        if !old.is_null() {
            // SAFETY: both are valid for `len` bytes, which are fewer than `nbytes`, and the pool's blocks
            // do not overlap; no operation and no guard is on the old bytes.
            unsafe { ptr::copy_nonoverlapping(old, ptr, len) };
        }
        // SAFETY: the lock is held, the caller holds the storage, and the new block is larger.
        let before = unsafe { storage.set_bytes(ptr, nbytes, owner) };
        let freed = before.allocated();
        if let Owner::Pool(block) = before {
            self.pool().free(block);
        }
        self.spool_free(storage);
        self.spool_alloc(storage, by);
        let mut stamp = |bytes| self.stamp_at(storage.tick(self.clock), bytes);
        Ok([stamp(freed), stamp(allocated)])
    }

    /// Takes a storage off the list and gives its block back. A foreign owner stays with the storage and is
    /// dropped with it, when the lock is not held: that is somebody else's code.
    #[inline]
    pub(crate) fn release(&mut self, storage: &Inner) -> Option<Stamp> {
        let nbytes = storage.nbytes();
        // SAFETY: the lock is held; the last handle is going, so nobody looks at the bytes.
        let owner = unsafe { storage.set_bytes(ptr::null_mut(), nbytes, Owner::Unlisted) };
        if let Owner::Unlisted = owner {
            return None;
        }
        let allocated = owner.allocated();
        // SAFETY: D1: it is listed.
        unsafe { self.storages.remove(storage) };
        match owner {
            Owner::Pool(block) => self.pool().free(block),
            // SAFETY: as above.
            other => _ = unsafe { storage.set_bytes(ptr::null_mut(), nbytes, other) },
        }
        self.spool_free(storage);
        Some(self.stamp(storage, allocated))
    }

    #[inline]
    fn spool_alloc(&mut self, storage: &Inner, by: (&'static str, Option<Site>)) {
        if spool::is_on() {
            // SAFETY: the lock is held.
            let owner = unsafe { storage.owner() };
            spool::alloc(self.number(), storage, owner, by, self.pool());
        }
    }

    #[inline]
    fn spool_free(&mut self, storage: &Inner) {
        if spool::is_on() {
            spool::free(self.number(), storage, self.pool());
        }
    }

    fn spool_segments(&mut self) {
        if spool::is_on() {
            spool::segments(self.number(), self.pool());
        }
    }

    /// Its place in [`all`].
    fn number(&self) -> u32 {
        u32::from(self.device.is_meta())
    }

    pub(crate) fn empty_cache(&mut self) -> usize {
        let given_back = self.pool().empty_cache();
        self.spool_segments();
        given_back
    }

    pub(crate) fn set_limit(&mut self, limit: Option<usize>) {
        self.pool().set_limit(limit);
        self.spool_segments();
    }

    #[inline]
    fn take(&mut self, storage: &Inner, nbytes: usize) -> Result<(*mut u8, Owner), Box<Report>> {
        if nbytes == 0 {
            return Ok((ptr::null_mut(), Owner::Nothing));
        }
        let meta = self.device.is_meta();
        if nbytes > SMALL_MAX && self.reserve.capacity() == 0 {
            // Without it all goes on; only an error may find no memory.
            let _ = self.reserve.try_reserve_exact(RESERVE);
        }
        match self.pool().alloc(nbytes, storage.id()) {
            Ok(block) if meta => Ok((ptr::null_mut(), Owner::Pool(block))),
            Ok(block) => Ok((block.ptr().as_ptr(), Owner::Pool(block))),
            Err(e) => {
                self.spool_segments();
                Err(self.report(e))
            }
        }
    }

    #[cold]
    pub(crate) fn report(&mut self, error: AllocError) -> Box<Report> {
        self.reserve = Vec::new();
        Box::new(Report::new(self.device, error, self))
    }
}

/// The report of bookkeeping that found no memory.
#[cold]
pub(crate) fn no_memory_for_books(device: &Device, requested: usize) -> Box<Report> {
    of(device).lock().report(AllocError {
        requested,
        reason: AllocReason::System,
    })
}

/// The memory of a device without memory: addresses that stand for nothing, so that the allocator's
/// arithmetic forecasts what a real device would reserve.
struct Nowhere {
    next: usize,
}

/// Far from null, and on the granularity.
const META_BASE: usize = 1 << 32;
const META_GRANULE: usize = 2 << 20;

// SAFETY: the pool never touches what it hands out, and `State::take` gives a storage of this device no
// pointer, so nobody else does; addresses are never handed out twice, so none overlap.
unsafe impl RawMemory for Nowhere {
    fn granularity(&self) -> usize {
        META_GRANULE
    }

    fn map(&mut self, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let at = self.next;
        let end = at.checked_add(bytes).filter(|&e| e <= isize::MAX as usize);
        self.next = end.ok_or(RawError::Exhausted)?;
        NonNull::new(ptr::without_provenance_mut(at)).ok_or(RawError::Exhausted)
    }

    unsafe fn unmap(&mut self, _ptr: NonNull<u8>, _bytes: usize) -> Result<(), RawError> {
        Ok(())
    }
}
