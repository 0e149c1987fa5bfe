//! What a pair of alloc and free costs: the pool beside the C library's `malloc`.
//!
//! `cargo bench -p osteon-memory --bench pool` prints the median of 31 samples. As a test
//! (`cargo test --benches`) each runs once.

use std::alloc::{Layout, alloc, dealloc};
use std::hint::black_box;
use std::time::Instant;

use osteon_memory::{Pool, SystemMemory};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Nanoseconds a call, the median of some samples.
fn median(pairs: usize, mut pair: impl FnMut()) -> f64 {
    let measure = std::env::args().any(|a| a == "--bench");
    let (samples, pairs) = if measure { (31, pairs) } else { (1, 1) };
    let mut times: Vec<f64> = (0..samples)
        .map(|_| {
            let start = Instant::now();
            (0..pairs).for_each(|_| pair());
            start.elapsed().as_nanos() as f64 / pairs as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[samples / 2]
}

fn row(what: &str, pool: f64, malloc: f64) {
    println!("{what:<44} {pool:>9.1} ns {malloc:>9.1} ns");
}

fn main() {
    println!("{:<44} {:>12} {:>12}", "alloc + free", "pool", "malloc");
    for bytes in [64, 4 * KIB, 32 * KIB, 64 * KIB, MIB, 64 * MIB] {
        let mut pool = Pool::new(SystemMemory::new());
        let layout = Layout::from_size_align(bytes, 64).expect("a layout");
        let plain = Layout::from_size_align(bytes, 16).expect("a layout");
        let mut ours = || {
            let block = pool.alloc(black_box(bytes), 1).expect("memory");
            pool.free(black_box(block));
        };
        let theirs = |layout: Layout| {
            // SAFETY: the layout has a size, and the block is freed with it.
            unsafe { dealloc(black_box(alloc(black_box(layout))), layout) }
        };
        let name = |align| format!("{} KiB, malloc aligned to {align}", bytes as f64 / 1024.0);
        let pairs = if bytes > 64 * KIB { 1_000 } else { 100_000 };
        let ours = median(pairs, &mut ours);
        row(&name(16), ours, median(pairs, || theirs(plain)));
        row(&name(64), ours, median(pairs, || theirs(layout)));
    }

    // Many live blocks of mixed sizes, the oldest replaced: an eager program at work.
    for (what, sizes) in [
        ("1000 small live, mixed", [48, 200, 1000, 5000, 20_000]),
        (
            "1000 live of 40 KiB to 1 MiB",
            [40 * KIB, 100 * KIB, 300 * KIB, 512 * KIB, MIB],
        ),
    ] {
        let mut pool = Pool::new(SystemMemory::new());
        let mut blocks: Vec<_> = (0..1000)
            .map(|i| pool.alloc(sizes[i % 5], 1).expect("memory"))
            .collect();
        let mut i = 0;
        let ours = median(20_000, || {
            // A step that is coprime to both lengths visits all in a mixed order.
            i = (i + 387) % 1000;
            let new = pool.alloc(sizes[(i / 7) % 5], 1).expect("memory");
            pool.free(std::mem::replace(&mut blocks[i], new));
        });
        blocks.into_iter().for_each(|block| pool.free(block));

        let layout = |n| Layout::from_size_align(n, 64).expect("a layout");
        // SAFETY: the layouts have sizes.
        let get = |n: usize| unsafe { (alloc(layout(n)), n) };
        // SAFETY: each block is freed once, with its layout.
        let put = |(ptr, n): (*mut u8, usize)| unsafe { dealloc(ptr, layout(n)) };
        let mut blocks: Vec<_> = (0..1000).map(|i| get(sizes[i % 5])).collect();
        let mut i = 0;
        let theirs = median(20_000, || {
            i = (i + 387) % 1000;
            put(std::mem::replace(&mut blocks[i], get(sizes[(i / 7) % 5])));
        });
        blocks.into_iter().for_each(put);
        row(what, ours, theirs);
    }
}
