//! PyTorch's `nn.functional`, by its names.

use crate::Tensor;
pub use crate::attention::{Attention, scaled_dot_product_attention};
pub use crate::conv::{conv_transpose2d, conv1d, conv2d, unfold};
use crate::graph::mode::no_grad;
use crate::graph::{one, record, rule};
pub use crate::loss::{
    Classes, Reduction, binary_cross_entropy, binary_cross_entropy_with_logits, cross_entropy,
    huber_loss, kl_div, l1_loss, mse_loss, nll_loss, smooth_l1_loss,
};
use crate::pointwise::pairwise;
pub use crate::pool::{
    adaptive_avg_pool2d, avg_pool1d, avg_pool2d, max_pool1d, max_pool1d_with_indices, max_pool2d,
    max_pool2d_with_indices,
};
use crate::product::Product;
use osteon_spec::{Error, Kind, Result};
pub use osteon_tensor::{Average, Conv, ConvTranspose, Padding, Pool};
use osteon_tensor::{BinaryOp, View};
use smallvec::smallvec;

pub(crate) fn view(tensor: Option<&Tensor>) -> Option<&View> {
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
    let out = input.as_view().linear(weight.as_view(), view(bias))?;
    let inputs: Vec<&Tensor> = [input, weight].into_iter().chain(bias).collect();
    record(out, &inputs, |r, _| {
        let names = Product::linear(input.dim(), weight.dim());
        names.save(r, input, weight, 0)?;
        Ok(rule(move |b| {
            let g = b.grad()?;
            let [x, w] = names.gradients(b, &g, 0)?;
            Ok(smallvec![x, w, Some(g)])
        }))
    })
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
    looked_up(indices, weight, None, false)
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
    /// Whether a row's gradient is divided by how often the row is looked up: its mean instead of its sum.
    pub scale_grad_by_freq: bool,
}

impl Default for Embedding {
    /// PyTorch's: no padding, no largest norm, an order of 2, gradients summed.
    fn default() -> Self {
        Embedding {
            padding_idx: None,
            max_norm: None,
            norm_type: 2.0,
            scale_grad_by_freq: false,
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
    let padding = how.padding_idx.map(|p| p.rem_euclid(rows));
    looked_up(indices, weight, padding, how.scale_grad_by_freq)
}

/// Rows of a weight, of which one may get no gradient, and each the mean of its gradients.
#[track_caller]
fn looked_up(
    indices: &Tensor,
    weight: &Tensor,
    padding: Option<isize>,
    mean: bool,
) -> Result<Tensor> {
    let out = weight.as_view().embedding(indices.as_view())?;
    record(out, &[weight], |r, _| {
        r.save_view(indices.as_view())?;
        Ok(rule(move |b| {
            let (g, whole) = b.zeros(0)?;
            let rows = b.saved(0)?.reshape([-1])?;
            let shape = [rows.numel() as isize, b.sizes(0)[1] as isize];
            let mut g = g.reshape(shape)?;
            if mean {
                let times = rows.bincount(None, 0)?.index_select(0, &rows)?;
                g = g.div(&times.unsqueeze(1)?)?;
            }
            whole.index_add_(0, &rows, &g, 1)?;
            padding.map_or(Ok(()), |p| whole.select(0, p)?.zero_())?;
            one(whole)
        }))
    })
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
