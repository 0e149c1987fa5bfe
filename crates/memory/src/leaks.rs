//! What stays: since a moment, and from step to step.

use crate::events;
use crate::holders::name_roots;
use crate::json::Each;
use crate::map::{By, Group, MapDiff, MemoryMap, groups, map, write_group};
use crate::text::{Count, Entry, bytes};
use osteon_spec::Result;
use serde::{Serialize, Serializer};
use std::cmp::Reverse;
use std::collections::TryReserveError;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

/// A moment in memory, to look back at with [`diff`].
#[derive(Clone, Debug)]
pub struct Mark(MemoryMap);

/// Now, to look back at with [`diff`].
pub fn mark() -> Mark {
    Mark(map())
}

/// What changed in memory since a mark, by the name, scope and line of the storages: largest growth first.
///
/// ```
/// use osteon_memory::{Storage, diff, mark};
/// let here = std::panic::Location::caller();
/// let before = mark();
/// let kept = Storage::allocate(4096, &osteon_spec::Device::cpu(), "zeros", here)?;
/// assert!(diff(&before).to_string().starts_with("+4 KiB  +1 storage  zeros at "));
/// # drop(kept);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn diff(mark: &Mark) -> MapDiff {
    map().diff(&mark.0)
}

/// How often a line must have grown before it is told.
const RISES: u64 = 3;

/// The steps so far.
struct Steps {
    number: u64,
    lines: Vec<Watched>,
}

/// A line whose bytes have not fallen since a step.
struct Watched {
    group: Group,
    /// The step since which they have not fallen, and what they were then.
    since: u64,
    bytes: i64,
    storages: i64,
    /// In how many steps since then they grew, and in which last.
    rises: u64,
    last_rise: u64,
}

static STEPS: Mutex<Steps> = Mutex::new(Steps {
    number: 0,
    lines: Vec::new(),
});

fn steps() -> MutexGuard<'static, Steps> {
    STEPS.lock().unwrap_or_else(|e| e.into_inner())
}

/// Ends a step of the program: a batch, a request, an epoch. Returns the lines whose live bytes only grow: that have
/// grown in at least three steps, still do, and have not fallen in between.
///
/// To be called where a program has let go of what it needed within the step. Costs a map of the memory.
///
/// ```
/// use osteon_memory::{Storage, step};
/// # let here = std::panic::Location::caller();
/// let mut history = Vec::new();
/// for _ in 0..6 {
///     history.push(Storage::allocate(4096, &osteon_spec::Device::cpu(), "zeros", here)?); // kept
///     let growth = step();
///     if !growth.is_empty() {
///         print!("{growth}");
///     }
/// }
/// let growth = step();
/// assert_eq!((growth.lines[0].bytes, growth.lines[0].group.storages), (5 * 4096, 6));
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn step() -> Growth {
    let now = map();
    let all = now.storages.iter().map(|s| (s, 1));
    // What a map omits is not gone: such a step is not compared.
    let seen = groups(all, By::Kept).ok().filter(|_| now.omitted == 0);
    let mut steps = steps();
    steps.number += 1;
    let step = steps.number;
    let lines = seen.and_then(|groups| steps.see(groups).ok());
    drop(steps);
    events::step(step);
    let complete = lines.is_some();
    let mut lines = lines.unwrap_or_default();
    name_roots(lines.iter_mut().map(|l| &mut l.group));
    Growth {
        step,
        lines,
        complete,
    }
}

impl Steps {
    /// Compares a step's groups with those before.
    fn see(&mut self, mut groups: Vec<Group>) -> Result<Vec<GrowingLine>, TryReserveError> {
        self.lines.try_reserve(groups.len())?;
        groups.sort_unstable_by(Group::compare_line);
        // What is there no more is forgotten.
        let found =
            |g: &Group, groups: &[Group]| groups.binary_search_by(|x| x.compare_line(g)).is_ok();
        self.lines.retain(|w| found(&w.group, &groups));
        let before = self.lines.len();
        for group in groups {
            let old = self.lines[..before].binary_search_by(|w| w.group.compare_line(&group));
            match old {
                Ok(at) => self.lines[at].see(group, self.number),
                Err(_) => self.lines.push(Watched::new(group, self.number)),
            }
        }
        self.lines
            .sort_unstable_by(|a, b| a.group.compare_line(&b.group));
        let growing = || self.lines.iter().filter(|w| w.grows(self.number));
        let mut told = Vec::new();
        told.try_reserve_exact(growing().count())?;
        told.extend(growing().map(|w| GrowingLine {
            group: w.group.clone(),
            since: w.since,
            steps: self.number - w.since,
            bytes: w.group.bytes - w.bytes,
            storages: w.group.storages - w.storages,
        }));
        told.sort_unstable_by_key(|l| (Reverse(l.bytes), l.group.newest));
        Ok(told)
    }
}

impl Watched {
    fn new(group: Group, step: u64) -> Watched {
        Watched {
            since: step,
            bytes: group.bytes,
            storages: group.storages,
            rises: 0,
            last_rise: step,
            group,
        }
    }

    fn see(&mut self, group: Group, step: u64) {
        if group.bytes < self.group.bytes {
            *self = Watched::new(group, step);
            return;
        }
        if group.bytes > self.group.bytes {
            self.rises += 1;
            self.last_rise = step;
        }
        self.group = group;
    }

    /// Whether it has grown often enough, and not stopped: it has rested for no more than two of its mean pauses.
    fn grows(&self, step: u64) -> bool {
        let rested = (step - self.last_rise).saturating_mul(self.rises);
        self.rises >= RISES && rested <= 2 * (self.last_rise - self.since)
    }
}

/// The lines whose live bytes only grow; see [`step`].
#[derive(Clone, Debug)]
pub struct Growth {
    /// How many steps there were.
    pub step: u64,
    /// Most growth first.
    pub lines: Vec<GrowingLine>,
    /// Whether the step was compared with those before: there was memory to list and to sort everything.
    pub complete: bool,
}

/// A line whose live bytes only grow.
#[derive(Clone, Debug)]
pub struct GrowingLine {
    /// What the line made and what keeps it, now.
    pub group: Group,
    /// The step since which its bytes have not fallen.
    pub since: u64,
    /// How many steps there were since then.
    pub steps: u64,
    /// By how many bytes it has grown.
    pub bytes: i64,
    /// By how many storages.
    pub storages: i64,
}

impl GrowingLine {
    /// Bytes a step, rounded down.
    pub fn bytes_per_step(&self) -> i64 {
        self.bytes / (self.steps as i64).max(1)
    }
}

impl Growth {
    /// Whether no line only grows.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// As JSON; every number is defined in docs/memory.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> Result<String> {
        crate::json::to_string(self, "growing lines")
    }
}

/// An entry for each line.
impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.complete {
            writeln!(f, "(there was no memory to compare everything)")?;
        }
        if self.lines.is_empty() {
            return writeln!(f, "step {}: no line only grows", self.step);
        }
        let lines = Count(self.lines.len() as u64, "line");
        writeln!(f, "step {}: live bytes of {lines} only grow", self.step)?;
        for l in &self.lines {
            let g = &l.group;
            let mut entry = Entry::new(f, 2, 6)?;
            entry.part(format_args!("+{} a step", bytes(l.bytes_per_step() as u64)))?;
            write_group(&mut entry, g)?;
            entry
                .part(format_args!("now {}", Count(g.storages as u64, "storage")))?
                .part(format_args!("{}", bytes(g.bytes as u64)))?
                .part(format_args!("since step {}", l.since))?
                .end()?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct GrowthJson<L> {
    schema: u32,
    kind: &'static str,
    step: u64,
    complete: bool,
    lines: L,
}

#[derive(Serialize)]
struct LineJson<'a> {
    since: u64,
    steps: u64,
    bytes: i64,
    storages: i64,
    bytes_per_step: i64,
    group: &'a Group,
}

impl LineJson<'_> {
    fn new(l: &GrowingLine) -> LineJson<'_> {
        LineJson {
            since: l.since,
            steps: l.steps,
            bytes: l.bytes,
            storages: l.storages,
            bytes_per_step: l.bytes_per_step(),
            group: &l.group,
        }
    }
}

impl Serialize for Growth {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        GrowthJson {
            schema: 1,
            kind: "growth",
            step: self.step,
            complete: self.complete,
            lines: Each(|| self.lines.iter().map(LineJson::new)),
        }
        .serialize(to)
    }
}
