//! The locks, the handles and the lists under every interleaving that matters:
//! `RUSTFLAGS="--cfg loom" cargo test -p osteon-memory --release --lib interleavings`.
//!
//! The storages here are in no device's list, so that the device's lock, which the checker does not
//! know, is never contended; `Shelf` is that list's twin.

use crate::access::{Access, Mode, Refused};
use crate::events::Slot;
use crate::handle::{Handle, Refs, Shared};
use crate::list::{Linked, Links, List};
use crate::once::Once;
use crate::registry::{Role, Viewer};
use crate::storage::{Origin, Site, Storage};
use crate::sync::{AtomicUsize, Cell, Ordering, SpinLock};
use crate::{StorageGuard, hold};
use loom::sync::{Arc, Mutex};
use loom::thread;
use osteon_spec::{DType, Device, Kind, Layout};
use std::panic::Location;

fn explore(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

fn here() -> Site {
    Location::caller()
}

fn storage() -> Storage {
    let origin = Origin::Allocated {
        op: "test",
        site: here(),
    };
    Storage::unlisted(Device::meta(), origin, false).unwrap()
}

/// Bytes that only the holder of some lock may touch: the checker finds who does not.
struct Bytes(Cell<usize>);

// SAFETY: the checker reports every access that races.
unsafe impl Sync for Bytes {}
// SAFETY: as above.
unsafe impl Send for Bytes {}

impl Bytes {
    fn add(&self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_spin_lock_admits_one() {
    explore(3, || {
        let lock = Arc::new(SpinLock::new(Bytes(Cell::new(0))));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lock = lock.clone();
                thread::spawn(move || lock.lock().add())
            })
            .collect();
        lock.lock().add();
        others.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(lock.lock().0.get(), 3);
    });
}

#[test]
fn a_cell_is_filled_once_and_seen_whole() {
    explore(3, || {
        let cell = Arc::new(Once::new());
        let fill = |cell: &Once<Bytes>| {
            let bytes = cell.get_or_init(|| {
                let bytes = Bytes(Cell::new(0));
                bytes.add();
                bytes
            });
            (std::ptr::from_ref(bytes).addr(), bytes.0.get())
        };
        let other = {
            let cell = cell.clone();
            thread::spawn(move || fill(&cell))
        };
        assert!(cell.get().is_none_or(|bytes| bytes.0.get() == 1));
        let mine = fill(&cell);
        assert_eq!((mine, 1), (other.join().unwrap(), mine.1));
    });
}

/// A member of a list behind a mutex, as a storage is of its device's, with a list of its own.
struct Shelved {
    refs: Refs,
    links: Links<Shelved>,
    shelf: Arc<Shelf>,
    payload: Cell<usize>,
}

struct Shelf {
    list: Mutex<List<Shelved>>,
    dropped: AtomicUsize,
}

impl Linked for Shelved {
    fn links(&self) -> &Links<Shelved> {
        &self.links
    }
}

impl Shared for Shelved {
    fn refs(&self) -> &Refs {
        &self.refs
    }

    fn retire(&self) {
        // SAFETY: `Shelf::put` put every member into this list.
        unsafe { self.shelf.list.lock().unwrap().remove(self) };
    }
}

impl Drop for Shelved {
    fn drop(&mut self) {
        self.payload.set(0);
        self.shelf.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: the payload is read by walkers under the lock, and the checker reports a race.
unsafe impl Sync for Shelved {}
// SAFETY: as above.
unsafe impl Send for Shelved {}

impl Shelf {
    fn new() -> Arc<Shelf> {
        Arc::new(Shelf {
            list: Mutex::new(List::new()),
            dropped: AtomicUsize::new(0),
        })
    }

    fn put(shelf: &Arc<Shelf>, payload: usize) -> Handle<Shelved> {
        let member = || Shelved {
            refs: Refs::one(),
            links: Links::new(),
            shelf: shelf.clone(),
            payload: Cell::new(payload),
        };
        let handle = Handle::try_new(member).unwrap();
        // SAFETY: new, and its handle keeps it until `retire`.
        unsafe { shelf.list.lock().unwrap().push(&handle) };
        handle
    }

    fn walk(&self) -> Vec<usize> {
        let list = self.list.lock().unwrap();
        let found: Vec<_> = list.iter().map(|m| m.payload.get()).collect();
        assert_eq!(found.len(), list.len());
        found
    }
}

#[test]
fn the_last_handle_leaves_the_list_before_the_value_goes() {
    explore(3, || {
        let shelf = Shelf::new();
        let first = Shelf::put(&shelf, 1);
        let second = first.clone();
        let threads = [
            thread::spawn(move || drop(second)),
            thread::spawn(move || {
                let third = first.clone();
                drop(first);
                assert_eq!(third.payload.get(), 1);
            }),
        ];
        assert!(matches!(shelf.walk()[..], [] | [1]));
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!(shelf.walk().is_empty());
        assert_eq!(shelf.dropped.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn members_come_and_go_while_the_list_is_walked() {
    explore(3, || {
        let shelf = Shelf::new();
        let middle = Shelf::put(&shelf, 1);
        let stays = Shelf::put(&shelf, 2);
        let threads = [
            thread::spawn(move || drop(middle)),
            thread::spawn({
                let shelf = shelf.clone();
                move || drop(Shelf::put(&shelf, 3))
            }),
        ];
        let seen = shelf.walk();
        assert!(
            seen.contains(&2) && seen.is_sorted_by(|a, b| a > b),
            "{seen:?}"
        );
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(shelf.walk(), [2]);
        drop(stays);
        assert_eq!(shelf.dropped.load(Ordering::Relaxed), 3);
    });
}

fn view(storage: &Storage, label: &str) -> Viewer {
    let layout = Layout::contiguous(&[0]).unwrap();
    let view = Viewer::register(
        storage.clone(),
        layout,
        DType::F32,
        "view",
        here(),
        Role::View,
    )
    .unwrap();
    view.set_label(label);
    view
}

#[test]
fn tensors_come_and_go_while_the_registry_is_read() {
    explore(2, || {
        let storage = storage();
        let (first, stays) = (view(&storage, "first"), view(&storage, "stays"));
        let threads = [
            thread::spawn(move || drop(first)),
            thread::spawn({
                let storage = storage.clone();
                move || drop(view(&storage, "last"))
            }),
        ];
        let names: Vec<_> = storage
            .tensors()
            .into_iter()
            .map(|t| t.label.map_or_else(String::new, |l| l.to_string()))
            .collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert!(
            matches!(
                names[..],
                ["first", "stays"]
                    | ["stays"]
                    | ["first", "stays", "" | "last"]
                    | ["stays", "" | "last"]
            ),
            "{names:?}"
        );
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(storage.tensors().len(), 1);
        drop(stays);
        assert!(storage.is_unique());
    });
}

/// The tensors of a storage have one handle to it together, which whoever leaves last lets go of.
#[test]
fn a_storage_goes_with_its_last_tensor() {
    explore(3, || {
        let storage = storage();
        let first = view(&storage, "first");
        let layout = Layout::contiguous(&[0]).unwrap();
        let beside = first.beside(layout, DType::F32, "view", here(), Role::View);
        assert!(!storage.is_unique());
        drop(storage);
        let views = [first, beside.unwrap()];
        let threads = views.map(|view| {
            thread::spawn(move || {
                let storage = view.storage().clone();
                drop(view);
                storage.tensors().len()
            })
        });
        threads
            .into_iter()
            .for_each(|t| assert!(t.join().unwrap() < 2));
    });
}

/// One storage's access state, and the bytes that it protects.
struct Guarded {
    access: Access,
    bytes: Bytes,
    writes: AtomicUsize,
}

impl Guarded {
    fn new() -> Arc<Guarded> {
        Arc::new(Guarded {
            access: Access::new(),
            bytes: Bytes(Cell::new(0)),
            writes: AtomicUsize::new(0),
        })
    }

    /// Runs an operation; a refusal does nothing.
    fn op(&self, mode: Mode) -> Result<(), Refused> {
        self.access.begin(mode)?;
        self.touch(mode);
        self.access.end(mode);
        Ok(())
    }

    fn guard(&self, mode: Mode) -> Result<(), Refused> {
        self.access.take_guard(mode)?;
        self.touch(mode);
        self.access.drop_guard(mode);
        Ok(())
    }

    fn touch(&self, mode: Mode) {
        match mode {
            Mode::Write => {
                self.bytes.add();
                self.writes.fetch_add(1, Ordering::Relaxed);
            }
            Mode::Read => _ = self.bytes.0.get(),
        }
    }

    /// Nobody holds it, no flag was left behind, and no write was lost.
    fn check(&self) {
        self.op(Mode::Write).unwrap();
        assert_eq!(self.bytes.0.get(), self.writes.load(Ordering::Relaxed));
        assert!(self.access.is_idle());
    }
}

/// Each thread does its accesses one after another; operations (`true`) must not be refused where
/// there is no guard.
fn accesses(preemptions: usize, threads: &'static [&'static [(bool, Mode)]]) {
    let guards = threads.iter().copied().flatten().any(|(is_op, _)| !is_op);
    explore(preemptions, move || {
        let it = Guarded::new();
        let run = |list: &'static [(bool, Mode)]| {
            let it = it.clone();
            move || {
                for &(is_op, mode) in list {
                    let done = if is_op { it.op(mode) } else { it.guard(mode) };
                    assert!(guards || done.is_ok());
                }
            }
        };
        let others: Vec<_> = threads[1..]
            .iter()
            .map(|list| thread::spawn(run(list)))
            .collect();
        run(threads[0])();
        others.into_iter().for_each(|t| t.join().unwrap());
        it.check();
    });
}

const READ: (bool, Mode) = (true, Mode::Read);
const WRITE: (bool, Mode) = (true, Mode::Write);
const READ_GUARD: (bool, Mode) = (false, Mode::Read);
const WRITE_GUARD: (bool, Mode) = (false, Mode::Write);

#[test]
fn writers_exclude_each_other() {
    accesses(3, &[&[WRITE], &[WRITE], &[WRITE]]);
    accesses(3, &[&[WRITE, WRITE], &[WRITE, WRITE]]);
}

#[test]
fn writers_exclude_readers_and_all_wake() {
    accesses(3, &[&[READ], &[WRITE], &[READ]]);
    accesses(3, &[&[WRITE, READ], &[READ, WRITE]]);
    accesses(2, &[&[READ], &[WRITE], &[READ], &[WRITE]]);
}

#[test]
fn guards_wait_for_operations_and_refuse_them() {
    accesses(3, &[&[WRITE], &[WRITE_GUARD], &[READ]]);
    accesses(3, &[&[WRITE], &[READ_GUARD], &[READ]]);
    accesses(3, &[&[READ_GUARD], &[WRITE_GUARD], &[WRITE]]);
    accesses(3, &[&[WRITE_GUARD, READ], &[READ, WRITE_GUARD]]);
}

/// A reader behind a writer that waits, when a guard makes the writer give up: it goes on while the guard
/// is still held.
#[test]
fn readers_wake_when_a_waiting_writer_gives_up() {
    for writer in [WRITE, WRITE_GUARD] {
        explore(3, move || {
            let it = Guarded::new();
            let threads: Vec<_> = [READ, writer, READ]
                .map(|(is_op, mode)| {
                    let it = it.clone();
                    thread::spawn(move || if is_op { it.op(mode) } else { it.guard(mode) })
                })
                .into();
            let guard = it.access.take_guard(Mode::Read);
            let done: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            if writer == WRITE {
                assert!(guard.is_ok() && done[0].is_ok() && done[2].is_ok());
            }
            if guard.is_ok() {
                it.access.drop_guard(Mode::Read);
            }
            it.check();
        });
    }
}

#[test]
fn a_guard_is_never_waited_for() {
    for mode in [Mode::Read, Mode::Write] {
        explore(3, move || {
            let it = Guarded::new();
            it.access.take_guard(mode).unwrap();
            let threads: Vec<_> = [READ, WRITE]
                .map(|(_, wanted)| {
                    let it = it.clone();
                    thread::spawn(move || it.op(wanted))
                })
                .into();
            // The guard is still held when both have come back.
            let done: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
            let expected = match mode {
                Mode::Read => [Ok(()), Err(Refused::ReadGuard)],
                Mode::Write => [Err(Refused::WriteGuard); 2],
            };
            assert_eq!(done, expected);
            it.access.drop_guard(mode);
            it.check();
        });
    }
}

#[test]
fn operations_on_several_storages_never_wait_in_a_circle() {
    explore(3, || {
        let (a, b) = (storage(), storage());
        let other = thread::spawn({
            let (a, b) = (a.clone(), b.clone());
            move || drop(hold(&[&b], &[&a]).unwrap())
        });
        drop(hold(&[&a], &[&b]).unwrap());
        other.join().unwrap();
        drop(hold(&[&a, &b, &a], &[&a]).unwrap());
    });
}

#[test]
fn three_operations_in_a_ring() {
    explore(2, || {
        let ring = [storage(), storage(), storage()];
        let run = |i: usize| {
            let (read, write) = (ring[i].clone(), ring[(i + 1) % 3].clone());
            move || drop(hold(&[&read], &[&write]).unwrap())
        };
        let others = [thread::spawn(run(1)), thread::spawn(run(2))];
        run(0)();
        others.into_iter().for_each(|t| t.join().unwrap());
        drop(hold(&[], &ring.each_ref()).unwrap());
    });
}

/// An operation that is refused at its second storage lets go of the first, and whoever waited for that
/// goes on.
#[test]
fn a_refused_operation_holds_nothing() {
    explore(2, || {
        let (a, b) = (storage(), storage());
        let guard: StorageGuard = b.guard(Mode::Read, here()).unwrap();
        let other = thread::spawn({
            let a = a.clone();
            move || drop(hold(&[], &[&a]).unwrap())
        });
        let error = hold(&[&a], &[&b]).unwrap_err();
        assert_eq!(error.kind(), Kind::Borrowed);
        other.join().unwrap();
        drop(guard);
        drop(hold(&[], &[&a, &b]).unwrap());
    });
}

/// The note of a guard's line is there as long as the guard.
#[test]
fn a_refusal_names_the_guard() {
    explore(2, || {
        let a = storage();
        let guard = a.guard(Mode::Write, here()).unwrap();
        let other = thread::spawn({
            let a = a.clone();
            move || {
                a.guard(Mode::Write, here())
                    .map(drop)
                    .unwrap_err()
                    .to_string()
            }
        });
        let refused = hold(&[&a], &[]).map(drop).unwrap_err().to_string();
        assert!(refused.contains("interleavings.rs"), "{refused}");
        assert!(other.join().unwrap().contains("interleavings.rs"));
        drop(guard);
        drop(hold(&[], &[&a]).unwrap());
    });
}

/// The slot of the recorder: who reads while others write, one after the other, sees nothing or one whole event.
#[test]
fn a_slot_is_read_whole_or_not() {
    explore(2, || {
        let slot = Arc::new(Slot::new());
        slot.write(1, [1; 8]);
        let writer = {
            let slot = slot.clone();
            thread::spawn(move || {
                slot.write(2, [2; 8]);
                slot.write(3, [3; 8]);
            })
        };
        if let Some(words) = slot.read() {
            assert!(words.iter().all(|&w| w == words[0]), "{words:?}");
            assert!((1..=3).contains(&words[0]));
        }
        writer.join().unwrap();
        assert_eq!(slot.read(), Some([3; 8]));
    });
}
