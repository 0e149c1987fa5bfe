//! Where a tensor's elements came from.

use crate::events::copies::CopyReason;
use crate::json::Shown;
use crate::registry::Viewer;
use crate::storage::{Line, Origin, Site};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// Where a tensor's elements came from; see [`Provenance::of`].
#[derive(Clone, Debug)]
pub struct Provenance {
    /// In a word.
    pub how: How,
    /// The operation that made the tensor.
    pub op: &'static str,
    /// The line that called it.
    pub site: Site,
    /// The storage that it looks at.
    pub storage: u64,
    /// Where that storage's bytes came from.
    pub origin: Origin,
    /// The copy that filled the storage, if one did: why, and the storage that was read.
    pub copy: Option<(CopyReason, u64)>,
    /// What wrote the storage last in place, if anything did.
    pub last_write: Option<(&'static str, Site)>,
}

/// How a tensor came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// It looks at the storage of another tensor.
    View,
    /// Its operation copied elements into a storage for it.
    Copy,
    /// Its operation made its storage and filled it.
    Result,
    /// Its storage came from outside: a mapped file, somebody else's memory.
    Imported,
}

impl How {
    /// In a word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            How::View => "view",
            How::Copy => "copy",
            How::Result => "result",
            How::Imported => "imported",
        }
    }
}

impl Provenance {
    /// Where the elements of a tensor came from: it is a view of what, or a copy by which operation for which
    /// reason. Costs a look at its entry in the registry.
    pub fn of(tensor: &Viewer) -> Provenance {
        let storage = tensor.storage();
        let (op, site) = (tensor.op(), tensor.site());
        let (origin, copy) = (storage.origin().clone(), storage.copied_from());
        // A reshape that copies gives a view of its copy.
        let (by, at) = origin.maker();
        let is_of_its_op = by == op && at == Some(site);
        let how = match copy {
            Some(_) if is_of_its_op => How::Copy,
            _ if tensor.is_view() => How::View,
            _ if matches!(origin, Origin::Allocated { .. }) => How::Result,
            _ => How::Imported,
        };
        Provenance {
            how,
            op,
            site,
            storage: storage.id(),
            origin,
            copy,
            last_write: storage.last_write(),
        }
    }

    /// How to avoid the copy, or when it is right.
    pub fn hint(&self) -> Option<&'static str> {
        self.copy.map(|(reason, _)| reason.hint())
    }

    /// As JSON; see docs/memory.md.
    ///
    /// # Errors
    /// Out of memory.
    pub fn to_json(&self) -> osteon_spec::Result<String> {
        crate::json::to_string(self, "provenance")
    }
}

impl Serialize for Provenance {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("schema", &1)?;
        map.serialize_entry("kind", "provenance")?;
        map.serialize_entry("how", self.how.name())?;
        map.serialize_entry("op", self.op)?;
        map.serialize_entry("site", &Shown(self.site))?;
        map.serialize_entry("storage", &self.storage)?;
        map.serialize_entry("origin", &Shown(&self.origin))?;
        map.serialize_entry("reason", &self.copy.map(|(reason, _)| reason.name()))?;
        map.serialize_entry("copied_from", &self.copy.map(|(_, from)| from))?;
        map.serialize_entry("hint", &self.hint())?;
        map.serialize_entry("written_by", &self.last_write.map(|(op, _)| op))?;
        map.serialize_entry("written_at", &self.last_write.map(|(_, site)| Shown(site)))?;
        map.end()
    }
}

/// `view by transpose at src/main.rs:5: of storage 3, made by zeros at src/main.rs:4`
impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Provenance {
            how,
            op,
            site,
            storage,
            origin,
            ..
        } = self;
        write!(f, "{} by {op} at {}: ", how.name(), Line(site))?;
        match how {
            How::View => write!(f, "of storage {storage}, made by {origin}")?,
            How::Copy | How::Result => write!(f, "storage {storage}")?,
            How::Imported => write!(f, "storage {storage}, {origin}")?,
        }
        if let Some((reason, from)) = self.copy {
            write!(
                f,
                ", a copy of storage {from} ({reason}; {})",
                reason.hint()
            )?;
        }
        if let Some((op, site)) = self.last_write {
            write!(f, ", last written by {op} at {}", Line(site))?;
        }
        Ok(())
    }
}
