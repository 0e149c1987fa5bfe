//! A pool beside a naive model of it: the property tests and the fuzz target drive both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use osteon_memory::testing::Arena;
use osteon_memory::{AllocReason, Block, BlockState, Pool, SMALL_MAX, pool_is_valid};

/// What can be done to a pool.
#[derive(Clone, Debug)]
pub enum Op {
    Alloc(usize),
    /// Frees the n-th live block, counted round.
    Free(usize),
    EmptyCache,
    SetIdleLimit(Option<usize>),
    SetLimit(Option<usize>),
    /// Lets so many further maps succeed.
    FailAfter(usize),
    ResetPeak,
}

struct Live {
    block: Block,
    tag: u64,
}

impl Live {
    fn pattern(&self) -> u8 {
        self.tag as u8 ^ 0x5a
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: a live block is initialised and belongs to who holds it.
        unsafe { std::slice::from_raw_parts_mut(self.block.ptr().as_ptr(), self.block.size()) }
    }
}

/// A pool and what should be in it.
pub struct Twin {
    pool: Pool<Arena>,
    can_unmap: bool,
    maps_left: Arc<AtomicUsize>,
    live: Vec<Live>,
    tags: u64,
    idle_limit: Option<usize>,
    limit: Option<usize>,
    /// Small, large, all: allocated bytes now and at most, and ever.
    allocated: [u64; 3],
    peak: [u64; 3],
    total: [u64; 3],
    ooms: u64,
}

impl Twin {
    pub fn new(bytes: usize, can_unmap: bool) -> Twin {
        let arena = Arena::with_granule(bytes, 64 << 10, can_unmap);
        // SAFETY: the twin reads blocks only while it has the pool.
        let arena = unsafe { arena.ending_with_pool() };
        let maps_left = arena.maps_left();
        Twin {
            pool: Pool::new(arena),
            can_unmap,
            maps_left,
            live: Vec::new(),
            tags: 0,
            idle_limit: None,
            limit: None,
            allocated: [0; 3],
            peak: [0; 3],
            total: [0; 3],
            ooms: 0,
        }
    }

    /// Does one thing to both, and compares.
    pub fn step(&mut self, op: &Op) {
        match *op {
            Op::Alloc(bytes) => self.alloc(bytes),
            Op::Free(n) => {
                if !self.live.is_empty() {
                    let live = self.live.swap_remove(n % self.live.len());
                    self.free(live);
                }
            }
            Op::EmptyCache => {
                let before = self.reserved();
                let went = self.pool.empty_cache();
                assert_eq!(before - self.reserved(), went as u64);
                if self.can_unmap {
                    assert_eq!(self.idle(), 0);
                    assert!(!self.live.is_empty() || self.reserved() == 0);
                }
            }
            Op::SetIdleLimit(limit) => {
                self.idle_limit = limit;
                self.pool.set_idle_limit(limit);
            }
            Op::SetLimit(limit) => {
                self.limit = limit;
                self.pool.set_limit(limit);
            }
            Op::FailAfter(maps) => self.maps_left.store(maps, Ordering::Relaxed),
            Op::ResetPeak => {
                self.pool.reset_peak();
                self.peak = self.allocated;
            }
        }
        self.compare();
    }

    fn alloc(&mut self, bytes: usize) {
        let before = self.reserved();
        self.tags += 1;
        let tag = self.tags;
        let block = match self.pool.alloc(bytes, tag) {
            Ok(block) => block,
            Err(e) => {
                assert_eq!(e.requested, bytes);
                match e.reason {
                    AllocReason::Limit { limit } => assert_eq!(Some(limit), self.limit),
                    AllocReason::System => {}
                    AllocReason::TooLarge => assert!(bytes > usize::MAX / 4),
                }
                self.ooms += 1;
                return;
            }
        };
        if let Some(limit) = self.limit {
            assert!(
                self.reserved() <= before.max(limit as u64),
                "the limit was passed"
            );
        }
        let (size, small) = (block.size(), bytes <= SMALL_MAX);
        assert_eq!(block.requested(), bytes);
        assert!(size >= bytes.max(1));
        let waste = if small { (bytes / 8).max(64) } else { 4096 };
        assert!(size - bytes <= waste, "{size} bytes for {bytes}");
        let align = if small { 64 } else { 4096 };
        assert_eq!(block.ptr().addr().get() % align, 0);
        for part in [usize::from(!small), 2] {
            self.allocated[part] += size as u64;
            self.total[part] += size as u64;
            self.peak[part] = self.peak[part].max(self.allocated[part]);
        }
        let mut live = Live { block, tag };
        let pattern = live.pattern();
        live.bytes().fill(pattern);
        self.live.push(live);
    }

    fn free(&mut self, mut live: Live) {
        let pattern = live.pattern();
        assert!(
            live.bytes().iter().all(|&b| b == pattern),
            "a live block was overwritten"
        );
        let small = live.block.requested() <= SMALL_MAX;
        for part in [usize::from(!small), 2] {
            self.allocated[part] -= live.block.size() as u64;
        }
        self.pool.free(live.block);
        if let (Some(limit), true) = (self.idle_limit, self.can_unmap) {
            assert!(small || self.idle() <= limit as u64, "too much stays idle");
        }
    }

    fn reserved(&self) -> u64 {
        self.pool.stats().reserved_bytes.all.current
    }

    /// What `empty_cache` could give back at least.
    fn idle(&self) -> u64 {
        let s = self.pool.stats();
        self.reserved() - s.allocated_bytes.all.current - s.inactive_split_bytes.all.current
    }

    fn compare(&self) {
        pool_is_valid(&self.pool).unwrap();
        let s = self.pool.stats();
        let (a, r) = (s.allocated_bytes, s.requested_bytes);
        let parts = [a.small_pool, a.large_pool, a.all];
        assert_eq!(parts.map(|p| p.current), self.allocated);
        assert_eq!(parts.map(|p| p.peak), self.peak);
        assert_eq!(parts.map(|p| p.allocated), self.total);
        assert_eq!(parts.map(|p| p.allocated - p.freed), self.allocated);
        assert_eq!(s.allocation.all.current, self.live.len() as u64);
        let requested: usize = self.live.iter().map(|l| l.block.requested()).sum();
        assert_eq!(r.all.current, requested as u64);
        assert_eq!(s.num_ooms, self.ooms);

        let ours = self.live.iter().map(|l| {
            let b = &l.block;
            (b.ptr().addr().get(), (b.size(), b.requested(), l.tag))
        });
        let ours: BTreeMap<_, _> = ours.collect();
        let pieces = self.pool.segments().flat_map(|s| s.blocks());
        let theirs: BTreeMap<_, _> = pieces
            .filter_map(|b| match b.state {
                BlockState::Live { tag, requested } => Some((b.address, (b.size, requested, tag))),
                BlockState::Free => None,
            })
            .collect();
        assert_eq!(ours, theirs);
    }

    /// Frees everything; nothing must be left.
    pub fn finish(mut self) {
        self.pool.set_idle_limit(None);
        self.idle_limit = None;
        while let Some(live) = self.live.pop() {
            self.free(live);
        }
        self.step(&Op::EmptyCache);
        assert_eq!(self.pool.stats().allocation.all.current, 0);
    }
}
