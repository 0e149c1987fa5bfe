//! A dict of tensors as `torch.save` writes it.

use super::globals::storage_class_name;
use crate::atomic::put;
use crate::pickle::{self, Graph, Id, Make, Node, Object};
use crate::save::{Held, Tensors, slice};
use crate::source::Source;
use crate::zipwrite::Writer;
use osteon_spec::{DType, Result};
use std::collections::HashMap;
use std::io::Write;

/// Writes the archive; `name` is what its records begin with.
pub(crate) fn write(tensors: &Tensors<'_>, name: &str, out: &mut impl Write) -> Result<()> {
    let (graph, root) = Builder::new(tensors)?.dict()?;
    let mut data = Vec::new();
    pickle::emit(&graph, root, &Source::from_bytes(Vec::new()), &mut data)?;
    let mut zip = Writer::new(out);
    zip.put(&format!("{name}/data.pkl"), &data)?;
    zip.put(&format!("{name}/.format_version"), b"1")?;
    zip.put(&format!("{name}/.storage_alignment"), b"64")?;
    let order: &[u8] = if cfg!(target_endian = "little") {
        b"little"
    } else {
        b"big"
    };
    zip.put(&format!("{name}/byteorder"), order)?;
    for (number, (storage, guard)) in tensors.storages.iter().enumerate() {
        zip.record(
            &format!("{name}/data/{number}"),
            storage.nbytes() as u64,
            |out| put(out, slice(guard)),
        )?;
    }
    zip.put(&format!("{name}/version"), b"3\n")?;
    zip.finish()
}

/// Builds the graph, in which names are shared as Python would share them.
struct Builder<'a> {
    tensors: &'a Tensors<'a>,
    graph: Graph,
    globals: HashMap<(&'static str, &'static str), Id>,
    /// The dtype of each storage: the one of all its tensors, if PyTorch has a storage class for it.
    typed: Vec<Option<DType>>,
    tag: Id,
    location: Id,
}

impl<'a> Builder<'a> {
    fn new(tensors: &'a Tensors<'a>) -> Result<Builder<'a>> {
        let mut typed = vec![None; tensors.storages.len()];
        for t in &tensors.list {
            let dtype = t.view.dtype();
            let fits = t.view.storage().nbytes() % dtype.size() == 0;
            let own = Some(dtype).filter(|d| fits && storage_class_name(*d).is_some());
            match &mut typed[t.storage] {
                first @ None => *first = Some(own),
                Some(seen) if *seen != own => *seen = None,
                Some(_) => {}
            }
        }
        let mut graph = Graph::default();
        let tag = graph.push(Node::Str(b"storage"[..].into()))?;
        let location = graph.push(Node::Str(b"cpu"[..].into()))?;
        let typed = typed.into_iter().map(Option::flatten).collect();
        Ok(Builder {
            tensors,
            graph,
            globals: HashMap::new(),
            typed,
            tag,
            location,
        })
    }

    fn dict(mut self) -> Result<(Graph, Id)> {
        let mut items = Vec::new();
        for t in &self.tensors.list {
            let key = self.graph.push(Node::Str(t.name.as_bytes().into()))?;
            items.push((key, self.tensor(t)?));
        }
        let root = self.graph.push(Node::Dict(items))?;
        Ok((self.graph, root))
    }

    /// `_rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks)`; where the storage has no
    /// dtype, `_rebuild_tensor_v3` with the tensor's.
    fn tensor(&mut self, t: &Held<'_>) -> Result<Id> {
        let typed = self.typed[t.storage].is_some();
        let storage = self.storage(t)?;
        let offset = self.int(t.view.storage_offset())?;
        let sizes = self.ints(t.view.shape())?;
        let strides = self.ints(t.view.stride())?;
        let grad = self.graph.push(Node::Bool(false))?;
        let ordered_dict = self.global("collections", "OrderedDict")?;
        let none = self.graph.push(Node::Tuple(Box::default()))?;
        let hooks = self.call(ordered_dict, none)?;
        let mut args = vec![storage, offset, sizes, strides, grad, hooks];
        if !typed {
            args.push(self.global("torch", t.view.dtype().name())?);
        }
        let name = if typed {
            "_rebuild_tensor_v2"
        } else {
            "_rebuild_tensor_v3"
        };
        let function = self.global("torch._utils", name)?;
        let args = self.graph.push(Node::Tuple(args.into()))?;
        self.call(function, args)
    }

    /// The persistent id `('storage', class, key, 'cpu', numel)`.
    fn storage(&mut self, t: &Held<'_>) -> Result<Id> {
        let typed = self.typed[t.storage];
        let nbytes = t.view.storage().nbytes();
        let class = match typed.and_then(storage_class_name) {
            Some(name) => self.global("torch", name)?,
            None => self.global("torch.storage", "UntypedStorage")?,
        };
        let key = self
            .graph
            .push(Node::Str(t.storage.to_string().into_bytes().into()))?;
        let numel = self.int(nbytes / typed.map_or(1, DType::size))?;
        let id = self.graph.push(Node::Tuple(
            [self.tag, class, key, self.location, numel].into(),
        ))?;
        self.graph.push(Node::Persistent(id))
    }

    fn global(&mut self, module: &'static str, name: &'static str) -> Result<Id> {
        if let Some(&id) = self.globals.get(&(module, name)) {
            return Ok(id);
        }
        let id = self.graph.push(Node::Global {
            module: module.into(),
            name: name.into(),
        })?;
        self.globals.insert((module, name), id);
        Ok(id)
    }

    fn call(&mut self, callable: Id, args: Id) -> Result<Id> {
        let object = Object {
            make: Make::Reduce,
            callable,
            args,
            edits: Vec::new(),
        };
        self.graph.push(Node::Object(Box::new(object)))
    }

    fn int(&mut self, n: usize) -> Result<Id> {
        // Sizes, strides and offsets fit an `isize`: L2 and L3 of `Layout`.
        self.graph.push(Node::Int(n as i64))
    }

    fn ints(&mut self, list: &[usize]) -> Result<Id> {
        let ids = list
            .iter()
            .map(|&n| self.int(n))
            .collect::<Result<Vec<_>>>()?;
        self.graph.push(Node::Tuple(ids.into()))
    }
}
