//! `torch.save` before PyTorch 1.6: the pickles of a magic number, a version, the machine, the object
//! and the storages' keys, then every storage's count and bytes. Also pickles of anything else.

use super::{File, Pickled};
use crate::catalog::{ByteOrder, DataLocation, Encoding, Format};
use crate::error::{bad, count};
use crate::pickle::{self, Graph, Id, Node};
use crate::source::{Cursor, Source};
use osteon_spec::Result;
use std::collections::HashMap;

/// The integer 0x1950a86a20f9469cfc6c, lowest byte first.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const VERSION: i64 = 1001;

pub(super) fn open(source: &Source) -> Result<File> {
    let mut cursor = Cursor::new(source, 0, source.len());
    let (graph, root) = pickle::run(&mut cursor)?;
    let is_magic = match graph.node(root) {
        Node::Long(bytes) => bytes
            .strip_prefix(&MAGIC)
            .is_some_and(|rest| rest.iter().all(|&b| b == 0)),
        _ => false,
    };
    if !is_magic {
        return plain(&cursor, graph, root);
    }
    let (graph, version) = pickle::run(&mut cursor)?;
    if graph.int(version) != Some(VERSION) {
        return Err(bad("is of an unknown version of PyTorch's legacy format"));
    }
    // The machine's byte order and sizes: storages are little-endian whatever it says.
    pickle::run(&mut cursor)?;
    let (graph, root) = pickle::run(&mut cursor)?;
    let pickled = Pickled::new(graph, root)?;
    let (graph, keys) = pickle::run(&mut cursor)?;
    let data = storages(source, &mut cursor, &pickled, &graph, keys)?;
    Ok(file(Format::PtLegacy, pickled, data, 0))
}

/// A pickle that is not a checkpoint: no storages, so no tensors.
fn plain(cursor: &Cursor<'_>, graph: Graph, root: Id) -> Result<File> {
    let pickled = Pickled::new(graph, root)?;
    if !pickled.storages.is_empty() {
        return Err(bad("is a pickle that names storages, but holds none"));
    }
    Ok(file(
        Format::Pickle,
        pickled,
        Vec::new(),
        cursor.remaining(),
    ))
}

/// A file that is no archive.
pub(super) fn file(format: Format, pickled: Pickled, offsets: Vec<u64>, behind: u64) -> File {
    let data = pickled
        .storages
        .iter()
        .zip(offsets)
        .map(|(s, offset)| DataLocation {
            offset,
            length: s.nbytes(),
            encoding: Encoding::Stored,
            byte_order: ByteOrder::Little,
            crc32: None,
        });
    let data = data.collect();
    File {
        format,
        pickled,
        data,
        inflated: None,
        others: Vec::new(),
        prefix: String::new(),
        behind,
    }
}

/// Passes over the storages, each of which must be one that the pickle names, and its size.
fn storages(
    source: &Source,
    cursor: &mut Cursor<'_>,
    pickled: &Pickled,
    graph: &Graph,
    keys: Id,
) -> Result<Vec<u64>> {
    let Node::List(keys) = graph.node(keys) else {
        return Err(bad("the storages' keys are not a list"));
    };
    let by_key: HashMap<&str, usize> = pickled
        .storages
        .iter()
        .enumerate()
        .map(|(i, s)| (&*s.key, i))
        .collect();
    let mut data = vec![None; pickled.storages.len()];
    for &key in keys {
        let key = graph
            .str(key)
            .or_else(|| graph.int(key).map(|k| k.to_string()));
        let key = key.ok_or_else(|| bad("a storage's key is not a string"))?;
        let &index = by_key
            .get(&*key)
            .ok_or_else(|| bad(format!("storage {key:?} is not named by the pickle")))?;
        let storage = &pickled.storages[index];
        let at = cursor.pos();
        let said = i64::from_le_bytes(cursor.array()?);
        if u64::try_from(said) != Ok(storage.numel) {
            return Err(bad(format!(
                "storage {key:?} at byte {at} has {said} elements, but the pickle gives it {}",
                storage.numel
            )));
        }
        let start = cursor
            .skip(storage.nbytes())
            .map_err(|e| e.context(format_args!("storage {key:?}")))?;
        if data[index].replace(start).is_some() {
            return Err(bad(format!("storage {key:?} appears twice")));
        }
    }
    if cursor.remaining() > 0 {
        return Err(bad(format!(
            "the last storage ends at byte {}, but the file has {}",
            cursor.pos(),
            count(source.len(), "byte")
        )));
    }
    let missing = |i: usize| {
        bad(format!(
            "the data of storage {:?} is missing",
            pickled.storages[i].key
        ))
    };
    data.into_iter()
        .enumerate()
        .map(|(i, d)| d.ok_or_else(|| missing(i)))
        .collect()
}
