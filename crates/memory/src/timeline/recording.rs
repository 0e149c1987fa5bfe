//! Recording memory over time.

use super::Timeline;
use super::replay;
use super::spool::{self, Start};
use osteon_spec::{Error, Kind, Result};
use std::mem;

/// Records all that happens to memory, on all threads and devices, until it is stopped or dropped: every allocation,
/// tensor, copy and in-place write, with operation, line and scope; see [`Timeline`].
///
/// Any length: what happens goes to a temporary file without a name, through a buffer of 128 KiB. Several
/// recordings may run at once, and write once. While one runs, each event costs some hundred nanoseconds, under one
/// lock; docs/memory.md has the figures.
///
/// ```
/// # fn main() -> osteon_spec::Result<()> {
/// use osteon_memory::{Storage, record};
/// let recording = record()?;
/// let site = std::panic::Location::caller();
/// let id = Storage::allocate(1 << 20, &osteon_spec::Device::cpu(), "demo", site)?.id();
/// let timeline = recording.stop()?;
/// let stay = timeline.storages.iter().find(|s| s.id == id).unwrap();
/// assert_eq!((stay.bytes, timeline.text(stay.op)), (1 << 20, "demo"));
/// assert!(stay.to.is_some());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The system's, where there can be no temporary file.
pub fn record() -> Result<Recording> {
    Ok(Recording {
        start: spool::begin().map_err(|e| e.op("record"))?,
    })
}

/// A recording that runs; see [`record`].
#[must_use = "a recording that is dropped is lost"]
#[derive(Debug)]
pub struct Recording {
    start: Start,
}

impl Recording {
    /// Ends the recording and reads it back: a timeline holds all of it in memory, about 100 bytes an event.
    ///
    /// # Errors
    /// The system's, from the file; out of memory.
    pub fn stop(self) -> Result<Timeline> {
        let stretch = spool::end(&self.start);
        mem::forget(self);
        let stretch = stretch
            .ok_or_else(|| Error::new(Kind::Value, "the recording has no file").op("stop"))?;
        replay::timeline(&stretch).map_err(|e| e.op("stop"))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        spool::abandon();
    }
}
