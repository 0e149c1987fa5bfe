//! Storages put together: those of one name, made by one line, kept by one line.

use super::StorageInfo;
use crate::label::Label;
use crate::scope::ScopeId;
use crate::storage::{Line, Origin, Site};
use osteon_spec::Device;
use std::cmp::Ordering;
use std::collections::TryReserveError;
use std::fmt;

/// What keeps a storage alive, in one word; see [`StorageInfo::held_by`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldBy {
    /// A tensor that is no view of another one.
    Tensor,
    /// Views alone: the tensor they were made of is gone.
    View {
        /// The operation that made the oldest of them.
        op: &'static str,
        /// The line that called it.
        site: Site,
    },
    /// The graph of derivatives alone.
    Graph {
        /// The operation that saved it for its backward pass.
        op: &'static str,
        /// The line that called it.
        site: Site,
    },
    /// A guard alone.
    Guard {
        /// The line that took it.
        site: Site,
    },
    /// A handle to the storage alone.
    Handle,
}

impl HeldBy {
    /// The word that JSON has.
    pub fn name(self) -> &'static str {
        match self {
            HeldBy::Tensor => "tensor",
            HeldBy::View { .. } => "view",
            HeldBy::Graph { .. } => "graph",
            HeldBy::Guard { .. } => "guard",
            HeldBy::Handle => "handle",
        }
    }

    /// The operation that made what holds it, and its line, where that is not the one that made the storage.
    pub fn place(self) -> (Option<&'static str>, Option<Site>) {
        match self {
            HeldBy::View { op, site } | HeldBy::Graph { op, site } => (Some(op), Some(site)),
            HeldBy::Guard { site } => (None, Some(site)),
            HeldBy::Tensor | HeldBy::Handle => (None, None),
        }
    }
}

/// `a view by select at src/main.rs:7`.
impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldBy::Tensor => f.write_str("a tensor"),
            HeldBy::View { op, site } => write!(f, "a view by {op} at {}", Line(site)),
            HeldBy::Graph { op, site } => {
                write!(f, "the graph: saved for backward by {op} at {}", Line(site))
            }
            HeldBy::Guard { site } => write!(f, "a guard taken at {}", Line(site)),
            HeldBy::Handle => f.write_str("a handle to the storage"),
        }
    }
}

/// Storages that have a line and more in common, summed. In a difference, how many more there are.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their label, or their tensors'. Labels that differ in numbers alone are one.
    pub label: Option<Label>,
    /// Whether the labels differ in their numbers.
    pub numbered: bool,
    /// The scope they were made in: that of the newest.
    pub scope: ScopeId,
    /// The device they are on.
    pub device: Device,
    /// What made them: of the newest.
    pub origin: Origin,
    /// What keeps them: of the newest.
    pub held: HeldBy,
    /// How many there are.
    pub storages: i64,
    /// The sum of their bytes.
    pub bytes: i64,
    /// The sum of their blocks' bytes, rounding included.
    pub allocated: i64,
    /// The sum of what [`StorageInfo::compact_frees`] says.
    pub compact_frees: i64,
    /// The id of the newest.
    pub newest: u64,
    /// Where the graph of derivatives alone keeps them: the tensor in the program's hands whose graph it is, or of
    /// several the one that keeps most; for the newest.
    pub root: Option<Root>,
}

/// A tensor in a program's hands, named.
#[derive(Clone, Debug)]
pub struct Root {
    /// Its label.
    pub label: Option<Label>,
    /// The operation that made it.
    pub op: &'static str,
    /// The line that called it.
    pub site: Site,
}

/// `"total" add at src/main.rs:20`.
impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label:?} ")?;
        }
        write!(f, "{} at {}", self.op, Line(self.site))
    }
}

/// What storages of one group have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The line that made them, their name and their scope.
    Name,
    /// That, and what keeps them.
    Holder,
    /// The line that made them, and what keeps them.
    Kept,
    /// What keeps them, alone.
    Saver,
}

/// Sums storages, each counted `sign` times, by what they have in common; most bytes first.
pub(crate) fn groups<'a>(
    storages: impl Iterator<Item = (&'a StorageInfo, i64)> + Clone,
    by: By,
) -> Result<Vec<Group>, TryReserveError> {
    let mut list: Vec<(&StorageInfo, i64)> = Vec::new();
    list.try_reserve_exact(storages.clone().count())?;
    list.extend(storages);
    list.sort_unstable_by(|a, b| by.compare(a.0, b.0).then(a.0.id.cmp(&b.0.id)));
    let mut groups: Vec<Group> = Vec::new();
    let mut of: Option<&StorageInfo> = None;
    for (s, sign) in list {
        if !of.is_some_and(|first| by.compare(first, s).is_eq()) {
            groups.try_reserve(1)?;
            groups.push(Group::empty(s));
            of = Some(s);
        }
        if let Some(group) = groups.last_mut() {
            group.add(s, sign);
        }
    }
    groups.sort_unstable_by_key(|g| (-g.allocated, -g.bytes, -g.storages, g.newest));
    Ok(groups)
}

impl By {
    fn compare(self, a: &StorageInfo, b: &StorageInfo) -> Ordering {
        let line = || origins(&a.origin, &b.origin).then(a.device.cmp(&b.device));
        let name = || match (a.name(), b.name()) {
            (Some(a), Some(b)) => without_numbers(a).cmp(without_numbers(b)),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        let holder = || holders(a.held_by(), b.held_by());
        match self {
            By::Name => line().then_with(name).then(a.scope.cmp(&b.scope)),
            By::Holder => By::Name.compare(a, b).then_with(holder),
            By::Kept => line().then_with(holder),
            By::Saver => holder(),
        }
    }
}

/// A label's characters, with `*` for each number in it.
pub(crate) fn without_numbers(label: &str) -> impl Iterator<Item = char> {
    let mut in_number = false;
    label.chars().filter_map(move |c| {
        let was = std::mem::replace(&mut in_number, c.is_ascii_digit());
        match (was, in_number) {
            (true, true) => None,
            (false, true) => Some('*'),
            _ => Some(c),
        }
    })
}

/// The order of what reports show of origins.
pub(crate) fn origins(a: &Origin, b: &Origin) -> Ordering {
    fn key(o: &Origin) -> (u8, &str, Option<Site>) {
        match o {
            Origin::Allocated { op, site } => (0, op, Some(site)),
            Origin::Mapped { path, .. } => (1, path, None),
            Origin::Foreign { owner, site } => (2, owner, Some(site)),
        }
    }
    key(a).cmp(&key(b))
}

fn holders(a: HeldBy, b: HeldBy) -> Ordering {
    let key = |h: HeldBy| (h.name(), h.place());
    key(a).cmp(&key(b))
}

impl Group {
    fn empty(of: &StorageInfo) -> Group {
        Group {
            label: of.name().cloned(),
            numbered: false,
            scope: of.scope,
            device: of.device,
            origin: of.origin.clone(),
            held: of.held_by(),
            storages: 0,
            bytes: 0,
            allocated: 0,
            compact_frees: 0,
            newest: of.id,
            root: None,
        }
    }

    fn add(&mut self, s: &StorageInfo, sign: i64) {
        self.storages += sign;
        self.bytes += sign * s.nbytes as i64;
        self.allocated += sign * s.allocated as i64;
        self.compact_frees += sign * s.compact_frees() as i64;
        if s.id >= self.newest {
            let label = s.name().cloned();
            self.numbered |= label != self.label;
            self.label = label;
            self.scope = s.scope;
            self.origin = s.origin.clone();
            self.held = s.held_by();
            self.newest = s.id;
        }
    }

    /// The order of groups by [`By::Kept`].
    pub(crate) fn compare_line(&self, other: &Group) -> Ordering {
        origins(&self.origin, &other.origin)
            .then(self.device.cmp(&other.device))
            .then_with(|| holders(self.held, other.held))
    }

    /// The label as a report shows it.
    pub(crate) fn shown_label(&self) -> Option<ShownLabel<'_>> {
        let numbered = self.numbered;
        self.label
            .as_deref()
            .map(|label| ShownLabel { label, numbered })
    }
}

/// A label, with `*` for its numbers where they differ.
pub(crate) struct ShownLabel<'a> {
    label: &'a str,
    numbered: bool,
}

impl fmt::Display for ShownLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        if self.numbered {
            without_numbers(self.label).try_for_each(|c| f.write_char(c))
        } else {
            f.write_str(self.label)
        }
    }
}
