//! The picture as JSON and as one HTML page.

use super::Picture;
use crate::page::{Page, write_file};
use osteon_spec::{Error, Kind, Result};
use std::io::{self, Write};
use std::path::Path;

impl Picture {
    /// The picture as JSON: the schema of `docs/memory-map.md`.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`] when the text cannot be held.
    pub fn to_json(&self) -> Result<String> {
        text(|out| serde_json::to_writer(out, self).map_err(io::Error::from))
    }

    /// The picture as one HTML page that needs nothing else: no network, no other file.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`] when the text cannot be held.
    pub fn to_html(&self) -> Result<String> {
        text(|out| self.write_page(out))
    }

    /// Writes the page to a file, whole or not at all: beside it first, then renamed.
    ///
    /// # Errors
    /// [`Kind::Io`] when the folder cannot be written to or is full; an earlier file stays as it was.
    pub fn write_html(&self, path: impl AsRef<Path>) -> Result<()> {
        write_file(path.as_ref(), "memory picture", |out| self.write_page(out))
    }

    fn write_page(&self, out: &mut impl Write) -> io::Result<()> {
        let page = Page {
            lang: self.lang,
            title: &self.title,
            markup: include_str!("picture.html"),
            style: include_str!("picture.css"),
            script: concat!(
                include_str!("words.js"),
                include_str!("model.js"),
                include_str!("draw.js"),
                include_str!("details.js"),
                include_str!("picture.js"),
            ),
            data: self,
        };
        page.write(out)
    }
}

/// What `write` writes, as a string, or the error that there is no memory for it.
fn text(write: impl FnOnce(&mut Growing) -> io::Result<()>) -> Result<String> {
    let mut out = Growing(Vec::new());
    write(&mut out).map_err(|e| {
        Error::new(
            Kind::OutOfMemory,
            format!("cannot hold the memory picture as text: {e}"),
        )
    })?;
    // Every part comes from a `str`, so that this never loses a character.
    String::from_utf8(out.0).map_err(|e| Error::new(Kind::Value, e.to_string()))
}

/// A `Vec` that reports full memory instead of aborting.
struct Growing(Vec<u8>);

impl Write for Growing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .try_reserve(bytes.len())
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
