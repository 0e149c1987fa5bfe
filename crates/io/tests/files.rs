//! Loading, saving and compacting, against what the writers of the given files say of them.

use osteon_io::{Catalog, LoadOptions, SaveOptions, catalog, catalog_bytes, compact, load, save};
use osteon_memory::{CopyReason, Origin, copies};
use osteon_spec::{DType, Device, MemoryFormat};
use osteon_tensor::View;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The recorded files, and the larger set next to the project where it is there.
fn dirs() -> Vec<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/checkpoints");
    if !shared.exists() {
        println!("skipped: {} is not there", shared.display());
        return vec![data()];
    }
    vec![data(), shared]
}

/// Every file with what facts.json says of it.
fn facts() -> Vec<(PathBuf, Value)> {
    let mut all = Vec::new();
    for dir in dirs() {
        let facts: Value =
            serde_json::from_slice(&std::fs::read(dir.join("facts.json")).unwrap()).unwrap();
        for (file, facts) in facts.as_object().unwrap() {
            if dir.join(file).exists() {
                all.push((dir.join(file), facts.clone()));
            }
        }
    }
    all
}

fn cpu() -> Device {
    Device::cpu()
}

fn loaded(path: &Path, options: &LoadOptions) -> BTreeMap<String, View> {
    load(path, options).unwrap().into_iter().collect()
}

fn sum(view: &View) -> f64 {
    view.to_dtype(DType::F64)
        .unwrap()
        .to_vec::<f64>()
        .unwrap()
        .iter()
        .sum()
}

/// The elements as text, which for equal dtypes tells all values apart.
fn text(view: &View) -> String {
    let dense = view.contiguous(MemoryFormat::Contiguous).unwrap();
    if view.dtype().is_complex() {
        return format!(
            "{:?}",
            view.to_dtype(DType::C128)
                .unwrap()
                .to_vec::<num_complex::Complex64>()
                .unwrap()
        );
    }
    format!(
        "{:?}",
        dense.to_dtype(DType::F64).unwrap().to_vec::<f64>().unwrap()
    )
}

/// Which tensors share a storage.
fn groups(tensors: &BTreeMap<String, View>) -> BTreeSet<BTreeSet<&str>> {
    let mut on: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    for (name, view) in tensors {
        on.entry(view.storage().id()).or_default().insert(name);
    }
    on.into_values().collect()
}

#[test]
fn values_and_sharing_are_the_files() {
    for (path, facts) in facts() {
        let facts = facts["tensors"].as_object().unwrap();
        for options in [LoadOptions::new(), LoadOptions::new().mapped(false)] {
            let tensors = loaded(&path, &options);
            assert_eq!(tensors.len(), facts.len());
            let mut on: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
            for (name, fact) in facts {
                let view = &tensors[name];
                on.entry(fact["storage"].to_string())
                    .or_default()
                    .insert(name);
                if let Some(want) = fact["sum"].as_f64() {
                    let got = sum(view);
                    assert!(
                        (got - want).abs() <= 1e-6 * (1.0 + want.abs()),
                        "{path:?} {name}: {got} {want}"
                    );
                }
                assert_eq!(view.viewer().label().as_deref(), Some(&**name));
            }
            assert_eq!(groups(&tensors), on.into_values().collect(), "{path:?}");
        }
    }
}

#[test]
fn conjugate_and_negative_bits_are_values() {
    // torch.load(...)["conj"].resolve_conj()
    let conj = &loaded(&data().join("param.pt"), &LoadOptions::new())["conj"];
    assert_eq!(
        conj.to_vec::<num_complex::Complex32>()
            .unwrap()
            .iter()
            .map(|c| (c.re, c.im))
            .collect::<Vec<_>>(),
        CONJ
    );
}

const CONJ: [(f32, f32); 3] = [
    (0.868_154_94, 0.077_599_935),
    (0.425_136_54, -0.319_673_9),
    (-0.286_606_37, -0.636_463_4),
];

#[test]
fn mapped_where_it_can_be_and_logged_where_not() {
    let mark = copies::mark();
    let clean = load(data().join("clean.pt"), &LoadOptions::new()).unwrap();
    for (_, view) in &clean {
        assert!(matches!(view.storage().origin(), Origin::Mapped { .. }));
        assert!(view.storage().is_read_only());
    }
    let ids: Vec<u64> = clean.iter().map(|(_, v)| v.storage().id()).collect();
    assert!(
        copies::since(&mark)
            .iter()
            .all(|e| !ids.contains(&e.to.storage))
    );

    for (file, bytes) in [("arrays_z.npz", 40_000), ("one.npy", 48)] {
        let (_, view) = load(data().join(file), &LoadOptions::new())
            .unwrap()
            .remove(0);
        let log = copies::since(&mark);
        let copy = log
            .iter()
            .find(|e| e.to.storage == view.storage().id())
            .expect(file);
        assert_eq!((copy.reason, copy.bytes), (CopyReason::Loaded, bytes));
        assert!(!view.storage().is_read_only());
    }
}

#[test]
fn an_entry_beyond_the_inflate_limit_is_refused() {
    let e = load(
        data().join("arrays_z.npz"),
        &LoadOptions::new().inflate_limit(40_127),
    )
    .unwrap_err();
    assert!(e.is_format() && e.to_string().contains("40128"), "{e}");
    assert!(
        load(
            data().join("arrays_z.npz"),
            &LoadOptions::new().inflate_limit(40_128)
        )
        .is_ok()
    );
}

#[test]
fn an_index_loads_all_its_shards() {
    let tensors = loaded(
        &data().join("model.safetensors.index.json"),
        &LoadOptions::new(),
    );
    assert_eq!(
        tensors.keys().collect::<Vec<_>>(),
        ["layer.0.w", "layer.1.w"]
    );
}

#[test]
fn a_changed_compressed_byte_is_found() {
    let good = std::fs::read(data().join("arrays_z.npz")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npz");
    let data = catalog_bytes(&path, good.clone()).unwrap().storages[0].data;
    for at in data.offset..data.offset + data.length {
        let mut bytes = good.clone();
        bytes[at as usize] ^= 0x55;
        std::fs::write(&path, bytes).unwrap();
        let e = load(&path, &LoadOptions::new()).expect_err("a changed byte");
        assert!(e.is_format(), "{e}");
    }
}

#[test]
fn a_changed_stored_byte_is_found_where_all_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.pt");
    let mut bytes = std::fs::read(data().join("clean.pt")).unwrap();
    let at = catalog_bytes(&path, bytes.clone()).unwrap().storages[0]
        .data
        .offset as usize;
    bytes[at + 7] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let e = load(&path, &LoadOptions::new().mapped(false)).unwrap_err();
    assert!(e.to_string().contains("checksum"), "{e}");
    let e = compact(&path, dir.path().join("y.pt")).unwrap_err();
    assert!(e.to_string().contains("checksum"), "{e}");
    assert!(!dir.path().join("y.pt").exists());
}

#[test]
fn safetensors_files_are_byte_for_byte_the_serialisers() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (
        data().join("small.safetensors"),
        dir.path().join("x.safetensors"),
    );
    let tensors = load(&from, &LoadOptions::new()).unwrap();
    save(&to, &tensors, &SaveOptions::new()).unwrap();
    assert_eq!(std::fs::read(&to).unwrap(), std::fs::read(&from).unwrap());
}

#[test]
fn npy_files_are_byte_for_byte_numpys() {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::open(data().join("arrays.npz")).unwrap();
    let mut numpys = Vec::new();
    let mut zip = zip::ZipArchive::new(file).unwrap();
    std::io::copy(&mut zip.by_name("a.npy").unwrap(), &mut numpys).unwrap();
    let a = loaded(&data().join("arrays.npz"), &LoadOptions::new())["a"].clone();
    let path = dir.path().join("a.npy");
    save(&path, &[("a".into(), a)], &SaveOptions::new()).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), numpys);
}

/// A set of tensors with everything that strides can do.
fn zoo() -> Vec<(String, View)> {
    let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
    let x = View::from_slice(&values, &[3, 4, 5], &cpu()).unwrap();
    let names = [
        ("x", x.clone()),
        ("t", x.transpose(0, 2).unwrap()),
        ("row", x.select(0, 1).unwrap()),
        (
            "exp",
            View::from_slice(&[1i64, 2], &[2, 1], &cpu())
                .unwrap()
                .expand(&[2, 3])
                .unwrap(),
        ),
        ("scalar", View::from_slice(&[2.5f64], &[], &cpu()).unwrap()),
        (
            "empty",
            View::from_slice::<u8>(&[], &[0, 3], &cpu()).unwrap(),
        ),
        (
            "half",
            View::from_slice(&values, &[60], &cpu())
                .unwrap()
                .to_dtype(DType::F16)
                .unwrap(),
        ),
        (
            "flags",
            View::from_slice(&[true, false], &[2], &cpu()).unwrap(),
        ),
        ("u32", View::from_slice(&[7u32, 8], &[2], &cpu()).unwrap()),
    ];
    names.map(|(n, v)| (n.to_owned(), v)).into()
}

#[test]
fn every_format_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let zoo = zoo();
    for file in ["a.pt", "a.safetensors", "a.npz"] {
        let path = dir.path().join(file);
        let refused = save(&path, &zoo, &SaveOptions::new());
        if file != "a.pt" {
            let e = refused.unwrap_err();
            assert!(
                e.is_value() && e.to_string().contains("share memory"),
                "{e}"
            );
            assert!(!path.exists());
        }
        save(&path, &zoo, &SaveOptions::new().separate(true)).unwrap();
        for options in [LoadOptions::new(), LoadOptions::new().mapped(false)] {
            let again = loaded(&path, &options);
            for (name, view) in &zoo {
                assert_eq!(
                    (again[name].shape(), again[name].dtype()),
                    (view.shape(), view.dtype())
                );
                assert_eq!(text(&again[name]), text(view), "{file} {name}");
                if file == "a.pt" {
                    assert_eq!(again[name].layout(), view.layout());
                }
            }
            if file == "a.pt" {
                assert_eq!(groups(&again), groups(&zoo.iter().cloned().collect()));
            }
        }
        // What was written is aligned: nothing was copied to load it.
        let mapped = loaded(&path, &LoadOptions::new());
        let is_mapped =
            |v: &View| v.numel() == 0 || matches!(v.storage().origin(), Origin::Mapped { .. });
        assert!(mapped.values().all(is_mapped), "{file}");
    }
}

#[test]
fn disjoint_slices_of_one_storage_are_no_sharing() {
    let dir = tempfile::tempdir().unwrap();
    let x = View::from_slice(&[1i32, 2, 3, 4, 5, 6], &[3, 2], &cpu()).unwrap();
    let column = |i| x.select(1, i).unwrap();
    let path = dir.path().join("x.safetensors");
    save(
        &path,
        &[("a".into(), column(0)), ("b".into(), column(1))],
        &SaveOptions::new(),
    )
    .unwrap();
    assert_eq!(
        loaded(&path, &LoadOptions::new())["b"]
            .to_vec::<i32>()
            .unwrap(),
        [2, 4, 6]
    );
    // Not only neighbours in memory are compared: `c` meets `a` behind `b`.
    let y = View::from_slice(&[0u8; 100], &[100], &cpu()).unwrap();
    let part = |from, n| y.narrow(0, from, n).unwrap();
    let three = [
        ("a".into(), part(0, 100)),
        ("b".into(), part(10, 1)),
        ("c".into(), part(50, 1)),
    ];
    assert!(save(&path, &three[1..], &SaveOptions::new()).is_ok());
    assert!(
        save(
            &path,
            &[three[0].clone(), three[2].clone()],
            &SaveOptions::new()
        )
        .is_err()
    );
}

#[test]
fn what_cannot_be_saved_leaves_everything_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let one = View::from_slice(&[1f32, 2.0], &[2], &cpu()).unwrap();
    let f8 = one.to_dtype(DType::F8E5M2).unwrap();
    let path = dir.path().join("x.npz");
    std::fs::write(&path, "old").unwrap();
    let tries: [&[(String, View)]; 3] = [
        &[("a".into(), one.clone()), ("b".into(), f8)],
        &[("a".into(), one.clone()), ("a".into(), one.clone())],
        &[("../a".into(), one.clone())],
    ];
    for tensors in tries {
        save(&path, tensors, &SaveOptions::new()).unwrap_err();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(
        save(dir.path().join("x.npy"), &[], &SaveOptions::new())
            .unwrap_err()
            .is_value()
    );
    assert!(
        save(dir.path().join("x.txt"), &[], &SaveOptions::new())
            .unwrap_err()
            .is_value()
    );
    assert!(
        save(dir.path().join("no/x.pt"), &[], &SaveOptions::new())
            .unwrap_err()
            .is_io()
    );
}

#[test]
fn a_file_may_replace_the_one_that_its_tensors_are_mapped_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.safetensors");
    std::fs::copy(data().join("small.safetensors"), &path).unwrap();
    let tensors = load(&path, &LoadOptions::new()).unwrap();
    let before: Vec<String> = tensors.iter().map(|(_, v)| text(v)).collect();
    save(&path, &tensors, &SaveOptions::new()).unwrap();
    let again = load(&path, &LoadOptions::new()).unwrap();
    assert_eq!(
        before,
        again.iter().map(|(_, v)| text(v)).collect::<Vec<_>>()
    );
    assert_eq!(
        before,
        tensors.iter().map(|(_, v)| text(v)).collect::<Vec<_>>()
    );
}

fn one(path: &Path) -> Catalog {
    catalog(path).unwrap().remove(0)
}

#[test]
fn compacted_files_hold_what_is_reached_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    for (path, facts) in facts() {
        let out = dir.path().join(path.file_name().unwrap());
        let report = compact(&path, &out).unwrap();
        assert!(report.kept.is_empty(), "{report}");
        assert_eq!(report.bytes_after, out.metadata().unwrap().len());
        let (old, new) = (one(&path), one(&out));
        // Sizes: the bytes that some tensor reaches, as the writers count them.
        let told = facts["storages"].as_object().unwrap();
        let reached: u64 = told
            .values()
            .map(|s| s["reachable_bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(
            new.storages.iter().map(|s| s.nbytes).sum::<u64>(),
            reached,
            "{path:?}"
        );
        // Names, dtypes, shapes, bits, warnings; values; sharing.
        let facts_of = |c: &Catalog| {
            let line = |t: &osteon_io::TensorEntry| {
                (
                    t.name.clone(),
                    t.dtype,
                    t.layout.sizes().to_vec(),
                    t.requires_grad,
                    t.conj,
                    t.neg,
                )
            };
            c.tensors.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(facts_of(&old), facts_of(&new));
        let code = |c: &Catalog| {
            c.warnings
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(code(&old), code(&new));
        let (a, b) = (
            loaded(&path, &LoadOptions::new()),
            loaded(&out, &LoadOptions::new()),
        );
        for (name, view) in &a {
            assert_eq!(text(view), text(&b[name]), "{path:?} {name}");
        }
        assert_eq!(groups(&a), groups(&b), "{path:?}");
        // Compacting again changes nothing.
        let twice = dir
            .path()
            .join("twice")
            .with_extension(path.extension().unwrap());
        let again = compact(&out, &twice).unwrap();
        assert_eq!(again.bytes_after, again.bytes_before, "{path:?}");
    }
}

#[test]
fn tensors_that_share_keep_their_strides_and_what_lies_between_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("a.pt"), dir.path().join("b.pt"));
    let values: Vec<i32> = (0..1000).collect();
    let x = View::from_slice(&values, &[1000], &cpu()).unwrap();
    let step = x.slice(0, Some(10), Some(30), 3).unwrap();
    let tail = x.narrow(0, 900, 5).unwrap();
    let inside = x.narrow(0, 12, 2).unwrap();
    let lone = View::from_slice(&values, &[10, 10, 10], &cpu())
        .unwrap()
        .select(1, 4)
        .unwrap()
        .transpose(0, 1)
        .unwrap();
    let tensors = [
        ("step", step),
        ("tail", tail),
        ("inside", inside),
        ("lone", lone),
    ]
    .map(|(n, v)| (n.to_owned(), v));
    save(&from, &tensors, &SaveOptions::new()).unwrap();
    let report = compact(&from, &to).unwrap();
    let b = loaded(&to, &LoadOptions::new());
    for (name, view) in &tensors {
        assert_eq!(text(view), text(&b[name]));
    }
    // 10, 13, …, 28 span 19 elements; 12 and 13 lie within; five more follow: 24 of 4 bytes.
    assert_eq!(b["step"].storage().nbytes(), 96);
    assert_eq!(
        (b["step"].stride(), b["step"].storage_offset()),
        (&[3][..], 0)
    );
    assert_eq!(
        (b["tail"].storage_offset(), b["inside"].storage_offset()),
        (19, 2)
    );
    // Reached: 7 + 5 + 1 of 12, as 13 is in both.
    assert_eq!(report.kept.len(), 1);
    assert_eq!(
        (report.kept[0].bytes, &*report.kept[0].tensors),
        (44, &["step".to_owned(), "tail".into(), "inside".into()][..])
    );
    // Alone on its storage: dense in its own order of dims, which is transposed.
    assert_eq!(
        (b["lone"].storage().nbytes(), b["lone"].stride()),
        (400, &[1, 10][..])
    );
}

#[test]
fn what_a_pickle_would_do_is_kept_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("evil.pt");
    compact(data().join("bad/evil.pt"), &out).unwrap();
    let c = one(&out);
    assert_eq!(c.tensors[0].name, "w");
    assert!(c.warnings[0].to_string().contains("posix.system"));
}

#[test]
fn older_formats_become_zip_archives() {
    let dir = tempfile::tempdir().unwrap();
    for (file, bytes) in [("small_legacy.pt", 52), ("old.tar.pt", 40)] {
        let out = dir.path().join("out.pt");
        compact(data().join(file), &out).unwrap();
        let c = one(&out);
        assert_eq!(c.format.to_string(), "pt-zip");
        assert_eq!(c.storages.iter().map(|s| s.nbytes).sum::<u64>(), bytes);
        let (a, b) = (
            loaded(&data().join(file), &LoadOptions::new()),
            loaded(&out, &LoadOptions::new()),
        );
        for (name, view) in &a {
            assert_eq!(text(view), text(&b[name]), "{file} {name}");
        }
        assert_eq!(groups(&a), groups(&b));
    }
}

#[test]
fn compact_does_not_convert() {
    let dir = tempfile::tempdir().unwrap();
    let e = compact(data().join("clean.pt"), dir.path().join("x.safetensors")).unwrap_err();
    assert!(e.is_value(), "{e}");
    assert!(
        compact(
            data().join("model.safetensors.index.json"),
            dir.path().join("x")
        )
        .unwrap_err()
        .is_value()
    );
    assert!(
        compact(data().join("bad/short_storage.pt"), dir.path().join("x.pt"))
            .unwrap_err()
            .is_format()
    );
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
