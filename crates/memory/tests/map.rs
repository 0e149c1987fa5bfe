//! The memory map and its differences; also while everything changes.

use osteon_memory::{
    Group, MemoryMap, Origin, Role, Storage, Viewer, allocated, empty_cache, map, max_allocated,
    reserved, reset_peak, stats,
};
use osteon_spec::{DType, Device, Layout};
use serde_json::Value;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// Totals are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

#[track_caller]
fn cpu(nbytes: usize) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), "test", Location::caller()).unwrap()
}

#[track_caller]
fn look(storage: &Storage, n: usize, offset: usize) -> Viewer {
    let layout = Layout::contiguous(&[n])
        .unwrap()
        .with_offset(offset)
        .unwrap();
    let site = Location::caller();
    Viewer::register(
        storage.clone(),
        layout,
        DType::F32,
        "look",
        site,
        Role::Tensor,
    )
    .unwrap()
}

fn check(map: &MemoryMap) {
    let sum: u64 = map.storages.iter().map(|s| s.allocated as u64).sum();
    assert_eq!(map.allocated, sum);
    assert!(
        map.storages.is_sorted_by(|a, b| a.id < b.id),
        "each once, oldest first"
    );
    for s in &map.storages {
        for t in &s.tensors {
            assert!(t.layout.required_len() * t.dtype.size() <= s.nbytes);
        }
        assert!(s.reached_bytes().unwrap() <= s.nbytes);
        assert!(map.storage(s.id).is_some());
    }
}

#[test]
fn totals_are_the_sum_of_storages() {
    let _alone = alone();
    let (cpu_device, meta) = (Device::cpu(), Device::meta());
    let before = map();
    let kept = [cpu(1000), cpu(40_000), cpu(0)];
    let forecast = Storage::allocate(1 << 30, &meta, "test", Location::caller()).unwrap();
    let owner = Origin::Foreign {
        owner: Arc::from("a test"),
        site: Location::caller(),
    };
    let foreign = Storage::from_owner(vec![0u8; 77], owner).unwrap();
    let now = map();
    check(&now);
    // 1000 bytes are rounded to 1024, 40,000 to whole pages; foreign bytes take nothing from us.
    assert_eq!(now.allocated - before.allocated, 1024 + 40_960 + (1 << 30));
    assert_eq!(
        now.requested() - before.requested(),
        1000 + 40_000 + (1 << 30) + 77
    );
    assert_eq!(now.storages.len() - before.storages.len(), 5);
    assert_eq!(now.allocated, allocated(&cpu_device) + allocated(&meta));
    assert_eq!(now.reserved, reserved(&cpu_device) + reserved(&meta));
    assert_eq!(stats(&meta).requested_bytes.all.current, 1 << 30);
    drop((kept, forecast, foreign));
    assert_eq!(map().allocated, before.allocated);
}

#[test]
fn peaks_outlive_what_made_them() {
    let _alone = alone();
    let device = Device::cpu();
    reset_peak(&device);
    let start = allocated(&device);
    drop((cpu(1 << 20), cpu(1 << 20)));
    assert_eq!(allocated(&device), start);
    assert_eq!(max_allocated(&device), start + (2 << 20));
    reset_peak(&device);
    assert_eq!(max_allocated(&device), start);
    // What is cached goes back to the system, and is gone from the total.
    let (held, back) = (reserved(&device), empty_cache(&device));
    assert!(back >= 2 << 20);
    assert_eq!(reserved(&device), held - back as u64);
}

#[test]
fn differences_are_by_line_and_label() {
    let _alone = alone();
    let make = |n: usize, nbytes| (0..n).map(|_| cpu(nbytes)).collect::<Vec<_>>();
    let (grows, named) = (make(2, 100), make(1, 50));
    let earlier = map();
    assert!(map().diff(&earlier).entries.is_empty());
    let more = make(3, 100);
    named[0].set_label("weights");
    let label_of_a_tensor = cpu(8);
    let tensor = look(&label_of_a_tensor, 2, 0);
    tensor.set_label("bias");
    drop(grows);
    let diff = map().diff(&earlier);
    // All of `make` is one line; the label moved one of its storages to a group of its own.
    let seen: Vec<_> = diff
        .entries
        .iter()
        .map(|e| (e.label.as_deref().unwrap_or(""), e.storages, e.bytes))
        .collect();
    // Of equal growth, more storages first.
    assert_eq!(seen, [("weights", 1, 50), ("", 0, 50), ("bias", 1, 8)]);
    let Group { origin, .. } = &diff.entries[0];
    let origin = origin.to_string();
    assert!(
        origin.starts_with("test at ") && origin.contains("map.rs:"),
        "{origin}"
    );
    let text = diff.to_string();
    assert!(
        text.contains("+50 B  +1 storage  \"weights\"  test at "),
        "{text}"
    );
    // The other way round, everything has the other sign.
    let back: Vec<_> = earlier
        .diff(&map())
        .entries
        .iter()
        .map(|e| e.bytes)
        .collect();
    assert_eq!(back, [-8, -50, -50]);
    drop(more);
}

#[test]
fn bytes_that_nothing_reaches_are_told_apart() {
    let _alone = alone();
    let storage = cpu(4000);
    // Elements 0..10 and 5..20: 80 bytes.
    let looks = [look(&storage, 10, 0), look(&storage, 15, 5)];
    let map = map();
    let entry = map.storage(storage.id()).unwrap();
    assert_eq!(entry.reached_bytes().unwrap(), 80);
    let json: Value = serde_json::from_str(&map.to_json().unwrap()).unwrap();
    let entry = json["storages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["id"] == storage.id());
    let entry = entry.unwrap();
    assert_eq!(entry["reached_bytes"], 80);
    assert_eq!(entry["tensors"][1]["reached_bytes"], 60);
    assert_eq!(json["totals"]["allocated"], map.allocated);
    assert!(
        map.to_string().contains("(3.83 KiB reached by no tensor)"),
        "{map}"
    );
    drop(looks);
}

/// Each map is right at its instant, whatever other threads make, drop, name and grow meanwhile.
#[test]
fn maps_are_right_while_everything_changes() {
    let _alone = alone();
    let before = map();
    let done = AtomicBool::new(false);
    let shared = cpu(64);
    thread::scope(|s| {
        let workers: Vec<_> = (0..4)
            .map(|worker: usize| {
                let shared = &shared;
                s.spawn(move || {
                    let mut kept = Vec::new();
                    for i in 0..3000 {
                        let storage = cpu(i * 37 % 50_000);
                        let n = storage.nbytes() / 4;
                        kept.push(look(&storage, n, 0));
                        kept.push(look(shared, i % 17, 0));
                        if i % 5 == worker {
                            storage.set_label("named");
                            kept[0].set_label("first");
                            storage.grow(n * 5, "resize_", Location::caller()).unwrap();
                            kept.push(look(&storage, n * 5 / 4, 0));
                        }
                        if kept.len() > 40 {
                            kept.drain(i % 7..30 + i % 9);
                        }
                    }
                })
            })
            .collect();
        let reader = s.spawn(|| {
            let mut maps = 0;
            while !done.load(Ordering::Relaxed) {
                let map = map();
                check(&map);
                maps += 1;
                if maps % 16 == 0 {
                    map.to_json().unwrap();
                }
            }
            maps
        });
        let ends: Vec<_> = workers.into_iter().map(|w| w.join()).collect();
        done.store(true, Ordering::Relaxed);
        ends.into_iter().for_each(|end| end.unwrap());
        assert!(reader.join().unwrap() > 0);
    });
    drop(shared);
    assert_eq!(
        (map().allocated, map().storages.len()),
        (before.allocated, before.storages.len())
    );
}
