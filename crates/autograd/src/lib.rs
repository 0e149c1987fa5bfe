//! The users' tensor: a view of a storage, and its place in the graph of derivatives.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod advanced;
mod arrange;
mod activation;
mod arithmetic;
mod casts;
mod conjugate;
mod copies;
mod create;
mod display;
mod elementwise;
mod grids;
mod index;
mod inplace;
mod join;
mod linalg;
mod loss;
mod matmul;
pub mod functional;
mod operand;
mod scatter;
mod sets;
mod sort;
mod random;
mod norm;
mod reduce;
mod scan;
mod tensor;
mod views;

pub use arithmetic::Rounding;
pub use copies::To;
pub use grids::Indexing;
pub use index::Index;
pub use norm::{BatchNorm, MatrixNorm};
pub use operand::Operand;
pub use osteon_tensor::{PadMode, Reduce};
pub use random::manual_seed;
pub use sets::{Interpolation, UniqueTensors};
pub use tensor::Tensor;
