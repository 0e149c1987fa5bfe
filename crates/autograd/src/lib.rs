//! The users' tensor: a view of a storage, and its place in the graph of derivatives.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod advanced;
mod arrange;
mod copies;
mod create;
mod display;
mod elementwise;
mod index;
mod inplace;
mod join;
mod linalg;
mod matmul;
mod operand;
mod sort;
mod tensor;
mod views;

pub use copies::To;
pub use index::Index;
pub use operand::Operand;
pub use tensor::Tensor;
