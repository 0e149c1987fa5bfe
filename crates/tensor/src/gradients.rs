//! Derivatives that would be many passes as a composition: of softmax and of normalisations.

use crate::backend::{Arg, backend};
use crate::matmul::Contract;
use crate::norm::{binary, or};
use crate::reduce::Reduce;
use crate::softmax::accurate;
use crate::target::Target;
use crate::{BinaryOp, View};
use osteon_kernels::{ReduceOp, SoftmaxOp};
use osteon_spec::{Layout, Result, broadcast_shapes, wrap_dim};

/// A normalisation whose derivative is wanted: what was normalised over these dims, and the statistics, which stay with
/// size 1 there.
#[derive(Clone, Copy, Debug)]
pub struct NormalizationOf<'a> {
    /// The elements.
    pub x: &'a View,
    /// What was subtracted, if anything.
    pub mean: Option<&'a View>,
    /// What was multiplied by.
    pub scale: &'a View,
    /// The factors afterwards.
    pub weight: Option<&'a View>,
    /// The dims that the statistics are of; none where they did not depend on the elements.
    pub dims: Option<&'a [isize]>,
}

impl View {
    /// The gradient of the input of a [`View::softmax`], or of a [`View::log_softmax`], along a dim, from that of the
    /// result, which is this view, and the result: two passes and no other memory, but in half precision.
    ///
    /// # Errors
    /// A dim out of range; shapes that differ; out of memory.
    #[track_caller]
    pub fn softmax_gradient(&self, result: &View, dim: isize, is_log: bool) -> Result<View> {
        let name = "softmax_gradient";
        let (op, sum) = match is_log {
            false => (
                SoftmaxOp::SoftmaxGradient,
                self.sum_of_products(Some(result), &[dim], name)?,
            ),
            true => (
                SoftmaxOp::LogSoftmaxGradient,
                self.sum_of_products(None, &[dim], name)?,
            ),
        };
        self.softmax_combined(op, self.into(), result, &sum, name)
    }

    /// The gradient of the input of a [`View::log_softmax`] of which one element along a dim got a gradient, `sum`, but for
    /// that element's own: `-e^self · sum`.
    ///
    /// # Errors
    /// A shape that does not broadcast; out of memory.
    #[track_caller]
    pub fn log_softmax_gradient_of_one(&self, sum: &View) -> Result<View> {
        let op = SoftmaxOp::LogSoftmaxGradient;
        self.softmax_combined(op, 0.0.into(), self, sum, "log_softmax_gradient")
    }

    #[track_caller]
    fn softmax_combined(
        &self,
        op: SoftmaxOp,
        gradient: Arg<'_>,
        result: &View,
        sum: &View,
        name: &'static str,
    ) -> Result<View> {
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), name)?;
        backend(self.device())
            .softmax(
                op,
                self.dtype(),
                &out,
                [gradient, result.into(), sum.into()],
            )
            .map_err(|e| e.op(name))?;
        Ok(out)
    }

    /// `self · x̂` in one pass, where `x̂` is what was normalised, before weights: what the gradient of a weight is the sum of.
    ///
    /// # Errors
    /// Shapes that do not broadcast; out of memory.
    #[track_caller]
    pub fn times_normalized(&self, of: &NormalizationOf<'_>) -> Result<View> {
        let name = "normalization_gradient";
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
        let dtype = accurate(of.x.dtype());
        let out = View::alloc(layout, dtype, &self.device(), name)?;
        let args = [
            of.x.into(),
            or(of.mean, 0.0),
            of.scale.into(),
            self.into(),
            0.0.into(),
        ];
        backend(self.device())
            .normalize(dtype, &out, args)
            .map_err(|e| e.op(name))?;
        Ok(out)
    }

    /// The gradient of the input of a normalisation, from that of the result, which is this view, and from
    /// [`View::times_normalized`], where statistics depend on the input: four passes over the elements.
    ///
    /// With `ĝ = g · weight` it is `scale · (ĝ - mean(ĝ) - x̂ · mean(ĝ · x̂))`, without `mean(ĝ)` where nothing was
    /// subtracted.
    ///
    /// # Errors
    /// Shapes that do not broadcast; out of memory.
    #[track_caller]
    pub fn normalization_gradient(
        &self,
        of: &NormalizationOf<'_>,
        times_normalized: Option<&View>,
    ) -> Result<View> {
        let name = "normalization_gradient";
        let (x, dtype) = (of.x, of.x.dtype());
        let backend = backend(self.device());
        let layout = Layout::contiguous(x.shape()).map_err(|e| e.op(name))?;
        let out = View::alloc(layout, dtype, &self.device(), name)?;
        let normalize =
            |args: [Arg<'_>; 5]| backend.normalize(dtype, &out, args).map_err(|e| e.op(name));
        // `scale · ĝ + shift`, and then `x̂` times its part.
        let scaled = |shift: Arg<'_>| {
            normalize([
                self.into(),
                0.0.into(),
                of.scale.into(),
                or(of.weight, 1.0),
                shift,
            ])
        };
        let (Some(dims), Some(times_normalized)) = (of.dims, times_normalized) else {
            scaled(0.0.into())?;
            return Ok(out);
        };
        let count = x.count(dims)? as f64;
        let part = |sum: &View, powers: i32| -> Result<View> {
            let mut part = binary(name, BinaryOp::Mul, sum, -1.0 / count)?;
            for _ in 0..powers {
                part = binary(name, BinaryOp::Mul, &part, of.scale)?;
            }
            Ok(part)
        };
        let slope = part(&times_normalized.sum_of_products(of.weight, dims, name)?, 2)?;
        let shift = match of.mean {
            None => None,
            Some(_) => Some(part(&self.sum_of_products(of.weight, dims, name)?, 1)?),
        };
        scaled(or(shift.as_ref(), 0.0))?;
        normalize([
            x.into(),
            or(of.mean, 0.0),
            (&slope).into(),
            1.0.into(),
            (&out).into(),
        ])?;
        Ok(out)
    }

    /// The sum over dims, which stay with size 1, of the products with another view, if any, that broadcasts to this one: without
    /// a copy of the products, but in half precision, whose sums are in float32.
    #[track_caller]
    fn sum_of_products(
        &self,
        other: Option<&View>,
        dims: &[isize],
        name: &'static str,
    ) -> Result<View> {
        let wide = accurate(self.dtype());
        let sum = |view: &View| {
            Reduce {
                to: Target::fresh(name),
                op: ReduceOp::Sum,
                dims,
                keepdim: true,
                dtype: wide,
                number: 0.0,
            }
            .one(view, wide)
        };
        let Some(other) = other else {
            return sum(self);
        };
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(name))?;
        if [self.dtype(), other.dtype()] != [wide; 2] {
            let layout = Layout::contiguous(&shape).map_err(|e| e.op(name))?;
            let products = View::alloc(layout, wide, &self.device(), name)?;
            backend(self.device())
                .binary(
                    BinaryOp::Mul,
                    wide,
                    &products,
                    [self.into(), other.into()],
                    &[],
                )
                .map_err(|e| e.op(name))?;
            return sum(&products);
        }
        let (a, b) = (
            self.layout().expand_to(&shape)?,
            other.layout().expand_to(&shape)?,
        );
        let mut contract = Contract::new(Target::fresh(name), self, other);
        let dims = dims
            .iter()
            .map(|&d| wrap_dim(d, shape.len()))
            .collect::<Result<Vec<_>>>()?;
        for d in 0..shape.len() {
            let (a, b) = (a.strides()[d], b.strides()[d]);
            if dims.contains(&d) {
                contract.sum(shape[d], a, b);
                contract.keep(1, 0, 0);
            } else {
                contract.keep(shape[d], a, b);
            }
        }
        contract.run()
    }
}
