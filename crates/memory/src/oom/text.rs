//! The report in words, at most 100 columns wide.

use super::{FreeRun, Neighbour, Report};
use crate::map::{Group, Listed, write_groups};
use crate::storage::Line;
use crate::text::{Count, Entry, bytes};
use std::fmt;

/// How many groups a list shows; the rest is summed.
const SHOWN: usize = 8;

/// One figure: its name, then its value at column 15.
fn row<'a, 'b>(
    f: &'a mut fmt::Formatter<'b>,
    name: &str,
    value: fmt::Arguments<'_>,
) -> Result<Entry<'a, 'b>, fmt::Error> {
    let mut entry = Entry::new(f, 2, 15)?;
    entry.part(format_args!("{name:<11}"))?.part(value)?;
    Ok(entry)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_request(f)?;
        row(f, "verdict", format_args!("{}", self.verdict))?.end()?;
        self.write_figures(f)?;
        if let Some(free) = &self.largest_free {
            write_run(f, free)?;
        }
        let live = self.holders.iter().take_while(|g| g.allocated > 0).count();
        write_list(f, "holders", &self.holders[..live])?;
        if self.omitted > 0 {
            let omitted = Count(self.omitted as u64, "storage");
            writeln!(f, "  {omitted} more: there was no memory to list them")?;
        }
        if let Some(room) = &self.room {
            write_list(f, "to make room, let go of", &room.free_groups)?;
            write_list(
                f,
                "to make room, compact() the tensors of",
                &room.compact_groups,
            )?;
        }
        if !self.events.is_empty() {
            writeln!(f, "last events:")?;
        }
        for event in &self.events {
            Entry::new(f, 2, 12)?.part(format_args!("{event}"))?.end()?;
        }
        write!(f, "what helps: {}", self.verdict.advice())
    }
}

impl Report {
    fn write_request(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut entry = Entry::new(f, 0, 15)?;
        let wanted = bytes(self.error.requested as u64);
        entry.part(format_args!("out of memory: {wanted} on {}", self.device))?;
        if let Some((op, site)) = self.by {
            entry.part(format_args!("for {op} at {}", Line(site)))?;
        }
        if let Some((dtype, layout)) = &self.wanted {
            entry.part(format_args!("{dtype} {:?}", layout.sizes()))?;
        }
        entry.end()
    }

    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let u = &self.usage;
        match u.limit {
            Some(limit) => row(f, "limit", format_args!("{}", bytes(limit)))?.end()?,
            None => row(f, "limit", format_args!("none"))?.end()?,
        }
        row(f, "allocated", format_args!("{}", bytes(u.allocated)))?
            .part(format_args!("in {}", Count(u.storages, "storage")))?
            .part(format_args!("({} requested)", bytes(u.requested)))?
            .end()?;
        row(f, "reserved", format_args!("{}", bytes(u.reserved)))?
            .part(format_args!("idle {}", bytes(u.idle())))?
            .part(format_args!("cached {}", bytes(u.cached)))?
            .end()
    }
}

fn write_run(f: &mut fmt::Formatter<'_>, free: &FreeRun) -> fmt::Result {
    let mut entry = row(f, "largest run", format_args!("{}", bytes(free.bytes)))?;
    match &free.below {
        Some(n) => write_neighbour(&mut entry, "after", n)?,
        None => _ = entry.part(format_args!("after the segment's start"))?,
    }
    match &free.above {
        Some(n) => write_neighbour(&mut entry, "before", n)?,
        None => _ = entry.part(format_args!("before the segment's end"))?,
    }
    entry.end()
}

/// `after storage 3 "kv" of 16 MiB  zeros at src/main.rs:30`.
fn write_neighbour(entry: &mut Entry<'_, '_>, side: &str, n: &Neighbour) -> fmt::Result {
    let id = n.id;
    match &n.known {
        Some((Some(label), size, origin)) => entry
            .part(format_args!(
                "{side} storage {id} {label:?} of {}",
                bytes(*size)
            ))?
            .part(format_args!("{origin}"))?,
        Some((None, size, origin)) => entry
            .part(format_args!("{side} storage {id} of {}", bytes(*size)))?
            .part(format_args!("{origin}"))?,
        None => entry.part(format_args!("{side} storage {id}"))?,
    };
    Ok(())
}

/// The first groups, and the sum of the others.
fn write_list(f: &mut fmt::Formatter<'_>, title: &str, all: &[Group]) -> fmt::Result {
    if all.is_empty() {
        return Ok(());
    }
    let sum = |groups: &[Group]| {
        groups.iter().fold((0, 0), |(n, sum), g| {
            (n + g.storages as u64, sum + g.allocated as u64)
        })
    };
    let (n, total) = sum(all);
    writeln!(f, "{title} {} ({}):", Count(n, "storage"), bytes(total))?;
    let (shown, rest) = all.split_at(all.len().min(SHOWN));
    write_groups(f, shown, Listed::Allocated)?;
    if !rest.is_empty() {
        let (n, total) = sum(rest);
        let (n, from) = (Count(n, "storage"), Count(rest.len() as u64, "other line"));
        writeln!(f, "  {:>8}  {n} of {from}", bytes(total))?;
    }
    Ok(())
}
