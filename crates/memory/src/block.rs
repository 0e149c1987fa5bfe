//! What a pool hands out, and why it could not.

use std::fmt;
use std::ptr::NonNull;

/// A piece of memory on loan from a [`Pool`](crate::Pool), aligned to 64 bytes.
///
/// Its bytes are initialised (by the system's zeroing or by an earlier user) and stay valid and
/// unshared until the block is given back with [`Pool::free`](crate::Pool::free), even if the
/// pool is dropped before. A block that is dropped instead is a leak.
#[derive(Debug)]
#[must_use = "a block that is dropped is leaked; give it back with `Pool::free`"]
pub struct Block {
    pub(crate) ptr: NonNull<u8>,
    pub(crate) size: usize,
    pub(crate) requested: usize,
    pub(crate) home: Home,
}

/// Where the pool keeps its books about a block, so that freeing need not search.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Home {
    /// A slot of a run.
    Slot { run: u32, slot: u32 },
    /// A chunk of the large pool.
    Chunk(u32),
}

// SAFETY: a block is the right to some memory and to give it back once, which is tied to no
// thread; it gives no access by itself (`ptr` returns a raw pointer).
unsafe impl Send for Block {}
// SAFETY: as above; all methods on `&Block` read plain numbers.
unsafe impl Sync for Block {}

impl Block {
    /// The first byte.
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// The bytes taken from the pool: what `allocated_bytes` counts.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The bytes that were asked for.
    pub fn requested(&self) -> usize {
        self.requested
    }
}

/// The two halves of a pool. Blocks of up to 32 KiB and larger ones never share a segment, so
/// that a small block that lives long does not keep a large hole from being used or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolKind {
    /// Blocks of up to [`SMALL_MAX`](crate::SMALL_MAX) bytes.
    Small,
    /// Larger blocks.
    Large,
}

impl PoolKind {
    pub(crate) const BOTH: [PoolKind; 2] = [PoolKind::Small, PoolKind::Large];

    pub(crate) fn other(self) -> PoolKind {
        match self {
            PoolKind::Small => PoolKind::Large,
            PoolKind::Large => PoolKind::Small,
        }
    }
}

/// A piece of a segment, in use or free, as [`SegmentInfo::blocks`](crate::SegmentInfo::blocks)
/// lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo {
    /// The address of its first byte.
    pub address: usize,
    /// Its bytes.
    pub size: usize,
    /// In use by whom, or free.
    pub state: BlockState,
}

/// Whether a piece of a segment is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// On loan.
    Live {
        /// The tag given to [`Pool::alloc`](crate::Pool::alloc).
        tag: u64,
        /// The bytes that were asked for.
        requested: usize,
    },
    /// Not in use.
    Free,
}

/// The largest free piece of a pool and the live blocks that keep it from being larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeInfo {
    /// The address of its first byte.
    pub address: usize,
    /// Its bytes.
    pub size: usize,
    /// The half of the pool that can use it.
    pub kind: PoolKind,
    /// The tag of the nearest live block below it in the same segment.
    pub below: Option<u64>,
    /// The tag of the nearest live block above it in the same segment.
    pub above: Option<u64>,
}

/// Why a block could not be had. Nothing has changed in the pool, except that it may have given
/// idle memory back to the system while trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError {
    /// The bytes that were asked for.
    pub requested: usize,
    /// What stood in the way.
    pub reason: AllocReason,
}

/// What stood in the way of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocReason {
    /// The pool would have had to reserve more than [`Pool::set_limit`](crate::Pool::set_limit)
    /// allows.
    Limit {
        /// The limit in bytes.
        limit: usize,
    },
    /// The system has no more memory (for the block or for the pool's own books).
    System,
    /// No address space holds that many bytes.
    TooLarge,
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not allocate {} bytes: ", self.requested)?;
        match self.reason {
            AllocReason::Limit { limit } => {
                write!(f, "the pool may reserve {limit} bytes at most")
            }
            AllocReason::System => f.write_str("the system has no more memory"),
            AllocReason::TooLarge => f.write_str("no address space holds that many"),
        }
    }
}

impl std::error::Error for AllocError {}
