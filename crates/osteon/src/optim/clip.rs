//! Gradients held in bounds.

use crate::{Error, Kind, Result, Tensor, no_grad};
use osteon_autograd::check_writable;
use std::borrow::Borrow;

/// Checks that all of these can be written, so that one that cannot be does not leave the others changed.
pub(super) fn check_all(tensors: &[Tensor], op: &'static str) -> Result<()> {
    tensors.iter().try_for_each(|t| check_writable(t, op))
}

fn gradients<T: Borrow<Tensor>>(parameters: impl IntoIterator<Item = T>) -> Vec<Tensor> {
    let all = parameters.into_iter();
    all.filter_map(|p| p.borrow().grad()).collect()
}

/// Scales all gradients, in place, by one factor, so that their norm of this order (2: Euclid's), as one vector, is at most
/// `max_norm`. Returns the norm that they had: PyTorch's `clip_grad_norm_`.
///
/// # Errors
/// A `max_norm` that is no number; gradients on several devices; a guard in the way.
///
/// ```
/// use osteon::{Tensor, nn::parameter, optim::clip_grad_norm_};
/// let w = parameter(Tensor::new([0f64, 0.0])?)?;
/// w.set_grad(Some(&Tensor::new([3f64, 4.0])?))?;
/// assert_eq!(clip_grad_norm_([&w], 1.0, 2.0)?.item::<f64>()?, 5.0);
/// assert!((w.grad().unwrap().norm(2.0)?.item::<f64>()? - 1.0).abs() < 1e-6);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn clip_grad_norm_<T: Borrow<Tensor>>(
    parameters: impl IntoIterator<Item = T>,
    max_norm: f64,
    order: f64,
) -> Result<Tensor> {
    if max_norm.is_nan() {
        return Err(Error::new(Kind::Value, "max_norm is no number").op("clip_grad_norm_"));
    }
    let gradients = gradients(parameters);
    check_all(&gradients, "clip_grad_norm_")?;
    no_grad(|| {
        let norms: Vec<Tensor> = gradients
            .iter()
            .map(|g| g.norm(order))
            .collect::<Result<_>>()?;
        if norms.is_empty() {
            return Tensor::new(0f32);
        }
        let total = Tensor::stack(&norms.iter().collect::<Vec<_>>(), 0)?.norm(order)?;
        let factor = total
            .add(1e-6)?
            .reciprocal()?
            .mul(max_norm)?
            .clamp_max(1.0)?;
        gradients.iter().try_for_each(|g| g.mul_(&factor))?;
        Ok(total)
    })
}

/// Holds each element of all gradients within `±value`, in place: PyTorch's `clip_grad_value_`.
///
/// # Errors
/// A negative bound; a guard in the way.
///
/// ```
/// use osteon::{Tensor, nn::parameter, optim::clip_grad_value_};
/// let w = parameter(Tensor::new([0f32, 0.0])?)?;
/// w.set_grad(Some(&Tensor::new([3f32, -0.5])?))?;
/// clip_grad_value_([&w], 1.0)?;
/// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [1.0, -0.5]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[track_caller]
pub fn clip_grad_value_<T: Borrow<Tensor>>(
    parameters: impl IntoIterator<Item = T>,
    value: f64,
) -> Result<()> {
    if value.is_nan() || value < 0.0 {
        let message = format!("the bound must not be negative, got {value}");
        return Err(Error::new(Kind::Value, message).op("clip_grad_value_"));
    }
    let gradients = gradients(parameters);
    check_all(&gradients, "clip_grad_value_")?;
    no_grad(|| gradients.iter().try_for_each(|g| g.clamp_(-value, value)))
}
