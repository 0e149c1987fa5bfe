//! How much a part of a program may allocate.

use super::recording::{Recording, record};
use super::{Stay, Text};
use crate::events::thread_number;
use crate::text::{Count, Entry, bytes};
use osteon_spec::Result;
use std::collections::HashMap;
use std::fmt;

/// A part of a program that may raise the memory in use by so many bytes at most; see [`Budget::begin`].
#[derive(Debug)]
#[must_use = "a budget is checked by `end`"]
pub struct Budget {
    recording: Recording,
    bytes: u64,
}

/// What went beyond a [`Budget`]: what the thread had allocated at the peak, by line.
#[derive(Clone, Debug)]
pub struct OverBudget {
    /// The bytes that were allowed.
    pub budget: u64,
    /// The most bytes that blocks made in this part held together.
    pub peak: u64,
    /// What was there at the peak: operation and line, storages, bytes of their blocks; most bytes first.
    pub lines: Vec<(String, u64, u64)>,
}

impl Budget {
    /// From here to [`Budget::end`], blocks that this thread allocates may together hold at most `bytes` at any moment, as
    /// the allocator rounds them. Records a timeline meanwhile.
    ///
    /// # Errors
    /// Those of [`record`].
    pub fn begin(bytes: u64) -> Result<Budget> {
        let recording = record()?;
        Ok(Budget { recording, bytes })
    }

    /// Ends the part, and tells what went beyond the budget, if anything did.
    ///
    /// # Errors
    /// Those of [`Recording::stop`].
    pub fn end(self) -> Result<Option<OverBudget>> {
        let thread = u64::from(thread_number());
        let timeline = self.recording.stop()?;
        let made = || {
            let stays = timeline.storages.iter();
            stays.filter(move |s| s.thread == thread && !s.before && s.size > 0)
        };
        // In one moment, what goes makes room for what comes.
        let mut changes: Vec<(u64, i64)> = Vec::new();
        for s in made() {
            changes.push((s.from, s.size as i64));
            changes.extend(s.to.map(|to| (to, -(s.size as i64))));
        }
        changes.sort_unstable();
        let (mut now, mut peak, mut at) = (0, 0, 0);
        for (time, change) in changes {
            now += change;
            if now > peak {
                (peak, at) = (now, time);
            }
        }
        if peak as u64 <= self.bytes {
            return Ok(None);
        }
        let mut lines: HashMap<(Text, Text), (u64, u64)> = HashMap::new();
        let there = |s: &&Stay| s.from <= at && s.to.is_none_or(|to| at < to);
        for s in made().filter(there) {
            let line = lines.entry((s.op, s.site)).or_default();
            *line = (line.0 + 1, line.1 + s.size);
        }
        let mut lines: Vec<_> = lines
            .into_iter()
            .map(|((op, site), (storages, bytes))| {
                let line = format!("{} at {}", timeline.text(op), timeline.text(site));
                (line, storages, bytes)
            })
            .collect();
        lines.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        Ok(Some(OverBudget {
            budget: self.bytes,
            peak: peak as u64,
            lines,
        }))
    }
}

/// The budget, the peak, and what was there at the peak.
impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} allocated at the peak, {} beyond the budget of {}:",
            bytes(self.peak),
            bytes(self.peak - self.budget),
            bytes(self.budget)
        )?;
        for (line, storages, held) in &self.lines {
            Entry::new(f, 2, 14)?
                .part(format_args!("{:>10}", bytes(*held)))?
                .part(format_args!("{}", Count(*storages, "storage")))?
                .part(format_args!("{line}"))?
                .end()?;
        }
        Ok(())
    }
}
