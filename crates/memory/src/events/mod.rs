//! What happens to memory, as it happens: the flight recorder, which is always on, and the copy log.
//!
//! # In which order events are
//!
//! No counter is shared by all threads, as two of them would spend more time on it than on the rest. Each event
//! has the time of a Lamport clock: a thread, a storage and a device each remember the latest time they met,
//! and an event is later than all that it touches. So events of one thread, events on one storage, and
//! allocations and frees of one device are in their order; others happened at the same time.

#![cfg_attr(any(loom, unrecorded), allow(dead_code))]

pub(crate) mod copies;
mod entry;
mod labels;
mod recent;
#[cfg(not(any(loom, unrecorded)))]
mod recorder;
#[cfg(any(loom, unrecorded))]
#[path = "unrecorded.rs"]
mod recorder;
mod slot;
mod summary;

pub(crate) use entry::{Entry, Kind};
pub use recent::{Event, EventKind, Recent, recent};
pub(crate) use recorder::{note, push, thread_number, tick};
#[cfg(all(test, loom))]
pub(crate) use slot::Slot;
pub(crate) use summary::Spread;
pub use summary::{CopySite, CopySummary};

use crate::scope::ScopeId;
use crate::storage::{Site, Storage};
use crate::text::try_string;
use crate::timeline::spool;

/// Enters that a storage, or a tensor on it, got a label.
pub(crate) fn label(storage: &Storage, label: &str) {
    push(
        storage.inner().tick(0),
        Entry {
            kind: Kind::Label,
            storage: storage.id(),
            other: u64::from(labels::number(label)),
            ..Entry::default()
        },
    );
}

/// Enters that the allocator's limit was set.
pub(crate) fn limit(limit: Option<usize>) {
    if spool::is_on() {
        spool::mark("limit", "", limit.map(|l| l as u64));
    }
    let kind = if limit.is_some() {
        Kind::Limit
    } else {
        Kind::NoLimit
    };
    note(Entry {
        kind,
        op: "set_limit",
        bytes: limit.unwrap_or(0) as u64,
        ..Entry::default()
    });
}

/// Enters that a scope began, or ended.
pub(crate) fn scope(kind: Kind, id: ScopeId) {
    if spool::is_on() {
        let name = if kind == Kind::Scope {
            "scope"
        } else {
            "scope_end"
        };
        spool::mark(name, id.path(), None);
    }
    note(Entry {
        kind,
        other: u64::from(id.number()),
        ..Entry::default()
    });
}

/// Enters that a step ended.
pub(crate) fn step(number: u64) {
    if spool::is_on() {
        spool::mark("step", "", Some(number));
    }
    note(Entry {
        kind: Kind::Step,
        other: number,
        ..Entry::default()
    });
}

/// Enters that an allocation failed.
#[cold]
pub(crate) fn out_of_memory(nbytes: usize, op: &'static str, site: Site) {
    // Where the heap is full as well, a mark without its text says enough.
    if spool::is_on() {
        let text = try_string(format_args!("{op} at {site}")).unwrap_or_default();
        spool::mark("oom", &text, Some(nbytes as u64));
    }
    note(Entry {
        kind: Kind::OutOfMemory,
        op,
        site: Some(site),
        bytes: nbytes as u64,
        ..Entry::default()
    });
}
