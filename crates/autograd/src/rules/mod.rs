//! Derivatives, as formulas on tensors.

pub(crate) mod elementwise;
pub(crate) mod norm;
pub(crate) mod normalize;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod svd;

use crate::Tensor;
use osteon_spec::{DType, Result};

/// In the precision in which sums are kept: `float32` instead of half precision.
fn accurate(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_float() && t.dtype().size() < 4 {
        t.promoted(DType::F32, "backward")
    } else {
        Ok(t.clone())
    }
}
