//! The timeline in words, at most 100 columns wide.

use super::{DeviceFigures, Stay, Text, Timeline};
use crate::text::{Count, Entry, bytes};
use osteon_spec::{Error, Kind, Result};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

/// How many lines a list shows; the rest is summed.
const SHOWN: usize = 8;

/// Stays of one operation, line and label, summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSum {
    /// The operation that made them.
    pub op: Text,
    /// The line that called it.
    pub site: Text,
    /// Their label, with `*` for its numbers where there are several.
    pub label: String,
    /// How many there are.
    pub storages: u64,
    /// The bytes of their blocks.
    pub bytes: u64,
}

impl Timeline {
    /// Those of a device's stays that were there at a moment, in nanoseconds of the recording.
    pub fn live_at(&self, device: usize, time: u64) -> impl Iterator<Item = &Stay> + Clone {
        let stays = self.storages.iter();
        stays.filter(move |s| {
            s.device as usize == device && s.from <= time && s.to.is_none_or(|to| time < to)
        })
    }

    /// Those of a device's stays that began while it was recorded and had not ended when that was over.
    pub fn stayed(&self, device: usize) -> impl Iterator<Item = &Stay> + Clone {
        let stays = self.storages.iter();
        stays.filter(move |s| s.device as usize == device && !s.before && s.to.is_none())
    }

    /// Stays summed by operation, line and label, most bytes first. Labels that differ in numbers alone are one.
    ///
    /// # Errors
    /// Out of memory.
    pub fn by_line<'a>(&self, stays: impl Iterator<Item = &'a Stay>) -> Result<Vec<LineSum>> {
        let full = |_| Error::new(Kind::OutOfMemory, "no memory for sums of a timeline");
        let mut sums: HashMap<(Text, Text, String), LineSum> = HashMap::new();
        for s in stays {
            let label = self.text(s.label);
            sums.try_reserve(1).map_err(full)?;
            let sum = sums
                .entry((s.op, s.site, without_numbers(label)))
                .or_insert_with(|| LineSum {
                    op: s.op,
                    site: s.site,
                    label: label.to_owned(),
                    storages: 0,
                    bytes: 0,
                });
            sum.storages += 1;
            sum.bytes = sum.bytes.saturating_add(s.size);
        }
        let mut list = Vec::new();
        list.try_reserve_exact(sums.len()).map_err(full)?;
        list.extend(sums.into_iter().map(|((.., folded), sum)| LineSum {
            label: if sum.storages > 1 { folded } else { sum.label },
            ..sum
        }));
        list.sort_by(|a: &LineSum, b| {
            let key = |s: &LineSum| (Reverse((s.bytes, s.storages)), s.op, s.site);
            key(a).cmp(&key(b)).then_with(|| a.label.cmp(&b.label))
        });
        Ok(list)
    }

    /// The devices on which anything was, with their number.
    fn used(&self) -> impl Iterator<Item = (usize, &DeviceFigures)> {
        let devices = self.devices.iter().enumerate();
        devices.filter(|&(n, _)| self.storages.iter().any(|s| s.device as usize == n))
    }

    fn write_list<'a>(
        &self,
        f: &mut fmt::Formatter<'_>,
        title: fmt::Arguments<'_>,
        stays: impl Iterator<Item = &'a Stay>,
    ) -> fmt::Result {
        let sums = self.by_line(stays).unwrap_or_default();
        if sums.is_empty() {
            return Ok(());
        }
        let total = |sums: &[LineSum]| {
            let storages = sums.iter().map(|s| s.storages).sum();
            let bytes = sums.iter().fold(0u64, |n, s| n.saturating_add(s.bytes));
            (Count(storages, "storage"), bytes)
        };
        let (count, all) = total(&sums);
        writeln!(f, "{title}, {count} ({}):", bytes(all))?;
        let (shown, rest) = sums.split_at(sums.len().min(SHOWN));
        for s in shown {
            let mut entry = Entry::new(f, 2, 12)?;
            entry
                .part(format_args!("{:>8}", bytes(s.bytes)))?
                .part(format_args!("{}", Count(s.storages, "storage")))?;
            if !s.label.is_empty() {
                entry.part(format_args!("{:?}", s.label))?;
            }
            let (op, site) = (self.text(s.op), self.text(s.site));
            entry.part(format_args!("{op} at {site}"))?.end()?;
        }
        if !rest.is_empty() {
            let ((count, sum), lines) = (total(rest), Count(rest.len() as u64, "other line"));
            writeln!(f, "  {:>8}  {count} of {lines}", bytes(sum))?;
        }
        Ok(())
    }
}

/// The figures, who had the most at each device's peak, and what was made while it was recorded and stayed.
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (time, events) = (Time(self.duration), Count(self.events, "event"));
        let mut entry = Entry::new(f, 0, 2)?;
        entry
            .part(format_args!("{}: {time}, {events}", self.title))?
            .end()?;
        if self.lost > 0 {
            let lost = Count(self.lost, "event");
            writeln!(
                f,
                "  {lost} could not be written: the figures hold up to the first"
            )?;
        }
        for (number, d) in self.used() {
            for (what, start, end, most, at) in [
                (
                    "allocated",
                    d.start.allocated,
                    d.end.allocated,
                    d.peak.allocated,
                    d.peak.time,
                ),
                (
                    "reserved",
                    d.start.reserved,
                    d.end.reserved,
                    d.peak_reserved.reserved,
                    d.peak_reserved.time,
                ),
            ] {
                let (start, end, most, at) =
                    (bytes(start), bytes(end), bytes(most), Time(at.unwrap_or(0)));
                writeln!(
                    f,
                    "  {} {what:<9}  {start} -> {end}, peak {most} at {at}",
                    d.device
                )?;
            }
            if let Some(time) = d.peak.time {
                self.write_list(
                    f,
                    format_args!("at the peak of {}", d.device),
                    self.live_at(number, time),
                )?;
            }
            self.write_list(
                f,
                format_args!("made meanwhile on {} and still there", d.device),
                self.stayed(number),
            )?;
        }
        Ok(())
    }
}

/// Nanoseconds in the unit that suits them.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{n} ns"),
            1_000..1_000_000 => write!(f, "{:.1} µs", n / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", n / 1e6),
            _ => write!(f, "{:.2} s", n / 1e9),
        }
    }
}

/// `layers.12.weight` as `layers.*.weight`.
fn without_numbers(label: &str) -> String {
    let mut out = String::with_capacity(label.len());
    for c in label.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('*') {
            out.push('*');
        }
    }
    out
}
