//! The map in words, at most 100 columns wide.

use super::{Group, HeldBy, MemoryMap, StorageInfo};
use crate::holders::name_roots;
use crate::registry::{Role, TensorInfo};
use crate::storage::{Line, Origin};
use crate::text::{Count, Entry, bytes};
use std::cmp::Reverse;
use std::fmt;

/// Sums, then storages by bytes that nothing reaches, then by size, each with its tensors.
impl fmt::Display for MemoryMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensors: usize = self.storages.iter().map(|s| s.tensors.len()).sum();
        writeln!(
            f,
            "{} on {}: {} asked for, {} allocated, {} reserved",
            Count(tensors as u64, "tensor"),
            Count(self.storages.len() as u64, "storage"),
            bytes(self.requested()),
            bytes(self.allocated),
            bytes(self.reserved),
        )?;
        if self.omitted > 0 {
            let omitted = Count(self.omitted as u64, "storage");
            writeln!(f, "({omitted} more: there was no memory to list them)")?;
        }
        if let Ok(mut graph) = self.graph()
            && !graph.is_empty()
        {
            name_roots(&mut graph);
            let sum: i64 = graph.iter().map(|g| g.bytes).sum();
            writeln!(
                f,
                "kept by the graph of derivatives alone: {}",
                bytes(sum as u64)
            )?;
            for g in graph {
                let mut entry = Entry::new(f, 2, 6)?;
                entry.part(format_args!("{:>8}", bytes(g.bytes as u64)))?;
                entry.part(format_args!("{}", Count(g.storages as u64, "storage")))?;
                if let HeldBy::Graph { op, site } = g.held {
                    entry.part(format_args!("saved for backward by {op} at {}", Line(site)))?;
                }
                if let Some(root) = &g.root {
                    entry.part(format_args!("in the graph of {root}"))?;
                }
                entry.end()?;
            }
        }
        let waste =
            |s: &StorageInfo| s.nbytes - s.reached_bytes().unwrap_or(s.nbytes).min(s.nbytes);
        let mut rows: Vec<(usize, &StorageInfo)> = Vec::new();
        if rows.try_reserve_exact(self.storages.len()).is_err() {
            return writeln!(f, "(there is no memory to sort the storages)");
        }
        rows.extend(self.storages.iter().map(|s| (waste(s), s)));
        rows.sort_unstable_by_key(|(waste, s)| (Reverse((*waste, s.nbytes)), s.id));
        rows.into_iter()
            .try_for_each(|(waste, s)| write_storage(f, s, waste))
    }
}

fn write_storage(f: &mut fmt::Formatter<'_>, s: &StorageInfo, waste: usize) -> fmt::Result {
    let mut entry = Entry::new(f, 0, 8)?;
    entry
        .part(format_args!("storage {}", s.id))?
        .part(format_args!("{}", bytes(s.nbytes as u64)))?;
    if let Some(label) = &s.label {
        entry.part(format_args!("{label:?}"))?;
    }
    entry.part(format_args!("{}", s.origin))?;
    write_scope(&mut entry, s.scope.path())?;
    if waste > 0 {
        entry.part(format_args!(
            "({} reached by no tensor)",
            bytes(waste as u64)
        ))?;
    }
    entry.end()?;
    for t in &s.tensors {
        write_tensor(f, t)?;
    }
    for guard in &s.guards {
        writeln!(f, "    a guard taken at {}", Line(guard.site))?;
    }
    if s.handles > 0 {
        writeln!(f, "    {}", Count(s.handles as u64, "handle"))?;
    }
    Ok(())
}

/// One tensor, as an entry of its storage's.
fn write_tensor(f: &mut fmt::Formatter<'_>, t: &TensorInfo) -> fmt::Result {
    let mut entry = Entry::new(f, 4, 8)?;
    if let Some(label) = &t.label {
        entry.part(format_args!("{label:?}"))?;
    }
    entry.part(format_args!("{} {}", t.dtype, t.layout))?;
    let (op, line) = (t.op, Line(t.site));
    match t.role {
        Role::Saved => entry.part(format_args!("saved for backward by {op} at {line}"))?,
        Role::Tensor | Role::View => entry.part(format_args!("{op} at {line}"))?,
    };
    write_scope(&mut entry, t.scope.path())?;
    entry.end()
}

fn write_scope(entry: &mut Entry<'_, '_>, path: &str) -> fmt::Result {
    if !path.is_empty() {
        entry.part(format_args!("in {path}"))?;
    }
    Ok(())
}

/// Which bytes a list of groups shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Those of their blocks.
    Allocated,
    /// Those asked for, with signs: how many more there are.
    Difference,
}

/// An entry for each group.
pub(crate) fn write_groups(
    f: &mut fmt::Formatter<'_>,
    groups: &[Group],
    listed: Listed,
) -> fmt::Result {
    for g in groups {
        let count = Count(g.storages.unsigned_abs(), "storage");
        let mut entry = match listed {
            Listed::Allocated => {
                let mut entry = Entry::new(f, 2, 12)?;
                entry.part(format_args!("{:>8}", bytes(g.allocated.unsigned_abs())))?;
                entry.part(format_args!("{count}"))?;
                entry
            }
            Listed::Difference => {
                let sign = |n: i64| if n < 0 { '-' } else { '+' };
                let mut entry = Entry::new(f, 0, 12)?;
                let size = bytes(g.bytes.unsigned_abs());
                entry.part(format_args!("{}{size}", sign(g.bytes)))?;
                entry.part(format_args!("{}{count}", sign(g.storages)))?;
                entry
            }
        };
        write_group(&mut entry, g)?;
        entry.end()?;
    }
    Ok(())
}

/// The name, scope, origin and holder of a group.
pub(crate) fn write_group(entry: &mut Entry<'_, '_>, g: &Group) -> fmt::Result {
    if let Some(label) = g.shown_label() {
        entry.part(format_args!("\"{label}\""))?;
    }
    match &g.origin {
        // Every window on the file begins at another byte.
        Origin::Mapped { path, .. } => entry.part(format_args!("mapped file {path}"))?,
        origin => entry.part(format_args!("{origin}"))?,
    };
    write_scope(entry, g.scope.path())?;
    if g.held != HeldBy::Tensor {
        entry.part(format_args!("held by {}", g.held))?;
    }
    if let Some(root) = &g.root {
        entry.part(format_args!("in the graph of {root}"))?;
    }
    if g.compact_frees > 0 {
        let frees = bytes(g.compact_frees as u64);
        entry.part(format_args!("compact() would free {frees}"))?;
    }
    Ok(())
}
