//! What can be said about tensors and operations without touching memory.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod device;
mod dims;
mod dtype;
mod error;
mod layout;
mod plan;
mod scalar;

pub use device::Device;
pub use dims::{Dims, MAX_RANK, checked_product, wrap_dim};
pub use dtype::{Category, DType};
pub use error::{Error, Kind, OomReport, Result};
pub use layout::Layout;
pub use plan::{Plan, PlanDim};
pub use scalar::Scalar;
