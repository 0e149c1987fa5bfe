//! `torch.save` since PyTorch 1.6: a zip archive `NAME/data.pkl`, `NAME/data/0`, `NAME/data/1`, …

use super::{File, Pickled, Storage};
use crate::catalog::{ByteOrder, DataLocation, Encoding, Format};
use crate::error::{bad, count};
use crate::inflate::{read_record, verify_stored};
use crate::pickle;
use crate::source::{Cursor, Source};
use crate::zipfile::{Archive, Record};
use osteon_spec::Result;
use std::collections::HashSet;

/// The most that a compressed pickle may inflate to.
const MAX_PICKLE: u64 = 1 << 30;

/// Whether there is a `NAME/data.pkl`.
pub(crate) fn is_checkpoint(archive: &Archive) -> bool {
    archive.records.iter().any(is_pickle)
}

fn is_pickle(record: &Record) -> bool {
    let file = record.name.split_once('/');
    file.is_some_and(|(_, file)| file == "data.pkl")
}

pub(super) fn open(source: &Source, archive: Archive) -> Result<File> {
    let mut pickles = archive.records.iter().filter(|r| is_pickle(r));
    let (Some(record), None) = (pickles.next(), pickles.next()) else {
        return Err(bad("has not one but several records data.pkl"));
    };
    let prefix = record
        .name
        .strip_suffix("data.pkl")
        .unwrap_or_default()
        .to_owned();
    let (pickled, inflated) = read_pickle(source, record)
        .map_err(|e| e.context(format_args!("record {:?}", record.name)))?;
    let byte_order = byte_order(source, &archive, &prefix)?;
    let mut used = HashSet::from([record.name.clone()]);
    let mut data = Vec::new();
    for storage in &pickled.storages {
        let name = format!("{prefix}data/{}", storage.key);
        let record = data_record(&archive, &name, storage)?;
        data.push(location(record, byte_order));
        used.insert(name);
    }
    let others = archive
        .records
        .into_iter()
        .filter(|r| !used.contains(&r.name))
        .collect();
    Ok(File {
        format: Format::PtZip,
        pickled,
        data,
        inflated,
        others,
        prefix,
        behind: 0,
    })
}

/// The pickle, and its inflated bytes where it is compressed.
fn read_pickle(source: &Source, record: &Record) -> Result<(Pickled, Option<Source>)> {
    let inflated = if record.deflated {
        Some(Source::from_bytes(read_record(source, record, MAX_PICKLE)?))
    } else {
        verify_stored(source, record)?;
        None
    };
    let mut cursor = match &inflated {
        Some(memory) => Cursor::new(memory, 0, memory.len()),
        None => Cursor::new(source, record.offset, record.offset + record.length),
    };
    let (graph, root) = pickle::run(&mut cursor)?;
    if cursor.remaining() > 0 {
        return Err(bad(format!(
            "has {} after the pickle's end",
            count(cursor.remaining(), "byte")
        )));
    }
    Ok((Pickled::new(graph, root)?, inflated))
}

fn byte_order(source: &Source, archive: &Archive, prefix: &str) -> Result<ByteOrder> {
    let Some(record) = archive.get(&format!("{prefix}byteorder")) else {
        return Ok(ByteOrder::Little);
    };
    match &*read_record(source, record, 64)? {
        b"little" => Ok(ByteOrder::Little),
        b"big" => Ok(ByteOrder::Big),
        _ => Err(bad(format!(
            "record {:?} is neither little nor big",
            record.name
        ))),
    }
}

/// The record of a storage; `None` for one that was saved without data.
fn data_record<'a>(
    archive: &'a Archive,
    name: &str,
    storage: &Storage,
) -> Result<Option<&'a Record>> {
    match archive.get(name) {
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

pub(super) fn location(record: Option<&Record>, byte_order: ByteOrder) -> DataLocation {
    let (offset, length) = record.map_or((0, 0), |r| (r.offset, r.length));
    let (encoding, crc32) = match record {
        Some(r) if r.deflated => (
            Encoding::Deflated {
                skip: 0,
                inflated: r.size,
                crc32: r.crc32,
            },
            None,
        ),
        // PyTorch can leave the checksums out, as 0.
        Some(r) => (Encoding::Stored, Some(r.crc32).filter(|&crc| crc != 0)),
        None => (Encoding::Stored, None),
    };
    DataLocation {
        offset,
        length,
        encoding,
        byte_order,
        crc32,
    }
}
