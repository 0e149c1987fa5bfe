//! Views of storages, and the one door to the devices: every operation is here as a function of views;
//! gradients are the next layer's.

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod advanced;
mod arrange;
mod attention;
mod average;
mod backend;
mod chain;
mod choose;
mod conv;
mod copy;
mod cpu;
mod create;
mod decompose;
mod einsum;
mod elementwise;
mod embedding;
pub mod format;
mod gradients;
mod guard;
mod index;
mod inplace;
mod join;
mod linalg;
mod masks;
mod matmul;
mod meta;
mod norm;
mod number;
mod pad;
mod pooling;
mod random;
mod read;
mod reduce;
mod scan;
mod scatter;
mod sets;
mod softmax;
mod sort;
mod target;
mod view;
mod views;
mod windows;
mod write;

pub use attention::Attention;
pub use average::{Average, Averages};
pub use backend::Arg;
pub use conv::{Conv, ConvTranspose, Padding};
pub use elementwise::{Call, Compute, Op};
pub use gradients::NormalizationOf;
pub use guard::{ReadGuard, WriteGuard};
pub use linalg::{Added, Weights};
pub use norm::{Affine, Normalized, Running, rms_eps};
pub use number::{Data, Number};
pub use osteon_kernels::limits;
pub use osteon_kernels::par::{num_threads, set_num_threads};
pub use osteon_kernels::{BinaryOp, CompareOp, Distribution, Pick, TernaryOp, Triangle, UnaryOp};
pub use pad::PadMode;
pub use pooling::Pool;
pub use random::{RngState, get_rng_state, manual_seed, set_rng_state, with_rng_state};
pub use scatter::Reduce;
pub use sets::Unique;
pub use view::View;
pub use windows::{Part, Windows};
