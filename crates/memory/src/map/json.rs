//! The map as JSON, written as it is walked.

use super::group::{Root, ShownLabel};
use super::{Group, HeldBy, MapDiff, MemoryMap, StorageInfo, placed};
use crate::Mode;
use crate::json::{Each, shown, shown_option};
use crate::registry::{Role, TensorInfo};
use crate::storage::{GuardInfo, Origin, Site};
use osteon_spec::{Device, reached_bytes};
use serde::ser::Error as _;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct MapJson<T, S, G> {
    schema: u32,
    kind: &'static str,
    totals: T,
    graph: G,
    storages: S,
}

#[derive(Serialize)]
struct Totals {
    allocated: u64,
    reserved: u64,
    requested: u64,
    storages: usize,
    tensors: usize,
    graph: i64,
    omitted: usize,
}

impl Serialize for MemoryMap {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let graph = self.graph().map_err(S::Error::custom)?;
        MapJson {
            schema: 1,
            kind: "map",
            totals: Totals {
                allocated: self.allocated,
                reserved: self.reserved,
                requested: self.requested(),
                storages: self.storages.len(),
                tensors: self.storages.iter().map(|s| s.tensors.len()).sum(),
                graph: graph.iter().map(|g| g.bytes).sum(),
                omitted: self.omitted,
            },
            graph: Each(|| graph.iter().map(SaverJson::new)),
            storages: Each(|| self.storages.iter()),
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct SaverJson {
    op: Option<&'static str>,
    #[serde(serialize_with = "shown_option")]
    site: Option<Site>,
    storages: i64,
    bytes: i64,
}

impl SaverJson {
    fn new(g: &Group) -> SaverJson {
        let (op, site) = g.held.place();
        SaverJson {
            op,
            site,
            storages: g.storages,
            bytes: g.bytes,
        }
    }
}

#[derive(Serialize)]
struct StorageJson<'a> {
    id: u64,
    label: Option<&'a str>,
    nbytes: usize,
    allocated: usize,
    #[serde(serialize_with = "shown")]
    device: Device,
    #[serde(serialize_with = "shown")]
    origin: &'a Origin,
    scope: &'static str,
    version: u64,
    held_by: &'static str,
    reached_bytes: usize,
    compact_frees: usize,
    tensors: &'a [TensorInfo],
    guards: &'a [GuardInfo],
    handles: usize,
}

impl Serialize for StorageInfo {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        StorageJson {
            id: self.id,
            label: self.label.as_deref(),
            nbytes: self.nbytes,
            allocated: self.allocated,
            device: self.device,
            origin: &self.origin,
            scope: self.scope.path(),
            version: self.version,
            held_by: self.held_by().name(),
            reached_bytes: self.reached_bytes().map_err(S::Error::custom)?,
            compact_frees: self.compact_frees(),
            tensors: &self.tensors,
            guards: &self.guards,
            handles: self.handles,
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct TensorJson<'a> {
    label: Option<&'a str>,
    op: &'static str,
    #[serde(serialize_with = "shown")]
    site: Site,
    scope: &'static str,
    view: bool,
    saved: bool,
    dtype: &'static str,
    shape: &'a [usize],
    stride: &'a [usize],
    offset: usize,
    reached_bytes: usize,
}

impl Serialize for TensorInfo {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        TensorJson {
            label: self.label.as_deref(),
            op: self.op,
            site: self.site,
            scope: self.scope.path(),
            view: self.role == Role::View,
            saved: self.role == Role::Saved,
            dtype: self.dtype.name(),
            shape: self.layout.sizes(),
            stride: self.layout.strides(),
            offset: self.layout.offset(),
            reached_bytes: reached_bytes(&[placed(self)]).map_err(S::Error::custom)?,
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct GuardJson {
    mode: &'static str,
    #[serde(serialize_with = "shown")]
    site: Site,
}

impl Serialize for GuardInfo {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        GuardJson {
            mode: match self.mode {
                Mode::Read => "read",
                Mode::Write => "write",
            },
            site: self.site,
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct HeldJson {
    by: &'static str,
    op: Option<&'static str>,
    #[serde(serialize_with = "shown_option")]
    site: Option<Site>,
}

impl Serialize for HeldBy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (op, site) = self.place();
        let by = self.name();
        HeldJson { by, op, site }.serialize(to)
    }
}

#[derive(Serialize)]
struct GroupJson<'a> {
    #[serde(serialize_with = "shown_option")]
    label: Option<ShownLabel<'a>>,
    scope: &'static str,
    #[serde(serialize_with = "shown")]
    device: Device,
    #[serde(serialize_with = "shown")]
    origin: &'a Origin,
    held: HeldBy,
    storages: i64,
    bytes: i64,
    allocated: i64,
    compact_frees: i64,
    newest: u64,
    root: Option<&'a Root>,
}

#[derive(Serialize)]
struct RootJson<'a> {
    label: Option<&'a str>,
    op: &'static str,
    #[serde(serialize_with = "shown")]
    site: Site,
}

impl Serialize for Root {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        RootJson {
            label: self.label.as_deref(),
            op: self.op,
            site: self.site,
        }
        .serialize(to)
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        GroupJson {
            label: self.shown_label(),
            scope: self.scope.path(),
            device: self.device,
            origin: &self.origin,
            held: self.held,
            storages: self.storages,
            bytes: self.bytes,
            allocated: self.allocated,
            compact_frees: self.compact_frees,
            newest: self.newest,
            root: self.root.as_ref(),
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct DiffJson<'a> {
    schema: u32,
    kind: &'static str,
    complete: bool,
    entries: &'a [Group],
}

impl Serialize for MapDiff {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        DiffJson {
            schema: 1,
            kind: "diff",
            complete: self.complete,
            entries: &self.entries,
        }
        .serialize(to)
    }
}
