//! Normalisation.

use super::module::built;
use super::{Info, Layer, Module, Parts, init, parameter};
use crate::{DType, Error, Kind, Result, Tensor, no_grad};

/// The last dims less their mean, divided by their deviation, scaled and moved: PyTorch's `nn.LayerNorm`.
///
/// ```
/// use osteon::{Tensor, nn::{Layer, LayerNorm}};
/// let norm = LayerNorm::new([2])?;
/// let y = norm.forward(&Tensor::new([[1f32, 3.0]])?)?;
/// assert!(y.allclose(&Tensor::new([[-1f32, 1.0]])?, 0.0, 1e-4)?);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct LayerNorm {
    /// A factor for each element of the last dims.
    pub weight: Option<Tensor>,
    /// A summand for each element of the last dims.
    pub bias: Option<Tensor>,
    /// What is added to variances; 1e-5 at first.
    pub eps: f64,
    shape: Vec<usize>,
    info: Info,
}

impl LayerNorm {
    /// For inputs whose last dims have this shape. The weight is 1, the bias 0.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// use osteon::nn::{LayerNorm, Module};
    /// assert_eq!(LayerNorm::new([8])?.num_parameters(), 16);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(shape: impl AsRef<[usize]>) -> Result<LayerNorm> {
        let shape = shape.as_ref().to_vec();
        Ok(built(LayerNorm {
            weight: Some(parameter(init::full(&shape, 1.0)?)?),
            bias: Some(parameter(init::full(&shape, 0.0)?)?),
            eps: 1e-5,
            shape,
            info: Info::default(),
        }))
    }

    /// The layer without weight and bias: PyTorch's `elementwise_affine=False`.
    ///
    /// ```
    /// use osteon::nn::{LayerNorm, Module};
    /// assert_eq!(LayerNorm::new([8])?.without_affine().num_parameters(), 0);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[must_use]
    pub fn without_affine(self) -> LayerNorm {
        LayerNorm {
            weight: None,
            bias: None,
            ..self
        }
    }
}

impl Module for LayerNorm {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("weight", &self.weight);
        parts.add("bias", &self.bias);
    }
}

impl Layer for LayerNorm {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        input.layer_norm(
            &self.shape,
            self.weight.as_ref(),
            self.bias.as_ref(),
            self.eps,
        )
    }
}

/// The last dims divided by the root of their mean square, and scaled: PyTorch's `nn.RMSNorm`.
///
/// ```
/// use osteon::{Tensor, nn::{Layer, RMSNorm}};
/// let y = RMSNorm::new([2])?.forward(&Tensor::new([[3f32, 3.0]])?)?;
/// assert!(y.allclose(&Tensor::new([[1f32, 1.0]])?, 1e-6, 0.0)?);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct RMSNorm {
    /// A factor for each element of the last dims.
    pub weight: Option<Tensor>,
    /// What is added to mean squares; the step from 1 to the next number if `None`, as at first.
    pub eps: Option<f64>,
    shape: Vec<usize>,
    info: Info,
}

impl RMSNorm {
    /// For inputs whose last dims have this shape. The weight is 1.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// use osteon::nn::{Module, RMSNorm};
    /// assert_eq!(RMSNorm::new([8])?.num_parameters(), 8);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(shape: impl AsRef<[usize]>) -> Result<RMSNorm> {
        let shape = shape.as_ref().to_vec();
        Ok(built(RMSNorm {
            weight: Some(parameter(init::full(&shape, 1.0)?)?),
            eps: None,
            shape,
            info: Info::default(),
        }))
    }
}

impl Module for RMSNorm {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("weight", &self.weight);
    }
}

impl Layer for RMSNorm {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        input.rms_norm(&self.shape, self.weight.as_ref(), self.eps)
    }
}

/// Each channel (dim 1) less its mean, divided by its deviation, scaled and moved. While it trains, by the batch's
/// statistics, which also go into the running ones; else by those. `N` says which inputs are accepted: see
/// [`BatchNorm1d`] and [`BatchNorm2d`].
#[derive(Debug)]
pub struct BatchNorm<const N: usize> {
    /// A factor for each channel.
    pub weight: Option<Tensor>,
    /// A summand for each channel.
    pub bias: Option<Tensor>,
    /// The running mean of each channel.
    pub running_mean: Tensor,
    /// The running variance of each channel.
    pub running_var: Tensor,
    /// How many batches went into the running statistics.
    pub num_batches_tracked: Tensor,
    /// The share of a new batch in the running statistics, 0.1 at first; an equal share for each batch if `None`.
    pub momentum: Option<f64>,
    /// What is added to variances; 1e-5 at first.
    pub eps: f64,
    info: Info,
}

/// [`BatchNorm`] of inputs `(batch, channels)` or `(batch, channels, length)`: PyTorch's `nn.BatchNorm1d`.
///
/// ```
/// use osteon::{Tensor, nn::{BatchNorm1d, Layer}};
/// let norm = BatchNorm1d::new(1)?;
/// let y = norm.forward(&Tensor::new([[1f32], [3.0]])?)?;
/// assert!(y.allclose(&Tensor::new([[-1f32], [1.0]])?, 0.0, 1e-4)?);
/// assert!((norm.running_mean.item::<f32>()? - 0.2).abs() < 1e-6); // a tenth of the way to 2
/// # Ok::<(), osteon::Error>(())
/// ```
pub type BatchNorm1d = BatchNorm<1>;

/// [`BatchNorm`] of images `(batch, channels, height, width)`: PyTorch's `nn.BatchNorm2d`.
///
/// ```
/// use osteon::{DType, Device, Tensor, nn::{BatchNorm2d, Layer}};
/// let x = Tensor::ones([2, 3, 4, 4], DType::F32, &Device::cpu())?;
/// assert_eq!(BatchNorm2d::new(3)?.forward(&x)?.shape(), [2, 3, 4, 4]);
/// # Ok::<(), osteon::Error>(())
/// ```
pub type BatchNorm2d = BatchNorm<2>;

impl<const N: usize> BatchNorm<N> {
    /// For so many channels. The weight is 1, the bias 0, the running mean 0 and the running variance 1.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// use osteon::nn::{BatchNorm2d, Module};
    /// assert_eq!(BatchNorm2d::new(3)?.state_dict().len(), 5);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(channels: usize) -> Result<BatchNorm<N>> {
        let device = init::defaults().1;
        Ok(built(BatchNorm {
            weight: Some(parameter(init::full(&[channels], 1.0)?)?),
            bias: Some(parameter(init::full(&[channels], 0.0)?)?),
            running_mean: init::full(&[channels], 0.0)?,
            running_var: init::full(&[channels], 1.0)?,
            num_batches_tracked: Tensor::zeros([], DType::I64, &device)?,
            momentum: Some(0.1),
            eps: 1e-5,
            info: Info::default(),
        }))
    }
}

impl<const N: usize> Module for BatchNorm<N> {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("weight", &self.weight);
        parts.add("bias", &self.bias);
        parts.buffer("running_mean", &self.running_mean);
        parts.buffer("running_var", &self.running_var);
        parts.buffer("num_batches_tracked", &self.num_batches_tracked);
    }
}

impl<const N: usize> Layer for BatchNorm<N> {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        if input.dim() != N + 2 && !(N == 1 && input.dim() == 2) {
            let expected = if N == 1 { "2 or 3" } else { "4" };
            let message = format!("expected {expected} dims, got shape {:?}", input.shape());
            return Err(Error::new(Kind::Shape, message).op("batch_norm"));
        }
        let training = self.info.is_training();
        let batches = if training && self.momentum.is_none() {
            self.num_batches_tracked.item::<f64>()? + 1.0
        } else {
            1.0
        };
        let out = input.batch_norm(&crate::BatchNorm {
            running: Some((&self.running_mean, &self.running_var)),
            weight: self.weight.as_ref(),
            bias: self.bias.as_ref(),
            training,
            momentum: self.momentum.unwrap_or(1.0 / batches),
            eps: self.eps,
        })?;
        if training {
            no_grad(|| self.num_batches_tracked.add_(1))?;
        }
        Ok(out)
    }
}
