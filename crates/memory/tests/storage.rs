//! Storages: owners, growth, guards and refusals, at the edges.

use osteon_memory::{
    MemoryStats, Mode, Origin, Role, Storage, Viewer, hold, map, set_limit, stats,
};
use osteon_spec::{DType, Device, Error, Kind, Layout};
use std::any::Any;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

fn cpu(nbytes: usize) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), "test", Location::caller()).unwrap()
}

fn foreign() -> Origin {
    Origin::Foreign {
        owner: Arc::from("a test"),
        site: Location::caller(),
    }
}

fn written(storage: &Storage, byte: u8) {
    let _held = hold(&[], &[storage]).unwrap();
    // SAFETY: held for writing, of that many bytes.
    unsafe { storage.data_mut().write_bytes(byte, storage.nbytes()) };
}

fn bytes(storage: &Storage) -> Vec<u8> {
    let _held = hold(&[storage], &[]).unwrap();
    if storage.nbytes() == 0 {
        return Vec::new();
    }
    // SAFETY: held for reading, of that many initialised bytes.
    unsafe { std::slice::from_raw_parts(storage.data_ptr(), storage.nbytes()) }.to_vec()
}

#[test]
fn empty_storages_have_no_address_and_an_entry() {
    for storage in [cpu(0), Storage::from_owner(Vec::new(), foreign()).unwrap()] {
        assert!(storage.data_ptr().is_null());
        assert_eq!(map().storage(storage.id()).unwrap().allocated, 0);
        let layout = Layout::contiguous(&[0, 5]).unwrap();
        let site = Location::caller();
        Viewer::register(
            storage.clone(),
            layout,
            DType::C128,
            "look",
            site,
            Role::Tensor,
        )
        .unwrap();
        assert!(bytes(&storage).is_empty());
    }
}

#[test]
fn meta_storages_are_counted_and_have_no_address() {
    let (meta, before) = (Device::meta(), stats(&Device::cpu()));
    let storage = Storage::allocate(1 << 40, &meta, "test", Location::caller()).unwrap();
    assert!(storage.data_ptr().is_null());
    assert!(osteon_memory::allocated(&meta) >= 1 << 40);
    storage
        .grow(1 << 41, "resize_", Location::caller())
        .unwrap();
    assert_eq!(map().storage(storage.id()).unwrap().allocated, 1 << 41);
    // Other tests of this binary take a few MiB meanwhile.
    let reserved = |stats: MemoryStats| stats.reserved_bytes.all.current;
    assert!(reserved(stats(&Device::cpu())) < reserved(before) + (1 << 30));
    let error = Storage::allocate(usize::MAX / 2, &meta, "test", Location::caller()).unwrap_err();
    assert!(error.is_out_of_memory());
}

/// Threads that grow at once: whoever comes later neither shrinks the storage nor loses bytes.
#[test]
fn growth_never_shrinks() {
    for round in 0..40 {
        let storage = cpu(16);
        written(&storage, 7);
        thread::scope(|s| {
            // All have seen the old size before the first of them may go on.
            let held = hold(&[&storage], &[]).unwrap();
            for nbytes in [100_000, 5_000, 64] {
                let storage = &storage;
                s.spawn(move || {
                    let site = Location::caller();
                    storage.grow(nbytes, "resize_", site).unwrap();
                    assert!(storage.nbytes() >= nbytes, "round {round}");
                });
            }
            thread::sleep(Duration::from_millis(2));
            drop(held);
        });
        assert_eq!(storage.nbytes(), 100_000);
        assert_eq!(bytes(&storage)[..16], [7; 16]);
    }
}

#[test]
fn growth_keeps_bytes_views_and_totals() {
    let storage = cpu(1000);
    written(&storage, 3);
    let layout = Layout::contiguous(&[250]).unwrap();
    let site = Location::caller();
    let viewer = Viewer::register(
        storage.clone(),
        layout,
        DType::F32,
        "look",
        site,
        Role::Tensor,
    )
    .unwrap();
    storage.grow(3 << 20, "resize_", site).unwrap();
    assert_eq!(bytes(viewer.storage())[..1000], [3; 1000]);
    let info = map().storage(storage.id()).unwrap().clone();
    assert_eq!((info.nbytes, info.allocated), (3 << 20, 3 << 20));
    let guard = storage.guard(Mode::Read, site).unwrap();
    let error = storage.grow(4 << 20, "resize_", site).unwrap_err();
    assert_eq!(
        (error.kind(), error.op_name()),
        (Kind::Borrowed, Some("resize_"))
    );
    drop(guard);
    assert!(
        storage
            .grow(usize::MAX, "resize_", site)
            .unwrap_err()
            .is_out_of_memory()
    );
    assert_eq!((storage.nbytes(), bytes(&storage)[999]), (3 << 20, 3));
    assert!(hold(&[], &[&storage]).is_ok(), "a failure lets go");
}

/// An owner whose drop uses osteon: allocates, drops tensors, asks for the map.
#[test]
fn owners_may_call_back_when_they_are_dropped() {
    struct Owner {
        bytes: [u8; 64],
        others: Vec<Storage>,
        drops: Arc<AtomicUsize>,
    }
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.bytes
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            let fresh = cpu(100);
            assert!(map().storage(fresh.id()).is_some());
            let id = self.others[0].id();
            self.others.clear();
            assert!(map().storage(id).is_none());
            fresh.grow(1 << 20, "resize_", Location::caller()).unwrap();
            self.drops.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let owner = |others| Owner {
        bytes: [9; 64],
        others,
        drops: drops.clone(),
    };
    let inner = Storage::from_owner(owner(vec![cpu(5)]), foreign()).unwrap();
    // The bytes lie in the owner itself, and owners may own storages of owners.
    let outer = Storage::from_owner(owner(vec![inner]), foreign()).unwrap();
    assert_eq!(bytes(&outer), [9; 64]);
    let layout = Layout::contiguous(&[64]).unwrap();
    let site = Location::caller();
    let viewer =
        Viewer::register(outer.clone(), layout, DType::U8, "look", site, Role::Tensor).unwrap();
    drop(outer);
    assert_eq!(drops.load(Ordering::Relaxed), 0);
    // The last handle goes on another thread.
    thread::spawn(move || drop(viewer)).join().unwrap();
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

/// An owner that panics when it is dropped harms nobody else.
#[test]
fn a_panicking_owner_leaves_the_lists_whole() {
    struct Owner;
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            b"bytes"
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            panic!("boom");
        }
    }
    let storage = Storage::from_owner(Owner, foreign()).unwrap();
    let id = storage.id();
    thread::spawn(move || drop(storage)).join().unwrap_err();
    assert!(map().storage(id).is_none());
    assert!(map().storage(cpu(1).id()).is_none());
}

#[test]
fn foreign_memory_is_not_ours_to_grow_and_says_whose_it_is() {
    let mut memory = vec![1u8; 10];
    let ptr = memory.as_mut_ptr();
    let adopt = |read_only, origin| {
        let owner: Box<dyn Any + Send + Sync> = Box::new(());
        // SAFETY: `memory` outlives the storages, which alone touch it.
        unsafe { Storage::from_raw_parts(ptr, 10, read_only, owner, origin) }
    };
    let ours = Origin::Allocated {
        op: "test",
        site: Location::caller(),
    };
    assert_eq!(adopt(false, ours).unwrap_err().kind(), Kind::Value);

    let writable = adopt(false, foreign()).unwrap();
    written(&writable, 5);
    assert_eq!(bytes(&writable), [5; 10]);
    assert_eq!(map().storage(writable.id()).unwrap().allocated, 0);
    assert_eq!(
        writable
            .grow(11, "resize_", Location::caller())
            .unwrap_err()
            .kind(),
        Kind::ReadOnly
    );
    writable.grow(10, "resize_", Location::caller()).unwrap();

    let read_only = adopt(true, foreign()).unwrap();
    assert_eq!(hold(&[], &[&read_only]).unwrap_err().kind(), Kind::ReadOnly);
    let site = Location::caller();
    assert_eq!(
        read_only.guard(Mode::Write, site).unwrap_err().kind(),
        Kind::ReadOnly
    );
    assert!(hold(&[&read_only], &[]).is_ok());
    drop((writable, read_only));
    assert_eq!(memory, [5; 10]);
}

#[test]
fn misaligned_foreign_memory_takes_no_wide_dtype() {
    // Static bytes at every distance from an aligned address.
    static WORDS: [u64; 4] = [0; 4];
    let bytes: &'static [u8] = bytemuck_free(&WORDS);
    for skip in 0..8 {
        let storage = Storage::from_owner(&bytes[skip..], foreign()).unwrap();
        for dtype in [
            DType::U8,
            DType::F16,
            DType::F32,
            DType::I64,
            DType::C64,
            DType::C128,
        ] {
            let layout = Layout::contiguous(&[1]).unwrap();
            let made = Viewer::register(
                storage.clone(),
                layout,
                dtype,
                "look",
                Location::caller(),
                Role::Tensor,
            );
            let needs = dtype.size().min(8);
            assert_eq!(made.is_ok(), skip % needs == 0, "{dtype} at {skip}");
            if let Err(e) = made {
                assert!(e.to_string().contains("not aligned"), "{e}");
            }
        }
    }
}

fn bytemuck_free(words: &'static [u64; 4]) -> &'static [u8] {
    // SAFETY: 32 initialised bytes, any of which is a `u8`.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 32) }
}

fn refusal(result: Result<impl Sized, Error>) -> String {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.kind(), Kind::Borrowed);
    error.to_string()
}

/// Every pair of accesses on one thread: what conflicts with a guard is an error that names its line.
#[test]
fn guards_refuse_what_conflicts() {
    let storage = cpu(64);
    let take = |mode| storage.guard(mode, Location::caller());
    let op = |mode| match mode {
        Mode::Read => hold(&[&storage], &[]).map(drop),
        Mode::Write => hold(&[], &[&storage]).map(drop),
    };
    let line = line!() + 1;
    let reading = storage.guard(Mode::Read, Location::caller()).unwrap();
    let second = storage.guard(Mode::Read, Location::caller()).unwrap();
    op(Mode::Read).unwrap();
    for text in [refusal(op(Mode::Write)), refusal(take(Mode::Write))] {
        let place = format!("is being read through a guard taken at {}:{line}", file!());
        assert!(text.contains(&place), "{text}");
    }
    drop(reading);
    let text = refusal(op(Mode::Write));
    let place = format!("taken at {}:{}", file!(), line + 1);
    assert!(text.contains(&place), "{text}");
    drop(second);
    op(Mode::Write).unwrap();

    assert_eq!(storage.version(), 0);
    let line = line!() + 1;
    let writing = storage.guard(Mode::Write, Location::caller()).unwrap();
    assert_eq!(storage.version(), 1);
    for text in [
        refusal(op(Mode::Read)),
        refusal(op(Mode::Write)),
        refusal(take(Mode::Read)),
        refusal(take(Mode::Write)),
    ] {
        let place = format!(
            "is being written through a guard taken at {}:{line}",
            file!()
        );
        assert!(text.contains(&place), "{text}");
    }
    // From other threads as well, without waiting; and a guard may end on another thread.
    thread::scope(|s| {
        s.spawn(|| refusal(op(Mode::Read))).join().unwrap();
        s.spawn(move || drop(writing)).join().unwrap();
    });
    op(Mode::Write).unwrap();
    assert_eq!(storage.version(), 1, "refused guards do not count");
}

/// Guards that are forgotten, a million of them, refuse writers for ever and never overflow.
#[test]
fn forgotten_guards_refuse_and_never_overflow() {
    let storage = cpu(64);
    for _ in 0..(1 << 20) - 1 {
        std::mem::forget(storage.guard(Mode::Read, Location::caller()).unwrap());
    }
    refusal(storage.guard(Mode::Read, Location::caller()));
    refusal(hold(&[], &[&storage]));
    hold(&[&storage], &[]).unwrap();
}

/// What an operation held before it was refused is let go; a storage named twice is held once.
#[test]
fn holds_are_all_or_nothing() {
    let storages: Vec<_> = (0..9).map(|_| cpu(8)).collect();
    let refs: Vec<_> = storages.iter().collect();
    for n in 1..=9 {
        for blocked in 0..n {
            let guard = storages[blocked]
                .guard(Mode::Read, Location::caller())
                .unwrap();
            // Reads of all, in falling order and twice, and a write of the blocked one.
            let reads: Vec<_> = refs[..n].iter().rev().chain(&refs[..n]).copied().collect();
            assert_eq!(
                hold(&reads, &refs[blocked..=blocked]).unwrap_err().kind(),
                Kind::Borrowed
            );
            drop(guard);
            for storage in &refs[..n] {
                hold(&[], &[storage]).unwrap();
            }
            let held = hold(&reads, &refs[blocked..=blocked]).unwrap();
            thread::scope(|s| {
                for (i, storage) in refs[..n].iter().enumerate().filter(|(i, _)| *i != blocked) {
                    s.spawn(move || hold(&[storage], &[]).map(drop).unwrap());
                    assert_ne!(i, blocked);
                }
            });
            drop(held);
        }
    }
}

/// A refused allocation is an error with a report, and changes nothing.
#[test]
fn a_refused_allocation_is_a_report() {
    let device = Device::meta();
    // Nobody else in this file reserves so much there.
    let limit = (osteon_memory::reserved(&device) + (1 << 43)) as usize;
    set_limit(&device, Some(limit));
    let line = line!() + 1;
    let error = Storage::allocate(1 << 44, &device, "zeros", Location::caller()).unwrap_err();
    set_limit(&device, None);
    assert!(error.is_out_of_memory());
    let json = error.oom_report().unwrap().to_json().unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["request"]["bytes"], 1u64 << 44);
    assert_eq!(json["limit"], limit);
    assert_eq!(json["request"]["op"], "zeros");
    assert!(
        json["request"]["site"]
            .as_str()
            .unwrap()
            .contains(&format!("storage.rs:{line}:"))
    );
    let text = error.to_string();
    assert!(text.contains("16 TiB on meta  for zeros at"), "{text}");
}

#[test]
fn a_write_counts_for_every_storage_over_the_same_foreign_bytes() {
    let owner = Arc::new(std::sync::Mutex::new(vec![0u8; 64]));
    let start = owner.lock().unwrap().as_mut_ptr();
    let look = |from: usize, len: usize| {
        // SAFETY: inside of the vector, which the owner keeps and nobody else touches.
        unsafe {
            let (at, owner) = (start.add(from), Box::new(owner.clone()));
            Storage::from_raw_parts(at, len, false, owner, foreign()).unwrap()
        }
    };
    let (whole, front, back) = (look(0, 64), look(0, 32), look(32, 32));
    let site = Location::caller();
    front.record_write("fill_", site);
    let versions = [&whole, &front, &back].map(Storage::version);
    assert_eq!(versions, [1, 1, 0]);
    assert_eq!(whole.last_write(), Some(("fill_", site)));
    assert_eq!(back.last_write(), None);
}
