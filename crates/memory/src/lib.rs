//! Storages that are counted and known: where their bytes come from, who looks at them, which copies were
//! made and why.

#![deny(missing_docs)]

mod access;
mod block;
mod device;
mod events;
mod handle;
mod hold;
mod holders;
#[cfg(all(test, loom))]
mod interleavings;
mod json;
mod label;
mod leaks;
mod list;
mod map;
mod once;
mod oom;
mod os;
pub mod page;
pub mod picture;
mod pool;
mod provenance;
mod raw;
mod registry;
mod scope;
mod site;
mod stats;
mod storage;
mod sync;
pub mod testing;
mod text;
pub mod timeline;

pub use access::Mode;
pub use block::{AllocError, AllocReason, Block, BlockInfo, BlockState, FreeInfo, PoolKind};
pub use events::copies::CopyReason;
pub use events::{Event, EventKind, Recent, recent};
pub use hold::{Held, hold};
pub use holders::{
    Dominator, Dominators, Graph, Holder, Holders, Link, Pin, PinLine, Pins, Step, dominators,
    holders, pins, retained, set_graph,
};
pub use label::Label;
pub use leaks::{GrowingLine, Growth, Mark, diff, mark, step};
pub use map::{
    Group, HeldBy, MapDiff, MemoryMap, Root, StorageInfo, allocated, empty_cache, map,
    max_allocated, reserved, reset_peak, set_limit, stats,
};
pub use once::Once;
pub use os::SystemMemory;
pub use pool::{Pool, SMALL_MAX, SegmentInfo, pool_is_valid};
pub use provenance::{How, Provenance};
pub use raw::{RawError, RawMemory};
pub use registry::{Attachment, Role, TensorInfo, Viewer};
pub use scope::{Scope, ScopeId, scope};
pub use site::{attribute, here, unattributed};
pub use stats::{MemoryStats, Stat, StatByPool};
pub use storage::{GuardInfo, Origin, Site, Storage, StorageGuard};
pub use text::{Bytes, bytes};
pub use timeline::{Budget, OverBudget, Recording, Timeline, record};

/// The copy log.
pub mod copies {
    pub use crate::events::copies::{
        Begun, CopyEnd, CopyEvent, CopyLog, CopyReason, Forbidden, Mark, Side, begin, check,
        forbid, mark, record, since, summary,
    };
    pub use crate::events::{CopySite, CopySummary};
}
