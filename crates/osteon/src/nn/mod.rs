//! Neural networks: modules with named parameters, the layers of PyTorch's `nn`, losses and initial values.
//!
//! ```
//! use osteon::nn::{self, Layer, Linear, Module};
//! use osteon::{Result, Tensor, optim};
//!
//! nn::module! {
//!     struct Mlp(inputs: usize, classes: usize) {
//!         hidden: Linear = Linear::new(inputs, 16)?,
//!         output: Linear = Linear::new(16, classes)?,
//!     }
//!
//!     fn forward(&self, x: &Tensor) -> Result<Tensor> {
//!         self.output.forward(&self.hidden.forward(x)?.relu()?)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! osteon::manual_seed(0);
//! let model = Mlp::new(4, 3)?;
//! let mut optimizer = optim::Optimizer::new(model.parameters(), optim::SGD { lr: 0.5, ..Default::default() })?;
//! let (x, y) = (Tensor::randn([8, 4], osteon::DType::F32, &osteon::Device::cpu())?, Tensor::new([0i64, 1, 2, 0, 1, 2, 0, 1])?);
//! for _ in 0..3 {
//!     let loss = nn::CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?;
//!     optimizer.zero_grad()?;
//!     loss.backward()?;
//!     optimizer.step()?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Names, shapes and initial values of parameters are PyTorch's, so that its checkpoints load
//! ([`Module::load`]). While a module runs, what it makes is in the scope of its name
//! ([`memory::scope`](crate::memory::scope)); its parameters have their names as labels. Both come by themselves.

mod activation;
mod attention;
mod conv;
mod define;
mod info;
pub mod init;
mod linear;
mod loss;
mod module;
mod norm;
mod sequential;
mod state;
mod transformer;

pub use crate::module;
pub use activation::{
    AdaptiveAvgPool2d, AvgPool2d, Dropout, ELU, Flatten, GELU, Hardswish, Identity, LeakyReLU,
    LogSigmoid, LogSoftmax, MaxPool2d, Mish, ReLU, ReLU6, SELU, SiLU, Sigmoid, Softmax, Softplus,
    Tanh,
};
pub use attention::{Masks, MultiheadAttention};
pub use conv::{Conv1d, Conv2d};
pub use info::{Info, Running};
pub use init::{build_in, defaults};
pub use linear::{Embedding, Linear};
pub use loss::{
    BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, HuberLoss, KLDivLoss, L1Loss, MSELoss, NLLLoss,
    SmoothL1Loss,
};
pub use module::{Func, Layer, Module, Parts, func, name_parts, parameter};
pub use norm::{BatchNorm, BatchNorm1d, BatchNorm2d, LayerNorm, RMSNorm};
pub use osteon_autograd::functional;
pub use sequential::Sequential;
pub use state::{StateDict, Unmatched};
pub use transformer::{EncoderOptions, TransformerEncoderLayer};
