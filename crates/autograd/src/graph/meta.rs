//! What the graph knows of one tensor.

use super::node::{Content, let_go};
use super::{Edge, Hook, PostHook};
use crate::Tensor;
use osteon_memory::{Attachment, Storage};
use osteon_spec::{DType, Device, Layout, Result};
use osteon_tensor::View;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a tensor's elements lie.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub layout: Layout,
    pub dtype: DType,
    pub device: Device,
}

impl Geometry {
    /// A new tensor for a gradient, laid out like this from its storage's begin; `None` where this has gaps or overlaps
    /// itself.
    pub fn dense(&self) -> Result<Option<Tensor>> {
        if !self.layout.is_non_overlapping_and_dense() {
            return Ok(None);
        }
        let layout = self.layout.with_offset(0)?;
        let view = View::alloc(layout, self.dtype, &self.device, "grad")?;
        Ok(Some(Tensor::from_view(view)))
    }

    pub fn of(tensor: &Tensor) -> Geometry {
        Geometry {
            layout: tensor.layout().clone(),
            dtype: tensor.dtype(),
            device: tensor.device(),
        }
    }
}

/// What the graph knows of one tensor: shared by its handles, by the edges that lead to it as a leaf, and by the
/// views of it. It is made when the first of these needs it.
pub(crate) struct Meta {
    pub geometry: Geometry,
    /// What the tensor is a view of.
    base: Option<Arc<Meta>>,
    /// Whether it requires a gradient: as a leaf, or as what an edge's node made. A copy of what `state` says, to
    /// be read without the lock.
    tracked: AtomicBool,
    state: Mutex<State>,
    /// Held while a backward pass adds to `State::grad`.
    pub adding: Mutex<()>,
}

#[derive(Default)]
pub(crate) struct State {
    /// A leaf whose gradient is wanted.
    pub leaf: bool,
    /// The node that made it.
    pub edge: Option<Edge>,
    /// For a view: the storage's version that `edge` stands for, where it is not the one at the view's birth.
    pub version: Option<u64>,
    pub grad: Option<Tensor>,
    /// Whether `grad` is kept though an edge made the tensor.
    pub retains: bool,
    pub hooks: Vec<Hook>,
    /// Hooks that are given the leaf, and the leaf's bytes to give.
    pub post_hooks: Option<(Storage, Vec<PostHook>)>,
}

impl Drop for Meta {
    /// A gradient or a hook may hold the next tensor of a long list; the rest drops by itself.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.grad.is_some() || !state.hooks.is_empty() || state.post_hooks.is_some() {
            let_go(|list| list.push(Content::Tensor(Box::new(std::mem::take(state)))));
        }
    }
}

impl Meta {
    fn new(tensor: &Tensor, edge: Option<Edge>) -> Meta {
        Meta {
            geometry: Geometry::of(tensor),
            base: tensor.base_meta(),
            tracked: AtomicBool::new(edge.is_some()),
            state: Mutex::new(State {
                edge,
                ..State::default()
            }),
            adding: Mutex::default(),
        }
    }

    #[inline]
    pub fn is_tracked(&self) -> bool {
        self.tracked.load(Ordering::Acquire)
    }

    /// The state, to look at.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // A panic inside leaves a state that is whole: each change is one assignment.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, where nobody has it.
    pub fn try_state(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().ok()
    }

    /// Makes it a leaf that wants a gradient, or does not.
    pub fn set_leaf(&self, wanted: bool) {
        let mut state = self.state();
        state.leaf = wanted;
        self.tracked
            .store(wanted || state.edge.is_some(), Ordering::Release);
    }

    /// Says which node made it; `version` as in [`State::version`].
    pub fn set_edge(&self, edge: Option<Edge>, version: Option<u64>) {
        let mut state = self.state();
        let tracked = edge.is_some() || state.leaf;
        let old = std::mem::replace(&mut state.edge, edge);
        state.version = version;
        self.tracked.store(tracked, Ordering::Release);
        drop(state);
        // Outside of the lock: it may be the last handle of a long graph.
        drop(old);
    }

    /// Whether a leaf has become a result since: its base, of which it is a view, was written under the graph.
    pub fn is_overtaken(&self) -> bool {
        self.base
            .as_ref()
            .is_some_and(|base| base.state().edge.is_some())
    }

    /// The edge along which gradients of this tensor flow, if any do.
    pub fn edge(self: &Arc<Meta>) -> Option<Edge> {
        let state = self.state();
        match &state.edge {
            Some(edge) => Some(edge.clone()),
            None => state.leaf.then(|| Edge::Leaf(self.clone())),
        }
    }
}

impl Meta {
    /// The leaf once more: another view of its bytes, with its gradient.
    pub fn leaf(self: &Arc<Meta>, storage: Storage) -> Result<Tensor> {
        let g = &self.geometry;
        let mut view = View::new(storage, g.layout.clone(), g.dtype, "leaf")?;
        view.viewer_mut().attach(self.clone());
        Ok(Tensor::from_view(view))
    }
}

fn downcast(attachment: &Attachment) -> Option<Arc<Meta>> {
    attachment.clone().downcast::<Meta>().ok()
}

impl Tensor {
    /// What the graph knows of this tensor, if anything.
    #[inline]
    pub(crate) fn meta(&self) -> Option<&Meta> {
        self.as_view().viewer().attachment().get()?.downcast_ref()
    }

    /// Whether nobody else looks at its bytes, and it looks at each of them once: it may be taken or overwritten.
    pub(crate) fn is_own(&self) -> bool {
        let view = self.as_view();
        view.viewer().is_unique()
            && view.storage().is_unique()
            && view.layout().is_non_overlapping_and_dense()
            && view.nbytes() == view.storage().nbytes()
    }

    pub(crate) fn shared_meta(&self) -> Option<Arc<Meta>> {
        downcast(self.as_view().viewer().attachment().get()?)
    }

    /// The same, made where there was none.
    pub(crate) fn meta_or_new(&self) -> Arc<Meta> {
        downcast(self.attachment_or_new()).expect("attachments of viewers are set here alone")
    }

    #[inline]
    pub(crate) fn attachment_or_new(&self) -> &Attachment {
        let slot = self.as_view().viewer().attachment();
        slot.get_or_init(|| {
            super::trace::tell();
            Arc::new(Meta::new(self, None))
        })
    }

    /// Says which node made this tensor, a new one.
    #[inline]
    pub(crate) fn made_by(&mut self, edge: Edge) {
        super::trace::tell();
        let meta = Arc::new(Meta::new(self, Some(edge)));
        self.view.viewer_mut().attach(meta);
    }

    /// What the graph knows of the tensor that this one is a view of.
    pub(crate) fn base_meta(&self) -> Option<Arc<Meta>> {
        downcast(self.as_view().viewer().base().get()?)
    }

    #[inline]
    pub(crate) fn base_is_tracked(&self) -> bool {
        let base = self.as_view().viewer().base().get();
        base.and_then(|b| b.downcast_ref::<Meta>())
            .is_some_and(Meta::is_tracked)
    }
}
