//! The synchronisation primitives of this crate, from the standard library or, under `cfg(loom)`,
//! from the model checker, and the spin lock that guards the lists of viewers.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex},
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex},
};

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

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
        SpinLock { locked: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
        if self.locked.swap(true, Ordering::Acquire) {
            self.lock_contended();
        }
        SpinGuard { lock: self }
    }

    #[cold]
    fn lock_contended(&self) {
        let mut spins = 0;
        loop {
            while self.locked.load(Ordering::Relaxed) {
                spins += 1;
                if spins % 64 == 0 || cfg!(loom) {
                    yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
            if !self.locked.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
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
