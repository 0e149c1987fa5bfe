//! Out-of-memory reports: their exact texts in the cases that users meet, and that what they say would make room does.

use osteon_memory::testing::{self, Arena};
use osteon_memory::{Role, Storage, SystemMemory, Viewer, scope, set_limit};
use osteon_spec::{DType, Device, Error, Layout};
use proptest::prelude::*;
use serde_json::Value;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};

const MIB: usize = 1 << 20;
const CPU: Device = Device::cpu();

/// One test at a time, with a device to itself: an arena that takes nothing back, or the system's memory.
fn device(arena: Option<usize>) -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    match arena {
        Some(bytes) => testing::set_memory(&CPU, Arena::new(bytes)).unwrap(),
        None => testing::set_memory(&CPU, SystemMemory::new()).unwrap(),
    }
    alone
}

#[track_caller]
fn make(bytes: usize) -> Result<Storage, Error> {
    Storage::allocate(bytes, &CPU, "zeros", Location::caller())
}

#[track_caller]
fn look(storage: &Storage, n: usize, op: &'static str, role: Role) -> Viewer {
    let layout = Layout::contiguous(&[n]).unwrap();
    let site = Location::caller();
    Viewer::register(storage.clone(), layout, DType::F32, op, site, role).unwrap()
}

/// A tensor over all of a new storage, and nothing else on it.
#[track_caller]
fn tensor(bytes: usize) -> Viewer {
    look(&make(bytes).unwrap(), bytes / 4, "zeros", Role::Tensor)
}

fn json(error: &Error) -> Value {
    serde_json::from_str(&error.oom_report().unwrap().to_json().unwrap()).unwrap()
}

/// The report, without the events before it, of which the last is an allocation here.
#[track_caller]
fn check(error: &Error, expected: &str) {
    let text = error.to_string();
    let (before, rest) = text.split_once("last events:\n").expect("events");
    let (events, after) = rest.split_once("what helps: ").expect("advice");
    let report = format!("{before}what helps: {after}");
    assert_eq!(report, expected, "\n{text}\n");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let last = events.lines().last().unwrap();
    assert!((1..=8).contains(&events.lines().count()), "{text}");
    assert!(last.starts_with("  ") && last.contains(HERE), "{text}");
    assert!(error.is_out_of_memory());
}

const HERE: &str = file!();

#[test]
fn simply_too_big() {
    let _alone = device(Some(64 * MIB));
    let (at, kept) = (line!(), tensor(20 * MIB));
    let (line, error) = (line!(), make(1024 * MIB).unwrap_err());
    let id = kept.storage().id();
    check(
        &error,
        &format!(
            "\
out of memory: 1 GiB on cpu  for zeros at {HERE}:{line}
  verdict      too little memory: the system has no more to give
  limit        none
  allocated    20 MiB  in 1 storage  (20 MiB requested)
  reserved     20 MiB  idle 0 B  cached 0 B
holders 1 storage (20 MiB):
    20 MiB  1 storage  zeros at {HERE}:{at}
what helps: ask for less, or free something"
        ),
    );
    let json = json(&error);
    assert_eq!(json["verdict"], "too_little_memory");
    assert_eq!(json["room"], Value::Null);
    assert_eq!(json["holders"][0]["newest"], id);
    // No machine has these addresses.
    let error = make(usize::MAX / 2).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("no address space holds that many bytes"),
        "{text}"
    );
    drop(kept);
}

#[test]
fn fragmentation() {
    let _alone = device(Some(320 * MIB));
    let at = line!() + 1;
    let mut tensors: Vec<_> = (0..20).map(|_| tensor(16 * MIB)).collect();
    let mut n = 0;
    tensors.retain(|_| {
        n += 1;
        n % 2 == 0
    });
    let first = tensors[0].storage().id();
    // A tensor's shape and dtype are said, where they are known.
    let wanted = Layout::contiguous(&[25, MIB]).unwrap();
    let (line, here) = (line!(), Location::caller());
    let error = Storage::allocate_for(&wanted, DType::F32, &CPU, "zeros", here).unwrap_err();
    check(
        &error,
        &format!(
            "\
out of memory: 100 MiB on cpu  for zeros at {HERE}:{line}  float32 [25, 1048576]
  verdict      fragmentation: 160 MiB are free, but the largest run of them is 16 MiB
  limit        none
  allocated    160 MiB  in 10 storages  (160 MiB requested)
  reserved     320 MiB  idle 160 MiB  cached 160 MiB
  largest run  16 MiB  after the segment's start  before storage {first} of 16 MiB
               zeros at {HERE}:{at}
holders 10 storages (160 MiB):
   160 MiB  10 storages  zeros at {HERE}:{at}
to make room, let go of 3 storages (48 MiB):
    48 MiB  3 storages  zeros at {HERE}:{at}
what helps: make what lives long before what comes and goes, not between"
        ),
    );
    let json = json(&error);
    assert_eq!(json["schema"], 1);
    assert_eq!(json["kind"], "out_of_memory");
    assert_eq!(json["request"]["bytes"], 100 * MIB);
    assert_eq!(json["request"]["op"], "zeros");
    assert_eq!(json["request"]["dtype"], "float32");
    assert_eq!(json["request"]["shape"], serde_json::json!([25, MIB]));
    assert_eq!(json["verdict"], "fragmentation");
    let events = json["events"].as_array().unwrap();
    let kinds: Vec<_> = events.iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["free"; 8]);
    assert_eq!(json["largest_free"]["bytes"], 16 * MIB);
    assert_eq!(json["largest_free"]["above"]["storage"], first);
    assert_eq!(json["limit"], Value::Null);
    assert_eq!(
        (&json["allocated"], &json["reserved"], &json["idle"]),
        (
            &(160 * MIB).into(),
            &(320 * MIB).into(),
            &(160 * MIB).into()
        )
    );
    // Three neighbours and the holes around them are 112 MiB.
    let free = json["room"]["free"]["storages"].as_array().unwrap().clone();
    tensors.retain(|t| !free.contains(&t.storage().id().into()));
    assert_eq!((free.len(), tensors.len()), (3, 7));
    let fits = make(100 * MIB).unwrap();
    drop((tensors, fits));
}

#[test]
fn a_limit_set_too_low() {
    let _alone = device(None);
    set_limit(&CPU, Some(64 * MIB));
    let inside = scope("encoder.3");
    let at = line!() + 1;
    let weights = [10, 11].map(|_| tensor(20 * MIB));
    weights[0].set_label("layer.10.weight");
    weights[1].set_label("layer.11.weight");
    drop(inside);
    let (line, error) = (line!(), make(40 * MIB).unwrap_err());
    check(
        &error,
        &format!(
            "\
out of memory: 40 MiB on cpu  for zeros at {HERE}:{line}
  verdict      the limit: 40 MiB are in use, and the limit is 64 MiB
  limit        64 MiB
  allocated    40 MiB  in 2 storages  (40 MiB requested)
  reserved     40 MiB  idle 0 B  cached 0 B
holders 2 storages (40 MiB):
    40 MiB  2 storages  \"layer.*.weight\"  zeros at {HERE}:{at}  in encoder.3
to make room, let go of 1 storage (20 MiB):
    20 MiB  1 storage  \"layer.10.weight\"  zeros at {HERE}:{at}  in encoder.3
what helps: raise it with memory::set_limit(), or free something"
        ),
    );
    assert_eq!(json(&error)["verdict"], "limit");
    // Nothing that is freed would be enough.
    let error = make(65 * MIB).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(
            "verdict      the limit: the request alone is larger than the limit of 64 MiB\n"
        ),
        "{text}"
    );
    assert!(!text.contains("to make room"), "{text}");
    assert_eq!(json(&error)["limit"], 64 * MIB);
    drop(weights);
    drop(make(64 * MIB).unwrap());
    set_limit(&CPU, None);
}

#[test]
fn a_slice_of_four_elements_that_holds_a_gibibyte() {
    let _alone = device(None);
    set_limit(&CPU, Some(1536 * MIB));
    let at = line!() + 1;
    let storage = make(1024 * MIB).unwrap();
    let (cut, slice) = (line!(), look(&storage, 4, "slice", Role::View));
    drop(storage);
    let (line, error) = (line!(), make(1000 * MIB).unwrap_err());
    check(
        &error,
        &format!(
            "\
out of memory: 0.98 GiB on cpu  for zeros at {HERE}:{line}
  verdict      held by views: 1.00 GiB are kept by views that do not reach them
  limit        1.50 GiB
  allocated    1 GiB  in 1 storage  (1 GiB requested)
  reserved     1 GiB  idle 0 B  cached 0 B
holders 1 storage (1 GiB):
     1 GiB  1 storage  zeros at {HERE}:{at}
            held by a view by slice at {HERE}:{cut}  compact() would free 1.00 GiB
to make room, compact() the tensors of 1 storage (1 GiB):
     1 GiB  1 storage  zeros at {HERE}:{at}
            held by a view by slice at {HERE}:{cut}  compact() would free 1.00 GiB
what helps: keep compact() of the views instead of the views"
        ),
    );
    let json = json(&error);
    assert_eq!(json["verdict"], "held_by_views");
    assert_eq!(json["holders"][0]["compact_frees"], 1024 * MIB - 16);
    assert_eq!(json["holders"][0]["held"]["by"], "view");
    assert_eq!(json["room"]["compact"]["storages"][0], slice.storage().id());
    drop(slice);
    drop(make(1000 * MIB).unwrap());
    set_limit(&CPU, None);
}

#[test]
fn what_a_graph_keeps() {
    let _alone = device(None);
    set_limit(&CPU, Some(128 * MIB));
    let (mut kept, mut at) = (Vec::new(), 0);
    for _ in 0..6 {
        at = line!() + 1;
        let storage = make(20 * MIB).unwrap();
        kept.push(look(&storage, 5 * MIB, "mul", Role::Saved));
    }
    let saved = at + 1;
    let (line, error) = (line!(), make(30 * MIB).unwrap_err());
    check(
        &error,
        &format!(
            "\
out of memory: 30 MiB on cpu  for zeros at {HERE}:{line}
  verdict      held by graphs: 120 MiB are kept for backward passes alone
  limit        128 MiB
  allocated    120 MiB  in 6 storages  (120 MiB requested)
  reserved     120 MiB  idle 0 B  cached 0 B
holders 6 storages (120 MiB):
   120 MiB  6 storages  zeros at {HERE}:{at}
            held by the graph: saved for backward by mul at {HERE}:{saved}
to make room, let go of 2 storages (40 MiB):
    40 MiB  2 storages  zeros at {HERE}:{at}
            held by the graph: saved for backward by mul at {HERE}:{saved}
what helps: keep item() or detach() of a result, not the result with its graph"
        ),
    );
    let json = json(&error);
    assert_eq!(json["verdict"], "held_by_graphs");
    assert_eq!(json["holders"][0]["held"]["op"], "mul");
    drop(kept);
    set_limit(&CPU, None);
}

/// Many lines: the largest are listed, the rest summed.
#[test]
fn small_holders_are_summed() {
    let _alone = device(Some(64 * MIB));
    let mut kept = Vec::new();
    for (i, name) in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
        .iter()
        .enumerate()
    {
        let t = tensor((11 - i) * 400_000);
        t.set_label(name);
        kept.push(t);
    }
    let error = make(1024 * MIB).unwrap_err().to_string();
    let (text, _) = error.split_once("last events:").unwrap();
    assert!(
        text.contains("\"h\"  zeros at") && !text.contains("\"i\""),
        "{text}"
    );
    // 3 and 2 times 400,000 bytes in pages of 4 KiB: 293 and 196 of them.
    assert!(
        text.contains("\n  1.91 MiB  2 storages of 2 other lines\n"),
        "{text}"
    );
    drop(kept);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// What the report says would make room does make room.
    #[test]
    fn room_is_room(
        fixed: bool,
        limit in 20usize..60,
        sizes in prop::collection::vec((16usize..2500, any::<bool>(), any::<bool>()), 5..120),
        wanted in 1usize..50,
    ) {
        let _alone = device(fixed.then_some(64 * MIB));
        if !fixed {
            set_limit(&CPU, Some(limit * MIB));
        }
        let mut alive = Vec::new();
        let mut gone = Vec::new();
        for (pages, keep, view) in sizes {
            let Ok(storage) = make(pages * 4096) else { break };
            let look = if view {
                look(&storage, 4, "slice", Role::View)
            } else {
                look(&storage, pages * 1024, "zeros", Role::Tensor)
            };
            drop(storage);
            if keep { alive.push(look) } else { gone.push(look) }
        }
        drop(gone);
        match make(wanted * MIB) {
            Ok(fits) => drop(fits),
            Err(error) => {
                let json = json(&error);
                let ids = |set: &str| json["room"][set]["storages"].as_array().cloned().unwrap_or_default();
                let mut room = ids("free");
                room.extend(ids("compact"));
                if room.is_empty() {
                    // Only where letting go of everything would not do, or where it would take more of the system
                    // than is reserved, which nobody knows to be there.
                    let more = fixed && json["reserved"].as_u64() < Some((wanted * MIB) as u64);
                    alive.clear();
                    prop_assert!(more || make(wanted * MIB).is_err(), "{}", error);
                } else {
                    let before = alive.len();
                    alive.retain(|t| !room.contains(&t.storage().id().into()));
                    prop_assert_eq!(before - alive.len(), room.len());
                    let fits = make(wanted * MIB);
                    prop_assert!(fits.is_ok(), "{}\n{}", error, fits.unwrap_err());
                    drop(fits);
                }
            }
        }
        drop(alive);
        set_limit(&CPU, None);
    }
}
