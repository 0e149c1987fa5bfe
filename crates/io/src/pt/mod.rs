//! PyTorch's own files: one pickle of objects, in which storages are persistent ids.

mod globals;
mod legacy;
mod names;
mod pack;
mod rebuild;
mod rewrite;
mod tar;
mod write;
mod zip;

pub(crate) use rewrite::rewrite;
pub(crate) use tar::is_ustar;
pub(crate) use write::write;
pub(crate) use zip::is_checkpoint;

use crate::catalog::{
    Catalog, DataLocation, Encoding, Format, StorageEntry, TensorEntry, Warning, WarningKind, stem,
};
use crate::error::count;
use crate::pickle::{Graph, Id, Node};
use crate::source::Source;
use crate::zipfile::{Archive, Record};
use osteon_spec::{DType, Result};
use std::collections::HashMap;
use std::path::Path;

/// A checkpoint of any of PyTorch's formats, read as far as can be without its data.
#[derive(Debug)]
pub(crate) struct File {
    pub format: Format,
    pub pickled: Pickled,
    /// Where the bytes of each storage are.
    pub data: Vec<DataLocation>,
    /// The inflated pickle, where it does not lie in the file as it is.
    pub inflated: Option<Source>,
    /// The records of a zip archive besides the pickle and its storages.
    pub others: Vec<Record>,
    /// What all records of a zip archive begin with.
    pub prefix: String,
    /// Bytes behind a plain pickle.
    pub behind: u64,
}

impl File {
    /// Reads a zip archive of PyTorch's.
    pub fn open_zip(source: &Source, archive: Archive) -> Result<File> {
        zip::open(source, archive)
    }

    /// Reads what is not a zip archive.
    pub fn open(source: &Source) -> Result<File> {
        if tar::is_tar(source)? {
            tar::open(source)
        } else {
            legacy::open(source)
        }
    }

    /// What the file holds.
    pub fn catalog(&self, source: &Source, path: &Path) -> Result<Catalog> {
        let found = names::find(&self.pickled, &stem(path))?;
        let tensors: Vec<TensorEntry> = found
            .tensors
            .into_iter()
            .map(|(name, t)| TensorEntry {
                name,
                dtype: t.dtype,
                layout: t.layout,
                storage: t.storage,
                requires_grad: t.requires_grad,
                conj: t.conj,
                neg: t.neg,
            })
            .collect();
        let mut warnings = globals::warnings(&self.pickled.graph);
        warnings.extend(found.warnings);
        warnings.extend(self.oddities());
        Ok(Catalog {
            path: path.to_path_buf(),
            format: self.format,
            file_bytes: source.len(),
            storages: self.storage_entries(&tensors),
            tensors,
            warnings,
        })
    }

    fn storage_entries(&self, tensors: &[TensorEntry]) -> Vec<StorageEntry> {
        // A storage without a type of its own has its tensors', where they agree.
        let mut dtypes: Vec<Option<DType>> = vec![None; self.data.len()];
        for t in tensors {
            let d = &mut dtypes[t.storage];
            *d = Some(d.map_or(t.dtype, |d| if d == t.dtype { d } else { DType::U8 }));
        }
        let storages = self.pickled.storages.iter().zip(&self.data).zip(dtypes);
        let entry = |((s, data), dtype): ((&Storage, &DataLocation), Option<DType>)| StorageEntry {
            key: s.key.clone(),
            nbytes: match data.encoding {
                Encoding::Stored => data.length,
                Encoding::Deflated { inflated, .. } => inflated,
            },
            dtype: s
                .dtype
                .filter(|_| !s.untyped)
                .or(dtype)
                .unwrap_or(DType::U8),
            data: *data,
        };
        storages.map(entry).collect()
    }

    /// Bytes that nothing names.
    fn oddities(&self) -> Vec<Warning> {
        let warn = |message| Warning::new(WarningKind::Structure, message);
        let unused = self.others.iter().filter(|r| self.is_data(r));
        let mut warnings: Vec<Warning> = unused
            .map(|r| {
                warn(format!(
                    "record {:?} of {} is used by nothing",
                    r.name,
                    count(r.size, "byte")
                ))
            })
            .collect();
        if self.behind > 0 {
            warnings.push(warn(format!(
                "{} follow the pickle",
                count(self.behind, "byte")
            )));
        }
        warnings
    }

    /// Whether a record is where a storage would be.
    pub fn is_data(&self, record: &Record) -> bool {
        let name = record.name.strip_prefix(&*self.prefix);
        name.is_some_and(|n| n.starts_with("data/"))
    }
}

/// What the pickle of a checkpoint says.
#[derive(Debug)]
pub(crate) struct Pickled {
    pub graph: Graph,
    pub root: Id,
    /// The storages, in the order in which the pickle first names them.
    pub storages: Vec<Storage>,
    /// The storage, or the part of one, that each persistent id stands for.
    pub parts: HashMap<Id, Part>,
}

/// A storage as the pickle describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Storage {
    pub key: String,
    /// Where this is `None`, the elements are of a kind that is not read here.
    pub dtype: Option<DType>,
    pub item_size: u64,
    pub numel: u64,
    /// Where it was: `cpu`, `cuda:0`, `meta`.
    pub location: String,
    /// Its bytes have no type of their own, only their tensors' types.
    pub untyped: bool,
}

impl Storage {
    /// The size, which `rebuild` has checked to be one.
    pub fn nbytes(&self) -> u64 {
        self.numel * self.item_size
    }

    /// A storage of which only the shape was saved.
    pub fn is_meta(&self) -> bool {
        self.location == "meta"
    }
}

/// What a persistent id stands for: a storage, or a range of its bytes, which files of PyTorch 0.1 to
/// 0.3 can name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    pub storage: usize,
    /// The dtype by which this id names it, as [`Storage::dtype`].
    pub dtype: Option<DType>,
    pub item_size: u64,
    pub start: u64,
    pub end: u64,
}

impl Pickled {
    /// Finds the storages of a graph.
    pub fn new(graph: Graph, root: Id) -> Result<Pickled> {
        let mut pickled = Pickled {
            graph,
            root,
            storages: Vec::new(),
            parts: HashMap::new(),
        };
        let mut by_key = HashMap::new();
        for id in pickled.graph.ids() {
            if let Node::Persistent(pid) = *pickled.graph.node(id) {
                pickled.add_storage(id, pid, &mut by_key)?;
            }
        }
        Ok(pickled)
    }
}
