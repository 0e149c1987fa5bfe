//! Timelines in other tools' formats, read back by readers of their own.

mod formats;

use formats::{pickle, protobuf};
use osteon_memory::copies::{self, CopyReason};
use osteon_memory::timeline::Timeline;
use osteon_memory::{Role, Storage, Viewer, empty_cache, record, scope};
use osteon_spec::{DType, Device, Layout};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::panic::Location;
use std::path::Path;
use std::sync::Mutex;

static ALONE: Mutex<()> = Mutex::new(());

#[track_caller]
fn storage(nbytes: usize, op: &'static str) -> Storage {
    Storage::allocate(nbytes, &Device::cpu(), op, Location::caller()).unwrap()
}

/// A recording of a bit of everything, with what is known of it: the storage that stays.
fn recorded() -> (Timeline, u64) {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let before = storage(100_000, "zeros");
    before.set_label("weights");
    let recording = record().unwrap();
    let site = Location::caller();
    let kept = {
        let _in = scope("model.layer");
        storage(3000, "empty")
    };
    let layout = Layout::contiguous(&[10, 5]).unwrap();
    let side = |s| (s, DType::F32, &layout);
    let shown = Viewer::register(
        kept.clone(),
        layout.clone(),
        DType::F32,
        "empty",
        site,
        Role::Tensor,
    );
    let shown = shown.unwrap();
    shown.set_label("hidden");
    copies::record(
        copies::begin(200),
        CopyReason::Cast,
        "to",
        site,
        side(&before),
        side(&kept),
    );
    kept.record_write("add_", site);
    for i in 0..3000 {
        drop(storage(64 << (i % 17), "randn"));
    }
    drop(storage(70 << 20, "cat"));
    empty_cache(&Device::cpu());
    assert!(Storage::allocate(usize::MAX / 4, &Device::cpu(), "ones", site).is_err());
    let timeline = recording.stop().unwrap();
    (timeline, kept.id())
}

/// What a writer puts into a file.
fn file_of(write: impl FnOnce(&Path) -> osteon_spec::Result<()>) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export");
    write(&path).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn a_chrome_trace() {
    let (timeline, kept) = recorded();
    let file = file_of(|path| timeline.write_chrome_trace(path));
    let trace: Value = serde_json::from_slice(&file).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).collect::<Vec<_>>();

    // Counters: the last of the CPU are the figures at the end; the highest are the peak's.
    let counters: Vec<_> = of("C")
        .into_iter()
        .filter(|e| e["name"] == "memory of cpu")
        .collect();
    let last = counters.last().unwrap();
    let (end, peak) = (timeline.devices[0].end, timeline.devices[0].peak);
    assert_eq!(last["args"]["allocated"], end.allocated);
    assert_eq!(last["args"]["requested"], end.requested);
    assert_eq!(last["args"]["reserved"], end.reserved);
    let most = counters
        .iter()
        .filter_map(|e| e["args"]["allocated"].as_u64())
        .max();
    assert_eq!(most, Some(peak.allocated));
    let times: Vec<_> = counters.iter().map(|e| e["ts"].as_f64().unwrap()).collect();
    assert!(times.is_sorted());

    // A span of each stay begins and ends once.
    let mut open = HashMap::new();
    for e in events.iter().filter(|e| e["cat"] == "storage") {
        match e["ph"].as_str() {
            Some("b") => assert!(open.insert(e["id"].as_u64(), e["ts"].as_f64()).is_none()),
            Some("e") => assert!(open.remove(&e["id"].as_u64()).unwrap() <= e["ts"].as_f64()),
            other => panic!("{other:?}"),
        }
    }
    assert!(open.is_empty());
    let hidden = of("b")
        .into_iter()
        .find(|e| e["args"]["storage"] == kept)
        .unwrap();
    assert_eq!(
        (&hidden["name"], &hidden["args"]["op"]),
        (&"hidden".into(), &"empty".into())
    );
    assert_eq!(
        (&hidden["args"]["bytes"], &hidden["args"]["scope"]),
        (&3000.into(), &"model.layer".into())
    );

    // Scopes are nested; copies last; a failure is a line across all.
    assert_eq!((of("B").len(), of("E").len()), (1, 1));
    let copies = of("X");
    assert_eq!(copies.len(), timeline.copies.len());
    assert_eq!(
        (&copies[0]["name"], &copies[0]["args"]["reason"]),
        (&"to".into(), &"cast".into())
    );
    let duration = timeline.copies[0].duration as f64 / 1e3;
    assert!((copies[0]["dur"].as_f64().unwrap() - duration).abs() < 1e-9);
    assert!(
        of("i")
            .iter()
            .any(|e| e["s"] == "p" && e["args"]["kind"] == "oom")
    );
}

/// The fields of `profile.proto`, read without its definition.
#[test]
fn a_pprof_profile() {
    let (timeline, _) = recorded();
    let file = file_of(|path| timeline.write_pprof(path));
    let profile = protobuf::read(&protobuf::gunzip(&file));
    let texts: Vec<String> = profile.texts(6);
    let text = |n: u64| texts[n as usize].as_str();
    assert_eq!(texts[0], "");
    let types: Vec<_> = profile
        .messages(1)
        .iter()
        .map(|t| (text(t.number(1)).to_owned(), text(t.number(2)).to_owned()))
        .collect();
    let names: Vec<_> = types.iter().map(|t| t.0.as_str()).collect();
    assert_eq!(
        names,
        [
            "alloc_objects",
            "alloc_space",
            "peak_objects",
            "peak_space",
            "inuse_objects",
            "inuse_space"
        ]
    );
    assert!(types.iter().all(|t| t.1
        == if t.0.ends_with("space") {
            "bytes"
        } else {
            "count"
        }));
    assert_eq!(text(profile.number(14)), "peak_space");
    assert_eq!(profile.number(10), timeline.duration);

    let functions: BTreeMap<u64, (String, String)> = profile
        .messages(5)
        .iter()
        .map(|f| {
            (
                f.number(1),
                (text(f.number(2)).to_owned(), text(f.number(4)).to_owned()),
            )
        })
        .collect();
    let places: BTreeMap<u64, (u64, u64)> = profile
        .messages(4)
        .iter()
        .map(|p| {
            let line = &p.messages(4)[0];
            (p.number(1), (line.number(1), line.number(2)))
        })
        .collect();
    let mut sums = [0; 6];
    let mut seen_layer = false;
    for sample in profile.messages(2) {
        let (stack, values) = (sample.numbers(1), sample.numbers(2));
        sums = std::array::from_fn(|i| sums[i] + values[i]);
        let names: Vec<_> = stack
            .iter()
            .map(|p| functions[&places[p].0].0.as_str())
            .collect();
        if names[0] == "empty" {
            seen_layer = true;
            assert_eq!(names, ["empty", "layer", "model"]);
            let (function, line) = places[&stack[0]];
            assert!(functions[&function].1.ends_with("exports.rs") && line > 0);
            assert_eq!(values[..2], [1, 3072]);
            let label = &sample.messages(3)[0];
            assert_eq!(
                (text(label.number(1)), text(label.number(2))),
                ("label", "hidden")
            );
        }
    }
    assert!(seen_layer);
    let all = |f: &dyn Fn(&osteon_memory::timeline::Stay) -> bool| {
        let stays = timeline.storages.iter().filter(|s| f(s));
        stays.fold((0, 0), |(n, bytes), s| (n + 1, bytes + s.size))
    };
    assert_eq!((sums[0], sums[1]), all(&|_| true));
    assert_eq!(
        sums[3],
        timeline
            .devices
            .iter()
            .map(|d| d.peak.allocated)
            .sum::<u64>()
    );
    assert_eq!((sums[4], sums[5]), all(&|s| s.to.is_none()));
    assert_eq!(
        sums[5],
        timeline
            .devices
            .iter()
            .map(|d| d.end.allocated)
            .sum::<u64>()
    );
}

/// The events, replayed: every block lies in mapped memory that no other has, and what is left is what the segments say.
#[test]
fn a_pytorch_snapshot() {
    let (timeline, kept) = recorded();
    let file = file_of(|path| timeline.write_pytorch_snapshot(path));
    let snapshot = pickle::read(&file);
    let number = |v: &Value, key: &str| v[key].as_u64().unwrap_or_else(|| panic!("{key} of {v}"));
    let traces = snapshot["device_traces"].as_array().unwrap();
    assert_eq!(traces.len(), 2);
    let trace = traces[0].as_array().unwrap();
    let (mut mapped, mut live) = (BTreeMap::<u64, u64>::new(), BTreeMap::<u64, u64>::new());
    let (mut requested, mut time, mut annotated, mut failed) = (BTreeMap::new(), 0, 0, 0);
    for e in trace {
        let now = number(e, "time_us");
        assert!(now >= time && e["frames"].is_array() && e["stream"] == 0);
        time = now;
        let size = number(e, "size");
        match e["action"].as_str().unwrap() {
            // Pages of the allocator's granularity, so that pieces can be joined and cut.
            "segment_map" => {
                for page in (number(e, "addr")..number(e, "addr") + size).step_by(2 << 20) {
                    assert!(mapped.insert(page, 2 << 20).is_none());
                }
            }
            "segment_unmap" => {
                let pages = number(e, "addr")..number(e, "addr") + size;
                assert!(
                    live.range(pages.clone()).next().is_none(),
                    "nothing lives there"
                );
                for page in pages.step_by(2 << 20) {
                    assert!(mapped.remove(&page).is_some());
                }
            }
            "alloc" => {
                let at = number(e, "addr");
                let pages = (at >> 21)..=((at + size - 1) >> 21);
                assert!(
                    pages.clone().all(|p| mapped.contains_key(&(p << 21))),
                    "{e}"
                );
                assert!(live.range(at..at + size).next().is_none());
                live.insert(at, size);
                requested.insert(at, size);
                if e["user_metadata"]["storage"] == kept {
                    let about = &e["user_metadata"];
                    assert_eq!(
                        (&about["tensor"], &about["dtype"]),
                        (&"hidden".into(), &"float32".into())
                    );
                    assert_eq!(about["shape"], serde_json::json!([10, 5]));
                    assert_eq!(e["frames"][0]["name"], "empty");
                    assert!(
                        e["frames"][0]["filename"]
                            .as_str()
                            .unwrap()
                            .ends_with("exports.rs")
                    );
                    assert_eq!(e["frames"][1]["name"], "model.layer");
                }
            }
            "free_requested" => assert_eq!(live.remove(&number(e, "addr")), Some(size)),
            "free_completed" => assert_eq!(requested.remove(&number(e, "addr")), Some(size)),
            "annotate" => annotated += 1,
            "oom" => failed += 1,
            other => panic!("{other}"),
        }
    }
    assert_eq!((annotated, failed), (1, 1));
    let mut held = 0;
    let mut last = (0, 0);
    for segment in snapshot["segments"].as_array().unwrap() {
        let (device, address) = (number(segment, "device"), number(segment, "address"));
        assert!((device, address) >= last, "in order");
        last = (device, address);
        let (mut at, mut allocated) = (address, 0);
        for block in segment["blocks"].as_array().unwrap() {
            assert_eq!(number(block, "address"), at, "blocks tile their segment");
            at += number(block, "size");
            if block["state"] == "active_allocated" {
                allocated += number(block, "size");
                if device == 0 {
                    let bytes = number(block, "requested_size");
                    assert_eq!(live.remove(&number(block, "address")), Some(bytes));
                }
            }
        }
        assert_eq!(at, address + number(segment, "total_size"));
        assert_eq!(number(segment, "allocated_size"), allocated);
        assert_eq!(segment["segment_pool_id"], serde_json::json!([0, 0]));
        if device == 0 {
            held += number(segment, "total_size");
        }
    }
    assert!(live.is_empty(), "all that lives is in a segment");
    assert_eq!(held, timeline.devices[0].end.reserved);
    assert_eq!(mapped.values().sum::<u64>(), held);
}
