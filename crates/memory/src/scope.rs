//! Named scopes: what is allocated inside carries their path.

use crate::events::{self, Kind};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard};

/// A path of nested scopes (`encoder.3`), as a small number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeId(u32);

thread_local! {
    /// The last scope of `ENTERED`, where making a tensor reads it at no cost.
    static CURRENT: Cell<ScopeId> = const { Cell::new(ScopeId::ROOT) };
    /// The scopes that this thread is in, outermost first, each with a number larger than those before.
    static ENTERED: RefCell<Vec<(u64, ScopeId)>> = const { RefCell::new(Vec::new()) };
}

/// Every path that was ever entered; number 0 is the root, which has no path. A program has as many as it has
/// module paths, so they are kept.
#[derive(Default)]
struct Paths {
    by_id: Vec<Arc<str>>,
    by_path: HashMap<Arc<str>, ScopeId>,
}

static PATHS: Mutex<Option<Paths>> = Mutex::new(None);

fn paths() -> MutexGuard<'static, Option<Paths>> {
    PATHS.lock().unwrap_or_else(|e| e.into_inner())
}

impl ScopeId {
    pub(crate) fn number(self) -> u32 {
        self.0
    }

    pub(crate) fn from_number(number: u32) -> ScopeId {
        ScopeId(number)
    }

    /// Outside of every scope.
    pub const ROOT: ScopeId = ScopeId(0);

    /// The path, empty for the root.
    pub fn path(self) -> Arc<str> {
        match self.0.checked_sub(1) {
            None => Arc::from(""),
            Some(i) => paths()
                .as_ref()
                .and_then(|p| p.by_id.get(i as usize).cloned())
                .unwrap_or_default(),
        }
    }
}

impl fmt::Debug for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.path(), f)
    }
}

/// The scope that this thread is in.
#[inline]
pub(crate) fn current() -> ScopeId {
    CURRENT.try_with(Cell::get).unwrap_or(ScopeId::ROOT)
}

/// Enters a scope on this thread until the guard is dropped; scopes nest, their names joined by
/// dots. A storage and a tensor carry the scope that they were made in, in every report.
///
/// Costs a table look-up on entering, nothing on allocations inside.
///
/// ```
/// let _in = osteon_memory::scope("encoder.3");
/// ```
#[must_use = "the scope ends when the guard is dropped"]
pub fn scope(name: &str) -> Scope {
    let outer = current();
    let path = match (&*outer.path(), name) {
        ("", path) | (path, "") => path.to_owned(),
        (outer, name) => format!("{outer}.{name}"),
    };
    let mut paths = paths();
    let paths = paths.get_or_insert_default();
    let id = match paths.by_path.get(path.as_str()) {
        Some(&id) => id,
        // A program with four thousand million scopes gets no new ones.
        None if paths.by_id.len() >= u32::MAX as usize - 1 => outer,
        None => {
            let path: Arc<str> = Arc::from(path);
            paths.by_id.push(path.clone());
            let id = ScopeId(paths.by_id.len() as u32);
            paths.by_path.insert(path, id);
            id
        }
    };
    // A thread that is ending keeps no scopes; its last tensors carry none.
    let serial = ENTERED.try_with(|entered| {
        let mut entered = entered.borrow_mut();
        let serial = entered.last().map_or(1, |(last, _)| last + 1);
        entered.push((serial, id));
        CURRENT.set(id);
        serial
    });
    events::scope(Kind::Scope, id);
    Scope {
        id,
        serial: serial.unwrap_or(0),
        this_thread: PhantomData,
    }
}

/// A scope that ends when this is dropped, in whatever order; see [`scope()`].
#[derive(Debug)]
pub struct Scope {
    id: ScopeId,
    serial: u64,
    // Scopes belong to the thread that entered them.
    this_thread: PhantomData<*const ()>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        let _ = ENTERED.try_with(|entered| {
            let mut entered = entered.borrow_mut();
            entered.retain(|(serial, _)| *serial != self.serial);
            CURRENT.set(entered.last().map_or(ScopeId::ROOT, |(_, id)| *id));
        });
        events::scope(Kind::ScopeEnd, self.id);
    }
}
