//! What changed between two maps.

use super::{By, Group, Listed, MemoryMap, groups, write_groups};
use crate::holders::name_roots;
use osteon_spec::Result;
use std::fmt;

/// What changed between two maps; see [`MemoryMap::diff`] and [`diff`](crate::diff).
#[derive(Clone, Debug)]
pub struct MapDiff {
    /// One for each name, scope and line of which there are more or fewer storages or bytes; largest growth first.
    pub entries: Vec<Group>,
    /// Whether the maps could be compared: there was memory to list and to sort all of both. If not, there are no
    /// entries.
    pub complete: bool,
}

impl MapDiff {
    pub(crate) fn between(earlier: &MemoryMap, later: &MemoryMap) -> MapDiff {
        let before = earlier.storages.iter().map(|s| (s, -1));
        let after = later.storages.iter().map(|s| (s, 1));
        // What a map omits is not gone.
        let whole = earlier.omitted == 0 && later.omitted == 0;
        let listed = whole.then(|| groups(before.chain(after), By::Name).ok());
        let listed = listed.flatten();
        let complete = listed.is_some();
        let mut entries = listed.unwrap_or_default();
        entries.retain(|g| g.storages != 0 || g.bytes != 0);
        entries.sort_unstable_by_key(|g| (-g.bytes, -g.storages, g.newest));
        name_roots(&mut entries);
        MapDiff { entries, complete }
    }

    /// As JSON; every number is defined in docs/memory.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> Result<String> {
        crate::json::to_string(self, "difference")
    }
}

/// An entry for each name, scope and line.
impl fmt::Display for MapDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.complete {
            writeln!(f, "(there was no memory to compare everything)")?;
        }
        write_groups(f, &self.entries, Listed::Difference)
    }
}
