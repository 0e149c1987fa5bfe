//! Fork and join over a few parked threads.
//!
//! Not a work-stealing pool: a thread that waits here runs nothing but its own loop, so locks held
//! around a kernel can never meet foreign work. A loop that finds the pool taken, or that runs
//! inside another loop, runs on its own thread alone.
//!
//! Cores may be shared with neighbours. Left alone, the system puts a worker that sleeps between
//! loops onto the core of the thread that wakes it as soon as every core is busy: two threads then
//! share one core, and the neighbour has the other. So a worker leaves the core that a loop comes
//! from, and the thread that waits for a worker which the system has put aside lends it its core.
//! With one busy neighbour on two cores, loops of 0.1 to 50 ms took 1.0 to 1.45 times as long
//! (medians) as without, and 1.5 to 2.0 times when threads were left where they were.

use std::any::Any;
use std::array;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool as StdAtomicBool, AtomicUsize as StdAtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::cores::{self, Thread};
use sync::{Arc, AtomicBool, AtomicUsize, Builder, Condvar, JoinHandle, Mutex};

#[cfg(not(loom))]
mod sync {
    pub use std::sync::atomic::{AtomicBool, AtomicUsize};
    pub use std::sync::{Arc, Condvar, Mutex};
    pub use std::thread::{Builder, JoinHandle};
}
#[cfg(loom)]
mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicUsize};
    pub use loom::sync::{Arc, Condvar, Mutex};
    pub use loom::thread::{Builder, JoinHandle};
}

/// How long a thread looks for the next loop, or for the end of one, before it sleeps: some 20 µs,
/// the cost of waking it.
const SPINS: usize = if cfg!(loom) { 0 } else { 1000 };

/// Chunks for each thread: with fewer, a thread that shares its core holds up the others.
const CHUNKS_PER_THREAD: usize = 8;

/// How long a thread sleeps, at least, before it takes those it waits for as put aside.
const PATIENCE: Duration = Duration::from_micros(50);

/// Parts of a loop, at most; more threads than that begin in the same ones.
const PARTS: usize = if cfg!(loom) { 3 } else { 16 };

thread_local! {
    /// Whether this thread is inside a loop already.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// 0 until first asked for.
static THREADS: StdAtomicUsize = StdAtomicUsize::new(0);

/// The number of threads that loops run on: [`set_num_threads`], else the environment variable
/// `OSTEON_NUM_THREADS`, else the number of cores this process may use. Inside a loop 1, as a loop there runs alone.
pub fn num_threads() -> usize {
    if INSIDE.get() {
        return 1;
    }
    match THREADS.load(Ordering::Relaxed) {
        0 => {
            let n = std::env::var("OSTEON_NUM_THREADS")
                .ok()
                .and_then(|v| v.trim().parse().ok())
                .filter(|&n| n > 0)
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            // Two threads that come here together agree; `set_num_threads` in between wins.
            let _ = THREADS.compare_exchange(0, n, Ordering::Relaxed, Ordering::Relaxed);
            THREADS.load(Ordering::Relaxed)
        }
        n => n,
    }
}

/// Sets the number of threads that loops run on from now on, the calling thread included; 0 counts
/// as 1. Results never depend on it.
pub fn set_num_threads(n: usize) {
    THREADS.store(n.max(1), Ordering::Relaxed);
}

/// Runs what plans loops for the inside of another one: there is one thread then.
pub(crate) fn alone<R>(plan: impl FnOnce() -> R) -> R {
    let outer = INSIDE.replace(true);
    let planned = plan();
    INSIDE.set(outer);
    planned
}

/// Runs `body` on ranges that together are `0..total`, on several threads when there is more than
/// `grain` of work. Ranges are at least `grain` long (but the last), and which thread runs which
/// is chance: a body whose result depends on the ranges must take units that do not (rows, blocks
/// of a fixed size).
///
/// # Panics
/// When `body` does, on this thread, after every thread has left `body`.
#[inline]
pub fn par_for(total: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    if total <= grain || INSIDE.get() || num_threads() == 1 {
        if total > 0 {
            body(0..total);
        }
        return;
    }
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(Pool::new)
        .par_for(num_threads(), total, grain, &body);
}

/// Calls `f` with slices that together are all of this one, and where each begins, on several threads.
pub fn par_slices<T: Send>(all: &mut [T], grain: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let to = Destination(all.as_mut_ptr());
    par_for(all.len(), grain, |range| {
        let to = &to;
        // SAFETY: the ranges of a loop are disjoint and within the slice.
        let part = unsafe { std::slice::from_raw_parts_mut(to.0.add(range.start), range.len()) };
        f(range.start, part);
    });
}

/// Where several threads write.
pub(crate) struct Destination<T>(pub(crate) *mut T);

// SAFETY: threads write disjoint elements.
unsafe impl<T: Send> Sync for Destination<T> {}

/// The threads behind [`par_for`], apart from the process's one instance so that it can be tested.
///
/// Invariants:
/// - **R1** while `State::job` is some, that job is alive.
/// - **R2** a worker uses a job only while it counts in `Shared::joined`; it starts to count under
///   the lock, while `job` is some.
/// - **R3** [`Pool::par_for`] returns after `job` is none and `joined` is 0.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    /// Taken by the one loop that the pool works on.
    busy: AtomicBool,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// A job was posted, or the pool ends.
    posted: Condvar,
    /// A worker left the job.
    left: Condvar,
    /// Counts jobs; a copy of `State::epoch` to look at without the lock.
    epoch: AtomicUsize,
    /// Workers at the job. It only grows under the lock.
    joined: AtomicUsize,
}

#[derive(Debug)]
struct State {
    job: Option<JobRef>,
    /// Who posted the job, and from which core.
    poster: Option<(Thread, usize)>,
    /// The workers, so that a core can be lent to them.
    workers: Vec<std::sync::Arc<Worker>>,
    /// Counts jobs, so that a worker joins each at most once.
    epoch: usize,
    /// How many more workers may join the job.
    seats: usize,
    asleep: usize,
    quit: bool,
}

/// Where a worker is. Hints: nothing but speed depends on them.
#[derive(Debug)]
struct Worker {
    thread: Thread,
    at_work: StdAtomicBool,
    /// It is bound to a core that was lent to it.
    moved: StdAtomicBool,
}

/// A [`Job`] whose lifetime is kept by R1–R3.
#[derive(Clone, Copy, Debug)]
struct JobRef(*const Job<'static>);

// SAFETY: a `Job` is `Sync`, and R1–R3 keep it alive while another thread uses it.
unsafe impl Send for JobRef {}

/// A loop in chunks, and these in parts: a thread begins with a part of its own, so that what it
/// did to the same memory in the loop before is in its caches, and then helps with the others.
struct Job<'a> {
    body: &'a (dyn Fn(Range<usize>) + Sync),
    total: usize,
    chunk: usize,
    parts: usize,
    next: [Next; PARTS],
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The next chunk of a part, on a cache line that only those who work at the part write.
#[repr(align(64))]
struct Next(AtomicUsize);

impl Job<'_> {
    /// The chunks before this part.
    fn begin(&self, part: usize) -> usize {
        self.total.div_ceil(self.chunk) * part / self.parts
    }

    /// Takes chunks until none is left.
    fn work(&self, thread: usize) {
        for part in (0..self.parts).map(|i| (thread + i) % self.parts) {
            let end = self.begin(part + 1);
            loop {
                let chunk = self.next[part].0.fetch_add(1, Ordering::Relaxed);
                if chunk >= end {
                    break;
                }
                let start = chunk * self.chunk;
                let range = start..self.total.min(start + self.chunk);
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.body)(range))) {
                    for part in 0..self.parts {
                        self.next[part]
                            .0
                            .store(self.begin(self.parts), Ordering::Relaxed);
                    }
                    self.panic.lock().unwrap().get_or_insert(panic);
                    return;
                }
            }
        }
    }
}

impl Default for Pool {
    fn default() -> Pool {
        Pool::new()
    }
}

impl Pool {
    /// A pool without threads: they come with the first loops that want them.
    pub fn new() -> Pool {
        Pool {
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    job: None,
                    poster: None,
                    workers: Vec::new(),
                    epoch: 0,
                    seats: 0,
                    asleep: 0,
                    quit: false,
                }),
                posted: Condvar::new(),
                left: Condvar::new(),
                epoch: AtomicUsize::new(0),
                joined: AtomicUsize::new(0),
            }),
            busy: AtomicBool::new(false),
            workers: Mutex::new(Vec::new()),
        }
    }

    /// [`par_for`] on this pool with at most `threads` threads, the calling one included.
    pub fn par_for(
        &self,
        threads: usize,
        total: usize,
        grain: usize,
        body: &(dyn Fn(Range<usize>) + Sync),
    ) {
        if self.busy.swap(true, Ordering::Acquire) {
            return body(0..total);
        }
        let mut chunk = grain
            .max(total.div_ceil(threads * CHUNKS_PER_THREAD))
            .max(1);
        let chunks = total / chunk;
        if chunks > threads {
            // As many for each thread: the last one of seven would be waited for by all but one.
            chunk = total.div_ceil(chunks - chunks % threads);
        }
        if chunk > 1024 {
            // Chunks of elements begin on cache lines where the data does.
            chunk = chunk.next_multiple_of(64);
        }
        let helpers = (threads - 1).min(total.div_ceil(chunk) - 1);
        self.grow(helpers);
        let begun = Instant::now();
        let parts = (helpers + 1).min(PARTS);
        let chunks = total.div_ceil(chunk);
        let job = Job {
            body,
            total,
            chunk,
            parts,
            next: array::from_fn(|part| Next(AtomicUsize::new(chunks * part / parts))),
            panic: Mutex::new(None),
        };
        self.post(&job, helpers);
        let outer = INSIDE.replace(true);
        job.work(0);
        INSIDE.set(outer);
        self.retire(begun);
        self.busy.store(false, Ordering::Release);
        let panic = job.panic.lock().unwrap().take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Starts workers up to this number. Where the system refuses, fewer do the work.
    fn grow(&self, helpers: usize) {
        let mut workers = self.workers.lock().unwrap();
        while workers.len() < helpers {
            let shared = self.shared.clone();
            let thread = workers.len() + 1;
            let name = format!("osteon-{thread}");
            match Builder::new()
                .name(name)
                .spawn(move || shared.serve(thread))
            {
                Ok(handle) => workers.push(handle),
                Err(_) => return,
            }
        }
    }

    fn post(&self, job: &Job, helpers: usize) {
        let shared = &*self.shared;
        let mut state = shared.state.lock().unwrap();
        // R1: `retire` takes the job out before `par_for` returns; nothing in between can unwind.
        state.job = Some(JobRef(std::ptr::from_ref(job).cast()));
        state.epoch = state.epoch.wrapping_add(1);
        state.seats = helpers;
        state.poster = cores::this_core().map(|core| (cores::this_thread(), core));
        shared.epoch.store(state.epoch, Ordering::Release);
        for _ in 0..helpers.min(state.asleep) {
            shared.posted.notify_one();
        }
    }

    /// Takes the job, begun at this time, back and waits for the workers that joined it.
    fn retire(&self, begun: Instant) {
        let shared = &*self.shared;
        // A worker that wakes only now finds no job, and nobody waits for it.
        shared.state.lock().unwrap().job = None;
        for _ in 0..SPINS {
            if shared.joined.load(Ordering::Acquire) == 0 {
                return;
            }
            std::hint::spin_loop();
        }
        // A worker that runs is through with its chunk in this time.
        let mut patience = PATIENCE.max(begun.elapsed() / CHUNKS_PER_THREAD as u32);
        let mut state = shared.state.lock().unwrap();
        while shared.joined.load(Ordering::Acquire) > 0 {
            let (woken, wait) = shared.left.wait_timeout(state, patience).unwrap();
            state = woken;
            if wait.timed_out() {
                state.lend_core();
                patience *= 2;
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.state.lock().unwrap().quit = true;
        self.shared.posted.notify_all();
        for worker in self.workers.lock().unwrap().drain(..) {
            let _ = worker.join();
        }
    }
}

impl State {
    /// This thread is about to sleep: one worker that is at the job may have its core meanwhile.
    fn lend_core(&self) {
        let waits = |w: &&std::sync::Arc<Worker>| {
            w.at_work.load(Ordering::Relaxed) && !w.moved.load(Ordering::Relaxed)
        };
        if let Some(worker) = self.workers.iter().find(waits) {
            worker.moved.store(true, Ordering::Relaxed);
            cores::move_here(worker.thread);
        }
    }

    /// The thread and the core that a worker shall keep off before it joins the job.
    fn in_the_way(&self, worker: &Worker) -> Option<(Thread, usize)> {
        let (poster, core) = self.poster?;
        (worker.moved.load(Ordering::Relaxed) || cores::this_core() == Some(core))
            .then_some((poster, core))
    }
}

impl Shared {
    /// A worker's life.
    fn serve(&self, thread: usize) {
        INSIDE.set(true);
        let worker = std::sync::Arc::new(Worker {
            thread: cores::this_thread(),
            at_work: StdAtomicBool::new(false),
            moved: StdAtomicBool::new(false),
        });
        self.state.lock().unwrap().workers.push(worker.clone());
        let mut seen = 0;
        while let Some((job, epoch)) = self.join(seen, &worker) {
            seen = epoch;
            // SAFETY: R1, R2: this worker counts in `joined`.
            unsafe { &*job.0 }.work(thread);
            worker.at_work.store(false, Ordering::Relaxed);
            if self.joined.fetch_sub(1, Ordering::Release) == 1 {
                // Under the lock: not between the last look of who waits and its sleep.
                let _state = self.state.lock().unwrap();
                self.left.notify_one();
            }
        }
    }

    /// Waits for a job after the `seen`th and joins it; none when the pool ends.
    fn join(&self, seen: usize, worker: &Worker) -> Option<(JobRef, usize)> {
        for _ in 0..SPINS {
            if self.epoch.load(Ordering::Acquire) != seen {
                break;
            }
            std::hint::spin_loop();
        }
        let mut state = self.state.lock().unwrap();
        let mut moved = false;
        loop {
            if state.quit {
                return None;
            }
            if let Some(job) = state.job
                && state.epoch != seen
                && state.seats > 0
            {
                if !moved && let Some((poster, core)) = state.in_the_way(worker) {
                    // Without the lock, as the new core may have no time at once; and once only:
                    // where there is no other core, the work is done on this one.
                    drop(state);
                    moved = true;
                    worker.moved.store(false, Ordering::Relaxed);
                    cores::keep_off(core, poster);
                    state = self.state.lock().unwrap();
                    continue;
                }
                state.seats -= 1;
                worker.at_work.store(true, Ordering::Relaxed);
                self.joined.fetch_add(1, Ordering::Relaxed);
                return Some((job, state.epoch));
            }
            state.asleep += 1;
            state = self.posted.wait(state).unwrap();
            state.asleep -= 1;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn touched(total: usize, f: impl Fn(&(dyn Fn(Range<usize>) + Sync))) {
        let counts: Vec<AtomicU32> = (0..total).map(|_| AtomicU32::new(0)).collect();
        f(&|range| {
            for i in range {
                counts[i].fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_index_is_met_once() {
        let pool = Pool::new();
        for threads in [1, 2, 3, 9] {
            for (total, grain) in [(1, 1), (7, 2), (1000, 1), (100_000, 64), (5, 100)] {
                touched(total, |body| pool.par_for(threads, total, grain, body));
            }
        }
    }

    #[test]
    fn a_loop_inside_a_loop_or_beside_one_runs_alone() {
        let pool = Pool::new();
        pool.par_for(4, 64, 1, &|range| {
            let here = std::thread::current().id();
            for _ in range {
                pool.par_for(4, 100, 1, &|inner| {
                    assert_eq!(inner, 0..100);
                    assert_eq!(std::thread::current().id(), here);
                });
                par_for(1 << 20, 1, |inner| assert_eq!(inner, 0..1 << 20));
            }
        });
        // Four threads that loop at once: each does all of its work, and none waits for another.
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..50 {
                        touched(5000, |body| pool.par_for(3, 5000, 10, body));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_comes_back_and_the_pool_lives() {
        let pool = Pool::new();
        for _ in 0..20 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                pool.par_for(4, 100, 1, &|range| {
                    assert!(!range.contains(&37), "thirty-seven")
                });
            }));
            let payload = caught.unwrap_err();
            assert_eq!(*payload.downcast::<&str>().unwrap(), "thirty-seven");
            touched(100, |body| pool.par_for(4, 100, 1, body));
        }
    }

    #[test]
    fn little_work_stays_here() {
        let here = std::thread::current().id();
        par_for(100, 100, |range| {
            assert_eq!(range, 0..100);
            assert_eq!(std::thread::current().id(), here);
        });
        par_for(0, 1, |_| panic!("nothing to do"));
    }
}
