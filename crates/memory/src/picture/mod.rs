//! The memory picture: which bytes of which storage each tensor reaches, as data, JSON and one HTML page.
//!
//! The model is the schema of `docs/memory-map.md`, which defines every number. The page is one file that
//! needs no network: its style, script and data are inside it.
//!
//! ```
//! use osteon_memory::picture::{Picture, StorageEntry, TensorEntry};
//! use osteon_spec::{DType, Device, Layout};
//! // The first 10 of a million floats: 40 bytes reached, 3,999,960 pinned.
//! let head = Layout::contiguous(&[1_000_000])?.narrow(0, 0, 10)?;
//! let head = TensorEntry { name: Some("head".into()), ..TensorEntry::new(DType::F32, &head)? };
//! let storage = StorageEntry::new(1, 4_000_000, Device::cpu(), "zeros at src/main.rs:3", vec![head])?;
//! let picture = Picture::new("Memory map", "one slice", vec![storage])?;
//! assert_eq!((picture.totals.reached, picture.totals.unreached), (40, 3_999_960));
//! assert!(picture.to_html()?.contains("src/main.rs:3"));
//! # Ok::<(), osteon_spec::Error>(())
//! ```

mod page;
mod runs;

use crate::text::try_string;
use osteon_spec::{DType, Device, Error, Kind, Layout, Placed, Result};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most runs that a storage or tensor keeps; more would be finer than a screen shows.
pub const MAX_RUNS: usize = 400;

/// The runs of all tensors of a picture together, so that many strided tensors still make a page of a few MB.
const RUN_BUDGET: usize = 400_000;

/// A picture of memory: storages, the tensors on them, and the totals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The version of the schema: 1.
    pub schema: u32,
    /// The language of the page's own words. Names, origins and notes stay as they are given.
    pub lang: Lang,
    /// The heading.
    pub title: String,
    /// A line below it: what was looked at, and when.
    pub subtitle: String,
    /// Sums over the storages.
    pub totals: Totals,
    /// What the graph of derivatives alone keeps, by who saved it: most bytes first.
    #[serde(default)]
    pub graph: Vec<Saver>,
    /// The storages, in the order in which they are given.
    pub storages: Vec<StorageEntry>,
}

/// The language of the page's own words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

/// Sums over a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes of the blocks handed out, rounding included; `None` where no allocator is involved (a file).
    pub allocated: Option<u64>,
    /// Bytes that the allocator holds from the system, cached blocks included; `None` as above.
    pub reserved: Option<u64>,
    /// The sum of the storages' `nbytes`.
    pub requested: u64,
    /// The number of storages.
    pub storages: u64,
    /// The number of tensors.
    pub tensors: u64,
    /// Bytes that at least one tensor reaches.
    pub reached: u64,
    /// Bytes that no tensor reaches: `requested - reached`.
    pub unreached: u64,
}

/// An operation whose backward pass needs storages that nothing else keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saver {
    /// The operation.
    pub op: String,
    /// The line that called it.
    pub site: Option<String>,
    /// How many storages it keeps.
    pub storages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// One storage and the tensors that look at it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageEntry {
    /// The storage's id.
    pub id: u64,
    /// A label that the user gave.
    pub label: Option<String>,
    /// The storage's size in bytes, as requested.
    pub nbytes: u64,
    /// The device, as text.
    pub device: String,
    /// What made it and where: `empty at src/main.rs:12`, `mapped file model.safetensors`.
    pub origin: String,
    /// What tensors reach, ascending and disjoint; the bytes between runs are reached by none.
    pub runs: Vec<Run>,
    /// Whether every byte of every run is reached, by exactly the number of tensors that it says.
    pub exact: bool,
    /// Bytes that at least one tensor reaches: exact, however coarse the runs.
    pub reached_bytes: u64,
    /// The tensors, in the order in which they are given.
    pub tensors: Vec<TensorEntry>,
}

/// One tensor on a storage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorEntry {
    /// A label, or the name in a file.
    pub name: Option<String>,
    /// The operation that made it; `None` for a tensor of a file.
    pub op: Option<String>,
    /// The line that made it, `file:line`; `None` for a tensor of a file.
    pub site: Option<String>,
    /// PyTorch's name of the dtype.
    pub dtype: String,
    /// Sizes.
    pub shape: Vec<u64>,
    /// Strides, in elements.
    pub stride: Vec<u64>,
    /// The first element's position in the storage, in elements.
    pub offset: u64,
    /// The bytes that its elements occupy, ascending and disjoint.
    pub runs: Vec<Run>,
    /// The number of those bytes: exact, however coarse the runs. Elements that share bytes count once.
    pub reached_bytes: u64,
    /// Whether it was made as a view of another tensor.
    pub view: bool,
    /// More about it, such as `saved for backward by mul`.
    pub note: Option<String>,
}

/// A range of bytes of a storage. In JSON: `[start, end, tensors, reached]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[u64; 4]", from = "[u64; 4]")]
pub struct Run {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// How many tensors reach it; in a coarse run, the most on any of its bytes. 1 in a tensor's own runs.
    pub tensors: u64,
    /// How many of its bytes are reached; fewer than `end - start` only in a coarse run, and where there were too
    /// many to count, its share by length.
    pub reached: u64,
}

impl Run {
    /// Whether all its bytes are reached.
    fn is_exact(&self) -> bool {
        self.reached == self.end - self.start
    }
}

impl From<Run> for [u64; 4] {
    fn from(run: Run) -> Self {
        [run.start, run.end, run.tensors, run.reached]
    }
}

impl From<[u64; 4]> for Run {
    fn from([start, end, tensors, reached]: [u64; 4]) -> Self {
        Run {
            start,
            end,
            tensors,
            reached,
        }
    }
}

impl Picture {
    /// A picture of these storages, in English and without an allocator's totals; set
    /// [`lang`](Picture::lang), `totals.allocated` and `totals.reserved` where they apply.
    ///
    /// Keeps fewer runs per tensor than [`MAX_RUNS`] when there are thousands of tensors with many runs.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`] when the coarser runs cannot be held, [`Kind::Value`] when the sizes add up
    /// to more than 64 bits.
    pub fn new(
        title: impl Into<String>,
        subtitle: impl Into<String>,
        mut storages: Vec<StorageEntry>,
    ) -> Result<Picture> {
        let mut totals = Totals {
            storages: storages.len() as u64,
            ..Totals::default()
        };
        for storage in &storages {
            totals.tensors += storage.tensors.len() as u64;
            totals.requested = totals
                .requested
                .checked_add(storage.nbytes)
                .ok_or_else(|| {
                    Error::new(
                        Kind::Value,
                        "the storages of the picture add up to more than 2^64 bytes",
                    )
                })?;
            totals.reached += storage.reached_bytes;
        }
        totals.unreached = totals.requested.saturating_sub(totals.reached);
        let limit = (RUN_BUDGET / (totals.tensors as usize).max(1)).clamp(12, MAX_RUNS);
        for storage in &mut storages {
            for tensor in &mut storage.tensors {
                runs::coarsen(&mut tensor.runs, storage.nbytes, limit)?;
            }
        }
        Ok(Picture {
            schema: 1,
            lang: Lang::En,
            title: title.into(),
            subtitle: subtitle.into(),
            totals,
            graph: Vec::new(),
            storages,
        })
    }

    /// The same picture with the page's words in this language.
    #[must_use]
    pub fn lang(mut self, lang: Lang) -> Picture {
        self.lang = lang;
        self
    }
}

impl StorageEntry {
    /// A storage without a label, and its tensors: counts the tensors on every byte, by their layouts.
    ///
    /// Walks at most half a million runs: beyond that the runs are coarse, as said at [`Run`]. The sums are
    /// always exact.
    ///
    /// # Errors
    /// [`Kind::Value`] when a tensor reaches past the end or has a dtype without a name here,
    /// [`Kind::Shape`] when its layout is none, [`Kind::OutOfMemory`] when the runs cannot be held.
    pub fn new(
        id: u64,
        nbytes: u64,
        device: Device,
        origin: impl Into<String>,
        tensors: Vec<TensorEntry>,
    ) -> Result<StorageEntry> {
        let mut layouts = runs::list(tensors.len())?;
        for tensor in &tensors {
            let (layout, itemsize) = tensor.layout()?;
            let end = Placed::new(&layout, itemsize).extent().end as u64;
            if end > nbytes {
                return Err(Error::new(
                    Kind::Value,
                    format!(
                        "tensor {} reaches byte {} of storage #{id}, which has {nbytes}",
                        tensor.name.as_deref().unwrap_or("without a name"),
                        end - 1,
                    ),
                ));
            }
            layouts.push((layout, itemsize));
        }
        let (runs, exact, reached_bytes) = runs::of_storage(&tensors, &layouts, nbytes)?;
        Ok(StorageEntry {
            id,
            label: None,
            nbytes,
            device: text(device)?,
            origin: origin.into(),
            runs,
            exact,
            reached_bytes,
            tensors,
        })
    }
}

impl TensorEntry {
    /// A tensor without a name, op, site or note, not a view; set those fields where they are known.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`] when the runs cannot be held.
    pub fn new(dtype: DType, layout: &Layout) -> Result<TensorEntry> {
        let (runs, reached_bytes) = runs::of_tensor(Placed::new(layout, dtype.size()))?;
        let wide = |sizes: &[usize]| -> Result<Vec<u64>> {
            let mut list = runs::list(sizes.len())?;
            list.extend(sizes.iter().map(|&n| n as u64));
            Ok(list)
        };
        Ok(TensorEntry {
            dtype: text(dtype)?,
            shape: wide(layout.sizes())?,
            stride: wide(layout.strides())?,
            offset: layout.offset() as u64,
            runs,
            reached_bytes,
            ..TensorEntry::default()
        })
    }

    /// The layout and the bytes of an element.
    fn layout(&self) -> Result<(Layout, usize)> {
        let dtype = DType::from_name(&self.dtype).ok_or_else(|| {
            Error::new(Kind::Value, format!("no dtype is named {:?}", self.dtype))
        })?;
        let narrow = |sizes: &[u64]| sizes.iter().map(|&n| n as usize).collect();
        let layout = Layout::new(
            narrow(&self.shape),
            narrow(&self.stride),
            self.offset as usize,
        )?;
        Ok((layout, dtype.size()))
    }
}

fn text(value: impl fmt::Display) -> Result<String> {
    try_string(format_args!("{value}"))
        .map_err(|_| Error::new(Kind::OutOfMemory, "no memory for the text of a picture"))
}
