//! Tools for testing against a pool: bounded memory that can be made to fail.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::device;
use crate::os::SystemMemory;
use crate::raw::{RawError, RawMemory};
use osteon_spec::{Device, Error, Kind, Result};

/// Makes the allocator of a device take its memory from another source: an [`Arena`] for a machine that is small, or
/// that takes nothing back. Statistics and limits start anew.
///
/// ```
/// use osteon_memory::{Storage, set_limit, testing};
/// use osteon_spec::Device;
/// let (cpu, here) = (Device::cpu(), std::panic::Location::caller());
/// testing::set_memory(&cpu, testing::Arena::new(2 << 20))?;
/// let fits = Storage::allocate(2 << 20, &cpu, "test", here)?;
/// assert!(Storage::allocate(1 << 20, &cpu, "test", here).unwrap_err().is_out_of_memory());
/// // Not while anything lives in it.
/// assert!(testing::set_memory(&cpu, testing::Arena::new(4 << 20)).is_err());
/// # drop(fits);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
///
/// # Errors
/// [`Kind::Value`] while storages have blocks on the device.
pub fn set_memory(device: &Device, source: impl RawMemory + 'static) -> Result<()> {
    let set = device::of(device).lock().set_source(Box::new(source));
    set.map_err(|live| {
        Error::new(
            Kind::Value,
            format!("{live} storages have their bytes from the present memory of {device}; drop them first"),
        )
    })
}

/// One fixed region as a source of memory.
///
/// Pieces are taken from its lowest free addresses, so that addresses are predictable. It makes
/// out-of-memory situations exact:
///
/// ```
/// use osteon_memory::{Pool, testing::Arena};
/// const MIB: usize = 1 << 20;
/// let mut pool = Pool::new(Arena::new(320 * MIB));
/// let mut blocks: Vec<_> = (0..20).map(|i| pool.alloc(16 * MIB, i)).collect::<Result<_, _>>()?;
/// // Every second one goes: 160 MiB are free, but no two pieces touch.
/// for i in (0..10).rev() {
///     pool.free(blocks.swap_remove(2 * i));
/// }
/// assert!(pool.alloc(100 * MIB, 20).is_err());
/// assert_eq!(pool.largest_free().unwrap().size, 16 * MIB);
/// # Ok::<(), osteon_memory::AllocError>(())
/// ```
///
/// The region is address space until it is touched. It is given back when the arena is dropped
/// with nothing mapped, and leaked otherwise, because blocks may still lie in it.
#[derive(Debug)]
pub struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    granule: usize,
    /// Which granules are mapped.
    mapped: Vec<bool>,
    can_unmap: bool,
    ends_with_pool: bool,
    maps_left: Arc<AtomicUsize>,
}

// SAFETY: the region belongs to the arena alone; `base` is an address in it.
unsafe impl Send for Arena {}

impl Arena {
    /// A region of that many bytes (rounded up to 2 MiB) that takes nothing back.
    ///
    /// # Panics
    ///
    /// If the system has no such region.
    pub fn new(bytes: usize) -> Arena {
        let granule = SystemMemory::new().granularity();
        Arena::with_granule(bytes, granule, false)
    }

    /// The same with another granularity (a power of two from 4096 to 2 MiB), which may take
    /// memory back.
    ///
    /// # Panics
    ///
    /// If the granularity is not one of these, or the system has no such region.
    pub fn with_granule(bytes: usize, granule: usize, can_unmap: bool) -> Arena {
        let mut system = SystemMemory::new();
        let unit = system.granularity();
        assert!(granule.is_power_of_two() && (4096..=unit).contains(&granule));
        let bytes = bytes.next_multiple_of(unit);
        let base = system.map(bytes).expect("address space for an arena");
        let mapped = vec![false; bytes / granule];
        Arena {
            base,
            bytes,
            granule,
            mapped,
            can_unmap,
            ends_with_pool: false,
            maps_left: Arc::new(AtomicUsize::new(usize::MAX)),
        }
    }

    /// The same arena, whose region goes when it is dropped, whatever is mapped: for tests that make so
    /// many that leaking what a pool keeps cached would fill the memory.
    ///
    /// # Safety
    /// Nothing uses a block of the pool after the pool is dropped.
    pub unsafe fn ending_with_pool(mut self) -> Arena {
        self.ends_with_pool = true;
        self
    }

    /// How many further pieces can be mapped before all are refused, to be set by a test.
    pub fn maps_left(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.maps_left)
    }

    fn index(&self, ptr: NonNull<u8>) -> usize {
        (ptr.addr().get() - self.base.addr().get()) / self.granule
    }

    fn take(&mut self, first: usize, n: usize) -> Result<NonNull<u8>, RawError> {
        let left = self.maps_left.load(Ordering::Relaxed);
        let left = left.checked_sub(1).ok_or(RawError::Exhausted)?;
        self.maps_left.store(left, Ordering::Relaxed);
        self.mapped[first..first + n].fill(true);
        // SAFETY: `first` is a granule of the region.
        Ok(unsafe { self.base.add(first * self.granule) })
    }
}

// SAFETY: pieces are aligned parts of one zeroed region that lives until `drop` finds it unused;
// `mapped` keeps them disjoint; what comes back is zeroed before it is handed out again.
unsafe impl RawMemory for Arena {
    fn granularity(&self) -> usize {
        self.granule
    }

    fn map(&mut self, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let n = bytes / self.granule;
        let first = self.mapped.windows(n).position(|w| !w.contains(&true));
        self.take(first.ok_or(RawError::Exhausted)?, n)
    }

    fn extend(&mut self, end: NonNull<u8>, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let (first, n) = (self.index(end), bytes / self.granule);
        match self.mapped.get(first..first + n) {
            Some(behind) if !behind.contains(&true) => self.take(first, n),
            _ => Err(RawError::Exhausted),
        }
    }

    unsafe fn unmap(&mut self, ptr: NonNull<u8>, bytes: usize) -> Result<(), RawError> {
        assert!(self.can_unmap, "a fixed arena takes nothing back");
        let first = self.index(ptr);
        let granules = &mut self.mapped[first..first + bytes / self.granule];
        assert!(granules.iter().all(|&m| m), "unmapped twice");
        granules.fill(false);
        // SAFETY: mapped until now, and the caller promises that nothing uses it.
        unsafe { ptr.write_bytes(0, bytes) };
        Ok(())
    }

    fn can_unmap(&self) -> bool {
        self.can_unmap
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.ends_with_pool || !self.mapped.contains(&true) {
            // SAFETY: the whole region as it was mapped, and no piece of it is out, or used any more
            // (`ending_with_pool`). A refusal leaks it.
            let _ = unsafe { SystemMemory::new().unmap(self.base, self.bytes) };
        }
    }
}
