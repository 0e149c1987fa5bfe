//! The copy log: exact entries, bounded length, refusals that belong to one thread.

use osteon_memory::copies::{self, CopyReason};
use osteon_memory::{Storage, scope};
use osteon_spec::{DType, Device, Kind, Layout};
use proptest::prelude::*;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};

/// The log is the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

fn storage(nbytes: usize) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), "test", Location::caller()).unwrap()
}

const REASONS: [CopyReason; 9] = [
    CopyReason::Requested,
    CopyReason::Assigned,
    CopyReason::Contiguous,
    CopyReason::Reshape,
    CopyReason::Cast,
    CopyReason::Compact,
    CopyReason::Resize,
    CopyReason::Materialized,
    CopyReason::Loaded,
];

/// What the log should say of a copy: reason, bytes, ids of both storages, sizes of both layouts.
type Entry = (CopyReason, usize, [u64; 2], [Vec<usize>; 2]);

fn entries(log: &copies::CopyLog) -> Vec<Entry> {
    log.iter()
        .map(|e| {
            let sizes = [&e.from, &e.to].map(|end| end.layout.sizes().to_vec());
            (e.reason, e.bytes, [e.from.storage, e.to.storage], sizes)
        })
        .collect()
}

fn record(reason: CopyReason, from: (&Storage, usize), to: (&Storage, usize)) -> Entry {
    let layouts = [from.1, to.1].map(|n| Layout::contiguous(&[n]).unwrap());
    let bytes = 4 * to.1;
    copies::record(
        copies::begin(bytes),
        reason,
        "test",
        Location::caller(),
        (from.0, DType::F32, &layouts[0]),
        (to.0, DType::F32, &layouts[1]),
    );
    (
        reason,
        bytes,
        [from.0.id(), to.0.id()],
        [vec![from.1], vec![to.1]],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_log_is_what_was_recorded(
        steps in prop::collection::vec((0..9usize, 0..9usize, 0..9usize), 0..40),
        mark_at in 0..40usize,
    ) {
        let _alone = alone();
        let (a, b) = (storage(64), storage(64));
        let (mut marks, mut expected) = (vec![copies::mark()], Vec::new());
        for (i, (reason, n, m)) in steps.into_iter().enumerate() {
            if i == mark_at {
                marks.push(copies::mark());
            }
            expected.push(record(REASONS[reason], (&a, n), (&b, m)));
        }
        for (mark, skip) in marks.iter().zip([0, mark_at]) {
            let log = copies::since(mark);
            prop_assert_eq!(entries(&log), &expected[skip.min(expected.len())..]);
            prop_assert_eq!(log.missed(), 0);
            prop_assert_eq!(log.bytes(), log.iter().map(|e| e.bytes).sum::<usize>());
        }
    }
}

#[test]
fn old_copies_are_counted_and_let_go() {
    let _alone = alone();
    let a = storage(64);
    let mark = copies::mark();
    for n in 0..20_000 {
        record(CopyReason::Requested, (&a, n % 16), (&a, n % 16));
    }
    let log = copies::since(&mark);
    assert_eq!((log.len(), log.missed()), (16_384, 20_000 - 16_384));
    // The newest ones, in order, without a gap.
    assert!(log.windows(2).all(|w| w[1].number == w[0].number + 1));
    assert_eq!(log.last().unwrap().layout_len(), 19_999 % 16);
    assert!(
        log.to_string()
            .starts_with("(3616 older copies are no longer listed)\n")
    );
    assert!(copies::since(&copies::mark()).is_empty());
}

trait Len {
    fn layout_len(&self) -> usize;
}

impl Len for copies::CopyEvent {
    fn layout_len(&self) -> usize {
        self.to.layout.sizes()[0]
    }
}

#[test]
fn a_copy_carries_its_line_and_scope() {
    let _alone = alone();
    let (a, mark) = (storage(64), copies::mark());
    let _in = scope("encoder");
    let (site, line) = (Location::caller(), line!());
    let layout = Layout::contiguous(&[2]).unwrap();
    let side = (&a, DType::F32, &layout);
    copies::record(copies::begin(8), CopyReason::Cast, "to", site, side, side);
    let log = copies::since(&mark);
    assert_eq!((log[0].op, log[0].site.line()), ("to", line));
    assert_eq!(
        (log[0].site.file(), log[0].scope.path()),
        (file!(), "encoder")
    );
    let json = log[0].to_json();
    assert_eq!(json["reason"], "cast");
    assert_eq!(json["scope"], "encoder");
    assert_eq!(json["from"]["shape"], serde_json::json!([2]));
    assert_eq!(json["hint"], CopyReason::Cast.hint());
    let text = log.to_string();
    assert!(text.starts_with("8 bytes by to at "), "{text}");
    assert!(text.contains("(cast): float32 (2)@(1)"), "{text}");
}

/// A storage that grows copies what it holds, and says so; an empty one has nothing to copy.
#[test]
fn growth_is_a_copy() {
    let _alone = alone();
    let mark = copies::mark();
    let a = storage(0);
    a.grow(12, "resize_", Location::caller()).unwrap();
    assert!(copies::since(&mark).is_empty());
    a.grow(12, "resize_", Location::caller()).unwrap();
    assert!(copies::since(&mark).is_empty());
    a.grow(100, "resize_", Location::caller()).unwrap();
    let log = copies::since(&mark);
    assert_eq!(
        entries(&log),
        [(CopyReason::Resize, 12, [a.id(); 2], [vec![12], vec![12]])]
    );
    assert_eq!((log[0].op, log[0].from.dtype), ("resize_", DType::U8));
}

#[test]
fn forbidding_nests_and_is_this_threads() {
    let allowed = |reason| copies::check(reason, "reshape", "it");
    let implicit = [CopyReason::Reshape, CopyReason::Materialized];
    for reason in REASONS {
        assert_eq!(reason.is_implicit(), implicit.contains(&reason));
    }
    let outer = copies::forbid();
    let inner = copies::forbid();
    drop(outer);
    for reason in REASONS {
        match allowed(reason) {
            Ok(()) => assert!(!reason.is_implicit()),
            Err(e) => {
                assert!(reason.is_implicit());
                assert_eq!(e.kind(), Kind::CopyForbidden);
                let text = e.to_string();
                assert!(
                    text.contains("would copy it") && text.contains(reason.hint()),
                    "{text}"
                );
            }
        }
    }
    std::thread::scope(|s| {
        s.spawn(|| assert!(allowed(CopyReason::Reshape).is_ok()))
            .join()
            .unwrap();
    });
    drop(inner);
    assert!(allowed(CopyReason::Reshape).is_ok());
}
