//! The synchronisation primitives of this crate, from the standard library or, under `cfg(loom)`,
//! from the model checker, and the spin lock that guards the lists of viewers.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex},
};

#[cfg(not(loom))]
pub(crate) use std::cell::Cell;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// A cell whose every access the model checker compares with those of other threads.
#[cfg(loom)]
pub(crate) struct Cell<T>(loom::cell::UnsafeCell<T>);

#[cfg(loom)]
impl<T: Copy> Cell<T> {
    pub(crate) fn new(value: T) -> Cell<T> {
        Cell(loom::cell::UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> T {
        // SAFETY: the checker has found no write at the same time.
        self.0.with(|p| unsafe { *p })
    }

    pub(crate) fn set(&self, value: T) {
        // SAFETY: the checker has found no other access at the same time.
        self.0.with_mut(|p| unsafe { *p = value });
    }
}

/// A lock for a few instructions: one atomic exchange to take, one store to release.
///
/// `std::sync::Mutex` needs a second read-modify-write to release, which is a tenth of the price of
/// a view. Nothing that can block, allocate for long or run a caller's code happens under it, except
/// the walk that copies a storage's list of viewers for a report; waiters yield their time slice.
pub(crate) struct SpinLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `lock` hands out one guard at a time, so sharing the lock gives only exclusive access to
// the value, which moves between threads: `T: Send` is what that needs.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: a lock is its value and a flag.
unsafe impl<T: Send> Send for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> SpinLock<T> {
        SpinLock {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
        if !self.take() {
            self.lock_contended();
        }
        SpinGuard { lock: self }
    }

    #[inline]
    fn take(&self) -> bool {
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_contended(&self) {
        let mut spins = 0u8;
        loop {
            // The model checker, for which a load may go on showing an old value, looks with the exchange.
            while !cfg!(loom) && self.locked.load(Ordering::Relaxed) {
                spins = spins.wrapping_add(1);
                if spins.is_multiple_of(64) {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
            // A turn in vain is as good as one that begins later, which the checker explores anyway.
            #[cfg(loom)]
            {
                loom::skip_branch();
                loom::thread::yield_now();
            }
            if self.take() {
                return;
            }
        }
    }
}

pub(crate) struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one: `locked` went from false to true to make it.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`, and `&mut self` keeps other uses of this guard away.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.locked.store(false, Ordering::Release);
    }
}
