//! Operations, views and guards of many threads on few storages, also from inside other pools.

use osteon_memory::map;
use osteon_spec::{DType, Device, Kind, MemoryFormat, Scalar};
use osteon_tensor::View;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Ends the process when `test` takes longer than a minute: a deadlock would hang.
fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    let worker = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    if let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(Duration::from_secs(60)) {
        eprintln!("deadlock");
        std::process::abort();
    }
    worker.join().unwrap();
}

/// A small generator, so that runs are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

const N: usize = 48;

/// Operations may meet a guard of another thread, and nothing else may go wrong.
fn met_a_guard<T>(result: osteon_spec::Result<T>) -> Option<T> {
    result
        .inspect_err(|e| assert_eq!(e.kind(), Kind::Borrowed, "{e}"))
        .ok()
}

/// What one operation wrote is one number everywhere, so what one operation reads is too.
fn whole(values: &[i64]) {
    assert!(
        values.iter().all(|v| *v == values[0]),
        "a torn write: {values:?}"
    );
}

fn work(shared: &[View], mut random: Random, steps: usize) {
    let mut views = Vec::new();
    let mut guard = None;
    for step in 0..steps {
        let [a, b] = [(); 2].map(|()| &shared[random.below(shared.len())]);
        match random.below(24) {
            0..4 => _ = met_a_guard(a.fill_(Scalar::Int(step as i64))),
            4..8 => _ = met_a_guard(a.copy_(b)),
            8..11 if a.shares_storage(b) => {
                let error = a.copy_(&b.t().unwrap()).unwrap_err();
                assert_eq!(error.kind(), Kind::Overlap);
            }
            8..11 => _ = met_a_guard(a.copy_(&b.t().unwrap())),
            11..14 => {
                _ = met_a_guard(b.copy(MemoryFormat::Preserve).inspect(|copy| {
                    whole(&copy.to_vec().unwrap());
                }))
            }
            14..17 => _ = met_a_guard(a.to_vec().inspect(|values| whole(values))),
            17..19 => {
                // A row and a column: copies that read what others write.
                let (row, column) = (a.select(0, 3).unwrap(), b.select(1, 5).unwrap());
                met_a_guard(row.contiguous(MemoryFormat::Contiguous));
                met_a_guard(column.contiguous(MemoryFormat::Contiguous));
                views.push(row);
                views.push(column);
            }
            19 => guard = met_a_guard(a.read::<i64>()),
            20..22 => {
                drop(guard.take());
                if let Some(mut guard) = met_a_guard(a.write::<i64>()) {
                    guard.as_mut_slice().unwrap().fill(-(step as i64));
                }
            }
            _ => {
                views.truncate(random.below(20));
                assert!(a.storage().tensors().len() < 10 * steps);
            }
        }
        if let Some(guard) = guard.take_if(|_| step % 4 == 0) {
            // Nobody wrote while it lived.
            whole(guard.as_slice().unwrap());
        }
    }
}

fn matrices(n: usize) -> Vec<View> {
    let device = Device::cpu();
    (0..n)
        .map(|_| View::zeros(&[N, N], DType::I64, &device).unwrap())
        .collect()
}

#[test]
fn no_torn_data_no_deadlock_no_leak() {
    watched(|| {
        let before = map();
        let shared = matrices(3);
        let done = AtomicBool::new(false);
        thread::scope(|s| {
            let workers: Vec<_> = (0..8)
                .map(|seed| {
                    let shared = &shared;
                    s.spawn(move || work(shared, Random(seed), 800))
                })
                .collect();
            s.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let map = map();
                    let sum: u64 = map.storages.iter().map(|s| s.allocated as u64).sum();
                    assert_eq!(sum, map.allocated);
                    thread::yield_now();
                }
            });
            let ends: Vec<_> = workers.into_iter().map(|w| w.join()).collect();
            done.store(true, Ordering::Relaxed);
            ends.into_iter().for_each(|end| end.unwrap());
        });
        let writes: u64 = shared.iter().map(View::version).sum();
        assert!(writes > 500, "only {writes} writes");
        for a in &shared {
            a.fill_(Scalar::Int(1)).unwrap();
            assert_eq!(a.storage().tensors().len(), 1);
        }
        let ids: Vec<_> = shared.iter().map(|v| v.storage().id()).collect();
        drop(shared);
        // Other tests of this file may be running: what is left must not be ours.
        let after = map();
        assert!(ids.iter().all(|id| after.storage(*id).is_none()));
        assert!(after.storages.len() <= before.storages.len() + 8);
    });
}

/// Tasks of a foreign pool that run operations while the tasks that spawned them wait: nothing is held
/// while a task waits, so nothing can wait in a circle.
#[test]
fn operations_inside_tasks_that_wait_for_tasks() {
    fn task(shared: &[View], depth: usize, seed: u64) {
        if depth == 0 {
            return work(shared, Random(seed), 40);
        }
        thread::scope(|s| {
            let other = s.spawn(move || task(shared, depth - 1, 2 * seed));
            task(shared, depth - 1, 2 * seed + 1);
            other.join().unwrap();
        });
    }
    watched(|| {
        let shared = matrices(2);
        task(&shared, 5, 1);
        shared.iter().for_each(|a| a.fill_(Scalar::Int(1)).unwrap());
    });
}

/// Operations large enough for osteon's own threads, from many threads at once.
#[test]
fn large_operations_at_once() {
    watched(|| {
        let device = Device::cpu();
        let shared: Vec<_> = (0..2)
            .map(|_| View::zeros(&[1 << 19], DType::I64, &device).unwrap())
            .collect();
        thread::scope(|s| {
            for t in 0..4 {
                let shared = &shared;
                s.spawn(move || {
                    for i in 0..10 {
                        let (a, b) = (&shared[(t + i) % 2], &shared[t % 2]);
                        a.fill_(Scalar::Int((10 * t + i) as i64)).unwrap();
                        a.copy_(b).unwrap();
                        whole(
                            b.copy(MemoryFormat::Preserve)
                                .unwrap()
                                .read()
                                .unwrap()
                                .as_slice()
                                .unwrap(),
                        );
                    }
                });
            }
        });
    });
}

/// A storage that grows while others look at it and write it: views stay in bounds and bytes are kept.
#[test]
fn storages_grow_under_others_eyes() {
    watched(|| {
        for _ in 0..50 {
            let base = View::full(&[4], Scalar::Int(7), DType::I64, &Device::cpu()).unwrap();
            thread::scope(|s| {
                for n in [6, 40, 3000, 9] {
                    let base = &base;
                    s.spawn(move || {
                        let larger = met_a_guard(base.resized(&[n])).flatten();
                        let larger = larger.expect("no guard is taken");
                        assert_eq!(larger.to_vec::<i64>().unwrap()[..4], [7; 4]);
                        base.copy_(&base.alias().unwrap().copy(MemoryFormat::Preserve).unwrap())
                            .unwrap();
                        assert_eq!(base.to_vec::<i64>().unwrap(), [7; 4]);
                    });
                }
            });
            assert_eq!(base.storage().nbytes(), 3000 * 8);
        }
    });
}
