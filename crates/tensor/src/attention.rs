//! Attention.

use crate::backend::Arg;
use crate::matmul::{check_factors, product};
use crate::target::Target;
use crate::{BinaryOp, Call, CompareOp, Compute, Op, UnaryOp, View};
use osteon_kernels::{Distribution, Triangle};
use osteon_spec::{DType, Error, Kind, MemoryFormat, Result, Scalar};

/// What attention takes beside query, key and value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Which keys a query may look at (`bool`), or what is added to their scores; broadcasts to them.
    pub mask: Option<&'a View>,
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

const NAME: &str = "scaled_dot_product_attention";

fn call<'a>(op: Op, args: &'a [Arg<'a>], numbers: &'a [Scalar]) -> Call<'a> {
    Call {
        name: NAME,
        op,
        compute: Compute::Promoted,
        args,
        numbers,
    }
}

fn unfit(kind: Kind, message: String) -> Error {
    Error::new(kind, message).op(NAME)
}

impl View {
    /// `softmax(query · keyᵀ · scale + mask) · value`, of the query, which this view is. A query that may look at no key
    /// gives zeros. Heads and batches broadcast without being copied; the result has the query's order of dims.
    ///
    /// # Errors
    /// Shapes or dtypes that do not fit; a mask together with `is_causal`; a probability beyond 0 to 1; guards; out of memory.
    #[track_caller]
    pub fn attention(&self, key: &View, value: &View, how: &Attention<'_>) -> Result<View> {
        if [self, key, value].iter().any(|v| v.dim() < 2) {
            return Err(unfit(
                Kind::Shape,
                format!(
                    "expected 2 dims at least, got {:?}, {:?}, {:?}",
                    self.shape(),
                    key.shape(),
                    value.shape()
                ),
            ));
        }
        check_factors(self, key, NAME)?;
        check_factors(self, value, NAME)?;
        if how.mask.is_some() && how.is_causal {
            return Err(unfit(
                Kind::Value,
                "a mask and is_causal exclude each other".to_owned(),
            ));
        }
        if !(0.0..=1.0).contains(&how.dropout_p) {
            let p = how.dropout_p;
            let message = format!("the probability of dropout must be from 0 to 1, got {p}");
            return Err(unfit(Kind::Value, message));
        }
        if how.enable_gqa && self.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3 {
            let heads = |v: &View| v.shape()[v.dim() - 3];
            if heads(self) != heads(key) || heads(self) != heads(value) {
                return self.grouped(key, value, how);
            }
        }
        self.attend(key, value, how)
    }

    /// Attention in which groups of the query's heads share a head of key and value: as a dim that is broadcast.
    #[track_caller]
    fn grouped(&self, key: &View, value: &View, how: &Attention<'_>) -> Result<View> {
        let heads = |v: &View| v.shape()[v.dim() - 3];
        let (many, few) = (heads(self), heads(key));
        if few == 0 || heads(value) != few || !many.is_multiple_of(few) {
            return Err(unfit(
                Kind::Shape,
                format!(
                    "{many} heads of the query cannot share {few} of the key and {} of the value",
                    heads(value)
                ),
            ));
        }
        let split =
            |v: &View| v.unflatten(-3, &[few as isize, (v.shape()[v.dim() - 3] / few) as isize]);
        let mask = match how.mask {
            Some(mask) if mask.dim() >= 3 && mask.shape()[mask.dim() - 3] == many => {
                Some(split(mask)?)
            }
            Some(mask) if mask.dim() >= 3 => Some(mask.unsqueeze(-3)?),
            other => other.cloned(),
        };
        let how = Attention {
            mask: mask.as_ref(),
            ..*how
        };
        let out = split(self)?.attend(&split(key)?, &split(value)?, &how)?;
        let mut shape: Vec<isize> = out.shape().iter().map(|&n| n as isize).collect();
        let at = shape.len() - 4;
        shape.splice(at..at + 2, [many as isize]);
        out.view(&shape)
    }

    #[track_caller]
    fn attend(&self, key: &View, value: &View, how: &Attention<'_>) -> Result<View> {
        let size = self.shape()[self.dim() - 1];
        let scale = how.scale.unwrap_or(1.0 / (size as f64).sqrt());
        let mut scores = product(Target::fresh(NAME), self, &key.mt()?, None)?;
        let multiply = Op::Binary(BinaryOp::Mul);
        call(multiply, &[(&scores).into(), scale.into()], &[]).overwrite(&scores)?;
        let causal = if how.is_causal {
            Some(causal(&scores)?)
        } else {
            None
        };
        if let Some(mask) = how.mask.or(causal.as_ref()) {
            scores = masked(scores, mask)?;
        }
        let mut weights = scores.softmax(-1, None)?;
        if how.mask.is_some() && scores.numel() > 0 {
            // Softmax is undefined where no key may be looked at.
            let best = scores.amax(&[-1], true)?;
            let none = call(
                Op::Compare(CompareOp::Eq),
                &[(&best).into(), f64::NEG_INFINITY.into()],
                &[],
            )
            .fresh()?;
            weights = View::choose(&none, 0.0.into(), (&weights).into())?;
        }
        if how.dropout_p > 0.0 {
            weights = thinned(weights, how.dropout_p)?;
        }
        let last_is_dense = |v: &View| v.stride()[v.dim() - 1] == 1;
        let fused = self.dim() >= 3
            && how.dropout_p == 0.0
            && [key, value]
                .iter()
                .all(|v| v.shape()[..v.dim() - 2] == self.shape()[..self.dim() - 2])
            && value.shape()[value.dim() - 1] == size
            && [self, key, value].into_iter().all(last_is_dense);
        // PyTorch's fused kernel follows the query; what it does not take is a plain product.
        let layout = if fused {
            Some(self.layout().like(MemoryFormat::Preserve)?)
        } else {
            None
        };
        product(Target::fresh(NAME), &weights, value, layout)
    }
}

/// Which keys each query may look at: none after it.
#[track_caller]
fn causal(scores: &View) -> Result<View> {
    let rank = scores.dim();
    View::ones(&scores.shape()[rank - 2..], DType::Bool, &scores.device())?
        .triangle(Triangle::Lower(0))
}

/// Weights of which each is 0 with this probability, and the others larger by as much.
#[track_caller]
fn thinned(weights: View, p: f64) -> Result<View> {
    let kept = Distribution::Bernoulli(1.0 - p);
    let (dtype, device) = (weights.dtype(), weights.device());
    let kept = View::random(weights.shape(), kept, dtype, &device, NAME)?;
    let multiply = Op::Binary(BinaryOp::Mul);
    call(multiply, &[(&weights).into(), (&kept).into()], &[]).overwrite(&weights)?;
    if p < 1.0 {
        let factor = 1.0 / (1.0 - p);
        call(multiply, &[(&weights).into(), factor.into()], &[]).overwrite(&weights)?;
    }
    Ok(weights)
}

/// Scores with -infinity where a `bool` mask is false, or with another mask added.
#[track_caller]
fn masked(scores: View, mask: &View) -> Result<View> {
    if mask.dtype() == DType::Bool {
        let hidden = call(Op::Unary(UnaryOp::LogicalNot), &[mask.into()], &[]).fresh()?;
        return scores.masked_fill(&hidden, f64::NEG_INFINITY.into());
    }
    if mask.dtype() != scores.dtype() && mask.dtype() != DType::F32 {
        return Err(unfit(
            Kind::DType,
            format!(
                "the mask must be bool, float32 or {}, got {}",
                scores.dtype(),
                mask.dtype()
            ),
        ));
    }
    crate::elementwise::check_broadcasts_to(mask, &scores, NAME)?;
    call(
        Op::Binary(BinaryOp::Add),
        &[(&scores).into(), mask.into()],
        &[],
    )
    .overwrite(&scores)?;
    Ok(scores)
}
