//! Layers of transformers.

use super::module::built;
use super::{Dropout, Info, Layer, LayerNorm, Linear, Masks, Module, MultiheadAttention, Parts};
use crate::{Result, Tensor};

/// How a [`TransformerEncoderLayer`] is built.
#[derive(Clone, Copy, Debug)]
pub struct EncoderOptions {
    /// The width between its two linear layers.
    pub dim_feedforward: usize,
    /// The share that is dropped in training, of weights and of results.
    pub dropout: f64,
    /// What stands between its linear layers.
    pub activation: fn(&Tensor) -> Result<Tensor>,
    /// Whether inputs are normalised, and not results.
    pub norm_first: bool,
    /// Whether the batch is the first dim.
    pub batch_first: bool,
    /// What is added to variances.
    pub layer_norm_eps: f64,
}

impl Default for EncoderOptions {
    /// PyTorch's: 2048, 0.1, `relu`, results normalised, the length first, 1e-5.
    fn default() -> EncoderOptions {
        EncoderOptions {
            dim_feedforward: 2048,
            dropout: 0.1,
            activation: Tensor::relu,
            norm_first: false,
            batch_first: false,
            layer_norm_eps: 1e-5,
        }
    }
}

/// Attention of a sequence to itself and two linear layers, both around a residual connection: PyTorch's
/// `nn.TransformerEncoderLayer`, with its names of parameters.
///
/// ```
/// use osteon::{DType, Device, Tensor, nn::{EncoderOptions, Masks, TransformerEncoderLayer}};
/// let how = EncoderOptions { dim_feedforward: 16, activation: Tensor::gelu, norm_first: true, ..Default::default() };
/// let layer = TransformerEncoderLayer::new(8, 2, &how)?;
/// let x = Tensor::ones([5, 3, 8], DType::F32, &Device::cpu())?;
/// assert_eq!(layer.forward_masked(&x, &Masks::default())?.shape(), [5, 3, 8]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct TransformerEncoderLayer {
    /// Attention of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// From the width to the one between.
    pub linear1: Linear,
    /// And back.
    pub linear2: Linear,
    /// Of the attention.
    pub norm1: LayerNorm,
    /// Of the linear layers.
    pub norm2: LayerNorm,
    dropout: Dropout,
    dropout1: Dropout,
    dropout2: Dropout,
    activation: fn(&Tensor) -> Result<Tensor>,
    norm_first: bool,
    info: Info,
}

impl TransformerEncoderLayer {
    /// A layer over sequences of this width.
    ///
    /// # Errors
    /// As [`MultiheadAttention::new`].
    ///
    /// ```
    /// use osteon::nn::{EncoderOptions, Module, TransformerEncoderLayer};
    /// let layer = TransformerEncoderLayer::new(8, 2, &EncoderOptions::default())?;
    /// assert_eq!(layer.linear1.weight.shape(), [2048, 8]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(
        width: usize,
        heads: usize,
        how: &EncoderOptions,
    ) -> Result<TransformerEncoderLayer> {
        let mut self_attn = MultiheadAttention::new(width, heads)?;
        self_attn.batch_first = how.batch_first;
        self_attn.dropout = how.dropout;
        let norm = || -> Result<LayerNorm> {
            let mut norm = LayerNorm::new([width])?;
            norm.eps = how.layer_norm_eps;
            Ok(norm)
        };
        Ok(built(TransformerEncoderLayer {
            self_attn,
            linear1: Linear::new(width, how.dim_feedforward)?,
            linear2: Linear::new(how.dim_feedforward, width)?,
            norm1: norm()?,
            norm2: norm()?,
            dropout: Dropout::new(how.dropout),
            dropout1: Dropout::new(how.dropout),
            dropout2: Dropout::new(how.dropout),
            activation: how.activation,
            norm_first: how.norm_first,
            info: Info::default(),
        }))
    }

    /// The layer's result, with masks for its attention; [`Layer::forward`] has none.
    ///
    /// # Errors
    /// As [`MultiheadAttention::forward`].
    ///
    /// ```
    /// use osteon::{DType, Device, Tensor, nn::{EncoderOptions, Masks, TransformerEncoderLayer}};
    /// let layer = TransformerEncoderLayer::new(8, 2, &EncoderOptions::default())?;
    /// let x = Tensor::ones([5, 8], DType::F32, &Device::cpu())?;
    /// layer.forward_masked(&x, &Masks { is_causal: true, ..Masks::default() })?;
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn forward_masked(&self, input: &Tensor, masks: &Masks<'_>) -> Result<Tensor> {
        let _running = self.info.enter();
        let attend = |x: &Tensor| {
            self.dropout1
                .forward(&self.self_attn.forward(x, x, x, masks)?)
        };
        let feed = |x: &Tensor| {
            let x = (self.activation)(&self.linear1.forward(x)?)?;
            let x = self.linear2.forward(&self.dropout.forward(&x)?)?;
            self.dropout2.forward(&x)
        };
        if self.norm_first {
            let x = input.add(&attend(&self.norm1.forward(input)?)?)?;
            x.add(&feed(&self.norm2.forward(&x)?)?)
        } else {
            let x = self.norm1.forward(&input.add(&attend(input)?)?)?;
            self.norm2.forward(&x.add(&feed(&x)?)?)
        }
    }
}

impl Module for TransformerEncoderLayer {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("self_attn", &self.self_attn);
        parts.add("linear1", &self.linear1);
        parts.add("dropout", &self.dropout);
        parts.add("linear2", &self.linear2);
        parts.add("norm1", &self.norm1);
        parts.add("norm2", &self.norm2);
        parts.add("dropout1", &self.dropout1);
        parts.add("dropout2", &self.dropout2);
    }
}

impl Layer for TransformerEncoderLayer {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        self.forward_masked(input, &Masks::default())
    }
}
