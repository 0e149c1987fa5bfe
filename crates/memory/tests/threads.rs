//! Many threads on few storages: nobody sees half a write, nobody waits for ever, nothing is left behind.

use osteon_memory::{Mode, Role, Storage, Viewer, hold, map};
use osteon_spec::{DType, Device, Kind, Layout};
use std::panic::Location;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Ends the process when `test` takes longer than a minute: a deadlock would hang.
fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(Duration::from_secs(60)) {
        eprintln!("deadlock");
        std::process::abort();
    }
    worker.join().unwrap();
}

/// A small generator, so that runs are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

const BYTES: usize = 256;
const STEPS: usize = 20_000;

/// All bytes of a storage that somebody holds: equal, since every writer writes one value.
fn pattern(storage: &Storage) -> u8 {
    // SAFETY: the caller holds the storage; its bytes are initialised.
    let bytes = unsafe { std::slice::from_raw_parts(storage.data_ptr(), BYTES) };
    assert!(
        bytes.iter().all(|b| *b == bytes[0]),
        "a torn write: {bytes:?}"
    );
    bytes[0]
}

fn write(storage: &Storage, byte: u8) {
    // SAFETY: the caller holds the storage for writing.
    unsafe { storage.data_mut().write_bytes(byte, BYTES) };
}

#[test]
fn no_torn_data_no_deadlock_no_leak() {
    watched(|| {
        let storages: Vec<_> = (0..4)
            .map(|_| Storage::allocate(BYTES, &Device::cpu(), "test", Location::caller()).unwrap())
            .collect();
        storages.iter().for_each(|s| write(s, 0));
        thread::scope(|scope| {
            for seed in 0..8 {
                let storages = &storages;
                scope.spawn(move || work(storages, Random(seed)));
            }
        });
        // Guards refused some of the writes, and most were made.
        let writes: u64 = storages.iter().map(Storage::version).sum();
        assert!(writes > STEPS as u64, "only {writes} writes");
        for storage in storages {
            assert!(storage.tensors().is_empty());
            // No hold and no guard is left.
            drop(hold(&[], &[&storage]).unwrap());
            drop(storage.guard(Mode::Write, Location::caller()).unwrap());
            let id = storage.id();
            drop(storage);
            assert!(map().storage(id).is_none());
        }
    });
}

fn work(storages: &[Storage], mut random: Random) {
    let mut views: Vec<Viewer> = Vec::new();
    let mut guards = Vec::new();
    for _ in 0..STEPS {
        let [a, b, c] = [(); 3].map(|()| &storages[random.below(storages.len())]);
        match random.below(32) {
            0..20 => {
                // A kernel: reads two, writes one; a guard of whomever may be in the way.
                match hold(&[a, b], &[c]) {
                    Ok(_held) => {
                        let sum = pattern(a).wrapping_add(pattern(b)).wrapping_add(1);
                        write(c, sum);
                        c.record_write("test", std::panic::Location::caller());
                    }
                    Err(e) => assert_eq!(e.kind(), Kind::Borrowed),
                }
            }
            20 => {
                let mode = [Mode::Read, Mode::Write][random.below(2)];
                match a.guard(mode, Location::caller()) {
                    Ok(guard) => {
                        let seen = pattern(a);
                        if mode == Mode::Write {
                            write(a, seen.wrapping_add(1));
                        }
                        guards.push((guard, mode));
                    }
                    Err(e) => assert_eq!(e.kind(), Kind::Borrowed),
                }
            }
            21..26 => {
                let layout = Layout::contiguous(&[random.below(BYTES / 4)]).unwrap();
                let site = Location::caller();
                let made =
                    Viewer::register(a.clone(), layout, DType::F32, "look", site, Role::View);
                views.push(made.unwrap());
            }
            26..29 => {
                views.truncate(random.below(8));
                if let Some(view) = views.first() {
                    view.set_label("first");
                }
            }
            _ => assert!(a.tensors().len() < 8 * STEPS),
        }
        // Guards are kept over a few steps, and read again before they go: nobody wrote meanwhile.
        if random.below(8) == 0 {
            for (guard, _) in guards.drain(..) {
                pattern(guard.storage());
            }
        }
    }
}

/// Readers do not keep a writer waiting for ever, though there is always one of them.
#[test]
fn a_stream_of_readers_lets_writers_in() {
    watched(|| {
        let storage = Storage::allocate(BYTES, &Device::cpu(), "test", Location::caller()).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        let held = match hold(&[&storage], &[]) {
                            Ok(held) => held,
                            // The write guard below.
                            Err(_) => continue,
                        };
                        thread::yield_now();
                        drop(held);
                    }
                });
            }
            for _ in 0..200 {
                drop(hold(&[], &[&storage]).unwrap());
                drop(storage.guard(Mode::Write, Location::caller()).unwrap());
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}
