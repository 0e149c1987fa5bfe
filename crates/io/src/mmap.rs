//! The one place of this crate that is not safe Rust: mapping a file into memory.

#![allow(
    unsafe_code,
    reason = "a mapping is a pointer to memory that the file's other users share"
)]

use memmap2::Mmap;
use osteon_spec::{Error, Result};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// A file mapped for reading. It stays mapped until the last window goes.
#[derive(Clone, Debug)]
pub(crate) struct Mapping(Arc<Mmap>);

impl Mapping {
    /// Maps the first `len` bytes.
    pub fn new(file: &File, len: u64) -> Result<Mapping> {
        let mut options = memmap2::MmapOptions::new();
        options.len(usize::try_from(len).map_err(|_| {
            Error::io(
                "cannot map",
                std::io::Error::from(std::io::ErrorKind::FileTooLarge),
            )
        })?);
        // SAFETY: the bytes are only read, and never as anything for which some bytes are invalid. That no
        // other process changes or cuts the file meanwhile no process can promise: `LoadOptions` says
        // so, and offers to read instead.
        let map = unsafe { options.map(file) }.map_err(|e| Error::io("cannot map", e))?;
        Ok(Mapping(Arc::new(map)))
    }

    /// A part, which must lie in the mapping; it keeps the whole mapped.
    pub fn window(&self, range: Range<usize>) -> Option<Window> {
        self.0.get(range.clone())?;
        Some(Window {
            map: self.0.clone(),
            range,
        })
    }
}

/// A part of a mapped file, as the owner of a storage.
#[derive(Debug)]
pub(crate) struct Window {
    map: Arc<Mmap>,
    range: Range<usize>,
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        &self.map[self.range.clone()]
    }
}
