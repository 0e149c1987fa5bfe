//! Named scopes: what is allocated inside carries their path.

use crate::events::{self, Kind};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, TryReserveError};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard};

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
/// module paths, so they are kept, and a path is a text that never goes.
#[derive(Default)]
struct Paths {
    by_id: Vec<&'static str>,
    by_path: HashMap<&'static str, ScopeId>,
    /// From the scope outside and the name inside, so that entering a scope again makes no text. The name is the
    /// end of the path.
    by_name: HashMap<(ScopeId, &'static str), ScopeId>,
}

static PATHS: Mutex<Option<Paths>> = Mutex::new(None);

fn paths() -> MutexGuard<'static, Option<Paths>> {
    PATHS.lock().unwrap_or_else(|e| e.into_inner())
}

impl Paths {
    fn path(&self, id: ScopeId) -> &'static str {
        match id.0.checked_sub(1) {
            None => "",
            Some(i) => self.by_id.get(i as usize).copied().unwrap_or_default(),
        }
    }

    /// The scope `name` inside `outer`, entered for the first time or again.
    fn enter(&mut self, outer: ScopeId, name: &str) -> Result<ScopeId, TryReserveError> {
        if name.is_empty() {
            return Ok(outer);
        }
        if let Some(&id) = self.by_name.get(&(outer, name)) {
            return Ok(id);
        }
        let before = self.path(outer);
        let mut path = String::new();
        path.try_reserve_exact(before.len() + 1 + name.len())?;
        path.push_str(before);
        if !before.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        self.by_name.try_reserve(1)?;
        let id = match self.by_path.get(path.as_str()) {
            Some(&id) => id,
            // A program with four thousand million scopes gets no new ones.
            None if self.by_id.len() >= u32::MAX as usize - 1 => return Ok(outer),
            None => {
                self.by_path.try_reserve(1)?;
                self.by_id.try_reserve(1)?;
                let path = path.leak();
                self.by_id.push(path);
                let id = ScopeId(self.by_id.len() as u32);
                self.by_path.insert(path, id);
                id
            }
        };
        let path = self.path(id);
        self.by_name
            .insert((outer, &path[path.len() - name.len()..]), id);
        Ok(id)
    }
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
    pub fn path(self) -> &'static str {
        match self {
            ScopeId::ROOT => "",
            id => paths().as_ref().map_or("", |p| p.path(id)),
        }
    }
}

impl fmt::Debug for ScopeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.path(), f)
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
/// Costs a table look-up on entering, nothing on allocations inside. A thread starts outside of every scope;
/// where there is no memory for a new path, the scope outside stays in force.
///
/// ```
/// let _in = osteon_memory::scope("encoder.3");
/// ```
#[must_use = "the scope ends when the guard is dropped"]
pub fn scope(name: &str) -> Scope {
    let outer = current();
    let id = paths()
        .get_or_insert_default()
        .enter(outer, name)
        .unwrap_or(outer);
    // A thread that is ending keeps no scopes; its last tensors carry none.
    let serial = ENTERED.try_with(|entered| {
        let mut entered = entered.borrow_mut();
        entered.try_reserve(1).ok()?;
        let serial = entered.last().map_or(1, |(last, _)| last + 1);
        entered.push((serial, id));
        CURRENT.set(id);
        Some(serial)
    });
    events::scope(Kind::Scope, id);
    Scope {
        id,
        serial: serial.ok().flatten().unwrap_or(0),
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
