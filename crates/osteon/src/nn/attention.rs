//! Attention.

use super::module::built;
use super::{Info, Layer, Linear, Module, Parts, functional, init, parameter};
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
        let in_proj_weight = init::empty([3 * width, width])?;
        init::xavier_uniform_(&in_proj_weight, init::Gain::Linear)?;
        let out_proj = Linear::new(width, width)?;
        if let Some(bias) = &out_proj.bias {
            init::constant_(bias, 0.0)?;
        }
        Ok(built(MultiheadAttention {
            in_proj_weight: parameter(in_proj_weight)?,
            in_proj_bias: Some(parameter(init::full(&[3 * width], 0.0)?)?),
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

    /// What each query gathers from the values, by how its scores with the keys compare.
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
        self.attend(query, key, value, masks).map(|(out, _)| out)
    }

    /// [`MultiheadAttention::forward`], and the weights of the keys for each query, averaged over the heads.
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
        let (out, weights) = self.attend(query, key, value, masks)?;
        Ok((out, weights.mean_dims([-3], false)?))
    }

    /// The result, and the weights of each head.
    #[track_caller]
    fn attend(
        &self,
        query: &Tensor,
        key: &Tensor,
        value: &Tensor,
        masks: &Masks<'_>,
    ) -> Result<(Tensor, Tensor)> {
        let _running = self.info.enter();
        let named = |e: Error| e.op("MultiheadAttention");
        let swaps = !self.batch_first && query.dim() == 3;
        if !(2..=3).contains(&query.dim()) || [key, value].iter().any(|t| t.dim() != query.dim()) {
            let shapes = [query, key, value].map(Tensor::shape);
            let message =
                format!("expected 3 dims each, or 2 without a batch, got shapes {shapes:?}");
            return Err(named(Error::new(Kind::Shape, message)));
        }
        let [q, k, v] = self.projected(query, key, value)?;
        // (…, length, width) as (…, heads, length, width of a head).
        let heads = |x: &Tensor| {
            let x = if swaps { x.transpose(0, 1)? } else { x.clone() };
            x.unflatten(-1, [self.heads as isize, -1])?
                .transpose(-3, -2)
        };
        let (q, k, v) = (heads(&q)?, heads(&k)?, heads(&v)?);
        let scale = 1.0 / (q.size(-1)? as f64).sqrt();
        let scores = q.mul(scale)?.matmul(&k.mT()?)?;
        let weights = self.masked(scores, masks)?.softmax(-1)?;
        let kept = functional::dropout(&weights, self.dropout, self.info.is_training())?;
        let out = kept.matmul(&v)?.transpose(-3, -2)?;
        let out = if swaps { out.transpose(0, 1)? } else { out };
        let out = self.out_proj.forward(&out.flatten(-2, -1)?)?;
        Ok((out, weights))
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

    /// Scores `(…, heads, queries, keys)` with `-∞` where a query must not look.
    #[track_caller]
    fn masked(&self, mut scores: Tensor, masks: &Masks<'_>) -> Result<Tensor> {
        let hide = |scores: &Tensor, mask: &Tensor| {
            if mask.dtype() == DType::Bool {
                scores.masked_fill(mask, f64::NEG_INFINITY)
            } else {
                scores.add(mask)
            }
        };
        if masks.is_causal {
            let shape = [scores.size(-2)?, scores.size(-1)?];
            let behind = Tensor::ones(shape, DType::Bool, &scores.device())?.triu(1)?;
            scores = hide(&scores, &behind)?;
        }
        if let Some(mask) = masks.attn_mask {
            let mask = match mask.dim() {
                3 if scores.dim() == 4 => mask.unflatten(0, [-1, self.heads as isize])?,
                _ => mask.clone(),
            };
            scores = hide(&scores, &mask)?;
        }
        if let Some(mask) = masks.key_padding_mask {
            let mask = mask.unsqueeze(-2)?.unsqueeze(-2)?;
            let mask = if scores.dim() == 3 {
                mask.squeeze_dims([0])?
            } else {
                mask
            };
            scores = hide(&scores, &mask)?;
        }
        Ok(scores)
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
