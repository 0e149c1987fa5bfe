//! Why a request could not be met, in a word.

use super::Usage;
use crate::block::{AllocError, AllocReason};
use crate::map::{Group, HeldBy};
use crate::text::bytes;
use std::fmt;

/// Why a request could not be met: the first of these that holds.
///
/// The *shortage* is what of the request does not fit beside what is allocated: below the limit where there is
/// one in the way, else in what is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The request alone passes the limit.
    AboveLimit { limit: u64 },
    /// No machine has that much, or the system refuses and nothing below explains it.
    TooLittle { addresses: bool },
    /// There is no shortage: the free bytes would do, but they lie apart.
    Fragmentation { free: u64, longest: u64 },
    /// Views keep more than the shortage beyond what they reach.
    Views { bytes: u64 },
    /// The graph of derivatives alone keeps more than the shortage.
    Graphs { bytes: u64 },
    /// The limit, and what is in use.
    Limit { limit: u64, allocated: u64 },
}

impl Verdict {
    pub(super) fn of(
        error: &AllocError,
        usage: &Usage,
        longest: u64,
        holders: &[Group],
    ) -> Verdict {
        let wanted = error.requested as u64;
        let limit = match error.reason {
            AllocReason::TooLarge => return Verdict::TooLittle { addresses: true },
            AllocReason::Limit { limit } => Some(limit as u64),
            AllocReason::System => None,
        };
        if let Some(limit) = limit
            && wanted > limit
        {
            return Verdict::AboveLimit { limit };
        }
        let free = limit.map_or(usage.idle(), |limit| limit.saturating_sub(usage.allocated));
        let Some(shortage) = wanted.checked_sub(free).filter(|&n| n > 0) else {
            return Verdict::Fragmentation { free, longest };
        };
        let views = holders.iter().map(|g| g.compact_frees as u64).sum();
        let saved = holders
            .iter()
            .filter(|g| matches!(g.held, HeldBy::Graph { .. }));
        let graphs = saved.map(|g| g.allocated as u64).sum();
        if views >= shortage && views >= graphs {
            Verdict::Views { bytes: views }
        } else if graphs >= shortage {
            Verdict::Graphs { bytes: graphs }
        } else if let Some(limit) = limit {
            let allocated = usage.allocated;
            Verdict::Limit { limit, allocated }
        } else {
            Verdict::TooLittle { addresses: false }
        }
    }

    /// The word that JSON has.
    pub(super) fn name(self) -> &'static str {
        match self {
            Verdict::AboveLimit { .. } | Verdict::Limit { .. } => "limit",
            Verdict::TooLittle { .. } => "too_little_memory",
            Verdict::Fragmentation { .. } => "fragmentation",
            Verdict::Views { .. } => "held_by_views",
            Verdict::Graphs { .. } => "held_by_graphs",
        }
    }

    /// What helps.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Verdict::AboveLimit { .. } | Verdict::Limit { .. } => {
                "raise it with memory::set_limit(), or free something"
            }
            Verdict::TooLittle { .. } => "ask for less, or free something",
            Verdict::Fragmentation { .. } => {
                "make what lives long before what comes and goes, not between"
            }
            Verdict::Views { .. } => "keep compact() of the views instead of the views",
            Verdict::Graphs { .. } => {
                "keep item() or detach() of a result, not the result with its graph"
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Verdict::AboveLimit { limit } => write!(
                f,
                "the limit: the request alone is larger than the limit of {}",
                bytes(limit)
            ),
            Verdict::TooLittle { addresses: true } => {
                f.write_str("too little memory: no address space holds that many bytes")
            }
            Verdict::TooLittle { addresses: false } => {
                f.write_str("too little memory: the system has no more to give")
            }
            Verdict::Fragmentation { free, longest } => write!(
                f,
                "fragmentation: {} are free, but the largest run of them is {}",
                bytes(free),
                bytes(longest)
            ),
            Verdict::Views { bytes: n } => write!(
                f,
                "held by views: {} are kept by views that do not reach them",
                bytes(n)
            ),
            Verdict::Graphs { bytes: n } => write!(
                f,
                "held by graphs: {} are kept for backward passes alone",
                bytes(n)
            ),
            Verdict::Limit { limit, allocated } => write!(
                f,
                "the limit: {} are in use, and the limit is {}",
                bytes(allocated),
                bytes(limit)
            ),
        }
    }
}
