//! What is in memory now: storages, the tensors on them, and the bytes that nothing reaches.

use crate::device;
use crate::events;
use crate::picture::{Picture, StorageEntry, TensorEntry};
use crate::registry::{Role, TensorInfo};
use crate::scope::ScopeId;
use crate::stats::MemoryStats;
use crate::storage::{Inner, Origin, Owner};
use crate::text::bytes;
use osteon_spec::{Device, Placed, Result, reached_bytes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

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
    device::of(device).lock().pool().empty_cache()
}

/// Limits what the allocator may reserve from the system; beyond it allocations are errors. `None` lifts
/// the limit. What is reserved already stays.
pub fn set_limit(device: &Device, limit: Option<usize>) {
    device::of(device).lock().pool().set_limit(limit);
    events::limit(limit);
}

/// What is in memory at one moment; see [`map()`].
#[derive(Clone, Debug)]
pub struct MemoryMap {
    /// Every live storage of every device, oldest first.
    pub storages: Vec<StorageInfo>,
    /// Bytes of the blocks that the storages hold: the sum of their `allocated`.
    pub allocated: u64,
    /// Bytes that the allocators hold from the system.
    pub reserved: u64,
}

/// One storage of a [`MemoryMap`].
#[derive(Clone, Debug)]
pub struct StorageInfo {
    /// Its id.
    pub id: u64,
    /// The name it was given.
    pub label: Option<Arc<str>>,
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
    /// The live tensors on it, oldest first.
    pub tensors: Vec<TensorInfo>,
}

/// Everything in memory now, on every device: storages → tensors, and the bytes that nothing reaches.
///
/// Other threads go on: each storage's entry is exact at one instant, and the totals are those of the
/// allocator at the instant of the list, so that the sum of the entries' `allocated` is
/// [`MemoryMap::allocated`]. Takes the device's lock while it copies the entries: allocations wait.
pub fn map() -> MemoryMap {
    let mut map = MemoryMap {
        storages: Vec::new(),
        allocated: 0,
        reserved: 0,
    };
    for memory in device::all() {
        let mut state = memory.lock();
        map.storages.reserve(state.storages.len());
        let first = map.storages.len();
        map.storages.extend(state.storages.iter().map(|s| {
            // SAFETY: the device's lock is held.
            let owner = unsafe { s.owner() };
            StorageInfo::new(s, owner)
        }));
        map.storages[first..].reverse();
        let stats = state.stats();
        map.allocated += stats.allocated_bytes.all.current;
        map.reserved += stats.reserved_bytes.all.current;
    }
    map.storages.sort_by_key(|s| s.id);
    map
}

impl StorageInfo {
    fn new(storage: &Inner, owner: &Owner) -> StorageInfo {
        let (label, tensors) = storage.watched();
        StorageInfo {
            id: storage.id(),
            label,
            nbytes: storage.nbytes(),
            allocated: match owner {
                Owner::Pool(block) => block.size(),
                _ => 0,
            },
            device: storage.device(),
            origin: storage.origin().clone(),
            scope: storage.scope(),
            version: storage.version(),
            tensors,
        }
    }

    /// Bytes that some tensor reaches.
    ///
    /// # Errors
    /// Out of memory, for tensors that interleave.
    pub fn reached_bytes(&self) -> Result<usize> {
        reached_bytes(&self.tensors.iter().map(placed).collect::<Vec<_>>())
    }
}

impl MemoryMap {
    /// The bytes of all storages, without rounding.
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

    /// As JSON; every number is defined in docs/memory-map.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> Result<Value> {
        let storages = self
            .storages
            .iter()
            .map(StorageInfo::to_json)
            .collect::<Result<Vec<_>>>()?;
        Ok(json!({
            "schema": 1,
            "totals": {
                "allocated": self.allocated,
                "reserved": self.reserved,
                "requested": self.requested(),
                "storages": self.storages.len(),
                "tensors": self.storages.iter().map(|s| s.tensors.len()).sum::<usize>(),
            },
            "storages": storages,
        }))
    }

    /// As a picture, to be written as one HTML file.
    ///
    /// # Errors
    /// Out of memory.
    pub fn picture(&self) -> Result<Picture> {
        let entries = self
            .storages
            .iter()
            .map(StorageInfo::entry)
            .collect::<Result<Vec<_>>>()?;
        let mut picture = Picture::new("Memory map", "live tensors and their storages", entries)?;
        picture.totals.allocated = Some(self.allocated);
        picture.totals.reserved = Some(self.reserved);
        Ok(picture)
    }

    /// Writes the picture: tensors → storages to scale, in one HTML file that needs no network.
    ///
    /// # Errors
    /// The file system's, out of memory.
    pub fn write_html(&self, path: impl AsRef<Path>) -> Result<()> {
        self.picture()?.write_html(path.as_ref())
    }

    /// What changed since an earlier map, by the line and the label of the storages: largest growth
    /// first.
    pub fn diff(&self, earlier: &MemoryMap) -> MapDiff {
        let mut groups: BTreeMap<(String, String), DiffEntry> = BTreeMap::new();
        for (map, sign) in [(earlier, -1), (self, 1)] {
            for s in &map.storages {
                let (origin, label) = (s.origin.to_string(), s.name().unwrap_or_default());
                let entry = groups
                    .entry((origin.clone(), label.to_string()))
                    .or_insert_with(|| DiffEntry {
                        origin,
                        label: label.to_string(),
                        storages: 0,
                        bytes: 0,
                    });
                entry.storages += sign;
                entry.bytes += sign * s.nbytes as i64;
            }
        }
        let mut entries: Vec<_> = groups.into_values().collect();
        entries.retain(|e| e.storages != 0 || e.bytes != 0);
        entries.sort_by_key(|e| -e.bytes);
        MapDiff { entries }
    }
}

impl StorageInfo {
    /// Its own label, or that of its first labelled tensor.
    fn name(&self) -> Option<&str> {
        let tensors = || self.tensors.iter().find_map(|t| t.label.as_deref());
        self.label.as_deref().or_else(tensors)
    }

    fn to_json(&self) -> Result<Value> {
        let tensors = self.tensors.iter().map(|t| {
            Ok(json!({
                "label": t.label.as_deref(),
                "op": t.op,
                "site": t.site.to_string(),
                "scope": &*t.scope.path(),
                "view": t.role == Role::View,
                "saved": t.role == Role::Saved,
                "dtype": t.dtype.name(),
                "shape": t.layout.sizes(),
                "stride": t.layout.strides(),
                "offset": t.layout.offset(),
                "reached_bytes": reached_bytes(&[placed(t)])?,
            }))
        });
        Ok(json!({
            "id": self.id,
            "label": self.label.as_deref(),
            "nbytes": self.nbytes,
            "allocated": self.allocated,
            "device": self.device.to_string(),
            "origin": self.origin.to_string(),
            "scope": &*self.scope.path(),
            "version": self.version,
            "reached_bytes": self.reached_bytes()?,
            "tensors": tensors.collect::<Result<Vec<_>>>()?,
        }))
    }

    fn entry(&self) -> Result<StorageEntry> {
        let tensors = self.tensors.iter().map(|t| {
            let entry = TensorEntry::new(t.dtype, &t.layout)?;
            Ok(TensorEntry {
                name: t.label.as_deref().map(str::to_owned),
                op: Some(t.op.to_owned()),
                site: Some(t.site.to_string()),
                view: t.role == Role::View,
                ..entry
            })
        });
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let mut entry = StorageEntry::new(
            self.id,
            self.nbytes as u64,
            self.device,
            self.origin.to_string(),
            tensors,
        )?;
        entry.label = self.label.as_deref().map(str::to_owned);
        Ok(entry)
    }
}

fn placed(t: &TensorInfo) -> Placed<'_> {
    Placed::new(&t.layout, t.dtype.size())
}

/// A table: storages by bytes that nothing reaches, then by size, each with its tensors.
impl fmt::Display for MemoryMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors: usize = self.storages.iter().map(|s| s.tensors.len()).sum();
        writeln!(
            f,
            "{} tensors on {} storages: {} asked for, {} allocated, {} reserved",
            tensors,
            self.storages.len(),
            bytes(self.requested()),
            bytes(self.allocated),
            bytes(self.reserved),
        )?;
        let mut rows: Vec<_> = self
            .storages
            .iter()
            .map(|s| {
                (
                    s.nbytes - s.reached_bytes().unwrap_or(s.nbytes).min(s.nbytes),
                    s,
                )
            })
            .collect();
        rows.sort_by_key(|(waste, s)| std::cmp::Reverse((*waste, s.nbytes)));
        for (waste, s) in rows {
            write!(f, "storage {}  {}", s.id, bytes(s.nbytes as u64))?;
            if let Some(label) = &s.label {
                write!(f, "  \"{label}\"")?;
            }
            write!(f, "  {}", s.origin)?;
            if waste > 0 {
                write!(f, "  ({} reached by no tensor)", bytes(waste as u64))?;
            }
            writeln!(f)?;
            for t in &s.tensors {
                write!(f, "    ")?;
                if let Some(label) = &t.label {
                    write!(f, "\"{label}\" ")?;
                }
                writeln!(f, "{} {}  {} at {}", t.dtype, t.layout, t.op, t.site)?;
            }
        }
        Ok(())
    }
}

/// What changed between two maps; see [`MemoryMap::diff`].
#[derive(Clone, Debug)]
pub struct MapDiff {
    /// One for each line and label, largest growth first.
    pub entries: Vec<DiffEntry>,
}

/// Storages of one line and label in a [`MapDiff`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffEntry {
    /// The operation and line that made them.
    pub origin: String,
    /// Their label, or their tensors'; empty where there is none.
    pub label: String,
    /// How many more there are, or fewer.
    pub storages: i64,
    /// How many more bytes, or fewer.
    pub bytes: i64,
}

/// One line for each entry.
impl fmt::Display for MapDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for e in &self.entries {
            let sign = if e.bytes < 0 { '-' } else { '+' };
            write!(
                f,
                "{sign}{}  {:+} storages",
                bytes(e.bytes.unsigned_abs()),
                e.storages
            )?;
            if !e.label.is_empty() {
                write!(f, "  \"{}\"", e.label)?;
            }
            writeln!(f, "  {}", e.origin)?;
        }
        Ok(())
    }
}
