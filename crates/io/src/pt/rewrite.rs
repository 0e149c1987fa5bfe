//! A checkpoint without the bytes that no tensor reaches: the same pickle with other storages.

use super::pack::{Packing, Pieces, pack};
use super::rebuild::{Seen, Tensor, is_rebuild};
use super::{File, Pickled, names};
use crate::atomic::put;
use crate::catalog::{ByteOrder, DataLocation, Encoding};
use crate::compact::Kept;
use crate::error::bad;
use crate::inflate::{Inflated, check_crc};
use crate::pickle::{self, Id, Node};
use crate::source::{Source, copy};
use crate::zipfile::Record;
use crate::zipwrite::Writer;
use osteon_spec::{Layout, Result};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::ops::Range;

/// Names that say how an archive is written: written anew. The id is a digest of what is there no more.
const OWN: [&str; 4] = [
    "byteorder",
    ".format_version",
    ".storage_alignment",
    ".data/serialization_id",
];

/// What becomes of the storages.
struct Plan {
    /// For each storage that is still used; the others go.
    packings: Vec<Option<Packing>>,
    kept: Vec<Kept>,
}

/// Writes the archive; returns what could not be packed and why. `name` is the archive's own name where
/// the file that is read has none.
pub(crate) fn rewrite(
    source: &Source,
    mut file: File,
    name: &str,
    out: &mut impl Write,
) -> Result<Vec<Kept>> {
    let plan = plan(&mut file)?;
    let prefix = if file.prefix.is_empty() {
        format!("{name}/")
    } else {
        file.prefix.clone()
    };
    let numbers = number(&mut file.pickled, &plan.packings)?;
    let graph = &file.pickled.graph;
    let pickle_source = file.inflated.as_ref().unwrap_or(source);

    let mut zip = Writer::new(out);
    // Written twice, first to learn its size: it may hold more bytes than memory.
    let mut size = Count(0);
    pickle::emit(graph, file.pickled.root, pickle_source, &mut size)?;
    zip.record(&format!("{prefix}data.pkl"), size.0, |out| {
        pickle::emit(graph, file.pickled.root, pickle_source, out)
    })?;
    zip.put(&format!("{prefix}.format_version"), b"1")?;
    zip.put(&format!("{prefix}.storage_alignment"), b"64")?;
    let big = file.data.iter().any(|d| d.byte_order == ByteOrder::Big);
    zip.put(
        &format!("{prefix}byteorder"),
        if big { b"big" } else { b"little" },
    )?;
    for (number, &index) in numbers.iter().enumerate() {
        let (data, old) = (&file.data[index], &file.pickled.storages[index]);
        let Some(packing) = &plan.packings[index] else {
            continue;
        };
        // Of a meta storage only the shape is known.
        let size = if old.is_meta() { 0 } else { packing.nbytes };
        let write = |zip: &mut Writer<_>| -> Result<()> {
            let crc = zip.record(&format!("{prefix}data/{number}"), size, |out| match size {
                0 => Ok(()),
                _ => write_storage(source, data, old.nbytes(), packing, out),
            })?;
            // A storage that is read whole is checked on the way.
            let whole = matches!(packing.pieces, Pieces::Whole) && size > 0;
            check_crc(crc, data.crc32.filter(|_| whole).unwrap_or(0))
        };
        write(&mut zip).map_err(|e| e.context(format_args!("storage {:?}", old.key)))?;
    }
    let others: Vec<&Record> = file.others.iter().filter(|r| !file.is_data(r)).collect();
    let is = |record: &Record, names: &[&str]| {
        record
            .name
            .strip_prefix(&*prefix)
            .is_some_and(|n| names.contains(&n))
    };
    if !others.iter().any(|r| is(r, &["version"])) {
        zip.put(&format!("{prefix}version"), b"3\n")?;
    }
    for record in others.into_iter().filter(|r| !is(r, &OWN)) {
        copy_record(source, record, &mut zip)?;
    }
    zip.finish()?;
    Ok(plan.kept)
}

/// Copies a record that is neither the pickle nor a storage.
fn copy_record<W: Write>(source: &Source, record: &Record, zip: &mut Writer<W>) -> Result<()> {
    let data = super::zip::location(Some(record), ByteOrder::Little);
    let packing = Packing {
        pieces: Pieces::Whole,
        nbytes: record.size,
        layouts: Vec::new(),
        holes: 0,
    };
    let crc = zip.record(&record.name, record.size, |out| {
        write_storage(source, &data, record.size, &packing, out)
    })?;
    check_crc(crc, record.crc32).map_err(|e| e.context(format_args!("record {:?}", record.name)))
}

/// Packs every storage and points the tensors to their new places.
fn plan(file: &mut File) -> Result<Plan> {
    let pickled = &mut file.pickled;
    let uses = Uses::of(pickled)?;
    let count = pickled.storages.len();
    let mut names = vec![Vec::new(); count];
    for (name, t) in names::find(pickled, "")?.tensors {
        names[t.storage].push(name);
    }
    let mut on: Vec<Vec<&Tensor>> = vec![Vec::new(); count];
    for t in &uses.tensors {
        on[t.storage].push(t);
    }
    // A storage keeps a size that is a multiple of all elements by which it is named.
    let mut item_sizes = vec![None; count];
    for (_, part) in pickled.parts.iter().filter(|(id, _)| uses.reached(**id)) {
        let size = &mut item_sizes[part.storage];
        *size = (*size).max(Some(part.item_size));
    }
    let mut kept = Vec::new();
    let mut packings = Vec::new();
    let mut moved: Vec<(Id, Layout)> = Vec::new();
    for (index, item_size) in item_sizes.into_iter().enumerate() {
        let Some(item_size) = item_size else {
            packings.push(None);
            continue;
        };
        let storage = &pickled.storages[index];
        let whole = Packing {
            pieces: Pieces::Whole,
            nbytes: storage.nbytes(),
            layouts: Vec::new(),
            holes: 0,
        };
        let mut keep = |bytes, reason: &str| {
            let (storage, tensors) = (storage.key.clone(), std::mem::take(&mut names[index]));
            kept.push(Kept {
                storage,
                tensors,
                bytes,
                reason: reason.into(),
            });
        };
        let packing = if storage.is_meta() {
            whole
        } else if uses.pinned.contains(&index) {
            keep(
                storage.nbytes(),
                "something besides tensors refers to it, and may need all of it",
            );
            whole
        } else {
            let packing = pack(storage.nbytes(), item_size, &on[index])?;
            if packing.holes > 0 {
                keep(
                    packing.holes,
                    "they lie between the elements of tensors that keep their strides",
                );
            }
            packing
        };
        moved.extend(
            on[index]
                .iter()
                .map(|t| t.args)
                .zip(packing.layouts.iter().cloned()),
        );
        packings.push(Some(packing));
    }
    for (args, layout) in moved {
        place(pickled, args, &layout)?;
    }
    Ok(Plan { packings, kept })
}

/// Gives a tensor's call its new offset and strides.
fn place(pickled: &mut Pickled, args: Id, layout: &Layout) -> Result<()> {
    let graph = &mut pickled.graph;
    let offset = graph.push(Node::Int(layout.offset() as i64))?;
    let mut strides = Vec::new();
    for &s in layout.strides() {
        strides.push(graph.push(Node::Int(s as i64))?);
    }
    let strides = graph.push(Node::Tuple(strides.into()))?;
    if let Node::Tuple(items) = graph.node_mut(args) {
        items[1] = offset;
        items[3] = strides;
    }
    Ok(())
}

/// Names the storages that stay 0, 1, 2, … in the order in which the pickle meets them, as PyTorch does,
/// and gives every persistent id its new number and size. Returns the old storage of each number.
fn number(pickled: &mut Pickled, packings: &[Option<Packing>]) -> Result<Vec<usize>> {
    let mut numbers = vec![None; packings.len()];
    let mut order = Vec::new();
    for id in pickled.graph.ids() {
        let Node::Persistent(pid) = *pickled.graph.node(id) else {
            continue;
        };
        let fields = pickled.graph.tuple(pid).unwrap_or_default().to_vec();
        let Some(part) = pickled.parts.get(&id) else {
            // A module's class, which legacy files keep with its source: only the class is known now.
            let class = fields.get(1).and_then(|&c| pickled.graph.global(c));
            let (module, name) = class.ok_or_else(|| bad("a module without its class"))?;
            *pickled.graph.node_mut(id) = Node::Global {
                module: module.into(),
                name: name.into(),
            };
            continue;
        };
        let Some(packing) = &packings[part.storage] else {
            continue;
        };
        let number = *numbers[part.storage].get_or_insert_with(|| {
            order.push(part.storage);
            order.len() - 1
        });
        let numel = (packing.nbytes / part.item_size) as i64;
        let key = pickled
            .graph
            .push(Node::Str(number.to_string().into_bytes().into()))?;
        let numel = pickled.graph.push(Node::Int(numel))?;
        let fields = [fields[0], fields[1], key, fields[3], numel];
        let pid = pickled.graph.push(Node::Tuple(fields.into()))?;
        *pickled.graph.node_mut(id) = Node::Persistent(pid);
    }
    Ok(order)
}

/// Who uses what in a pickle.
struct Uses {
    /// How often each node is used by those that the root reaches.
    count: Vec<u32>,
    /// The calls that make tensors, each once.
    tensors: Vec<Tensor>,
    /// Storages that are used otherwise than by such calls.
    pinned: HashSet<usize>,
}

impl Uses {
    fn of(pickled: &Pickled) -> Result<Uses> {
        let graph = &pickled.graph;
        let mut count = vec![0u32; graph.len()];
        let mut todo = vec![pickled.root];
        while let Some(id) = todo.pop() {
            count[id as usize] += 1;
            if count[id as usize] == 1 {
                graph.children(id, |c| todo.push(c));
            }
        }
        let (mut tensors, mut pinned) = (Vec::new(), HashSet::new());
        // Uses of argument lists and persistent ids that are understood. Where there are others, a
        // change would be seen by something that does not expect it.
        let mut known: HashMap<Id, u32> = HashMap::new();
        let mut seen = HashSet::new();
        for id in graph.ids().filter(|&id| count[id as usize] > 0) {
            let Some(object) = graph.object(id) else {
                continue;
            };
            let Seen::Tensor(tensor) = pickled.tensor(id)? else {
                continue;
            };
            if object.args == tensor.args {
                *known.entry(tensor.args).or_default() += 1;
            } else if graph
                .tuple(object.args)
                .is_some_and(|a| a.get(2) == Some(&tensor.args))
                && graph
                    .global(object.callable)
                    .is_some_and(|(m, n)| is_rebuild(m, n))
                && seen.insert(object.args)
            {
                // `_rebuild_from_type_v2(function, class, arguments, state)`
                *known.entry(tensor.args).or_default() += 1;
            }
            if seen.insert(tensor.args) {
                *known.entry(tensor.part).or_default() += 1;
                tensors.push(*tensor);
            }
        }
        let known = |id: Id| known.get(&id).copied().unwrap_or(0);
        for (&id, part) in &pickled.parts {
            if known(id) != count[id as usize] {
                pinned.insert(part.storage);
            }
        }
        for t in &tensors {
            if known(t.args) != count[t.args as usize] {
                pinned.insert(t.storage);
            }
        }
        Ok(Uses {
            count,
            tensors,
            pinned,
        })
    }

    fn reached(&self, id: Id) -> bool {
        self.count[id as usize] > 0
    }
}

/// Writes what is kept of a storage's bytes, through a window of fixed size.
fn write_storage(
    source: &Source,
    data: &DataLocation,
    nbytes: u64,
    packing: &Packing,
    out: &mut impl Write,
) -> Result<()> {
    let mut reader = Reader::new(source, data);
    let mut at = 0;
    packing.pieces.runs(nbytes, |run, to| {
        zeros(to - at, out)?;
        at = to + (run.end - run.start);
        reader.copy(run, out)
    })?;
    zeros(packing.nbytes - at, out)?;
    reader.finish()
}

/// Padding between ranges, so that elements stay aligned.
fn zeros(n: u64, out: &mut impl Write) -> Result<()> {
    debug_assert!(n < 16);
    put(out, &[0; 16][..n as usize])
}

/// Bytes of a storage, read in ascending order.
enum Reader<'a> {
    Stored {
        source: &'a Source,
        offset: u64,
        end: u64,
        buffer: Vec<u8>,
        /// Position of the buffer in the storage.
        at: u64,
        /// Whether the buffer has served more than the run it was filled for.
        served: bool,
    },
    Deflated {
        stream: Box<Inflated<'a>>,
        at: u64,
        buffer: Vec<u8>,
    },
}

/// Bytes read at a time.
const BUFFER: u64 = 256 * 1024;

impl<'a> Reader<'a> {
    fn new(source: &'a Source, data: &DataLocation) -> Reader<'a> {
        let (offset, length) = (data.offset, data.length);
        match data.encoding {
            Encoding::Stored => Reader::Stored {
                source,
                offset,
                end: length,
                buffer: Vec::new(),
                at: 0,
                served: true,
            },
            Encoding::Deflated {
                inflated, crc32, ..
            } => Reader::Deflated {
                stream: Box::new(Inflated::new(source, offset, length, inflated, crc32)),
                at: 0,
                buffer: Vec::new(),
            },
        }
    }

    fn copy(&mut self, run: Range<u64>, out: &mut impl Write) -> Result<()> {
        let len = run.end - run.start;
        match self {
            Reader::Stored { source, offset, .. } if len >= BUFFER => {
                copy(source, *offset + run.start, len, out)
            }
            Reader::Stored {
                source,
                offset,
                end,
                buffer,
                at,
                served,
            } => {
                if run.start < *at || run.end > *at + buffer.len() as u64 {
                    // Runs far apart are read one by one.
                    let ahead = if *served { BUFFER } else { len };
                    *buffer = source.read_vec(*offset + run.start, ahead.min(*end - run.start))?;
                    *at = run.start;
                    *served = false;
                } else {
                    *served = true;
                }
                let start = (run.start - *at) as usize;
                put(out, &buffer[start..start + len as usize])
            }
            Reader::Deflated { stream, at, buffer } => {
                stream.skip(run.start - *at)?;
                *at = run.end;
                let mut left = len;
                while left > 0 {
                    buffer.resize(left.min(BUFFER) as usize, 0);
                    stream.read(buffer)?;
                    put(out, buffer)?;
                    left -= buffer.len() as u64;
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Reader::Stored { .. } => Ok(()),
            Reader::Deflated { stream, .. } => stream.finish(),
        }
    }
}

/// Counts what is written to it.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
