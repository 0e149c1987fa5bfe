//! Timelines of real programs: what is recorded, against the allocator's own figures.

use osteon_memory::copies::{self, CopyReason};
use osteon_memory::timeline::{Figures, SegmentSpan, Stay, Text, Timeline};
use osteon_memory::{Role, Storage, Viewer, empty_cache, map, record, scope, set_limit, stats};
use osteon_spec::{DType, Device, Layout};
use proptest::prelude::*;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard};
use std::thread;

/// Figures are the process's: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

#[track_caller]
fn storage(nbytes: usize) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), "test", Location::caller()).unwrap()
}

#[track_caller]
fn view(of: &Storage, sizes: &[usize], role: Role) -> Viewer {
    let layout = Layout::contiguous(sizes).unwrap();
    Viewer::register(
        of.clone(),
        layout,
        DType::F32,
        "look",
        Location::caller(),
        role,
    )
    .unwrap()
}

fn figures() -> Figures {
    let stats = stats(&Device::cpu());
    Figures {
        time: None,
        allocated: stats.allocated_bytes.all.current,
        requested: stats.requested_bytes.all.current,
        reserved: stats.reserved_bytes.all.current,
    }
}

fn stay(timeline: &Timeline, id: u64) -> &Stay {
    let mut of_it = timeline.storages.iter().filter(|s| s.id == id);
    let stay = of_it.next().unwrap();
    assert!(of_it.next().is_none(), "storage {id} is listed once");
    stay
}

/// What the stays and segments of the CPU add up to at a moment, after what happened then.
fn sums(timeline: &Timeline, at: u64) -> (u64, u64, u64) {
    let is_there = |from, to: Option<u64>| from <= at && to.is_none_or(|to| at < to);
    let stays = || {
        timeline
            .storages
            .iter()
            .filter(|s| s.device == 0 && is_there(s.from, s.to))
    };
    let segments = timeline
        .segments
        .iter()
        .filter(|s| s.device == 0 && is_there(s.from, s.to));
    (
        stays().map(|s| s.size).sum(),
        stays().filter(|s| s.size > 0).map(|s| s.bytes).sum(),
        segments.map(|s| s.size).sum(),
    )
}

/// What holds for every recording.
fn check(timeline: &Timeline) {
    assert_eq!(timeline.lost, 0);
    let cpu = &timeline.devices[0];
    let of = |f: &Figures| (f.allocated, f.requested, f.reserved);
    assert_eq!(sums(timeline, u64::MAX), of(&cpu.end));
    let before = timeline
        .storages
        .iter()
        .filter(|s| s.before && s.device == 0);
    assert_eq!(before.map(|s| s.size).sum::<u64>(), cpu.start.allocated);
    // Every block lies in one segment for all of its time, unless that changes its shape; no two blocks of one time
    // overlap.
    for s in timeline.storages.iter().filter(|s| s.size > 0) {
        let holds = |g: &&SegmentSpan| {
            g.device == s.device
                && g.address <= s.address
                && s.address + s.size <= g.address + g.size
                && g.from <= s.from
                && g.to.is_none_or(|to| s.from <= to)
        };
        assert!(timeline.segments.iter().any(|g| holds(&g)), "{s:?}");
    }
    let mut blocks: Vec<_> = timeline.storages.iter().filter(|s| s.size > 0).collect();
    blocks.sort_by_key(|s| (s.device, s.address));
    for (i, a) in blocks.iter().enumerate() {
        for b in &blocks[i + 1..] {
            if b.device != a.device || b.address >= a.address + a.size {
                break;
            }
            let apart = |x: &Stay, y: &Stay| x.to.is_some_and(|to| to <= y.from);
            assert!(apart(a, b) || apart(b, a), "{a:?} {b:?}");
        }
    }
    // JSON keeps all of it.
    let mut json = Vec::new();
    timeline.write_json(&mut json).unwrap();
    assert_eq!(Timeline::read_json(&json[..]).unwrap(), *timeline);
}

#[test]
fn one_of_everything() {
    let _alone = alone();
    let old = storage(1000);
    old.set_label("weights");
    let old_view = view(&old, &[10], Role::Tensor);
    let recording = record().unwrap();
    let made = storage(3 << 20);
    let line = line!() - 1;
    let layer = scope("layer");
    let tensor = view(&made, &[5, 2], Role::Tensor);
    let part = view(&made, &[2, 5], Role::View);
    part.set_label("part");
    drop(layer);
    let site = Location::caller();
    let layout = Layout::contiguous(&[10]).unwrap();
    let side = |s| (s, DType::F32, &layout);
    copies::record(
        copies::begin(40),
        CopyReason::Cast,
        "to",
        site,
        side(&old),
        side(&made),
    );
    made.record_write("add_", site);
    drop((tensor, part));
    made.grow(4 << 20, "resize_", site).unwrap();
    set_limit(&Device::meta(), Some(1 << 20));
    assert!(Storage::allocate(1 << 30, &Device::meta(), "zeros", site).is_err());
    set_limit(&Device::meta(), None);
    let expected = figures();
    drop(old_view);
    let timeline = recording.stop().unwrap();
    check(&timeline);
    let t = |text: Text| timeline.text(text);

    assert_eq!(timeline.devices[0].end, expected);
    let weights = stay(&timeline, old.id());
    assert_eq!((weights.before, weights.from, weights.to), (true, 0, None));
    assert_eq!(
        (t(weights.label), weights.bytes, weights.size),
        ("weights", 1000, 1024)
    );
    let stays: Vec<_> = timeline
        .storages
        .iter()
        .filter(|s| s.id == made.id())
        .collect();
    assert_eq!(stays.len(), 2, "it moved once");
    assert_eq!((stays[0].bytes, stays[1].bytes), (3 << 20, 4 << 20));
    assert!(stays[0].to.unwrap() <= stays[1].from && stays[1].to.is_none());
    assert_eq!((t(stays[0].op), t(stays[1].op)), ("test", "resize_"));
    assert!(
        t(stays[0].site).ends_with(&format!("recording.rs:{line}:16")),
        "{}",
        t(stays[0].site)
    );
    assert_eq!((t(stays[0].label), t(stays[1].label)), ("part", "part"));
    assert_eq!((stays[0].version, stays[1].version), (1, 1));

    let views: Vec<_> = timeline
        .views
        .iter()
        .filter(|v| v.storage == made.id())
        .collect();
    assert_eq!(views.len(), 2);
    let part = views.iter().find(|v| v.view).unwrap();
    assert_eq!(
        (&part.shape[..], &part.stride[..], part.offset),
        (&[2, 5][..], &[5, 1][..], 0)
    );
    assert_eq!(
        (t(part.op), t(part.dtype), t(part.scope)),
        ("look", "float32", "layer")
    );
    assert_eq!(t(part.label), "part");
    assert!(part.to.unwrap() >= part.from);
    let gone = timeline
        .views
        .iter()
        .find(|v| v.storage == old.id())
        .unwrap();
    assert!(gone.before && gone.to.is_some());

    let copies: Vec<_> = timeline
        .copies
        .iter()
        .map(|c| (t(c.reason), t(c.op), c.bytes, c.from, c.to))
        .collect();
    assert_eq!(
        copies,
        [
            ("cast", "to", 40, old.id(), made.id()),
            ("resize", "resize_", 3 << 20, made.id(), made.id()),
        ]
    );
    let writes: Vec<_> = timeline
        .writes
        .iter()
        .map(|w| (t(w.op), w.storage))
        .collect();
    assert_eq!(writes, [("add_", made.id())]);
    let marks: Vec<_> = timeline
        .marks
        .iter()
        .map(|m| (t(m.kind), t(m.text), m.value))
        .collect();
    assert_eq!(
        marks,
        [
            ("scope", "layer", None),
            ("label", "part", Some(made.id())),
            ("scope_end", "layer", None),
            ("limit", "", Some(1 << 20)),
            ("oom", &*format!("zeros at {site}"), Some(1 << 30)),
            ("limit", "", None),
        ]
    );
}

/// Recordings that overlap each hold their own time.
#[test]
fn recordings_side_by_side() {
    let _alone = alone();
    let first = record().unwrap();
    let a = storage(100);
    let second = record().unwrap();
    a.set_label("a");
    let b = storage(200);
    let c = storage(300);
    drop(a.clone());
    let (a_id, c_id) = (a.id(), c.id());
    drop(a);
    let first = first.stop().unwrap();
    drop(c);
    let second = second.stop().unwrap();
    check(&first);
    check(&second);
    assert!(!stay(&first, a_id).before && stay(&second, a_id).before);
    assert!(stay(&first, a_id).to.is_some() && stay(&second, a_id).to.is_some());
    assert!(!stay(&second, b.id()).before);
    assert!(stay(&first, c_id).to.is_none() && stay(&second, c_id).to.is_some());
    assert_eq!(second.text(stay(&second, a_id).label), "a");
    let labels = |t: &Timeline| t.marks.iter().filter(|m| t.text(m.kind) == "label").count();
    assert_eq!((labels(&first), labels(&second)), (1, 1));
}

/// Nothing of a time when none ran is in the next one, and an abandoned one ends.
#[test]
fn a_recording_that_is_dropped_ends() {
    let _alone = alone();
    drop(record().unwrap());
    let unseen = storage(64);
    let unseen_id = unseen.id();
    drop(unseen);
    let timeline = record().unwrap().stop().unwrap();
    check(&timeline);
    assert!(
        timeline
            .storages
            .iter()
            .all(|s| s.before && s.id != unseen_id)
    );
    assert_eq!(
        (timeline.events, timeline.views.iter().all(|v| v.before)),
        (0, true)
    );
}

/// Four threads; the spool is longer than its buffer many times over.
#[test]
fn many_threads_and_a_long_time() {
    let _alone = alone();
    let recording = record().unwrap();
    const EACH: usize = 5_000;
    thread::scope(|s| {
        for t in 0..4 {
            s.spawn(move || {
                let mut kept = Vec::new();
                for i in 0..EACH {
                    let made = storage(64 << ((i * 7 + t) % 12));
                    let looked = view(&made, &[4], Role::Tensor);
                    if i % 5 == 0 {
                        kept.push((made, looked));
                    }
                    if kept.len() > 50 {
                        kept.clear();
                    }
                }
            });
        }
    });
    let timeline = recording.stop().unwrap();
    check(&timeline);
    let made = timeline.storages.iter().filter(|s| !s.before).count();
    assert_eq!((made, timeline.events), (4 * EACH, 16 * EACH as u64));
    assert!(timeline.storages.iter().all(|s| s.before || s.to.is_some()));
    let views = timeline.views.iter().filter(|v| !v.before).count();
    assert_eq!(views, 4 * EACH);
    let mut threads: Vec<_> = timeline
        .storages
        .iter()
        .filter(|s| !s.before)
        .map(|s| s.thread)
        .collect();
    threads.sort();
    threads.dedup();
    assert_eq!(threads.len(), 4);
}

#[derive(Clone, Debug)]
enum Step {
    Make(usize),
    Drop(usize),
    View(usize),
    EmptyCache,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..24u32, 0..100usize).prop_map(|(log, more)| Step::Make((1 << log) + more)),
        3 => (0..64usize).prop_map(Step::Drop),
        2 => (0..64usize).prop_map(Step::View),
        1 => Just(Step::EmptyCache),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After every step the timeline adds up to what the allocator and the map say.
    #[test]
    fn a_timeline_agrees_with_allocator_and_map(steps in steps()) {
        let _alone = alone();
        let recording = record().unwrap();
        let mut live: Vec<(Storage, Vec<Viewer>)> = Vec::new();
        let (mut expected, mut peak) = (Vec::new(), figures());
        for step in steps {
            match step {
                Step::Make(bytes) => live.push((storage(bytes), Vec::new())),
                Step::Drop(i) if !live.is_empty() => drop(live.swap_remove(i % live.len())),
                Step::View(i) if !live.is_empty() => {
                    let at = i % live.len();
                    let (of, views) = &mut live[at];
                    views.push(view(of, &[of.nbytes() / 4], Role::View));
                }
                Step::EmptyCache => _ = empty_cache(&Device::cpu()),
                _ => {}
            }
            let now = figures();
            if now.allocated > peak.allocated {
                peak = now;
            }
            // A mark tells where in the recording we are.
            let mark = live.len();
            drop(scope(&format!("step {mark}")));
            let tensors: usize = map().storages.iter().map(|s| s.tensors.len()).sum();
            expected.push((now, map().storages.len(), tensors));
        }
        let timeline = recording.stop().unwrap();
        check(&timeline);
        let marks = timeline.marks.iter().filter(|m| timeline.text(m.kind) == "scope");
        let times: Vec<u64> = marks.map(|m| m.time).collect();
        prop_assert_eq!(times.len(), expected.len());
        for (at, (now, storages, tensors)) in times.into_iter().zip(expected) {
            prop_assert_eq!(sums(&timeline, at), (now.allocated, now.requested, now.reserved));
            let there = |from: u64, to: Option<u64>| from <= at && to.is_none_or(|to| at < to);
            prop_assert_eq!(timeline.storages.iter().filter(|s| there(s.from, s.to)).count(), storages);
            prop_assert_eq!(timeline.views.iter().filter(|v| there(v.from, v.to)).count(), tensors);
        }
        prop_assert_eq!(timeline.devices[0].peak.allocated, peak.allocated);
        prop_assert_eq!(timeline.devices[0].peak.requested, peak.requested);
    }
}
