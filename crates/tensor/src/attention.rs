//! Attention.

use crate::View;
use crate::backend::backend;
use crate::matmul::check_factors;
use crate::reduce::check_fractional;
use crate::softmax::accurate;
use osteon_memory::{attribute, here};
use osteon_spec::{
    DType, Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar, broadcast_shapes,
};

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
    /// gives zeros. Heads and batches broadcast without being copied, no matrix of scores is made, and the result has the
    /// query's order of dims. Half precision is computed in copies of `float32` and rounded once.
    ///
    /// # Errors
    /// Shapes or dtypes that do not fit; a mask together with `is_causal`; guards; out of memory.
    #[track_caller]
    pub fn attention(&self, key: &View, value: &View, how: &Attention<'_>) -> Result<View> {
        how.check(self, key, value)?;
        let dtype = self.dtype();
        check_fractional(dtype, NAME)?;
        if dtype.is_complex() {
            return Err(unfit(
                Kind::DType,
                "not defined for complex numbers".to_owned(),
            ));
        }
        let (outer, [queries, width]) = matrices(self);
        let ((keys_outer, [keys, depth]), (values_outer, [rows, made])) =
            (matrices(key), matrices(value));
        if width != depth || keys != rows {
            let shapes = [self, key, value].map(View::shape);
            let message = format!("query, key and value of shapes {shapes:?} do not fit");
            return Err(unfit(Kind::Shape, message));
        }
        let named = |e: Error| e.op(NAME);
        let scored = broadcast_shapes(&[outer, keys_outer]).map_err(named)?;
        let all = broadcast_shapes(&[&scored, values_outer]).map_err(named)?;
        // PyTorch's fused kernel follows the query; what it does not take is a plain product.
        let last_is_dense = |v: &View| v.stride()[v.dim() - 1] == 1;
        let follows = self.dim() >= 3
            && [keys_outer, values_outer] == [outer; 2]
            && made == width
            && [self, key, value].into_iter().all(last_is_dense);
        let layout = if follows {
            self.layout().like(MemoryFormat::Preserve)
        } else {
            Layout::contiguous(&ending(&all, [queries, made]))
        };
        // The error of a score is a factor of its weight, and scores are large.
        let wide = accurate(dtype);
        let expanded = |v: &View, last: [usize; 2]| -> Result<View> {
            let layout = v.layout().expand_to(&ending(&all, last)).map_err(named)?;
            let v = v.with_layout(layout, NAME)?;
            if [wide, DType::Bool].contains(&v.dtype()) {
                Ok(v)
            } else {
                v.to_dtype(wide)
            }
        };
        let mask = match how.mask {
            None => None,
            Some(mask) => {
                check_mask(mask, dtype)?;
                mask.layout()
                    .expand_to(&ending(&scored, [queries, keys]))
                    .map_err(named)?;
                Some(expanded(mask, [queries, keys])?)
            }
        };
        let query = expanded(self, [queries, width])?;
        let key = expanded(key, [keys, width])?;
        let value = expanded(value, [keys, made])?;
        let out = View::alloc(layout.map_err(named)?, wide, &self.device(), NAME)?;
        let backend = backend(self.device());
        if keys == 0 {
            backend.fill(&out, Scalar::Bool(false)).map_err(named)?;
        } else if out.numel() > 0 {
            let how = Attention {
                mask: mask.as_ref(),
                scale: Some(how.scale_of(self)),
                ..*how
            };
            let run = || backend.attention(&out, [&query, &key, &value], &how);
            attribute(here(), run).map_err(named)?;
        }
        out.to_dtype(dtype)
    }
}

/// The sizes of the last two dims, and those before.
fn matrices(view: &View) -> (&[usize], [usize; 2]) {
    let (outer, last) = view.shape().split_at(view.dim() - 2);
    (outer, [last[0], last[1]])
}

/// A shape of these outer dims and these last ones.
fn ending(outer: &[usize], last: [usize; 2]) -> Dims {
    outer.iter().copied().chain(last).collect()
}

fn check_mask(mask: &View, dtype: DType) -> Result<()> {
    if [DType::Bool, DType::F32, dtype].contains(&mask.dtype()) {
        return Ok(());
    }
    let got = mask.dtype();
    let message = format!("the mask must be bool, float32 or {dtype}, got {got}");
    Err(unfit(Kind::DType, message))
}
