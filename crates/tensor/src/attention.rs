//! Attention.

use crate::backend::Arg;
use crate::matmul::{check_factors, product};
use crate::target::Target;
use crate::{BinaryOp, Call, CompareOp, Compute, Op, UnaryOp, View};
use osteon_kernels::Triangle;
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

impl Attention<'_> {
    /// Checks ranks and dtypes, and that a mask is not one of two.
    ///
    /// # Errors
    /// Where they do not fit.
    pub fn check(&self, query: &View, key: &View, value: &View) -> Result<()> {
        if [query, key, value].iter().any(|v| v.dim() < 2) {
            return Err(unfit(
                Kind::Shape,
                format!(
                    "expected 2 dims at least, got {:?}, {:?}, {:?}",
                    query.shape(),
                    key.shape(),
                    value.shape()
                ),
            ));
        }
        check_factors(query, key, NAME)?;
        check_factors(query, value, NAME)?;
        if self.mask.is_some() && self.is_causal {
            return Err(unfit(
                Kind::Value,
                "a mask and is_causal exclude each other".to_owned(),
            ));
        }
        Ok(())
    }

    /// The factor of scores.
    pub fn scale_of(&self, query: &View) -> f64 {
        let size = query.shape().last().copied().unwrap_or(1);
        self.scale.unwrap_or(1.0 / (size as f64).sqrt())
    }
}

impl View {
    /// `softmax(query · keyᵀ · scale + mask) · value`, of the query, which this view is. A query that may look at no key
    /// gives zeros. Heads and batches broadcast without being copied; the result has the query's order of dims. Half
    /// precision is computed in copies of `float32` and rounded once.
    ///
    /// # Errors
    /// Shapes or dtypes that do not fit; a mask together with `is_causal`; guards; out of memory.
    #[track_caller]
    pub fn attention(&self, key: &View, value: &View, how: &Attention<'_>) -> Result<View> {
        how.check(self, key, value)?;
        let scale = how.scale_of(self);
        let size = self.shape()[self.dim() - 1];
        let dtype = self.dtype();
        let wide = |v: &View| match dtype {
            // The error of a score is a factor of its weight, and scores are large.
            DType::F16 | DType::BF16 if v.dtype() == dtype => v.to_dtype(DType::F32),
            _ => Ok(v.clone()),
        };
        let mut scores = product(Target::fresh(NAME), &wide(self)?, &wide(key)?.mt()?, None)?;
        let multiply = Op::Binary(BinaryOp::Mul);
        call(multiply, &[(&scores).into(), scale.into()], &[]).overwrite(&scores)?;
        let causal = if how.is_causal {
            Some(causal(&scores)?)
        } else {
            None
        };
        if let Some(mask) = how.mask.or(causal.as_ref()) {
            check_mask(mask, dtype)?;
            scores = masked(scores, &wide(mask)?)?;
        }
        let mut weights = scores.softmax(-1)?;
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
        let last_is_dense = |v: &View| v.stride()[v.dim() - 1] == 1;
        let fused = self.dim() >= 3
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
        product(Target::fresh(NAME), &weights, &wide(value)?, layout)?.to_dtype(dtype)
    }
}

/// Which keys each query may look at: none after it.
#[track_caller]
fn causal(scores: &View) -> Result<View> {
    let rank = scores.dim();
    View::ones(&scores.shape()[rank - 2..], DType::Bool, &scores.device())?
        .triangle(Triangle::Lower(0))
}

fn check_mask(mask: &View, dtype: DType) -> Result<()> {
    if [DType::Bool, DType::F32, dtype].contains(&mask.dtype()) {
        return Ok(());
    }
    let got = mask.dtype();
    let message = format!("the mask must be bool, float32 or {dtype}, got {got}");
    Err(unfit(Kind::DType, message))
}

/// Scores with -infinity where a `bool` mask is false, or with another mask added.
#[track_caller]
fn masked(scores: View, mask: &View) -> Result<View> {
    if mask.dtype() == DType::Bool {
        let hidden = call(Op::Unary(UnaryOp::LogicalNot), &[mask.into()], &[]).fresh()?;
        return scores.masked_fill(&hidden, f64::NEG_INFINITY.into());
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
