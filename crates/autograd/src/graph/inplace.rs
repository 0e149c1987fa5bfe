//! Writes in place under the graph: what they may write, and how histories change.

use super::mode::{is_grad_enabled, is_inference_mode_enabled};
use super::record::{Recorder, Taken, wanted};
use super::view::{INFERENCE, is_differentiable};
use super::{Back, Edge, Geometry, Grads, Rule, Strided};
use crate::Tensor;
use osteon_memory::{attribute, here};
use osteon_spec::{Error, Kind, Result};
use smallvec::smallvec;
use std::sync::Arc;

impl Recorder {
    /// Runs an operation that writes `target`, the first of its `inputs`, and records it where one of them requires a
    /// gradient: `before` saves what is needed of the inputs as they are, `rule` of the result.
    ///
    /// # Errors
    /// Before anything is written: a leaf that requires a gradient, a view of one, a view whose history would become
    /// ambiguous, a tensor of inference mode outside of it. Those of `run`.
    #[track_caller]
    pub fn in_place<'a, R: Rule + 'static>(
        op: &'static str,
        inputs: &[impl Taken<'a>],
        before: impl FnOnce(&mut Recorder) -> Result<()>,
        run: impl FnOnce() -> Result<()>,
        rule: impl FnOnce(&mut Recorder) -> Result<R>,
    ) -> Result<()> {
        let site = here();
        let run = || attribute(site, run);
        let Some(target) = inputs.first().and_then(|&t| t.into()) else {
            return run();
        };
        check_inference(target).map_err(|e| e.op(op))?;
        let recorded = is_differentiable(target.dtype()) && wanted(inputs);
        if !recorded {
            return run();
        }
        check_target(target).map_err(|e| e.op(op))?;
        attribute(site, || {
            let mut recorder = Recorder::new(op, site, inputs)?;
            before(&mut recorder)?;
            run()?;
            let rule = rule(&mut recorder)?;
            recorder.rewrite(target, Box::new(rule))
        })
    }

    /// Makes this node the history of `target`, and of its base where it is a view.
    fn rewrite(mut self, target: &Tensor, rule: Box<dyn Rule>) -> Result<()> {
        let Some(base) = target.base_meta() else {
            let node = self.node(smallvec![Geometry::of(target)], rule);
            let meta = target.meta_or_new();
            if meta.state().retains {
                node.kept().retained.push((0, Arc::downgrade(&meta)));
            }
            meta.set_edge(Some(Edge::Node(node, 0)), None);
            return Ok(());
        };
        let rule = WriteThrough {
            place: Strided::new(&base.geometry, Geometry::of(target)),
            written: rule,
        };
        // The base's history before the write takes the place of the view's.
        self.inputs[0] = base.edge();
        // PyTorch frees the written operation with the first pass.
        self.save_number();
        let node = self.node(smallvec![base.geometry.clone()], Box::new(rule));
        base.set_edge(Some(Edge::Node(node, 0)), None);
        target.look_again(&base)
    }
}

/// The derivative of a write through a view, as a change of the base: elements outside of the view keep their
/// gradients, those inside get what the written operation gives.
struct WriteThrough {
    place: Strided,
    written: Box<dyn Rule>,
}

impl Rule for WriteThrough {
    fn backward(&self, back: &Back<'_>) -> Result<Grads> {
        let outer = self.place.base_copy(&back.grad()?)?;
        let inner = self.place.look(&outer)?;
        let grads = [Some(inner.copy()?)];
        let mut result = self.written.backward(&Back {
            grads: &grads,
            ..*back
        })?;
        if back.needs(0) {
            match result.first_mut().and_then(Option::take) {
                Some(g) => inner.copy_(&g)?,
                None => inner.zero_()?,
            }
            result[0] = Some(outer);
        }
        Ok(result)
    }
}

/// Checks that a tensor of inference mode is written only in it.
pub(crate) fn check_inference(target: &Tensor) -> Result<()> {
    if !target.has_mark(INFERENCE) || is_inference_mode_enabled() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Autograd,
        "a tensor made in inference_mode may be written only there; copy() it first",
    ))
}

/// Checks that operations inside [`crate::no_grad`] may write a tensor now, for those who write several or none.
///
/// # Errors
/// Those of such a write.
///
/// ```
/// # use osteon_autograd::{Tensor, check_writable};
/// let x = Tensor::new([1f32])?;
/// assert!(check_writable(&x, "load").is_ok() && check_writable(&x.expand([2])?, "load").is_err());
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn check_writable(target: &Tensor, op: &'static str) -> Result<()> {
    check_inference(target).map_err(|e| e.op(op))?;
    target.as_view().check_writable(op)
}

impl Tensor {
    /// Checks that a write to this tensor would be allowed here.
    pub(crate) fn check_writable_in_graph(&self) -> Result<()> {
        check_inference(self)?;
        if self.requires_grad() && is_grad_enabled() {
            check_target(self)
        } else {
            Ok(())
        }
    }
}

/// Checks that a write to `target` can be recorded.
fn check_target(target: &Tensor) -> Result<()> {
    let refuse = |what: String| Err(Error::new(Kind::Autograd, what));
    if let Some(base) = target.base_meta() {
        if let Some(why) = target.why_frozen() {
            return refuse(format!(
                "{} is a view {why}, and is written in place while gradients are recorded; write out of place instead",
                target.described()
            ));
        }
        if target.requires_grad() && base.state().edge.is_none() {
            return refuse(format!(
                "a view of a leaf that requires grad is being written in place ({}); do so inside no_grad",
                target.described()
            ));
        }
    }
    let is_leaf = target.meta().is_some_and(|m| {
        let state = m.state();
        state.leaf && state.edge.is_none()
    });
    if is_leaf {
        return refuse(format!(
            "a leaf that requires grad is being written in place ({}); do so inside no_grad",
            target.described()
        ));
    }
    Ok(())
}
