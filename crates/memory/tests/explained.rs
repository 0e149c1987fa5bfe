//! Copies added up by line, provenance, budgets.

use osteon_memory::copies::{self, CopyReason};
use osteon_memory::{Budget, How, Provenance, Role, Site, Storage, Viewer};
use osteon_spec::{DType, Device, Layout};
use std::panic::Location;
use std::sync::Mutex;
use std::time::Duration;

static ALONE: Mutex<()> = Mutex::new(());

#[track_caller]
fn here() -> Site {
    Location::caller()
}

#[track_caller]
fn storage(nbytes: usize) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), "empty", Location::caller()).unwrap()
}

fn copy(
    reason: CopyReason,
    op: &'static str,
    site: Site,
    bytes: usize,
    from: &Storage,
    to: &Storage,
) {
    let layout = Layout::contiguous(&[bytes / 4]).unwrap();
    let begun = copies::begin(bytes);
    if bytes >= 4096 {
        std::thread::sleep(Duration::from_millis(2));
    }
    copies::record(
        begun,
        reason,
        op,
        site,
        (from, DType::F32, &layout),
        (to, DType::F32, &layout),
    );
}

fn line_of(site: Site) -> String {
    format!("{}:{}", site.file(), site.line())
}

#[test]
fn copies_by_line() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (a, b) = (storage(8192), storage(8192));
    let before = copies::summary();
    let (loop_line, once) = (here(), here());
    for _ in 0..5 {
        copy(
            CopyReason::Contiguous,
            "contiguous",
            loop_line,
            8192,
            &a,
            &b,
        );
    }
    copy(CopyReason::Cast, "to", once, 64, &a, &b);
    copy(CopyReason::Materialized, "to", once, 128, &a, &b);
    let summary = copies::summary().diff(&before);
    let sites: Vec<_> = summary
        .sites
        .iter()
        .map(|s| (s.op, s.site, s.reason, s.count, s.bytes))
        .collect();
    assert_eq!(
        sites,
        [
            ("contiguous", loop_line, CopyReason::Contiguous, 5, 40_960),
            ("to", once, CopyReason::Materialized, 1, 128),
            ("to", once, CopyReason::Cast, 1, 64),
        ]
    );
    assert_eq!((summary.count(), summary.bytes()), (7, 41_152));
    let time = summary.sites[0].time;
    assert!(
        time >= Duration::from_millis(10) && time < Duration::from_secs(5),
        "{time:?}"
    );
    let text = summary.to_string();
    assert!(
        text.starts_with("7 copies, 40.2 KiB, by 3 lines\n    40 KiB         5 x  "),
        "{text}"
    );
    assert!(text.contains(CopyReason::Contiguous.hint()), "{text}");
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let json: serde_json::Value = serde_json::from_str(&summary.to_json().unwrap()).unwrap();
    assert_eq!(
        (&json["schema"], &json["kind"], &json["count"]),
        (&1.into(), &"copies".into(), &7.into())
    );
    let first = &json["sites"][0];
    assert_eq!(
        (&first["bytes"], &first["reason"]),
        (&40_960.into(), &"contiguous".into())
    );
    assert_eq!(first["site"], loop_line.to_string());
}

/// Of small copies one in sixteen is timed and stands for all: over many, the sum is that of all, but for chance.
#[test]
fn small_copies_are_sampled() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let (a, b) = (storage(64), storage(64));
    let before = copies::summary();
    let site = here();
    let layout = Layout::contiguous(&[16]).unwrap();
    for _ in 0..160 {
        let begun = copies::begin(64);
        std::thread::sleep(Duration::from_micros(50));
        let side = |s| (s, DType::F32, &layout);
        copies::record(begun, CopyReason::Cast, "to", site, side(&a), side(&b));
    }
    let summary = copies::summary().diff(&before);
    assert_eq!(summary.sites[0].count, 160);
    let time = summary.sites[0].time;
    assert!(time >= Duration::from_micros(160 * 50), "{time:?}");
}

#[test]
fn where_elements_came_from() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let layout = Layout::contiguous(&[4]).unwrap();
    let look = |s: &Storage, op, site, role| {
        Viewer::register(s.clone(), layout.clone(), DType::F32, op, site, role).unwrap()
    };
    let made = here();
    let a = Storage::allocate(16, &Device::cpu(), "zeros", made).unwrap();
    let zeros = look(&a, "zeros", made, Role::Tensor);
    let p = Provenance::of(&zeros);
    assert_eq!(
        (p.how, p.op, p.site, p.storage, p.copy),
        (How::Result, "zeros", made, a.id(), None)
    );
    assert_eq!(
        p.to_string(),
        format!("result by zeros at {}: storage {}", line_of(made), a.id())
    );

    let sliced = here();
    let view = look(&a, "slice", sliced, Role::View);
    a.record_write("add_", sliced);
    let p = Provenance::of(&view);
    assert_eq!(p.how, How::View);
    let text = format!(
        "view by slice at {0}: of storage {1}, made by zeros at {2}, last written by add_ at {0}",
        line_of(sliced),
        a.id(),
        line_of(made)
    );
    assert_eq!(p.to_string(), text);

    let copied = here();
    let b = Storage::allocate(16, &Device::cpu(), "reshape", copied).unwrap();
    copy(CopyReason::Reshape, "reshape", copied, 16, &a, &b);
    // What reshape gives is a view of its copy; a view of that is a view.
    let p = Provenance::of(&look(&b, "reshape", copied, Role::View));
    assert_eq!(
        (p.how, p.copy),
        (How::Copy, Some((CopyReason::Reshape, a.id())))
    );
    assert_eq!(p.hint(), Some(CopyReason::Reshape.hint()));
    assert_eq!(
        Provenance::of(&look(&b, "t", sliced, Role::View)).how,
        How::View
    );
    let json: serde_json::Value = serde_json::from_str(&p.to_json().unwrap()).unwrap();
    assert_eq!(
        (&json["how"], &json["reason"]),
        (&"copy".into(), &"reshape".into())
    );
    assert_eq!(json["copied_from"], a.id());
    // What is copied into a storage in use does not make it a copy.
    copy(CopyReason::Assigned, "copy_", copied, 16, &b, &a);
    assert_eq!(a.copied_from(), None);
}

#[test]
fn a_budget_is_kept_or_told() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let kept = storage(1 << 20);
    // One after the other, they need no more than the largest.
    let budget = Budget::begin(3 << 20).unwrap();
    (0..5).for_each(|_| drop(storage(3 << 20)));
    assert!(budget.end().unwrap().is_none());
    // What another thread allocates is not ours.
    let budget = Budget::begin(0).unwrap();
    std::thread::spawn(|| drop(storage(1 << 20)))
        .join()
        .unwrap();
    assert!(budget.end().unwrap().is_none());

    let budget = Budget::begin(3 << 20).unwrap();
    let line = line!() + 1;
    let two = [(); 2].map(|()| storage(2 << 20));
    drop(storage(1000));
    drop(kept);
    drop(two);
    let over = budget
        .end()
        .unwrap()
        .expect("4 MiB and a block of 1,024 bytes at once");
    assert_eq!((over.budget, over.peak), (3 << 20, (4 << 20) + 1024));
    let counts: Vec<_> = over.lines.iter().map(|l| (l.1, l.2)).collect();
    assert_eq!(counts, [(2, 4 << 20), (1, 1024)]);
    assert!(
        over.lines[0]
            .0
            .contains(&format!("empty at {}:{line}:", file!())),
        "{over}"
    );
    assert!(
        over.to_string()
            .starts_with("4.00 MiB allocated at the peak, 1.00 MiB beyond the budget of 3 MiB:\n"),
        "{over}"
    );
}
