//! The normalisations of neural networks.

use crate::Tensor;
use crate::graph::{record, wanted};
use crate::rules::normalize::Normalization;
use osteon_spec::{Error, Kind, Result};
use osteon_tensor::{Affine, Normalized, Running, rms_eps};
use smallvec::SmallVec;

/// What [`Tensor::batch_norm`] takes beside the elements.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// The running mean and variance of each channel, which training updates in place.
    pub running: Option<(&'a Tensor, &'a Tensor)>,
    /// A factor for each channel.
    pub weight: Option<&'a Tensor>,
    /// A summand for each channel.
    pub bias: Option<&'a Tensor>,
    /// Whether to normalise by the elements' own statistics.
    pub training: bool,
    /// The weight of new statistics in the running ones.
    pub momentum: f64,
    /// What is added to variances.
    pub eps: f64,
}

impl Default for BatchNorm<'_> {
    /// PyTorch's: no weight and bias, not in training, a momentum of 0.1, `eps` of 1e-5.
    fn default() -> Self {
        BatchNorm {
            running: None,
            weight: None,
            bias: None,
            training: false,
            momentum: 0.1,
            eps: 1e-5,
        }
    }
}

fn affine<'a>(weight: Option<&'a Tensor>, bias: Option<&'a Tensor>) -> Affine<'a> {
    Affine {
        weight: weight.map(Tensor::as_view),
        bias: bias.map(Tensor::as_view),
    }
}

/// The dims that have this shape.
fn last_dims(x: &Tensor, shape: &[usize]) -> Vec<isize> {
    (x.dim() - shape.len()..x.dim())
        .map(|d| d as isize)
        .collect()
}

/// The running statistics, which have no history.
fn running<'a>(how: &BatchNorm<'a>, op: &'static str) -> Result<Option<Running<'a>>> {
    let Some((mean, var)) = how.running else {
        return Ok(None);
    };
    if wanted(&[mean, var]) {
        let message = "running statistics have no derivative and must not require gradients";
        return Err(Error::new(Kind::Autograd, message).op(op));
    }
    Ok(Some(Running {
        mean: mean.as_view(),
        var: var.as_view(),
    }))
}

impl Tensor {
    /// The result of a normalisation, with its derivative.
    fn normalized(
        &self,
        [weight, bias]: [Option<&Tensor>; 2],
        made: Normalized,
        mut rule: Normalization,
    ) -> Result<Tensor> {
        let inputs = [Some(self), weight, bias];
        let inputs: SmallVec<[&Tensor; 3]> = inputs.into_iter().flatten().collect();
        let Normalized { out, mean, scale } = made;
        rule.is_centered = mean.is_some();
        record(out, &inputs, |r, _| {
            r.save_if(r.needs(0) || weight.is_some() && r.needs(1), self)?;
            for statistic in [scale, mean] {
                match statistic {
                    Some(view) => r.save_view(&view)?,
                    None => r.save_number(),
                }
            }
            match weight {
                Some(weight) => r.save(weight)?,
                None => r.save_number(),
            }
            (rule.has_weight, rule.has_bias) = (weight.is_some(), bias.is_some());
            Ok(rule)
        })
    }

    /// The shape of a number for each channel (dim 1, or several in its place), such that it broadcasts to all elements.
    fn channels(&self, channels: &[usize]) -> Vec<usize> {
        let mut shape = channels.to_vec();
        shape.resize(channels.len() + self.dim().saturating_sub(2), 1);
        shape
    }

    /// Elements less the mean of the last dims, whose sizes are `shape`, divided by the root of their variance and `eps`; then times
    /// `weight` plus `bias`, of that shape. The result is contiguous.
    ///
    /// # Errors
    /// A shape that is not that of the last dims; a weight or bias of another shape or dtype; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 3.0], [5.0, 5.0]])?;
    /// assert_eq!(x.layer_norm([2], None, None, 0.0)?.i([0.into()])?.to_vec::<f64>()?, [-1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(
        &self,
        shape: impl AsRef<[usize]>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let shape = shape.as_ref();
        let made = self
            .as_view()
            .layer_norm(shape, affine(weight, bias), eps)?;
        let dims = last_dims(self, shape);
        self.normalized(
            [weight, bias],
            made,
            Normalization::over(dims, shape.into(), eps),
        )
    }

    /// Elements divided by the root of the mean square of the last dims, whose sizes are `shape`, and `eps`; then times `weight`.
    /// Without `eps`, it is the step from 1 to the next number (of `float32` for half precision).
    ///
    /// # Errors
    /// As [`Tensor::layer_norm`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([3.0f64, 3.0])?;
    /// assert_eq!(x.rms_norm([2], None, Some(0.0))?.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rms_norm(
        &self,
        shape: impl AsRef<[usize]>,
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<Tensor> {
        let shape = shape.as_ref();
        let weights = weight.map(Tensor::as_view);
        let made = self.as_view().rms_norm(shape, weights, eps)?;
        let eps = eps.unwrap_or(rms_eps(self.dtype()));
        let dims = last_dims(self, shape);
        self.normalized(
            [weight, None],
            made,
            Normalization::over(dims, shape.into(), eps),
        )
    }

    /// Elements less the mean of their channel (dim 1), divided by the root of its variance and `eps`; then times `weight` plus
    /// `bias`. In training the statistics are those of these elements, and go into the running ones; else they are the running ones.
    /// Channels last stay so; else the result is contiguous.
    ///
    /// # Errors
    /// Fewer than two dims; no running statistics outside training; statistics, a weight or bias that are not one number for each
    /// channel; one element for each channel in training; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// use osteon_autograd::BatchNorm;
    /// let x = Tensor::new([[1.0f64, 4.0], [3.0, 8.0]])?;
    /// let how = BatchNorm { training: true, eps: 0.0, ..BatchNorm::default() };
    /// assert_eq!(x.batch_norm(&how)?.to_vec::<f64>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm(&self, how: &BatchNorm<'_>) -> Result<Tensor> {
        let made = self.as_view().batch_norm(
            running(how, "batch_norm")?,
            affine(how.weight, how.bias),
            how.training,
            how.momentum,
            how.eps,
        )?;
        let dims = (0..self.dim() as isize).filter(|&d| d != 1).collect();
        // A vector has none, and is empty then.
        let channels = self.channels(self.shape().get(1..2).unwrap_or_default());
        let mut rule = Normalization::over(dims, channels, how.eps);
        rule.is_fixed = !how.training;
        self.normalized([how.weight, how.bias], made, rule)
    }

    /// [`Tensor::layer_norm`] of each of `groups` groups of channels (dim 1), with a weight and bias for each channel.
    ///
    /// # Errors
    /// Fewer than two dims; channels that the groups do not divide; a weight or bias that is not one number for each channel;
    /// one element for each group; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 3.0, 10.0, 20.0]])?;
    /// assert_eq!(x.group_norm(2, None, None, 0.0)?.to_vec::<f64>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        let made = self
            .as_view()
            .group_norm(groups, affine(weight, bias), eps)?;
        let split = [groups, self.shape()[1] / groups];
        let dims = (2..=self.dim() as isize).collect();
        let mut rule = Normalization::over(dims, self.channels(&split), eps);
        rule.split = Some(split);
        self.normalized([weight, bias], made, rule)
    }

    /// [`Tensor::batch_norm`] of each first index on its own, by its own statistics. The result is contiguous.
    ///
    /// # Errors
    /// One element for each channel; a weight or bias that is not one number for each; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[[1.0f64, 3.0], [10.0, 20.0]]])?;
    /// assert_eq!(x.instance_norm(None, None, 0.0)?.to_vec::<f64>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn instance_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.instance_norm_with(&BatchNorm {
            weight,
            bias,
            eps,
            training: true,
            ..BatchNorm::default()
        })
    }

    /// [`Tensor::instance_norm`] with running statistics. In training (PyTorch's `use_input_stats`) each first index has its
    /// own, whose means go into the running ones; else those are what elements are normalised by.
    ///
    /// # Errors
    /// As [`Tensor::batch_norm`]; fewer than three dims; one element for each channel in training.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// use osteon_autograd::BatchNorm;
    /// let x = Tensor::new([[[1.0f64, 3.0]], [[10.0, 20.0]]])?;
    /// let (mean, var) = (Tensor::new([0.0])?, Tensor::new([1.0])?);
    /// let how = BatchNorm { running: Some((&mean, &var)), training: true, eps: 0.0, ..BatchNorm::default() };
    /// assert_eq!(x.instance_norm_with(&how)?.to_vec::<f64>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// assert!(mean.allclose(&Tensor::new([0.1 * (2.0 + 15.0) / 2.0])?, 1e-12, 0.0)?);
    /// assert!(var.allclose(&Tensor::new([0.9 + 0.1 * (2.0 + 50.0) / 2.0])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn instance_norm_with(&self, how: &BatchNorm<'_>) -> Result<Tensor> {
        let made = self.as_view().instance_norm(
            running(how, "instance_norm")?,
            affine(how.weight, how.bias),
            how.training,
            how.momentum,
            how.eps,
        )?;
        // Fixed statistics are those of all first indices.
        let is_spread = |&d: &isize| d > 1 || (d == 0 && !how.training);
        let dims = (0..self.dim() as isize).filter(is_spread).collect();
        let channels = self.channels(&[self.shape()[1]]);
        let mut rule = Normalization::over(dims, channels, how.eps);
        rule.is_fixed = !how.training;
        self.normalized([how.weight, how.bias], made, rule)
    }
}
