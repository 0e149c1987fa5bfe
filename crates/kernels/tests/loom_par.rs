//! The pool's protocol under every interleaving that matters:
//! `RUSTFLAGS="--cfg loom" cargo test -p osteon-kernels --release --test loom_par`.
#![cfg(loom)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use osteon_kernels::par::Pool;

fn check(threads: usize, loops: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let pool = Pool::new();
        for _ in 0..loops {
            let counts = [
                AtomicUsize::new(0),
                AtomicUsize::new(0),
                AtomicUsize::new(0),
            ];
            pool.par_for(threads, 3, 1, &|range| {
                for i in range {
                    counts[i].fetch_add(1, Ordering::Relaxed);
                }
            });
            // All work is done, and seen, when the loop returns.
            for count in &counts {
                assert_eq!(count.load(Ordering::Relaxed), 1);
            }
        }
        drop(pool);
    });
}

#[test]
fn two_threads_one_loop() {
    check(2, 1);
}

#[test]
fn two_threads_two_loops() {
    check(2, 2);
}

#[test]
fn three_threads_one_loop() {
    check(3, 1);
}
