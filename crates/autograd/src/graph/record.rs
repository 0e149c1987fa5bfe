//! Recording an operation: its edges, what it saves, its rule.

use super::mode::{is_grad_enabled, is_inference_mode_enabled};
use super::saved::Saved;
use super::view::{INFERENCE, is_differentiable};
use super::{Edge, Geometry, Node, Rule};
use crate::Tensor;
use osteon_memory::{Site, attribute};
use osteon_spec::Result;
use osteon_tensor::View;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// An operation that is being recorded: where its gradients will flow, and what it saves.
pub(crate) struct Recorder {
    pub op: &'static str,
    pub site: Site,
    pub inputs: SmallVec<[Option<Edge>; 2]>,
    pub saved: Vec<Saved>,
}

/// What an operation takes: a tensor, or where there is none a number, which keeps its place among the inputs.
pub(crate) trait Taken<'a>: Copy + Into<Option<&'a Tensor>> {}

impl<'a, T: Copy + Into<Option<&'a Tensor>>> Taken<'a> for T {}

/// A fresh result as a tensor. Where an input requires a gradient, `rule` says what is saved, in the order in which
/// the derivative asks for it, and gives the derivative; gradients of `inputs` come in their order.
///
/// # Errors
/// A view whose base was written in a way that makes its history ambiguous; no memory for what is saved.
#[inline]
pub(crate) fn record<'a, R: Rule + 'static>(
    out: View,
    inputs: &[impl Taken<'a>],
    rule: impl FnOnce(&mut Recorder, &View) -> Result<R>,
) -> Result<Tensor> {
    if !wanted(inputs) || !is_differentiable(out.dtype()) {
        return Ok(Tensor::from_view(out));
    }
    attribute(out.site(), || {
        let mut recorder = Recorder::new(out.op(), out.site(), inputs)?;
        let rule = rule(&mut recorder, &out)?;
        recorder.finish(out, rule)
    })
}

/// Whether an operation on these is recorded.
#[inline]
pub(crate) fn wanted<'a>(inputs: &[impl Taken<'a>]) -> bool {
    // In this order: most tensors have no history, and that is one load.
    inputs
        .iter()
        .any(|&t| t.into().is_some_and(Tensor::requires_grad))
        && is_grad_enabled()
}

impl Recorder {
    #[inline]
    pub fn new<'a>(op: &'static str, site: Site, inputs: &[impl Taken<'a>]) -> Result<Recorder> {
        let mut recorder = Recorder {
            op,
            site,
            inputs: SmallVec::new(),
            saved: Vec::new(),
        };
        for &input in inputs {
            recorder.inputs.push(match input.into() {
                Some(tensor) => tensor.edge()?,
                None => None,
            });
        }
        Ok(recorder)
    }

    /// Whether gradients flow to an input.
    pub fn needs(&self, input: usize) -> bool {
        self.inputs.get(input).is_some_and(Option::is_some)
    }

    /// Saves a tensor: an input, with its history, or any other.
    pub fn save(&mut self, tensor: &Tensor) -> Result<()> {
        let edge = tensor.edge()?;
        self.saved
            .push(Saved::input(tensor, edge, self.op, self.site)?);
        Ok(())
    }

    /// Saves a tensor if `needed`, else nothing, under the same number.
    pub fn save_if(&mut self, needed: bool, tensor: &Tensor) -> Result<()> {
        if needed {
            return self.save(tensor);
        }
        self.saved.push(Saved::Number);
        Ok(())
    }

    /// Saves the operation's first output.
    pub fn save_output(&mut self, out: &View) -> Result<()> {
        self.save_output_of(out, 0)
    }

    /// Saves the operation's output of this number.
    pub fn save_output_of(&mut self, out: &View, output: usize) -> Result<()> {
        self.saved
            .push(Saved::output(out, output, self.op, self.site)?);
        Ok(())
    }

    /// Saves a view that has no history: indices, a mask, a statistic.
    pub fn save_view(&mut self, view: &View) -> Result<()> {
        let tensor = Tensor::from_view(view.clone());
        self.saved
            .push(Saved::input(&tensor, None, self.op, self.site)?);
        Ok(())
    }

    /// Notes that PyTorch saves something here that osteon need not: a second backward is an error.
    pub fn save_number(&mut self) {
        self.saved.push(Saved::Number);
    }

    /// The result, made by this node.
    #[inline]
    pub fn finish<R: Rule + 'static>(self, out: View, rule: R) -> Result<Tensor> {
        let mut tensor = Tensor::from_view(out);
        let node = self.node(smallvec![Geometry::of(&tensor)], Box::new(rule));
        tensor.made_by(Edge::Node(node, 0));
        Ok(tensor)
    }

    /// Several results, made by this node; those without derivatives (indices) are plain tensors.
    pub fn finish_many<R: Rule + 'static>(self, outs: Vec<View>, rule: R) -> Result<Vec<Tensor>> {
        let mut tensors: Vec<Tensor> = outs.into_iter().map(Tensor::from_view).collect();
        let node = self.node(tensors.iter().map(Geometry::of).collect(), Box::new(rule));
        for (k, tensor) in tensors.iter_mut().enumerate() {
            if is_differentiable(tensor.dtype()) {
                tensor.made_by(Edge::Node(node.clone(), k as u32));
            }
        }
        Ok(tensors)
    }

    #[inline]
    pub fn node(self, outputs: SmallVec<[Geometry; 1]>, rule: Box<dyn Rule>) -> Arc<Node> {
        Node::new(self.op, self.site, self.inputs, outputs, self.saved, rule)
    }
}

impl Tensor {
    /// A tensor that has no history.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let view = osteon_tensor::View::from_data(&[1i64, 2], &osteon_spec::Device::cpu())?;
    /// assert_eq!(Tensor::from_view(view).to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn from_view(view: View) -> Tensor {
        if is_inference_mode_enabled() {
            view.viewer().mark(INFERENCE);
        }
        Tensor { view }
    }
}
