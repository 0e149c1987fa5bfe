//! The memory picture: counts against a byte-by-byte twin, and the page as one safe file.

mod samples;

use osteon_memory::picture::{Lang, MAX_RUNS, Picture, Run, StorageEntry, TensorEntry};
use osteon_spec::{DType, Device, Layout};
use proptest::prelude::*;
use samples::{hostile, huge, layout, storage, tensor, training_step};
use std::path::PathBuf;

/// Whether an element of the layout lies on each of the storage's bytes: element by element.
fn touched(layout: &Layout, itemsize: usize, nbytes: usize) -> Vec<bool> {
    let mut starts = vec![layout.offset()];
    for (&size, &stride) in layout.sizes().iter().zip(layout.strides()) {
        starts = starts
            .iter()
            .flat_map(|&at| (0..size).map(move |i| at + i * stride))
            .collect();
    }
    let mut bytes = vec![false; nbytes];
    for at in starts {
        bytes[at * itemsize..(at + 1) * itemsize].fill(true);
    }
    bytes
}

/// The JSON that the page holds.
fn data_of(html: &str) -> &str {
    let (_, rest) = html
        .split_once("<script type=\"application/json\" id=\"data\">")
        .unwrap();
    rest.split_once("</script>").unwrap().0
}

#[test]
fn counts_the_training_step() {
    let picture = training_step();
    let by_id = |id| picture.storages.iter().find(|s| s.id == id).unwrap();
    assert_eq!(
        by_id(3).runs,
        [Run {
            start: 0,
            end: 154_389_504,
            tensors: 2,
            reached: 154_389_504
        }]
    );
    assert_eq!(by_id(17).reached_bytes, 40_960);
    let starts: Vec<[u64; 4]> = by_id(31).runs.iter().map(|&r| r.into()).collect();
    assert_eq!(
        starts,
        [
            [0, 4_608_000, 1, 4_608_000],
            [4_608_000, 6_144_000, 2, 1_536_000],
            [6_144_000, 8_192_000, 1, 2_048_000]
        ]
    );
    // 12 windows shared, 12 stretches before them, the rest of the keys after the last one and the values: 25 runs.
    assert_eq!(by_id(23).runs.len(), 25);
    assert!(by_id(23).exact);
    // q and v: 2 × 4,096 rows × 768 × 2 bytes.
    assert_eq!(by_id(37).reached_bytes, 12_582_912);
    assert!(!by_id(37).exact && by_id(37).runs.len() <= MAX_RUNS);
    assert_eq!(
        by_id(37).runs.iter().map(|r| r.reached).sum::<u64>(),
        12_582_912
    );
    let totals = &picture.totals;
    assert_eq!((totals.storages, totals.tensors), (7, 14));
    assert_eq!(
        totals.requested,
        154_389_504 + 268_435_456 + 9_437_184 + 4_718_592 + 1 + 10_240_000 + 18_874_368
    );
    assert_eq!(
        totals.reached,
        154_389_504 + 40_960 + 9_437_184 + 3_145_728 + 1 + 8_192_000 + 12_582_912
    );
    assert_eq!(totals.unreached, totals.requested - totals.reached);
}

#[test]
fn refuses_what_does_not_fit() {
    let x = tensor("x", "slice", 1, DType::F32, &layout(&[2], &[1], 24));
    let e = StorageEntry::new(7, 100, Device::cpu(), "empty", vec![x.clone()]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "tensor x reaches byte 103 of storage #7, which has 100"
    );
    let odd = TensorEntry {
        dtype: "float7".into(),
        ..x
    };
    let e = StorageEntry::new(7, 100, Device::cpu(), "empty", vec![odd]).unwrap_err();
    assert_eq!(e.to_string(), "no dtype is named \"float7\"");
    let vast = |id| storage(id, u64::MAX, None, "meta", vec![]);
    assert!(Picture::new("", "", vec![vast(1), vast(2)]).is_err());
}

proptest! {
    /// Against a count of every single byte.
    #[test]
    fn runs_equal_a_byte_by_byte_count(
        layouts in prop::collection::vec((prop::collection::vec((0usize..4, 0usize..7), 0..4), 0usize..9), 0..6),
        dtype in prop::sample::select(vec![DType::U8, DType::F16, DType::F32, DType::C128]),
    ) {
        let nbytes = 100 * dtype.size();
        let mut twin = vec![0u64; nbytes];
        let mut tensors = Vec::new();
        for (dims, offset) in layouts {
            let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            let l = layout(&sizes, &strides, offset);
            let own = touched(&l, dtype.size(), nbytes);
            twin.iter_mut().zip(&own).for_each(|(sum, &on)| *sum += u64::from(on));
            let t = TensorEntry::new(dtype, &l).unwrap();
            prop_assert_eq!(t.reached_bytes, own.iter().filter(|&&on| on).count() as u64);
            tensors.push(t);
        }
        let s = StorageEntry::new(1, nbytes as u64, Device::cpu(), "", tensors).unwrap();
        let mut painted = vec![0u64; nbytes];
        for run in &s.runs {
            prop_assert!(run.start < run.end && run.reached == run.end - run.start);
            painted[run.start as usize..run.end as usize].fill(run.tensors);
        }
        prop_assert!(s.exact);
        prop_assert!(s.runs.windows(2).all(|w| w[0].end < w[1].start || w[0].tensors != w[1].tensors));
        prop_assert_eq!(&painted, &twin);
        prop_assert_eq!(s.reached_bytes, twin.iter().filter(|&&n| n > 0).count() as u64);
    }

    /// With more runs than are kept: each coarse run still tells how much of it is reached, and by how many at most.
    #[test]
    fn coarse_runs_count_what_they_cover(
        rows in 401usize..900, width in 1usize..4, gap in 1usize..5, other in (1usize..900, 1usize..9, 0usize..50),
    ) {
        let pitch = width + gap;
        let l = [layout(&[rows, width], &[pitch, 1], 0), layout(&[other.0], &[other.1], other.2)];
        let nbytes = (rows * pitch).max(9000) * 2;
        let twins = l.each_ref().map(|l| touched(l, 2, nbytes));
        let tensors = l.iter().map(|l| TensorEntry::new(DType::F16, l).unwrap()).collect();
        let s = StorageEntry::new(1, nbytes as u64, Device::cpu(), "", tensors).unwrap();
        let count = |at: usize| twins.iter().map(|twin| u64::from(twin[at])).sum::<u64>();
        let needed = (0..nbytes).filter(|&at| count(at) > 0 && (at == 0 || count(at - 1) != count(at))).count();
        prop_assert_eq!(s.exact, needed <= MAX_RUNS);
        prop_assert!(s.runs.len() <= MAX_RUNS);
        prop_assert_eq!(s.reached_bytes, (0..nbytes).filter(|&at| count(at) > 0).count() as u64);
        let mut covered = 0;
        for run in &s.runs {
            let within = run.start as usize..run.end as usize;
            prop_assert_eq!(run.reached, within.clone().filter(|&at| count(at) > 0).count() as u64);
            prop_assert_eq!(Some(run.tensors), within.map(count).max());
            covered += run.reached;
        }
        prop_assert_eq!(covered, s.reached_bytes);
    }
}

#[test]
fn billions_of_runs_are_not_walked() {
    // Two columns of a matrix of 10^9 rows and 4 columns, one of them twice: half of 16 GB.
    let column = |i| TensorEntry::new(DType::F32, &layout(&[1_000_000_000], &[4], i)).unwrap();
    let tensors = vec![column(0), column(1), column(0)];
    assert_eq!(tensors[0].reached_bytes, 4_000_000_000);
    let s = StorageEntry::new(1, 16_000_000_000, Device::cpu(), "", tensors).unwrap();
    assert_eq!(s.reached_bytes, 8_000_000_000);
    for (runs, sum) in [
        (&s.runs, 8_000_000_000),
        (&s.tensors[1].runs, 4_000_000_000),
    ] {
        assert!(runs.len() <= MAX_RUNS);
        assert_eq!(runs.iter().map(|run| run.reached).sum::<u64>(), sum);
    }
    assert!(!s.exact);
}

#[test]
fn thousands_of_strided_tensors_stay_small() {
    let t = TensorEntry::new(DType::U8, &layout(&[300], &[2], 0)).unwrap();
    let s = StorageEntry::new(1, 600, Device::cpu(), "", vec![t; 20_000]).unwrap();
    assert!(s.exact && s.runs.len() == 300 && s.runs.iter().all(|run| run.tensors == 20_000));
    let picture = Picture::new("", "", vec![s]).unwrap();
    let tensors = &picture.storages[0].tensors;
    assert!(
        tensors
            .iter()
            .all(|t| t.runs.len() <= 20 && t.reached_bytes == 300)
    );
    assert!(picture.to_json().unwrap().len() < 20_000_000);
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    for picture in [training_step(), hostile()] {
        let html = picture.to_html().unwrap();
        assert_eq!(html.matches("://").count(), 1);
        assert!(html.contains("\"http://www.w3.org/2000/svg\""));
        for loader in [
            " src=",
            " href=",
            "url(",
            "@import",
            "fetch(",
            "XMLHttpRequest",
            "innerHTML",
        ] {
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
        assert_eq!(
            serde_json::from_str::<Picture>(data_of(&html)).unwrap(),
            picture
        );
        assert_eq!(
            serde_json::from_str::<Picture>(&picture.to_json().unwrap()).unwrap(),
            picture
        );
    }
}

#[test]
fn hostile_names_stay_text() {
    let html = hostile().to_html().unwrap();
    let calm = training_step().to_html().unwrap();
    for tag in ["<script", "</script", "<img", "<!--"] {
        assert_eq!(
            html.matches(tag).count(),
            calm.matches(tag).count(),
            "{tag}"
        );
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
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        training_step().to_html().unwrap()
    );
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    let e = training_step()
        .write_html(dir.join("absent/map.html"))
        .unwrap_err();
    assert!(
        e.is_io() && e.to_string().contains("absent/map.html"),
        "{e}"
    );
    // A folder is in the way: the part is cleared away again.
    std::fs::create_dir(dir.join("folder")).unwrap();
    assert!(training_step().write_html(dir.join("folder")).is_err());
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
}
