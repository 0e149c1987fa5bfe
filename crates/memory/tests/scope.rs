//! Scopes nest, belong to a thread, and end in whatever order their guards are dropped.

use osteon_memory::{Scope, ScopeId, Storage, map, scope};
use osteon_spec::Device;
use proptest::prelude::*;
use std::panic::Location;

fn here() -> String {
    let storage = Storage::allocate(1, &Device::cpu(), "test", Location::caller()).unwrap();
    map()
        .storage(storage.id())
        .unwrap()
        .scope
        .path()
        .to_string()
}

#[test]
fn names_are_joined_and_end_with_their_guards() {
    assert_eq!(here(), "");
    let outer = scope("encoder");
    assert_eq!(here(), "encoder");
    {
        let _inner = scope("3.attn");
        assert_eq!(here(), "encoder.3.attn");
        std::thread::scope(|s| {
            s.spawn(|| assert_eq!(here(), "")).join().unwrap();
        });
    }
    assert_eq!(here(), "encoder");
    drop(outer);
    assert_eq!(here(), "");
    assert_eq!(ScopeId::ROOT.path(), "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// The model: the guards that are alive, in the order in which they were taken; the last one is in force.
    #[test]
    fn guards_go_in_any_order(steps in prop::collection::vec((any::<bool>(), 0..4usize), 1..30)) {
        let mut alive: Vec<(Scope, String)> = Vec::new();
        for (enter, n) in steps {
            if enter || alive.is_empty() {
                let name = ["a", "b", "c.d", ""][n];
                let path = match alive.last() {
                    // A scope without a name adds nothing.
                    Some((_, outer)) if name.is_empty() => outer.clone(),
                    Some((_, outer)) if !outer.is_empty() => format!("{outer}.{name}"),
                    _ => name.to_owned(),
                };
                alive.push((scope(name), path));
            } else {
                alive.remove(n % alive.len());
            }
            let expected = alive.last().map_or("", |(_, path)| path);
            prop_assert_eq!(here(), expected);
        }
    }
}

/// A thread's last tensors may be dropped, and made, while its thread-locals go.
#[test]
fn threads_end_with_tensors_in_thread_locals() {
    struct Last(Option<Storage>);
    impl Drop for Last {
        fn drop(&mut self) {
            let _in = scope("late");
            let other = Storage::allocate(64, &Device::cpu(), "test", Location::caller());
            assert!(map().storage(other.unwrap().id()).is_some());
            drop(self.0.take());
        }
    }
    thread_local! {
        static LAST: std::cell::RefCell<Last> = const { std::cell::RefCell::new(Last(None)) };
    }
    let id = std::thread::spawn(|| {
        // Both orders: the scopes' own thread-local is made after this one, and before.
        let storage = Storage::allocate(64, &Device::cpu(), "test", Location::caller()).unwrap();
        let id = storage.id();
        LAST.with(|l| l.borrow_mut().0 = Some(storage));
        let _in = scope("thread");
        id
    })
    .join()
    .unwrap();
    assert!(map().storage(id).is_none());
    std::thread::spawn(|| {
        let _in = scope("thread");
        LAST.with(|l| l.borrow_mut().0 = None);
    })
    .join()
    .unwrap();
}
