//! Sums of gradients: on the way, and in the tensors that keep them.

use super::{Edge, Meta};
use crate::Tensor;
use osteon_memory::unattributed;
use osteon_spec::Result;
use std::sync::{Arc, PoisonError};

/// A gradient as the tensor has it that the edge leads to: summed over dims that were broadcast, real where the tensor
/// is, in its dtype.
pub(super) fn fit(gradient: Tensor, edge: &Edge) -> Result<Tensor> {
    let (to, mut g) = (edge.geometry(), gradient);
    if g.shape() != to.layout.sizes() {
        g = g.sum_to_size(to.layout.sizes())?;
    }
    if g.dtype().is_complex() && !to.dtype.is_complex() {
        g = g.real()?;
    }
    if g.dtype() == to.dtype {
        Ok(g)
    } else {
        g.to(to.dtype)
    }
}

/// The sum of two gradients, in place where nobody else looks at the first.
pub(super) fn sum(sofar: Option<Tensor>, gradient: Tensor, create_graph: bool) -> Result<Tensor> {
    match sofar {
        None => Ok(gradient),
        Some(sofar) if !create_graph && sofar.is_own() => {
            sofar.add_(&gradient)?;
            Ok(sofar)
        }
        Some(sofar) => sofar.add(&gradient),
    }
}

/// Adds a gradient to the one that a tensor keeps, and calls the hooks of the leaf that it is.
pub(crate) fn accumulate(meta: &Arc<Meta>, gradient: Tensor, create_graph: bool) -> Result<()> {
    // One backward pass after the other: two that add to one gradient would lose a part.
    let adding = meta.adding.lock().unwrap_or_else(PoisonError::into_inner);
    let old = meta.state().grad.clone();
    let new = match old {
        Some(old) if create_graph => old.add(&gradient)?,
        Some(old) => {
            old.add_(&gradient)?;
            old
        }
        // Taken as it is where nobody else looks at it and it lies as a gradient should.
        None if create_graph || gradient.is_own() => gradient,
        None => own(meta, &gradient)?,
    };
    let old = meta.state().grad.replace(new);
    drop(adding);
    // Outside of the locks: it may be the last handle of a graph with functions of users.
    drop(old);
    let hooks = meta.state().post_hooks.clone();
    match hooks {
        Some((storage, hooks)) => {
            let leaf = meta.leaf(storage)?;
            unattributed(|| hooks.iter().try_for_each(|hook| hook(&leaf)))
        }
        None => Ok(()),
    }
}

/// A copy of a gradient, laid out as its tensor is if that is dense, else row-major.
fn own(meta: &Meta, gradient: &Tensor) -> Result<Tensor> {
    let g = &meta.geometry;
    let out = match g.dense()? {
        Some(out) => out,
        None => Tensor::empty(g.layout.sizes(), g.dtype, &g.device)?,
    };
    out.copy_(gradient)?;
    Ok(out)
}
