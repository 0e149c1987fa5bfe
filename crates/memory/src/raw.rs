//! Where a pool's memory comes from.

use std::fmt;
use std::ptr::NonNull;

/// A source of memory in large pieces, from which a [`Pool`](crate::Pool) cuts blocks.
///
/// The pool asks for few and large pieces and keeps them, so an implementation may be slow. It
/// is a trait so that tests can bound the memory ([`Arena`](crate::testing::Arena)) and so that
/// the pool's arithmetic serves other devices too: the pool never reads or writes what it hands
/// out.
///
/// # Safety
///
/// - [`granularity`](Self::granularity) is a power of two, at least 4096, and never changes.
/// - Memory returned by [`map`](Self::map) is aligned to the granularity, readable and writable,
///   initialised (all zeros), overlaps nothing else that is mapped, and stays so until it is
///   unmapped, even when `self` is dropped first.
/// - Pieces that happen to touch may be used as one piece: the pool joins them.
pub unsafe trait RawMemory: Send {
    /// The unit in which memory is mapped and unmapped, and its alignment.
    fn granularity(&self) -> usize;

    /// Maps `bytes` bytes (a positive multiple of the granularity) of zeros.
    ///
    /// # Errors
    ///
    /// There is no more memory. Nothing has changed then.
    fn map(&mut self, bytes: usize) -> Result<NonNull<u8>, RawError>;

    /// Maps `bytes` bytes as [`map`](Self::map) does, directly behind a mapped piece that ends at
    /// `end`, so that what is free at that end is of use.
    ///
    /// # Errors
    ///
    /// The addresses are not free, or the source does not choose addresses.
    fn extend(&mut self, end: NonNull<u8>, bytes: usize) -> Result<NonNull<u8>, RawError> {
        let _ = (end, bytes);
        Err(RawError::Exhausted)
    }

    /// Gives back `bytes` bytes at `ptr`: any part of what was mapped, in whole granules.
    ///
    /// # Errors
    ///
    /// The memory could not be given back. It is still mapped then and keeps its contents.
    ///
    /// # Safety
    ///
    /// [`can_unmap`](Self::can_unmap) is true, the range was mapped by `self`, is not yet
    /// unmapped, is aligned to the granularity at both ends, and nothing uses it any more.
    unsafe fn unmap(&mut self, ptr: NonNull<u8>, bytes: usize) -> Result<(), RawError>;

    /// Whether memory can be given back at all.
    fn can_unmap(&self) -> bool {
        true
    }
}

// SAFETY: each call is the same call of the boxed source, which keeps the contract.
unsafe impl<R: RawMemory + ?Sized> RawMemory for Box<R> {
    fn granularity(&self) -> usize {
        (**self).granularity()
    }

    fn map(&mut self, bytes: usize) -> Result<NonNull<u8>, RawError> {
        (**self).map(bytes)
    }

    fn extend(&mut self, end: NonNull<u8>, bytes: usize) -> Result<NonNull<u8>, RawError> {
        (**self).extend(end, bytes)
    }

    unsafe fn unmap(&mut self, ptr: NonNull<u8>, bytes: usize) -> Result<(), RawError> {
        // SAFETY: passed on from the caller.
        unsafe { (**self).unmap(ptr, bytes) }
    }

    fn can_unmap(&self) -> bool {
        (**self).can_unmap()
    }
}

/// Why memory could not be mapped or unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawError {
    /// A bounded source has no piece of that size left.
    Exhausted,
    /// The operating system refused, with this error number.
    Os(i32),
}

impl fmt::Display for RawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RawError::Exhausted => f.write_str("no piece of that size is left"),
            RawError::Os(code) => std::io::Error::from_raw_os_error(code).fmt(f),
        }
    }
}

impl std::error::Error for RawError {}
