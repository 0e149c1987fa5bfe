//! Short ways to make this crate's errors.

use osteon_spec::{Error, Kind};

/// The file is not what it says.
#[cold]
pub(crate) fn bad(message: impl Into<String>) -> Error {
    Error::new(Kind::Format, message)
}

/// Memory for a file's bytes could not be had.
#[cold]
pub(crate) fn out_of_memory(bytes: u64) -> Error {
    Error::new(Kind::OutOfMemory, format!("no memory for {bytes} bytes"))
}

/// `1 byte`, `2 bytes`, for messages.
pub(crate) fn count(n: u64, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
