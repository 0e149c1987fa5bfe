//! Who may touch a storage's bytes: operations wait for operations, and nobody waits for a guard.
//!
//! An operation holds a storage for the length of one kernel, which always ends, and takes its storages
//! in the order of their ids, so waiting for one cannot deadlock. A guard is held for as long as its owner
//! likes, on any thread, perhaps the one that is asking, so a conflict with it is an error at once.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// Why an access was refused: a guard is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    ReadGuard,
    WriteGuard,
}

/// How a storage is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// For reading, with others that read.
    Read,
    /// For writing, alone.
    Write,
}

/// The state of one storage, in one word:
/// operations reading (20 bits) · guards reading (20 bits) · operation writing · guard writing ·
/// somebody waits · a writer waits.
///
/// Invariants:
/// - **A1** A writer of either sort is alone.
/// - **A2** `WAITING` is set, under `parked`, by everyone who goes to sleep, before they look at the state
///   once more; whoever makes the state freer and finds it set, clears it and wakes all.
/// - **A3** `WRITER_WAITS` is set and cleared together with `WAITING`, so it ends at the latest when the
///   writer that set it has got in and out again, or was refused.
pub(crate) struct Access {
    state: AtomicU64,
    parked: Mutex<()>,
    woken: Condvar,
}

const OP_READER: u64 = 1;
const OP_READERS: u64 = (1 << 20) - 1;
const GUARD_READER: u64 = 1 << 20;
const GUARD_READERS: u64 = OP_READERS << 20;
const OP_WRITER: u64 = 1 << 40;
const GUARD_WRITER: u64 = 1 << 41;
const WAITING: u64 = 1 << 42;
/// Readers that come while a writer waits queue behind it, so that a stream of readers ends.
const WRITER_WAITS: u64 = 1 << 43;

/// One kind of access, as masks of the state.
struct Request {
    /// Guards that refuse it.
    refused_by: u64,
    /// What it waits for.
    wait_for: u64,
    /// What it adds.
    add: u64,
    /// The count that it adds to, which must not overflow into its neighbour; 0 for a flag.
    count: u64,
    /// `WRITER_WAITS` for those that want to be alone.
    queue: u64,
}

const READ_OP: Request = Request {
    refused_by: GUARD_WRITER,
    wait_for: OP_WRITER | WRITER_WAITS,
    add: OP_READER,
    count: OP_READERS,
    queue: 0,
};
const WRITE_OP: Request = Request {
    refused_by: GUARD_WRITER | GUARD_READERS,
    wait_for: OP_WRITER | OP_READERS,
    add: OP_WRITER,
    count: 0,
    queue: WRITER_WAITS,
};
const READ_GUARD: Request = Request {
    refused_by: GUARD_WRITER,
    wait_for: OP_WRITER,
    add: GUARD_READER,
    count: GUARD_READERS,
    queue: 0,
};
const WRITE_GUARD: Request = Request {
    refused_by: GUARD_WRITER | GUARD_READERS,
    wait_for: OP_WRITER | OP_READERS,
    add: GUARD_WRITER,
    count: 0,
    queue: WRITER_WAITS,
};

impl Access {
    pub(crate) fn new() -> Access {
        Access {
            state: AtomicU64::new(0),
            parked: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Begins an operation on the storage.
    #[inline]
    pub(crate) fn begin(&self, mode: Mode) -> Result<(), Refused> {
        let request = match mode {
            Mode::Read => &READ_OP,
            Mode::Write => &WRITE_OP,
        };
        // The common case is an idle storage.
        match self
            .state
            .compare_exchange(0, request.add, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Ok(()),
            Err(_) => self.acquire(request),
        }
    }

    /// Ends what [`Access::begin`] began.
    #[inline]
    pub(crate) fn end(&self, mode: Mode) {
        self.release(match mode {
            Mode::Read => OP_READER,
            Mode::Write => OP_WRITER,
        });
    }

    /// Takes a guard for reading or writing.
    pub(crate) fn take_guard(&self, mode: Mode) -> Result<(), Refused> {
        self.acquire(match mode {
            Mode::Read => &READ_GUARD,
            Mode::Write => &WRITE_GUARD,
        })
    }

    /// Gives a guard back.
    pub(crate) fn drop_guard(&self, mode: Mode) {
        self.release(match mode {
            Mode::Read => GUARD_READER,
            Mode::Write => GUARD_WRITER,
        });
    }

    /// Whether nobody holds it or waits for it.
    #[cfg(all(test, loom))]
    pub(crate) fn is_idle(&self) -> bool {
        self.state.load(Ordering::Relaxed) == 0
    }

    fn acquire(&self, r: &Request) -> Result<(), Refused> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & r.refused_by != 0 || (r.count != 0 && state & r.count == r.count) {
                if state & r.queue != 0 {
                    // Readers may be queueing behind this writer, which gives up.
                    self.wake();
                }
                return Err(if state & GUARD_WRITER != 0 {
                    Refused::WriteGuard
                } else {
                    Refused::ReadGuard
                });
            }
            if state & r.wait_for != 0 {
                self.sleep(r);
                state = self.state.load(Ordering::Relaxed);
                continue;
            }
            match self.state.compare_exchange_weak(
                state,
                state + r.add,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => state = now,
            }
        }
    }

    /// Sleeps until the state was made freer, unless it is free, or a refusal, already.
    #[cold]
    fn sleep(&self, r: &Request) {
        let parked = self.parked.lock().unwrap_or_else(|e| e.into_inner());
        let state = self.state.fetch_or(WAITING | r.queue, Ordering::Relaxed);
        if state & r.wait_for != 0 && state & r.refused_by == 0 {
            drop(self.woken.wait(parked).unwrap_or_else(|e| e.into_inner()));
        }
    }

    #[inline]
    fn release(&self, held: u64) {
        let before = self.state.fetch_sub(held, Ordering::Release);
        if before & WAITING != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let _parked = self.parked.lock().unwrap_or_else(|e| e.into_inner());
        self.state
            .fetch_and(!(WAITING | WRITER_WAITS), Ordering::Relaxed);
        self.woken.notify_all();
    }
}
