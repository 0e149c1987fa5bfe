//! Tensors that keep more bytes than they reach.

use crate::label::Label;
use crate::map::{map, no_memory, origins, placed};
use crate::registry::{Role, TensorInfo};
use crate::storage::{Origin, Site};
use osteon_spec::{Result, reached_bytes};
use std::cmp::Reverse;
use std::collections::TryReserveError;

/// Tensors by the bytes that they keep beyond those they reach; see [`pins`].
#[derive(Clone, Debug)]
pub struct Pins {
    /// The same by line: what would free most first, then what keeps most.
    pub lines: Vec<PinLine>,
    /// Each tensor, in the same order.
    pub entries: Vec<Pin>,
}

/// The tensors that one line made, on storages that one line made.
#[derive(Clone, Debug)]
pub struct PinLine {
    /// The operation that made the tensors.
    pub op: &'static str,
    /// The line that called it.
    pub site: Site,
    /// What made the storages: for the first.
    pub origin: Origin,
    /// How many tensors there are.
    pub tensors: u64,
    /// How many storages.
    pub storages: u64,
    /// The sum of what the tensors reach.
    pub reached: u64,
    /// The sum of what they keep beyond that.
    pub beyond: u64,
    /// The bytes that would be free if all tensors of these storages were replaced by their `compact()`.
    pub frees: u64,
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
    let map = map();
    if map.omitted > 0 {
        return Err(no_memory("storages"));
    }
    for s in map.storages {
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
    let lines = lines(&mut entries).map_err(|_| no_memory("views"))?;
    entries.sort_unstable_by_key(|p| (Reverse((p.frees, p.beyond())), p.storage));
    Ok(Pins { lines, entries })
}

/// Adds tensors up by line. Leaves them in that order.
fn lines(entries: &mut [Pin]) -> std::result::Result<Vec<PinLine>, TryReserveError> {
    let line = |a: &Pin, b: &Pin| {
        let key = |p: &Pin| (p.tensor.site, p.tensor.op);
        key(a)
            .cmp(&key(b))
            .then_with(|| origins(&a.origin, &b.origin))
    };
    entries.sort_unstable_by(|a, b| line(a, b).then(a.storage.cmp(&b.storage)));
    let mut lines: Vec<PinLine> = Vec::new();
    for group in entries.chunk_by(|a, b| line(a, b).is_eq()) {
        lines.try_reserve(1)?;
        let storages = || group.chunk_by(|a, b| a.storage == b.storage).map(|s| &s[0]);
        lines.push(PinLine {
            op: group[0].tensor.op,
            site: group[0].tensor.site,
            origin: group[0].origin.clone(),
            tensors: group.len() as u64,
            storages: storages().count() as u64,
            reached: group.iter().map(|p| p.reached as u64).sum(),
            beyond: group.iter().map(|p| p.beyond() as u64).sum(),
            frees: storages().map(|s| s.frees as u64).sum(),
        });
    }
    lines.sort_by_key(|l| Reverse((l.frees, l.beyond)));
    Ok(lines)
}
