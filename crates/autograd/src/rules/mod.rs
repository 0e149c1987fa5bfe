//! Derivatives, as formulas on tensors.

pub(crate) mod elementwise;
pub(crate) mod norm;
pub(crate) mod normalize;
pub(crate) mod reduce;
pub(crate) mod scan;
pub(crate) mod softmax;
pub(crate) mod svd;
