//! `*.index.json`: which shard holds which tensor.

use crate::catalog::{Catalog, Warning, WarningKind, catalog_file};
use crate::error::bad;
use crate::source::Source;
use osteon_spec::Result;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

/// The longest index that is read.
const MAX_INDEX: u64 = 100_000_000;

/// Which shard holds which tensor.
#[derive(Debug, Deserialize)]
pub(crate) struct Index {
    weight_map: BTreeMap<String, String>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    // Written as a float by some tools.
    total_size: Option<f64>,
}

pub(crate) fn is_index(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|n| n.to_string_lossy().ends_with(".index.json"))
}

/// One catalog for each shard, in the order of their names. What is odd about the index is among the
/// first one's warnings.
pub(crate) fn catalogs(path: &Path) -> Result<Vec<Catalog>> {
    let index = read(path)?;
    let mut catalogs = Vec::new();
    for (file, shard) in index.shards(path)? {
        catalogs.push((file, catalog_file(&shard)?));
    }
    let warnings = check(&index, &catalogs).map_err(|e| e.context(path.display()))?;
    let mut catalogs: Vec<Catalog> = catalogs.into_iter().map(|(_, c)| c).collect();
    if let Some(first) = catalogs.first_mut() {
        first.warnings.splice(0..0, warnings);
    }
    Ok(catalogs)
}

/// Reads an index, without looking at its shards.
pub(crate) fn read(path: &Path) -> Result<Index> {
    let read = || {
        let source = Source::open(path)?;
        if source.len() > MAX_INDEX {
            let len = source.len();
            return Err(bad(format!(
                "is an index of {len} bytes; at most {MAX_INDEX} are read"
            )));
        }
        serde_json::from_slice(&source.read_vec(0, source.len())?)
            .map_err(|e| bad(format!("is not an index of shards: {e}")))
    };
    read().map_err(|e| e.context(path.display()))
}

impl Index {
    /// The shards, each once, by the index's name for it and as a path.
    pub fn shards(&self, path: &Path) -> Result<Vec<(&str, PathBuf)>> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let files: BTreeSet<&str> = self.weight_map.values().map(String::as_str).collect();
        let shard = |file| Ok((file, shard_path(folder, file)?));
        files
            .into_iter()
            .map(shard)
            .collect::<Result<_>>()
            .map_err(|e| e.context(path.display()))
    }

    /// The shard that holds a tensor.
    pub fn file_of(&self, name: &str) -> Option<&str> {
        self.weight_map.get(name).map(String::as_str)
    }
}

/// A shard's path: below the index's folder, whatever the index says.
fn shard_path(folder: &Path, file: &str) -> Result<PathBuf> {
    let inside = !file.is_empty()
        && !file.contains('\\')
        && Path::new(file)
            .components()
            .all(|c| matches!(c, Component::Normal(_)));
    if !inside {
        return Err(bad(format!(
            "the shard {file:?} is not a path below the index's folder"
        )));
    }
    Ok(folder.join(file))
}

/// A tensor that is not where the index says is an error; the rest is odd.
fn check(index: &Index, catalogs: &[(&str, Catalog)]) -> Result<Vec<Warning>> {
    let mut warnings = Vec::new();
    let mut warn = |message: String| warnings.push(Warning::new(WarningKind::Structure, message));
    let mut held: HashMap<&str, Vec<&str>> = HashMap::new();
    for (file, catalog) in catalogs {
        for t in &catalog.tensors {
            held.entry(&t.name).or_default().push(file);
        }
        // A tensor of a dtype that is left out is there all the same: by its storage's key.
        for s in &catalog.storages {
            let files = held.entry(&s.key).or_default();
            if !files.contains(file) && index.weight_map.contains_key(&s.key) {
                files.push(file);
            }
        }
    }
    for (name, file) in &index.weight_map {
        match held.get(name.as_str()) {
            Some(files) if files.contains(&file.as_str()) => {
                if let Some(other) = files.iter().find(|f| *f != file) {
                    warn(format!("tensor {name:?} is in {file} and also in {other}"));
                }
            }
            _ => return Err(bad(format!("tensor {name:?} is not in its shard {file}"))),
        }
    }
    for (file, catalog) in catalogs {
        for t in catalog
            .tensors
            .iter()
            .filter(|t| !index.weight_map.contains_key(&t.name))
        {
            warn(format!("tensor {:?} of {file} is not in the index", t.name));
        }
    }
    let total: u64 = catalogs
        .iter()
        .flat_map(|(_, c)| &c.storages)
        .map(|s| s.nbytes)
        .sum();
    if let Some(said) = index
        .metadata
        .total_size
        .filter(|&said| said != total as f64)
    {
        warn(format!(
            "the index says total_size {said}, but the shards hold {total} bytes"
        ));
    }
    Ok(warnings)
}
