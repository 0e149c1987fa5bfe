//! A recording of memory over time: who was where, from when to when.

mod budget;
mod columns;
mod export;
mod html;
mod record;
mod recording;
mod replay;
mod rows;
pub(crate) mod spool;
mod text;

pub use budget::{Budget, OverBudget};
pub use recording::{Recording, record};
pub use rows::{CopySpan, Moment, SegmentSpan, Stay, Text, ViewSpan, Write};
pub use text::LineSum;

use crate::picture::Lang;
use osteon_spec::{Error, Kind, Result};
use rows::{Row, table};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::Path;

/// A recording of memory over time; the schema of `docs/memory.md`, which defines every number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The version of the schema: 1.
    pub schema: u32,
    /// `timeline`.
    pub kind: String,
    /// A heading.
    pub title: String,
    /// The length of the recording, in nanoseconds.
    pub duration: u64,
    /// How many events were recorded.
    pub events: u64,
    /// Events that could not be written.
    pub lost: u64,
    /// Texts; the first is empty and stands for none.
    pub strings: Vec<String>,
    /// The devices, with their figures at the beginning, the end and the peaks.
    pub devices: Vec<DeviceFigures>,
    /// Stays of storages, in the order of their end; those that had not ended come last.
    #[serde(with = "table")]
    pub storages: Vec<Stay>,
    /// Tensors.
    #[serde(with = "table")]
    pub views: Vec<ViewSpan>,
    /// What the allocators held from the system.
    #[serde(with = "table")]
    pub segments: Vec<SegmentSpan>,
    /// Copies.
    #[serde(with = "table")]
    pub copies: Vec<CopySpan>,
    /// In-place writes.
    #[serde(with = "table")]
    pub writes: Vec<Write>,
    /// Steps, scopes, failed allocations, limits, labels.
    #[serde(with = "table")]
    pub marks: Vec<Moment>,
}

/// A device's figures over a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// Its name.
    pub device: String,
    /// When the recording began.
    pub start: Figures,
    /// When it ended.
    pub end: Figures,
    /// When most was allocated.
    pub peak: Figures,
    /// When most was reserved.
    pub peak_reserved: Figures,
}

/// What an allocator held at one moment, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// When; none for the beginning and the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// Blocks in use.
    pub allocated: u64,
    /// What was asked for in them.
    pub requested: u64,
    /// Mapped from the system.
    pub reserved: u64,
}

impl Timeline {
    /// The text of a number; empty for one that is not there.
    pub fn text(&self, text: Text) -> &str {
        self.strings.get(text.0 as usize).map_or("", String::as_str)
    }

    /// Reads what [`write_json`](Timeline::write_json) wrote.
    ///
    /// # Errors
    /// [`Kind::Value`] for JSON that is broken or is not a timeline, the reader's errors, out of memory.
    pub fn read_json(json: impl Read) -> Result<Timeline> {
        let timeline: Timeline =
            serde_json::from_reader(json).map_err(|e| match e.io_error_kind() {
                Some(_) => Error::io("cannot read the timeline", e.into()),
                None => Error::new(Kind::Value, format!("not a timeline: {e}")),
            })?;
        timeline.check()?;
        Ok(timeline)
    }

    /// Writes the timeline as one JSON object.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_json(&self, out: impl io::Write) -> io::Result<()> {
        serde_json::to_writer(out, self).map_err(io::Error::from)
    }

    /// Writes one HTML file that needs no network: memory over time, and what was there at each moment.
    ///
    /// # Errors
    /// The file system's, out of memory.
    pub fn write_html(&self, path: impl AsRef<Path>) -> Result<()> {
        self.write_html_in(Lang::En, path)
    }

    /// [`write_html`](Timeline::write_html) with the page's own words in a language.
    ///
    /// # Errors
    /// As [`write_html`](Timeline::write_html).
    pub fn write_html_in(&self, lang: Lang, path: impl AsRef<Path>) -> Result<()> {
        html::write(self, lang, path.as_ref())
    }

    /// Whether what it names by number is there.
    fn check(&self) -> Result<()> {
        let broken = |what: String| Error::new(Kind::Value, format!("not a timeline: {what}"));
        if (self.schema, self.kind.as_str()) != (1, "timeline") {
            return Err(broken(format!(
                "schema {} of kind {:?}",
                self.schema, self.kind
            )));
        }
        if self.strings.first().is_none_or(|s| !s.is_empty()) {
            return Err(broken("its first string is not the empty one".into()));
        }
        self.check_texts("storages", &self.storages)?;
        self.check_texts("views", &self.views)?;
        self.check_texts("segments", &self.segments)?;
        self.check_texts("copies", &self.copies)?;
        self.check_texts("writes", &self.writes)?;
        self.check_texts("marks", &self.marks)?;
        let stays = self.storages.iter().map(|s| s.device);
        let segments = self.segments.iter().map(|s| s.device);
        if let Some(device) = stays
            .chain(segments)
            .find(|&d| d as usize >= self.devices.len())
        {
            return Err(broken(format!("device {device} of {}", self.devices.len())));
        }
        if let Some(s) = self
            .storages
            .iter()
            .find(|s| s.to.is_some_and(|to| to < s.from))
        {
            return Err(broken(format!("storage {} ends before it begins", s.id)));
        }
        if let Some(v) = self.views.iter().find(|v| v.shape.len() != v.stride.len()) {
            return Err(broken(format!(
                "a tensor on storage {} has {} sizes and {} strides",
                v.storage,
                v.shape.len(),
                v.stride.len()
            )));
        }
        Ok(())
    }

    fn check_texts<R: Row>(&self, table: &str, rows: &[R]) -> Result<()> {
        for (i, row) in rows.iter().enumerate() {
            let mut worst = Text(0);
            row.each_text(|text| worst = worst.max(text));
            if worst.0 as usize >= self.strings.len() {
                return Err(Error::new(
                    Kind::Value,
                    format!(
                        "not a timeline: row {i} of {table} names string {} of {}",
                        worst.0,
                        self.strings.len()
                    ),
                ));
            }
        }
        Ok(())
    }
}
