//! The pool against a naive model, and situations worked out by hand.

mod twin;

use osteon_memory::testing::Arena;
use osteon_memory::{
    AllocError, AllocReason, Block, BlockState, Pool, PoolKind, SystemMemory, pool_is_valid,
};
use proptest::collection::vec;
use proptest::prelude::*;
use twin::{Op, Twin};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn op() -> impl Strategy<Value = Op> {
    let limit = prop_oneof![Just(None), (0..3 * MIB).prop_map(Some)];
    prop_oneof![
        8 => (0..2 * KIB).prop_map(Op::Alloc),
        4 => (0..64 * KIB).prop_map(Op::Alloc),
        4 => (0..MIB).prop_map(Op::Alloc),
        // Few sizes, so that classes and chunks fill up and empty again.
        8 => prop::sample::select(vec![1, 64, 1000, 8000, 32768, 32769, 65536, 200_000])
            .prop_map(Op::Alloc),
        1 => (usize::MAX - 4 * MIB..=usize::MAX).prop_map(Op::Alloc),
        16 => any::<usize>().prop_map(Op::Free),
        1 => Just(Op::EmptyCache),
        1 => limit.clone().prop_map(Op::SetIdleLimit),
        1 => limit.prop_map(Op::SetLimit),
        1 => prop_oneof![Just(usize::MAX), 0..3_usize].prop_map(Op::FailAfter),
        1 => Just(Op::ResetPeak),
    ]
}

proptest! {
    #[test]
    fn agrees_with_the_model(ops in vec(op(), 1..200)) {
        let mut twin = Twin::new(4 * MIB, true);
        ops.iter().for_each(|op| twin.step(op));
        twin.finish();
    }

    #[test]
    fn agrees_with_the_model_where_nothing_can_be_unmapped(ops in vec(op(), 1..200)) {
        let mut twin = Twin::new(2 * MIB, false);
        ops.iter().for_each(|op| twin.step(op));
        twin.finish();
    }
}

fn alloc_all<const N: usize>(pool: &mut Pool<Arena>, bytes: [usize; N]) -> [Block; N] {
    let mut tag = 0;
    bytes.map(|bytes| {
        tag += 1;
        pool.alloc(bytes, tag).unwrap()
    })
}

fn address(block: &Block) -> usize {
    block.ptr().addr().get()
}

#[test]
fn freed_memory_is_used_again_at_once() {
    let mut pool = Pool::new(SystemMemory::new());
    for bytes in [1, 100, 5000, 40 * KIB, 3 * MIB, 64 * MIB] {
        let block = pool.alloc(bytes, 0).unwrap();
        let first = address(&block);
        pool.free(block);
        let block = pool.alloc(bytes, 0).unwrap();
        assert_eq!(address(&block), first, "{bytes} bytes");
        pool.free(block);
    }
    let maps = pool.stats().num_device_alloc;
    for _ in 0..100 {
        let block = pool.alloc(64 * MIB, 0).unwrap();
        pool.free(block);
    }
    assert_eq!(
        pool.stats().num_device_alloc,
        maps,
        "no system call for a reused block"
    );
}

#[test]
fn chunks_split_and_join() {
    let mut pool = Pool::new(Arena::new(32 * MIB));
    // One granule of 2 MiB holds 512 KiB, 1 MiB and 512 KiB, with nothing left.
    let [a, b, c] = alloc_all(&mut pool, [512 * KIB, MIB, 512 * KIB]);
    assert_eq!(address(&b) - address(&a), 512 * KIB);
    assert_eq!(address(&c) - address(&b), MIB);
    assert_eq!(pool.stats().reserved_bytes.all.current, 2 * MIB as u64);
    assert_eq!(pool.stats().inactive_split_bytes.all.current, 0);
    let low = address(&a);

    pool.free(b);
    let hole = pool.largest_free().unwrap();
    assert_eq!((hole.size, hole.below, hole.above), (MIB, Some(1), Some(3)));
    assert_eq!(
        (hole.kind, hole.address),
        (PoolKind::Large, low + 512 * KIB)
    );
    assert_eq!(pool.stats().inactive_split.all.current, 1);

    // Joined below, then above: the segment is whole again.
    pool.free(a);
    assert_eq!(pool.largest_free().unwrap().size, 3 * MIB / 2);
    pool.free(c);
    let whole = pool.alloc(2 * MIB, 4).unwrap();
    assert_eq!(address(&whole), low);
    assert_eq!(pool.stats().reserved_bytes.all.current, 2 * MIB as u64);
    pool.free(whole);
}

#[test]
fn best_fit_takes_the_smallest_hole_then_the_lowest() {
    let mut pool = Pool::new(Arena::new(32 * MIB));
    let k = 4 * KIB;
    let [a, _w, b, _x, c, _y, d, _z] = alloc_all(
        &mut pool,
        [
            40 * k,
            10 * k,
            20 * k,
            10 * k,
            30 * k,
            10 * k,
            20 * k,
            10 * k,
        ],
    );
    let (at_b, at_c, at_d) = (address(&b), address(&c), address(&d));
    for block in [a, d, c, b] {
        pool.free(block);
    }
    let [p, q, r] = alloc_all(&mut pool, [20 * k, 20 * k, 20 * k]);
    assert_eq!([address(&p), address(&q), address(&r)], [at_b, at_d, at_c]);
    pool_is_valid(&pool).unwrap();
}

#[test]
fn segments_that_touch_are_one() {
    let mut pool = Pool::new(Arena::new(8 * MIB));
    let [a, b, c, d] = alloc_all(&mut pool, [2 * MIB; 4]);
    assert_eq!(pool.segments().count(), 1);
    pool.free(a);
    pool.free(c);
    assert!(pool.alloc(3 * MIB, 9).is_err());
    pool.free(b);
    let joined = pool.alloc(6 * MIB, 9).unwrap();
    for block in [joined, d] {
        pool.free(block);
    }
}

/// Twenty blocks of 16 MiB, every second one freed: 160 MiB are free in pieces of 16 MiB.
fn every_second(pool: &mut Pool<impl osteon_memory::RawMemory>) -> Vec<Block> {
    let blocks: Vec<_> = (0..20)
        .map(|tag| pool.alloc(16 * MIB, tag).unwrap())
        .collect();
    let (odd, even): (Vec<_>, Vec<_>) = blocks
        .into_iter()
        .enumerate()
        .partition(|(i, _)| i % 2 == 1);
    even.into_iter().for_each(|(_, block)| pool.free(block));
    odd.into_iter().map(|(_, block)| block).collect()
}

#[test]
fn fragmented_memory_that_cannot_be_unmapped_fails_and_says_who_is_in_the_way() {
    let mut pool = Pool::new(Arena::new(320 * MIB));
    let blocks = every_second(&mut pool);
    let error = pool.alloc(100 * MIB, 99).unwrap_err();
    assert_eq!(
        error,
        AllocError {
            requested: 100 * MIB,
            reason: AllocReason::System
        }
    );
    assert_eq!(
        error.to_string(),
        "could not allocate 104857600 bytes: the system has no more memory"
    );
    let hole = pool.largest_free().unwrap();
    assert_eq!(
        (hole.size, hole.below, hole.above),
        (16 * MIB, None, Some(1))
    );
    assert_eq!(pool.stats().num_ooms, 1);
    assert_eq!(pool.stats().allocated_bytes.all.current, 160 * MIB as u64);

    // Small blocks still find memory: they take over what the large ones leave idle.
    let small = pool.alloc(100, 100).unwrap();
    assert_eq!(
        pool.stats().reserved_bytes.small_pool.current,
        2 * MIB as u64
    );
    pool_is_valid(&pool).unwrap();
    pool.free(small);
    blocks.into_iter().for_each(|block| pool.free(block));
    // And the other way round.
    let all = pool.alloc(320 * MIB, 101).unwrap();
    pool_is_valid(&pool).unwrap();
    pool.free(all);
}

#[test]
fn fragmented_memory_that_can_be_unmapped_serves_within_the_limit() {
    let mut pool = Pool::new(SystemMemory::new());
    pool.set_limit(Some(320 * MIB));
    let blocks = every_second(&mut pool);
    let big = pool.alloc(100 * MIB, 99).unwrap();
    let s = pool.stats();
    assert_eq!(s.num_alloc_retries, 1);
    // As much went as was needed: 100 MiB in granules of 2 MiB.
    assert_eq!(s.reserved_bytes.all.current, 320 * MIB as u64);
    pool_is_valid(&pool).unwrap();

    // What cannot succeed leaves the idle memory alone.
    let error = pool.alloc(61 * MIB, 100).unwrap_err();
    assert_eq!(error.reason, AllocReason::Limit { limit: 320 * MIB });
    assert_eq!(pool.stats().reserved_bytes.all.current, 320 * MIB as u64);
    assert_eq!(
        (pool.stats().num_alloc_retries, pool.stats().num_ooms),
        (1, 1)
    );
    for block in blocks.into_iter().chain([big]) {
        pool.free(block);
    }
    // No more than 256 MiB stay idle.
    assert_eq!(pool.empty_cache(), 256 * MIB);
    assert_eq!(pool.segments().count(), 0);
}

#[test]
fn a_middle_granule_can_go_and_come_back() {
    let mut pool = Pool::new(Arena::with_granule(64 * MIB, 2 * MIB, true));
    let [a, b, c] = alloc_all(&mut pool, [3 * MIB, 8 * MIB, 5 * MIB]);
    let low = address(&a);
    // They lie one behind the other, at 3 and at 11 MiB.
    assert_eq!((address(&b) - low, address(&c) - low), (3 * MIB, 11 * MIB));
    pool.free(b);
    assert_eq!(pool.empty_cache(), 6 * MIB);
    let segments =
        |pool: &Pool<_>| -> Vec<_> { pool.segments().map(|s| (s.address - low, s.size)).collect() };
    assert_eq!(segments(&pool), [(0, 4 * MIB), (10 * MIB, 6 * MIB)]);
    assert_eq!(pool.stats().segment.all.current, 2);
    pool_is_valid(&pool).unwrap();
    // The hole and the free ends on both sides of it are together what is needed.
    let b = pool.alloc(8 * MIB, 2).unwrap();
    assert_eq!(address(&b) - low, 3 * MIB);
    assert_eq!(segments(&pool), [(0, 16 * MIB)]);
    for block in [a, b, c] {
        pool.free(block);
    }
    pool_is_valid(&pool).unwrap();
}

#[test]
fn idle_memory_is_bounded() {
    let mut pool = Pool::new(SystemMemory::new());
    let reserved = |pool: &Pool<_>| pool.stats().reserved_bytes.all.current as usize / MIB;
    let blocks: Vec<_> = (0..16)
        .map(|tag| pool.alloc(64 * MIB, tag).unwrap())
        .collect();
    blocks.into_iter().for_each(|block| pool.free(block));
    // The peak was 1 GiB, so half of that stays.
    assert_eq!(reserved(&pool), 512);
    // 8 GiB of further use end the epoch of that peak, and 512 MiB the next one, whose peak is
    // what is in use then: the floor is left.
    for _ in 0..9 * 1024 / 32 + 1 {
        let block = pool.alloc(32 * MIB, 0).unwrap();
        pool.free(block);
    }
    assert_eq!(reserved(&pool), 256);
    pool.set_idle_limit(Some(100 * MIB));
    assert_eq!(reserved(&pool), 100);
    pool.set_idle_limit(Some(0));
    assert_eq!(reserved(&pool), 0);
    for bytes in [100, 50 * KIB] {
        let block = pool.alloc(bytes, 0).unwrap();
        pool.free(block);
        assert_eq!(reserved(&pool), 0);
    }
}

#[test]
fn growth_stays_near_the_peak() {
    // A cache (as of keys and values) that grows by copying to a larger block each step: the
    // blocks left behind never fit again.
    let mut pool = Pool::new(SystemMemory::new());
    let mut old = pool.alloc(10 * MIB, 0).unwrap();
    for step in 1..=30 {
        let new = pool.alloc((10 + 4 * step) * MIB, 0).unwrap();
        pool.free(std::mem::replace(&mut old, new));
        let s = pool.stats();
        let bound = s.allocated_bytes.all.peak * 17 / 16 + (4 << 20);
        assert!(s.reserved_bytes.all.current <= bound, "step {step}:\n{s}");
    }
    pool.free(old);
}

/// A training step in small: activations that stay until the way back, temporaries that do not,
/// and a gradient for each weight.
fn step(pool: &mut Pool<SystemMemory>) {
    let mut kept = Vec::new();
    for layer in 0..24 {
        let wide = pool.alloc(5 * MIB + 100 * KIB * (layer % 5), 1).unwrap();
        let scores = pool.alloc(7 * MIB + 4 * KIB, 1).unwrap();
        kept.push(pool.alloc(2 * MIB + MIB / 4, 1).unwrap());
        kept.push(pool.alloc(20 * KIB, 1).unwrap());
        pool.free(wide);
        kept.push(scores);
    }
    let mut gradients = Vec::new();
    while let Some(block) = kept.pop() {
        let temporary = pool.alloc(block.size() * 3 / 2, 1).unwrap();
        gradients.push(pool.alloc(MIB + MIB / 8, 1).unwrap());
        pool.free(block);
        pool.free(temporary);
    }
    gradients.into_iter().for_each(|block| pool.free(block));
}

#[test]
fn steps_that_are_alike_need_no_more_memory() {
    let mut pool = Pool::new(SystemMemory::new());
    step(&mut pool);
    step(&mut pool);
    let s = pool.stats();
    let (peak, reserved) = (s.allocated_bytes.all.peak, s.reserved_bytes.all.peak);
    assert!(
        peak > 200 << 20,
        "the step is too small to say anything: {peak}"
    );
    assert!(
        reserved <= peak + peak / 16 + (4 << 20),
        "{reserved} reserved for {peak}"
    );
    let calls = (s.num_device_alloc, s.num_device_free);
    (0..50).for_each(|_| step(&mut pool));
    let s = pool.stats();
    assert_eq!(
        (s.num_device_alloc, s.num_device_free),
        calls,
        "no system call in a step"
    );
}

#[test]
fn fresh_blocks_of_any_mix_reserve_little_more_than_asked() {
    for sizes in [
        &[100, 1000, 3000][..],
        &[64],
        &[5000, 40_000],
        &[MIB + 1, 300, 9 * MIB],
    ] {
        let mut pool = Pool::new(SystemMemory::new());
        let mut blocks = Vec::new();
        let mut asked = 0;
        while asked < 100 * MIB {
            for &bytes in sizes {
                blocks.push(pool.alloc(bytes, 0).unwrap());
                asked += bytes;
            }
        }
        let reserved = pool.stats().reserved_bytes.all.current as usize;
        assert!(
            reserved <= asked + asked / 10 + 4 * MIB,
            "{sizes:?}: {reserved} for {asked}"
        );
        blocks.into_iter().for_each(|block| pool.free(block));
    }
}

#[test]
fn zero_and_absurd_sizes() {
    let mut pool = Pool::new(SystemMemory::new());
    let none = pool.alloc(0, 1).unwrap();
    assert_eq!((none.requested(), none.size()), (0, 64));
    pool.free(none);
    for bytes in [usize::MAX, isize::MAX as usize, isize::MAX as usize - MIB] {
        assert_eq!(
            pool.alloc(bytes, 1).unwrap_err().reason,
            AllocReason::TooLarge
        );
    }
    let error = pool.alloc(isize::MAX as usize / 2, 1).unwrap_err();
    assert_eq!(error.reason, AllocReason::System);
    pool.set_limit(Some(0));
    pool.empty_cache();
    assert_eq!(
        pool.alloc(1, 1).unwrap_err().reason,
        AllocReason::Limit { limit: 0 }
    );
    pool_is_valid(&pool).unwrap();
}

#[test]
fn small_runs_are_listed_slot_by_slot() {
    let mut pool = Pool::new(Arena::new(4 * MIB));
    let [a, b, c] = alloc_all(&mut pool, [200, 256, 193]);
    let low = address(&a);
    pool.free(b);
    let segment = pool.segments().next().unwrap();
    assert_eq!((segment.kind, segment.size), (PoolKind::Small, 2 * MIB));
    let pieces: Vec<_> = segment
        .blocks()
        .map(|p| (p.address - low, p.size, p.state))
        .collect();
    // Runs of 256-byte blocks are 16 KiB.
    assert_eq!(
        pieces,
        [
            (
                0,
                256,
                BlockState::Live {
                    tag: 1,
                    requested: 200
                }
            ),
            (256, 256, BlockState::Free),
            (
                512,
                256,
                BlockState::Live {
                    tag: 3,
                    requested: 193
                }
            ),
            (768, 16 * KIB - 768, BlockState::Free),
            (16 * KIB, 2 * MIB - 16 * KIB, BlockState::Free),
        ]
    );
    for block in [a, c] {
        pool.free(block);
    }
}

#[test]
fn blocks_outlive_their_pool() {
    let mut pool = Pool::new(SystemMemory::new());
    let blocks = [100, 100 * KIB, 5 * MIB].map(|bytes| pool.alloc(bytes, 0).unwrap());
    drop(pool);
    for block in blocks {
        // SAFETY: a block's bytes are valid and initialised until it is freed.
        unsafe { block.ptr().write_bytes(1, block.size()) };
    }
}

#[test]
#[should_panic(expected = "a pool that did not make it")]
fn another_pools_block_is_refused() {
    let (mut one, mut two) = (
        Pool::new(SystemMemory::new()),
        Pool::new(SystemMemory::new()),
    );
    let _own = one.alloc(100 * KIB, 0).unwrap();
    one.free(two.alloc(100 * KIB, 0).unwrap());
}

#[test]
#[should_panic(expected = "a pool that did not make it")]
fn another_pools_small_block_is_refused() {
    let (mut one, mut two) = (
        Pool::new(SystemMemory::new()),
        Pool::new(SystemMemory::new()),
    );
    let _own = one.alloc(100, 0).unwrap();
    one.free(two.alloc(100, 0).unwrap());
}
