//! PyTorch's own files: one pickle of objects, in which storages are persistent ids.

mod globals;
pub(crate) mod legacy;
mod names;
mod rebuild;
pub(crate) mod tar;
pub(crate) mod zip;

use crate::pickle::{Graph, Id, Node};
use osteon_spec::{DType, Result};
use std::collections::HashMap;

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
    /// The size, which [`rebuild::storage_id`] has checked to be one.
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
