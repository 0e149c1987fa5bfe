//! Normalisations by the statistics of channels, which may be kept from step to step.

use crate::backend::Arg;
use crate::norm::{Affine, Normalized, check_real, column, inverse_root, shape_error};
use crate::reduce::Reduce;
use crate::softmax::accurate;
use crate::target::Target;
use crate::{BinaryOp, Call, Compute, Op, View, write};
use osteon_kernels::ReduceOp;
use osteon_spec::{Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar};

/// The running statistics of [`View::batch_norm`].
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// The mean of each channel.
    pub mean: &'a View,
    /// The variance of each channel.
    pub var: &'a View,
}

impl View {
    /// Elements less the mean of their channel (dim 1), divided by the root of its variance and `eps`. With `training` both are of
    /// these elements, and go into the running ones with weight `momentum`; else they are the running ones.
    ///
    /// # Errors
    /// Fewer than two dims; no running statistics where they are needed; statistics, a weight or bias that are not one number
    /// for each channel; one element for each channel in training; a dtype without fractions; out of memory.
    #[track_caller]
    pub fn batch_norm(
        &self,
        running: Option<Running<'_>>,
        affine: Affine<'_>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Normalized> {
        let name = "batch_norm";
        check_real(self, name)?;
        if self.numel() == 0 {
            if let Some(&channels) = self.shape().get(1) {
                self.check_affine(name, affine, &[channels])?;
            }
            let layout = self
                .layout()
                .like(MemoryFormat::Preserve)
                .map_err(|e| e.op(name))?;
            return Ok(Normalized {
                out: View::alloc(layout, self.dtype(), &self.device(), name)?,
                mean: None,
                scale: None,
            });
        }
        let channels = self.channels(name)?;
        self.check_affine(name, affine, &[channels])?;
        self.check_running(name, running, channels, training)?;
        let column = |view: &View| column(view, &[channels as isize], self.dim() - 1);
        let [weight, bias] = [affine.weight, affine.bias].map(|v| v.map(column).transpose());
        let (weight, bias) = (weight?, bias?);
        let affine = Affine {
            weight: weight.as_ref(),
            bias: bias.as_ref(),
        };
        let layout = self.image_layout(name)?;
        if !training {
            return self.by_running(name, layout, running, affine, eps);
        }
        let count = self.numel() / channels;
        if count == 1 {
            return Err(shape_error(
                name,
                format!(
                    "expected more than one value for each channel in training, got shape {:?}",
                    self.shape()
                ),
            ));
        }
        let dims: Dims = (0..self.dim()).filter(|&d| d != 1).collect();
        let dims: Vec<isize> = dims.iter().map(|&d| d as isize).collect();
        let dtype = self.dtype();
        let how = Reduce {
            to: Target::fresh(name),
            op: ReduceOp::Var,
            dims: &dims,
            keepdim: false,
            dtype,
            number: 0.0,
        };
        let (var, mean) = how.both(self, [accurate(dtype); 2])?;
        let scale = column(&inverse_root(name, &var, eps)?)?;
        let center = column(&mean)?;
        let normalized = self.normalized(name, layout, Some(center), scale, affine)?;
        if let Some(running) = running {
            // The running variance is that of a sample.
            let n = count as f64;
            follow(name, running.mean, &mean, momentum, 1.0)?;
            follow(name, running.var, &var, momentum, n / (n - 1.0))?;
        }
        Ok(normalized)
    }

    /// [`View::batch_norm`] of each first index on its own. With `training` by its own statistics, whose means over the first dim
    /// go into the running ones. The result is contiguous.
    ///
    /// # Errors
    /// Fewer than three dims; one element for each channel in training; as [`View::batch_norm`].
    #[track_caller]
    pub fn instance_norm(
        &self,
        running: Option<Running<'_>>,
        affine: Affine<'_>,
        training: bool,
        momentum: f64,
        eps: f64,
    ) -> Result<Normalized> {
        let name = "instance_norm";
        check_real(self, name)?;
        let channels = self.channels(name)?;
        self.check_affine(name, affine, &[channels])?;
        self.check_running(name, running, channels, training)?;
        let column = |view: &View| column(view, &[channels as isize], self.dim() - 1);
        let [weight, bias] = [affine.weight, affine.bias].map(|v| v.map(column).transpose());
        let (weight, bias) = (weight?, bias?);
        let affine = Affine {
            weight: weight.as_ref(),
            bias: bias.as_ref(),
        };
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
        if !training {
            return self.by_running(name, layout, running, affine, eps);
        }
        let count = self.shape()[2..].iter().product::<usize>();
        if count == 1 {
            return Err(shape_error(
                name,
                format!(
                    "expected more than one element for each channel, got shape {:?}",
                    self.shape()
                ),
            ));
        }
        let dims: Vec<isize> = (2..self.dim() as isize).collect();
        let how = Reduce {
            to: Target::fresh(name),
            op: ReduceOp::Var,
            dims: &dims,
            keepdim: true,
            dtype: self.dtype(),
            number: 0.0,
        };
        let (var, mean) = how.both(self, [accurate(self.dtype()); 2])?;
        let updates = match running.filter(|_| self.numel() > 0) {
            None => None,
            Some(running) => {
                let each = |v: &View| v.mean(&[0], false, None)?.view(&[channels as isize]);
                Some((running, each(&mean)?, each(&var)?))
            }
        };
        let scale = inverse_root(name, &var, eps)?;
        let normalized = self.normalized(name, layout, Some(mean), scale, affine)?;
        if let Some((running, mean, var)) = updates {
            let n = count as f64;
            follow(name, running.mean, &mean, momentum, 1.0)?;
            follow(name, running.var, &var, momentum, n / (n - 1.0))?;
        }
        Ok(normalized)
    }

    /// Checks that running statistics are numbers for each channel, and may be written in training.
    fn check_running(
        &self,
        name: &'static str,
        running: Option<Running<'_>>,
        channels: usize,
        training: bool,
    ) -> Result<()> {
        let Some(Running { mean, var }) = running else {
            return Ok(());
        };
        let both = Affine {
            weight: Some(mean),
            bias: Some(var),
        };
        self.check_affine(name, both, &[channels])?;
        if training {
            write::check_itself(mean, name)?;
            write::check_itself(var, name)?;
        }
        Ok(())
    }

    /// Normalised by running statistics.
    #[track_caller]
    fn by_running(
        &self,
        name: &'static str,
        layout: Layout,
        running: Option<Running<'_>>,
        affine: Affine<'_>,
        eps: f64,
    ) -> Result<Normalized> {
        let Some(Running { mean, var }) = running else {
            let message = "running statistics are needed outside training";
            return Err(Error::new(Kind::Value, message).op(name));
        };
        let column = |view: &View| column(view, &[view.numel() as isize], self.dim() - 1);
        let scale = column(&inverse_root(name, &in_accurate(var)?, eps)?)?;
        self.normalized(name, layout, Some(column(mean)?), scale, affine)
    }
}

/// Statistics in the dtype that they are kept in.
#[track_caller]
fn in_accurate(view: &View) -> Result<View> {
    view.to_dtype(accurate(view.dtype()))
}

/// `running = (1 - momentum) · running + momentum · factor · now`.
#[track_caller]
fn follow(
    name: &'static str,
    running: &View,
    now: &View,
    momentum: f64,
    factor: f64,
) -> Result<()> {
    let call = |op: BinaryOp, args: &[Arg<'_>; 2], numbers: &[Scalar]| {
        Call {
            name,
            op: Op::Binary(op),
            compute: Compute::Promoted,
            args,
            numbers,
        }
        .in_place(running)
    };
    call(
        BinaryOp::Mul,
        &[running.into(), (1.0 - momentum).into()],
        &[],
    )?;
    call(
        BinaryOp::AddScaled,
        &[running.into(), now.into()],
        &[Scalar::Float(momentum * factor)],
    )
}
