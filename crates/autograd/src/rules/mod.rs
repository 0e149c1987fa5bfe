//! Derivatives, as formulas on tensors.

pub(crate) mod elementwise;
pub(crate) mod reduce;
pub(crate) mod scan;
