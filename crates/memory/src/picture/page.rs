//! The picture as JSON and as one HTML page.

use super::Picture;
use crate::json;
use crate::page::{Page, write_file};
use osteon_spec::Result;
use std::io::{self, Write};
use std::path::Path;

impl Picture {
    /// The picture as JSON: the schema of `docs/memory-map.md`.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`](osteon_spec::Kind::OutOfMemory) when the text cannot be held.
    pub fn to_json(&self) -> Result<String> {
        json::to_string(self, "memory picture")
    }

    /// The picture as one HTML page that needs nothing else: no network, no other file.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`](osteon_spec::Kind::OutOfMemory) when the text cannot be held.
    pub fn to_html(&self) -> Result<String> {
        json::text("memory picture", |out| self.write_page(out))
    }

    /// Writes the page to a file, whole or not at all: beside it first, then renamed.
    ///
    /// # Errors
    /// [`Kind::Io`](osteon_spec::Kind::Io) when the folder cannot be written to or is full; an earlier file stays as it was.
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
