//! Derivatives that would be many passes as a composition: of softmax and of normalisations.

use crate::backend::{Arg, Body, backend};
use crate::norm::{binary, or};
use crate::reduce::{Reduce, listed};
use crate::softmax::accurate;
use crate::target::Target;
use crate::{BinaryOp, View};
use osteon_kernels::{ReduceOp, RowOp, SoftmaxOp};
use osteon_spec::{Dims, Error, Kind, Layout, Result, wrap_dim};
use smallvec::SmallVec;

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
    /// result, which is this view, and the result. It needs no other memory, but in half precision.
    ///
    /// # Errors
    /// A dim out of range; shapes that differ; out of memory.
    #[track_caller]
    pub fn softmax_gradient(&self, result: &View, dim: isize, is_log: bool) -> Result<View> {
        let name = "softmax_gradient";
        let out = self.like_this(name)?;
        let (op, whole, factor) = match is_log {
            false => (
                SoftmaxOp::SoftmaxGradient,
                RowOp::SoftmaxGradient,
                Some(result),
            ),
            true => (
                SoftmaxOp::LogSoftmaxGradient,
                RowOp::LogSoftmaxGradient,
                None,
            ),
        };
        let args = [(&out).into(), self.into(), result.into()];
        if self.by_rows(whole, &args, &[dim], name)? {
            return Ok(out);
        }
        let sum = self.sum_of_products(factor, &[dim], &out, name)?;
        let args = [self.into(), result.into(), (&sum).into()];
        backend(self.device())
            .softmax(op, self.dtype(), &out, args)
            .map_err(|e| e.op(name))?;
        Ok(out)
    }

    /// The gradient of the input of a [`View::log_softmax`] of which one element along a dim got a gradient, `sum`, but for
    /// that element's own: `-e^self · sum`.
    ///
    /// # Errors
    /// A shape that does not broadcast; out of memory.
    #[track_caller]
    pub fn log_softmax_gradient_of_one(&self, sum: &View) -> Result<View> {
        let (name, op) = ("log_softmax_gradient", SoftmaxOp::LogSoftmaxGradient);
        let out = self.like_this(name)?;
        let args = [0.0.into(), self.into(), sum.into()];
        backend(self.device())
            .softmax(op, self.dtype(), &out, args)
            .map_err(|e| e.op(name))?;
        Ok(out)
    }

    /// A loop over the rows along dims, where it is the best way.
    #[track_caller]
    fn by_rows(
        &self,
        op: RowOp,
        args: &[Arg<'_>],
        dims: &[isize],
        name: &'static str,
    ) -> Result<bool> {
        let dims = listed(dims, self.dim()).map_err(|e| e.op(name))?;
        let how = (self.dtype(), 0.0);
        backend(self.device())
            .rows(op, how, args, &dims)
            .map_err(|e| e.op(name))
    }

    /// Row-major memory for elements like these.
    #[track_caller]
    fn like_this(&self, name: &'static str) -> Result<View> {
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
        View::alloc(layout, self.dtype(), &self.device(), name)
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

    /// `Σ g` and `Σ g · x̂` over the last dims, so many, which stay with size 1, in one pass, where `x̂` is what was normalised, before
    /// weights. None where the elements lie so that this is not the way.
    ///
    /// # Errors
    /// Shapes that do not broadcast; out of memory.
    #[track_caller]
    pub fn normalization_sums(
        &self,
        of: &NormalizationOf<'_>,
        last: usize,
    ) -> Result<Option<[View; 2]>> {
        /// Elements of a row from which on a loop over it pays.
        const ROW: usize = 32;
        let name = "normalization_gradient";
        let mut shape = Dims::from_slice(self.shape());
        let row: usize = shape[shape.len() - last..].iter().product();
        if row < ROW {
            return Ok(None);
        }
        let dims: Dims = (self.dim() - last..self.dim()).collect();
        dims.iter().for_each(|&d| shape[d] = 1);
        let sums = || {
            let layout = Layout::contiguous(&shape).map_err(|e| e.op(name))?;
            View::alloc(layout, accurate(of.x.dtype()), &self.device(), name)
        };
        let sums = [sums()?, sums()?];
        let args = [
            self.into(),
            of.x.into(),
            or(of.mean, 0.0),
            of.scale.into(),
            (&sums[0]).into(),
            (&sums[1]).into(),
        ];
        let done = backend(self.device()).rows(RowOp::NormSums, (of.x.dtype(), 0.0), &args, &dims);
        Ok(done.map_err(|e| e.op(name))?.then_some(sums))
    }

    /// The gradient of the input of a normalisation, from that of the result, which is this view, and from
    /// [`View::normalization_sums`] over so many last dims, along which the weight is the same: `scale · (ĝ - mean(ĝ) - x̂ · mean(ĝ ·
    /// x̂))` with `ĝ = g · weight`, or `scale · ĝ` for statistics that do not depend on the input.
    ///
    /// # Errors
    /// Shapes that do not broadcast; out of memory.
    #[track_caller]
    pub fn normalization_gradient_by_sums(
        &self,
        of: &NormalizationOf<'_>,
        [sum, slope]: &[View; 2],
        last: usize,
    ) -> Result<Option<View>> {
        let (name, x) = ("normalization_gradient", of.x);
        let out = x.like_this(name)?;
        let times = |a: &View, b: Arg<'_>| binary(name, BinaryOp::Mul, a, b);
        let a = match of.weight {
            Some(weight) => times(of.scale, weight.into())?,
            None => of.scale.clone(),
        };
        // Minus the mean over all that has its statistics in common, times the scale.
        let part = |sums: &View, dims: &[isize]| -> Result<View> {
            let sums = match of.weight {
                Some(weight) => times(sums, weight.into())?,
                None => sums.clone(),
            };
            let mean = times(
                &sums.sum(dims, true, None)?,
                (-1.0 / x.count(dims)? as f64).into(),
            )?;
            times(&mean, of.scale.into())
        };
        let (b, c) = match of.dims {
            None => (None, None),
            Some(dims) => (
                Some(times(&part(slope, dims)?, of.scale.into())?),
                of.mean.map(|_| part(sum, dims)).transpose()?,
            ),
        };
        let args = [
            (&out).into(),
            self.into(),
            x.into(),
            (&a).into(),
            or(b.as_ref(), 0.0),
            or(of.mean, 0.0),
            or(c.as_ref(), 0.0),
        ];
        let dims: SmallVec<[isize; 4]> = (1..=last).map(|d| -(d as isize)).collect();
        let done = x.by_rows(RowOp::NormCombine, &args, &dims, name)?;
        Ok(done.then_some(out))
    }

    /// The gradient of the input of a normalisation over whole rows, from that of the result, which is this view, in one pass. None where the
    /// elements lie so that this is not the way, or where statistics do not depend on them.
    ///
    /// # Errors
    /// Shapes that do not broadcast; out of memory.
    #[track_caller]
    pub fn normalization_gradient_of_rows(&self, of: &NormalizationOf<'_>) -> Result<Option<View>> {
        let (name, Some(dims)) = ("normalization_gradient", of.dims) else {
            return Ok(None);
        };
        let out = of.x.like_this(name)?;
        let op = match of.mean {
            Some(_) => RowOp::LayerNormGradient,
            None => RowOp::RmsNormGradient,
        };
        let args = [
            (&out).into(),
            self.into(),
            of.x.into(),
            or(of.weight, 1.0),
            or(of.mean, 0.0),
            of.scale.into(),
        ];
        Ok(of.x.by_rows(op, &args, dims, name)?.then_some(out))
    }

    /// The gradient of the input of a normalisation, from that of the result, which is this view, and from
    /// [`View::times_normalized`], where statistics depend on the input. It needs no
    /// other memory, but in half precision.
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
        let out = x.like_this(name)?;
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
        let slope = part(
            &times_normalized.sum_of_products(of.weight, dims, &out, name)?,
            2,
        )?;
        let shift = match of.mean {
            None => None,
            Some(_) => Some(part(
                &self.sum_of_products(of.weight, dims, &out, name)?,
                1,
            )?),
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

    /// The sum over dims, which stay with size 1, of the products with factors, if any, that broadcast to this view: in
    /// `float32` for half precision. Products are put down in `scratch`, which has this shape, where its dtype is that of
    /// the sums.
    #[track_caller]
    fn sum_of_products(
        &self,
        factors: Option<&View>,
        dims: &[isize],
        scratch: &View,
        name: &'static str,
    ) -> Result<View> {
        let dtype = accurate(self.dtype());
        let sum = |view: &View| {
            Reduce {
                to: Target::fresh(name),
                op: ReduceOp::Sum,
                dims,
                keepdim: true,
                dtype,
                number: 0.0,
            }
            .one(view, dtype)
        };
        let Some(factors) = factors else {
            return sum(self);
        };
        // Factors that are the same along the dims are taken out of the sum.
        let is_same = |&d: &isize| -> Result<bool> {
            if self.dim() == 0 {
                return Ok(false);
            }
            let back = self.dim() - wrap_dim(d, self.dim())?;
            let size = factors.dim().checked_sub(back).map(|d| factors.shape()[d]);
            Ok(size.is_none_or(|n| n == 1))
        };
        let same = dims.iter().map(is_same).collect::<Result<Vec<_>>>();
        if same.map_err(|e| e.op(name))?.into_iter().all(|same| same) {
            return binary(name, BinaryOp::Mul, &sum(self)?, factors);
        }
        let products = if scratch.dtype() == dtype {
            scratch.clone()
        } else {
            let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
            View::alloc(layout, dtype, &self.device(), name)?
        };
        let kernel = osteon_kernels::binary(BinaryOp::Mul, dtype)
            .ok_or_else(|| Error::new(Kind::DType, format!("not defined for {dtype}")).op(name))?;
        let factors = [self.into(), factors.into()];
        backend(self.device())
            .elementwise(&Body::Binary(kernel), (&products).into(), &factors)
            .map_err(|e| e.op(name))?;
        sum(&products)
    }
}
