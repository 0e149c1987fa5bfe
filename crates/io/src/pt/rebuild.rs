//! From calls of `torch._utils._rebuild_*` that were not made to tensors, and from persistent ids to
//! storages.

use super::{Part, Pickled, Storage, globals};
use crate::error::bad;
use crate::pickle::{Graph, Id};
use osteon_spec::{DType, Dims, Layout, Result};
use std::collections::HashMap;

/// A tensor as the pickle describes it, checked against its storage's size.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    /// The persistent id of its storage.
    pub part: Id,
    pub storage: usize,
    pub dtype: DType,
    /// Sizes, strides and offset over the whole storage.
    pub layout: Layout,
    pub requires_grad: bool,
    pub conj: bool,
    pub neg: bool,
    /// The arguments of the call that makes it: storage, offset, sizes, strides first.
    pub args: Id,
    /// Attributes that are saved with it.
    pub state: Option<Id>,
}

/// What a node is, seen as a tensor.
#[derive(Debug)]
pub(crate) enum Seen {
    Tensor(Box<Tensor>),
    /// A tensor of a kind that is not read here, and which.
    Unsupported(String),
    /// No tensor; there may be some inside.
    Other,
}

/// Wrappers around a tensor: a parameter of a subclass of …; hostile files could go on.
const MAX_WRAPPERS: usize = 8;

/// Whether a call of this makes a tensor out of a storage or another tensor.
pub(super) fn is_rebuild(module: &str, name: &str) -> bool {
    match module {
        "torch._utils" => matches!(
            name,
            "_rebuild_tensor"
                | "_rebuild_tensor_v2"
                | "_rebuild_tensor_v3"
                | "_rebuild_parameter"
                | "_rebuild_parameter_with_state"
                | "_rebuild_qtensor"
                | "_rebuild_meta_tensor_no_storage"
        ),
        "torch._tensor" | "torch.tensor" => {
            matches!(name, "_rebuild_from_type" | "_rebuild_from_type_v2")
        }
        _ => false,
    }
}

impl Pickled {
    /// The tensor that a node stands for.
    pub(super) fn tensor(&self, id: Id) -> Result<Seen> {
        let graph = &self.graph;
        let Some(object) = graph.object(id) else {
            return Ok(Seen::Other);
        };
        let (mut callable, mut args) = (object.callable, object.args);
        let mut requires_grad = None;
        let mut state = None;
        for _ in 0..MAX_WRAPPERS {
            let Some((module, name)) = graph.global(callable).filter(|(m, n)| is_rebuild(m, n))
            else {
                return Ok(Seen::Other);
            };
            let list = graph
                .tuple(args)
                .ok_or_else(|| bad(format!("{name} without arguments")))?;
            match (module, name, list) {
                ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state", _) => {
                    let [data, grad, _hooks, rest @ ..] = list else {
                        return Err(bad(format!("{name} with {} arguments", list.len())));
                    };
                    requires_grad = requires_grad.or(Some(truth(graph, *grad)));
                    state = state.or(rest.first().copied());
                    let Some(inner) = graph.object(*data) else {
                        return Ok(Seen::Other);
                    };
                    (callable, args) = (inner.callable, inner.args);
                }
                ("torch._tensor" | "torch.tensor", _, &[func, _class, inner, rest]) => {
                    state = state.or(Some(rest));
                    (callable, args) = (func, inner);
                }
                ("torch._utils", "_rebuild_qtensor", _) => {
                    return Ok(Seen::Unsupported(
                        "quantized tensors are not supported".into(),
                    ));
                }
                ("torch._utils", "_rebuild_meta_tensor_no_storage", _) => {
                    return Ok(Seen::Unsupported(
                        "it is a meta tensor, without data".into(),
                    ));
                }
                ("torch._utils", _, _) => {
                    let (dtype, metadata) = match (name, list) {
                        ("_rebuild_tensor", [_, _, _, _]) => (None, None),
                        ("_rebuild_tensor_v2", [_, _, _, _, _, _]) => (None, None),
                        ("_rebuild_tensor_v2", &[_, _, _, _, _, _, meta]) => (None, Some(meta)),
                        ("_rebuild_tensor_v3", &[_, _, _, _, _, _, dtype]) => (Some(dtype), None),
                        ("_rebuild_tensor_v3", &[_, _, _, _, _, _, dtype, meta]) => {
                            (Some(dtype), Some(meta))
                        }
                        _ => return Err(bad(format!("{name} with {} arguments", list.len()))),
                    };
                    let grad = list.get(4).is_some_and(|&g| truth(graph, g));
                    let made = self.make(args, dtype, metadata)?;
                    return Ok(match made {
                        Seen::Tensor(t) => Seen::Tensor(Box::new(Tensor {
                            requires_grad: requires_grad.unwrap_or(grad),
                            state,
                            ..*t
                        })),
                        other => other,
                    });
                }
                _ => return Err(bad(format!("{name} with {} arguments", list.len()))),
            }
        }
        Err(bad(format!(
            "a tensor inside more than {MAX_WRAPPERS} wrappers"
        )))
    }

    /// A tensor from the arguments `(storage, offset, sizes, strides, …)`.
    fn make(&self, args: Id, dtype: Option<Id>, metadata: Option<Id>) -> Result<Seen> {
        let graph = &self.graph;
        let Some(&[storage, offset, sizes, strides, ..]) = graph.tuple(args) else {
            return Err(bad("a tensor without storage, offset, sizes and strides"));
        };
        let Some(&part) = self.parts.get(&storage) else {
            return Err(bad("a tensor whose storage is not one"));
        };
        let on = &self.storages[part.storage];
        let dtype = match dtype {
            None => part.dtype,
            Some(d) => match graph.global(d) {
                Some(("torch", name)) => match DType::from_name(name) {
                    Some(d) => Some(d),
                    None => {
                        return Ok(Seen::Unsupported(format!(
                            "its dtype torch.{name} is not supported"
                        )));
                    }
                },
                _ => return Err(bad("a tensor whose dtype is not one")),
            },
        };
        let Some(dtype) = dtype else {
            return Ok(Seen::Unsupported(
                "its dtype, a quantized one, is not supported".into(),
            ));
        };
        if on.is_meta() {
            return Ok(Seen::Unsupported(
                "it is a meta tensor, without data".into(),
            ));
        }
        let size = dtype.size() as u64;
        if part.start % size != 0 {
            return Err(bad("a tensor whose storage begins inside an element"));
        }
        let offset =
            natural(graph, offset).and_then(|o| o.checked_add((part.start / size) as usize));
        let offset = offset.ok_or_else(|| bad("a tensor whose offset is not a natural number"))?;
        let layout = Layout::new(naturals(graph, sizes)?, naturals(graph, strides)?, offset)?;
        // Without elements, an offset reaches nothing.
        if layout.required_len() as u64 * size > part.end {
            return Err(bad(format!(
                "{layout} of {dtype} needs {} bytes, but its storage {:?} has {}",
                layout.required_len() as u64 * size,
                on.key,
                part.end
            )));
        }
        let (conj, neg) = metadata.map_or((false, false), |m| self.flags(m));
        Ok(Seen::Tensor(Box::new(Tensor {
            part: storage,
            storage: part.storage,
            dtype,
            layout,
            requires_grad: false,
            conj,
            neg,
            args,
            state: None,
        })))
    }

    /// The conjugate and negative bits of a metadata dict.
    fn flags(&self, metadata: Id) -> (bool, bool) {
        let mut flags = (false, false);
        for (key, value) in super::names::items(&self.graph, metadata).unwrap_or_default() {
            match self.graph.str(key).as_deref() {
                Some("conj") => flags.0 = truth(&self.graph, value),
                Some("neg") => flags.1 = truth(&self.graph, value),
                _ => {}
            }
        }
        flags
    }

    /// Notes the storage that a persistent id names: `('storage', class, key, location, numel)`, in
    /// legacy files with a sixth field, a part of it.
    pub(super) fn add_storage(
        &mut self,
        id: Id,
        pid: Id,
        by_key: &mut HashMap<String, usize>,
    ) -> Result<()> {
        let Some((storage, view)) = storage_id(&self.graph, pid)? else {
            return Ok(());
        };
        let index = match by_key.get(&storage.key) {
            Some(&index) => {
                let first = &self.storages[index];
                if first.nbytes() != storage.nbytes() {
                    return Err(bad(format!(
                        "storage {:?} has {} bytes in one place and {} in another",
                        storage.key,
                        first.nbytes(),
                        storage.nbytes()
                    )));
                }
                index
            }
            None => {
                by_key.insert(storage.key.clone(), self.storages.len());
                self.storages.push(storage.clone());
                self.storages.len() - 1
            }
        };
        let (start, numel) = view.unwrap_or((0, storage.numel));
        let start = start * storage.item_size;
        let end = start + numel * storage.item_size;
        self.parts.insert(
            id,
            Part {
                storage: index,
                dtype: storage.dtype,
                item_size: storage.item_size,
                start,
                end,
            },
        );
        Ok(())
    }
}

/// A storage, and the part of it that is meant, as start and length in elements, where it is not all.
type Named = (Storage, Option<(u64, u64)>);

/// Reads a persistent id; `None` for the class of a module, which legacy files keep with its source.
fn storage_id(graph: &Graph, pid: Id) -> Result<Option<Named>> {
    let fields = graph.tuple(pid).unwrap_or_default();
    let tag = fields.first().and_then(|&t| graph.str(t));
    if tag.as_deref() == Some("module") {
        return Ok(None);
    }
    let (class, key, location, numel, view) = match *fields {
        [_, class, key, location, numel] => (class, key, location, numel, None),
        [_, class, key, location, numel, view] => (class, key, location, numel, Some(view)),
        _ => return Err(bad("a persistent id that is not a storage")),
    };
    let key = graph
        .str(key)
        .or_else(|| graph.int(key).map(|k| k.to_string()));
    let (Some("storage"), Some(key), Some(location)) = (tag.as_deref(), key, graph.str(location))
    else {
        return Err(bad("a persistent id that is not a storage"));
    };
    let Some((module, name)) = graph.global(class) else {
        return Err(bad(format!("storage {key:?} without a class")));
    };
    let Some((dtype, item_size)) = globals::storage_class(module, name) else {
        return Err(bad(format!(
            "storage {key:?} is of the unknown class {module}.{name}"
        )));
    };
    let size = natural(graph, numel).map(|n| n as u64).filter(|n| {
        n.checked_mul(item_size)
            .is_some_and(|b| b <= i64::MAX as u64)
    });
    let Some(numel) = size else {
        return Err(bad(format!(
            "storage {key:?} has no possible number of elements"
        )));
    };
    let view = match view.and_then(|v| graph.tuple(v)) {
        None => None,
        Some(&[_, start, len]) => {
            let part = natural(graph, start).zip(natural(graph, len));
            let part = part.map(|(s, l)| (s as u64, l as u64));
            match part.filter(|(s, l)| s.checked_add(*l).is_some_and(|end| end <= numel)) {
                Some(part) => Some(part),
                None => return Err(bad(format!("storage {key:?} has a part that leaves it"))),
            }
        }
        Some(_) => return Err(bad(format!("storage {key:?} has a part that is none"))),
    };
    let untyped = name == "UntypedStorage";
    Ok(Some((
        Storage {
            key,
            dtype,
            item_size,
            numel,
            location,
            untyped,
        },
        view,
    )))
}

fn natural(graph: &Graph, id: Id) -> Option<usize> {
    graph.int(id).and_then(|n| usize::try_from(n).ok())
}

/// A tuple of natural numbers, or a `torch.Size` of one.
fn naturals(graph: &Graph, id: Id) -> Result<Dims> {
    let list =
        graph
            .object(id)
            .and_then(|o| match (graph.global(o.callable), graph.tuple(o.args)) {
                (Some(("torch", "Size")), Some(&[list])) => Some(list),
                _ => None,
            });
    let list = graph.tuple(list.unwrap_or(id));
    list.and_then(|l| l.iter().map(|&n| natural(graph, n)).collect())
        .ok_or_else(|| bad("a tensor whose sizes or strides are not natural numbers"))
}

fn truth(graph: &Graph, id: Id) -> bool {
    *graph.node(id) == crate::pickle::Node::Bool(true)
}
