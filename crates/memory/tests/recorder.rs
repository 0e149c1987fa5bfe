//! The flight recorder: what it keeps, in which order, and that it keeps it whole.

use osteon_memory::copies::{self, CopyReason};
use osteon_memory::{Event, EventKind, Storage, recent, scope, set_limit};
use osteon_spec::{DType, Device, Layout};
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};
use std::thread;

/// The recorder is the process's, and holds so much: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

#[track_caller]
fn storage(nbytes: usize) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), "test", Location::caller()).unwrap()
}

fn of(storages: &[u64]) -> Vec<Event> {
    let is_of = |e: &&Event| e.storage.is_some_and(|id| storages.contains(&id));
    recent().iter().filter(is_of).cloned().collect()
}

#[test]
fn a_storages_life_in_order() {
    let _alone = alone();
    let (a, line) = (storage(1000), line!());
    let b = storage(64);
    let ids = [a.id(), b.id()];
    a.set_label("weights");
    let inside = scope("encoder");
    let layout = Layout::contiguous(&[16]).unwrap();
    let side = |s| (s, DType::F32, &layout);
    let site = Location::caller();
    copies::record(
        copies::begin(64),
        CopyReason::Cast,
        "to",
        site,
        side(&a),
        side(&b),
    );
    drop(inside);
    b.record_write("add_", site);
    drop(a);
    let events = of(&ids);
    let kinds: Vec<_> = events
        .iter()
        .map(|e| (e.kind, e.storage.unwrap()))
        .collect();
    assert_eq!(
        kinds,
        [
            (EventKind::Alloc { allocated: 1024 }, ids[0]),
            (EventKind::Alloc { allocated: 64 }, ids[1]),
            (EventKind::Label, ids[0]),
            (
                EventKind::Copy {
                    from: ids[0],
                    reason: CopyReason::Cast
                },
                ids[1]
            ),
            (EventKind::Write, ids[1]),
            (EventKind::Free { allocated: 1024 }, ids[0]),
        ]
    );
    assert_eq!(events[0].bytes, 1000);
    assert_eq!(
        (events[0].op, events[0].site.unwrap().line()),
        ("test", line)
    );
    assert_eq!((events[3].bytes, events[3].scope.path()), (64, "encoder"));
    assert_eq!((events[4].op, events[4].scope.path()), ("add_", ""));
    // The name is known of every event of the storage, also of those before it was given.
    let named: Vec<_> = events.iter().map(|e| e.label).collect();
    assert_eq!(
        named,
        [
            Some("weights"),
            None,
            Some("weights"),
            None,
            None,
            Some("weights")
        ]
    );
}

#[test]
fn text_and_json_say_the_same() {
    let _alone = alone();
    let a = storage(3 << 20);
    a.set_label("cache");
    let site = Location::caller();
    a.record_write("mul_", site);
    let events = of(&[a.id()]);
    let lines: Vec<_> = events.iter().map(Event::to_string).collect();
    let (id, made) = (a.id(), events[0].site.unwrap());
    assert_eq!(
        lines,
        [
            format!(
                "alloc          3 MiB  storage {id} \"cache\"  test at {}:{}",
                made.file(),
                made.line()
            ),
            format!("label                 storage {id} \"cache\""),
            format!(
                "write                 storage {id} \"cache\"  mul_ at {}:{}",
                site.file(),
                site.line()
            ),
        ]
    );
    let json = serde_json::to_value(&events[0]).unwrap();
    assert_eq!(json["kind"], "alloc");
    assert_eq!(
        (json["bytes"].as_u64(), json["allocated"].as_u64()),
        (Some(3 << 20), Some(3 << 20))
    );
    assert_eq!(
        (json["storage"].as_u64(), json["label"].as_str()),
        (Some(id), Some("cache"))
    );
    assert_eq!(
        (json["op"].as_str(), json["site"].as_str()),
        (Some("test"), Some(&*made.to_string()))
    );
    let all: serde_json::Value = serde_json::from_str(&recent().to_json().unwrap()).unwrap();
    assert_eq!(
        (all["schema"].as_u64(), all["kind"].as_str()),
        (Some(1), Some("recent"))
    );
    assert_eq!(recent().last(2).len(), 2);
}

#[test]
fn limits_failures_and_scopes() {
    let _alone = alone();
    let meta = Device::meta();
    set_limit(&meta, Some(1 << 20));
    let here = Location::caller();
    assert!(Storage::allocate(1 << 30, &meta, "zeros", here).is_err());
    set_limit(&meta, None);
    drop(scope("outer"));
    let last = recent().last(5);
    let kinds: Vec<_> = last.iter().map(|e| e.kind).collect();
    let EventKind::ScopeEnd(ended) = last[4].kind else {
        panic!("{last}");
    };
    assert_eq!(
        kinds[..4],
        [
            EventKind::Limit(Some(1 << 20)),
            EventKind::OutOfMemory,
            EventKind::Limit(None),
            EventKind::Scope,
        ]
    );
    assert_eq!(
        (last[1].op, last[1].bytes, last[1].site),
        ("zeros", 1 << 30, Some(here))
    );
    assert_eq!((last[3].scope.path(), ended.path()), ("outer", "outer"));
}

/// One thread's last 65,536 events are there, without a gap.
#[test]
fn as_many_as_it_has_room_for() {
    let _alone = alone();
    let a = storage(64);
    let site = Location::caller();
    const MORE: usize = 70_000;
    let names = ["first_", "second_", "third_"];
    for i in 0..MORE {
        a.record_write(names[i % 3], site);
    }
    let writes = of(&[a.id()]);
    // What other threads of this test program hold, a chunk each, is not ours.
    assert!(writes.len() > 65_536 - 64 * 64, "{}", writes.len());
    for (event, i) in writes.iter().rev().zip((0..MORE).rev()) {
        assert_eq!((event.kind, event.op), (EventKind::Write, names[i % 3]));
    }
}

/// Readers beside writers see whole events only, each thread's in its order, and what crosses threads in the order
/// of its causes.
#[test]
fn readers_never_see_half_an_event() {
    let _alone = alone();
    const EACH: usize = 20_000;
    let sites = [Location::caller(), Location::caller(), Location::caller()];
    let ops = ["one_", "twotwo_", "threethreethree_"];
    let storages = [storage(64), storage(64), storage(64)];
    thread::scope(|s| {
        for t in 0..3 {
            let storage = &storages[t];
            s.spawn(move || (0..EACH).for_each(|_| storage.record_write(ops[t], sites[t])));
        }
        for _ in 0..20 {
            for e in recent().iter().filter(|e| e.kind == EventKind::Write) {
                if let Some(t) = storages.iter().position(|s| Some(s.id()) == e.storage) {
                    assert_eq!((e.op, e.site), (ops[t], Some(sites[t])));
                }
            }
        }
    });
    // Made on one thread, written on a second, freed on a third.
    for _ in 0..100 {
        let made = storage(64);
        let id = made.id();
        let made = thread::spawn(move || {
            made.record_write("write_", Location::caller());
            made
        });
        let made = made.join().unwrap();
        thread::spawn(move || drop(made)).join().unwrap();
        let kinds: Vec<_> = of(&[id]).iter().map(|e| e.kind.name()).collect();
        assert_eq!(kinds, ["alloc", "write", "free"]);
    }
}
