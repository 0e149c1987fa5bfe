//! Derivatives, as formulas on tensors.

pub(crate) mod reduce;
pub(crate) mod scan;
