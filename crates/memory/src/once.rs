//! A cell that is filled once.

use crate::sync::{AtomicU8, Ordering};
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;

const EMPTY: u8 = 0;
const FILLING: u8 = 1;
const FULL: u8 = 2;

/// A cell that is filled once, like `OnceLock`, but with a single atomic exchange and without a call: filling one is
/// a part of every view.
///
/// Invariant **K1**: `value` is there when `state` is `FULL`, which stays so; the one thread that took `state` from
/// `EMPTY` to `FILLING` writes it.
pub struct Once<T> {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is written by one thread (K1) and then shared, also to be dropped by another one.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    /// An empty one.
    #[inline]
    pub fn new() -> Once<T> {
        Once {
            state: AtomicU8::new(EMPTY),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// What is in it.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if self.state.load(Ordering::Acquire) != FULL {
            return None;
        }
        // SAFETY: K1, and the load sees what was written before.
        Some(unsafe { (*self.value.get()).assume_init_ref() })
    }

    /// Fills it.
    ///
    /// # Errors
    /// The value itself where another thread was first, whose value may come a moment later.
    #[inline]
    pub fn set(&self, value: T) -> Result<(), T> {
        let first =
            self.state
                .compare_exchange(EMPTY, FILLING, Ordering::Relaxed, Ordering::Relaxed);
        if first.is_err() {
            return Err(value);
        }
        // SAFETY: K1: this thread has taken the state.
        unsafe { self.fill(value) };
        Ok(())
    }

    /// Fills it without an exchange.
    ///
    /// # Safety
    /// It is empty, and no other thread fills it.
    #[inline]
    pub(crate) unsafe fn fill(&self, value: T) {
        // SAFETY: K1: this thread alone writes, and nobody reads before the next line.
        unsafe { (*self.value.get()).write(value) };
        self.state.store(FULL, Ordering::Release);
    }

    /// What is in it, filled with what `make` gives where it was empty.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => {
                // Another thread's value is as good.
                drop(self.set(make()));
                self.wait()
            }
        }
    }

    /// What some thread is filling in, which takes it a few instructions.
    #[inline]
    fn wait(&self) -> &T {
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            #[cfg(loom)]
            loom::thread::yield_now();
            #[cfg(not(loom))]
            std::thread::yield_now();
        }
    }
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once::new()
    }
}

impl<T> Drop for Once<T> {
    #[inline]
    fn drop(&mut self) {
        if self.state.load(Ordering::Acquire) == FULL {
            // SAFETY: K1.
            unsafe { self.value.get_mut().assume_init_drop() };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_first_value_stays_and_goes_with_the_cell() {
        let (first, second) = (Arc::new(1), Arc::new(2));
        let cell = Once::new();
        assert!(cell.get().is_none());
        assert!(cell.set(first.clone()).is_ok());
        assert_eq!(cell.set(second), Err(Arc::new(2)));
        assert_eq!(**cell.get_or_init(|| Arc::new(3)), 1);
        assert_eq!(Arc::strong_count(&first), 2);
        drop(cell);
        assert_eq!(Arc::strong_count(&first), 1);
    }
}
