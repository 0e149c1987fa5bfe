//! Reports of storages and tensors, drawn as bars. What tensors reach is counted anew from their layouts, so that a file cannot
//! claim what is not so.

use crate::drawing::Drawing;
use crate::lang::Lang;
use crate::term::{Out, Screen, Style, counted, grouped, safe};
use osteon::memory::bytes;
use osteon::memory::picture::{Picture, StorageEntry, TensorEntry};
use osteon::{DType, Device, Error, Kind, Result};
use osteon_spec::Layout;
use serde::Deserialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Storages that are listed, unless all are asked for.
const STORAGES: usize = 20;

/// Storages with their tensors.
#[derive(Debug)]
pub struct Drawn {
    title: String,
    subtitle: String,
    allocated: Option<u64>,
    reserved: Option<u64>,
    storages: Vec<StorageEntry>,
}

/// What `memory::map()` and `Picture` write: they agree in what is drawn.
#[derive(Deserialize)]
pub struct Saved {
    #[serde(default)]
    title: String,
    #[serde(default)]
    subtitle: String,
    #[serde(default)]
    totals: Totals,
    storages: Vec<Storage>,
}

#[derive(Default, Deserialize)]
struct Totals {
    allocated: Option<u64>,
    reserved: Option<u64>,
}

#[derive(Deserialize)]
struct Storage {
    id: u64,
    label: Option<String>,
    nbytes: u64,
    device: String,
    origin: String,
    tensors: Vec<Tensor>,
}

#[derive(Deserialize)]
struct Tensor {
    #[serde(alias = "label")]
    name: Option<String>,
    op: Option<String>,
    site: Option<String>,
    note: Option<String>,
    #[serde(default)]
    view: bool,
    #[serde(default)]
    saved: bool,
    #[serde(flatten)]
    place: Place,
}

#[derive(Deserialize)]
struct Place {
    dtype: String,
    shape: Vec<usize>,
    stride: Vec<usize>,
    offset: usize,
}

/// What `osteon map --json` writes.
#[derive(Deserialize)]
pub struct Files {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    path: String,
    tensors: BTreeMap<String, InFile>,
    storages: BTreeMap<String, FileStorage>,
}

#[derive(Deserialize)]
struct FileStorage {
    nbytes: u64,
}

#[derive(Deserialize)]
struct InFile {
    storage: u64,
    #[serde(flatten)]
    place: Place,
}

impl Place {
    fn entry(&self) -> Result<TensorEntry> {
        let dtype = DType::from_name(&self.dtype).ok_or_else(|| {
            Error::new(Kind::Value, format!("no dtype is named {:?}", self.dtype))
        })?;
        let (shape, stride) = (self.shape.as_slice().into(), self.stride.as_slice().into());
        TensorEntry::new(dtype, &Layout::new(shape, stride, self.offset)?)
    }
}

impl Storage {
    fn entry(self) -> Result<StorageEntry> {
        let tensor = |t: Tensor| {
            let saved = || {
                t.op.as_ref()
                    .filter(|_| t.saved)
                    .map(|op| format!("saved for backward by {op}"))
            };
            Ok(TensorEntry {
                note: t.note.clone().or_else(saved),
                name: t.name,
                op: t.op,
                site: t.site,
                view: t.view,
                ..t.place.entry()?
            })
        };
        let tensors = self
            .tensors
            .into_iter()
            .map(tensor)
            .collect::<Result<_>>()?;
        let entry = StorageEntry::new(self.id, self.nbytes, Device::cpu(), self.origin, tensors)?;
        Ok(StorageEntry {
            label: self.label,
            device: self.device,
            ..entry
        })
    }
}

/// The live map.
pub fn of_memory(saved: Saved, title: String) -> Result<Drawn> {
    of_picture(Saved { title, ..saved })
}

/// A picture.
pub fn of_picture(saved: Saved) -> Result<Drawn> {
    let storages = saved
        .storages
        .into_iter()
        .map(Storage::entry)
        .collect::<Result<Vec<_>>>()?;
    Ok(Drawn {
        title: saved.title,
        subtitle: saved.subtitle,
        allocated: saved.totals.allocated,
        reserved: saved.totals.reserved,
        storages,
    })
}

/// The map of files.
pub fn of_files(saved: Files) -> Result<Drawn> {
    let mut storages = Vec::new();
    let mut paths = Vec::new();
    for file in saved.files {
        let mut on: BTreeMap<u64, Vec<TensorEntry>> = BTreeMap::new();
        for (name, tensor) in file.tensors {
            let entry = TensorEntry {
                name: Some(name),
                ..tensor.place.entry()?
            };
            on.entry(tensor.storage).or_default().push(entry);
        }
        for (number, storage) in file.storages {
            let tensors = number.parse().ok().and_then(|n: u64| on.remove(&n));
            let origin = format!("storage {number} of {}", file.path);
            let id = storages.len() as u64;
            let tensors = tensors.unwrap_or_default();
            let entry = StorageEntry::new(id, storage.nbytes, Device::cpu(), origin, tensors)?;
            storages.push(StorageEntry {
                device: "file".into(),
                ..entry
            });
        }
        if let Some(number) = on.keys().next() {
            let what = format!(
                "{} has tensors on storage {number}, which it does not list",
                file.path
            );
            return Err(Error::new(Kind::Value, what));
        }
        paths.push(file.path);
    }
    Ok(Drawn {
        title: paths.join(" · "),
        subtitle: String::new(),
        allocated: None,
        reserved: None,
        storages,
    })
}

fn unreached(entry: &StorageEntry) -> u64 {
    entry.nbytes.saturating_sub(entry.reached_bytes)
}

impl Drawn {
    pub fn picture(&self, lang: Lang) -> Result<Picture> {
        let mut picture = Picture::new(&*self.title, &*self.subtitle, self.storages.clone())?;
        picture.totals.allocated = self.allocated;
        picture.totals.reserved = self.reserved;
        Ok(picture.lang(lang.of_picture()))
    }

    pub fn print(&self, out: &mut Out, all: bool, screen: Screen, lang: Lang) -> io::Result<()> {
        writeln!(out, "{}", screen.paint(Style::Bold, safe(&self.title)))?;
        if !self.subtitle.is_empty() {
            writeln!(out, "{}", screen.paint(Style::Dim, safe(&self.subtitle)))?;
        }
        let mut order: Vec<&StorageEntry> = self.storages.iter().collect();
        order.sort_by_key(|s| Reverse((unreached(s), s.nbytes)));
        let listed = if all {
            order.len()
        } else {
            order.len().min(STORAGES)
        };
        let name = |s: &StorageEntry| {
            let of_tensor = s.tensors.iter().find_map(|t| t.name.clone());
            let name = s.label.clone().or(of_tensor);
            name.unwrap_or_else(|| format!("#{}", s.id))
        };
        let names: Vec<String> = order[..listed].iter().map(|s| name(s)).collect();
        let drawing = Drawing::new(screen, lang, names.iter().map(String::as_str), all);
        if listed > 0 {
            writeln!(out)?;
            drawing.header(out)?;
        }
        for (entry, name) in order.iter().zip(&names) {
            let origin = format!("#{} · {}", entry.id, entry.origin);
            drawing.storage(out, name, &origin, entry)?;
        }
        let rest = &order[listed..];
        if !rest.is_empty() {
            let (n, held) = (
                grouped(rest.len() as u64),
                sum(rest.iter().map(|s| s.nbytes)),
            );
            let line = match lang {
                Lang::En => format!("… and {n} more storages of {} (--all)", bytes(held)),
                Lang::Zh => format!("……还有 {n} 个存储，共 {}（--all）", bytes(held)),
            };
            writeln!(out, "  {}", screen.paint(Style::Dim, line))?;
        }
        let held = grouped(sum(order.iter().map(|s| s.nbytes)));
        let waste = grouped(sum(order.iter().map(|s| unreached(s))));
        let storages = order.len() as u64;
        let tensors = order.iter().map(|s| s.tensors.len() as u64).sum::<u64>();
        match lang {
            Lang::En => {
                let (tensors, storages) =
                    (counted(tensors, "tensor"), counted(storages, "storage"));
                writeln!(out, "\n  {tensors} on {storages}: {held} bytes")?;
                writeln!(out, "  {waste} bytes are reached by no tensor")?;
            }
            Lang::Zh => {
                let (tensors, storages) = (grouped(tensors), grouped(storages));
                writeln!(out, "\n  {tensors} 个张量，{storages} 个存储：{held} 字节")?;
                writeln!(out, "  {waste} 字节没有任何张量可达")?;
            }
        }
        Drawing::legend(out, screen, lang)
    }
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
