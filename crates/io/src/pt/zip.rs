//! `torch.save` since PyTorch 1.6: a zip archive `NAME/data.pkl`, `NAME/data/0`, `NAME/data/1`, …

use super::names::{self, Found};
use super::{Pickled, globals};
use crate::catalog::{
    ByteOrder, Catalog, DataLocation, Encoding, Format, StorageEntry, TensorEntry, Warning,
    WarningKind, stem,
};
use crate::error::{bad, count};
use crate::pickle;
use crate::source::{Cursor, Source};
use crate::zipfile::{Archive, Record, read_record, verify_stored};
use osteon_spec::{DType, Result};
use std::collections::HashSet;
use std::path::Path;

/// The most that a compressed pickle may inflate to.
const MAX_PICKLE: u64 = 1 << 30;

/// A checkpoint, read as far as can be without its data.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub archive: Archive,
    /// What every record's name begins with, the slash included.
    pub prefix: String,
    /// The inflated pickle; `None` where it lies in the file as it is.
    pub inflated: Option<Source>,
    pub pickled: Pickled,
    pub byte_order: ByteOrder,
}

/// Whether there is a `NAME/data.pkl`.
pub(crate) fn is_checkpoint(archive: &Archive) -> bool {
    archive.records.iter().any(is_pickle)
}

fn is_pickle(record: &Record) -> bool {
    record
        .name
        .split_once('/')
        .is_some_and(|(_, file)| file == "data.pkl")
}

impl Checkpoint {
    pub fn open(source: &Source, archive: Archive) -> Result<Checkpoint> {
        let mut pickles = archive.records.iter().filter(|r| is_pickle(r));
        let (Some(record), None) = (pickles.next(), pickles.next()) else {
            return Err(bad("has not one but several records data.pkl"));
        };
        let record = record.clone();
        let prefix = record
            .name
            .strip_suffix("data.pkl")
            .unwrap_or_default()
            .to_owned();
        let inflated = match record.deflated {
            true => Some(Source::from_bytes(read_record(
                source, &record, MAX_PICKLE,
            )?)),
            false => {
                verify_stored(source, &record)
                    .map_err(|e| e.context(format_args!("record {:?}", record.name)))?;
                None
            }
        };
        let mut cursor = match &inflated {
            Some(memory) => Cursor::new(memory, 0, memory.len()),
            None => Cursor::new(source, record.offset, record.offset + record.length),
        };
        let read = |cursor: &mut Cursor<'_>| {
            let (graph, root) = pickle::run(cursor)?;
            if cursor.remaining() > 0 {
                return Err(bad(format!(
                    "has {} after the pickle's end",
                    count(cursor.remaining(), "byte")
                )));
            }
            Pickled::new(graph, root)
        };
        let pickled =
            read(&mut cursor).map_err(|e| e.context(format_args!("record {:?}", record.name)))?;
        let byte_order = match archive.get(&format!("{prefix}byteorder")) {
            None => ByteOrder::Little,
            Some(record) => match &*read_record(source, record, 64)? {
                b"little" => ByteOrder::Little,
                b"big" => ByteOrder::Big,
                _ => {
                    return Err(bad(format!(
                        "record {:?} is neither little nor big",
                        record.name
                    )));
                }
            },
        };
        Ok(Checkpoint {
            archive,
            prefix,
            inflated,
            pickled,
            byte_order,
        })
    }

    /// The record of a storage; `None` for one that was saved without data.
    pub fn record(&self, storage: &super::Storage) -> Result<Option<&Record>> {
        let name = format!("{}data/{}", self.prefix, storage.key);
        match self.archive.get(&name) {
            Some(r) if r.size == storage.nbytes() => Ok(Some(r)),
            None if storage.is_meta() || storage.nbytes() == 0 => Ok(None),
            Some(r) if storage.is_meta() && r.size == 0 => Ok(None),
            Some(r) => Err(bad(format!(
                "record {name:?} has {}, but the pickle gives its storage {}",
                count(r.size, "byte"),
                storage.nbytes()
            ))),
            None => Err(bad(format!("the record {name:?} of a storage is missing"))),
        }
    }

    /// Records of data that the pickle does not name.
    fn unused(&self) -> Vec<&Record> {
        let data = format!("{}data/", self.prefix);
        let named: HashSet<&str> = self.pickled.storages.iter().map(|s| &*s.key).collect();
        let records = self.archive.records.iter();
        records
            .filter(|r| {
                r.name
                    .strip_prefix(&data)
                    .is_some_and(|k| !named.contains(k))
            })
            .collect()
    }
}

pub(crate) fn catalog(source: &Source, archive: Archive, path: &Path) -> Result<Catalog> {
    let checkpoint = Checkpoint::open(source, archive)?;
    let pickled = &checkpoint.pickled;
    let found = names::find(pickled, &stem(path))?;
    let mut storages = Vec::new();
    for storage in &pickled.storages {
        let record = checkpoint.record(storage)?;
        storages.push(StorageEntry {
            key: storage.key.clone(),
            nbytes: record.map_or(0, |r| r.size),
            dtype: storage.dtype.unwrap_or(DType::U8),
            data: location(record, checkpoint.byte_order),
        });
    }
    let mut warnings = globals::warnings(&pickled.graph);
    for record in checkpoint.unused() {
        warnings.push(Warning::new(
            WarningKind::Structure,
            format!(
                "record {:?} of {} is used by nothing",
                record.name,
                count(record.size, "byte")
            ),
        ));
    }
    Ok(finish(
        source,
        path,
        Format::PtZip,
        storages,
        found,
        warnings,
    ))
}

fn location(record: Option<&Record>, byte_order: ByteOrder) -> DataLocation {
    let (offset, length, encoding) = match record {
        None => (0, 0, Encoding::Stored),
        Some(r) if r.deflated => {
            let deflated = Encoding::Deflated {
                skip: 0,
                inflated: r.size,
                crc32: r.crc32,
            };
            (r.offset, r.length, deflated)
        }
        Some(r) => (r.offset, r.length, Encoding::Stored),
    };
    DataLocation {
        offset,
        length,
        encoding,
        byte_order,
    }
}

/// The catalog of a pickled checkpoint from its parts.
pub(super) fn finish(
    source: &Source,
    path: &Path,
    format: Format,
    mut storages: Vec<StorageEntry>,
    found: Found,
    mut warnings: Vec<Warning>,
) -> Catalog {
    let tensors: Vec<TensorEntry> = found
        .tensors
        .into_iter()
        .map(|(name, _, t)| TensorEntry {
            name,
            dtype: t.dtype,
            layout: t.layout,
            storage: t.storage,
            requires_grad: t.requires_grad,
            conj: t.conj,
            neg: t.neg,
        })
        .collect();
    // A storage without a type of its own has its tensors', where they agree.
    let mut dtypes: Vec<Option<DType>> = vec![None; storages.len()];
    for t in &tensors {
        let d = &mut dtypes[t.storage];
        *d = Some(d.map_or(t.dtype, |d| if d == t.dtype { d } else { DType::U8 }));
    }
    for (storage, dtype) in storages.iter_mut().zip(dtypes) {
        if storage.dtype == DType::U8 {
            storage.dtype = dtype.unwrap_or(DType::U8);
        }
    }
    warnings.extend(found.warnings);
    Catalog {
        path: path.to_path_buf(),
        format,
        file_bytes: source.len(),
        tensors,
        storages,
        warnings,
    }
}
