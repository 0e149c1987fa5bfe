//! An event as the recorder's words, and back.

use super::copies::CopyReason;
use super::slot::WORDS;
use crate::scope::ScopeId;
use crate::storage::Site;
use std::panic::Location;
use std::ptr;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    #[default]
    Alloc,
    Free,
    Copy,
    Write,
    OutOfMemory,
    Limit,
    NoLimit,
    Label,
    Scope,
    ScopeEnd,
    Step,
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Alloc,
        Kind::Free,
        Kind::Copy,
        Kind::Write,
        Kind::OutOfMemory,
        Kind::Limit,
        Kind::NoLimit,
        Kind::Label,
        Kind::Scope,
        Kind::ScopeEnd,
        Kind::Step,
    ];
}

/// What the recorder keeps of an event, besides its time, thread and scope.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) op: &'static str,
    pub(crate) site: Option<Site>,
    /// The storage's id; 0 for none.
    pub(crate) storage: u64,
    pub(crate) bytes: u64,
    /// The block's bytes of an allocation or free, the storage that a copy read, the number of a label, the scope.
    pub(crate) other: u64,
    pub(crate) reason: Option<CopyReason>,
}

/// An [`Entry`] with what the recorder adds.
pub(crate) struct Recorded {
    pub(crate) clock: u64,
    pub(crate) thread: u32,
    pub(crate) scope: ScopeId,
    pub(crate) entry: Entry,
}

impl Entry {
    #[inline]
    pub(crate) fn encode(&self, clock: u64, thread: u32, scope: ScopeId) -> [u64; WORDS] {
        let site = self.site.map_or(ptr::null(), ptr::from_ref);
        let reason = self.reason.map_or(0, |r| r as u64 + 1);
        // Names of operations are short; one of more than 64 KiB would lose its end, between two characters.
        let len = self.op.floor_char_boundary(u16::MAX as usize) as u64;
        [
            clock,
            self.op.as_ptr().expose_provenance() as u64,
            site.expose_provenance() as u64,
            self.storage,
            self.bytes,
            self.other,
            len << 48 | (self.kind as u64) << 40 | reason << 32 | u64::from(thread),
            u64::from(scope.number()),
        ]
    }

    /// What [`Entry::encode`] made.
    ///
    /// # Safety
    /// The words are those of one call of `encode`.
    pub(crate) unsafe fn decode(words: [u64; WORDS]) -> Recorded {
        let [clock, op, site, storage, bytes, other, packed, scope] = words;
        let op = ptr::with_exposed_provenance::<u8>(op as usize);
        // SAFETY: `encode` took both apart from a `&'static str`, at most shortened to whole characters.
        let op = unsafe {
            let bytes = std::slice::from_raw_parts(op, (packed >> 48) as usize);
            std::str::from_utf8_unchecked(bytes)
        };
        let site = ptr::with_exposed_provenance::<Location<'static>>(site as usize);
        Recorded {
            clock,
            thread: packed as u32,
            scope: ScopeId::from_number(scope as u32),
            entry: Entry {
                kind: Kind::ALL[(packed >> 40 & 0xff) as usize],
                op,
                // SAFETY: null, or what `encode` got from a `Site`, which lives for ever.
                site: unsafe { site.as_ref() },
                storage,
                bytes,
                other,
                reason: (packed >> 32 & 0xff)
                    .checked_sub(1)
                    .map(|i| CopyReason::ALL[i as usize]),
            },
        }
    }
}
