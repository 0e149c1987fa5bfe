//! Which cores threads run on. Hints alone: where the system does not take them, nothing changes.

#[cfg(all(target_os = "linux", not(loom), not(miri)))]
pub(crate) use linux::{Thread, keep_off, move_here, this_core, this_thread};
#[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
pub(crate) use unknown::{Thread, keep_off, move_here, this_core, this_thread};

#[cfg(all(target_os = "linux", not(loom), not(miri)))]
mod linux {
    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// A thread of this process, by its number in the system.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Thread(Pid);

    thread_local! {
        /// Asked for once: the question is a call to the system.
        static THIS: Thread = Thread(gettid());
    }

    pub(crate) fn this_thread() -> Thread {
        THIS.with(|&thread| thread)
    }

    /// The core that this thread is on, where the system tells; it may have moved when the answer arrives.
    pub(crate) fn this_core() -> Option<usize> {
        Some(sched_getcpu())
    }

    /// From now on this thread runs where `poster` may run, but not on `core`. It moves at once.
    /// Where nothing but `core` would be left, it stays where it is.
    pub(crate) fn keep_off(core: usize, poster: Thread) {
        if let Ok(mut cores) = sched_getaffinity(Some(poster.0))
            && core < CpuSet::MAX_CPU
        {
            cores.unset(core);
            if cores.count() > 0 {
                let _ = sched_setaffinity(None, &cores);
            }
        }
    }

    /// Moves a thread to this thread's core, and keeps it there until it says [`keep_off`].
    pub(crate) fn move_here(thread: Thread) {
        let core = sched_getcpu();
        if core < CpuSet::MAX_CPU {
            let mut cores = CpuSet::new();
            cores.set(core);
            let _ = sched_setaffinity(Some(thread.0), &cores);
        }
    }
}

#[cfg(not(all(target_os = "linux", not(loom), not(miri))))]
mod unknown {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct Thread;

    pub(crate) fn this_thread() -> Thread {
        Thread
    }

    pub(crate) fn this_core() -> Option<usize> {
        None
    }

    pub(crate) fn keep_off(_core: usize, _poster: Thread) {}

    pub(crate) fn move_here(_thread: Thread) {}
}
