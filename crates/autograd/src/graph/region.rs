//! Parts of the graph that keep nothing and are computed again when the backward pass needs what they would have kept.

use super::mode::enable_grad;
use super::saved::Saved;
use osteon_spec::{Error, Kind, Result};
use osteon_tensor::View;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

thread_local! {
    static ACTIVE: RefCell<Active> = const { RefCell::new(Active::None) };
}

/// What happens to tensors that this thread's operations save.
#[derive(Clone)]
enum Active {
    None,
    /// They are counted, and not kept.
    Count(Arc<Region>),
    /// They are collected for nodes that were recorded earlier.
    Collect(Arc<Mutex<Vec<View>>>),
}

/// What to do with a tensor that is to be saved.
pub(super) enum Instead {
    Keep,
    /// It is this one of a region's.
    Again(Slot),
    /// It goes to a node that was recorded earlier; the one that saves it now is of no use.
    Collect(Arc<Mutex<Vec<View>>>),
}

/// What to do with the tensor that an operation of this thread is about to save.
pub(super) fn instead() -> Instead {
    ACTIVE.with_borrow(|active| match active {
        Active::None => Instead::Keep,
        Active::Count(region) => {
            let mut state = region.state();
            state.count += 1;
            Instead::Again(Slot {
                region: region.clone(),
                number: state.count - 1,
            })
        }
        Active::Collect(list) => Instead::Collect(list.clone()),
    })
}

/// Ends what [`ACTIVE`] was set to, also when the code inside panics.
struct Restore(Active);

impl Drop for Restore {
    fn drop(&mut self) {
        ACTIVE.set(std::mem::replace(&mut self.0, Active::None));
    }
}

fn with<R>(active: Active, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(ACTIVE.replace(active));
    f()
}

/// Computes a region again, from its inputs as they were.
type Again = dyn Fn(&Region) -> Result<()> + Send + Sync;

/// A part of the graph that is computed again.
pub(crate) struct Region {
    again: Box<Again>,
    /// What it is computed from.
    pub inputs: Vec<Saved>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many tensors its operations saved.
    count: usize,
    /// These tensors, while a backward pass needs them.
    views: Vec<Option<View>>,
}

/// One of the tensors that a region's operations saved; gives it back when dropped.
pub(crate) struct Slot {
    pub region: Arc<Region>,
    number: usize,
}

impl Region {
    pub fn new(
        inputs: Vec<Saved>,
        again: impl Fn(&Region) -> Result<()> + Send + Sync + 'static,
    ) -> Arc<Region> {
        Arc::new(Region {
            again: Box::new(again),
            inputs,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the part for the first time.
    pub fn run<R>(self: &Arc<Region>, f: impl FnOnce() -> R) -> R {
        with(Active::Count(self.clone()), f)
    }
}

impl Slot {
    /// The tensor, computed again with all others of its region where it is not there.
    pub fn view(&self) -> Result<View> {
        let there = || {
            self.region
                .state()
                .views
                .get(self.number)
                .cloned()
                .flatten()
        };
        if let Some(view) = there() {
            return Ok(view);
        }
        let list: Arc<Mutex<Vec<View>>> = Arc::default();
        with(Active::Collect(list.clone()), || {
            enable_grad(|| (self.region.again)(&self.region))
        })?;
        let views = std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner));
        let mut state = self.region.state();
        if views.len() != state.count {
            return Err(Error::new(
                Kind::Autograd,
                format!(
                    "the function saved {} tensors at first and {} when it ran again; it must do the same each time",
                    state.count,
                    views.len()
                ),
            )
            .op("checkpoint"));
        }
        state.views = views.into_iter().map(Some).collect();
        drop(state);
        there().ok_or_else(|| Error::new(Kind::Autograd, "no such tensor").op("checkpoint"))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let view = {
            let mut state = self.region.state();
            state.views.get_mut(self.number).and_then(Option::take)
        };
        drop(view);
    }
}
