//! The users' tensor: a view of a storage, and its place in the graph of derivatives.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod advanced;
mod arrange;
mod activation;
mod arithmetic;
mod casts;
mod copies;
mod create;
mod display;
mod elementwise;
mod index;
mod inplace;
mod join;
mod linalg;
mod matmul;
pub mod functional;
mod operand;
mod sort;
mod random;
mod norm;
mod reduce;
mod scan;
mod tensor;
mod views;

pub use arithmetic::Rounding;
pub use copies::To;
pub use index::Index;
pub use norm::{BatchNorm, MatrixNorm};
pub use operand::Operand;
pub use random::manual_seed;
pub use tensor::Tensor;
