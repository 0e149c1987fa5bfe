//! What is in memory now: storages, the tensors on them, and the bytes that nothing reaches.

mod diff;
mod draw;
mod group;
mod json;
mod text;

pub use diff::MapDiff;
pub use group::{Group, HeldBy, Root};

pub(crate) use group::{By, groups, origins};
pub(crate) use text::{Listed, write_group, write_groups};

use crate::device::{self, State};
use crate::events;
use crate::label::Label;
use crate::picture::Picture;
use crate::registry::{Look, Role, Seat, TensorInfo};
use crate::scope::ScopeId;
use crate::stats::MemoryStats;
use crate::storage::{GuardInfo, Inner, Origin, Owner, Site, Watched};
use osteon_spec::{Device, Placed, Result, reached_bytes};
use std::collections::TryReserveError;
use std::path::Path;

/// Bytes of the blocks that storages on this device hold now, rounding included
/// (`allocated_bytes.all.current`).
pub fn allocated(device: &Device) -> u64 {
    stats(device).allocated_bytes.all.current
}

/// The most that [`allocated`] was since the start or [`reset_peak`].
pub fn max_allocated(device: &Device) -> u64 {
    stats(device).allocated_bytes.all.peak
}

/// Bytes that the allocator holds from the system, cached ones included
/// (`reserved_bytes.all.current`).
pub fn reserved(device: &Device) -> u64 {
    stats(device).reserved_bytes.all.current
}

/// All statistics of a device, under the names of `torch.cuda.memory_stats()`.
pub fn stats(device: &Device) -> MemoryStats {
    device::of(device).lock().stats()
}

/// Sets every peak to the current value.
pub fn reset_peak(device: &Device) {
    device::of(device).lock().pool().reset_peak();
}

/// Gives what is cached and not in use back to the system. Returns the bytes given back.
pub fn empty_cache(device: &Device) -> usize {
    device::of(device).lock().empty_cache()
}

/// Limits what the allocator may reserve from the system; beyond it allocations are errors. `None` lifts
/// the limit. What is reserved already stays.
pub fn set_limit(device: &Device, limit: Option<usize>) {
    device::of(device).lock().set_limit(limit);
    events::limit(limit);
}

/// What is in memory at one moment; see [`map()`].
#[derive(Clone, Debug, Default)]
pub struct MemoryMap {
    /// Every live storage of every device, oldest first.
    pub storages: Vec<StorageInfo>,
    /// Bytes of the blocks that the storages hold: the sum of their `allocated`.
    pub allocated: u64,
    /// Bytes that the allocators hold from the system.
    pub reserved: u64,
    /// How many storages are not listed because there was no memory for the list. Their blocks are counted.
    pub omitted: usize,
}

/// One storage of a [`MemoryMap`].
#[derive(Clone, Debug)]
pub struct StorageInfo {
    /// Its id.
    pub id: u64,
    /// The name it was given.
    pub label: Option<Label>,
    /// Its bytes.
    pub nbytes: usize,
    /// The bytes of its block, rounding included; 0 when the bytes are somebody else's.
    pub allocated: usize,
    /// Where it is.
    pub device: Device,
    /// Where its bytes came from.
    pub origin: Origin,
    /// The scope it was made in.
    pub scope: ScopeId,
    /// How often it was written.
    pub version: u64,
    /// The operation that wrote it last, and the line that called it.
    pub last_write: Option<(&'static str, Site)>,
    /// The live tensors on it, oldest first.
    pub tensors: Vec<TensorInfo>,
    /// The guards that are held on it.
    pub guards: Vec<GuardInfo>,
    /// Handles to the storage itself, besides those of its tensors and guards.
    pub handles: usize,
}

/// Everything in memory now, on every device: storages → tensors, and the bytes that nothing reaches.
///
/// Other threads go on: each storage's entry is exact at one instant, and the totals are those of the
/// allocator at the instant of the list, so that the sum of the entries' `allocated` is
/// [`MemoryMap::allocated`]. Takes the device's lock while it copies the entries: allocations wait. Where there is
/// no memory for all of them, [`MemoryMap::omitted`] says how many are missing.
pub fn map() -> MemoryMap {
    let mut map = MemoryMap::default();
    for memory in device::all() {
        map.add(&mut memory.lock());
    }
    map.storages.sort_unstable_by_key(|s| s.id);
    map
}

impl MemoryMap {
    /// Adds what is on a device, in no order.
    pub(crate) fn add(&mut self, state: &mut State) {
        let listed = state.storages.len();
        let before = self.storages.len();
        // What cannot be listed at all is listed nowhere.
        if self.storages.try_reserve(listed).is_ok() {
            let entries = state.storages.iter().filter_map(|s| {
                // SAFETY: the device's lock is held.
                StorageInfo::new(s, unsafe { s.owner() }).ok()
            });
            self.storages.extend(entries);
        }
        self.omitted += listed - (self.storages.len() - before);
        let stats = state.stats();
        self.allocated += stats.allocated_bytes.all.current;
        self.reserved += stats.reserved_bytes.all.current;
    }

    /// The bytes of all storages that are listed, without rounding.
    pub fn requested(&self) -> u64 {
        self.storages.iter().map(|s| s.nbytes as u64).sum()
    }

    /// The storage with this id.
    pub fn storage(&self, id: u64) -> Option<&StorageInfo> {
        self.storages
            .binary_search_by_key(&id, |s| s.id)
            .ok()
            .map(|i| &self.storages[i])
    }

    /// Bytes that only the graph of derivatives keeps, by the operation and line that saved them: most first.
    ///
    /// A storage counts with the first tensor that was saved of it, and not at all while a tensor of the program
    /// is on it.
    ///
    /// # Errors
    /// Out of memory.
    pub fn graph(&self) -> Result<Vec<Group>> {
        let kept = self
            .storages
            .iter()
            .filter(|s| matches!(s.held_by(), HeldBy::Graph { .. }));
        groups(kept.map(|s| (s, 1)), By::Saver).map_err(|_| no_memory("graph's bytes"))
    }

    /// The storages by name, scope, line and what keeps them: most bytes first.
    ///
    /// # Errors
    /// Out of memory.
    pub fn groups(&self) -> Result<Vec<Group>> {
        let all = self.storages.iter().map(|s| (s, 1));
        groups(all, By::Holder).map_err(|_| no_memory("groups of storages"))
    }

    /// As JSON; every number is defined in docs/memory-map.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> Result<String> {
        crate::json::to_string(self, "memory map")
    }

    /// As a picture, to be written as one HTML file.
    ///
    /// # Errors
    /// Out of memory.
    pub fn picture(&self) -> Result<Picture> {
        draw::picture(self)
    }

    /// Writes the picture: tensors → storages to scale, in one HTML file that needs no network.
    ///
    /// # Errors
    /// The file system's, out of memory.
    pub fn write_html(&self, path: impl AsRef<Path>) -> Result<()> {
        self.picture()?.write_html(path.as_ref())
    }

    /// What changed since an earlier map, by the name, scope and line of the storages: largest growth first.
    pub fn diff(&self, earlier: &MemoryMap) -> MapDiff {
        MapDiff::between(earlier, self)
    }
}

/// The error of a report that could not be held.
#[cold]
pub(crate) fn no_memory(what: &str) -> osteon_spec::Error {
    osteon_spec::Error::new(
        osteon_spec::Kind::OutOfMemory,
        format!("no memory to list the {what}"),
    )
}

impl StorageInfo {
    fn new(storage: &Inner, owner: &Owner) -> Result<StorageInfo, TryReserveError> {
        let mut watched = storage.watched(Seat::info)?;
        let tensors = std::mem::take(&mut watched.tensors);
        Ok(StorageInfo::of(storage, owner, watched, tensors))
    }

    /// The entry without its tensors, and these with what keeps them.
    pub(crate) fn with_looks(
        storage: &Inner,
        owner: &Owner,
    ) -> Result<(StorageInfo, Vec<Look>), TryReserveError> {
        let mut watched = storage.watched(Seat::look)?;
        let looks = std::mem::take(&mut watched.tensors);
        Ok((StorageInfo::of(storage, owner, watched, Vec::new()), looks))
    }

    fn of<T>(
        storage: &Inner,
        owner: &Owner,
        watched: Watched<T>,
        tensors: Vec<TensorInfo>,
    ) -> StorageInfo {
        StorageInfo {
            id: storage.id(),
            label: watched.label,
            nbytes: storage.nbytes(),
            allocated: owner.allocated(),
            device: storage.device(),
            origin: storage.origin().clone(),
            scope: storage.scope(),
            version: storage.version(),
            last_write: watched.last_write,
            tensors,
            guards: watched.guards,
            handles: watched.handles,
        }
    }

    /// Bytes that some tensor reaches.
    ///
    /// # Errors
    /// Out of memory, for tensors that interleave.
    pub fn reached_bytes(&self) -> Result<usize> {
        if let [only] = &self.tensors[..] {
            return reached_bytes(&[placed(only)]);
        }
        let mut list = Vec::new();
        list.try_reserve_exact(self.tensors.len())
            .map_err(|_| no_memory("tensors of a storage"))?;
        list.extend(self.tensors.iter().map(placed));
        reached_bytes(&list)
    }

    /// What keeps it alive, in one word: the first of the tensors of the program, or else their views, or else what
    /// the graph saved, or else guards, or else handles.
    pub fn held_by(&self) -> HeldBy {
        let first = |role| self.tensors.iter().find(|t| t.role == role);
        if first(Role::Tensor).is_some() {
            HeldBy::Tensor
        } else if let Some(t) = first(Role::View) {
            HeldBy::View {
                op: t.op,
                site: t.site,
            }
        } else if let Some(t) = first(Role::Saved) {
            HeldBy::Graph {
                op: t.op,
                site: t.site,
            }
        } else if let Some(guard) = self.guards.first() {
            HeldBy::Guard { site: guard.site }
        } else {
            HeldBy::Handle
        }
    }

    /// Bytes of its block that would be free if each of its tensors were replaced by its `compact()`: the block, less
    /// a copy of each tensor's elements. 0 where these copies are no smaller than the storage, while the graph, a guard
    /// or a handle keeps the block anyway, and where there is none.
    pub fn compact_frees(&self) -> usize {
        let can = |t: &TensorInfo| matches!(t.role, Role::Tensor | Role::View);
        if self.tensors.is_empty()
            || !self.tensors.iter().all(can)
            || !self.guards.is_empty()
            || self.handles > 0
        {
            return 0;
        }
        let copies = self.tensors.iter().try_fold(0usize, |sum, t| {
            let elements: usize = t.layout.sizes().iter().product();
            sum.checked_add(elements.checked_mul(t.dtype.size())?)
        });
        match copies {
            Some(copies) if copies < self.nbytes => self.allocated.saturating_sub(copies),
            _ => 0,
        }
    }

    /// Its own label, or that of its first labelled tensor.
    pub fn name(&self) -> Option<&Label> {
        let tensors = || self.tensors.iter().find_map(|t| t.label.as_ref());
        self.label.as_ref().or_else(tensors)
    }
}

pub(crate) fn placed(t: &TensorInfo) -> Placed<'_> {
    Placed::new(&t.layout, t.dtype.size())
}
