//! Holders in words, at most 100 columns wide, and as JSON.

use super::{Dominator, Dominators, Holder, Holders, Pin, PinLine, Pins, Step};
use crate::json::{Each, shown};
use crate::map::StorageInfo;
use crate::registry::{Role, TensorInfo};
use crate::storage::{GuardInfo, Line, Origin, Site};
use crate::text::{Count, Entry, bytes};
use osteon_spec::Result;
use serde::{Serialize, Serializer};
use std::fmt;

/// Steps of a way that are shown at each end.
const ENDS: usize = 4;

/// Lines of a list that are shown; the rest is counted.
const SHOWN: usize = 20;

/// The label, operation and line of a tensor.
struct Named<'a>(&'a TensorInfo);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (op, line) = (self.0.op, Line(self.0.site));
        if let Some(label) = &self.0.label {
            write!(f, "{label:?} ")?;
        }
        match self.0.role {
            Role::Saved => write!(f, "saved for backward by {op} at {line}"),
            Role::Tensor | Role::View => write!(f, "{op} at {line}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Node { op, site } => write!(f, "graph: {op} at {}", Line(site)),
            Step::Tensor(t) => Named(t).fmt(f),
        }
    }
}

fn write_storage(f: &mut fmt::Formatter<'_>, s: &StorageInfo) -> fmt::Result {
    let mut entry = Entry::new(f, 0, 4)?;
    entry.part(format_args!("storage {}", s.id))?;
    if let Some(label) = &s.label {
        entry.part(format_args!("{label:?}"))?;
    }
    entry
        .part(format_args!("{}", bytes(s.nbytes as u64)))?
        .part(format_args!("{}", s.origin))?;
    match s.origin {
        Origin::Allocated { .. } => entry.part(format_args!("is held by"))?,
        // It keeps its owner, which may hold it too, in ways that only it knows.
        Origin::Mapped { .. } => entry.part(format_args!("(a file's bytes) is held by"))?,
        Origin::Foreign { .. } => entry.part(format_args!("(its owner's bytes) is held by"))?,
    };
    entry.end()
}

/// A line for each holder, and below it the way from there.
impl fmt::Display for Holders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_storage(f, &self.storage)?;
        if self.holders.is_empty() {
            writeln!(f, "  nothing: it is being freed")?;
        }
        for holder in self.holders.iter().take(SHOWN) {
            match holder {
                Holder::Tensor { tensor, path } => {
                    let mut entry = Entry::new(f, 2, 6)?;
                    entry
                        .part(format_args!("{}", Named(tensor)))?
                        .part(format_args!("{} {}", tensor.dtype, tensor.layout))?
                        .end()?;
                    write_path(f, path)?;
                }
                Holder::Guard(guard) => {
                    let mut entry = Entry::new(f, 2, 6)?;
                    entry.part(format_args!("a guard taken at {}", Line(guard.site)))?;
                    entry.end()?;
                }
                Holder::Handles(n) => {
                    writeln!(f, "  {} to the storage", Count(*n as u64, "handle"))?;
                }
            }
        }
        write_rest(f, self.holders.len())
    }
}

fn write_rest(f: &mut fmt::Formatter<'_>, all: usize) -> fmt::Result {
    match all.checked_sub(SHOWN) {
        Some(rest) if rest > 0 => writeln!(f, "  and {rest} more"),
        _ => Ok(()),
    }
}

fn write_path(f: &mut fmt::Formatter<'_>, path: &[Step]) -> fmt::Result {
    let mut step = |step: &Step| Entry::new(f, 4, 10)?.part(format_args!("-> {step}"))?.end();
    if path.len() <= 2 * ENDS + 1 {
        return path.iter().try_for_each(step);
    }
    path[..ENDS].iter().try_for_each(&mut step)?;
    writeln!(f, "    -> … {} more", path.len() - 2 * ENDS)?;
    let last = &path[path.len() - ENDS..];
    last.iter()
        .try_for_each(|step| Entry::new(f, 4, 10)?.part(format_args!("-> {step}"))?.end())
}

/// A line for each tensor.
impl fmt::Display for Dominators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "if it went, so much would be free:")?;
        for d in self.entries.iter().take(SHOWN) {
            Entry::new(f, 2, 12)?
                .part(format_args!("{:>8}", bytes(d.retained)))?
                .part(format_args!("{}", Count(d.storages, "storage")))?
                .part(format_args!("{}", Named(&d.tensor)))?
                .part(format_args!("{} {}", d.tensor.dtype, d.tensor.layout))?
                .end()?;
        }
        write_rest(f, self.entries.len())
    }
}

/// An entry for each line that made tensors and each that made their storages.
impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "bytes that tensors keep beyond those they reach:")?;
        for l in self.lines.iter().take(SHOWN) {
            let mut entry = Entry::new(f, 2, 12)?;
            entry
                .part(format_args!("{:>8}", bytes(l.beyond)))?
                .part(format_args!("{}", Count(l.tensors, "tensor")))?
                .part(format_args!("{} at {}", l.op, Line(l.site)))?
                .part(format_args!("reaching {}", bytes(l.reached)))?
                .part(format_args!("of {}", Count(l.storages, "storage")))?
                .part(format_args!("made by {}", l.origin))?;
            match l.frees {
                0 => entry.part(format_args!("which others need too"))?,
                n => entry.part(format_args!("compact() would free {}", bytes(n)))?,
            };
            entry.end()?;
        }
        write_rest(f, self.lines.len())
    }
}

macro_rules! to_json {
    ($($report:ty, $what:literal;)*) => { $(
        impl $report {
            /// As JSON; every number is defined in docs/memory.md.
            ///
            /// # Errors
            /// Out of memory.
            pub fn to_json(&self) -> Result<String> {
                crate::json::to_string(self, $what)
            }
        }
    )* };
}

to_json! {
    Holders, "holders of a storage";
    Dominators, "list of dominators";
    Pins, "list of pins";
}

#[derive(Serialize)]
struct HoldersJson<'a> {
    schema: u32,
    kind: &'static str,
    storage: u64,
    label: Option<&'a str>,
    nbytes: usize,
    allocated: usize,
    #[serde(serialize_with = "shown")]
    origin: &'a Origin,
    holders: &'a [Holder],
}

impl Serialize for Holders {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let s = &self.storage;
        HoldersJson {
            schema: 1,
            kind: "holders",
            storage: s.id,
            label: s.label.as_deref(),
            nbytes: s.nbytes,
            allocated: s.allocated,
            origin: &s.origin,
            holders: &self.holders,
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
#[serde(tag = "holder", rename_all = "snake_case")]
enum HolderJson<'a> {
    Tensor {
        tensor: &'a TensorInfo,
        path: &'a [Step],
    },
    Guard {
        guard: &'a GuardInfo,
    },
    Handles {
        handles: usize,
    },
}

impl Serialize for Holder {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Holder::Tensor { tensor, path } => HolderJson::Tensor { tensor, path },
            Holder::Guard(guard) => HolderJson::Guard { guard },
            Holder::Handles(handles) => HolderJson::Handles { handles: *handles },
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum StepJson<'a> {
    Node {
        op: &'static str,
        #[serde(serialize_with = "shown")]
        site: Site,
    },
    Tensor(&'a TensorInfo),
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Step::Node { op, site } => StepJson::Node { op, site },
            Step::Tensor(t) => StepJson::Tensor(t),
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct DominatorsJson<E> {
    schema: u32,
    kind: &'static str,
    entries: E,
}

#[derive(Serialize)]
struct DominatorJson<'a> {
    retained: u64,
    storages: u64,
    storage: u64,
    tensor: &'a TensorInfo,
}

impl DominatorJson<'_> {
    fn new(d: &Dominator) -> DominatorJson<'_> {
        DominatorJson {
            retained: d.retained,
            storages: d.storages,
            storage: d.storage,
            tensor: &d.tensor,
        }
    }
}

impl Serialize for Dominators {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        DominatorsJson {
            schema: 1,
            kind: "dominators",
            entries: Each(|| self.entries.iter().map(DominatorJson::new)),
        }
        .serialize(to)
    }
}

#[derive(Serialize)]
struct PinJson<'a> {
    beyond: usize,
    frees: usize,
    reached: usize,
    storage: u64,
    label: Option<&'a str>,
    nbytes: usize,
    #[serde(serialize_with = "shown")]
    origin: &'a Origin,
    tensors: usize,
    tensor: &'a TensorInfo,
}

#[derive(Serialize)]
struct PinsJson<L, E> {
    schema: u32,
    kind: &'static str,
    lines: L,
    entries: E,
}

#[derive(Serialize)]
struct LineJson<'a> {
    beyond: u64,
    frees: u64,
    reached: u64,
    tensors: u64,
    storages: u64,
    op: &'static str,
    #[serde(serialize_with = "shown")]
    site: Site,
    #[serde(serialize_with = "shown")]
    origin: &'a Origin,
}

impl LineJson<'_> {
    fn new(l: &PinLine) -> LineJson<'_> {
        LineJson {
            beyond: l.beyond,
            frees: l.frees,
            reached: l.reached,
            tensors: l.tensors,
            storages: l.storages,
            op: l.op,
            site: l.site,
            origin: &l.origin,
        }
    }
}

impl PinJson<'_> {
    fn new(p: &Pin) -> PinJson<'_> {
        PinJson {
            beyond: p.beyond(),
            frees: p.frees,
            reached: p.reached,
            storage: p.storage,
            label: p.label.as_deref(),
            nbytes: p.nbytes,
            origin: &p.origin,
            tensors: p.tensors,
            tensor: &p.tensor,
        }
    }
}

impl Serialize for Pins {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        PinsJson {
            schema: 1,
            kind: "pins",
            lines: Each(|| self.lines.iter().map(LineJson::new)),
            entries: Each(|| self.entries.iter().map(PinJson::new)),
        }
        .serialize(to)
    }
}
