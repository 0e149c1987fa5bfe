//! Views under the graph: each knows the tensor that it looks into, so that a write through one is seen by the
//! history of all.

use super::mode::is_grad_enabled;
use super::record::{Recorder, wanted};
use super::{Edge, Geometry, Meta, Node, Rule, Strided};
use crate::Tensor;
use osteon_spec::{DType, Error, Kind, Result};
use osteon_tensor::View;
use smallvec::smallvec;
use std::sync::Arc;

/// Made in inference mode: never recorded.
pub(crate) const INFERENCE: u8 = 1;
/// A view made where nothing is recorded.
pub(crate) const NO_GRAD: u8 = 2;
/// A view that was one of several results of an operation.
pub(crate) const ONE_OF_MANY: u8 = 4;
/// A view made by a function of a user.
pub(crate) const CUSTOM: u8 = 8;

/// Whether elements of this dtype have derivatives.
#[inline]
pub(crate) fn is_differentiable(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_complex()
}

/// A view of `of` as a tensor.
#[inline]
pub(crate) fn viewed<R: Rule + 'static>(
    of: &Tensor,
    view: View,
    rule: impl FnOnce() -> Result<R>,
) -> Result<Tensor> {
    let mut out = Tensor::from_view(view);
    if !is_differentiable(out.dtype()) {
        return Ok(out);
    }
    link(of, &mut out, 0);
    if wanted(&[of]) {
        let view = out.as_view();
        let recorder = Recorder::new(view.op(), view.site(), &[of])?;
        let node = recorder.node(smallvec![Geometry::of(&out)], Box::new(rule()?));
        out.made_by(Edge::Node(node, 0));
    }
    Ok(out)
}

/// Several views that one operation made of `of`: these may not be written under the graph.
pub(crate) fn many_views<R: Rule + 'static>(
    of: &Tensor,
    views: Vec<View>,
    rule: impl FnOnce() -> Result<R>,
) -> Result<Vec<Tensor>> {
    if views.is_empty() || !is_differentiable(of.dtype()) {
        return Ok(views.into_iter().map(Tensor::from_view).collect());
    }
    let mut tensors = if wanted(&[of]) {
        let recorder = Recorder::new(views[0].op(), views[0].site(), &[of])?;
        recorder.finish_many(views, rule()?)?
    } else {
        views.into_iter().map(Tensor::from_view).collect()
    };
    tensors
        .iter_mut()
        .for_each(|out| link(of, out, ONE_OF_MANY));
    Ok(tensors)
}

/// Notes what `out` is a view of.
#[inline]
fn link(of: &Tensor, out: &mut Tensor, marks: u8) {
    let (from, to) = (of.as_view().viewer(), out.view.viewer_mut());
    let base = from.base().get().unwrap_or_else(|| of.attachment_or_new());
    to.set_base(base.clone());
    let no_grad = if is_grad_enabled() { 0 } else { NO_GRAD };
    // A view of a view that may not be written may not be either.
    let marks = marks | no_grad | from.marks();
    if marks != 0 {
        to.mark(marks);
    }
}

impl Tensor {
    pub(crate) fn has_mark(&self, mark: u8) -> bool {
        self.as_view().viewer().marks() & mark != 0
    }

    /// The storage's version that this view's edge stands for.
    fn stamp(&self) -> u64 {
        let own = self.meta().and_then(|m| m.state().version);
        own.unwrap_or_else(|| self.as_view().viewer().born())
    }

    /// Whether gradients flow to this tensor. A view requires them when its base does, as in PyTorch.
    #[inline]
    pub(crate) fn is_tracked(&self) -> bool {
        self.meta().is_some_and(Meta::is_tracked) || self.base_is_tracked()
    }

    /// The edge along which gradients of this tensor flow, if any do. A view whose storage was written since looks
    /// into its base anew: the write may have changed the base's history.
    ///
    /// # Errors
    /// Such a view, if it was made without recording or as one of several.
    pub(crate) fn edge(&self) -> Result<Option<Edge>> {
        if !self.is_tracked() || !is_differentiable(self.dtype()) {
            return Ok(None);
        }
        if let Some(base) = self.base_meta() {
            let has_edge = self.meta().is_some_and(|m| m.state().edge.is_some());
            if (has_edge || base.is_tracked()) && self.version() != self.stamp() {
                self.look_again(&base)?;
            }
        }
        let made_by = self.meta().and_then(|m| m.state().edge.clone());
        Ok(made_by.or_else(|| self.shared_meta()?.edge()))
    }

    /// Makes the edge of a view anew, from its base.
    pub(crate) fn look_again(&self, base: &Arc<Meta>) -> Result<()> {
        if let Some(why) = self.why_frozen() {
            return Err(Error::new(
                Kind::Autograd,
                format!(
                    "{} is a view {why}, and its base or another view of it has since been written in place; write out of place instead",
                    self.described()
                ),
            ));
        }
        // A base without an edge has none to give: gradients end here, as in PyTorch.
        let input = base.edge();
        let rule = Strided::new(&base.geometry, Geometry::of(self));
        let node = Node::new(
            "as_strided",
            self.as_view().site(),
            smallvec![input],
            smallvec![Geometry::of(self)],
            Vec::new(),
            Box::new(rule),
        );
        self.meta_or_new()
            .set_edge(Some(Edge::Node(node, 0)), Some(self.version()));
        Ok(())
    }

    /// Why a view may not be written under the graph, nor be looked at after such a write.
    pub(crate) fn why_frozen(&self) -> Option<&'static str> {
        if self.has_mark(CUSTOM) {
            Some("made by a custom function")
        } else if self.has_mark(ONE_OF_MANY) {
            Some("that is one of several results of an operation")
        } else if self.has_mark(NO_GRAD) {
            Some("made inside no_grad")
        } else {
            None
        }
    }

    /// A tensor as messages name it.
    pub(crate) fn described(&self) -> String {
        let name = self.name().map(|n| format!("'{n}' ")).unwrap_or_default();
        format!(
            "the {} {name}of shape {:?} made by {} at {}",
            self.dtype(),
            self.shape(),
            self.as_view().op(),
            self.as_view().site()
        )
    }
}
