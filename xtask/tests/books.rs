//! The conformance programs with the books open: after every step map, statistics, recorder and timeline agree to the
//! byte, and every live and every copied byte belongs to an operation and a line of its caller.

use osteon::memory::{self, Event, EventKind, MemoryMap, Timeline};
use osteon::{Device, Origin, Site, copies};
use std::collections::BTreeSet;
use std::path::Path;
use xtask::conformance::{Line, read};

/// What was there after a step, on all devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Books {
    storages: usize,
    tensors: usize,
    allocated: u64,
    requested: u64,
}

const DEVICES: [fn() -> Device; 2] = [Device::cpu, Device::meta];

/// The books of the map and of the statistics, which agree.
fn books(map: &MemoryMap) -> Books {
    assert_eq!(map.omitted, 0);
    let own = || map.storages.iter().filter(|s| s.allocated > 0);
    let listed = Books {
        storages: map.storages.len(),
        tensors: map.storages.iter().map(|s| s.tensors.len()).sum(),
        allocated: own().map(|s| s.allocated as u64).sum(),
        requested: own().map(|s| s.nbytes as u64).sum(),
    };
    let (mut allocated, mut requested, mut blocks) = (0, 0, 0);
    for device in DEVICES {
        let stats = memory::stats(&device());
        allocated += stats.allocated_bytes.all.current;
        requested += stats.requested_bytes.all.current;
        blocks += stats.allocation.all.current;
    }
    assert_eq!((listed.allocated, listed.requested), (allocated, requested));
    assert_eq!((map.allocated, own().count() as u64), (allocated, blocks));
    listed
}

/// Whether a line is the caller's: here that of the programs' interpreter.
fn is_callers(file: &str) -> bool {
    file.starts_with("xtask/src/conformance/")
}

/// Enters what was not made by an operation, called from a line of the caller.
fn check_makers(map: &MemoryMap, strangers: &mut BTreeSet<String>) {
    let mut check = |op: &str, site: Site| {
        if op.is_empty() || !is_callers(site.file()) {
            strangers.insert(format!("{op} at {site}"));
        }
    };
    for s in &map.storages {
        match &s.origin {
            Origin::Allocated { op, site } => check(op, site),
            other => panic!("the programs allocate all that they use, but {other}"),
        }
        s.tensors.iter().for_each(|t| check(t.op, t.site));
    }
}

/// What the recorder's events add up to at each step, from what was there at the beginning of the program.
fn recorded(program: &str, start: Books) -> Vec<Books> {
    let recent = memory::recent();
    let is_inside = |e: &Event| {
        let rest = e.scope.path().strip_prefix(program);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let end = recent
        .iter()
        .rposition(is_inside)
        .expect("the program's scope");
    let before = recent[..end].iter().rposition(|e| !is_inside(e));
    let first = before.map_or(0, |i| i + 1);
    let (mut now, mut steps) = (start, Vec::new());
    for e in &recent[first..=end] {
        let (storages, size, sign) = match e.kind {
            EventKind::Alloc { allocated } => (1, allocated, 1),
            EventKind::Free { allocated } => (-1, allocated, -1),
            EventKind::Scope if e.scope.path().ends_with(".step") => {
                steps.push(now);
                continue;
            }
            _ => continue,
        };
        now.storages = now.storages.wrapping_add_signed(storages);
        now.allocated = now.allocated.wrapping_add_signed(sign * size as i64);
        let requested = if size > 0 { e.bytes as i64 } else { 0 };
        now.requested = now.requested.wrapping_add_signed(sign * requested);
    }
    steps
}

/// What the timeline adds up to at each step.
fn drawn(timeline: &Timeline) -> Vec<Books> {
    let is_step = |text: &str| text.ends_with(".step");
    let marks = timeline
        .marks
        .iter()
        .filter(|m| timeline.text(m.kind) == "scope");
    let steps = marks
        .filter(|m| is_step(timeline.text(m.text)))
        .map(|m| m.time);
    let there = |at: u64, from: u64, to: Option<u64>| from <= at && to.is_none_or(|to| at < to);
    steps
        .map(|at| {
            let stays = || {
                timeline
                    .storages
                    .iter()
                    .filter(move |s| there(at, s.from, s.to))
            };
            let own = || stays().filter(|s| s.size > 0);
            Books {
                storages: stays().count(),
                tensors: timeline
                    .views
                    .iter()
                    .filter(|v| there(at, v.from, v.to))
                    .count(),
                allocated: own().map(|s| s.size).sum(),
                requested: own().map(|s| s.bytes).sum(),
            }
        })
        .collect()
}

/// All ways of counting the copies of a program agree, and each has its operation and line.
fn check_copies(
    log: &copies::CopyLog,
    sums: &copies::CopySummary,
    timeline: &Timeline,
    strangers: &mut BTreeSet<String>,
) {
    assert_eq!(log.missed(), 0);
    let are_strange = |c: &&copies::CopyEvent| c.op.is_empty() || !is_callers(c.site.file());
    strangers.extend(
        log.iter()
            .filter(are_strange)
            .map(|c| format!("copy by {} at {}", c.op, c.site)),
    );
    let bytes = log.bytes() as u64;
    assert_eq!((sums.count(), sums.bytes()), (log.len() as u64, bytes));
    let drawn: u64 = timeline.copies.iter().map(|c| c.bytes).sum();
    assert_eq!((timeline.copies.len(), drawn), (log.len(), bytes));
}

fn run(file: &str, mut each: impl FnMut(usize, &str, &Line)) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../conformance")
        .join(file);
    let lines = read(&path).expect("the committed file");
    for (number, (id, line)) in lines.iter().enumerate() {
        each(number, id, line);
    }
}

#[test]
fn the_books_agree_after_every_step() {
    let (mut steps, mut strangers) = (0, BTreeSet::new());
    for file in ["data.jsonl.gz", "grad.jsonl.gz"] {
        run(file, |number, id, line| {
            // Built without optimisation, every sixth program; all of them elsewhere.
            if cfg!(debug_assertions) && !number.is_multiple_of(6) {
                return;
            }
            let name = format!("{file} {id}").replace('.', "-");
            let (mark, before) = (copies::mark(), copies::summary());
            let recording = memory::record().expect("a temporary file");
            let start = books(&memory::map());
            let _in = memory::scope(&name);
            let mut expected = Vec::new();
            line.run(&mut |_| {
                let map = memory::map();
                check_makers(&map, &mut strangers);
                expected.push(books(&map));
                drop(memory::scope("step"));
            });
            let timeline = recording.stop().expect("the recording");
            let (log, sums) = (copies::since(&mark), copies::summary().diff(&before));
            assert_eq!(drawn(&timeline), expected, "{name}");
            let seen = recorded(&name, start);
            assert_eq!(seen.len(), expected.len(), "{name}");
            for (seen, expected) in seen.iter().zip(&expected) {
                // The recorder knows nothing of tensors.
                let seen = Books {
                    tensors: expected.tensors,
                    ..*seen
                };
                assert_eq!(seen, *expected, "{name}");
            }
            check_copies(&log, &sums, &timeline, &mut strangers);
            steps += expected.len();
        });
    }
    assert!(strangers.is_empty(), "{strangers:#?}");
    assert!(steps > 3_000, "{steps} steps");
}
