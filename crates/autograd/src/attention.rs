//! Attention.

use crate::Tensor;
use crate::functional::{dropout, view};
use crate::graph::{Back, Grads, record, rule};
use crate::product::Product;
use osteon_memory::{attribute, here};
use osteon_spec::{DType, Error, Kind, Result};
use smallvec::smallvec;

const NAME: &str = "scaled_dot_product_attention";

/// What [`scaled_dot_product_attention`] takes beside query, key and value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Which keys a query may look at (`bool`), or what is added to their scores; broadcasts to them.
    pub mask: Option<&'a Tensor>,
    /// Whether a query looks at no key after it.
    pub is_causal: bool,
    /// The factor of scores; one over the root of the vectors' size in its absence.
    pub scale: Option<f64>,
    /// Whether several heads of the query may share a head of key and value.
    pub enable_gqa: bool,
    /// The probability with which a weight becomes 0; the others are scaled so that the mean stays. Always: whoever
    /// evaluates passes 0.
    pub dropout_p: f64,
}

/// `softmax(query · keyᵀ · scale + mask) · value`. Heads and batches broadcast without being copied; the result has the
/// query's order of dims; a query that may look at no key gives zeros. Allocates the result; no matrix of scores is made, but for the derivative, or with
/// dropout.
///
/// # Errors
/// Shapes or dtypes that do not fit; a mask together with `is_causal`; a probability beyond 0 to 1; a guard in the way; out of
/// memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Attention}};
/// let x = Tensor::new([[1f32, 0.0], [0.0, 1.0]])?;
/// let how = Attention { is_causal: true, ..Attention::default() };
/// let y = functional::scaled_dot_product_attention(&x, &x, &x, &how)?;
/// assert_eq!(y.select(0, 0)?.to_vec::<f32>()?, [1.0, 0.0]); // the first sees itself alone
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    how: &Attention<'_>,
) -> Result<Tensor> {
    let run = || {
        let heads = |t: &Tensor| t.shape()[t.dim() - 3];
        let several = how.enable_gqa && [query, key, value].iter().all(|t| t.dim() >= 3);
        if several && (heads(query) != heads(key) || heads(query) != heads(value)) {
            return grouped(query, key, value, how);
        }
        attend(query, key, value, how)
    };
    attribute(here(), run).map_err(|e| e.op(NAME))
}

/// Heads of the query that share a head of key and value, as one more dim, which broadcasts.
fn grouped(query: &Tensor, key: &Tensor, value: &Tensor, how: &Attention<'_>) -> Result<Tensor> {
    let heads = |t: &Tensor| t.shape()[t.dim() - 3];
    let (many, few) = (heads(query), heads(key));
    if few == 0 || heads(value) != few || !many.is_multiple_of(few) {
        let message = format!(
            "{many} heads of the query cannot share {few} of the key and {} of the value",
            heads(value)
        );
        return Err(Error::new(Kind::Shape, message));
    }
    let split = |t: &Tensor| t.unflatten(-3, [few as isize, (heads(t) / few) as isize]);
    let mask = match how.mask {
        Some(mask) if mask.dim() >= 3 && heads(mask) == many => Some(split(mask)?),
        Some(mask) if mask.dim() >= 3 => Some(mask.unsqueeze(-3)?),
        other => other.cloned(),
    };
    let how = Attention {
        mask: mask.as_ref(),
        ..*how
    };
    attend(&split(query)?, &split(key)?, &split(value)?, &how)?.flatten(-4, -3)
}

fn attend(query: &Tensor, key: &Tensor, value: &Tensor, how: &Attention<'_>) -> Result<Tensor> {
    let plain = osteon_tensor::Attention {
        mask: view(how.mask),
        is_causal: how.is_causal,
        scale: how.scale,
    };
    plain.check(query.as_view(), key.as_view(), value.as_view())?;
    let scores = Scores {
        is_causal: how.is_causal,
        scale: plain.scale_of(query.as_view()),
    };
    if how.dropout_p != 0.0 {
        let weights = scores.weights(query, key, how.mask)?;
        return dropout(&weights, how.dropout_p, true)?.matmul(value);
    }
    let out = query
        .as_view()
        .attention(key.as_view(), value.as_view(), &plain)?;
    let inputs: Vec<&Tensor> = [query, key, value].into_iter().chain(how.mask).collect();
    record(out, &inputs, |r, _| {
        inputs.iter().try_for_each(|t| r.save(t))?;
        let has_mask = how.mask.is_some();
        Ok(rule(move |b| scores.gradients(b, has_mask)))
    })
}

/// How scores are made of query and key.
#[derive(Clone, Copy)]
struct Scores {
    is_causal: bool,
    scale: f64,
}

impl Scores {
    /// The weights of the values: they are made again for the derivative, which so keeps nothing that grows with the
    /// square of the length.
    fn weights(self, query: &Tensor, key: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let scores = query.matmul(&key.mT()?)?.mul(self.scale)?;
        let hidden = |mask: &Tensor| scores.masked_fill(&mask.logical_not()?, f64::NEG_INFINITY);
        if self.is_causal {
            let rank = scores.dim();
            let all = Tensor::ones(&scores.shape()[rank - 2..], DType::Bool, &scores.device())?;
            return hidden(&all.tril(0)?)?.softmax(-1);
        }
        let scores = match mask {
            None => return scores.softmax(-1),
            Some(mask) if mask.dtype() == DType::Bool => hidden(mask)?,
            Some(mask) => scores.add(mask)?.to(query.dtype())?,
        };
        if scores.numel() == 0 {
            return scores.softmax(-1);
        }
        // Softmax is undefined where no key may be looked at.
        let none = scores.amax([-1], true)?.eq(f64::NEG_INFINITY)?;
        let weights = scores.masked_fill(&none, 0.0)?.softmax(-1)?;
        weights.masked_fill(&none, 0.0)
    }

    fn gradients(self, b: &Back<'_>, has_mask: bool) -> Result<Grads> {
        let (g, query, key, value) = (b.grad()?, b.saved(0)?, b.saved(1)?, b.saved(2)?);
        let mask = if has_mask { Some(b.saved(3)?) } else { None };
        let weights = self.weights(&query, &key, mask.as_ref())?;
        let product = Product::matmul(weights.dim(), value.dim());
        let of_value = b.want(2, || product.of_rhs(&g, &weights, b.sizes(2)))?;
        if ![0, 1, 3].iter().any(|&k| b.needs(k)) {
            return Ok(smallvec![None, None, of_value]);
        }
        // Through the softmax: w·(g - Σ w·g).
        let of_weights = product.of_lhs(&g, &value, weights.shape())?;
        let of_scores = if b.create_graph {
            let inner = of_weights.mul(&weights)?;
            inner.sub(&weights.mul(&inner.sum_dims([-1], true)?)?)?
        } else {
            let of_weights = of_weights.as_view();
            Tensor::from_view(of_weights.softmax_gradient(weights.as_view(), -1, false)?)
        };
        let scaled = of_scores.mul(self.scale)?;
        let product = Product::matmul_transposed(query.dim(), key.dim());
        Ok(smallvec![
            b.want(0, || product.of_lhs(&scaled, &key, b.sizes(0)))?,
            b.want(1, || product.of_rhs(&scaled, &query, b.sizes(1)))?,
            of_value,
            Some(of_scores)
        ])
    }
}
