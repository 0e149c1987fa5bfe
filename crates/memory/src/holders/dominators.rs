//! What would be freed if one tensor went: the storages that every way from the program's hands leads to through it.
//!
//! Heap profilers call these the storages that the tensor dominates, and their bytes its retained size. Dominators are
//! found by the iteration of Cooper, Harvey and Kennedy.

use super::heap::{Heap, Id, Thing};
use crate::map::no_memory;
use crate::registry::{TensorInfo, Viewer};
use osteon_spec::Result;
use std::collections::TryReserveError;

/// Tensors by what would be freed if they went; see [`dominators`].
#[derive(Clone, Debug)]
pub struct Dominators {
    /// Those that would free anything: most bytes first.
    pub entries: Vec<Dominator>,
}

/// A tensor and what would be freed if all its handles went.
#[derive(Clone, Debug)]
pub struct Dominator {
    /// The tensor.
    pub tensor: TensorInfo,
    /// The id of the storage that it looks at.
    pub storage: u64,
    /// How many storages would go.
    pub storages: u64,
    /// The bytes of their blocks.
    pub retained: u64,
}

/// The tensors in the program's hands by what would be freed if each went alone: its storage, if nothing else holds it,
/// and what only its graph of derivatives and its gradient keep.
///
/// Costs a walk over all storages, tensors and graphs of the process.
///
/// # Errors
/// Out of memory.
pub fn dominators() -> Result<Dominators> {
    let find = || {
        let heap = Heap::survey()?;
        let sizes = heap.retained()?;
        let mut entries = Vec::new();
        for (thing, &(storages, retained)) in heap.things.iter().zip(&sizes) {
            if let Thing::Tensor {
                storage,
                info,
                root: true,
                ..
            } = thing
                && retained > 0
            {
                entries.try_reserve(1)?;
                entries.push(Dominator {
                    tensor: info.clone(),
                    storage: heap.storages[*storage].id,
                    storages,
                    retained,
                });
            }
        }
        entries.sort_unstable_by_key(|d: &Dominator| (std::cmp::Reverse(d.retained), d.storage));
        Ok::<_, TryReserveError>(Dominators { entries })
    };
    find().map_err(|_| no_memory("tensors"))
}

/// The bytes of blocks that would be free if this tensor went, with all its handles.
///
/// # Errors
/// Out of memory.
///
/// ```
/// use osteon_memory::{Role, Storage, Viewer, retained};
/// use osteon_spec::{DType, Device, Layout};
/// let here = std::panic::Location::caller();
/// let storage = Storage::allocate(4096, &Device::cpu(), "zeros", here)?;
/// let row = Viewer::register(storage, Layout::contiguous(&[10])?, DType::F32, "zeros", here, Role::Tensor)?;
/// assert_eq!(retained(&row)?, 4096);
/// let handle = row.storage().clone(); // now somebody else has it too
/// assert_eq!(retained(&row)?, 0);
/// # drop(handle);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn retained(tensor: &Viewer) -> Result<u64> {
    let find = || {
        let heap = Heap::survey()?;
        let sizes = heap.retained()?;
        Ok::<_, TryReserveError>(heap.tensor(tensor).map(|id| sizes[id as usize].1))
    };
    match find() {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) | Err(_) => Err(no_memory("tensors")),
    }
}

/// Nothing was assigned.
const NONE: u32 = u32::MAX;

impl Heap {
    /// For each thing the number and bytes of the blocks that it dominates.
    pub(super) fn retained(&self) -> std::result::Result<Vec<(u64, u64)>, TryReserveError> {
        let order = self.post_order()?;
        let dominators = self.immediate_dominators(&order)?;
        let mut sizes = filled((0, 0), self.len())?;
        for &thing in &order {
            if let Thing::Storage(s) = self.things[thing as usize]
                && self.storages[s].allocated > 0
            {
                let (n, bytes) = &mut sizes[thing as usize];
                (*n, *bytes) = (*n + 1, *bytes + self.storages[s].allocated as u64);
            }
            // In post-order a thing comes before its dominator.
            let (n, bytes) = sizes[thing as usize];
            if let Some(sum) = sizes.get_mut(dominators[thing as usize] as usize) {
                (sum.0, sum.1) = (sum.0 + n, sum.1 + bytes);
            }
        }
        Ok(sizes)
    }

    /// What can be reached from the roots, each thing after all that is only reached through it.
    fn post_order(&self) -> std::result::Result<Vec<Id>, TryReserveError> {
        let mut order: Vec<Id> = Vec::new();
        order.try_reserve_exact(self.len())?;
        let mut seen = filled(false, self.len())?;
        // A thing, and how many of the things it keeps have been visited.
        let mut stack: Vec<(Id, usize)> = Vec::new();
        for root in (0..self.len() as Id).filter(|&id| self.is_root(id)) {
            if std::mem::replace(&mut seen[root as usize], true) {
                continue;
            }
            stack.try_reserve(1)?;
            stack.push((root, 0));
            while let Some((thing, visited)) = stack.last_mut() {
                match self.keeps(*thing).get(*visited) {
                    Some(&kept) => {
                        *visited += 1;
                        if !std::mem::replace(&mut seen[kept as usize], true) {
                            stack.try_reserve(1)?;
                            stack.push((kept, 0));
                        }
                    }
                    None => {
                        order.push(*thing);
                        stack.pop();
                    }
                }
            }
        }
        Ok(order)
    }

    /// For each thing the nearest one through which all ways lead; [`NONE`] where that is the program itself.
    fn immediate_dominators(&self, order: &[Id]) -> std::result::Result<Vec<Id>, TryReserveError> {
        // The program is a thing of its own, behind all others in post-order.
        let program = order.len() as u32;
        let mut rank = filled(NONE, self.len())?;
        for (at, &thing) in order.iter().enumerate() {
            rank[thing as usize] = at as u32;
        }
        let (starts, keepers) = self.keepers()?;
        // By rank.
        let mut nearest = filled(NONE, order.len() + 1)?;
        nearest[program as usize] = program;
        let mut changed = true;
        while changed {
            changed = false;
            for (at, &thing) in order.iter().enumerate().rev() {
                let mut new = if self.is_root(thing) { program } else { NONE };
                for &keeper in &keepers[starts[thing as usize]..starts[thing as usize + 1]] {
                    let by = rank[keeper as usize];
                    if by == NONE || nearest[by as usize] == NONE {
                        continue;
                    }
                    new = if new == NONE {
                        by
                    } else {
                        meet(&nearest, new, by)
                    };
                }
                if nearest[at] != new {
                    nearest[at] = new;
                    changed = true;
                }
            }
        }
        let mut dominators = filled(NONE, self.len())?;
        for (at, &thing) in order.iter().enumerate() {
            dominators[thing as usize] = match order.get(nearest[at] as usize) {
                Some(&by) => by,
                None => NONE,
            };
        }
        Ok(dominators)
    }
}

/// The nearest common dominator of two ranks.
fn meet(nearest: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        if a < b {
            a = nearest[a as usize];
        } else {
            b = nearest[b as usize];
        }
    }
    a
}

fn filled<T: Clone>(value: T, n: usize) -> std::result::Result<Vec<T>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(n)?;
    list.resize(n, value);
    Ok(list)
}
