//! CPU loops over raw pointers and a [`Plan`](osteon_spec::Plan).
//!
//! Kernels allocate nothing and know no tensor. A kernel is looked up once, for an operation and
//! its dtypes, and then walks a plan; operands that have another dtype than the loop computes in
//! are converted block by block on the stack, never as a whole. Work is split over the threads of
//! [`par`], and no result depends on their number.
//!
//! Every function that takes pointers is `unsafe` under one contract, the *walk contract*: for each
//! operand, every position of the plan, counted in bytes from the operand's pointer, holds one
//! element of the operand's size within one live allocation, initialised unless it is only written
//! (no alignment is asked for). Nothing else writes what is read, and nothing else touches what is
//! written, until the function returns. A destination may be an input as well where it is the
//! same memory at the same positions; otherwise what is written overlaps nothing that is read.

#![deny(missing_docs)]

mod accumulator;
mod arithmetic;
mod attention;
mod binary;
mod cast;
mod classes;
mod compare;
mod complex;
mod contract;
mod convert;
mod copy;
mod cores;
mod division;
mod dot;
mod element;
mod exponentials;
mod extremes;
mod fill;
mod gather;
mod index;
mod kernel;
mod key;
mod lane;
pub mod limits;
mod mask;
mod math;
mod micro;
pub mod naive;
mod norm;
mod operand;
pub mod par;
mod pooling;
mod radix;
mod random;
mod recurrence;
mod reduce;
mod rows;
mod runs;
mod scan;
mod scatter;
mod select;
mod sequence;
mod simd;
mod sort;
mod special;
mod spread;
mod stream;
mod summaries;
mod sums;
mod ternary;
mod tile;
mod transpose;
mod triangle;
mod unary;
mod value;

pub use attention::Attention;
pub use binary::{BinaryOp, any_zero, binary, binary_by_number};
pub use cast::cast;
pub use classes::{ClassLists, Classes};
pub use compare::{CompareOp, compare};
pub use contract::{Axis, Contraction};
pub use copy::copy;
pub use element::{Bool, Element, F8E4M3FN, F8E5M2};
pub use fill::fill;
pub use half::{bf16, f16};
pub use index::{Index, Indexed};
pub use kernel::{Kernel, Params};
pub use key::{key_of_nan, order_keys};
pub use mask::{count_nonzero, masked_scatter, masked_select, nonzero};
pub use norm::{NormalizeOp, SoftmaxOp, normalize, softmax};
pub use num_complex::Complex;
pub use osteon_spec::DType;
pub use pooling::{Divisor, Pooling, Span, Weighted, avg_pool, avg_spread, max_pool, weighted};
pub use radix::zeroed;
pub use random::{Distribution, Random, random, shuffled};
pub use recurrence::{Lines, recurrence};
pub use reduce::{Out, ReduceOp, Reducer, reduce};
pub use rows::{ROW_OPERANDS, RowKernel, RowOp, row_kernel};
pub use select::select;
pub use sequence::{Sequence, sequence};
pub use sort::{Lanes, NotSorted, Pick, sort};
pub use ternary::{TernaryOp, ternary};
pub use triangle::{Matrices, Triangle, triangle};
pub use unary::{UnaryOp, unary};
pub use value::Value;
