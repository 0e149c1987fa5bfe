//! Losses: what a prediction costs, element by element, and how those costs become one number.

use crate::Tensor;
use crate::graph::{Recorder, wanted};
use crate::pointwise::pairwise;
use crate::rules::softmax::cross_entropy as cross_entropy_rule;
use osteon_spec::{Category, DType, Error, Kind, Result};
use osteon_tensor::BinaryOp;

/// What becomes of the costs of all elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// They stay as they are.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// Their sum, by the size of the first dim: [`kl_div`]'s right mean.
    BatchMean,
}

impl Reduction {
    #[track_caller]
    fn of(self, costs: Tensor, batch: usize) -> Result<Tensor> {
        match self {
            Reduction::None => Ok(costs),
            Reduction::Mean => costs.mean(),
            Reduction::Sum => costs.sum(),
            Reduction::BatchMean => costs.sum()?.div(batch as f64),
        }
    }
}

/// How classes count in [`nll_loss`] and [`cross_entropy`].
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    /// The weight of each class.
    pub weight: Option<&'a Tensor>,
    /// A class whose targets cost nothing, nor count in the mean.
    pub ignore_index: i64,
    /// How much of every target is spread over all classes.
    pub label_smoothing: f64,
    /// What becomes of the costs.
    pub reduction: Reduction,
}

impl Default for Classes<'_> {
    /// PyTorch's: no weights, -100 ignored, no smoothing, the mean.
    fn default() -> Self {
        Classes {
            weight: None,
            ignore_index: -100,
            label_smoothing: 0.0,
            reduction: Reduction::Mean,
        }
    }
}

#[cold]
fn refuse(kind: Kind, op: &'static str, message: String) -> Error {
    Error::new(kind, message).op(op)
}

/// `(input - target)²`. Both broadcast.
///
/// # Errors
/// Shapes that do not broadcast; anything but floats; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([1f32, 2.0])?, Tensor::new([1f32, 4.0])?);
/// assert_eq!(functional::mse_loss(&x, &y, Reduction::Mean)?.item::<f32>()?, 2.0);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn mse_loss(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    reduction.of(
        pairwise("mse_loss", BinaryOp::SquaredError, input, target, &[])?,
        1,
    )
}

/// `|input - target|`. Both broadcast.
///
/// # Errors
/// As [`mse_loss`]; the mean of integers.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([1f32, 2.0])?, Tensor::new([0f32, 5.0])?);
/// assert_eq!(functional::l1_loss(&x, &y, Reduction::Mean)?.item::<f32>()?, 2.0);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn l1_loss(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    reduction.of(input.sub(target)?.abs()?, 1)
}

/// `½ (input - target)² / beta` where the difference is less than `beta`, else linear. Both broadcast.
///
/// # Errors
/// A negative `beta`; as [`mse_loss`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([1f32, 3.0])?, Tensor::new([0f32, 0.0])?);
/// let loss = functional::smooth_l1_loss(&x, &y, 2.0, Reduction::None)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.25, 2.0]); // ½ 1² / 2, and 3 - ½ 2
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn smooth_l1_loss(
    input: &Tensor,
    target: &Tensor,
    beta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    let op = "smooth_l1_loss";
    if beta < 0.0 {
        return Err(refuse(
            Kind::Value,
            op,
            format!("beta must not be negative, got {beta}"),
        ));
    }
    reduction.of(
        pairwise(op, BinaryOp::SmoothL1, input, target, &[beta.into()])?,
        1,
    )
}

/// `½ (input - target)²` where the difference is at most `delta`, else linear. Both broadcast.
///
/// # Errors
/// A `delta` that is not positive; as [`mse_loss`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([1f32, 3.0])?, Tensor::new([0f32, 0.0])?);
/// let loss = functional::huber_loss(&x, &y, 2.0, Reduction::None)?;
/// assert_eq!(loss.to_vec::<f32>()?, [0.5, 4.0]); // ½ 1², and 2 (3 - ½ 2)
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn huber_loss(
    input: &Tensor,
    target: &Tensor,
    delta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    let op = "huber_loss";
    if delta <= 0.0 {
        return Err(refuse(
            Kind::Value,
            op,
            format!("delta must be positive, got {delta}"),
        ));
    }
    let costs = pairwise(op, BinaryOp::Huber, input, target, &[delta.into()])?;
    let (found, dtype) = (costs.dtype(), input.dtype());
    if !found.can_cast(dtype) {
        let message =
            format!("costs of {found} do not fit the input's {dtype}; cast with to() first");
        return Err(refuse(Kind::DType, op, message));
    }
    // PyTorch's, whatever the target's dtype.
    reduction.of(costs.to(dtype)?, 1)
}

/// `target · (log(target) - input)`; with `log_target` the target is a logarithm already.
///
/// # Errors
/// Integers; as [`mse_loss`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([-1f32, -2.0])?, Tensor::new([1f32, 0.0])?);
/// assert_eq!(functional::kl_div(&x, &y, false, Reduction::Sum)?.item::<f32>()?, 1.0);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn kl_div(
    input: &Tensor,
    target: &Tensor,
    log_target: bool,
    reduction: Reduction,
) -> Result<Tensor> {
    let op = "kl_div";
    if [input, target]
        .iter()
        .any(|t| t.dtype().category() < Category::Float)
    {
        return Err(refuse(
            Kind::DType,
            op,
            "integers are not supported; cast with to() first".to_owned(),
        ));
    }
    let kind = if log_target {
        BinaryOp::KlDivLog
    } else {
        BinaryOp::KlDiv
    };
    let batch = input.shape().first().copied().unwrap_or(1);
    reduction.of(pairwise(op, kind, input, target, &[])?, batch)
}

/// `-(target · log(input) + (1 - target) · log(1 - input))`, with logarithms of -100 at least.
///
/// # Errors
/// Shapes or dtypes that differ; an input or a target beyond 0 to 1; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([0.5f64, 0.75])?, Tensor::new([1f64, 0.0])?);
/// let loss = functional::binary_cross_entropy(&x, &y, None, Reduction::Sum)?;
/// assert!((loss.item::<f64>()? - 8f64.ln()).abs() < 1e-12); // -log ½ - log ¼
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn binary_cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    let op = "binary_cross_entropy";
    check_same_shape(input, target, op)?;
    for (what, tensor) in [("target", Some(target)), ("weight", weight)] {
        if let Some(tensor) = tensor.filter(|t| t.dtype() != input.dtype()) {
            let message = format!(
                "the {what} has {}, but the input {}",
                tensor.dtype(),
                input.dtype()
            );
            return Err(refuse(Kind::DType, op, message));
        }
    }
    let costs = pairwise(op, BinaryOp::BinaryCrossEntropy, input, target, &[])?;
    if !input.device().is_meta() {
        for (what, tensor) in [("input", input), ("target", target)] {
            let inside = tensor.ge(0.0)?.logical_and(&tensor.le(1.0)?)?;
            if !inside.all()?.item::<bool>()? {
                return Err(refuse(
                    Kind::Value,
                    op,
                    format!("all elements of the {what} must be from 0 to 1"),
                ));
            }
        }
    }
    reduction.of(weighted(costs, weight, op)?, 1)
}

/// [`binary_cross_entropy`] of `sigmoid(input)`, without loss of digits. `pos_weight` multiplies the costs of positive
/// targets.
///
/// # Errors
/// Shapes that differ; a target of integers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Reduction}};
/// let (x, y) = (Tensor::new([0f64, 0.0])?, Tensor::new([1f64, 0.0])?);
/// let loss = functional::binary_cross_entropy_with_logits(&x, &y, None, None, Reduction::Mean)?;
/// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-12);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn binary_cross_entropy_with_logits(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    let op = "binary_cross_entropy_with_logits";
    check_same_shape(input, target, op)?;
    if !target.dtype().is_float() {
        return Err(refuse(
            Kind::DType,
            op,
            format!("the target must be floats, got {}", target.dtype()),
        ));
    }
    // (1 - y) x - w log(sigmoid(x)), where w is 1 + (p - 1) y.
    let negative = target.neg()?.add(1.0)?.mul(input)?;
    let mut positive = input.logsigmoid()?;
    if let Some(pos_weight) = pos_weight {
        positive = positive.mul(&pos_weight.sub(1.0)?.mul(target)?.add(1.0)?)?;
    }
    reduction.of(weighted(negative.sub(&positive)?, weight, op)?, 1)
}

fn check_same_shape(input: &Tensor, target: &Tensor, op: &'static str) -> Result<()> {
    if input.shape() == target.shape() {
        return Ok(());
    }
    let message = format!(
        "the target has shape {:?}, but the input {:?}",
        target.shape(),
        input.shape()
    );
    Err(refuse(Kind::Shape, op, message))
}

/// Costs times weights that broadcast to them.
#[track_caller]
fn weighted(costs: Tensor, weight: Option<&Tensor>, op: &'static str) -> Result<Tensor> {
    let Some(weight) = weight else {
        return Ok(costs);
    };
    let product = costs.mul(weight)?;
    if product.shape() != costs.shape() {
        let message = format!(
            "weights of shape {:?} do not broadcast to {:?}",
            weight.shape(),
            costs.shape()
        );
        return Err(refuse(Kind::Shape, op, message));
    }
    Ok(product)
}

/// The costs of targets that are classes, where the input is their logarithmic probabilities: `-input` at the target.
/// Classes are dim 1 of the input, or the only one.
///
/// # Errors
/// A target out of range or of another dtype than `int64` and `uint8`; shapes that do not fit; a guard in the way; out of
/// memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Classes}};
/// let x = Tensor::new([[-0.5f32, -1.0], [-2.0, -0.25]])?;
/// let loss = functional::nll_loss(&x, &Tensor::new([0i64, 1])?, &Classes::default())?;
/// assert_eq!(loss.item::<f32>()?, 0.375);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn nll_loss(input: &Tensor, target: &Tensor, how: &Classes<'_>) -> Result<Tensor> {
    let op = "nll_loss";
    let targets = Targets::new(input, target, how, op)?;
    let costs = targets.picked(input)?.neg()?;
    targets.reduced(targets.weighted(costs)?, how.reduction)
}

/// The costs of targets, where the input is not normalised: [`nll_loss`] of its `log_softmax`. Floating-point targets of the
/// input's shape are probabilities of all classes.
///
/// # Errors
/// A `label_smoothing` beyond 0 to 1; as [`nll_loss`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Classes}};
/// let x = Tensor::new([[0f64, 0.0]])?;
/// let loss = functional::cross_entropy(&x, &Tensor::new([1i64])?, &Classes::default())?;
/// assert!((loss.item::<f64>()? - 2f64.ln()).abs() < 1e-12);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn cross_entropy(input: &Tensor, target: &Tensor, how: &Classes<'_>) -> Result<Tensor> {
    let op = "cross_entropy";
    let smoothing = how.label_smoothing;
    if !(0.0..=1.0).contains(&smoothing) {
        return Err(refuse(
            Kind::Value,
            op,
            format!("label_smoothing must be from 0 to 1, got {smoothing}"),
        ));
    }
    let dim = class_dim(input);
    let classes = input.size(dim)?;
    let by_probability = input.shape() == target.shape() && target.dtype().is_float();
    if by_probability {
        let logs = input.log_softmax(dim)?;
        let target = match smoothing {
            0.0 => target.clone(),
            s => target.mul(1.0 - s)?.add(s / classes as f64)?,
        };
        let mut products = logs.mul(&target)?;
        if let Some(weight) = how.weight {
            products = products.mul(&along_classes(weight, input, op)?)?;
        }
        return match how.reduction {
            Reduction::None => products.sum_dims([dim], false)?.neg(),
            Reduction::Sum => products.sum()?.neg(),
            _ => products
                .sum()?
                .neg()?
                .div(input.numel() as f64 / classes as f64),
        };
    }
    let targets = Targets::new(input, target, how, op)?;
    if smoothing == 0.0 {
        let costs = targets.weighted(targets.of_logits(input)?)?;
        return targets.reduced(costs, how.reduction);
    }
    let logs = input.log_softmax(dim)?;
    let costs = targets.weighted(targets.picked(&logs)?.neg()?)?;
    // A part of every target is spread over all classes.
    let weighted = match how.weight {
        None => logs,
        Some(weight) => logs.mul(&along_classes(weight, input, op)?)?,
    };
    let spread = targets.counted(weighted.sum_dims([dim], false)?.neg()?)?;
    let nll = targets.reduced(costs, how.reduction)?;
    let smooth = targets.reduced(spread, how.reduction)?;
    nll.mul(1.0 - smoothing)?
        .add(&smooth.mul(smoothing / classes as f64)?)
}

fn class_dim(input: &Tensor) -> isize {
    if input.dim() == 1 { 0 } else { 1 }
}

/// A weight for each class as a tensor that broadcasts to the input.
#[track_caller]
fn along_classes(weight: &Tensor, input: &Tensor, op: &'static str) -> Result<Tensor> {
    let dim = class_dim(input);
    let classes = input.size(dim)?;
    if weight.shape() != [classes] {
        let message = format!(
            "expected a weight for each of {classes} classes, got shape {:?}",
            weight.shape()
        );
        return Err(refuse(Kind::Shape, op, message));
    }
    if weight.dtype() != input.dtype() {
        let message = format!(
            "the weights have {}, but the input {}",
            weight.dtype(),
            input.dtype()
        );
        return Err(refuse(Kind::DType, op, message));
    }
    let mut shape = vec![1; input.dim() - dim as usize];
    shape[0] = classes as isize;
    weight.unflatten(0, shape)
}

/// Targets that are classes, checked.
struct Targets<'a> {
    weight: Option<&'a Tensor>,
    /// As indices; 0 where they are ignored.
    indices: Tensor,
    /// Where they are ignored, if any are.
    ignored: Option<Tensor>,
    dim: isize,
    dtype: DType,
}

impl<'a> Targets<'a> {
    #[track_caller]
    fn new(
        input: &Tensor,
        target: &Tensor,
        how: &Classes<'a>,
        op: &'static str,
    ) -> Result<Targets<'a>> {
        let (shape, dim) = (input.shape(), class_dim(input));
        let fits = match shape {
            [] => false,
            [_] => target.dim() == 0 || target.shape() == [1],
            [batch, _, rest @ ..] => target
                .shape()
                .split_first()
                .is_some_and(|(b, r)| b == batch && r == rest),
        };
        if !fits {
            let message = format!(
                "a target of shape {:?} does not fit an input of {shape:?}",
                target.shape()
            );
            return Err(refuse(Kind::Shape, op, message));
        }
        if !input.dtype().is_float() {
            return Err(refuse(
                Kind::DType,
                op,
                format!("not defined for {}; cast with to() first", input.dtype()),
            ));
        }
        if !matches!(target.dtype(), DType::I64 | DType::U8) {
            let message = format!("the target must be int64 or uint8, got {}", target.dtype());
            return Err(refuse(Kind::DType, op, message));
        }
        if let Some(weight) = how.weight {
            along_classes(weight, input, op)?;
        }
        let target = if shape.len() == 1 {
            target.view([])?
        } else {
            target.clone()
        };
        let target = target.to(DType::I64)?;
        let ignored = target.eq(how.ignore_index)?;
        let meta = target.device().is_meta();
        let (indices, ignored) = if !meta && ignored.any()?.item::<bool>()? {
            (target.masked_fill(&ignored, 0i64)?, Some(ignored))
        } else {
            (target, None)
        };
        Ok(Targets {
            weight: how.weight,
            indices,
            ignored,
            dim,
            dtype: input.dtype(),
        })
    }

    /// Minus the logarithm of the softmax of the input at each target, of which one derivative takes fewer passes.
    #[track_caller]
    fn of_logits(&self, input: &Tensor) -> Result<Tensor> {
        let logs = input.as_view().log_softmax(self.dim)?;
        let costs = self.picked(&Tensor::from_view(logs.clone()))?.neg()?;
        if !wanted(&[input]) {
            return Ok(costs);
        }
        let mut recorder = Recorder::new("cross_entropy", logs.site(), &[input])?;
        recorder.save_output_of(&logs, 1)?;
        recorder.save_view(self.indices.unsqueeze(self.dim)?.as_view())?;
        recorder.finish_many(
            vec![costs.as_view().clone(), logs],
            cross_entropy_rule(self.dim),
        )?;
        Ok(costs)
    }

    /// The elements of the input at the targets.
    #[track_caller]
    fn picked(&self, input: &Tensor) -> Result<Tensor> {
        let at = self.indices.unsqueeze(self.dim)?;
        input.gather(self.dim, &at)?.view(
            self.indices
                .shape()
                .iter()
                .map(|&n| n as isize)
                .collect::<Vec<_>>(),
        )
    }

    /// Costs, of which those of ignored targets are 0.
    #[track_caller]
    fn counted(&self, costs: Tensor) -> Result<Tensor> {
        match &self.ignored {
            None => Ok(costs),
            Some(ignored) => costs.masked_fill(ignored, 0.0),
        }
    }

    /// Costs times their classes' weights.
    #[track_caller]
    fn weighted(&self, costs: Tensor) -> Result<Tensor> {
        let costs = match self.weight {
            None => costs,
            Some(weight) => costs.mul(&self.weights(weight)?)?,
        };
        self.counted(costs)
    }

    /// The weight of each target.
    #[track_caller]
    fn weights(&self, weight: &Tensor) -> Result<Tensor> {
        weight.take(&self.indices)
    }

    /// Costs as the reduction wants them; a mean is by the weights of the targets that count.
    #[track_caller]
    fn reduced(&self, costs: Tensor, reduction: Reduction) -> Result<Tensor> {
        match (reduction, self.weight, &self.ignored) {
            (Reduction::None, ..) => Ok(costs),
            (Reduction::Sum, ..) => costs.sum(),
            (_, None, None) => costs.mean(),
            (_, Some(weight), _) => costs
                .sum()?
                .div(&self.counted(self.weights(weight)?)?.sum()?),
            (_, None, Some(ignored)) => {
                let counted = ignored.logical_not()?.sum()?.to(self.dtype)?;
                costs.sum()?.div(&counted)
            }
        }
    }
}
