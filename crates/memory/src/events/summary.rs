//! All copies of the process, added up by the line that made them.

use super::copies::CopyReason;
use crate::json::Shown;
use crate::storage::{Line, Site};
use crate::text::{Count, Entry, bytes};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

/// What a line of the program copied with one operation for one reason.
#[derive(Clone, Copy, Debug)]
pub struct CopySite {
    /// The operation.
    pub op: &'static str,
    /// The line that called it.
    pub site: Site,
    /// Why it copied.
    pub reason: CopyReason,
    /// How often.
    pub count: u64,
    /// Bytes written in all.
    pub bytes: u64,
    /// Time in all. Of copies under 4 KiB one in sixteen is timed, and stands for them.
    pub time: Duration,
}

impl CopySite {
    /// How to avoid the copies, or when they are right.
    pub fn hint(&self) -> &'static str {
        self.reason.hint()
    }

    fn is_of(&self, other: &CopySite) -> bool {
        (self.op, self.site, self.reason) == (other.op, other.site, other.reason)
    }
}

/// Copies by line, most bytes first.
#[derive(Clone, Debug, Default)]
pub struct CopySummary {
    /// One for each line, operation and reason.
    pub sites: Vec<CopySite>,
}

impl CopySummary {
    /// The number of copies.
    pub fn count(&self) -> u64 {
        self.sites.iter().map(|s| s.count).sum()
    }

    /// The bytes that they wrote.
    pub fn bytes(&self) -> u64 {
        self.sites.iter().map(|s| s.bytes).sum()
    }

    /// What came since an earlier summary.
    #[must_use]
    pub fn diff(&self, earlier: &CopySummary) -> CopySummary {
        let sites = self.sites.iter().map(|now| {
            let before = earlier.sites.iter().find(|s| s.is_of(now));
            before.map_or(*now, |before| CopySite {
                count: now.count - before.count,
                bytes: now.bytes - before.bytes,
                time: now.time.saturating_sub(before.time),
                ..*now
            })
        });
        CopySummary::sorted(sites.filter(|s| s.count > 0).collect())
    }

    fn sorted(mut sites: Vec<CopySite>) -> CopySummary {
        sites.sort_by_key(|s| std::cmp::Reverse((s.bytes, s.count)));
        CopySummary { sites }
    }

    /// As JSON; see docs/memory.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> osteon_spec::Result<String> {
        crate::json::to_string(self, "summary of copies")
    }
}

impl Serialize for CopySummary {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(5))?;
        map.serialize_entry("schema", &1)?;
        map.serialize_entry("kind", "copies")?;
        map.serialize_entry("count", &self.count())?;
        map.serialize_entry("bytes", &self.bytes())?;
        map.serialize_entry("sites", &self.sites)?;
        map.end()
    }
}

impl Serialize for CopySite {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(7))?;
        map.serialize_entry("op", self.op)?;
        map.serialize_entry("site", &Shown(self.site))?;
        map.serialize_entry("reason", self.reason.name())?;
        map.serialize_entry("count", &self.count)?;
        map.serialize_entry("bytes", &self.bytes)?;
        let nanoseconds = self.time.as_nanos().min(u128::from(u64::MAX));
        map.serialize_entry("time_ns", &(nanoseconds as u64))?;
        map.serialize_entry("hint", self.hint())?;
        map.end()
    }
}

/// The copies and the bytes of each line, and below them the hint; at most 100 columns wide.
impl fmt::Display for CopySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, lines) = (self.count(), self.sites.len() as u64);
        let copies = if count == 1 { "copy" } else { "copies" };
        writeln!(
            f,
            "{count} {copies}, {}, by {}",
            bytes(self.bytes()),
            Count(lines, "line")
        )?;
        for s in &self.sites {
            Entry::new(f, 0, 12)?
                .part(format_args!("{:>10}", bytes(s.bytes)))?
                .part(format_args!("{:>8} x", s.count))?
                .part(format_args!("{:>9.3} ms", s.time.as_secs_f64() * 1e3))?
                .part(format_args!("{} at {} ({})", s.op, Line(s.site), s.reason))?
                .end()?;
            let mut hint = Entry::new(f, 12, 12)?;
            for part in s.hint().split_inclusive("; ") {
                hint.part(format_args!("{}", part.trim_end()))?;
            }
            hint.end()?;
        }
        Ok(())
    }
}

/// The running sums. As many as the program has lines that copy.
#[derive(Default)]
pub(super) struct Sums(HashMap<Key, CopySite, BuildHasherDefault<Spread>>);

/// Places of the operation's name and of the line: both live for ever.
type Key = (usize, usize, CopyReason);

impl Sums {
    pub(super) const EMPTY: Sums = Sums(HashMap::with_hasher(BuildHasherDefault::new()));

    /// Adds a copy. Without memory for a new line it is left out.
    pub(super) fn add(
        &mut self,
        (reason, op, site): (CopyReason, &'static str, Site),
        bytes: u64,
        time: Duration,
    ) {
        let key = (op.as_ptr().addr(), std::ptr::from_ref(site).addr(), reason);
        if !self.0.contains_key(&key) && self.0.try_reserve(1).is_err() {
            return;
        }
        let sum = self.0.entry(key).or_insert(CopySite {
            op,
            site,
            reason,
            count: 0,
            bytes: 0,
            time: Duration::ZERO,
        });
        sum.count += 1;
        sum.bytes += bytes;
        sum.time += time;
    }

    pub(super) fn summary(&self) -> CopySummary {
        let mut sites: Vec<CopySite> = Vec::new();
        for s in self.0.values() {
            // The compiler may have the same text, and the same line, in several places.
            match sites.iter_mut().find(|other| other.is_of(s)) {
                Some(same) => {
                    same.count += s.count;
                    same.bytes += s.bytes;
                    same.time += s.time;
                }
                None => sites.push(*s),
            }
        }
        CopySummary::sorted(sites)
    }
}

/// Hashes addresses by multiplication, which is enough for those of one program.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        // The table looks at the highest and the lowest bits.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}
