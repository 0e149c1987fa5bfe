//! Norms, softmax, and the normalisations of neural networks.

use osteon::{BatchNorm, MatrixNorm, Tensor};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::{Made, one};

/// A tensor that may be absent.
fn maybe<'a>(c: &Call<'a>, place: usize, name: &str) -> Result<Option<&'a Tensor>, Stop> {
    c.get(place, name)
        .map(|arg| c.as_tensor(arg, name))
        .transpose()
}

fn float_or(c: &Call<'_>, place: usize, name: &str, absent: f64) -> Result<f64, Stop> {
    match c.get(place, name) {
        None => Ok(absent),
        Some(_) => c.float(place, name),
    }
}

/// Softmax and its kin.
pub fn softmax(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let dim = || c.int(1, "dim");
    let dtype = c.dtype(usize::MAX, "dtype")?;
    one(match (op, dtype) {
        ("softmax" | "nn.functional.softmax", None) => x()?.softmax(dim()?)?,
        ("softmax" | "nn.functional.softmax", Some(dtype)) => x()?.softmax_in(dim()?, dtype)?,
        ("log_softmax" | "nn.functional.log_softmax", None) => x()?.log_softmax(dim()?)?,
        ("log_softmax" | "nn.functional.log_softmax", Some(dtype)) => {
            x()?.log_softmax_in(dim()?, dtype)?
        }
        ("nn.functional.softmin", None) => x()?.softmin(dim()?)?,
        ("nn.functional.softmin", Some(dtype)) => x()?.softmin_in(dim()?, dtype)?,
        _ => return Err(Stop::Missing),
    })
}

/// Norms by PyTorch's several spellings.
pub fn norms(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "dist" => one(x()?.dist(c.tensor(1, "other")?, float_or(c, 2, "p", 2.0)?)?),
        // The old norm: what is no matrix norm flattens.
        "norm" => {
            let dims = c.ints_or_none(2, "dim")?.unwrap_or_default();
            let keepdim = c.flag(3, "keepdim")?;
            match c.get(1, "p") {
                Some(Arg::Text(nuc)) if nuc == "nuc" => match dims[..] {
                    [] => one(x()?.matrix_norm(MatrixNorm::Nuc, [-2, -1], keepdim)?),
                    [rows, columns] => {
                        one(x()?.matrix_norm(MatrixNorm::Nuc, [rows, columns], keepdim)?)
                    }
                    _ => Err(Stop::Unwritable("a matrix has two dims".to_owned())),
                },
                None | Some(Arg::Text(_)) => one(x()?.vector_norm(2.0, dims, keepdim)?),
                Some(_) => one(x()?.vector_norm(c.float(1, "p")?, dims, keepdim)?),
            }
        }
        "linalg.norm" => {
            let x = x()?;
            let dims = c.ints_or_none(2, "dim")?;
            let keepdim = c.flag(3, "keepdim")?;
            let Some(ord) = c.get(1, "ord") else {
                return one(x.vector_norm(2.0, dims.unwrap_or_default(), keepdim)?);
            };
            match (dims, x.dim(), ord) {
                (None, 1, Arg::Int(_) | Arg::Number(_)) => {
                    one(x.vector_norm(c.float(1, "ord")?, [], keepdim)?)
                }
                (None, 2, _) => one(x.matrix_norm(matrix(c, 1)?, [0, 1], keepdim)?),
                (None, ..) => Err(Stop::Unwritable("an order needs dims".to_owned())),
                (Some(dims), ..) => match dims[..] {
                    [rows, columns] => {
                        one(x.matrix_norm(matrix(c, 1)?, [rows, columns], keepdim)?)
                    }
                    _ => one(x.vector_norm(c.float(1, "ord")?, dims, keepdim)?),
                },
            }
        }
        "linalg.matrix_norm" => {
            let dims = match c.ints_or_none(2, "dim")? {
                None => [-2, -1],
                Some(dims) => dims
                    .try_into()
                    .map_err(|_| Stop::Unwritable("a matrix has two dims".to_owned()))?,
            };
            one(x()?.matrix_norm(matrix(c, 1)?, dims, c.flag(3, "keepdim")?)?)
        }
        _ => Err(Stop::Missing),
    }
}

fn matrix(c: &Call<'_>, place: usize) -> Result<MatrixNorm, Stop> {
    Ok(match c.get(place, "ord") {
        None => MatrixNorm::Fro,
        Some(Arg::Text(name)) if name == "fro" => MatrixNorm::Fro,
        Some(Arg::Text(name)) if name == "nuc" => MatrixNorm::Nuc,
        Some(_) => MatrixNorm::Order(c.float(place, "ord")?),
    })
}

/// Normalisations.
pub fn normalisations(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "nn.functional.layer_norm" => one(x()?.layer_norm(
            c.sizes(1, "normalized_shape")?,
            maybe(c, 2, "weight")?,
            maybe(c, 3, "bias")?,
            float_or(c, 4, "eps", 1e-5)?,
        )?),
        "nn.functional.rms_norm" => one(x()?.rms_norm(
            c.sizes(1, "normalized_shape")?,
            maybe(c, 2, "weight")?,
            c.get(3, "eps").map(|_| c.float(3, "eps")).transpose()?,
        )?),
        "nn.functional.batch_norm" => one(x()?.batch_norm(&BatchNorm {
            running: maybe(c, 1, "running_mean")?.zip(maybe(c, 2, "running_var")?),
            weight: maybe(c, 3, "weight")?,
            bias: maybe(c, 4, "bias")?,
            training: c.flag(5, "training")?,
            momentum: float_or(c, 6, "momentum", 0.1)?,
            eps: float_or(c, 7, "eps", 1e-5)?,
        })?),
        "nn.functional.group_norm" => {
            let groups = usize::try_from(c.int(1, "num_groups")?)
                .map_err(|_| Stop::Unwritable("num_groups is negative".to_owned()))?;
            one(x()?.group_norm(
                groups,
                maybe(c, 2, "weight")?,
                maybe(c, 3, "bias")?,
                float_or(c, 4, "eps", 1e-5)?,
            )?)
        }
        "nn.functional.instance_norm" => one(x()?.instance_norm_with(&BatchNorm {
            running: maybe(c, 1, "running_mean")?.zip(maybe(c, 2, "running_var")?),
            weight: maybe(c, 3, "weight")?,
            bias: maybe(c, 4, "bias")?,
            training: c.flag_or(5, "use_input_stats", true)?,
            momentum: float_or(c, 6, "momentum", 0.1)?,
            eps: float_or(c, 7, "eps", 1e-5)?,
        })?),
        "nn.functional.normalize" => one(x()?.normalize(
            float_or(c, 1, "p", 2.0)?,
            c.int_or(2, "dim", 1)?,
            float_or(c, 3, "eps", 1e-12)?,
        )?),
        "nn.functional.cosine_similarity" => one(x()?.cosine_similarity(
            c.tensor(1, "x2")?,
            c.int_or(2, "dim", 1)?,
            float_or(c, 3, "eps", 1e-8)?,
        )?),
        _ => Err(Stop::Missing),
    }
}
