//! From what a program has in its hands to a storage.

use super::heap::{Heap, Id, Thing};
use crate::map::{Group, HeldBy, Root, StorageInfo, no_memory};
use crate::registry::{Role, TensorInfo};
use crate::storage::{GuardInfo, Site, Storage};
use osteon_spec::Error;
use std::cmp::Reverse;
use std::collections::TryReserveError;

/// Who holds a storage; see [`holders`].
#[derive(Clone, Debug)]
pub struct Holders {
    /// The storage. Its tensors are in `holders`.
    pub storage: StorageInfo,
    /// Everything in the program's hands that keeps the bytes, each with the shortest way from there to the storage:
    /// shortest ways first.
    pub holders: Vec<Holder>,
}

/// Something in a program's hands that keeps a storage.
#[derive(Clone, Debug)]
pub enum Holder {
    /// A tensor, through nothing or through what it keeps, the last step being a tensor on the storage.
    Tensor {
        /// The tensor: its label, operation and line.
        tensor: TensorInfo,
        /// The way from it to the storage; empty for a tensor on the storage itself.
        path: Vec<Step>,
    },
    /// A guard.
    Guard(GuardInfo),
    /// Handles to the storage itself: so many.
    Handles(usize),
}

/// A step on the way from a tensor to a storage.
#[derive(Clone, Debug)]
pub enum Step {
    /// A node of the graph of derivatives.
    Node {
        /// The operation that it is the derivative of.
        op: &'static str,
        /// The line that called it.
        site: Site,
    },
    /// A tensor: what a node saved, or a gradient.
    Tensor(TensorInfo),
}

/// Who holds a storage: the tensors in the program's hands that look at it, those whose graphs of derivatives saved
/// something on it, those whose gradient lies on it, guards, and handles.
///
/// Costs a walk over all storages, tensors and graphs of the process.
///
/// # Errors
/// Out of memory.
///
/// ```
/// use osteon_memory::{Holder, Role, Storage, Viewer, holders};
/// use osteon_spec::{DType, Device, Layout};
/// let here = std::panic::Location::caller();
/// let storage = Storage::allocate(4000, &Device::cpu(), "zeros", here)?;
/// let row = Viewer::register(storage.clone(), Layout::contiguous(&[10])?, DType::F32, "select", here, Role::View)?;
/// row.set_label("row");
/// let held = holders(&storage)?;
/// assert!(matches!(&held.holders[0], Holder::Tensor { tensor, .. } if tensor.op == "select"));
/// assert!(matches!(held.holders[1], Holder::Handles(1)));
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn holders(storage: &Storage) -> Result<Holders, Error> {
    let find = || Heap::survey()?.holders_of(storage.id());
    match find() {
        Ok(Some(holders)) => Ok(holders),
        // A storage with a handle is listed, if there is memory to list it.
        Ok(None) | Err(_) => Err(no_memory("holders of a storage")),
    }
}

/// Tells of groups that the graph of derivatives alone keeps whose graph it is. Walks over everything if there is
/// such a group; where there is no memory for that, they stay without.
pub(crate) fn name_roots<'a>(groups: impl IntoIterator<Item = &'a mut Group>) {
    let kept = |g: &&mut Group| matches!(g.held, HeldBy::Graph { .. });
    let mut kept = groups.into_iter().filter(kept).peekable();
    if kept.peek().is_none() {
        return;
    }
    let Ok(heap) = Heap::survey() else { return };
    let Ok(by) = heap.keeping_roots() else {
        return;
    };
    for group in kept {
        let root = heap.storage(group.newest).map(|s| by[s as usize]);
        if let Some(Thing::Tensor { info, .. }) = root.and_then(|r| heap.things.get(r as usize)) {
            group.root = Some(Root {
                label: info.label.clone(),
                op: info.op,
                site: info.site,
            });
        }
    }
}

impl Heap {
    /// For each thing, of the tensors in the program's hands that keep it, the one that keeps most; [`Id::MAX`] where
    /// there is none.
    fn keeping_roots(&self) -> Result<Vec<Id>, TryReserveError> {
        let sizes = self.retained()?;
        // What a node saved is in nobody's hands, also where the node was busy and told nothing.
        let in_hand = |&id: &Id| match &self.things[id as usize] {
            Thing::Tensor { root, info, .. } => *root && info.role != Role::Saved,
            _ => false,
        };
        let mut roots: Vec<Id> = Vec::new();
        roots.try_reserve_exact(self.len())?;
        roots.extend((0..self.len() as Id).filter(in_hand));
        roots.sort_by_key(|&id| Reverse(sizes[id as usize].1));
        let mut by: Vec<Id> = Vec::new();
        by.try_reserve_exact(self.len())?;
        by.resize(self.len(), Id::MAX);
        let mut waiting: Vec<Id> = Vec::new();
        waiting.try_reserve_exact(self.len())?;
        for root in roots {
            // Another root that it keeps is its own.
            by[root as usize] = root;
            waiting.push(root);
            while let Some(thing) = waiting.pop() {
                for &kept in self.keeps(thing) {
                    if by[kept as usize] == Id::MAX {
                        by[kept as usize] = root;
                        waiting.push(kept);
                    }
                }
            }
        }
        Ok(by)
    }

    /// Who holds the storage with an id.
    fn holders_of(mut self, id: u64) -> Result<Option<Holders>, TryReserveError> {
        let Some(storage) = self.storage(id) else {
            return Ok(None);
        };
        let (starts, keepers) = self.keepers()?;
        // Outwards from the storage: `next` is the thing one step nearer to it.
        let mut next: Vec<Id> = Vec::new();
        next.try_reserve_exact(self.len())?;
        next.resize(self.len(), Id::MAX);
        let mut order: Vec<Id> = Vec::new();
        order.try_reserve_exact(self.len())?;
        order.push(storage);
        next[storage as usize] = storage;
        let (mut at, mut holders) = (0, Vec::new());
        while let Some(&thing) = order.get(at) {
            at += 1;
            if let Thing::Tensor {
                info, root: true, ..
            } = &self.things[thing as usize]
            {
                holders.try_reserve(1)?;
                holders.push(Holder::Tensor {
                    tensor: info.clone(),
                    path: self.path(thing, storage, &next)?,
                });
            }
            for &keeper in &keepers[starts[thing as usize]..starts[thing as usize + 1]] {
                if next[keeper as usize] == Id::MAX {
                    next[keeper as usize] = thing;
                    order.push(keeper);
                }
            }
        }
        let info = &self.storages[storage as usize];
        holders.try_reserve(info.guards.len() + 1)?;
        holders.extend(info.guards.iter().copied().map(Holder::Guard));
        if info.handles > 0 {
            holders.push(Holder::Handles(info.handles));
        }
        let storage = self.storages.swap_remove(storage as usize);
        Ok(Some(Holders { storage, holders }))
    }

    /// What lies between a tensor and a storage.
    fn path(&self, from: Id, to: Id, next: &[Id]) -> Result<Vec<Step>, TryReserveError> {
        let mut path = Vec::new();
        let mut at = next[from as usize];
        while at != to {
            path.try_reserve(1)?;
            match &self.things[at as usize] {
                Thing::Object(Some((op, site))) => path.push(Step::Node { op, site }),
                Thing::Tensor { info, .. } => path.push(Step::Tensor(info.clone())),
                Thing::Object(None) | Thing::Storage(_) => {}
            }
            at = next[at as usize];
        }
        Ok(path)
    }
}
