//! The copy log: each time elements move, with the reason and a hint how to avoid it.

use super::summary::{CopySummary, Sums};
use super::{Entry, Kind as EventKind, push, thread_number};
use crate::scope::{self, ScopeId};
use crate::storage::{Site, Storage};
use crate::timeline::spool;
use osteon_spec::{DType, Error, Kind, Layout, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Why elements moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CopyReason {
    /// `copy` asked for a tensor of its own.
    Requested,
    /// `copy_` or an assignment wrote one tensor into another.
    Assigned,
    /// `contiguous` of a tensor whose elements lie in another order.
    Contiguous,
    /// `reshape`, `flatten` or `ravel` to a shape that strides cannot express.
    Reshape,
    /// `to` another dtype.
    Cast,
    /// `compact` let go of a larger storage.
    Compact,
    /// A storage grew and its bytes had to move.
    Resize,
    /// An operation needed an operand in another form.
    Materialized,
    /// A file's bytes could not be used where they lie.
    Loaded,
}

impl CopyReason {
    /// All of them, in order.
    pub(crate) const ALL: [CopyReason; 9] = [
        CopyReason::Requested,
        CopyReason::Assigned,
        CopyReason::Contiguous,
        CopyReason::Reshape,
        CopyReason::Cast,
        CopyReason::Compact,
        CopyReason::Resize,
        CopyReason::Materialized,
        CopyReason::Loaded,
    ];

    /// Whether nobody asked for it: what [`forbid`] refuses.
    pub fn is_implicit(self) -> bool {
        matches!(self, CopyReason::Reshape | CopyReason::Materialized)
    }

    /// How to avoid the copy, or when it is right.
    pub fn hint(self) -> &'static str {
        match self {
            CopyReason::Requested => "asked for; a plain handle or view shares the storage instead",
            CopyReason::Assigned => "asked for; to write results in place, use the op's _out form",
            CopyReason::Contiguous => {
                "most ops read any strides: leave it out, or do it once outside the loop"
            }
            CopyReason::Reshape => {
                "lay the data out in this order once, or keep the dims apart; reshape_info() says which force it"
            }
            CopyReason::Cast => "index or slice first, then cast what is left; or cast once",
            CopyReason::Compact => "right when the storage it lets go is much larger",
            CopyReason::Resize => "allocate the final size at once",
            CopyReason::Materialized => "give the op the layout it wants once, outside the loop",
            CopyReason::Loaded => {
                "save the file uncompressed and in this machine's byte order to map it instead"
            }
        }
    }

    /// The reason in a word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CopyReason::Requested => "requested",
            CopyReason::Assigned => "assigned",
            CopyReason::Contiguous => "contiguous",
            CopyReason::Reshape => "reshape",
            CopyReason::Cast => "cast",
            CopyReason::Compact => "compact",
            CopyReason::Resize => "resize",
            CopyReason::Materialized => "materialized",
            CopyReason::Loaded => "loaded",
        }
    }
}

impl fmt::Display for CopyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One side of a copy.
#[derive(Clone, Debug)]
pub struct CopyEnd {
    /// The storage's id.
    pub storage: u64,
    /// Its elements' type.
    pub dtype: DType,
    /// Where they lie in it.
    pub layout: Layout,
}

/// One side of a copy that is entered in the log: a storage, and what a dtype and a layout see of it.
pub type Side<'a> = (&'a Storage, DType, &'a Layout);

impl From<Side<'_>> for CopyEnd {
    fn from((storage, dtype, layout): Side<'_>) -> CopyEnd {
        CopyEnd {
            storage: storage.id(),
            dtype,
            layout: layout.clone(),
        }
    }
}

impl fmt::Display for CopyEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} of storage {}",
            self.dtype, self.layout, self.storage
        )
    }
}

/// One copy.
#[derive(Clone, Debug)]
pub struct CopyEvent {
    /// Counts all copies of the process.
    pub number: u64,
    /// Why.
    pub reason: CopyReason,
    /// By which operation.
    pub op: &'static str,
    /// Called from which line.
    pub site: Site,
    /// In which scope.
    pub scope: ScopeId,
    /// On which thread: a number that no other thread of the process has; 0 for one that was ending.
    pub thread: u32,
    /// Bytes written.
    pub bytes: usize,
    /// Read from here.
    pub from: CopyEnd,
    /// Written to here.
    pub to: CopyEnd,
}

impl CopyEvent {
    /// How to avoid the copy.
    pub fn hint(&self) -> &'static str {
        self.reason.hint()
    }

    /// As one JSON object.
    pub fn to_json(&self) -> Value {
        let end = |e: &CopyEnd| {
            json!({
                "storage": e.storage, "dtype": e.dtype.name(), "shape": e.layout.sizes(),
                "stride": e.layout.strides(), "offset": e.layout.offset(),
            })
        };
        json!({
            "number": self.number, "reason": self.reason, "op": self.op, "bytes": self.bytes,
            "site": self.site.to_string(), "scope": self.scope.path(), "thread": self.thread,
            "from": end(&self.from), "to": end(&self.to), "hint": self.hint(),
        })
    }
}

/// `64 bytes by contiguous at src/main.rs:4:9 (contiguous): float32 (4, 4)@(1, 4) of storage 1 -> …`
impl fmt::Display for CopyEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes by {} at {} ({}): {} -> {}; {}",
            self.bytes,
            self.op,
            self.site,
            self.reason,
            self.from,
            self.to,
            self.hint()
        )
    }
}

/// The log keeps this many copies; older ones are only counted.
const KEPT: usize = 16_384;

/// The newest copies and the number of all.
///
/// The deque grows to [`KEPT`] events, or as far as there is memory, and stays: the events in it are always
/// the last ones, without a gap.
struct Log {
    events: VecDeque<CopyEvent>,
    total: u64,
    sums: Sums,
}

static LOG: Mutex<Log> = Mutex::new(Log {
    events: VecDeque::new(),
    total: 0,
    sums: Sums::EMPTY,
});

fn log() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(|e| e.into_inner())
}

/// Enters a copy that is about to be made, or refuses it.
///
/// # Errors
/// [`Kind::CopyForbidden`] for an implicit copy inside [`forbid`].
pub fn check(reason: CopyReason, op: &'static str, what: impl fmt::Display) -> Result<()> {
    if reason.is_implicit() && FORBIDDEN.get() > 0 {
        return Err(Error::new(
            Kind::CopyForbidden,
            format!(
                "would copy {what}, and copies::forbid() is in force; {}",
                reason.hint()
            ),
        )
        .op(op));
    }
    Ok(())
}

/// A copy that is being made.
#[derive(Debug)]
#[must_use = "a copy that was made is recorded"]
pub struct Begun {
    bytes: usize,
    started: Option<Instant>,
    /// How many copies it stands for.
    weight: u32,
}

/// From this size on every copy is timed: looking at the clock costs as much as copying some hundred bytes.
const TIMED: usize = 4096;
/// Of smaller ones, one in this many.
const SAMPLE: u32 = 16;

/// Begins a copy of this many bytes: what to call before the elements move.
pub fn begin(bytes: usize) -> Begun {
    thread_local! {
        static SMALL: Cell<u32> = const { Cell::new(0) };
    }
    let weight = if bytes >= TIMED || spool::is_on() {
        1
    } else {
        let n = SMALL.try_with(|n| n.replace(n.get().wrapping_add(1)));
        if n.unwrap_or(0).is_multiple_of(SAMPLE) {
            SAMPLE
        } else {
            0
        }
    };
    Begun {
        bytes,
        started: (weight > 0).then(Instant::now),
        weight,
    }
}

/// Enters a copy that was made.
pub fn record(
    begun: Begun,
    reason: CopyReason,
    op: &'static str,
    site: Site,
    from: Side<'_>,
    to: Side<'_>,
) {
    let time = begun.started.map_or(Duration::ZERO, |s| s.elapsed());
    let (scope, thread, bytes) = (scope::current(), thread_number(), begun.bytes);
    // What goes into a storage that is in use is a write; growth keeps what was there.
    if !matches!(reason, CopyReason::Assigned | CopyReason::Resize) {
        to.0.set_copied_from(reason, from.0.id());
    }
    let clock = to.0.inner().tick_with(from.0.inner());
    push(
        clock,
        Entry {
            kind: EventKind::Copy,
            op,
            site: Some(site),
            storage: to.0.id(),
            bytes: bytes as u64,
            other: from.0.id(),
            reason: Some(reason),
        },
    );
    if spool::is_on() {
        let ids = (from.0.id(), to.0.id());
        spool::copy((reason, op, site), time, bytes as u64, ids);
    }
    let (from, to) = (from.into(), to.into());
    let mut log = log();
    log.sums
        .add((reason, op, site), bytes as u64, time * begun.weight);
    let number = log.total;
    log.total += 1;
    let full = log.events.len() == KEPT || log.events.try_reserve(1).is_err();
    if full && log.events.pop_front().is_none() {
        return;
    }
    log.events.push_back(CopyEvent {
        number,
        reason,
        op,
        site,
        scope,
        thread,
        bytes,
        from,
        to,
    });
}

/// All copies since the program began, added up by line, operation and reason: the most bytes first.
///
/// ```
/// let before = osteon_memory::copies::summary();
/// assert_eq!(osteon_memory::copies::summary().diff(&before).count(), 0);
/// ```
pub fn summary() -> CopySummary {
    log().sums.summary()
}

/// A moment in the copy log.
#[derive(Clone, Copy, Debug)]
pub struct Mark(u64);

/// Now, to look back at with [`since`].
///
/// ```
/// let mark = osteon_memory::copies::mark();
/// assert!(osteon_memory::copies::since(&mark).is_empty());
/// ```
pub fn mark() -> Mark {
    Mark(log().total)
}

/// The copies made after a mark, by all threads, oldest first. The log keeps the last 16,384; how many of those
/// asked for are older and lost, [`CopyLog::missed`] says.
pub fn since(mark: &Mark) -> CopyLog {
    let log = log();
    let wanted = log.total.saturating_sub(mark.0);
    let kept = (log.events.len() as u64).min(wanted) as usize;
    let mut events = Vec::new();
    // What there is no memory to list is missed.
    if events.try_reserve_exact(kept).is_ok() {
        let skip = log.events.len() - kept;
        events.extend(log.events.iter().skip(skip).cloned());
    }
    CopyLog {
        missed: wanted - events.len() as u64,
        events,
    }
}

/// Copies, oldest first; a slice of [`CopyEvent`].
#[derive(Clone, Debug)]
pub struct CopyLog {
    events: Vec<CopyEvent>,
    missed: u64,
}

impl CopyLog {
    /// How many copies were made in this time that the log no longer holds.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Those that the calling thread made. What was missed is of unknown threads and stays.
    #[must_use]
    pub fn on_this_thread(mut self) -> CopyLog {
        let here = thread_number();
        self.events.retain(|e| e.thread == here);
        self
    }

    /// The bytes that the listed copies wrote.
    pub fn bytes(&self) -> usize {
        self.events.iter().map(|e| e.bytes).sum()
    }
}

impl Deref for CopyLog {
    type Target = [CopyEvent];
    fn deref(&self) -> &[CopyEvent] {
        &self.events
    }
}

/// One copy a line.
impl fmt::Display for CopyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.missed > 0 {
            writeln!(f, "({} older copies are no longer listed)", self.missed)?;
        }
        self.events.iter().try_for_each(|e| writeln!(f, "{e}"))
    }
}

thread_local! {
    static FORBIDDEN: Cell<usize> = const { Cell::new(0) };
}

/// Until the guard is dropped, implicit copies on this thread are errors: `reshape`, `flatten` and `ravel`
/// that must copy, and anything that an operation materialises for itself. `copy`, `contiguous`,
/// `compact`, `to` and `copy_` ask for a copy and stay allowed.
#[must_use = "copies are forbidden until the guard is dropped"]
pub fn forbid() -> Forbidden {
    FORBIDDEN.set(FORBIDDEN.get() + 1);
    Forbidden {
        this_thread: PhantomData,
    }
}

/// See [`forbid`].
#[derive(Debug)]
pub struct Forbidden {
    this_thread: PhantomData<*const ()>,
}

impl Drop for Forbidden {
    fn drop(&mut self) {
        FORBIDDEN.set(FORBIDDEN.get() - 1);
    }
}
