//! The memory picture: counts against a byte-by-byte twin, and the page as one safe file.

use osteon_memory::picture::{Lang, MAX_RUNS, Picture, Run, StorageEntry, TensorEntry};
use osteon_spec::{DType, Device, Layout};
use proptest::prelude::*;
use std::ops::Range;
use std::path::PathBuf;

/// The bytes of each element of a layout, one range an element: nothing merged, nothing sorted.
fn elements(layout: &Layout, itemsize: u64) -> Vec<Range<u64>> {
    let mut starts = vec![layout.offset() as u64];
    for (&size, &stride) in layout.sizes().iter().zip(layout.strides()) {
        starts = starts.iter().flat_map(|&at| (0..size as u64).map(move |i| at + i * stride as u64)).collect();
    }
    starts.into_iter().map(|at| at * itemsize..(at + 1) * itemsize).collect()
}

fn layout(sizes: &[usize], strides: &[usize], offset: usize) -> Layout {
    Layout::new(sizes.into(), strides.into(), offset).unwrap()
}

/// A tensor named `name`, by the rows that a program would show: op and line.
fn tensor(name: &str, op: &str, line: u32, dtype: DType, layout: &Layout, bytes: Vec<Range<u64>>) -> TensorEntry {
    TensorEntry {
        name: (!name.is_empty()).then(|| name.into()),
        op: Some(op.into()),
        site: Some(format!("src/train.rs:{line}")),
        view: !["zeros", "load", "empty", "cat", "ones"].contains(&op),
        ..TensorEntry::new(dtype, layout, bytes).unwrap()
    }
}

fn storage(id: u64, nbytes: u64, label: Option<&str>, origin: &str, tensors: Vec<TensorEntry>) -> StorageEntry {
    StorageEntry {
        label: label.map(Into::into),
        ..StorageEntry::new(id, nbytes, Device::cpu(), origin, tensors).unwrap()
    }
}

/// A training step as people meet it; the numbers that the tests name are worked out by hand.
fn training_step() -> Picture {
    const MB: u64 = 1 << 20;
    let all = |n: u64| vec![0..n];
    let words = 50_257 * 768 * 4;
    let wte = Layout::contiguous(&[50_257, 768]).unwrap();
    let embedding = storage(
        3,
        words,
        None,
        "mapped file gpt2.safetensors",
        vec![
            tensor("embed.weight", "load", 12, DType::F32, &wte, all(words)),
            tensor("lm_head.weight", "detach", 31, DType::F32, &wte, all(words)),
        ],
    );
    // 10 rows of 65,536, 4,096 bytes each: 40,960 bytes reached of 256 MiB.
    let batch = storage(
        17,
        256 * MB,
        None,
        "zeros at src/data.rs:18",
        vec![tensor("first_rows", "slice", 54, DType::F32, &layout(&[10, 1024], &[1024, 1], 0), vec![0..40_960])],
    );
    let fc = 3072 * 768 * 4;
    let linear = storage(
        5,
        fc,
        None,
        "mapped file gpt2.safetensors",
        vec![
            tensor("h.0.mlp.c_fc.weight", "load", 12, DType::F32, &layout(&[3072, 768], &[768, 1], 0), all(fc)),
            TensorEntry {
                note: Some("saved for backward by matmul at src/train.rs:63".into()),
                ..tensor("", "t", 63, DType::F32, &layout(&[768, 3072], &[1, 768], 0), all(fc))
            },
        ],
    );
    // Keys, values [12 heads, 1024 positions, 64]; a window of 256 positions of each head's keys.
    let (head, half) = (1024 * 64 * 2, 12 * 1024 * 64 * 2);
    let window = (0..12).map(|h| h * head + 512 * 128..h * head + 768 * 128).collect();
    let kv = [1024 * 64, 64, 1];
    let cache = storage(
        23,
        2 * half,
        Some("kv_cache"),
        "empty at src/model.rs:88",
        vec![
            tensor("keys", "select", 90, DType::F16, &layout(&[12, 1024, 64], &kv, 0), vec![0..half]),
            tensor("values", "select", 91, DType::F16, &layout(&[12, 1024, 64], &kv, 12 * 1024 * 64), vec![half..2 * half]),
            tensor("window", "slice", 97, DType::F16, &layout(&[12, 256, 64], &kv, 512 * 64), window),
        ],
    );
    let mask = storage(
        29,
        1,
        None,
        "ones at src/model.rs:71",
        vec![
            tensor("", "ones", 71, DType::Bool, &Layout::contiguous(&[1]).unwrap(), vec![0..1]),
            tensor("causal_mask", "expand", 72, DType::Bool, &layout(&[1024, 1024], &[0, 0], 0), vec![0..1]),
        ],
    );
    let row = 256 * 4;
    let pair = storage(
        31,
        10_000 * row,
        Some("replay"),
        "empty at src/buffer.rs:9",
        vec![
            tensor("warmup", "narrow", 77, DType::F32, &layout(&[6000, 256], &[256, 1], 0), vec![0..6000 * row]),
            tensor("recent", "narrow", 78, DType::F32, &layout(&[3500, 256], &[256, 1], 4500 * 256), vec![4500 * row..8000 * row]),
        ],
    );
    // A fused projection of which only q and v are kept: 4,096 rows each, finer than a screen.
    let columns = |from: u64| (0..4096).map(|r| (r * 2304 + from) * 2..(r * 2304 + from + 768) * 2).collect::<Vec<_>>();
    let fused = storage(
        37,
        4096 * 2304 * 2,
        None,
        "addmm at src/model.rs:84",
        vec![
            tensor("q", "slice", 85, DType::BF16, &layout(&[4096, 768], &[2304, 1], 0), columns(0)),
            tensor("v", "slice", 86, DType::BF16, &layout(&[4096, 768], &[2304, 1], 1536), columns(1536)),
        ],
    );
    let mut picture =
        Picture::new("Memory map", "examples/train.rs, after step 120", vec![embedding, batch, linear, cache, mask, pair, fused]).unwrap();
    picture.totals.allocated = Some(picture.totals.requested + 4 * 511);
    picture.totals.reserved = Some(512 * MB);
    picture
}

/// Thousands of tensors: a checkpoint's worth of weights, one storage cut into 12,000 rows, 5,000 losses.
fn huge() -> Picture {
    let one = Layout::contiguous(&[1]).unwrap();
    let mut storages: Vec<_> = (0..5000)
        .map(|i| {
            let kept = tensor("", "mul", 40, DType::F32, &one, vec![0..4]);
            storage(i, 4, None, "mul at src/train.rs:40", vec![kept])
        })
        .collect();
    for (i, (layer, part)) in (0..600).flat_map(|l| ["q_proj", "k_proj", "v_proj", "o_proj", "norm"].map(|p| (l, p))).enumerate() {
        let n = if part == "norm" { 4096 } else { 4096 * 4096 };
        let name = format!("model.layers.{layer}.{part}.weight");
        let reached = if i % 97 == 0 { n } else { 2 * n };
        let weight = tensor(&name, "load", 9, DType::BF16, &Layout::contiguous(&[n as usize]).unwrap(), vec![0..reached]);
        storages.push(storage(10_000 + i as u64, 2 * n, None, "mapped file model.safetensors", vec![weight]));
    }
    let rows = (0..12_000).map(|i| tensor(&format!("row.{i}"), "select", 21, DType::F32, &layout(&[64], &[1], i * 65), vec![i as u64 * 260..i as u64 * 260 + 256]));
    storages.push(storage(99_999, 12_000 * 260, Some("dataset"), "empty at src/data.rs:20", rows.collect()));
    Picture::new("Memory map", "20,000 tensors", storages).unwrap()
}

const HOSTILE: &str = "</script><img src=x onerror=\"document.title='owned'\"><!--<script>&amp;\u{2028}\u{2029}\0\u{202e}gnp.exe\n\"'`${1}";

/// Names that try to leave the script element, turn the text around or flood the page.
fn hostile() -> Picture {
    let long = "𝕃ong̈ ".repeat(2000);
    let names = [HOSTILE, "שלום.weight", "مرحبا (1, 2)", &long, "", "__proto__", "constructor", " \t "];
    let one = Layout::contiguous(&[64; 5]).unwrap();
    let storages = names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let t = TensorEntry { note: Some(name.to_string()), ..tensor(name, name, 1, DType::F64, &one, vec![0..8, 4096..1 << 13]) };
            storage(i as u64, 1 << 30, Some(name), name, vec![t.clone(), t])
        })
        .chain([storage(77, 0, None, "empty", vec![]), storage(78, 1 << 40, None, "empty", vec![])])
        .collect();
    Picture::new(HOSTILE, HOSTILE, storages).unwrap()
}

/// The JSON that the page holds.
fn data_of(html: &str) -> &str {
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

#[test]
fn counts_the_training_step() {
    let picture = training_step();
    let by_id = |id| picture.storages.iter().find(|s| s.id == id).unwrap();
    assert_eq!(by_id(3).runs, [Run { start: 0, end: 154_389_504, tensors: 2, reached: 154_389_504 }]);
    assert_eq!(by_id(17).reached_bytes, 40_960);
    let starts: Vec<[u64; 4]> = by_id(31).runs.iter().map(|&r| r.into()).collect();
    assert_eq!(
        starts,
        [[0, 4_608_000, 1, 4_608_000], [4_608_000, 6_144_000, 2, 1_536_000], [6_144_000, 8_192_000, 1, 2_048_000]]
    );
    // 12 windows shared, 12 stretches before them, the rest of the keys after the last one and the values: 25 runs.
    assert_eq!(by_id(23).runs.len(), 25);
    assert!(by_id(23).exact);
    // q and v: 2 × 4,096 rows × 768 × 2 bytes.
    assert_eq!(by_id(37).reached_bytes, 12_582_912);
    assert!(!by_id(37).exact && by_id(37).runs.len() <= MAX_RUNS);
    assert_eq!(by_id(37).runs.iter().map(|r| r.reached).sum::<u64>(), 12_582_912);
    let totals = &picture.totals;
    assert_eq!((totals.storages, totals.tensors), (7, 14));
    assert_eq!(totals.requested, 154_389_504 + 268_435_456 + 9_437_184 + 3_145_728 + 1 + 10_240_000 + 18_874_368);
    assert_eq!(totals.reached, 154_389_504 + 40_960 + 9_437_184 + 3_145_728 + 1 + 8_192_000 + 12_582_912);
    assert_eq!(totals.unreached, totals.requested - totals.reached);
}

#[test]
fn refuses_what_does_not_fit() {
    let one = Layout::contiguous(&[1]).unwrap();
    #[allow(clippy::reversed_empty_ranges)]
    let e = TensorEntry::new(DType::F32, &one, vec![8..4]).unwrap_err();
    assert_eq!(e.to_string(), "the byte range 8..4 ends before it starts");
    let t = tensor("x", "slice", 1, DType::F32, &one, vec![96..104]);
    let e = StorageEntry::new(7, 100, Device::cpu(), "empty", vec![t]).unwrap_err();
    assert_eq!(e.to_string(), "tensor x reaches byte 103 of storage #7, which has 100");
    let vast = |id| storage(id, u64::MAX, None, "meta", vec![]);
    assert!(Picture::new("", "", vec![vast(1), vast(2)]).is_err());
}

proptest! {
    /// Against a count of every single byte, small enough that nothing is coarse.
    #[test]
    fn runs_equal_a_byte_by_byte_count(
        layouts in prop::collection::vec((prop::collection::vec((0usize..4, 0usize..7), 0..4), 0usize..9), 0..6),
        itemsize in prop::sample::select(vec![1u64, 2, 4, 8]),
    ) {
        let nbytes = 100 * itemsize;
        let mut twin = vec![0u64; nbytes as usize];
        let mut tensors = Vec::new();
        for (dims, offset) in layouts {
            let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            let l = layout(&sizes, &strides, offset);
            let bytes = elements(&l, itemsize);
            let mut own = vec![0u64; nbytes as usize];
            for b in bytes.iter().cloned().flatten() {
                own[b as usize] = 1;
            }
            twin.iter_mut().zip(&own).for_each(|(sum, one)| *sum += one);
            let t = TensorEntry::new(DType::U8, &l, bytes).unwrap();
            prop_assert_eq!(t.reached_bytes, own.iter().sum::<u64>());
            tensors.push(t);
        }
        let s = StorageEntry::new(1, nbytes, Device::cpu(), "", tensors).unwrap();
        let mut painted = vec![0u64; nbytes as usize];
        for run in &s.runs {
            prop_assert!(run.start < run.end && run.reached == run.end - run.start);
            painted[run.start as usize..run.end as usize].fill(run.tensors);
        }
        prop_assert!(s.exact);
        prop_assert!(s.runs.windows(2).all(|w| w[0].end < w[1].start || w[0].tensors != w[1].tensors));
        prop_assert_eq!(&painted, &twin);
        prop_assert_eq!(s.reached_bytes, twin.iter().filter(|&&n| n > 0).count() as u64);
    }

    /// Coarse runs lose places, never bytes, and stay within the storage and the limit.
    #[test]
    fn coarse_runs_keep_the_sums(lengths in prop::collection::vec((1u64..400, 0u64..40), 401..2000), shared in any::<bool>()) {
        let (mut at, mut bytes) = (0, Vec::new());
        for (long, gap) in lengths {
            bytes.push(at..at + long);
            at += long + gap + 1;
        }
        let t = TensorEntry::new(DType::U8, &Layout::contiguous(&[1]).unwrap(), bytes).unwrap();
        let reached = t.reached_bytes;
        let s = StorageEntry::new(1, at, Device::cpu(), "", if shared { vec![t.clone(), t] } else { vec![t] }).unwrap();
        prop_assert!(!s.exact);
        for runs in [&s.runs, &s.tensors[0].runs] {
            prop_assert!(runs.len() <= MAX_RUNS);
            prop_assert_eq!(runs.iter().map(|r| r.reached).sum::<u64>(), reached);
            prop_assert!(runs.iter().all(|r| r.reached <= r.end - r.start));
            prop_assert!(runs.windows(2).all(|w| w[0].end <= w[1].start) && runs.last().unwrap().end <= at);
        }
        prop_assert!(s.runs.iter().all(|r| r.tensors == 1 + u64::from(shared)));
    }
}

#[test]
fn thousands_of_strided_tensors_stay_small() {
    let t = TensorEntry::new(DType::U8, &Layout::contiguous(&[1]).unwrap(), (0..300).map(|i| 2 * i..2 * i + 1).collect()).unwrap();
    let s = StorageEntry::new(1, 600, Device::cpu(), "", vec![t; 20_000]).unwrap();
    let picture = Picture::new("", "", vec![s]).unwrap();
    assert!(picture.storages[0].tensors.iter().all(|t| t.runs.len() <= 20 && t.reached_bytes == 300));
    assert!(picture.to_json().unwrap().len() < 20_000_000);
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    for picture in [training_step(), hostile()] {
        let html = picture.to_html().unwrap();
        assert_eq!(html.matches("://").count(), 1);
        assert!(html.contains("\"http://www.w3.org/2000/svg\""));
        for loader in [" src=", " href=", "url(", "@import", "fetch(", "XMLHttpRequest", "innerHTML"] {
            let code = html.replace(data_of(&html), "");
            let (before, after) = code.split_once("<title>").unwrap();
            let code = format!("{before}{}", after.split_once("</title>").unwrap().1);
            assert!(!code.contains(loader), "{loader}");
        }
        assert!(!html.contains("%%"));
    }
}

#[test]
fn the_data_parses_back_equal() {
    for picture in [training_step(), hostile().lang(Lang::Zh), huge()] {
        let html = picture.to_html().unwrap();
        assert_eq!(serde_json::from_str::<Picture>(data_of(&html)).unwrap(), picture);
        assert_eq!(serde_json::from_str::<Picture>(&picture.to_json().unwrap()).unwrap(), picture);
    }
}

#[test]
fn hostile_names_stay_text() {
    let html = hostile().to_html().unwrap();
    let calm = training_step().to_html().unwrap();
    for tag in ["<script", "</script", "<img", "<!--"] {
        assert_eq!(html.matches(tag).count(), calm.matches(tag).count(), "{tag}");
    }
    assert!(!data_of(&html).contains(['<', '>', '&', '\u{2028}', '\u{2029}', '\0']));
    assert!(html.contains("<title>&lt;/script&gt;&lt;img src=x"));
}

#[test]
fn writing_replaces_the_file_or_leaves_it() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("picture-atomic");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("map.html");
    std::fs::write(&path, "earlier").unwrap();
    training_step().write_html(&path).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), training_step().to_html().unwrap());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    let e = training_step().write_html(dir.join("absent/map.html")).unwrap_err();
    assert!(e.is_io() && e.to_string().contains("absent/map.html"), "{e}");
    // A folder is in the way: the part is cleared away again.
    std::fs::create_dir(dir.join("folder")).unwrap();
    assert!(training_step().write_html(dir.join("folder")).is_err());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
}

/// The pages that `tests/browser/check.mjs` opens: `target/tmp/picture/*.html`.
#[test]
fn pages_for_the_browser() {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("picture");
    std::fs::create_dir_all(&dir).unwrap();
    let none = Picture::new("Memory map", "nothing yet", vec![]).unwrap();
    let pages = [("train", training_step()), ("train-zh", training_step().lang(Lang::Zh)), ("huge", huge()), ("hostile", hostile()), ("none", none)];
    for (name, picture) in pages {
        let path = dir.join(name).with_extension("html");
        picture.write_html(&path).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > 10_000);
    }
}
