//! What happened last, for people and programs.

use super::copies::CopyReason;
use super::entry::{Entry, Kind, Recorded};
use super::{labels, recorder};
use crate::scope::ScopeId;
use crate::storage::{Line, Site};
use crate::text::bytes;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
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
    /// A step began: its number.
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

    /// As one JSON object; see docs/memory.md.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "kind": self.kind.name(),
            "op": self.op,
            "site": self.site.map(|s| s.to_string()),
            "scope": self.scope.path(),
            "thread": self.thread,
            "storage": self.storage,
            "bytes": self.bytes,
            "label": self.label,
        });
        match self.kind {
            EventKind::Alloc { allocated } | EventKind::Free { allocated } => {
                json["allocated"] = allocated.into();
            }
            EventKind::Copy { from, reason } => {
                json["from"] = from.into();
                json["reason"] = reason.name().into();
            }
            EventKind::Limit(limit) => json["limit"] = limit.into(),
            EventKind::ScopeEnd(scope) => json["ended"] = scope.path().into(),
            EventKind::Step(number) => json["step"] = number.into(),
            _ => {}
        }
        json
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(to)
    }
}

/// `alloc      16.00 MiB  storage 12 "weights"  zeros at src/main.rs:4:9  in encoder.3`
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}", self.kind.name())?;
        match self.kind {
            EventKind::Alloc { .. }
            | EventKind::Free { .. }
            | EventKind::Copy { .. }
            | EventKind::OutOfMemory => write!(f, " {:>10}", bytes(self.bytes).to_string())?,
            EventKind::Limit(Some(limit)) => write!(f, " {:>10}", bytes(limit).to_string())?,
            EventKind::Limit(None) => write!(f, " {:>10}", "none")?,
            EventKind::Step(number) => write!(f, " {number:>10}")?,
            EventKind::Write | EventKind::Label | EventKind::Scope | EventKind::ScopeEnd(_) => {
                write!(f, " {:>10}", "")?;
            }
        }
        if let Some(id) = self.storage {
            write!(f, "  storage {id}")?;
        }
        if let Some(label) = self.label {
            write!(f, " {label:?}")?;
        }
        if let EventKind::Copy { from, reason } = self.kind {
            write!(f, " from {from} ({reason})")?;
        }
        if !self.op.is_empty() {
            write!(f, "  {}", self.op)?;
        }
        if let Some(site) = self.site {
            write!(f, " at {}", Line(site))?;
        }
        let scope = match self.kind {
            EventKind::ScopeEnd(ended) => ended,
            _ => self.scope,
        };
        match scope.path() {
            "" => Ok(()),
            path => write!(f, "  in {path}"),
        }
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
    pub fn to_json(&self) -> Value {
        json!({
            "schema": 1,
            "kind": "recent",
            "missed": self.missed,
            "events": self.events.iter().map(Event::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Deref for Recent {
    type Target = [Event];
    fn deref(&self) -> &[Event] {
        &self.events
    }
}

/// One event a line, oldest first.
impl fmt::Display for Recent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.events.iter().try_for_each(|e| writeln!(f, "{e}"))
    }
}
