//! The map as a picture.

use super::{MemoryMap, StorageInfo, no_memory};
use crate::picture::{Picture, Saver, StorageEntry, TensorEntry};
use crate::registry::{Role, TensorInfo};
use crate::text::try_string;
use osteon_spec::{Error, Result};
use std::collections::TryReserveError;

fn full(_: TryReserveError) -> Error {
    no_memory("picture")
}

pub(super) fn picture(map: &MemoryMap) -> Result<Picture> {
    let mut entries = Vec::new();
    entries
        .try_reserve_exact(map.storages.len())
        .map_err(full)?;
    for s in &map.storages {
        entries.push(storage(s)?);
    }
    let text = |words| try_string(format_args!("{words}")).map_err(full);
    let (title, subtitle) = (
        text("Memory map")?,
        text("live tensors and their storages")?,
    );
    let mut picture = Picture::new(title, subtitle, entries)?;
    picture.totals.allocated = Some(map.allocated);
    picture.totals.reserved = Some(map.reserved);
    for g in map.graph()? {
        picture.graph.try_reserve(1).map_err(full)?;
        let (op, site) = g.held.place();
        picture.graph.push(Saver {
            op: try_string(format_args!("{}", op.unwrap_or_default())).map_err(full)?,
            site: site
                .map(|site| try_string(format_args!("{site}")).map_err(full))
                .transpose()?,
            storages: g.storages as u64,
            bytes: g.bytes as u64,
        });
    }
    Ok(picture)
}

fn storage(s: &StorageInfo) -> Result<StorageEntry> {
    let mut tensors = Vec::new();
    tensors.try_reserve_exact(s.tensors.len()).map_err(full)?;
    for t in &s.tensors {
        tensors.push(tensor(t)?);
    }
    let origin = try_string(format_args!("{}", s.origin)).map_err(full)?;
    let mut entry = StorageEntry::new(s.id, s.nbytes as u64, s.device, origin, tensors)?;
    entry.label = name(s.label.as_deref())?;
    Ok(entry)
}

fn tensor(t: &TensorInfo) -> Result<TensorEntry> {
    let entry = TensorEntry::new(t.dtype, &t.layout)?;
    let saved = (t.role == Role::Saved)
        .then(|| try_string(format_args!("saved for backward by {} at {}", t.op, t.site)));
    Ok(TensorEntry {
        name: name(t.label.as_deref())?,
        op: Some(try_string(format_args!("{}", t.op)).map_err(full)?),
        site: Some(try_string(format_args!("{}", t.site)).map_err(full)?),
        view: t.role == Role::View,
        note: saved.transpose().map_err(full)?,
        ..entry
    })
}

fn name(label: Option<&str>) -> Result<Option<String>> {
    label
        .map(|label| try_string(format_args!("{label}")).map_err(full))
        .transpose()
}
