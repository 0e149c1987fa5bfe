//! The map as JSON: a line for each tensor and each storage, so that line tools can read it too.

use super::File;
use crate::term::steers;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;
use serde_json::ser::{CompactFormatter, Formatter};
use std::io::{self, Write};

/// Writes the files' maps; the schema is in docs/memory-map.md.
pub fn write(out: &mut dyn Write, files: &[File]) -> io::Result<()> {
    let mut json = serde_json::Serializer::with_formatter(&mut *out, Lines::default());
    Files(files).serialize(&mut json)?;
    writeln!(out)
}

struct Files<'a>(&'a [File]);
struct Tensors<'a>(&'a File);
struct Storages<'a>(&'a File);

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(2))?;
        map.serialize_entry("schema", &1)?;
        map.serialize_entry("files", self.0)?;
        map.end()
    }
}

impl Serialize for File {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let warnings: Vec<_> = self
            .catalog
            .warnings
            .iter()
            .map(|w| w.to_string())
            .collect();
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("path", &self.path())?;
        map.serialize_entry("format", &self.catalog.format.to_string())?;
        map.serialize_entry("file_bytes", &self.catalog.file_bytes)?;
        map.serialize_entry("warnings", &warnings)?;
        map.serialize_entry("tensors", &Tensors(self))?;
        map.serialize_entry("storages", &Storages(self))?;
        map.end()
    }
}

impl Serialize for Tensors<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.catalog.tensors.iter().map(|t| {
            let entry = json!({
                "shape": t.layout.sizes(),
                "stride": t.layout.strides(),
                "offset": t.layout.offset(),
                "dtype": t.dtype.name(),
                "storage": t.storage,
            });
            (&t.name, entry)
        }))
    }
}

impl Serialize for Storages<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let File { catalog, storages } = self.0;
        s.collect_map(storages.iter().enumerate().map(|(id, storage)| {
            let names: Vec<_> = storage
                .tensors
                .iter()
                .map(|&t| &catalog.tensors[t].name)
                .collect();
            let entry = json!({
                "nbytes": catalog.storages[id].nbytes,
                "reachable_bytes": storage.reached,
                "tensors": names,
            });
            (id.to_string(), entry)
        }))
    }
}

/// The depth to which things stand on lines of their own: a tensor within the tensors of a file in the list
/// of files in the whole.
const OPEN: usize = 4;

/// Breaks lines down to one depth, and escapes what would steer a terminal: JSON itself allows most of that.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// Whether the list or object that ends has anything in it.
    filled: bool,
}

impl Lines {
    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.filled && self.depth < OPEN {
            self.line(out)?;
        }
        self.filled = true;
        out.write_all(bracket)
    }

    fn item<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.filled = true;
        match (first, self.depth <= OPEN) {
            (true, true) => self.line(out),
            (true, false) => Ok(()),
            (false, true) => out.write_all(b",").and_then(|()| self.line(out)),
            (false, false) => out.write_all(b", "),
        }
    }

    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{:1$}", "", 2 * self.depth)
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.find(steers) {
            let (before, from) = rest.split_at(at);
            CompactFormatter.write_string_fragment(out, before)?;
            let mut chars = from.chars();
            for unit in chars
                .next()
                .into_iter()
                .flat_map(|c| c.encode_utf16(&mut [0; 2]).to_vec())
            {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = chars.as_str();
        }
        CompactFormatter.write_string_fragment(out, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn lines_and_escapes() {
        let value = json!({"a": [{"b": {"c": {"d": [1, [2]], "e": "\u{9b}\u{202e}\u{e0001}\n"}}}], "f": [], "g": {}});
        let mut out = Vec::new();
        value
            .serialize(&mut serde_json::Serializer::with_formatter(
                &mut out,
                Lines::default(),
            ))
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(
            text,
            "{\n  \"a\": [\n    {\n      \"b\": {\n        \"c\": {\"d\": [1, [2]], \
             \"e\": \"\\u009b\\u202e\\udb40\\udc01\\n\"}\n      }\n    }\n  ],\n  \"f\": [],\n  \"g\": {}\n}"
        );
    }
}
