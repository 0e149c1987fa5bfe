//! The derivative of normalisations: fused, but for complex numbers and where derivatives of derivatives are wanted.

use super::accurate;
use crate::Tensor;
use crate::graph::{Back, Grads, Rule};
use crate::views::signed;
use osteon_spec::Result;
use osteon_tensor::NormalizationOf;

/// How elements were normalised.
///
/// Saved are the input, what was multiplied by, what was subtracted, and the weight, each if there is one.
pub(crate) struct Normalization {
    /// Dims in place of the channels (dim 1), if these were grouped.
    pub split: Option<[usize; 2]>,
    /// The dims that statistics are of, after that.
    pub dims: Vec<isize>,
    /// The shape in which weight and bias broadcast to the elements.
    pub column: Vec<usize>,
    pub eps: f64,
    /// Whether the statistics do not depend on the elements.
    pub is_fixed: bool,
    /// Whether something was subtracted.
    pub is_centered: bool,
    pub has_weight: bool,
    pub has_bias: bool,
}

impl Normalization {
    pub fn over(dims: Vec<isize>, column: Vec<usize>, eps: f64) -> Normalization {
        Normalization {
            split: None,
            dims,
            column,
            eps,
            is_fixed: false,
            is_centered: false,
            has_weight: false,
            has_bias: false,
        }
    }

    fn grouped(&self, t: &Tensor) -> Result<Tensor> {
        match self.split {
            Some(split) => t.unflatten(1, signed(&split)),
            None => Ok(t.clone()),
        }
    }

    fn weight(&self, b: &Back<'_>) -> Result<Option<Tensor>> {
        let weight = || b.saved(3)?.reshape(signed(&self.column));
        self.has_weight.then(weight).transpose()
    }

    fn mean(&self, b: &Back<'_>) -> Result<Option<Tensor>> {
        self.is_centered.then(|| b.saved(2)).transpose()
    }

    /// The gradient of the input, and what those of weight and bias are sums of, as far as they are wanted and at hand.
    fn fused(&self, b: &Back<'_>, g: &Tensor, wants_weight: bool) -> Result<[Option<Tensor>; 3]> {
        let (x, scale) = (self.grouped(&b.saved(0)?)?, b.saved(1)?);
        let (mean, weight) = (self.mean(b)?, self.weight(b)?);
        let of = NormalizationOf {
            x: x.as_view(),
            mean: mean.as_ref().map(Tensor::as_view),
            scale: scale.as_view(),
            weight: weight.as_ref().map(Tensor::as_view),
            dims: (!self.is_fixed).then_some(&self.dims),
        };
        let g = g.as_view();
        // The last dims, along which weight and bias are the same.
        let last = self.column.iter().rev().take_while(|&&n| n == 1).count();
        if last > 0
            && let Some(sums) = g.normalization_sums(&of, last)?
        {
            let gradient = match b.needs(0) {
                true => g.normalization_gradient_by_sums(&of, &sums, last)?,
                false => None,
            };
            if gradient.is_some() || !b.needs(0) {
                let [bias, weight] = sums.map(|sums| Some(Tensor::from_view(sums)));
                return Ok([gradient.map(Tensor::from_view), weight, bias]);
            }
        }
        let mut gradient = match b.needs(0) {
            true => g.normalization_gradient_of_rows(&of)?,
            false => None,
        };
        let needs_times = b.needs(0) && gradient.is_none() && !self.is_fixed;
        let times = (wants_weight || needs_times)
            .then(|| g.times_normalized(&of))
            .transpose()?;
        if b.needs(0) && gradient.is_none() {
            gradient = Some(g.normalization_gradient(&of, times.as_ref())?);
        }
        Ok([gradient, times, None].map(|view| view.map(Tensor::from_view)))
    }

    /// The same as a composition, in which the statistics depend on the input.
    fn composed(&self, b: &Back<'_>, g: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let x = accurate(&self.grouped(&b.saved(0)?)?)?;
        let (mut scale, mut mean) = (b.saved(1)?, self.mean(b)?);
        if !self.is_fixed {
            let square = if self.is_centered {
                mean = Some(x.mean_dims(&self.dims, true)?);
                x.var(&self.dims, 0.0, true)?
            } else {
                x.mul(&x)?.mean_dims(&self.dims, true)?
            };
            scale = square.add(self.eps)?.rsqrt()?;
        }
        let centered = match &mean {
            Some(mean) => x.sub(mean)?,
            None => x,
        };
        let normal = centered.mul(&scale)?.conj()?;
        let times = g.mul(&normal)?;
        let gradient = b.want(0, || {
            let mut inner = match self.weight(b)? {
                Some(weight) => g.mul(&weight.conj()?)?,
                None => g.clone(),
            };
            if !self.is_fixed {
                let slope = inner.mul(&normal)?.mean_dims(&self.dims, true)?;
                if self.is_centered {
                    inner = inner.sub(&inner.mean_dims(&self.dims, true)?)?;
                }
                inner = inner.sub(&normal.mul(&slope)?)?;
            }
            inner.mul(&scale.conj()?)
        })?;
        Ok([gradient, Some(times)])
    }
}

impl Rule for Normalization {
    fn backward(&self, b: &Back<'_>) -> Result<Grads> {
        let g = self.grouped(&b.grad()?)?;
        let (bias, wants_weight) = (
            1 + usize::from(self.has_weight),
            self.has_weight && b.needs(1),
        );
        // Sums of what elements give to a weight or bias, in its shape.
        let summed = |elements: &Tensor, input: usize| {
            let sums = elements.sum_to_size(&self.column)?;
            sums.reshape(signed(b.sizes(input)))
        };
        let [input, times, sums] = if !b.needs(0) && !wants_weight {
            [None, None, None]
        } else if g.numel() == 0 {
            [b.want(0, || Ok(g.clone()))?, Some(g.clone()), None]
        } else if b.create_graph || g.dtype().is_complex() {
            let [input, times] = self.composed(b, &g)?;
            [input, times, None]
        } else {
            self.fused(b, &g, wants_weight)?
        };
        let mut grads = Grads::new();
        grads.push(match input {
            Some(gradient) => Some(gradient.reshape(signed(b.sizes(0)))?),
            None => None,
        });
        if self.has_weight {
            grads.push(match times.filter(|_| wants_weight) {
                Some(times) => Some(summed(&times, 1)?),
                None => None,
            });
        }
        if self.has_bias {
            grads.push(b.want(bias, || summed(sums.as_ref().unwrap_or(&g), bias))?);
        }
        Ok(grads)
    }
}
