//! PyTorch's `nn.functional`, by its names.

use crate::Tensor;
use crate::graph::mode::no_grad;
pub use crate::loss::{
    Classes, Reduction, binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy,
    huber_loss, kl_div, l1_loss, mse_loss, nll_loss, smooth_l1_loss,
};
use crate::pointwise::pairwise;
use osteon_spec::{Error, Kind, Result};
pub use osteon_tensor::{Average, Conv, ConvTranspose, Padding, Pool};
use osteon_tensor::{BinaryOp, View};

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
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Conv}};
/// let (x, w) = (Tensor::new([[1f32, 2.0, 4.0]])?, Tensor::new([[[1f32, 10.0]]])?);
/// let y = functional::conv1d(&x, &w, None, &Conv::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [21.0, 42.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
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
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, ConvTranspose}};
/// let (x, w) = (Tensor::new([[[[1f32, 2.0]]]])?, Tensor::new([[[[1f32, 10.0]]]])?);
/// let y = functional::conv_transpose2d(&x, &w, None, &ConvTranspose::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
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

/// The maxima of windows over the last two dims of images. The result is channels-last where the input is.
///
/// Allocates the result only.
///
/// # Errors
/// Other ranks than 3 and 4; windows that do not fit; `bool` or complex numbers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[[1f32, 5.0], [3.0, 2.0]]])?;
/// assert_eq!(functional::max_pool2d(&x, &Pool::new([2, 2]))?.to_vec::<f32>()?, [5.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool2d(input: &Tensor, how: &Pool<2>) -> Result<Tensor> {
    input
        .as_view()
        .max_pool2d(how, false)
        .map(|(out, _)| Tensor::from_view(out))
}

/// [`max_pool2d`], and where in its image each maximum is.
///
/// # Errors
/// As [`max_pool2d`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[[1f32, 5.0], [3.0, 2.0]]])?;
/// let (max, at) = functional::max_pool2d_with_indices(&x, &Pool::new([2, 2]))?;
/// assert_eq!((max.item::<f32>()?, at.item::<i64>()?), (5.0, 1));
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool2d_with_indices(input: &Tensor, how: &Pool<2>) -> Result<(Tensor, Tensor)> {
    input.as_view().max_pool2d(how, true).map(both)
}

/// The maxima of windows over the last dim.
///
/// # Errors
/// As [`max_pool2d`], of ranks 2 and 3; integers, as in PyTorch.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[1f32, 5.0, 3.0, 2.0]])?;
/// assert_eq!(functional::max_pool1d(&x, &Pool::new([2]))?.to_vec::<f32>()?, [5.0, 3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool1d(input: &Tensor, how: &Pool<1>) -> Result<Tensor> {
    input
        .as_view()
        .max_pool1d(how, false)
        .map(|(out, _)| Tensor::from_view(out))
}

/// [`max_pool1d`], and where each maximum is.
///
/// # Errors
/// As [`max_pool2d`], of ranks 2 and 3.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[1f32, 5.0, 3.0, 2.0]])?;
/// let (_, at) = functional::max_pool1d_with_indices(&x, &Pool::new([2]))?;
/// assert_eq!(at.to_vec::<i64>()?, [1, 2]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool1d_with_indices(input: &Tensor, how: &Pool<1>) -> Result<(Tensor, Tensor)> {
    input.as_view().max_pool1d(how, true).map(both)
}

fn both((out, at): (View, Option<View>)) -> (Tensor, Tensor) {
    // Positions were asked for.
    let at = at.unwrap_or_else(|| out.clone());
    (Tensor::from_view(out), Tensor::from_view(at))
}

/// The averages of windows over the last two dims of images.
///
/// # Errors
/// As [`max_pool2d`]; integers other than `int64`.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Average, Pool}};
/// let x = Tensor::new([[[1f32, 5.0], [4.0, 2.0]]])?;
/// let y = functional::avg_pool2d(&x, &Pool::new([2, 2]), Average::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn avg_pool2d(input: &Tensor, how: &Pool<2>, average: Average) -> Result<Tensor> {
    input
        .as_view()
        .avg_pool2d(how, average)
        .map(Tensor::from_view)
}

/// The averages of windows over the last dim.
///
/// # Errors
/// As [`avg_pool2d`], of ranks 2 and 3.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Average, Pool}};
/// let x = Tensor::new([[1f32, 5.0, 4.0, 2.0]])?;
/// let y = functional::avg_pool1d(&x, &Pool::new([2]), Average::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn avg_pool1d(input: &Tensor, how: &Pool<1>, average: Average) -> Result<Tensor> {
    input
        .as_view()
        .avg_pool1d(how, average)
        .map(Tensor::from_view)
}

/// Averages of windows that divide the last two dims into as many as the result has; `None` keeps a size.
///
/// # Errors
/// As [`avg_pool2d`]; integers.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([[[1f32, 5.0, 4.0, 2.0], [1.0, 1.0, 0.0, 2.0]]])?;
/// let y = functional::adaptive_avg_pool2d(&x, [Some(1), Some(2)])?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn adaptive_avg_pool2d(input: &Tensor, sizes: [Option<isize>; 2]) -> Result<Tensor> {
    input
        .as_view()
        .adaptive_avg_pool2d(sizes)
        .map(Tensor::from_view)
}

/// The elements of each window over the last two dims as a column. Allocates a result in which every element is as
/// often as windows hold it; [`conv2d`] needs no such thing.
///
/// # Errors
/// Other ranks than 3 and 4; windows that do not fit; integers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([[[1f32, 2.0, 3.0]]])?;
/// let columns = functional::unfold(&x, [1, 2], [1, 1], [0, 0], [1, 1])?;
/// assert_eq!(columns.to_vec::<f32>()?, [1.0, 2.0, 2.0, 3.0]); // windows (1, 2) and (2, 3)
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn unfold(
    input: &Tensor,
    kernel: [isize; 2],
    dilation: [isize; 2],
    padding: [isize; 2],
    stride: [isize; 2],
) -> Result<Tensor> {
    input
        .as_view()
        .unfold_windows(kernel, dilation, padding, stride)
        .map(Tensor::from_view)
}

/// The rows of `weight` that the indices name, each index replaced by its row.
///
/// Allocates the result.
///
/// # Errors
/// A weight that is no matrix; an index that is negative or out of range; another dtype of indices than `int64` and
/// `int32`; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let weight = Tensor::new([[1f32, 2.0], [3.0, 4.0]])?;
/// let rows = functional::embedding(&Tensor::new([1i64, 0, 1])?, &weight)?;
/// assert_eq!(rows.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn embedding(indices: &Tensor, weight: &Tensor) -> Result<Tensor> {
    weight
        .as_view()
        .embedding(indices.as_view())
        .map(Tensor::from_view)
}

/// What [`embedding_with`] takes beside indices and weight.
#[derive(Clone, Copy, Debug)]
pub struct Embedding {
    /// The row that gets no gradient, counted from the end where it is negative.
    pub padding_idx: Option<isize>,
    /// The norm to which rows that are looked up and have a larger one are scaled down, in the weight itself.
    pub max_norm: Option<f64>,
    /// The order of that norm.
    pub norm_type: f64,
}

impl Default for Embedding {
    /// PyTorch's: no padding, no largest norm, an order of 2.
    fn default() -> Self {
        Embedding {
            padding_idx: None,
            max_norm: None,
            norm_type: 2.0,
        }
    }
}

/// [`embedding`] with a row that gets no gradient, or a largest norm of the rows that are looked up, which changes the
/// weight in place.
///
/// Allocates the result, and with a largest norm the rows that are looked up as well.
///
/// # Errors
/// As [`embedding`]; a padding index out of range.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Embedding}};
/// let weight = Tensor::new([[3.0, 4.0], [30.0, 40.0]])?;
/// let how = Embedding { max_norm: Some(2.5), ..Embedding::default() };
/// let rows = functional::embedding_with(&Tensor::new([0i64])?, &weight, &how)?;
/// assert!(rows.allclose(&Tensor::new([[1.5, 2.0]])?, 1e-6, 0.0)?);
/// assert!(weight.select(0, 0)?.allclose(&Tensor::new([1.5, 2.0])?, 1e-6, 0.0)?);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn embedding_with(indices: &Tensor, weight: &Tensor, how: &Embedding) -> Result<Tensor> {
    let op = "embedding";
    let rows = weight.shape().first().copied().unwrap_or(0) as isize;
    if let Some(padding) = how.padding_idx.filter(|p| !(-rows..rows).contains(p)) {
        let message = format!("padding_idx is {padding}, but there are {rows} rows");
        return Err(Error::new(Kind::Index, message).op(op));
    }
    if let Some(most) = how.max_norm {
        no_grad(|| limit_rows(indices, weight, most, how.norm_type)).map_err(|e| e.op(op))?;
    }
    let found = embedding(indices, weight)?;
    match how.padding_idx {
        Some(padding) if found.requires_grad() => {
            // The same numbers, of which those of the padding have no history.
            let is_padding = indices.eq(padding.rem_euclid(rows) as i64)?.unsqueeze(-1)?;
            found.detach()?.r#where(&is_padding, &found)
        }
        _ => Ok(found),
    }
}

/// Scales the rows that are named down to a largest norm, in place.
#[track_caller]
fn limit_rows(indices: &Tensor, weight: &Tensor, most: f64, order: f64) -> Result<()> {
    // Checks the indices, and the weight's shape.
    embedding(&indices.flatten(0, -1)?.narrow(0, 0, 0)?, weight)?;
    let named = indices.unique()?.values;
    let rows = weight.index_select(0, &named)?;
    let norms = rows.vector_norm(order, [1], true)?;
    let scale = norms.add(1e-7)?.reciprocal()?.mul(most)?;
    let scale = scale.r#where(&norms.gt(most)?, 1)?;
    weight.index_copy_(0, &named, &rows.mul(&scale)?)
}

/// `x`, or where it is not positive `weight · x`: a weight for each channel, dim 1, or one for all.
///
/// # Errors
/// As many weights as neither; different dtypes; integers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let (x, weight) = (Tensor::new([-2f32, 3.0])?, Tensor::new([0.25f32])?);
/// assert_eq!(functional::prelu(&x, &weight)?.to_vec::<f32>()?, [-0.5, 3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn prelu(input: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let op = "prelu";
    let channels = if input.dim() < 2 { 1 } else { input.shape()[1] };
    if weight.dim() > 1 || (weight.numel() != 1 && weight.numel() != channels) {
        return Err(Error::new(
            Kind::Shape,
            format!(
                "expected 1 or {channels} weights, got shape {:?}",
                weight.shape()
            ),
        )
        .op(op));
    }
    if weight.dtype() != input.dtype() {
        return Err(Error::new(
            Kind::DType,
            format!(
                "the weight has {}, but the input {}",
                weight.dtype(),
                input.dtype()
            ),
        )
        .op(op));
    }
    let mut shape = vec![1; input.dim().saturating_sub(1)];
    if let Some(first) = shape.first_mut() {
        *first = weight.numel() as isize;
    }
    let weight = if weight.numel() == 1 {
        weight.view(vec![1; input.dim()])?
    } else {
        weight.view(shape)?
    };
    pairwise(op, BinaryOp::Prelu, input, &weight, &[])
}

/// The first half along a dim times the sigmoid of the second.
///
/// # Errors
/// An odd size; integers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([3f32, 8.0, 0.0, 0.0])?;
/// assert_eq!(functional::glu(&x, 0)?.to_vec::<f32>()?, [1.5, 4.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn glu(input: &Tensor, dim: isize) -> Result<Tensor> {
    let size = input.size(dim).map_err(|e| e.op("glu"))?;
    if size % 2 != 0 {
        return Err(Error::new(
            Kind::Shape,
            format!("size {size} of dim {dim} must be even"),
        )
        .op("glu"));
    }
    let half = (size / 2) as isize;
    let (a, b) = (input.narrow(dim, 0, half)?, input.narrow(dim, half, half)?);
    pairwise("glu", BinaryOp::Gate, &a, &b, &[])
}

/// Each element with probability `p` replaced by 0, the others scaled so that the mean stays; the input itself where
/// not in training.
///
/// # Errors
/// A `p` beyond 0 to 1; integers in training; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([1f32, 1.0, 1.0, 1.0])?;
/// let y = functional::dropout(&x, 0.5, true)?.to_vec::<f32>()?;
/// assert!(y.iter().all(|&v| v == 0.0 || v == 2.0));
/// assert!(functional::dropout(&x, 0.5, false)?.is(&x));
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn dropout(input: &Tensor, p: f64, training: bool) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&p) {
        return Err(Error::new(
            Kind::Value,
            format!("the probability must be from 0 to 1, got {p}"),
        )
        .op("dropout"));
    }
    if !training || p == 0.0 {
        return Ok(input.clone());
    }
    if p == 1.0 {
        return input.mul(0.0);
    }
    let kept = input.empty_like()?;
    kept.bernoulli_(1.0 - p)?;
    kept.div_(1.0 - p)?;
    input.mul(&kept)
}

/// What [`scaled_dot_product_attention`] takes beside query, key and value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Which keys a query may look at (`bool`), or what is added to their scores; broadcasts to them.
    pub mask: Option<&'a Tensor>,
    /// Whether a query looks at no key after it.
    pub is_causal: bool,
    /// The factor of scores; one over the root of the vectors' size in its absence.
    pub scale: Option<f64>,
    /// Whether several heads of the query may share a head of key and value.
    pub enable_gqa: bool,
    /// The probability with which a weight becomes 0; the others are scaled so that the mean stays. Always: whoever
    /// evaluates passes 0.
    pub dropout_p: f64,
}

/// `softmax(query · keyᵀ · scale + mask) · value`. Heads and batches broadcast without being copied; the result has the
/// query's order of dims; a query that may look at no key gives zeros. Allocates the scores as well.
///
/// # Errors
/// Shapes or dtypes that do not fit; a mask together with `is_causal`; a probability beyond 0 to 1; a guard in the way; out of
/// memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Attention}};
/// let x = Tensor::new([[1f32, 0.0], [0.0, 1.0]])?;
/// let how = Attention { is_causal: true, ..Attention::default() };
/// let y = functional::scaled_dot_product_attention(&x, &x, &x, &how)?;
/// assert_eq!(y.select(0, 0)?.to_vec::<f32>()?, [1.0, 0.0]); // the first sees itself alone
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn scaled_dot_product_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    how: &Attention<'_>,
) -> Result<Tensor> {
    let how = osteon_tensor::Attention {
        mask: view(how.mask),
        is_causal: how.is_causal,
        scale: how.scale,
        enable_gqa: how.enable_gqa,
        dropout_p: how.dropout_p,
    };
    query
        .as_view()
        .attention(key.as_view(), value.as_view(), &how)
        .map(Tensor::from_view)
}
