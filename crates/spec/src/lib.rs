//! What can be said about tensors and operations without touching memory.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod broadcast;
mod device;
mod dims;
mod dtype;
mod elementwise;
mod error;
mod infer;
mod layout;
pub mod ops;
mod overlap;
mod permute;
mod plan;
mod predicates;
mod reach;
mod reinterpret;
mod reshape;
mod scalar;
mod shape;
mod slice;
mod solve;
mod split;
mod union;

pub use broadcast::broadcast_shapes;
pub use device::Device;
pub use dims::{Dims, MAX_RANK, checked_product, wrap_dim};
pub use dtype::{Category, DType};
pub use elementwise::elementwise_output;
pub use error::{Error, Kind, OomReport, Result};
pub use infer::{Operand, result_type};
pub use layout::Layout;
pub use overlap::{InternalOverlap, PartialOverlap, overlaps, partial_overlap, shared_bytes};
pub use plan::{Plan, PlanDim};
pub use predicates::MemoryFormat;
pub use reach::{Placed, Runs, byte_runs};
pub use reshape::{Blocked, ReshapeInfo, infer_size};
pub use scalar::Scalar;
pub use split::Sections;
pub use union::{CoarseRuns, UnionRuns, coarse_runs, reached_bytes, union_runs};
