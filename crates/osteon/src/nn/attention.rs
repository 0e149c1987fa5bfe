//! Attention.

use super::functional::{self, Attention, scaled_dot_product_attention};
use super::module::built;
use super::{Info, Layer, Linear, Module, Parts, init, parameter};
use crate::{DType, Error, Kind, Result, Tensor};

/// Attention of several heads: PyTorch's `nn.MultiheadAttention`, with its names of parameters and its initial values.
///
/// Inputs are `(length, batch, width)`, or `(batch, length, width)` where `batch_first` says so; the batch may be absent.
///
/// ```
/// use osteon::{DType, Device, Tensor, nn::{Masks, MultiheadAttention}};
/// let attention = MultiheadAttention::new(8, 2)?;
/// let x = Tensor::ones([5, 3, 8], DType::F32, &Device::cpu())?;
/// let y = attention.forward(&x, &x, &x, &Masks { is_causal: true, ..Masks::default() })?;
/// assert_eq!(y.shape(), [5, 3, 8]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct MultiheadAttention {
    /// The matrices of query, key and value, one below the other: `(3·width, width)`.
    pub in_proj_weight: Tensor,
    /// `(3·width)`.
    pub in_proj_bias: Option<Tensor>,
    /// What the heads' results go through.
    pub out_proj: Linear,
    /// Whether the batch is the first dim; not at first.
    pub batch_first: bool,
    /// The share of weights that are dropped in training; 0 at first.
    pub dropout: f64,
    heads: usize,
    info: Info,
}

/// What attention must not look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masks<'a> {
    /// `(queries, keys)`, or one for each head of each batch `(batch·heads, queries, keys)`: true where a query must not
    /// look; or floats that are added to the scores.
    pub attn_mask: Option<&'a Tensor>,
    /// `(batch, keys)`: true for keys that no query may look at; or floats that are added to their scores.
    pub key_padding_mask: Option<&'a Tensor>,
    /// Whether a query must not look at keys behind its own place.
    pub is_causal: bool,
}

impl MultiheadAttention {
    /// Attention over inputs of this width, which is shared out to the heads.
    ///
    /// # Errors
    /// A width that the heads do not divide; out of memory.
    ///
    /// ```
    /// use osteon::nn::{Module, MultiheadAttention};
    /// let names: Vec<_> = MultiheadAttention::new(8, 2)?.named_parameters().into_iter().map(|(n, _)| n).collect();
    /// assert_eq!(names, ["in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"]);
    /// assert!(MultiheadAttention::new(8, 3).is_err());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(width: usize, heads: usize) -> Result<MultiheadAttention> {
        if heads == 0 || width == 0 || !width.is_multiple_of(heads) {
            let message = format!("{heads} heads do not divide a width of {width}");
            return Err(Error::new(Kind::Value, message).op("MultiheadAttention"));
        }
        // What does not fit is refused by its size.
        let rows = width.saturating_mul(3);
        let in_proj_weight = init::empty([rows, width])?;
        init::xavier_uniform_(&in_proj_weight, init::Gain::Linear)?;
        let out_proj = Linear::new(width, width)?;
        if let Some(bias) = &out_proj.bias {
            init::constant_(bias, 0.0)?;
        }
        Ok(built(MultiheadAttention {
            in_proj_weight: parameter(in_proj_weight)?,
            in_proj_bias: Some(parameter(init::full(&[rows], 0.0)?)?),
            out_proj,
            batch_first: false,
            dropout: 0.0,
            heads,
            info: Info::default(),
        }))
    }

    /// The attention without biases.
    ///
    /// ```
    /// use osteon::nn::{Module, MultiheadAttention};
    /// assert_eq!(MultiheadAttention::new(8, 2)?.without_bias().num_parameters(), 4 * 8 * 8);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[must_use]
    pub fn without_bias(self) -> MultiheadAttention {
        MultiheadAttention {
            in_proj_bias: None,
            out_proj: self.out_proj.without_bias(),
            ..self
        }
    }

    /// What each query gathers from the values, by how its scores with the keys compare. Nothing that grows with the
    /// square of the length is kept for the backward pass; a query that may look at no key gets zeros.
    ///
    /// # Errors
    /// Shapes or masks that do not fit; out of memory.
    ///
    /// ```
    /// use osteon::{DType, Device, Tensor, nn::{Masks, MultiheadAttention}};
    /// let attention = MultiheadAttention::new(8, 2)?;
    /// let at = |n: usize| Tensor::ones([n, 8], DType::F32, &Device::cpu());
    /// let y = attention.forward(&at(2)?, &at(5)?, &at(5)?, &Masks::default())?;
    /// assert_eq!(y.shape(), [2, 8]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn forward(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: &Masks<'_>,
    ) -> Result<Tensor> {
        let _running = self.info.enter();
        let [q, k, v] = self.heads(query, key, value)?;
        let alone = masks.attn_mask.is_none() && masks.key_padding_mask.is_none();
        let mask = if alone {
            None
        } else {
            self.hidden(&q, &k, masks)?
        };
        let mask = match mask {
            Some(mask) if mask.dtype() == DType::Bool => Some(mask.logical_not()?),
            other => other,
        };
        let how = Attention {
            mask: mask.as_ref(),
            is_causal: masks.is_causal && alone,
            dropout_p: self.dropped(),
            ..Attention::default()
        };
        self.joined(&scaled_dot_product_attention(&q, &k, &v, &how)?)
    }

    /// [`MultiheadAttention::forward`], and the weights of the keys for each query, averaged over the heads. The
    /// weights are kept for the backward pass.
    ///
    /// # Errors
    /// As [`MultiheadAttention::forward`].
    ///
    /// ```
    /// use osteon::{DType, Device, Tensor, nn::{Masks, MultiheadAttention}};
    /// let attention = MultiheadAttention::new(8, 2)?;
    /// let x = Tensor::ones([4, 8], DType::F32, &Device::cpu())?;
    /// let (_, weights) = attention.forward_with_weights(&x, &x, &x, &Masks::default())?;
    /// assert!(weights.allclose(&Tensor::full([4, 4], 0.25, DType::F32, &Device::cpu())?, 1e-6, 0.0)?);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn forward_with_weights(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: &Masks<'_>,
    ) -> Result<(Tensor, Tensor)> {
        let _running = self.info.enter();
        let [q, k, v] = self.heads(query, key, value)?;
        let scale = 1.0 / (q.size(-1)? as f64).sqrt();
        let scores = q.mul(scale)?.matmul(&k.mT()?)?;
        let scores = match self.hidden(&q, &k, masks)? {
            None => scores,
            Some(mask) if mask.dtype() == DType::Bool => {
                scores.masked_fill(&mask, f64::NEG_INFINITY)?
            }
            Some(mask) => scores.add(&mask)?,
        };
        let weights = scores.softmax(-1)?;
        let kept = functional::dropout(&weights, self.dropped(), true)?;
        let out = self.joined(&kept.matmul(&v)?)?;
        Ok((out, weights.mean_dims([-3], false)?))
    }

    /// The share of weights to drop now.
    fn dropped(&self) -> f64 {
        if self.info.is_training() {
            self.dropout
        } else {
            0.0
        }
    }

    /// Query, key and value through their matrices, as (…, heads, length, width of a head).
    #[track_caller]
    fn heads(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<[Tensor; 3]> {
        let rank = query.dim();
        if !(2..=3).contains(&rank) || [key, value].iter().any(|t| t.dim() != rank) {
            let shapes = [query, key, value].map(Tensor::shape);
            let message =
                format!("expected 3 dims each, or 2 without a batch, got shapes {shapes:?}");
            return Err(Error::new(Kind::Shape, message).op("MultiheadAttention"));
        }
        let [q, k, v] = self.projected(query, key, value)?;
        let swaps = rank == 3 && !self.batch_first;
        let heads = |x: Tensor| {
            let x = if swaps { x.transpose(0, 1)? } else { x };
            x.unflatten(-1, [self.heads as isize, -1])?
                .transpose(-3, -2)
        };
        Ok([heads(q)?, heads(k)?, heads(v)?])
    }

    /// The heads' results side by side, in the inputs' order of dims, through the last matrix.
    #[track_caller]
    fn joined(&self, out: &Tensor) -> Result<Tensor> {
        let swaps = out.dim() == 4 && !self.batch_first;
        let out = out.transpose(-3, -2)?;
        let out = if swaps { out.transpose(0, 1)? } else { out };
        self.out_proj.forward(&out.flatten(-2, -1)?)
    }

    /// Query, key and value through their matrices: by one product where they are one tensor.
    #[track_caller]
    fn projected(&self, query: &Tensor, key: &Tensor, value: &Tensor) -> Result<[Tensor; 3]> {
        let three = |pieces: Vec<Tensor>| {
            <[Tensor; 3]>::try_from(pieces).map_err(|_| {
                Error::new(Kind::Shape, "in_proj is not three matrices").op("MultiheadAttention")
            })
        };
        let bias = self.in_proj_bias.as_ref();
        if query.is(key) && key.is(value) {
            return three(functional::linear(query, &self.in_proj_weight, bias)?.chunk(3, -1)?);
        }
        let weights = three(self.in_proj_weight.chunk(3, 0)?)?;
        let biases = bias.map(|b| three(b.chunk(3, 0)?)).transpose()?;
        let bias = |i: usize| biases.as_ref().and_then(|b| b.get(i));
        Ok([
            functional::linear(query, &weights[0], bias(0))?,
            functional::linear(key, &weights[1], bias(1))?,
            functional::linear(value, &weights[2], bias(2))?,
        ])
    }

    /// All masks as one that broadcasts to (…, heads, queries, keys): true where a query must not look, or what is added
    /// to scores.
    #[track_caller]
    fn hidden(&self, q: &Tensor, k: &Tensor, masks: &Masks<'_>) -> Result<Option<Tensor>> {
        let mut all: Option<Tensor> = None;
        let mut hide = |mask: Tensor| -> Result<()> {
            let is_bool = |t: &Tensor| t.dtype() == DType::Bool;
            all = Some(match all.take() {
                None => mask,
                Some(other) if is_bool(&other) && is_bool(&mask) => other.logical_or(&mask)?,
                Some(other) if is_bool(&mask) => other.masked_fill(&mask, f64::NEG_INFINITY)?,
                Some(other) if is_bool(&other) => mask.masked_fill(&other, f64::NEG_INFINITY)?,
                Some(other) => other.add(&mask)?,
            });
            Ok(())
        };
        if masks.is_causal {
            let shape = [q.size(-2)?, k.size(-2)?];
            hide(Tensor::ones(shape, DType::Bool, &q.device())?.triu(1)?)?;
        }
        if let Some(mask) = masks.attn_mask {
            hide(match mask.dim() {
                3 if q.dim() == 4 => mask.unflatten(0, [-1, self.heads as isize])?,
                _ => mask.clone(),
            })?;
        }
        if let Some(mask) = masks.key_padding_mask {
            let mask = mask.unsqueeze(-2)?;
            hide(if q.dim() == 4 {
                mask.unsqueeze(-2)?
            } else {
                mask
            })?;
        }
        Ok(all)
    }
}

impl Module for MultiheadAttention {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("in_proj_weight", &self.in_proj_weight);
        parts.add("in_proj_bias", &self.in_proj_bias);
        parts.add("out_proj", &self.out_proj);
    }
}
