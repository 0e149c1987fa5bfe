//! The users' tensor: a view of a storage, and its place in the graph of derivatives.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod activation;
mod advanced;
mod arithmetic;
mod arrange;
mod attention;
mod casts;
mod checkpoint;
mod conjugate;
mod conv;
mod copies;
mod create;
mod display;
mod einsum;
mod elementwise;
mod function;
pub mod functional;
mod grad;
mod grad_fn;
mod graph;
mod grids;
mod index;
mod inplace;
mod join;
mod linalg;
mod loss;
mod matmul;
mod norm;
mod normalize;
mod operand;
mod out;
mod pointwise;
mod pool;
mod product;
mod provenance;
mod random;
mod reduce;
mod rows;
mod rules;
mod scan;
mod scatter;
mod scatter_reduce;
mod sets;
mod shapes;
mod softmax;
mod sort;
mod splits;
mod tensor;
mod view_scatter;
mod views;

pub use arithmetic::Rounding;
pub use checkpoint::checkpoint;
pub use copies::To;
pub use function::{BackwardContext, ForwardContext, Function};
pub use grad::{Backward, Grad, grad};
pub use grad_fn::GradFn;
pub use graph::check_writable;
pub use graph::mode::{
    check_saved_bytes, enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled,
    no_grad,
};
pub use grids::Indexing;
pub use index::Index;
pub use norm::MatrixNorm;
pub use normalize::BatchNorm;
pub use operand::Operand;
pub use osteon_tensor::{PadMode, Reduce};
pub use random::{RngState, get_rng_state, manual_seed, set_rng_state};
pub use sets::{Interpolation, UniqueTensors};
pub use tensor::Tensor;
