//! Losses and attention.

use osteon::functional::{self as f, Attention, Classes, Reduction};

use super::super::args::Call;
use super::super::call::Stop;
use super::{Made, one};

/// Losses of an input and a target.
pub fn losses(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let target = || c.tensor(1, "target");
    let number = |name: &str| match c.named(name) {
        None => Ok(1.0),
        Some(_) => c.float(usize::MAX, name),
    };
    let weight = || c.tensor_or_none(2, "weight");
    let Some(op) = op.strip_prefix("nn.functional.") else {
        return Err(Stop::Missing);
    };
    match op {
        "mse_loss" => one(f::mse_loss(x()?, target()?, reduction(c)?)?),
        "l1_loss" => one(f::l1_loss(x()?, target()?, reduction(c)?)?),
        "smooth_l1_loss" => one(f::smooth_l1_loss(
            x()?,
            target()?,
            number("beta")?,
            reduction(c)?,
        )?),
        "huber_loss" => one(f::huber_loss(
            x()?,
            target()?,
            number("delta")?,
            reduction(c)?,
        )?),
        "kl_div" => {
            let log_target = c.flag(usize::MAX, "log_target")?;
            one(f::kl_div(x()?, target()?, log_target, reduction(c)?)?)
        }
        "binary_cross_entropy" => one(f::binary_cross_entropy(
            x()?,
            target()?,
            weight()?,
            reduction(c)?,
        )?),
        "binary_cross_entropy_with_logits" => {
            let pos_weight = c.tensor_or_none(usize::MAX, "pos_weight")?;
            one(f::binary_cross_entropy_with_logits(
                x()?,
                target()?,
                weight()?,
                pos_weight,
                reduction(c)?,
            )?)
        }
        "nll_loss" => one(f::nll_loss(x()?, target()?, &classes(c)?)?),
        "cross_entropy" => one(f::cross_entropy(x()?, target()?, &classes(c)?)?),
        "prelu" => one(f::prelu(x()?, c.tensor(1, "weight")?)?),
        "glu" => one(f::glu(x()?, c.int_or(1, "dim", -1)?)?),
        "scaled_dot_product_attention" => {
            let how = Attention {
                mask: c.tensor_or_none(3, "attn_mask")?,
                is_causal: c.flag(5, "is_causal")?,
                scale: c
                    .named("scale")
                    .map(|_| c.float(usize::MAX, "scale"))
                    .transpose()?,
                enable_gqa: c.flag(usize::MAX, "enable_gqa")?,
                dropout_p: c.float_or(4, "dropout_p", 0.0)?,
            };
            let (key, value) = (c.tensor(1, "key")?, c.tensor(2, "value")?);
            one(f::scaled_dot_product_attention(x()?, key, value, &how)?)
        }
        _ => Err(Stop::Missing),
    }
}

fn reduction(c: &Call<'_>) -> Result<Reduction, Stop> {
    match c.text(usize::MAX, "reduction")?.unwrap_or("mean") {
        "none" => Ok(Reduction::None),
        "mean" => Ok(Reduction::Mean),
        "sum" => Ok(Reduction::Sum),
        "batchmean" => Ok(Reduction::BatchMean),
        // A word that the enum does not have.
        other => Err(Stop::Unwritable(format!("there is no reduction {other:?}"))),
    }
}

fn classes<'a>(c: &Call<'a>) -> Result<Classes<'a>, Stop> {
    let absent = Classes::default();
    Ok(Classes {
        weight: c.tensor_or_none(2, "weight")?,
        ignore_index: c.int_or(usize::MAX, "ignore_index", -100)? as i64,
        label_smoothing: c.float_or(usize::MAX, "label_smoothing", absent.label_smoothing)?,
        reduction: reduction(c)?,
    })
}
