//! JSON and other text written where memory may have run out: an error instead of an abort.

use osteon_spec::{Error, Kind, Result};
use serde::{Serialize, Serializer};
use std::fmt;
use std::io::{self, Write};

/// A value as JSON.
pub(crate) fn to_string(value: &impl Serialize, what: &str) -> Result<String> {
    text(what, |out| {
        serde_json::to_writer(out, value).map_err(io::Error::from)
    })
}

/// What `write` writes, as a string, or the error that there is no memory for it.
pub(crate) fn text(
    what: &str,
    write: impl FnOnce(&mut Growing) -> io::Result<()>,
) -> Result<String> {
    let mut out = Growing(Vec::new());
    write(&mut out).map_err(|e| {
        Error::new(
            Kind::OutOfMemory,
            format!("cannot hold the {what} as text: {e}"),
        )
    })?;
    // Every part comes from a `str`, so that this never loses a character.
    String::from_utf8(out.0).map_err(|e| Error::new(Kind::Value, e.to_string()))
}

/// A `Vec` that reports full memory instead of aborting.
pub(crate) struct Growing(Vec<u8>);

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

/// What a value is when displayed, as a JSON string.
pub(crate) fn shown<S: Serializer>(
    value: &impl fmt::Display,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// The same of a value that may be missing.
pub(crate) fn shown_option<S: Serializer>(
    value: &Option<impl fmt::Display>,
    to: S,
) -> std::result::Result<S::Ok, S::Error> {
    match value {
        Some(value) => to.collect_str(value),
        None => to.serialize_none(),
    }
}

/// A value as a JSON string of what it is when displayed.
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// A list whose entries are made one at a time, as they are written.
pub(crate) struct Each<F>(pub(crate) F);

impl<F, I> Serialize for Each<F>
where
    F: Fn() -> I,
    I: IntoIterator<Item: Serialize>,
{
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_seq((self.0)())
    }
}
