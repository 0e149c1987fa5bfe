//! A checkpoint rewritten without the bytes that no tensor reaches.

use crate::atomic;
use crate::catalog::{Format, PICKLES, catalog_source, of_file, stem};
use crate::error::count;
use crate::source::{Source, copy};
use crate::zipfile::Archive;
use crate::{index, pt};
use osteon_spec::{Error, Kind, Result};
use std::fmt;
use std::path::Path;

/// What [`compact`] did; `Display` tells it in a few lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactReport {
    /// How the file that was read is written.
    pub format: Format,
    /// Its length.
    pub bytes_before: u64,
    /// The length of the file that was written.
    pub bytes_after: u64,
    /// What could not be packed.
    pub kept: Vec<Kept>,
}

/// Bytes that no tensor reaches, or may not reach, and that were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The storage's key.
    pub storage: String,
    /// The tensors on it.
    pub tensors: Vec<String>,
    /// How many bytes.
    pub bytes: u64,
    /// Why.
    pub reason: String,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of storage {:?}",
            count(self.bytes, "byte"),
            self.storage
        )?;
        for (i, name) in self.tensors.iter().take(3).enumerate() {
            write!(f, "{}{name}", if i == 0 { " (" } else { ", " })?;
        }
        match self.tensors.len() {
            0 => {}
            1..=3 => write!(f, ")")?,
            n => write!(f, " and {} more)", n - 3)?,
        }
        write!(f, " stay: {}", self.reason)
    }
}

impl fmt::Display for CompactReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} before, {} after",
            count(self.bytes_before, "byte"),
            count(self.bytes_after, "byte")
        )?;
        self.kept.iter().try_for_each(|kept| write!(f, "\n{kept}"))
    }
}

/// Rewrites a checkpoint without the bytes that no tensor reaches.
///
/// A PyTorch file becomes a zip archive that `torch.load` reads as it reads the original (with
/// `weights_only=True` too): the same objects in the same places, shared where they were shared. A
/// tensor alone on its storage becomes dense in its own order of dims; tensors that share keep sharing
/// and keep their strides, and what lies between them goes. What cannot be packed is kept, and is in
/// the report. Files of the other formats have no such bytes: they are copied.
///
/// The file is streamed through a window of fixed size, and appears whole under its name or not at all;
/// `output` may be `input`.
///
/// # Errors
/// As [`catalog`](crate::catalog); [`Kind::Value`] for an index of shards, or where `output` is named as
/// another format than `input` has.
pub fn compact(input: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<CompactReport> {
    let (input, output) = (input.as_ref(), output.as_ref());
    if index::is_index(input) {
        return Err(Error::new(
            Kind::Value,
            format!(
                "{} is an index; its shards are compacted one by one",
                input.display()
            ),
        ));
    }
    let read = || {
        let source = Source::open(input)?;
        // Also reads all that can be wrong about the file.
        let format = catalog_source(&source, input)?.format;
        Ok((source, format))
    };
    let (source, format) = read().map_err(|e| of_file(e, input))?;
    check_name(format, output)?;
    let kept = atomic::write(output, |out| {
        let file = match format {
            Format::PtZip => pt::File::open_zip(&source, Archive::open(&source)?)?,
            Format::PtLegacy | Format::PtTar => pt::File::open(&source)?,
            _ => return copy(&source, 0, source.len(), out).map(|()| Vec::new()),
        };
        pt::rewrite(&source, file, &archive_name(output), out)
    })?;
    let after =
        std::fs::metadata(output).map_err(|e| Error::io(output.display().to_string(), e))?;
    Ok(CompactReport {
        format,
        bytes_before: source.len(),
        bytes_after: after.len(),
        kept,
    })
}

/// What PyTorch calls the archive inside a file of this name.
pub(crate) fn archive_name(path: &Path) -> String {
    let stem = stem(path);
    let plain = stem
        .bytes()
        .all(|b| b.is_ascii_graphic() && !matches!(b, b'/' | b'\\'));
    if plain && !stem.is_empty() && stem != ".." {
        stem
    } else {
        "archive".into()
    }
}

/// Refuses a name that promises another format: nothing is converted.
fn check_name(format: Format, output: &Path) -> Result<()> {
    let extension = output
        .extension()
        .map(|e| e.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let promised = match &*extension {
        "safetensors" | "npy" | "npz" => &*extension,
        e if PICKLES.contains(&e) => "PyTorch",
        _ => return Ok(()),
    };
    let is = match format {
        Format::Safetensors => "safetensors",
        Format::Npy => "npy",
        Format::Npz => "npz",
        Format::PtZip | Format::PtLegacy | Format::PtTar | Format::Pickle => "PyTorch",
    };
    if is == promised {
        return Ok(());
    }
    Err(Error::new(
        Kind::Value,
        format!(
            "compact keeps the format: {} is named as a {promised} file, but a {is} file is read",
            output.display()
        ),
    ))
}
