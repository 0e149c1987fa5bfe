//! A reference-counted box whose last owner leaves a list before the memory goes.

use crate::sync::{AtomicUsize, Ordering};
use std::alloc::{self, Layout};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

/// The number of handles to a value.
pub(crate) struct Refs(AtomicUsize);

impl Refs {
    pub(crate) fn one() -> Refs {
        Refs(AtomicUsize::new(1))
    }

    /// How many there are now.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether a handle exists. A walker of a list skips a value that is about to leave it.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

/// A value that lists may point to.
pub(crate) trait Shared {
    /// The counter inside the value, made by [`Refs::one`] and touched by its handles alone.
    fn refs(&self) -> &Refs;

    /// Takes the lock of the list that points to the value and unlinks it. Afterwards nobody but the
    /// caller holds a pointer to it.
    fn retire(&self);
}

/// A shared handle to a `T`, like `Arc`, with two differences.
///
/// Lists hold plain pointers to the value and are walked under their own lock. The last handle
/// therefore calls [`Shared::retire`] with a *shared* reference, which leaves the list under that lock,
/// and only then drops the value: `Arc` would run `drop(&mut self)` while a walker still reads. And
/// allocation is fallible.
///
/// Invariants:
/// - **H1** `ptr` came from [`Handle::try_new`] and is freed by the handle whose decrement found 1.
/// - **H2** The counter never rises from 0.
pub(crate) struct Handle<T: Shared> {
    ptr: NonNull<T>,
}

// SAFETY: handles share the value (`Sync`), and the last one, on any thread, drops it (`Send`).
unsafe impl<T: Shared + Send + Sync> Send for Handle<T> {}
// SAFETY: as above; a shared handle can be cloned into an owned one.
unsafe impl<T: Shared + Send + Sync> Sync for Handle<T> {}

impl<T: Shared> Handle<T> {
    /// The first handle, `None` where the system has no memory for the value, which is made where it will lie: moving
    /// it there would cost as much as the rest.
    #[inline]
    pub(crate) fn try_new(value: impl FnOnce() -> T) -> Option<Handle<T>> {
        const { assert!(size_of::<T>() > 0) }
        // SAFETY: the layout is not zero-sized, as asserted.
        let raw = unsafe { alloc::alloc(Layout::new::<T>()) }.cast::<T>();
        let ptr = NonNull::new(raw)?;
        // SAFETY: fresh memory of the value's layout.
        unsafe { ptr.write(value()) };
        Some(Handle { ptr })
    }

    /// Whether this is the only handle.
    #[inline]
    pub(crate) fn is_unique(&self) -> bool {
        self.refs().0.load(Ordering::Acquire) == 1
    }

    /// Another handle that does not count.
    ///
    /// # Safety
    /// It is not used once the last handle that counts has gone.
    #[inline]
    pub(crate) unsafe fn uncounted(&self) -> ManuallyDrop<Handle<T>> {
        ManuallyDrop::new(Handle { ptr: self.ptr })
    }

    /// Whether two handles share one value.
    #[inline]
    pub(crate) fn ptr_eq(&self, other: &Handle<T>) -> bool {
        self.ptr == other.ptr
    }
}

impl<T: Shared> Deref for Handle<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: H1: a live handle keeps its value.
        unsafe { self.ptr.as_ref() }
    }
}

impl<T: Shared> Clone for Handle<T> {
    #[inline]
    fn clone(&self) -> Handle<T> {
        let before = self.refs().0.fetch_add(1, Ordering::Relaxed);
        // As in `Arc`: handles that are forgotten, not dropped, could overflow the counter.
        if before > isize::MAX as usize {
            std::process::abort();
        }
        Handle { ptr: self.ptr }
    }
}

impl<T: Shared> Drop for Handle<T> {
    #[inline]
    fn drop(&mut self) {
        // Nobody can count while there is no other handle, and two moves cost less than an exchange.
        if self.is_unique() {
            self.refs().0.store(0, Ordering::Relaxed);
        } else if self.refs().0.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        self.retire();
        // SAFETY: H1 and H2: no other handle exists or can be made, and `retire` took the value out of
        // the one list that pointed to it. It was allocated as a box is, which gives the memory
        // back even when a drop inside the value panics.
        drop(unsafe { Box::from_raw(self.ptr.as_ptr()) });
    }
}

impl<T: Shared + fmt::Debug> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        T::fmt(self, f)
    }
}
