//! Where bytes came from, and places in programs.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// A place in a user's program.
pub type Site = &'static Location<'static>;

/// A place as reports for people show it: `file:line`, the file without the detours (`a/../`) that build tools make.
pub(crate) struct Line(pub(crate) Site);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.file();
        // From the back: each `..` takes the part before it along.
        let (mut kept, mut up) = (0u64, 0);
        for (i, part) in file.rsplit('/').enumerate() {
            match part {
                ".." => up += 1,
                _ if up > 0 => up -= 1,
                _ if i < 64 => kept |= 1 << i,
                _ => {}
            }
        }
        let parts = file.split('/').count();
        if parts > 64 || up > 0 || kept.count_ones() as usize == parts {
            return write!(f, "{file}:{}", self.0.line());
        }
        for (i, part) in file.split('/').enumerate() {
            let left = parts - 1 - i;
            if kept >> left & 1 == 1 {
                write!(f, "{part}{}", if left > 0 { "/" } else { "" })?;
            }
        }
        write!(f, ":{}", self.0.line())
    }
}

/// Where a storage's bytes came from.
#[derive(Clone)]
pub enum Origin {
    /// Allocated by an operation at a place in the program.
    Allocated {
        /// The operation's name.
        op: &'static str,
        /// The line that called it.
        site: Site,
    },
    /// A window on a mapped file.
    Mapped {
        /// The file.
        path: Arc<str>,
        /// The first byte in the file.
        offset: u64,
    },
    /// Memory that belongs to somebody else, who is kept alive.
    Foreign {
        /// Who, in words.
        owner: Arc<str>,
        /// The line that brought it in.
        site: Site,
    },
}

impl Origin {
    /// The mapped file.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Origin::Mapped { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The operation, or what it is if none made it, and the line.
    #[inline]
    pub(crate) fn maker(&self) -> (&'static str, Option<Site>) {
        match self {
            Origin::Allocated { op, site } => (op, Some(site)),
            Origin::Mapped { .. } => ("mapped", None),
            Origin::Foreign { site, .. } => ("foreign", Some(site)),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Allocated { op, site } => write!(f, "{op} at {}", Line(site)),
            Origin::Mapped { path, offset } => write!(f, "mapped file {path} at byte {offset}"),
            Origin::Foreign { owner, site } => write!(f, "{owner} at {}", Line(site)),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
