//! What happened last, for people and programs.

use super::copies::CopyReason;
use super::entry::{Entry, Kind, Recorded};
use super::{labels, recorder};
use crate::json::Shown;
use crate::scope::ScopeId;
use crate::storage::{Line, Site};
use crate::text::{self, bytes};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::Deref;

/// What happened in an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A storage got its bytes.
    Alloc {
        /// The bytes of its block, rounding included; 0 for memory that is not the allocator's.
        allocated: u64,
    },
    /// A storage gave its bytes back. The event's `op` and `site` are those that made it.
    Free {
        /// The bytes of its block.
        allocated: u64,
    },
    /// Elements were copied; the event's storage is the one written to.
    Copy {
        /// The storage that was read.
        from: u64,
        /// Why.
        reason: CopyReason,
    },
    /// An operation wrote in place.
    Write,
    /// An allocation failed; the event's `bytes` are those that were asked for.
    OutOfMemory,
    /// The limit of what the allocator may reserve was set.
    Limit(Option<u64>),
    /// A storage, or a tensor on it, got its label.
    Label,
    /// A scope was entered: the event's.
    Scope,
    /// A scope ended.
    ScopeEnd(ScopeId),
    /// A step ended: its number.
    Step(u64),
}

impl EventKind {
    /// The kind in a word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Alloc { .. } => "alloc",
            EventKind::Free { .. } => "free",
            EventKind::Copy { .. } => "copy",
            EventKind::Write => "write",
            EventKind::OutOfMemory => "oom",
            EventKind::Limit(_) => "limit",
            EventKind::Label => "label",
            EventKind::Scope => "scope",
            EventKind::ScopeEnd(_) => "scope_end",
            EventKind::Step(_) => "step",
        }
    }
}

/// One event of the flight recorder.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// By which operation; empty where none was involved.
    pub op: &'static str,
    /// Called from which line.
    pub site: Option<Site>,
    /// In which scope.
    pub scope: ScopeId,
    /// On which thread: a number that no other thread has; 0 for one that was ending.
    pub thread: u32,
    /// The id of the storage that it happened to.
    pub storage: Option<u64>,
    /// The bytes asked for, freed, or copied.
    pub bytes: u64,
    /// The newest label of the storage, or of a tensor on it, that the recorder has seen.
    pub label: Option<&'static str>,
}

/// The newest events, oldest first; a slice of [`Event`].
#[derive(Clone, Debug, Default)]
pub struct Recent {
    events: Vec<Event>,
    missed: u64,
}

/// The last events of all threads: allocations, frees, copies, writes in place, limits, failures, labels, scopes
/// and steps. The recorder is always on. It has room for 65,536 events, in pieces of 64: a thread that rests keeps
/// what it recorded last, and the others share the rest.
///
/// Events of one thread, on one storage, and allocations on one device are in their order; others happened
/// side by side. Takes a few milliseconds; nobody waits for it. Without the memory for a list it is empty.
///
/// ```
/// use osteon_memory::{Storage, recent};
/// # fn main() -> osteon_spec::Result<()> {
/// let site = std::panic::Location::caller();
/// let id = Storage::allocate(100, &osteon_spec::Device::cpu(), "demo", site)?.id();
/// let events = recent();
/// let of_it: Vec<_> = events.iter().filter(|e| e.storage == Some(id)).collect();
/// assert_eq!(of_it.len(), 2); // allocated and freed
/// assert_eq!((of_it[0].op, of_it[0].bytes, of_it[1].kind.name()), ("demo", 100, "free"));
/// # Ok(())
/// # }
/// ```
pub fn recent() -> Recent {
    gather().unwrap_or_default()
}

fn gather() -> Result<Recent, std::collections::TryReserveError> {
    let (kept, missed) = recorder::kept()?;
    let mut recorded: Vec<Recorded> = Vec::new();
    recorded.try_reserve_exact(kept.len())?;
    // SAFETY: `Slot::read` gives whole events only, and all are written by `Entry::encode`.
    recorded.extend(
        kept.into_iter()
            .map(|words| unsafe { Entry::decode(words) }),
    );
    recorded.sort_unstable_by_key(|r| (r.clock, r.thread));
    let mut names = HashMap::new();
    for entry in recorded.iter().map(|r| &r.entry) {
        if entry.kind == Kind::Label {
            names.try_reserve(1)?;
            names.insert(entry.storage, labels::text(entry.other as u32));
        }
    }
    let mut events = Vec::new();
    events.try_reserve_exact(recorded.len())?;
    events.extend(recorded.into_iter().map(|r| Event::new(r, &names)));
    Ok(Recent { events, missed })
}

impl Event {
    fn new(recorded: Recorded, names: &HashMap<u64, Option<&'static str>>) -> Event {
        let Recorded {
            thread,
            scope,
            entry: e,
            ..
        } = recorded;
        let kind = match e.kind {
            Kind::Alloc => EventKind::Alloc { allocated: e.other },
            Kind::Free => EventKind::Free { allocated: e.other },
            Kind::Copy => EventKind::Copy {
                from: e.other,
                reason: e.reason.unwrap_or(CopyReason::Requested),
            },
            Kind::Write => EventKind::Write,
            Kind::OutOfMemory => EventKind::OutOfMemory,
            Kind::Limit => EventKind::Limit(Some(e.bytes)),
            Kind::NoLimit => EventKind::Limit(None),
            Kind::Label => EventKind::Label,
            Kind::Scope => EventKind::Scope,
            Kind::ScopeEnd => EventKind::ScopeEnd(ScopeId::from_number(e.other as u32)),
            Kind::Step => EventKind::Step(e.other),
        };
        Event {
            kind,
            op: e.op,
            site: e.site,
            scope,
            thread,
            storage: (e.storage != 0).then_some(e.storage),
            bytes: e.bytes,
            label: names.get(&e.storage).copied().flatten(),
        }
    }

    /// The event in parts that stand side by side.
    fn each_part(&self, mut part: impl FnMut(fmt::Arguments<'_>) -> fmt::Result) -> fmt::Result {
        let kind = self.kind.name();
        match self.kind {
            EventKind::Alloc { .. }
            | EventKind::Free { .. }
            | EventKind::Copy { .. }
            | EventKind::OutOfMemory => part(format_args!("{kind:<9} {:>10}", bytes(self.bytes)))?,
            EventKind::Limit(Some(limit)) => part(format_args!("{kind:<9} {:>10}", bytes(limit)))?,
            EventKind::Limit(None) => part(format_args!("{kind:<9} {:>10}", "none"))?,
            EventKind::Step(number) => part(format_args!("{kind:<9} {number:>10}"))?,
            EventKind::Write | EventKind::Label | EventKind::Scope | EventKind::ScopeEnd(_) => {
                part(format_args!("{kind:<9} {:>10}", ""))?;
            }
        }
        match (self.storage, self.label) {
            (Some(id), Some(label)) => part(format_args!("storage {id} {label:?}"))?,
            (Some(id), None) => part(format_args!("storage {id}"))?,
            (None, _) => {}
        }
        if let EventKind::Copy { from, reason } = self.kind {
            part(format_args!("from {from} ({reason})"))?;
        }
        match self.site {
            Some(site) => part(format_args!("{} at {}", self.op, Line(site)))?,
            None if !self.op.is_empty() => part(format_args!("{}", self.op))?,
            None => {}
        }
        let scope = match self.kind {
            EventKind::ScopeEnd(ended) => ended,
            _ => self.scope,
        };
        match scope.path() {
            "" => Ok(()),
            path => part(format_args!("in {path}")),
        }
    }
}

/// As one JSON object; see docs/memory.md.
impl Serialize for Event {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("kind", self.kind.name())?;
        map.serialize_entry("op", self.op)?;
        map.serialize_entry("site", &self.site.map(Shown))?;
        map.serialize_entry("scope", self.scope.path())?;
        map.serialize_entry("thread", &self.thread)?;
        map.serialize_entry("storage", &self.storage)?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.serialize_entry("label", &self.label)?;
        match self.kind {
            EventKind::Alloc { allocated } | EventKind::Free { allocated } => {
                map.serialize_entry("allocated", &allocated)?;
            }
            EventKind::Copy { from, reason } => {
                map.serialize_entry("from", &from)?;
                map.serialize_entry("reason", reason.name())?;
            }
            EventKind::Limit(limit) => map.serialize_entry("limit", &limit)?,
            EventKind::ScopeEnd(scope) => map.serialize_entry("ended", scope.path())?,
            EventKind::Step(number) => map.serialize_entry("step", &number)?,
            _ => {}
        }
        map.end()
    }
}

/// `alloc          3 MiB  storage 12 "weights"  zeros at src/main.rs:4:9  in encoder.3`
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        self.each_part(|part| {
            f.write_str(mem::replace(&mut between, "  "))?;
            f.write_fmt(part)
        })
    }
}

impl Recent {
    /// How many events of the process found no place, because more than a thousand threads recorded at once.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Only the last `n`.
    #[must_use]
    pub fn last(mut self, n: usize) -> Recent {
        self.events.drain(..self.events.len().saturating_sub(n));
        self
    }

    /// As JSON; see docs/memory.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> osteon_spec::Result<String> {
        crate::json::to_string(self, "last events")
    }
}

impl Serialize for Recent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(4))?;
        map.serialize_entry("schema", &1)?;
        map.serialize_entry("kind", "recent")?;
        map.serialize_entry("missed", &self.missed)?;
        map.serialize_entry("events", &self.events)?;
        map.end()
    }
}

impl Deref for Recent {
    type Target = [Event];
    fn deref(&self) -> &[Event] {
        &self.events
    }
}

/// An entry for each event, oldest first, at most 100 columns wide.
impl fmt::Display for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|event| {
            let mut line = text::Entry::new(f, 0, 22)?;
            event.each_part(|part| line.part(part).map(drop))?;
            line.end()
        })
    }
}
