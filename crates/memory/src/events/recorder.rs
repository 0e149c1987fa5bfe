//! The flight recorder: the last 65,536 events, always.
//!
//! The slots are cut into chunks. A thread owns the chunk that it writes and takes the next one when that is full, so
//! that threads meet once in 64 events. What a thread that rests has in its chunk stays there. All of
//! it is static memory, which the system gives when it is first touched.

use super::entry::Entry;
use super::slot::{Slot, WORDS};
use crate::device;
use crate::scope;
use osteon_spec::Device;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Events in a chunk.
const CHUNK: u64 = 64;
/// Chunks; together 65,536 events.
const CHUNKS: u64 = 1024;
/// How many chunks a thread tries that are other threads' before it gives up on an event.
const TRIES: usize = 8;

#[repr(align(128))]
struct Chunk {
    owned: AtomicBool,
    slots: [Slot; CHUNK as usize],
}

static RING: [Chunk; CHUNKS as usize] = [const {
    Chunk {
        owned: AtomicBool::new(false),
        slots: [const { Slot::new() }; CHUNK as usize],
    }
}; CHUNKS as usize];

/// The chunks that were ever taken, counted from 1 so that no event has the number 0.
static TAKEN: AtomicU64 = AtomicU64::new(1);

/// A time that some thread has met: those that meet nobody else follow it, at most a chunk behind.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Events that found no chunk: more than a thousand threads record at once.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// A thread's place in the ring.
struct Writer {
    /// The number of its next event; a multiple of `CHUNK` where it owns no chunk.
    next: Cell<u64>,
    /// The latest time it met.
    clock: Cell<u64>,
    /// A number that no other thread has; 0 before it is asked for.
    thread: Cell<u32>,
}

thread_local! {
    static WRITER: Writer = const {
        Writer { next: Cell::new(0), clock: Cell::new(0), thread: Cell::new(0) }
    };
}

impl Writer {
    #[inline]
    fn write(&self, words: [u64; WORDS]) {
        let mut number = self.next.get();
        if number.is_multiple_of(CHUNK) {
            LATEST.fetch_max(words[0], Ordering::Relaxed);
            match take_chunk() {
                Some(first) => number = first,
                None => return,
            }
        }
        let chunk = chunk_of(number);
        chunk.slots[(number % CHUNK) as usize].write(number, words);
        self.next.set(number + 1);
        if (number + 1).is_multiple_of(CHUNK) {
            chunk.owned.store(false, Ordering::Release);
        }
    }

    #[inline]
    fn tick(&self, seen: u64) -> u64 {
        let met = self.clock.get().max(LATEST.load(Ordering::Relaxed));
        let now = met.max(seen) + 1;
        self.clock.set(now);
        now
    }

    fn thread(&self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        if self.thread.get() == 0 {
            self.thread.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        self.thread.get()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        LATEST.fetch_max(self.clock.get(), Ordering::Relaxed);
        let number = self.next.get();
        if !number.is_multiple_of(CHUNK) {
            chunk_of(number).owned.store(false, Ordering::Release);
        }
    }
}

#[inline]
fn chunk_of(number: u64) -> &'static Chunk {
    &RING[(number / CHUNK % CHUNKS) as usize]
}

/// The first number of the next chunk that no thread owns; the caller does then.
#[cold]
fn take_chunk() -> Option<u64> {
    for _ in 0..TRIES {
        let number = TAKEN.fetch_add(1, Ordering::Relaxed) * CHUNK;
        if !chunk_of(number).owned.swap(true, Ordering::Acquire) {
            return Some(number);
        }
    }
    MISSED.fetch_add(1, Ordering::Relaxed);
    None
}

/// The time of an event that the calling thread causes on something that met `seen`.
#[inline]
pub(crate) fn tick(seen: u64) -> u64 {
    // A thread that is ending keeps no clock; what it frees has the device's time.
    WRITER.try_with(|w| w.tick(seen)).unwrap_or(seen + 1)
}

/// The number of the calling thread. 0 for one that is ending.
#[inline]
pub(crate) fn thread_number() -> u32 {
    WRITER.try_with(Writer::thread).unwrap_or(0)
}

/// Enters an event that happened at this time.
#[inline]
pub(crate) fn push(clock: u64, entry: Entry) {
    let scope = scope::current();
    let done = WRITER.try_with(|w| w.write(entry.encode(clock, w.thread(), scope)));
    if done.is_err()
        && let Some(number) = take_chunk()
    {
        // A thread that is ending has lost its place: a chunk for one event.
        let chunk = chunk_of(number);
        chunk.slots[0].write(number, entry.encode(clock, 0, scope));
        chunk.owned.store(false, Ordering::Release);
    }
}

/// Enters an event that touches no storage, later than every allocation and free.
pub(crate) fn note(entry: Entry) {
    let clock = device::of(&Device::cpu()).lock().tick();
    push(clock, entry);
}

/// Every event that is kept, in no order, and how many found no place.
///
/// # Errors
/// No memory for the list.
pub(super) fn kept() -> Result<(Vec<[u64; WORDS]>, u64), std::collections::TryReserveError> {
    let mut events = Vec::new();
    for chunk in &RING {
        let filled = chunk.slots.iter().filter_map(Slot::read);
        events.try_reserve(CHUNK as usize)?;
        events.extend(filled);
    }
    Ok((events, MISSED.load(Ordering::Relaxed)))
}
