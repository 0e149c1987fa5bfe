//! Gradients, as users meet them.

use crate::Tensor;
use crate::graph::{Edge, Hook, PostHook, Sweep, accumulate, sweep};
use osteon_memory::{attribute, here};
use osteon_spec::{Error, Kind, Result};
use std::sync::Arc;

/// How [`Tensor::backward_with`] goes about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backward<'a> {
    /// The gradient of the tensor itself; 1 for a tensor of one element that has none.
    pub gradient: Option<&'a Tensor>,
    /// Keeps what operations saved, so that the pass can be run once more.
    pub retain_graph: bool,
    /// Records the pass itself, so that gradients have gradients; keeps what was saved.
    pub create_graph: bool,
    /// The leaves whose gradients are added to; all, if none are given.
    pub inputs: Option<&'a [&'a Tensor]>,
}

/// How [`grad`] goes about it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grad<'a> {
    /// The gradients of the outputs, one each; 1 for outputs of one element, if none are given.
    pub gradients: Option<&'a [&'a Tensor]>,
    /// Keeps what operations saved, so that the pass can be run once more.
    pub retain_graph: bool,
    /// Records the pass itself, so that gradients have gradients; keeps what was saved.
    pub create_graph: bool,
    /// Gives `None` for an input that no output depends on, instead of an error.
    pub allow_unused: bool,
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(Kind::Autograd, message))
}

/// The gradient with which a backward pass begins at `output`.
fn root(output: &Tensor, gradient: Option<&Tensor>) -> Result<(Edge, Tensor)> {
    let Some(edge) = output.edge()? else {
        return refuse(format!(
            "{} does not require gradients; call requires_grad_(true) on a leaf, and do not compute it inside no_grad",
            output.described()
        ));
    };
    let gradient = match gradient {
        Some(g) if g.shape() != output.shape() => {
            return refuse(format!(
                "the gradient has shape {:?}, but the tensor has {:?}",
                g.shape(),
                output.shape()
            ));
        }
        Some(g) if g.dtype() != output.dtype() => g.to(output.dtype())?,
        Some(g) => g.clone(),
        None if output.numel() != 1 => {
            return refuse(format!(
                "a gradient is made for tensors of one element only, and this one has shape {:?}; call sum() or mean() first, or pass the gradient",
                output.shape()
            ));
        }
        None if output.dtype().is_complex() => {
            return refuse(format!(
                "a gradient is made for real tensors only, not {}; pass it",
                output.dtype()
            ));
        }
        None => Tensor::ones(output.shape(), output.dtype(), &output.device())?,
    };
    Ok((edge, gradient))
}

/// The gradients of `inputs`: of the sum of `outputs`, weighted by their gradients where these are given. Touches no
/// tensor's [`Tensor::grad`].
///
/// # Errors
/// An output that requires no gradients, or has several elements and no gradient given; an input that no output
/// depends on, unless that is allowed; as [`Tensor::backward`].
///
/// ```
/// # use osteon_autograd::{Grad, Tensor, grad};
/// let x = Tensor::new([3.0f64])?;
/// x.requires_grad_(true)?;
/// let y = x.pow(3)?;
/// let how = Grad { create_graph: true, ..Grad::default() };
/// let dy = grad(&[&y], &[&x], &how)?[0].clone().unwrap(); // 3 x²
/// let ddy = grad(&[&dy], &[&x], &Grad::default())?[0].clone().unwrap(); // 6 x
/// assert_eq!((dy.item::<f64>()?, ddy.item::<f64>()?), (27.0, 18.0));
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn grad(
    outputs: &[&Tensor],
    inputs: &[&Tensor],
    how: &Grad<'_>,
) -> Result<Vec<Option<Tensor>>> {
    let named = |e: Error| e.op("grad");
    if how.gradients.is_some_and(|g| g.len() != outputs.len()) {
        return refuse("one gradient for each output is needed").map_err(named);
    }
    let gradient = |i: usize| how.gradients.and_then(|g| g.get(i).copied());
    let roots = outputs
        .iter()
        .enumerate()
        .map(|(i, output)| root(output, gradient(i)));
    let roots = attribute(here(), || roots.collect::<Result<Vec<_>>>()).map_err(named)?;
    let wanted = edges(inputs).map_err(named)?;
    let found = sweep(Sweep {
        roots,
        wanted: Some(&wanted),
        accumulate: false,
        retain_graph: how.retain_graph || how.create_graph,
        create_graph: how.create_graph,
    })
    .map_err(named)?;
    match found.iter().position(Option::is_none) {
        Some(i) if !how.allow_unused => refuse(format!(
            "no output depends on input {i}, {}; set allow_unused if that is right",
            inputs[i].described()
        ))
        .map_err(named),
        _ => Ok(found),
    }
}

fn edges(inputs: &[&Tensor]) -> Result<Vec<Edge>> {
    let edge = |t: &&Tensor| match t.edge()? {
        Some(edge) => Ok(edge),
        None => refuse(format!("{} does not require gradients", t.described())),
    };
    inputs.iter().map(edge).collect()
}

impl Tensor {
    /// Whether gradients flow to this tensor: as a leaf for which that was asked, or as a result of such.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (w, x) = (Tensor::new([1f32])?, Tensor::new([2f32])?);
    /// w.requires_grad_(true)?;
    /// assert!(w.mul(&x)?.requires_grad() && !x.requires_grad());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[inline]
    pub fn requires_grad(&self) -> bool {
        self.is_tracked()
    }

    /// Says whether gradients of this leaf are wanted. For all handles of the tensor. Free.
    ///
    /// # Errors
    /// A dtype without derivatives; a result of recorded operations, which `false` cannot cut off ([`Tensor::detach`]
    /// does); a tensor of inference mode.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([1f32])?;
    /// w.requires_grad_(true)?;
    /// assert!(w.requires_grad() && w.is_leaf()?);
    /// assert!(Tensor::new([1i64])?.requires_grad_(true).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn requires_grad_(&self, requires_grad: bool) -> Result<()> {
        let op = "requires_grad_";
        if !requires_grad && !self.requires_grad() {
            return Ok(());
        }
        if requires_grad && !(self.dtype().is_float() || self.dtype().is_complex()) {
            return refuse(format!(
                "only floats and complex numbers have gradients, not {}",
                self.dtype()
            ))
            .map_err(|e| e.op(op));
        }
        if requires_grad && self.is_inference() {
            return refuse(
                "a tensor made in inference_mode has no gradients; copy() it outside first",
            )
            .map_err(|e| e.op(op));
        }
        if !self.is_leaf()? {
            return if requires_grad {
                Ok(())
            } else {
                refuse("only of leaves can this be changed; use detach() on a result")
                    .map_err(|e| e.op(op))
            };
        }
        self.meta_or_new().set_leaf(requires_grad);
        Ok(())
    }

    /// Whether no recorded operation made it.
    ///
    /// # Errors
    /// A view whose history became ambiguous: made inside [`crate::no_grad`], or as one of several results, while its
    /// base was written in place since.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([1f32])?;
    /// w.requires_grad_(true)?;
    /// assert!(w.is_leaf()? && !w.mul(2)?.is_leaf()?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn is_leaf(&self) -> Result<bool> {
        self.edge()?;
        Ok(self.meta().is_none_or(|m| m.state().edge.is_none()))
    }

    /// Whether it was made in [`crate::inference_mode`].
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, inference_mode};
    /// assert!(inference_mode(|| Tensor::new([1f32]))?.is_inference());
    /// assert!(!Tensor::new([1f32])?.is_inference());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn is_inference(&self) -> bool {
        self.has_mark(crate::graph::INFERENCE)
    }

    /// The gradient that backward passes have added up so far. Later passes add to the same tensor in place.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([2f32])?;
    /// w.requires_grad_(true)?;
    /// assert!(w.grad().is_none());
    /// w.mul(3)?.backward()?;
    /// w.mul(3)?.backward()?;
    /// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [6.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn grad(&self) -> Option<Tensor> {
        self.meta().and_then(|m| m.state().grad.clone())
    }

    /// Puts a gradient in place of the one that is there, or nothing.
    ///
    /// # Errors
    /// A gradient of another shape, dtype or device; the tensor itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([2f32])?;
    /// w.requires_grad_(true)?;
    /// w.mul(3)?.backward()?;
    /// w.set_grad(None)?;
    /// assert!(w.grad().is_none());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn set_grad(&self, gradient: Option<&Tensor>) -> Result<()> {
        if let Some(g) = gradient
            && (g.shape(), g.dtype(), g.device()) != (self.shape(), self.dtype(), self.device())
        {
            return refuse(format!(
                "the gradient is {} {:?} on {}, but the tensor {} {:?} on {}",
                g.dtype(),
                g.shape(),
                g.device(),
                self.dtype(),
                self.shape(),
                self.device()
            ))
            .map_err(|e| e.op("set_grad"));
        }
        if gradient.is_some_and(|g| g.is(self)) {
            return refuse("a tensor cannot be its own gradient; copy() it")
                .map_err(|e| e.op("set_grad"));
        }
        let old = std::mem::replace(&mut self.meta_or_new().state().grad, gradient.cloned());
        drop(old);
        Ok(())
    }

    /// Adds the gradients of this tensor, of one element, to [`Tensor::grad`] of every leaf that it was computed from and
    /// that requires them. Frees what operations saved, node by node, as it goes.
    ///
    /// # Errors
    /// A tensor that requires no gradients, or has several elements; what an operation saved was overwritten in place
    /// (nothing has been changed then) or freed by an earlier pass; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1f32, 2.0, 3.0])?;
    /// x.requires_grad_(true)?;
    /// x.mul(&x)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        self.backward_with(&Backward::default())
    }

    /// [`Tensor::backward`] with a gradient of the tensor itself, for some inputs only, recorded, or to be repeated.
    ///
    /// # Errors
    /// As [`Tensor::backward`]; a gradient of another shape.
    ///
    /// ```
    /// # use osteon_autograd::{Backward, Tensor};
    /// let x = Tensor::new([1f32, 2.0])?;
    /// x.requires_grad_(true)?;
    /// let gradient = Tensor::new([10f32, 1.0])?;
    /// x.mul(3)?.backward_with(&Backward { gradient: Some(&gradient), ..Backward::default() })?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [30.0, 3.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn backward_with(&self, how: &Backward<'_>) -> Result<()> {
        let named = |e: Error| e.op("backward");
        let wanted = how.inputs.map(edges).transpose().map_err(named)?;
        let root = attribute(here(), || root(self, how.gradient)).map_err(named)?;
        let found = sweep(Sweep {
            roots: vec![root],
            wanted: wanted.as_deref(),
            accumulate: true,
            retain_graph: how.retain_graph || how.create_graph,
            create_graph: how.create_graph,
        })
        .map_err(named)?;
        // Leaves and results that keep their gradients have theirs already.
        for (input, gradient) in how.inputs.unwrap_or_default().iter().zip(found) {
            if let Some(gradient) = gradient
                && !input.retains_grad()
            {
                accumulate(&input.meta_or_new(), gradient, how.create_graph).map_err(named)?;
            }
        }
        Ok(())
    }

    /// Keeps the gradient of this result, which [`Tensor::grad`] has then, as it has that of leaves.
    ///
    /// # Errors
    /// A tensor that requires no gradients.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1f32, 2.0])?;
    /// x.requires_grad_(true)?;
    /// let y = x.mul(3)?;
    /// y.retain_grad()?;
    /// y.mul(2)?.sum()?.backward()?;
    /// assert_eq!(y.grad().unwrap().to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn retain_grad(&self) -> Result<()> {
        match self.edge()? {
            None => refuse(format!("{} does not require gradients", self.described()))
                .map_err(|e| e.op("retain_grad")),
            Some(Edge::Leaf(_)) => Ok(()),
            Some(Edge::Node(node, k)) => {
                let meta = self.meta_or_new();
                if !std::mem::replace(&mut meta.state().retains, true) {
                    let entry = (k as usize, Arc::downgrade(&meta));
                    node.kept().retained.push(entry);
                }
                Ok(())
            }
        }
    }

    /// Whether [`Tensor::retain_grad`] was called.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1f32])?;
    /// x.requires_grad_(true)?;
    /// let y = x.mul(3)?;
    /// y.retain_grad()?;
    /// assert!(y.retains_grad() && !x.retains_grad());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn retains_grad(&self) -> bool {
        self.meta().is_some_and(|m| m.state().retains)
    }

    /// Calls `hook` with each gradient that reaches this tensor; what it returns, if anything, goes on in its place.
    /// Hooks of one tensor run in their order.
    ///
    /// # Errors
    /// A tensor that requires no gradients. In the backward pass a hook that returns another shape, dtype or device.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1f32, 2.0])?;
    /// x.requires_grad_(true)?;
    /// x.register_hook(|g| g.mul(10).map(Some))?;
    /// x.mul(3)?.sum()?.backward()?;
    /// assert_eq!(x.grad().unwrap().to_vec::<f32>()?, [30.0, 30.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn register_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
    ) -> Result<()> {
        let hook: Hook = Arc::new(hook);
        match self.edge()? {
            None => {
                return refuse(format!("{} does not require gradients", self.described()))
                    .map_err(|e| e.op("register_hook"));
            }
            Some(Edge::Leaf(meta)) => meta.state().hooks.push(hook),
            Some(Edge::Node(node, k)) => node.kept().hooks.push((k as usize, hook)),
        }
        Ok(())
    }

    /// Calls `hook` with this leaf each time its gradient has been added to: to step an optimiser and let the gradient
    /// go before the next one comes.
    ///
    /// # Errors
    /// A tensor that is no leaf or requires no gradients.
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, no_grad};
    /// let w = Tensor::new([1f32, 2.0])?;
    /// w.requires_grad_(true)?;
    /// w.register_post_accumulate_grad_hook(|w| {
    ///     no_grad(|| w.sub_(&w.grad().unwrap()))?;
    ///     w.set_grad(None)
    /// })?;
    /// w.mul(3)?.sum()?.backward()?;
    /// assert_eq!(w.to_vec::<f32>()?, [-2.0, -1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn register_post_accumulate_grad_hook(
        &self,
        hook: impl Fn(&Tensor) -> Result<()> + Send + Sync + 'static,
    ) -> Result<()> {
        let hook: PostHook = Arc::new(hook);
        match self.edge()? {
            Some(Edge::Leaf(meta)) => {
                let mut state = meta.state();
                let (_, hooks) = state.post_hooks.get_or_insert_with(|| (self.storage().clone(), Vec::new()));
                hooks.push(hook);
                Ok(())
            }
            _ => refuse("only leaves that require gradients have such hooks; register_hook() is for results")
                .map_err(|e| e.op("register_post_accumulate_grad_hook")),
        }
    }

    /// Cuts this tensor off from its history, in place: it becomes a leaf that requires no gradients.
    ///
    /// # Errors
    /// A view, whose history is its base's: use [`Tensor::detach`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1f32])?;
    /// x.requires_grad_(true)?;
    /// let y = x.mul(3)?;
    /// y.detach_()?;
    /// assert!(!y.requires_grad() && y.is_leaf()?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn detach_(&self) -> Result<()> {
        if self.as_view().viewer().base().get().is_some() {
            return refuse("a view is not detached in place; use detach()")
                .map_err(|e| e.op("detach_"));
        }
        if let Some(meta) = self.shared_meta() {
            meta.set_leaf(false);
            meta.set_edge(None, None);
        }
        Ok(())
    }
}
