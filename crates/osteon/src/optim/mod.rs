//! Optimisers, schedules of learning rates, and clipping of gradients: PyTorch's `optim`, step by step the same numbers.
//!
//! An [`Optimizer`] holds parameters and an algorithm: [`SGD`], [`Adam`], [`AdamW`] or [`RMSprop`], a plain struct of
//! its numbers. A step writes parameters and states in place, piece by piece: beside them it needs a scratch of
//! a few hundred kilobytes, whatever the model's size.
//!
//! ```
//! use osteon::{Tensor, nn::parameter, optim::{AdamW, Optimizer}};
//! let w = parameter(Tensor::new([5f64, -3.0])?)?;
//! let mut optimizer = Optimizer::new([&w], AdamW { lr: 0.1, ..AdamW::default() })?;
//! for _ in 0..200 {
//!     optimizer.zero_grad()?;
//!     w.mul(&w)?.sum()?.backward()?;
//!     optimizer.step()?;
//! }
//! assert!(w.abs()?.max()?.item::<f64>()? < 0.01);
//! # Ok::<(), osteon::Error>(())
//! ```

mod adam;
mod clip;
mod optimizer;
mod piece;
mod plateau;
mod rmsprop;
mod schedule;
mod sgd;
mod state;

pub use adam::{Adam, AdamW};
pub use clip::{clip_grad_norm_, clip_grad_value_};
pub use optimizer::{Algorithm, Group, Optimizer, Step};
pub use piece::Scratch;
pub use plateau::{Metric, ReduceLROnPlateau, Seen};
pub use rmsprop::RMSprop;
pub use schedule::{
    Anneal, ConstantLR, CosineAnnealingLR, ExponentialLR, LambdaLR, LinearLR, MultiStepLR,
    OneCycleLR, PolynomialLR, Schedule, Scheduler, SequentialLR, StepLR,
};
pub use sgd::SGD;
