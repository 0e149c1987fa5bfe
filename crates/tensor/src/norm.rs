//! Normalisations: one reduction, a little arithmetic on its results, then one loop over the elements.

use crate::backend::{Arg, backend};
use crate::elementwise::other_device;
use crate::reduce::{Reduce, check_fractional, listed};
use crate::softmax::accurate;
use crate::target::Target;
use crate::{BinaryOp, Call, Compute, Op, UnaryOp, View};
use osteon_kernels::{ReduceOp, RowOp};
use osteon_spec::{
    DType, Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar, elementwise_output,
};
use smallvec::SmallVec;

/// What a normalisation multiplies by and adds at the end, both optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Affine<'a> {
    /// The factors.
    pub weight: Option<&'a View>,
    /// The summands.
    pub bias: Option<&'a View>,
}

/// What a normalisation gives: its result, and the statistics that it divided by, of the shape that broadcasts to that of
/// the elements as they were grouped.
#[derive(Clone, Debug)]
pub struct Normalized {
    /// The result.
    pub out: View,
    /// What was subtracted, if anything.
    pub mean: Option<View>,
    /// What was multiplied by; none where there were no elements.
    pub scale: Option<View>,
}

/// Elements that have their statistics and weights in common from which on they are a row of their own.
const ROW: usize = 32;

pub(crate) fn shape_error(op: &'static str, message: String) -> Error {
    Error::new(Kind::Shape, message).op(op)
}

/// A number for each channel as one for each element of an image: dims of size 1 follow.
#[track_caller]
pub(crate) fn column(view: &View, sizes: &[isize], rank: usize) -> Result<View> {
    let mut shape: SmallVec<[isize; 8]> = SmallVec::from_slice(sizes);
    shape.resize(rank, 1);
    view.view(&shape)
}

/// A view, or the number that stands for one that is absent.
pub(crate) fn or(view: Option<&View>, absent: f64) -> Arg<'_> {
    match view {
        Some(view) => Arg::View(view),
        None => Arg::Number(Scalar::Float(absent)),
    }
}

/// A small operation on statistics.
#[track_caller]
pub(crate) fn binary<'a>(
    name: &'static str,
    op: BinaryOp,
    a: &'a View,
    b: impl Into<Arg<'a>>,
) -> Result<View> {
    let args = [Arg::View(a), b.into()];
    Call {
        name,
        op: Op::Binary(op),
        compute: Compute::Promoted,
        args: &args,
        numbers: &[],
    }
    .fresh()
}

/// `1 / sqrt(var + eps)`.
#[track_caller]
pub(crate) fn inverse_root(name: &'static str, var: &View, eps: f64) -> Result<View> {
    let sum = binary(name, BinaryOp::Add, var, eps)?;
    let (op, args) = (Op::Unary(UnaryOp::Rsqrt), [Arg::View(&sum)]);
    Call {
        name,
        op,
        compute: Compute::Promoted,
        args: &args,
        numbers: &[],
    }
    .in_place(&sum)?;
    Ok(sum)
}

impl View {
    /// Mean and `1 / sqrt(variance + eps)` over dims, which stay with size 1.
    #[track_caller]
    fn moments(&self, name: &'static str, dims: &[isize], eps: f64) -> Result<[View; 2]> {
        check_real(self, name)?;
        let dtype = self.dtype();
        let how = Reduce {
            to: Target::fresh(name),
            op: ReduceOp::Var,
            dims,
            keepdim: true,
            dtype,
            number: 0.0,
        };
        let (var, mean) = how.both(self, [accurate(dtype); 2])?;
        Ok([mean, inverse_root(name, &var, eps)?])
    }

    /// All of a normalisation over dims in one pass over rows, into `out`: gives what was subtracted and what was multiplied by.
    /// None where other ways are better.
    #[track_caller]
    fn normalize_rows(
        &self,
        name: &'static str,
        op: RowOp,
        out: &View,
        dims: &[isize],
        affine: Affine<'_>,
        eps: f64,
    ) -> Result<Option<[View; 2]>> {
        if self.dtype().is_complex() {
            return Ok(None);
        }
        let dims = listed(dims, self.dim()).map_err(|e| e.op(name))?;
        let mut shape = Dims::from_slice(self.shape());
        dims.iter().for_each(|&d| shape[d] = 1);
        let layout = Layout::contiguous(&shape).map_err(|e| e.op(name))?;
        let number = || {
            let dtype = accurate(self.dtype());
            View::alloc(layout.clone(), dtype, &self.device(), name)
        };
        let (mean, scale) = (number()?, number()?);
        let args = [
            out.into(),
            self.into(),
            or(affine.weight, 1.0),
            or(affine.bias, 0.0),
            (&mean).into(),
            (&scale).into(),
        ];
        let done = backend(self.device()).rows(op, (self.dtype(), eps), &args, &dims);
        Ok(done.map_err(|e| e.op(name))?.then_some([mean, scale]))
    }

    /// `(x - mean) · scale · weight + bias` in a storage of its own.
    #[track_caller]
    pub(crate) fn normalized(
        &self,
        name: &'static str,
        layout: Layout,
        mean: Option<View>,
        scale: View,
        affine: Affine<'_>,
    ) -> Result<Normalized> {
        let out = View::alloc(layout, self.dtype(), &self.device(), name)?;
        self.normalize_into(name, &out, mean.as_ref(), &scale, affine)?;
        Ok(Normalized {
            out,
            mean,
            scale: Some(scale),
        })
    }

    #[track_caller]
    pub(crate) fn normalize_into(
        &self,
        name: &'static str,
        out: &View,
        mean: Option<&View>,
        scale: &View,
        affine: Affine<'_>,
    ) -> Result<()> {
        let args = [
            self.into(),
            or(mean, 0.0),
            scale.into(),
            or(affine.weight, 1.0),
            or(affine.bias, 0.0),
        ];
        let backend = backend(self.device());
        let row = self.dims_without(&args[1..]);
        if row.iter().map(|&d| self.shape()[d]).product::<usize>() >= ROW {
            let [x, mean, scale, weight, bias] = args;
            let args = [out.into(), x, mean, scale, weight, bias];
            let done = backend.rows(RowOp::Affine, (self.dtype(), 0.0), &args, &row);
            if done.map_err(|e| e.op(name))? {
                return Ok(());
            }
        }
        backend
            .normalize(self.dtype(), out, args)
            .map_err(|e| e.op(name))
    }

    /// The last dims, along which none of these has more than one element.
    fn dims_without(&self, args: &[Arg<'_>]) -> Dims {
        let is_same = |&d: &usize| {
            args.iter().all(|arg| match arg {
                Arg::Number(_) => true,
                Arg::View(v) => (d + v.dim())
                    .checked_sub(self.dim())
                    .is_none_or(|own| v.shape()[own] == 1),
            })
        };
        (0..self.dim()).rev().take_while(is_same).collect()
    }

    /// By mean and variance over dims, into `out`: gives what was subtracted and what was multiplied by.
    #[track_caller]
    fn normalize_over(
        &self,
        name: &'static str,
        out: &View,
        dims: &[isize],
        affine: Affine<'_>,
        eps: f64,
    ) -> Result<[View; 2]> {
        if let Some(both) = self.normalize_rows(name, RowOp::LayerNorm, out, dims, affine, eps)? {
            return Ok(both);
        }
        let [mean, scale] = self.moments(name, dims, eps)?;
        self.normalize_into(name, out, Some(&mean), &scale, affine)?;
        Ok([mean, scale])
    }

    /// The layout that normalisations of images keep: channels last where the input is so, else row-major.
    pub(crate) fn image_layout(&self, name: &'static str) -> Result<Layout> {
        let format = match self.layout().is_channels_last() {
            true => MemoryFormat::ChannelsLast,
            false => MemoryFormat::Contiguous,
        };
        self.layout().like(format).map_err(|e| e.op(name))
    }

    /// Elements less the mean of the last dims, divided by the root of their variance and `eps`: `(x - mean) / sqrt(var +
    /// eps) · weight + bias`. The result is contiguous.
    ///
    /// # Errors
    /// A `shape` that is not that of the last dims; a weight or bias of another shape; a dtype without fractions; out of
    /// memory.
    #[track_caller]
    pub fn layer_norm(&self, shape: &[usize], affine: Affine<'_>, eps: f64) -> Result<Normalized> {
        let name = "layer_norm";
        let dims = self.last_dims(name, shape)?;
        self.check_affine(name, affine, shape)?;
        check_real(self, name)?;
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), name)?;
        let [mean, scale] = self.normalize_over(name, &out, &dims, affine, eps)?;
        Ok(Normalized {
            out,
            mean: Some(mean),
            scale: Some(scale),
        })
    }

    /// Elements divided by the root of the mean square of the last dims: `x / sqrt(mean(x²) + eps) · weight`. Without
    /// `eps`, it is the dtype's smallest step from 1 (of `float32` for half precision).
    ///
    /// # Errors
    /// As [`View::layer_norm`].
    #[track_caller]
    pub fn rms_norm(
        &self,
        shape: &[usize],
        weight: Option<&View>,
        eps: Option<f64>,
    ) -> Result<Normalized> {
        let name = "rms_norm";
        let dims = self.last_dims(name, shape)?;
        let affine = Affine { weight, bias: None };
        self.check_affine(name, affine, shape)?;
        check_fractional(self.dtype(), name)?;
        let (dtype, real) = (self.dtype(), accurate(self.dtype().to_real()));
        let eps = eps.unwrap_or(rms_eps(dtype));
        let mut layout = self.image_layout(name)?;
        if let Some(weight) = weight {
            // As PyTorch, which multiplies by the weights in a step of its own.
            layout = elementwise_output(&[&layout, weight.layout()], self.shape())?;
        }
        let out = View::alloc(layout, dtype, &self.device(), name)?;
        if let Some([_, scale]) =
            self.normalize_rows(name, RowOp::RmsNorm, &out, &dims, affine, eps)?
        {
            return Ok(Normalized {
                out,
                mean: None,
                scale: Some(scale),
            });
        }
        let square = if dtype.is_complex() {
            // PyTorch squares complex numbers as they are.
            binary(name, BinaryOp::Mul, self, self)?.mean(&dims, true, None)?
        } else {
            let count = shape.iter().product::<usize>() as f64;
            let (op, number) = (ReduceOp::Norm, 2.0);
            let norm = Reduce {
                to: Target::fresh(name),
                op,
                dims: &dims,
                keepdim: true,
                dtype,
                number,
            }
            .one(self, real)?;
            let root = binary(name, BinaryOp::Mul, &norm, 1.0 / count.sqrt())?;
            binary(name, BinaryOp::Mul, &root, &root)?
        };
        let scale = inverse_root(name, &square, eps)?;
        self.normalize_into(name, &out, None, &scale, affine)?;
        Ok(Normalized {
            out,
            mean: None,
            scale: Some(scale),
        })
    }

    /// [`View::layer_norm`] over all dims but the first, for each of several groups of channels (dim 1), and with a weight and bias
    /// for each channel.
    ///
    /// # Errors
    /// Fewer than two dims; channels that the groups do not divide; a weight or bias that is not one number for each channel; a
    /// dtype without fractions; out of memory.
    #[track_caller]
    pub fn group_norm(&self, groups: usize, affine: Affine<'_>, eps: f64) -> Result<Normalized> {
        let name = "group_norm";
        let channels = self.channels(name)?;
        if groups == 0 || !channels.is_multiple_of(groups) {
            return Err(shape_error(
                name,
                format!("{channels} channels (dim 1) do not make {groups} groups of one size"),
            ));
        }
        self.check_affine(name, affine, &[channels])?;
        // Two dims in place of the channels, which any strides allow.
        let sizes = [groups as isize, (channels / groups) as isize];
        let x = self.unflatten(1, &sizes)?;
        let dims: Vec<isize> = (2..x.dim() as isize).collect();
        let each = x.shape()[2..].iter().product::<usize>();
        if each == 0 || x.shape()[0] * each == 1 {
            return Err(shape_error(
                name,
                format!(
                    "expected more than one value for each group, got shape {:?}",
                    self.shape()
                ),
            ));
        }
        let column = |view: &View| column(view, &sizes, x.dim() - 1);
        let [weight, bias] = [affine.weight, affine.bias].map(|v| v.map(column).transpose());
        let (weight, bias) = (weight?, bias?);
        let affine = Affine {
            weight: weight.as_ref(),
            bias: bias.as_ref(),
        };
        check_real(self, name)?;
        let out = View::alloc(self.image_layout(name)?, self.dtype(), &self.device(), name)?;
        let split = out.unflatten(1, &sizes)?;
        // Weights for long rows within a group: loops over whole groups would read one for each element.
        let in_channels = affine.weight.or(affine.bias).is_some()
            && x.shape()[3..].iter().product::<usize>() >= ROW;
        let [mean, scale] = if in_channels {
            let moments = x.moments(name, &dims, eps)?;
            x.normalize_into(name, &split, Some(&moments[0]), &moments[1], affine)?;
            moments
        } else {
            x.normalize_over(name, &split, &dims, affine, eps)?
        };
        Ok(Normalized {
            out,
            mean: Some(mean),
            scale: Some(scale),
        })
    }

    /// The last dims, whose sizes these are.
    fn last_dims(&self, name: &'static str, shape: &[usize]) -> Result<Vec<isize>> {
        if shape.is_empty() || !self.shape().ends_with(shape) {
            return Err(shape_error(
                name,
                format!(
                    "expected at least one size, those of the last dims of {:?}, got {shape:?}",
                    self.shape()
                ),
            ));
        }
        Ok((self.dim() - shape.len()..self.dim())
            .map(|d| d as isize)
            .collect())
    }

    /// The size of dim 1.
    pub(crate) fn channels(&self, name: &'static str) -> Result<usize> {
        match self.shape() {
            [_, channels, ..] => Ok(*channels),
            shape => Err(shape_error(
                name,
                format!("expected at least two dims, batch and channels, got shape {shape:?}"),
            )),
        }
    }

    /// Checks the shape, dtype and device of weight and bias: they may be wider than half precision.
    pub(crate) fn check_affine(
        &self,
        name: &'static str,
        affine: Affine<'_>,
        shape: &[usize],
    ) -> Result<()> {
        for view in [affine.weight, affine.bias].into_iter().flatten() {
            if view.device() != self.device() {
                return Err(other_device(self.device(), view.device()).op(name));
            }
            if view.shape() != shape {
                return Err(shape_error(
                    name,
                    format!(
                        "expected weight, bias and statistics of shape {shape:?}, got {:?}",
                        view.shape()
                    ),
                ));
            }
            if ![self.dtype(), accurate(self.dtype())].contains(&view.dtype()) {
                return Err(Error::new(
                    Kind::DType,
                    format!(
                        "expected weight, bias and statistics of {}, got {}",
                        self.dtype(),
                        view.dtype()
                    ),
                )
                .op(name));
            }
        }
        Ok(())
    }
}

/// What [`View::rms_norm`] adds where nothing is given.
pub fn rms_eps(dtype: DType) -> f64 {
    match accurate(dtype.to_real()).size() {
        4 => f32::EPSILON as f64,
        _ => f64::EPSILON,
    }
}

/// Checks that a dtype is a float.
pub(crate) fn check_real(x: &View, name: &'static str) -> Result<()> {
    check_fractional(x.dtype(), name)?;
    if x.dtype().is_complex() {
        return Err(Error::new(Kind::DType, "not defined for complex numbers").op(name));
    }
    Ok(())
}
