//! PyTorch's `nn.functional`, by its names.

use crate::Tensor;
use osteon_spec::Result;
use osteon_tensor::View;
pub use osteon_tensor::{Conv, ConvTranspose, Padding};

fn view(tensor: Option<&Tensor>) -> Option<&View> {
    tensor.map(Tensor::as_view)
}

/// `input · weightᵀ + bias` over the last dim of the input.
///
/// Allocates the result, row-major; nothing is copied before.
///
/// # Errors
/// Shapes that do not fit; different dtypes; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([[1f32, 2.0]])?;
/// let (w, b) = (Tensor::new([[1f32, 1.0], [0.0, 3.0]])?, Tensor::new([0.5f32, 0.0])?);
/// assert_eq!(functional::linear(&x, &w, Some(&b))?.to_vec::<f32>()?, [3.5, 6.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn linear(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    input
        .as_view()
        .linear(weight.as_view(), view(bias))
        .map(Tensor::from_view)
}

/// Products of windows along the last dim with kernels, summed. The input is `(batch, channels, length)`, the batch may
/// be absent; the weight is `(made, channels / groups, length)`.
///
/// Allocates the result, and a copy of the input where it is padded.
///
/// # Errors
/// Shapes, groups or dtypes that do not fit; a kernel larger than the padded input; a guard in the way; out of memory.
#[track_caller]
pub fn conv1d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    how: &Conv<1>,
) -> Result<Tensor> {
    input
        .as_view()
        .conv(weight.as_view(), view(bias), how, "conv1d")
        .map(Tensor::from_view)
}

/// [`conv1d`] over two dims: images. Windows are read where they lie; the result is channels-last where the input or
/// the weight is.
///
/// # Errors
/// As [`conv1d`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Conv, Padding}};
/// # use osteon_spec::{DType, Device};
/// let x = Tensor::ones([1, 1, 3, 3], DType::F32, &Device::cpu())?;
/// let how = Conv { padding: Padding::Same, ..Conv::default() };
/// let y = functional::conv2d(&x, &x, None, &how)?;
/// assert_eq!(y.to_vec::<f32>()?, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn conv2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    how: &Conv<2>,
) -> Result<Tensor> {
    input
        .as_view()
        .conv(weight.as_view(), view(bias), how, "conv2d")
        .map(Tensor::from_view)
}

/// The convolution whose windows are those of the result: what [`conv2d`] does to gradients.
///
/// # Errors
/// As [`conv1d`].
#[track_caller]
pub fn conv_transpose2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    how: &ConvTranspose<2>,
) -> Result<Tensor> {
    input
        .as_view()
        .conv_transpose(weight.as_view(), view(bias), how, "conv_transpose2d")
        .map(Tensor::from_view)
}
