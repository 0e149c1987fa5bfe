//! `torch.save` before PyTorch 1.6: the pickles of a magic number, a version, the machine, the object
//! and the storages' keys, then every storage's count and bytes. Also pickles of anything else.

use super::{Pickled, globals, names, zip};
use crate::catalog::{
    ByteOrder, Catalog, DataLocation, Encoding, Format, StorageEntry, Warning, WarningKind, stem,
};
use crate::error::{bad, count};
use crate::pickle::{self, Graph, Id, Node};
use crate::source::{Cursor, Source};
use osteon_spec::{DType, Result};
use std::collections::HashMap;
use std::path::Path;

/// The integer 0x1950a86a20f9469cfc6c, lowest byte first.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
const VERSION: i64 = 1001;

/// A legacy file, read as far as can be without its data.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    pub pickled: Pickled,
    /// Position of each storage's bytes in the file.
    pub data: Vec<u64>,
}

impl Checkpoint {
    /// Reads a file that begins with the magic number; the cursor is behind it.
    fn open(source: &Source, cursor: &mut Cursor<'_>) -> Result<Checkpoint> {
        let (graph, version) = pickle::run(cursor)?;
        if graph.int(version) != Some(VERSION) {
            return Err(bad("is of an unknown version of PyTorch's legacy format"));
        }
        // The machine's byte order and sizes: storages are little-endian whatever it says.
        pickle::run(cursor)?;
        let (graph, root) = pickle::run(cursor)?;
        let pickled = Pickled::new(graph, root)?;
        let (graph, keys) = pickle::run(cursor)?;
        let data = storages(source, cursor, &pickled, &graph, keys)?;
        Ok(Checkpoint { pickled, data })
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

pub(crate) fn catalog(source: &Source, path: &Path) -> Result<Catalog> {
    let mut cursor = Cursor::new(source, 0, source.len());
    let (graph, root) = pickle::run(&mut cursor)?;
    let is_magic = match graph.node(root) {
        Node::Long(bytes) => bytes
            .strip_prefix(&MAGIC)
            .is_some_and(|rest| rest.iter().all(|&b| b == 0)),
        _ => false,
    };
    if !is_magic {
        return plain(source, path, &cursor, graph, root);
    }
    let checkpoint = Checkpoint::open(source, &mut cursor)?;
    let found = names::find(&checkpoint.pickled, &stem(path))?;
    let storages = checkpoint
        .pickled
        .storages
        .iter()
        .zip(&checkpoint.data)
        .map(|(s, &offset)| {
            let (length, byte_order) = (s.nbytes(), ByteOrder::Little);
            StorageEntry {
                key: s.key.clone(),
                nbytes: length,
                dtype: s.dtype.unwrap_or(DType::U8),
                data: DataLocation {
                    offset,
                    length,
                    encoding: Encoding::Stored,
                    byte_order,
                },
            }
        });
    let storages = storages.collect();
    let warnings = globals::warnings(&checkpoint.pickled.graph);
    Ok(zip::finish(
        source,
        path,
        Format::PtLegacy,
        storages,
        found,
        warnings,
    ))
}

/// A pickle that is not a checkpoint: no storages, so no tensors.
fn plain(
    source: &Source,
    path: &Path,
    cursor: &Cursor<'_>,
    graph: Graph,
    root: Id,
) -> Result<Catalog> {
    let pickled = Pickled::new(graph, root)?;
    if !pickled.storages.is_empty() {
        return Err(bad("is a pickle that names storages, but holds none"));
    }
    let found = names::find(&pickled, &stem(path))?;
    let mut warnings = globals::warnings(&pickled.graph);
    if cursor.remaining() > 0 {
        warnings.push(Warning::new(
            WarningKind::Structure,
            format!(
                "{} follow the pickle, which ends at byte {}",
                count(cursor.remaining(), "byte"),
                cursor.pos()
            ),
        ));
    }
    Ok(zip::finish(
        source,
        path,
        Format::Pickle,
        Vec::new(),
        found,
        warnings,
    ))
}
