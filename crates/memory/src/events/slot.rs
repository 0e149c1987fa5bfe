//! A place for one event, written by one thread and read by any, that is never read half written.

use crate::sync::{AtomicU64, Ordering, fence};

/// The words of an event.
pub(crate) const WORDS: usize = 8;

/// One event's words and its number (a seqlock).
///
/// Invariants:
/// - **R1** one thread writes at a time, and numbers are never used twice.
/// - **R2** while the words change, the number is 0; who reads the same number before and after the words has the
///   words of that number.
pub(crate) struct Slot {
    number: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl Slot {
    /// An empty one, of zeros.
    #[cfg(not(any(loom, unrecorded)))]
    pub(crate) const fn new() -> Slot {
        Slot {
            number: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// An empty one.
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Slot {
        Slot {
            number: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Replaces what is there. The number is not 0.
    #[inline]
    pub(crate) fn write(&self, number: u64, words: [u64; WORDS]) {
        self.number.store(0, Ordering::Relaxed);
        // R2: who sees one of the words that follow, sees the 0 or a later number.
        fence(Ordering::Release);
        for (to, word) in self.words.iter().zip(words) {
            to.store(word, Ordering::Relaxed);
        }
        self.number.store(number, Ordering::Release);
    }

    /// What is there, unless it is empty or being written.
    pub(crate) fn read(&self) -> Option<[u64; WORDS]> {
        let number = self.number.load(Ordering::Acquire);
        let words = std::array::from_fn(|i| self.words[i].load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        (number != 0 && self.number.load(Ordering::Relaxed) == number).then_some(words)
    }
}
