//! Tensors that keep more bytes than they reach.

use crate::label::Label;
use crate::map::{map, no_memory, placed};
use crate::registry::{Role, TensorInfo};
use crate::storage::Origin;
use osteon_spec::{Result, reached_bytes};
use std::cmp::Reverse;

/// Tensors by the bytes that they keep beyond those they reach; see [`pins`].
#[derive(Clone, Debug)]
pub struct Pins {
    /// What [`Pin::frees`] says decides, then [`Pin::beyond`].
    pub entries: Vec<Pin>,
}

/// A tensor that keeps more of its storage than it reaches.
#[derive(Clone, Debug)]
pub struct Pin {
    /// The tensor.
    pub tensor: TensorInfo,
    /// Its storage's id.
    pub storage: u64,
    /// Its storage's label.
    pub label: Option<Label>,
    /// What made the storage.
    pub origin: Origin,
    /// The storage's bytes.
    pub nbytes: usize,
    /// The bytes that the tensor reaches.
    pub reached: usize,
    /// How many tensors are on the storage.
    pub tensors: usize,
    /// The bytes that would be free if this and all other tensors of the storage were replaced by their `compact()`.
    pub frees: usize,
}

impl Pin {
    /// The bytes that the tensor keeps and does not reach.
    pub fn beyond(&self) -> usize {
        self.nbytes.saturating_sub(self.reached)
    }
}

/// The tensors that keep more bytes of their storages than they reach. What is first would free most if its storage's
/// tensors were replaced by their `compact()`; where that is 0, somebody else needs the bytes too.
///
/// # Errors
/// Out of memory.
pub fn pins() -> Result<Pins> {
    let mut entries = Vec::new();
    for s in map().storages {
        let frees = s.compact_frees();
        for t in s.tensors.iter().filter(|t| t.role != Role::Saved) {
            let reached = reached_bytes(&[placed(t)])?;
            if reached >= s.nbytes {
                continue;
            }
            entries.try_reserve(1).map_err(|_| no_memory("views"))?;
            entries.push(Pin {
                tensor: t.clone(),
                storage: s.id,
                label: s.label.clone(),
                origin: s.origin.clone(),
                nbytes: s.nbytes,
                reached,
                tensors: s.tensors.len(),
                frees,
            });
        }
    }
    entries.sort_unstable_by_key(|p: &Pin| (Reverse((p.frees, p.beyond())), p.storage));
    Ok(Pins { entries })
}
