//! HTML pages that need nothing else: style, script and data are inside them, and they load nothing.
//!
//! What the pages of reports are made of; see [`picture`](crate::picture) and [`timeline`](crate::timeline) for the pages themselves.

use crate::picture::Lang;
use osteon_spec::{Error, Result};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What stands around the body of every page, with `%%SLOT%%` where the parts go.
const FRAME: &str = include_str!("frame.html");
const BASE_STYLE: &str = include_str!("base.css");
const BASE_SCRIPT: &str = include_str!("base.js");

/// The parts of a page.
#[derive(Debug)]
pub struct Page<'a, D> {
    /// The language of its own words.
    pub lang: Lang,
    /// Its title, as text.
    pub title: &'a str,
    /// The markup of its body.
    pub markup: &'static str,
    /// Its style, after the one that all pages share.
    pub style: &'static str,
    /// Its script, after the one that all pages share.
    pub script: &'static str,
    /// What it shows: JSON in the element `data`.
    pub data: &'a D,
}

impl<D: Serialize> Page<'_, D> {
    /// Writes the page. What comes from users goes into the title and the data alone, where it stays text.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        for piece in FRAME.split("%%") {
            match piece {
                "LANG" => out.write_all(match self.lang {
                    Lang::En => b"en",
                    Lang::Zh => b"zh",
                })?,
                "TITLE" => out.write_all(escape_markup(self.title).as_bytes())?,
                "STYLE" => {
                    out.write_all(BASE_STYLE.as_bytes())?;
                    out.write_all(self.style.as_bytes())?;
                }
                "BODY" => out.write_all(self.markup.as_bytes())?,
                "DATA" => serde_json::to_writer(InScript(&mut *out), self.data)?,
                "SCRIPT" => {
                    out.write_all(BASE_SCRIPT.as_bytes())?;
                    out.write_all(self.script.as_bytes())?;
                }
                markup => out.write_all(markup.as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Writes a file, whole or not at all: beside it first, then renamed. `what` names it in the error.
///
/// # Errors
/// [`Kind::Io`](osteon_spec::Kind::Io) when the folder cannot be written to or is full; an earlier file stays as it was.
pub fn write_file(
    path: &Path,
    what: &str,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = File::create(&part).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        fs::rename(&part, path)
    });
    written.map_err(|e| {
        // The error that matters is the one above; the part may not even exist.
        let _ = fs::remove_file(&part);
        Error::io(format!("cannot write the {what} {}", path.display()), e)
    })
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
