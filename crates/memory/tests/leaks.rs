//! What stays from step to step.

use osteon_memory::{Growth, HeldBy, Role, Storage, Viewer, recent, step};
use osteon_spec::{DType, Device, Layout};
use serde_json::Value;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};

/// Steps are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

#[track_caller]
fn make(bytes: usize) -> Storage {
    Storage::allocate(bytes, &Device::cpu(), "zeros", Location::caller()).unwrap()
}

#[track_caller]
fn row(storage: &Storage) -> Viewer {
    let layout = Layout::contiguous(&[4]).unwrap();
    let site = Location::caller();
    Viewer::register(
        storage.clone(),
        layout,
        DType::F32,
        "select",
        site,
        Role::View,
    )
    .unwrap()
}

/// Runs a step of the program that many times.
fn run(n: usize, mut body: impl FnMut(usize)) -> Growth {
    let mut last = None;
    for i in 0..n {
        body(i);
        last = Some(step());
    }
    last.unwrap()
}

#[test]
fn a_line_that_keeps_something_each_step_is_named() {
    let _alone = alone();
    let (mut kept, mut made, mut taken) = (Vec::new(), 0, 0);
    let weights = make(1 << 20);
    let mut tell = |n| {
        run(n, |_| {
            // Comes and goes.
            drop(make(5_000_000));
            made = line!() + 1;
            let batch = make(64_000);
            taken = line!() + 1;
            kept.push(row(&batch));
        })
    };
    // Not yet: two steps with growth after the first are no trend.
    assert!(tell(3).is_empty());
    let growth = tell(1);
    let [line] = &growth.lines[..] else {
        panic!("{growth}")
    };
    assert_eq!((line.bytes, line.steps, line.storages), (3 * 64_000, 3, 3));
    assert_eq!((line.bytes_per_step(), line.group.storages), (64_000, 4));
    assert!(matches!(line.group.held, HeldBy::View { op: "select", site } if site.line() == taken));
    let (step, since, here) = (growth.step, line.since, file!());
    assert_eq!(
        growth.to_string(),
        format!(
            "step {step}: live bytes of 1 line only grow\n  \
             +62.5 KiB a step  zeros at {here}:{made}\n      \
             held by a view by select at {here}:{taken}  compact() would free 256 KiB\n      \
             now 4 storages  250 KiB  since step {since}\n"
        )
    );
    let json: Value = serde_json::from_str(&growth.to_json().unwrap()).unwrap();
    assert_eq!(
        (&json["schema"], &json["kind"]),
        (&1.into(), &"growth".into())
    );
    assert_eq!(json["lines"][0]["bytes_per_step"], 64_000);
    assert_eq!(json["lines"][0]["group"]["held"]["op"], "select");
    assert!(recent().iter().any(|e| e.kind.name() == "step"));
    drop((kept, weights));
}

#[test]
fn what_stops_or_falls_is_no_leak() {
    let _alone = alone();
    // Grows for a while, as caches do, and stops.
    let mut cache = Vec::new();
    let growth = run(5, |_| cache.push(make(1000)));
    assert_eq!(growth.lines.len(), 1, "{growth}");
    let growth = run(3, |_| ());
    assert!(growth.is_empty(), "{growth}");
    assert_eq!(
        growth.to_string(),
        format!("step {}: no line only grows\n", growth.step)
    );
    // Falls now and then.
    let mut some = Vec::new();
    let growth = run(20, |i| {
        some.push(make(1000));
        if i % 3 == 0 {
            some.clear();
        }
    });
    assert!(growth.is_empty(), "{growth}");
    drop((cache, some));
}

/// Every tenth step keeps something: told once three have, and between them.
#[test]
fn slow_leaks_are_found() {
    let _alone = alone();
    let mut kept = Vec::new();
    let mut told = Vec::new();
    for i in 0..60 {
        if i % 10 == 0 {
            kept.push(make(1 << 20));
        }
        told.push(!step().is_empty());
    }
    // The first at step 0 is where counting begins.
    assert!(
        told[..30].iter().all(|t| !t) && told[30..].iter().all(|&t| t),
        "{told:?}"
    );
    drop(kept);
}

/// Two lines, one of which holds what the other made: each is told with its own figures, the larger first.
#[test]
fn several_lines() {
    let _alone = alone();
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let growth = run(6, |_| {
        a.push(make(100));
        b.push(make(10_000));
        b.push(make(10_000));
    });
    let seen: Vec<_> = growth
        .lines
        .iter()
        .map(|l| (l.bytes_per_step(), l.storages))
        .collect();
    // Each call of `make` is a line of its own.
    assert_eq!(seen, [(10_000, 5), (10_000, 5), (100, 5)]);
    drop((a, b));
}
