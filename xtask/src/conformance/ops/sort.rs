//! Order and sets.

use osteon::{DType, Interpolation, Tensor, UniqueTensors};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
use super::super::tensors::make;
use super::super::value::Number;
use super::arrange::size;
use super::reduce::out_pair;
use super::{Made, one};

fn two((values, indices): (Tensor, Tensor)) -> Made {
    Ok(vec![values.into(), indices.into()])
}

/// Order along a dim.
pub fn order(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let keepdim = |place| c.flag(place, "keepdim");
    match op {
        "sort" => two(x()?.sort(c.int_or(1, "dim", -1)?, c.flag(2, "descending")?)?),
        "argsort" => one(x()?.argsort(c.int_or(1, "dim", -1)?, c.flag(2, "descending")?)?),
        "msort" => one(x()?.msort()?),
        "topk" => {
            let (k, dim) = (c.int(1, "k")?, c.int_or(2, "dim", -1)?);
            two(x()?.topk(k, dim, c.flag_or(3, "largest", true)?)?)
        }
        "kthvalue" if c.named("out").is_some() => {
            let (out, k) = (out_pair(c)?, c.int(1, "k")?);
            x()?.kthvalue_out(k, c.int_or(2, "dim", -1)?, keepdim(3)?, out)?;
            two((out.0.clone(), out.1.clone()))
        }
        "kthvalue" => two(x()?.kthvalue(c.int(1, "k")?, c.int_or(2, "dim", -1)?, keepdim(3)?)?),
        "mode" => two(x()?.mode(c.int_or(1, "dim", -1)?, keepdim(2)?)?),
        "median" => match c.int_or_none(1, "dim")? {
            None => one(x()?.median()?),
            Some(dim) => two(x()?.median_dim(dim, keepdim(2)?)?),
        },
        "nanmedian" => match c.int_or_none(1, "dim")? {
            None => one(x()?.nanmedian()?),
            Some(dim) => two(x()?.nanmedian_dim(dim, keepdim(2)?)?),
        },
        "quantile" => {
            let (dim, keepdim) = (c.int_or_none(2, "dim")?, keepdim(3)?);
            let how = match c.named("interpolation") {
                Some(Arg::Text(name)) => interpolation(name)?,
                _ => Interpolation::Linear,
            };
            one(match c.get(1, "q") {
                Some(Arg::Tensor(_)) => x()?.quantiles(c.tensor(1, "q")?, dim, keepdim, how)?,
                _ => x()?.quantile(c.float(1, "q")?, dim, keepdim, how)?,
            })
        }
        _ => Err(Stop::Missing),
    }
}

fn interpolation(name: &str) -> Result<Interpolation, Stop> {
    Ok(match name {
        "linear" => Interpolation::Linear,
        "lower" => Interpolation::Lower,
        "higher" => Interpolation::Higher,
        "midpoint" => Interpolation::Midpoint,
        "nearest" => Interpolation::Nearest,
        _ => return Err(Stop::Unwritable(format!("no interpolation {name}"))),
    })
}

/// Elements as a set, and in bins.
pub fn sets(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let found = |found: UniqueTensors| {
        let mut results = vec![Output::Tensor(found.values)];
        if c.flag(usize::MAX, "return_inverse")? {
            results.push(found.inverse.into());
        }
        if c.flag(usize::MAX, "return_counts")? {
            results.push(found.counts.into());
        }
        Ok(results)
    };
    let dim = || c.int_or_none(usize::MAX, "dim");
    match op {
        "unique" => found(match dim()? {
            None => x()?.unique()?,
            Some(dim) => x()?.unique_dim(dim)?,
        }),
        "unique_consecutive" => found(match dim()? {
            None => x()?.unique_consecutive()?,
            Some(dim) => x()?.unique_consecutive_dim(dim)?,
        }),
        "bincount" => {
            let minlength = size(c.int_or(2, "minlength", 0)?)?;
            one(x()?.bincount(c.tensor_or_none(1, "weights")?, minlength)?)
        }
        "histc" => {
            let bound = |place, name| {
                if c.get(place, name).is_some() {
                    c.float(place, name)
                } else {
                    Ok(0.0)
                }
            };
            let bins = size(c.int_or(1, "bins", 100)?)?;
            one(x()?.histc(bins, bound(2, "min")?, bound(3, "max")?)?)
        }
        "isin" => one(x()?.isin(c.tensor(1, "test_elements")?, c.flag(usize::MAX, "invert")?)?),
        "searchsorted" => {
            let values = values(c, x()?)?;
            let right = c.flag(usize::MAX, "right")?
                || matches!(c.named("side"), Some(Arg::Text(side)) if side == "right");
            let sorter = c.tensor_or_none(usize::MAX, "sorter")?;
            narrow(c, x()?.searchsorted(&values, right, sorter)?)
        }
        "bucketize" => {
            let boundaries = c.tensor(1, "boundaries")?;
            narrow(c, x()?.bucketize(boundaries, c.flag(usize::MAX, "right")?)?)
        }
        _ => Err(Stop::Missing),
    }
}

/// What to search for: a tensor, or a number.
fn values(c: &Call<'_>, sorted: &Tensor) -> Result<Tensor, Stop> {
    match c.get(1, "values") {
        Some(Arg::Tensor(_)) => Ok(c.tensor(1, "values")?.clone()),
        _ => Ok(make(
            &[Number::from(c.scalar(1, "values")?)],
            &[],
            sorted.dtype(),
        )?),
    }
}

fn narrow(c: &Call<'_>, found: Tensor) -> Made {
    let int32 = c.flag(usize::MAX, "out_int32")?;
    one(if int32 { found.to(DType::I32)? } else { found })
}
