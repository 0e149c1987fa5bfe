//! The pool's own books fail to grow: each allocation they make is refused in turn.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use osteon_memory::testing::Arena;
use osteon_memory::{AllocReason, Pool, pool_is_valid};

thread_local! {
    /// How many further allocations of this thread succeed; `None`: all.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The system's allocator, which refuses when told to.
struct Refusing;

fn refuses() -> bool {
    match LEFT.get() {
        Some(0) => true,
        Some(n) => {
            LEFT.set(Some(n - 1));
            false
        }
        None => false,
    }
}

// SAFETY: either the system allocator's answer or null, which means refused.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if refuses() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static GLOBAL: Refusing = Refusing;

/// Lets `left` allocations succeed while `f` runs.
fn with_allocations<T>(left: usize, f: impl FnOnce() -> T) -> T {
    LEFT.set(Some(left));
    let result = f();
    LEFT.set(None);
    result
}

#[test]
fn a_refusal_is_an_error_and_changes_nothing() {
    const GRANULE: usize = 64 << 10;
    let mut refused = 0;
    for sizes in [[100, 3000], [100_000, 40_000], [20_000, 200_000]] {
        let mut pool = Pool::new(Arena::with_granule(256 << 20, GRANULE, true));
        let mut blocks = Vec::with_capacity(1000);
        for i in 0..1000 {
            for left in 0..10 {
                let before = (pool.stats().allocation, pool.stats().allocated_bytes);
                let bytes = sizes[i % 2];
                match with_allocations(left, || pool.alloc(bytes, i as u64)) {
                    Ok(block) => {
                        blocks.push(block);
                        break;
                    }
                    Err(e) => {
                        assert_eq!((e.requested, e.reason), (bytes, AllocReason::System));
                        assert_eq!(
                            (pool.stats().allocation, pool.stats().allocated_bytes),
                            before
                        );
                        pool_is_valid(&pool).unwrap();
                        refused += 1;
                    }
                }
            }
        }
        // Freeing needs no books. Giving back does, and leaves what it cannot write down.
        with_allocations(0, || {
            for i in (0..1000).rev().filter(|i| i % 3 > 0) {
                pool.free(blocks.swap_remove(i));
            }
            pool.empty_cache();
        });
        pool_is_valid(&pool).unwrap();
        pool.empty_cache();
        pool_is_valid(&pool).unwrap();
        with_allocations(0, || blocks.drain(..).for_each(|block| pool.free(block)));
        pool_is_valid(&pool).unwrap();
        pool.empty_cache();
        assert_eq!(pool.stats().reserved_bytes.all.current, 0);
    }
    assert!(refused > 20, "only {refused} refusals were tried");
}
