//! The picture as JSON and as one HTML page.

use super::{Lang, Picture};
use osteon_spec::{Error, Kind, Result};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The page with `%%SLOT%%` where its parts go.
const PAGE: &str = include_str!("picture.html");
const STYLE: &str = include_str!("picture.css");
const SCRIPT: &str = concat!(
    include_str!("words.js"),
    include_str!("model.js"),
    include_str!("draw.js"),
    include_str!("details.js"),
    include_str!("picture.js"),
);

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
        let path = path.as_ref();
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(name);
        let written = File::create(&part).and_then(|file| {
            let mut out = BufWriter::new(file);
            self.write_page(&mut out)?;
            out.into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .sync_all()?;
            fs::rename(&part, path)
        });
        written.map_err(|e| {
            // The error that matters is the one above; the part may not even exist.
            let _ = fs::remove_file(&part);
            Error::io(
                format!("cannot write the memory picture {}", path.display()),
                e,
            )
        })
    }

    fn write_page(&self, out: &mut impl Write) -> io::Result<()> {
        for piece in PAGE.split("%%") {
            match piece {
                "LANG" => out.write_all(match self.lang {
                    Lang::En => b"en",
                    Lang::Zh => b"zh",
                })?,
                "TITLE" => out.write_all(escape_markup(&self.title).as_bytes())?,
                "STYLE" => out.write_all(STYLE.as_bytes())?,
                "DATA" => serde_json::to_writer(InScript(&mut *out), self)?,
                "SCRIPT" => out.write_all(SCRIPT.as_bytes())?,
                markup => out.write_all(markup.as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Text as the content of an element.
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Writes JSON so that it can stand inside a `<script>` element: what could end the element, open a comment
/// or end a line of script becomes a `\u` escape. JSON has these characters in strings only.
struct InScript<W>(W);

impl<W: Write> Write for InScript<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        let mut from = 0;
        for at in 0..json.len() {
            // serde_json writes strings in pieces that end at ASCII characters, never inside a character.
            let (escape, len): (&[u8], usize) = match json[at..] {
                [b'<', ..] => (b"\\u003c", 1),
                [b'>', ..] => (b"\\u003e", 1),
                [b'&', ..] => (b"\\u0026", 1),
                [0xe2, 0x80, 0xa8, ..] => (b"\\u2028", 3),
                [0xe2, 0x80, 0xa9, ..] => (b"\\u2029", 3),
                _ => continue,
            };
            self.0.write_all(&json[from..at])?;
            self.0.write_all(escape)?;
            from = at + len;
        }
        self.0.write_all(&json[from..])?;
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
