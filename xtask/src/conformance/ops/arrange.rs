//! Joining, arranging and bordering.

use osteon::{DType, Device, Indexing, PadMode, Tensor};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
use super::{Made, one};

/// The tensors of a list, or of all arguments.
fn list<'a>(c: &Call<'a>) -> Result<Vec<&'a Tensor>, Stop> {
    match c.args {
        [Arg::List(list), ..] => list.iter().map(|a| c.as_tensor(a, "tensors")).collect(),
        args => args.iter().map(|a| c.as_tensor(a, "tensors")).collect(),
    }
}

fn all(tensors: Vec<Tensor>) -> Made {
    Ok(tensors.into_iter().map(Output::Tensor).collect())
}

/// Several tensors as one.
pub fn join(op: &str, c: &Call<'_>) -> Made {
    match op {
        "block_diag" => one(Tensor::block_diag(&list(c)?)?),
        "broadcast_tensors" => all(Tensor::broadcast_tensors(&list(c)?)?),
        "cartesian_prod" => one(Tensor::cartesian_prod(&list(c)?)?),
        "cat" if c.named("out").is_some() => {
            let [Arg::List(_), ..] = c.args else {
                return Err(Stop::Unwritable("not a list of tensors".to_owned()));
            };
            let out = c.tensor(usize::MAX, "out")?;
            Tensor::cat_out(&list(c)?, c.int_or(1, "dim", 0)?, out)?;
            one(out.clone())
        }
        "cat" => one(Tensor::cat(&list(c)?, c.int_or(1, "dim", 0)?)?),
        "column_stack" => one(Tensor::column_stack(&list(c)?)?),
        "dstack" => one(Tensor::dstack(&list(c)?)?),
        "hstack" => one(Tensor::hstack(&list(c)?)?),
        "meshgrid" => {
            let xy = matches!(c.named("indexing"), Some(Arg::Text(order)) if order == "xy");
            let indexing = if xy { Indexing::Xy } else { Indexing::Ij };
            all(Tensor::meshgrid(&list(c)?, indexing)?)
        }
        "stack" => one(Tensor::stack(&list(c)?, c.int_or(1, "dim", 0)?)?),
        "vstack" => one(Tensor::vstack(&list(c)?)?),
        _ => Err(Stop::Missing),
    }
}

/// One tensor in another order, or several times.
pub fn arrange(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "H" => one(x()?.H()?),
        "mH" => one(x()?.mH()?),
        "adjoint" => one(x()?.adjoint()?),
        "atleast_2d" => one(x()?.atleast_2d()?),
        "atleast_3d" => one(x()?.atleast_3d()?),
        "combinations" => {
            let again = c.flag(2, "with_replacement")?;
            one(x()?.combinations(size(c.int_or(1, "r", 2)?)?, again)?)
        }
        "conj" => one(x()?.conj()?),
        "resolve_conj" => one(x()?.resolve_conj()),
        "diag" => one(x()?.diag(c.int_or(1, "diagonal", 0)?)?),
        "diagflat" => one(x()?.diagflat(c.int_or(1, "offset", 0)?)?),
        "diag_embed" => {
            let (dim1, dim2) = (c.int_or(2, "dim1", -2)?, c.int_or(3, "dim2", -1)?);
            one(x()?.diag_embed(c.int_or(1, "offset", 0)?, dim1, dim2)?)
        }
        "diff" => one(x()?.diff(
            size(c.int_or(1, "n", 1)?)?,
            c.int_or(2, "dim", -1)?,
            c.tensor_or_none(3, "prepend")?,
            c.tensor_or_none(4, "append")?,
        )?),
        "flip" => one(x()?.flip(c.ints(1, "dims")?)?),
        "fliplr" => one(x()?.fliplr()?),
        "flipud" => one(x()?.flipud()?),
        "repeat" => one(x()?.repeat(c.ints(1, "repeats")?)?),
        "repeat_interleave" => {
            let dim = c.int_or_none(2, "dim")?;
            one(match c.get(1, "repeats") {
                Some(Arg::Tensor(_)) => {
                    x()?.repeat_interleave_each(c.tensor(1, "repeats")?, dim)?
                }
                _ => x()?.repeat_interleave(c.int(1, "repeats")?, dim)?,
            })
        }
        "reshape_as" => one(x()?.reshape_as(c.tensor(1, "other")?)?),
        "roll" => {
            let dims = c.ints_or_none(2, "dims")?.unwrap_or_default();
            one(x()?.roll(c.ints(1, "shifts")?, dims)?)
        }
        "rot90" => {
            let dims = c.ints_or_none(2, "dims")?.unwrap_or_else(|| vec![0, 1]);
            one(x()?.rot90(c.int_or(1, "k", 1)?, dims)?)
        }
        "tile" => one(x()?.tile(c.ints(1, "dims")?)?),
        "tril" => one(x()?.tril(c.int_or(1, "diagonal", 0)?)?),
        "triu" => one(x()?.triu(c.int_or(1, "diagonal", 0)?)?),
        "tril_indices" | "triu_indices" => {
            let (rows, columns) = (size(c.int(0, "row")?)?, size(c.int(1, "col")?)?);
            let offset = c.int_or(2, "offset", 0)?;
            let indices = if op == "tril_indices" {
                Tensor::tril_indices
            } else {
                Tensor::triu_indices
            };
            let dtype = c.dtype(usize::MAX, "dtype")?.unwrap_or(DType::I64);
            one(indices(rows, columns, offset, &Device::cpu())?.to(dtype)?)
        }
        _ => Err(Stop::Missing),
    }
}

/// Borders, blocks and rows of ones.
pub fn compose(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "constant_pad_nd" => {
            let value = c.scalar_or(2, "value", 0)?;
            one(x()?.pad(c.ints(1, "pad")?, PadMode::Constant(value))?)
        }
        "nn.functional.pad" => {
            let mode = match c.get(2, "mode") {
                Some(Arg::Text(mode)) => mode.as_str(),
                _ => "constant",
            };
            let mode = match mode {
                "constant" => PadMode::Constant(c.scalar_or(3, "value", 0)?),
                "reflect" => PadMode::Reflect,
                "replicate" => PadMode::Replicate,
                "circular" => PadMode::Circular,
                _ => return Err(Stop::Missing),
            };
            one(x()?.pad(c.ints(1, "pad")?, mode)?)
        }
        "nn.functional.one_hot" => {
            let classes = c.int_or(1, "num_classes", -1)?;
            one(x()?.one_hot(if classes == -1 {
                None
            } else {
                Some(size(classes)?)
            })?)
        }
        "nn.functional.pixel_shuffle" => {
            one(x()?.pixel_shuffle(size(c.int(1, "upscale_factor")?)?)?)
        }
        "trapezoid" => {
            let dim = c.int_or(usize::MAX, "dim", -1)?;
            one(match c.get(1, "x") {
                Some(_) => x()?.trapezoid_at(c.tensor(1, "x")?, dim)?,
                None => x()?.trapezoid(c.scalar_or(usize::MAX, "dx", 1)?, dim)?,
            })
        }
        _ => Err(Stop::Missing),
    }
}

/// A number that is not negative.
pub fn size(n: isize) -> Result<usize, Stop> {
    usize::try_from(n).map_err(|_| Stop::Unwritable(format!("{n} is negative")))
}
