//! Memory from the operating system.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::raw::{RawError, RawMemory};

/// The size of a huge page: everything is mapped in this unit.
const HUGE_PAGE: usize = 2 << 20;

/// Anonymous private memory of the process, in huge pages where the kernel grants them.
///
/// Faulting in 64 MiB costs five times less with 2 MiB pages than with 4 KiB pages, so every
/// piece is a multiple of 2 MiB, aligned to it, and `madvise`d. Mapping reserves addresses only;
/// the kernel provides (zeroed) memory at the first touch.
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

fn map_anywhere(bytes: usize) -> Result<*mut u8, RawError> {
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a null hint without FIXED lets the kernel choose unused addresses.
    let ptr = unsafe { mmap_anonymous(ptr::null_mut(), bytes, prot, flags) };
    ptr.map(|p| p.cast()).map_err(os_error)
}

/// # Safety
///
/// The range was mapped by `map_anywhere` and nothing uses it.
unsafe fn unmap(ptr: *mut u8, bytes: usize) -> Result<(), RawError> {
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { munmap(ptr.cast::<c_void>(), bytes) }.map_err(os_error)
}

/// Asks for huge pages. A kernel that has none answers with an error, which costs only speed.
fn advise_huge(ptr: *mut u8, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range was just mapped, and this advice changes no contents.
        let _ = unsafe { madvise(ptr.cast(), bytes, Advice::LinuxHugepage) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (ptr, bytes);
}

// SAFETY: anonymous private mappings are fresh, zeroed, readable and writable, disjoint, and last
// until `munmap`, which takes any whole pages. `map` aligns them. Neighbouring mappings are one
// piece of address space to the kernel, and no compiler knows where one ends.
unsafe impl RawMemory for SystemMemory {
    fn granularity(&self) -> usize {
        HUGE_PAGE
    }

    fn map(&mut self, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let mut start = map_anywhere(bytes)?;
        // Newer kernels align large mappings by themselves; otherwise map more and trim.
        if !start.addr().is_multiple_of(HUGE_PAGE) {
            // SAFETY: mapped above and unused.
            unsafe { unmap(start, bytes)? };
            let room = bytes.checked_add(HUGE_PAGE).ok_or(RawError::Exhausted)?;
            let wide = map_anywhere(room)?;
            let head = wide.addr().next_multiple_of(HUGE_PAGE) - wide.addr();
            start = wide.wrapping_add(head);
            // Untouched pages that cannot be trimmed (too many mappings) cost addresses only.
            // SAFETY: both ends were mapped above and are unused.
            let _ = unsafe { unmap(wide, head) };
            // SAFETY: as above.
            let _ = unsafe { unmap(start.wrapping_add(bytes), HUGE_PAGE - head) };
        }
        advise_huge(start, bytes);
        NonNull::new(start).ok_or(RawError::Exhausted)
    }

    unsafe fn unmap(&mut self, ptr: NonNull<u8>, bytes: usize) -> Result<(), RawError> {
        // SAFETY: the caller's promise.
        unsafe { unmap(ptr.as_ptr(), bytes) }
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
            for at in [0, HUGE_PAGE - 1, bytes - 1] {
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
    fn more_than_the_address_space_is_an_error() {
        let mut system = SystemMemory::new();
        let too_much = (isize::MAX as usize).next_multiple_of(HUGE_PAGE) - HUGE_PAGE;
        assert!(matches!(system.map(too_much), Err(RawError::Os(_))));
    }
}
