//! `torch.save` before PyTorch 0.1.10: a tar archive of `storages`, `tensors` and the `pickle` of an
//! object in which tensors are numbers. It is read into the graph that later versions would have written.

use super::{File, Pickled, Storage, globals, legacy};
use crate::catalog::Format;
use crate::error::bad;
use crate::pickle::{self, Graph, Id, Make, Node, Object};
use crate::source::{Cursor, Source};
use osteon_spec::{MAX_RANK, Result};
use std::collections::HashMap;

const BLOCK: u64 = 512;

/// The mark of a tar archive's first header.
pub(crate) fn is_ustar(start: &[u8]) -> bool {
    start.get(257..262) == Some(b"ustar")
}

pub(super) fn is_tar(source: &Source) -> Result<bool> {
    Ok(source.len() >= BLOCK && is_ustar(&source.read_vec(0, BLOCK)?))
}

/// The members of the archive by name: where their bytes are.
fn members(source: &Source) -> Result<HashMap<String, (u64, u64)>> {
    let mut members = HashMap::new();
    let mut at = 0;
    loop {
        let header = source.read_vec(at, BLOCK)?;
        if header.iter().all(|&b| b == 0) {
            return Ok(members);
        }
        let fail = |what: &str| bad(format!("tar header at byte {at}: {what}"));
        if !is_ustar(&header) {
            return Err(fail("is not one"));
        }
        let sum: u64 = header.iter().map(|&b| u64::from(b)).sum();
        let own: u64 = header[148..156].iter().map(|&b| u64::from(b)).sum();
        // The checksum is taken with its own field as eight spaces.
        if octal(&header[148..156]) != Some(sum - own + 8 * 32) {
            return Err(fail("has a wrong checksum"));
        }
        let size = octal(&header[124..136]).ok_or_else(|| fail("has no size"))?;
        let start = at + BLOCK;
        let end = start.checked_add(size).filter(|&end| end <= source.len());
        let end = end.ok_or_else(|| fail("announces more bytes than there are"))?;
        let name = header[..100].split(|&b| b == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name)
            .trim_start_matches("./")
            .to_owned();
        if matches!(header[156], 0 | b'0') && members.insert(name, (start, end)).is_some() {
            return Err(fail("repeats a name"));
        }
        at = end.next_multiple_of(BLOCK);
    }
}

/// A number in octal digits, between spaces and zero bytes.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

/// A storage, or part of one, as `storages` lists it.
struct Listed {
    module: Box<str>,
    class: Box<str>,
    location: String,
    numel: u64,
    /// The storage it is a part of, and the part.
    part: Option<(i64, i64, i64)>,
}

/// Builds the graph of a checkpoint from the three members.
struct Reader<'a> {
    source: &'a Source,
    storages: HashMap<i64, Listed>,
    /// Where each storage's bytes are, by its key.
    data: HashMap<String, u64>,
}

impl Reader<'_> {
    fn read_storages(&mut self, (start, end): (u64, u64)) -> Result<()> {
        let mut c = Cursor::new(self.source, start, end);
        for _ in 0..pickled_int(&mut c)? {
            let (graph, root) = pickle::run(&mut c)?;
            let listed = graph.tuple(root).and_then(|t| match *t {
                [key, location, class] => {
                    let (module, name) = graph.global(class)?;
                    let (_, size) = globals::storage_class(module, name)?;
                    Some((graph.int(key)?, graph.str(location)?, module, name, size))
                }
                _ => None,
            });
            let (key, location, module, class, size) =
                listed.ok_or_else(|| bad("a storage without key, location and class"))?;
            let numel = i64::from_le_bytes(c.array()?);
            let bytes = u64::try_from(numel).ok().and_then(|n| n.checked_mul(size));
            let bytes = bytes.ok_or_else(|| bad(format!("storage {key} has {numel} elements")))?;
            let offset = c
                .skip(bytes)
                .map_err(|e| e.context(format_args!("storage {key}")))?;
            let (module, class) = (module.into(), class.into());
            let listed = Listed {
                module,
                class,
                location,
                numel: numel as u64,
                part: None,
            };
            self.data.insert(key.to_string(), offset);
            if self.storages.insert(key, listed).is_some() {
                return Err(bad(format!("storage {key} appears twice")));
            }
        }
        let (graph, root) = pickle::run(&mut c)?;
        let mut views = Vec::new();
        graph.children(root, |view| views.push(view));
        for view in views {
            let ints = graph
                .tuple(view)
                .map(|t| t.iter().map(|&n| graph.int(n)).collect::<Option<Vec<_>>>());
            let Some(Some(&[key, root, offset, numel])) = ints.as_ref().map(|v| v.as_deref())
            else {
                return Err(bad("a part of a storage that is none"));
            };
            let of = self.storages.get(&root).filter(|s| s.part.is_none());
            let of = of.ok_or_else(|| {
                bad(format!(
                    "storage {key} is part of {root}, which is not there"
                ))
            })?;
            let part = Listed {
                module: of.module.clone(),
                class: of.class.clone(),
                location: of.location.clone(),
                numel: of.numel,
                part: Some((root, offset, numel)),
            };
            self.storages.insert(key, part);
        }
        Ok(())
    }

    /// Turns each number that the pickle has for a tensor into the call that makes it.
    fn read_tensors(&self, (start, end): (u64, u64), graph: &mut Graph, root: Id) -> Result<Id> {
        let mut numbers: HashMap<i64, Vec<Id>> = HashMap::new();
        let mut made = HashMap::new();
        for id in graph.ids() {
            let Node::Persistent(pid) = *graph.node(id) else {
                continue;
            };
            if let Some(key) = graph.int(pid) {
                numbers.entry(key).or_default().push(id);
            } else if let Some(&[class, ..]) = graph.tuple(pid) {
                // The class of a module, with its source.
                made.insert(id, class);
            }
            // Its place is taken by what it stands for; left as it is, it would be taken for a storage.
            *graph.node_mut(id) = Node::None;
        }
        let rebuild = graph.push(Node::Global {
            module: "torch._utils".into(),
            name: "_rebuild_tensor".into(),
        })?;
        let mut c = Cursor::new(self.source, start, end);
        for _ in 0..pickled_int(&mut c)? {
            let (listed, root) = pickle::run(&mut c)?;
            let ids = listed.tuple(root).and_then(|t| match *t {
                [key, storage, _class] => Some((listed.int(key)?, listed.int(storage)?)),
                _ => None,
            });
            let (key, storage) = ids.ok_or_else(|| bad("a tensor without key and storage"))?;
            let args = self
                .tensor(&mut c, storage, graph)
                .map_err(|e| e.context(format_args!("tensor {key}")))?;
            let tensor = graph.push(Node::Object(Box::new(Object {
                make: Make::Reduce,
                callable: rebuild,
                args,
                edits: Vec::new(),
            })))?;
            // All mentions of a number are one tensor.
            made.extend(
                numbers
                    .remove(&key)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|id| (id, tensor)),
            );
        }
        graph.redirect(&made);
        match numbers.keys().min() {
            Some(key) => Err(bad(format!("tensor {key} is used, but not there"))),
            None => Ok(made.get(&root).copied().unwrap_or(root)),
        }
    }

    /// The arguments `(storage, offset, sizes, strides)` of a tensor.
    fn tensor(&self, c: &mut Cursor<'_>, storage: i64, graph: &mut Graph) -> Result<Id> {
        let rank = i32::from_le_bytes(c.array()?);
        let rank = usize::try_from(rank).ok().filter(|&r| r <= MAX_RANK);
        let rank = rank.ok_or_else(|| bad("has no possible rank"))?;
        c.skip(4)?; // the rank was once written in eight bytes
        let mut list = |graph: &mut Graph| -> Result<Id> {
            let mut items = Vec::new();
            for _ in 0..rank {
                items.push(graph.push(Node::Int(i64::from_le_bytes(c.array()?)))?);
            }
            graph.push(Node::Tuple(items.into()))
        };
        let (sizes, strides) = (list(graph)?, list(graph)?);
        let offset = graph.push(Node::Int(i64::from_le_bytes(c.array()?)))?;
        let listed = self.storages.get(&storage);
        let listed = listed.ok_or_else(|| bad(format!("its storage {storage} is not there")))?;
        let storage = listed.persistent_id(storage, graph)?;
        graph.push(Node::Tuple([storage, offset, sizes, strides].into()))
    }
}

impl Listed {
    /// The persistent id by which later versions name this storage.
    fn persistent_id(&self, key: i64, graph: &mut Graph) -> Result<Id> {
        let text = |s: &str| Node::Str(s.as_bytes().into());
        let root = self.part.map_or(key, |(root, _, _)| root);
        let tag = graph.push(text("storage"))?;
        let class = graph.push(Node::Global {
            module: self.module.clone(),
            name: self.class.clone(),
        })?;
        let root = graph.push(text(&root.to_string()))?;
        let location = graph.push(text(&self.location))?;
        let numel = graph.push(Node::Int(self.numel as i64))?;
        let mut fields = vec![tag, class, root, location, numel];
        if let Some((_, start, numel)) = self.part {
            let part = [text(&key.to_string()), Node::Int(start), Node::Int(numel)];
            let part: Vec<Id> = part
                .into_iter()
                .map(|n| graph.push(n))
                .collect::<Result<_>>()?;
            fields.push(graph.push(Node::Tuple(part.into()))?);
        }
        let pid = graph.push(Node::Tuple(fields.into()))?;
        graph.push(Node::Persistent(pid))
    }
}

/// How many entries follow: a pickle of a number.
fn pickled_int(c: &mut Cursor<'_>) -> Result<i64> {
    let (graph, root) = pickle::run(c)?;
    graph
        .int(root)
        .ok_or_else(|| bad("a count that is not a number"))
}

pub(super) fn open(source: &Source) -> Result<File> {
    let members = members(source)?;
    let member = |name: &str| {
        let found = members.get(name).copied();
        found.ok_or_else(|| bad(format!("the tar archive has no member {name:?}")))
    };
    let mut reader = Reader {
        source,
        storages: HashMap::new(),
        data: HashMap::new(),
    };
    reader
        .read_storages(member("storages")?)
        .map_err(|e| e.context("member \"storages\""))?;
    let (start, end) = member("pickle")?;
    let (mut graph, root) = pickle::run(&mut Cursor::new(source, start, end))
        .map_err(|e| e.context("member \"pickle\""))?;
    let root = reader
        .read_tensors(member("tensors")?, &mut graph, root)
        .map_err(|e| e.context("member \"tensors\""))?;
    let pickled = Pickled::new(graph, root)?;
    let offset = |s: &Storage| {
        let offset = reader.data.get(&s.key).copied();
        offset.ok_or_else(|| bad(format!("the data of storage {:?} is missing", s.key)))
    };
    let offsets = pickled.storages.iter().map(offset).collect::<Result<_>>()?;
    Ok(legacy::file(Format::PtTar, pickled, offsets, 0))
}
