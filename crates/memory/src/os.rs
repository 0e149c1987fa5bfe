//! Memory from the operating system.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use crate::raw::{RawError, RawMemory};

/// The size of a huge page: everything is mapped in this unit.
const HUGE_PAGE: usize = 2 << 20;

/// How many unused addresses a new piece would like above it, in order of preference.
const ROOM: [usize; 3] = [1 << 40, 1 << 35, 0];

/// Anonymous private memory of the process, in huge pages where the kernel grants them.
///
/// Faulting in 64 MiB costs five times less with 2 MiB pages than with 4 KiB pages, so every
/// piece is a multiple of 2 MiB, aligned to it, and `madvise`d. Mapping takes addresses only; the
/// kernel provides (zeroed) memory at the first touch.
///
/// A piece is put where many addresses above it are unused, so that it can be extended: blocks
/// of 3 MiB then lie one behind the other instead of filling 4 MiB each.
#[derive(Debug, Default)]
pub struct SystemMemory(());

impl SystemMemory {
    /// The memory of this process.
    pub const fn new() -> SystemMemory {
        SystemMemory(())
    }
}

fn os_error(e: Errno) -> RawError {
    RawError::Os(e.raw_os_error())
}

/// Maps at the address `near` if that is free, or else (or if it is 0) anywhere.
fn map_near(near: usize, bytes: usize, prot: ProtFlags) -> Result<NonNull<u8>, RawError> {
    let near = ptr::without_provenance_mut::<c_void>(near);
    // SAFETY: without FIXED, the kernel takes `near` as a wish and chooses unused addresses.
    let ptr = unsafe { mmap_anonymous(near, bytes, prot, MapFlags::PRIVATE) };
    NonNull::new(ptr.map_err(os_error)?.cast()).ok_or(RawError::Exhausted)
}

/// # Safety
///
/// The range is mapped, and nothing uses it.
unsafe fn unmap(ptr: NonNull<u8>, bytes: usize) -> Result<(), RawError> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { munmap(ptr.as_ptr().cast(), bytes) }.map_err(os_error)
}

/// Asks for huge pages. A kernel that has none answers with an error, which costs only speed.
fn advise_huge(ptr: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range was just mapped, and this advice changes no contents.
        let _ = unsafe { madvise(ptr.as_ptr().cast(), bytes, Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (ptr, bytes);
}

/// Maps `bytes` at a multiple of 2 MiB with at least `room` unused addresses above it.
fn map_with_room(bytes: usize, room: usize) -> Result<NonNull<u8>, RawError> {
    let wide = bytes
        .checked_add(HUGE_PAGE)
        .and_then(|n| n.checked_add(room));
    let wide = wide.ok_or(RawError::Exhausted)?;
    // Addresses only: what may not be touched is not counted against any limit of memory.
    let hole = map_near(0, wide, ProtFlags::empty())?;
    let head = hole.addr().get().next_multiple_of(HUGE_PAGE) - hole.addr().get();
    // SAFETY: `head` is less than a huge page, so all of this lies in the hole, which nothing
    // uses. Addresses that cannot be unmapped (too many mappings) stay taken, no more.
    unsafe {
        let start = hole.add(head);
        let _ = unmap(hole, head);
        let _ = unmap(start.add(bytes), wide - head - bytes);
        let access = MprotectFlags::READ | MprotectFlags::WRITE;
        if let Err(e) = mprotect(start.as_ptr().cast(), bytes, access) {
            let _ = unmap(start, bytes);
            return Err(os_error(e));
        }
        Ok(start)
    }
}

// SAFETY: anonymous private mappings are fresh, zeroed, readable and writable, disjoint, and last
// until `munmap`, which takes any whole pages. All are aligned to 2 MiB. Neighbouring mappings are
// one piece of address space to the kernel, and no compiler knows where one ends.
unsafe impl RawMemory for SystemMemory {
    fn granularity(&self) -> usize {
        HUGE_PAGE
    }

    fn map(&mut self, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let mut result = Err(RawError::Exhausted);
        for room in ROOM {
            result = map_with_room(bytes, room);
            if let Ok(start) = result {
                advise_huge(start, bytes);
                break;
            }
        }
        result
    }

    fn extend(&mut self, end: NonNull<u8>, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let start = map_near(end.addr().get(), bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        if start != end {
            // SAFETY: mapped just now, and not used.
            let _ = unsafe { unmap(start, bytes) };
            return Err(RawError::Exhausted);
        }
        advise_huge(start, bytes);
        Ok(start)
    }

    unsafe fn unmap(&mut self, ptr: NonNull<u8>, bytes: usize) -> Result<(), RawError> {
        // SAFETY: the caller's promise.
        unsafe { unmap(ptr, bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_aligned_zeros_and_unmaps_parts() {
        let mut system = SystemMemory::new();
        for granules in [1, 3, 8] {
            let bytes = granules * HUGE_PAGE;
            let p = system.map(bytes).unwrap();
            assert_eq!(p.addr().get() % HUGE_PAGE, 0);
            for at in [0, HUGE_PAGE / 2, bytes - 1] {
                // SAFETY: within the mapping.
                unsafe {
                    assert_eq!(p.add(at).read(), 0);
                    p.add(at).write(7);
                }
            }
            // SAFETY: whole granules of the mapping, each once, not used after.
            unsafe {
                system.unmap(p, HUGE_PAGE).unwrap();
                if granules > 1 {
                    let rest = p.add(HUGE_PAGE);
                    assert_eq!(rest.add(bytes - HUGE_PAGE - 1).read(), 7);
                    system.unmap(rest, bytes - HUGE_PAGE).unwrap();
                }
            }
        }
    }

    #[test]
    fn extends_in_place_or_not_at_all() {
        let mut system = SystemMemory::new();
        let p = system.map(HUGE_PAGE).unwrap();
        // SAFETY: the end of the mapping.
        let end = unsafe { p.add(HUGE_PAGE) };
        assert_eq!(system.extend(end, 2 * HUGE_PAGE).unwrap(), end);
        // SAFETY: within the extension.
        unsafe { assert_eq!(end.add(2 * HUGE_PAGE - 1).read(), 0) };
        assert_eq!(system.extend(end, HUGE_PAGE), Err(RawError::Exhausted));
        // SAFETY: both mappings, as one; not used after.
        unsafe { system.unmap(p, 3 * HUGE_PAGE).unwrap() };
    }

    #[test]
    fn more_than_the_address_space_is_an_error() {
        let mut system = SystemMemory::new();
        let too_much = (isize::MAX as usize).next_multiple_of(HUGE_PAGE) - HUGE_PAGE;
        assert!(system.map(too_much).is_err());
        assert!(system.map(too_much / 2).is_err());
    }
}
