//! Timelines in the formats of other tools.

mod chrome;
mod pickle;
mod pprof;
mod snapshot;

use super::{Stay, Text, Timeline};
use crate::page::write_file;
use osteon_spec::Result;
use std::path::Path;

impl Timeline {
    /// Writes the timeline in Chrome's trace format, which Perfetto (<https://ui.perfetto.dev>) and `chrome://tracing` open:
    /// counters of allocated, requested and reserved bytes, a span for each storage, copies, writes, scopes and marks on
    /// their threads.
    ///
    /// # Errors
    /// The file system's; out of memory.
    pub fn write_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        write_file(path.as_ref(), "trace", |out| chrome::write(self, out))
    }

    /// Writes a profile for `pprof`: allocations by operation, line and scope, as all that were made (`alloc`), those at
    /// the peak (`peak`) and those at the end (`inuse`), counted and in bytes of their blocks.
    ///
    /// # Errors
    /// The file system's; out of memory.
    pub fn write_pprof(&self, path: impl AsRef<Path>) -> Result<()> {
        write_file(path.as_ref(), "profile", |out| pprof::write(self, out))
    }

    /// Writes the timeline as a snapshot of PyTorch's memory: `python -m torch.cuda._memory_viz` and
    /// <https://pytorch.org/memory_viz> open it. Each allocation's `user_metadata` has the tensor's name, shape, dtype
    /// and the storage's id.
    ///
    /// # Errors
    /// The file system's; out of memory.
    pub fn write_pytorch_snapshot(&self, path: impl AsRef<Path>) -> Result<()> {
        write_file(path.as_ref(), "snapshot", |out| snapshot::write(self, out))
    }

    /// The stays that had begun and not ended at a moment.
    fn stays_at(&self, time: u64) -> impl Iterator<Item = &Stay> {
        self.storages
            .iter()
            .filter(move |s| s.from <= time && s.to.is_none_or(|to| time < to))
    }
}

/// `src/main.rs:3:5` as file and line; what is no line of a program has line 0.
fn file_and_line(site: &str) -> (&str, u64) {
    let mut parts = site.rsplitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(column), Some(line), Some(file)) if column.parse::<u32>().is_ok() => {
            line.parse().map_or((site, 0), |line| (file, line))
        }
        _ => (site, 0),
    }
}

/// What a stay is called: its label, or the operation that made it.
fn name_of<'a>(timeline: &'a Timeline, stay: &Stay) -> &'a str {
    match stay.label {
        Text(0) => timeline.text(stay.op),
        label => timeline.text(label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_programs_and_other_sites() {
        assert_eq!(file_and_line("src/main.rs:3:5"), ("src/main.rs", 3));
        assert_eq!(file_and_line("C:\\a.rs:12:1"), ("C:\\a.rs", 12));
        assert_eq!(file_and_line("model.safetensors"), ("model.safetensors", 0));
        assert_eq!(file_and_line("a:b:c"), ("a:b:c", 0));
        assert_eq!(file_and_line(""), ("", 0));
    }
}
