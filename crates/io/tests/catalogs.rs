//! Catalogs of files that PyTorch, safetensors and NumPy wrote, against what those say they hold.

use osteon_io::{Catalog, catalog, catalog_bytes};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The larger set of files next to the project, where it is there.
fn shared() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/checkpoints");
    if !dir.exists() {
        println!("skipped: {} is not there", dir.display());
        return None;
    }
    Some(dir)
}

/// A catalog in the form of facts.json, storages called by the tensors on them.
fn told(c: &Catalog) -> Value {
    let mut on: Vec<Vec<&str>> = vec![Vec::new(); c.storages.len()];
    for t in &c.tensors {
        on[t.storage].push(&t.name);
    }
    on.iter_mut().for_each(|names| names.sort_unstable());
    let tensors: Map<String, Value> = c
        .tensors
        .iter()
        .map(|t| {
            let told = json!({
                "shape": t.layout.sizes(), "stride": t.layout.strides(), "offset": t.layout.offset(),
                "dtype": t.dtype.name(), "storage": on[t.storage].join(" "),
            });
            (t.name.clone(), told)
        })
        .collect();
    let storages: Map<String, Value> = (0..on.len())
        .map(|i| (on[i].join(" "), json!({ "nbytes": c.storages[i].nbytes })))
        .collect();
    json!({ "file_bytes": c.file_bytes, "tensors": tensors, "storages": storages })
}

/// The same of an entry of facts.json.
fn expected(facts: &Value) -> Value {
    let mut on: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let storage = |t: &Value| t["storage"].to_string();
    for (name, t) in facts["tensors"].as_object().unwrap() {
        on.entry(storage(t)).or_default().push(name);
    }
    on.values_mut().for_each(|names| names.sort_unstable());
    let mut facts = facts.clone();
    let called: BTreeMap<String, String> =
        on.iter().map(|(k, v)| (k.clone(), v.join(" "))).collect();
    for t in facts["tensors"].as_object_mut().unwrap().values_mut() {
        t["storage"] = called[&t["storage"].to_string()].clone().into();
        t.as_object_mut().unwrap().remove("sum");
    }
    let storages = facts["storages"].as_object().unwrap().iter();
    facts["storages"] = storages
        .map(|(id, s)| (called[id].clone(), json!({ "nbytes": s["nbytes"] })))
        .collect::<Map<_, _>>()
        .into();
    facts.as_object_mut().unwrap().remove("note");
    facts
}

fn check_all(dir: &Path) -> usize {
    let facts: Value =
        serde_json::from_slice(&std::fs::read(dir.join("facts.json")).unwrap()).unwrap();
    let mut checked = 0;
    for (file, facts) in facts.as_object().unwrap() {
        let path = dir.join(file);
        if !path.exists() {
            continue;
        }
        let catalogs = catalog(&path).unwrap();
        assert_eq!(catalogs.len(), 1);
        assert_eq!(told(&catalogs[0]), expected(facts), "{file}");
        // The same without a file.
        let bytes = catalog_bytes(&path, std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(told(&bytes), told(&catalogs[0]), "{file}");
        checked += 1;
    }
    checked
}

#[test]
fn catalogs_agree_with_the_writers() {
    assert_eq!(check_all(&data()), 16);
    if let Some(dir) = shared() {
        assert!(check_all(&dir) > 16);
    }
}

#[test]
fn an_index_is_its_shards() {
    let catalogs = catalog(data().join("model.safetensors.index.json")).unwrap();
    let names: Vec<_> = catalogs
        .iter()
        .map(|c| {
            (
                c.path.file_name().unwrap().to_str().unwrap(),
                &*c.tensors[0].name,
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("model-00001-of-00002.safetensors", "layer.0.w"),
            ("model-00002-of-00002.safetensors", "layer.1.w")
        ]
    );
    assert!(
        catalogs.iter().all(|c| c.warnings.is_empty()),
        "{:?}",
        catalogs[0].warnings
    );
}

#[test]
fn the_older_formats() {
    // What `torch.load` says of the same files.
    let show = |file: &str| {
        let c = catalog(data().join(file)).unwrap().remove(0);
        assert!(c.warnings.is_empty(), "{:?}", c.warnings);
        let line = |t: &osteon_io::TensorEntry| {
            format!("{} {} {} {}", t.name, t.dtype, t.layout, t.storage)
        };
        (
            c.format.to_string(),
            c.tensors.iter().map(line).collect::<Vec<_>>(),
            c,
        )
    };
    let (format, tensors, c) = show("small_legacy.pt");
    assert_eq!(format, "pt-legacy");
    assert_eq!(
        tensors,
        [
            "head float32 (4)@(1) 0",
            "all float32 (3, 4)@(4, 1) 0",
            "t float32 (4, 3)@(1, 4) 0",
            "h float16 (2)@(1) 1"
        ]
    );
    assert_eq!(
        c.storages.iter().map(|s| s.nbytes).collect::<Vec<_>>(),
        [48, 4]
    );

    let (format, tensors, c) = show("old.tar.pt");
    assert_eq!(format, "pt-tar");
    assert_eq!(
        tensors,
        [
            "w float32 (2, 3)@(3, 1) 0",
            "part float32 (2)@(1)+3 0",
            "n int64 (2)@(1) 1",
            "again float32 (2, 3)@(3, 1) 0"
        ]
    );
    assert_eq!(
        c.storages
            .iter()
            .map(|s| (&*s.key, s.nbytes))
            .collect::<Vec<_>>(),
        [("100", 24), ("200", 16)]
    );
}

#[test]
fn broken_files_are_one_clear_error_that_names_the_file() {
    let mut dirs = vec![data().join("bad")];
    dirs.extend(shared().map(|d| d.join("bad")));
    for dir in dirs {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            match catalog(&path) {
                Ok(c) => {
                    assert_eq!(name, "evil.pt");
                    let c = &c[0];
                    assert_eq!(
                        c.tensors.iter().map(|t| &*t.name).collect::<Vec<_>>(),
                        ["w"]
                    );
                    assert_eq!(c.warnings.len(), 1);
                    assert!(
                        c.warnings[0].to_string().contains("posix.system"),
                        "{}",
                        c.warnings[0]
                    );
                }
                Err(e) => {
                    let text = e.to_string();
                    println!("{text}");
                    assert!(
                        e.is_format() && text.contains(name) && !text.contains('\n'),
                        "{text}"
                    );
                }
            }
        }
    }
}
