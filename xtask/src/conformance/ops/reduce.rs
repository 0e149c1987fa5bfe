//! Reductions and scans.

use osteon::Tensor;

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
use super::{Made, one};

/// Results that come in pairs.
fn both((first, second): (Tensor, Tensor)) -> Made {
    Ok(vec![Output::Tensor(first), Output::Tensor(second)])
}

/// The two tensors that results go to.
pub fn out_pair<'a>(c: &Call<'a>) -> Result<(&'a Tensor, &'a Tensor), Stop> {
    match c.named("out") {
        Some(Arg::List(list)) if list.len() == 2 => {
            Ok((c.as_tensor(&list[0], "out")?, c.as_tensor(&list[1], "out")?))
        }
        _ => Err(Stop::Unwritable("two tensors are needed".to_owned())),
    }
}

/// Over a list of dims, or all.
pub fn over_dims(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let given = || c.ints_or_none(1, "dim");
    let dims = || Ok::<_, Stop>(given()?.unwrap_or_default());
    let keepdim = || c.flag(2, "keepdim");
    let dtype = || c.dtype(usize::MAX, "dtype");
    let order = |place| match c.get(place, "ord") {
        None => Ok(2.0),
        Some(_) => c.float(place, "ord"),
    };
    match op {
        "sum" => one(match dtype()? {
            None => x()?.sum_dims(dims()?, keepdim()?)?,
            Some(dtype) => x()?.sum_in(dims()?, keepdim()?, dtype)?,
        }),
        "mean" => one(match dtype()? {
            None => x()?.mean_dims(dims()?, keepdim()?)?,
            Some(dtype) => x()?.mean_in(dims()?, keepdim()?, dtype)?,
        }),
        "nansum" => one(match dtype()? {
            None => x()?.nansum(dims()?, keepdim()?)?,
            Some(dtype) => x()?.nansum_in(dims()?, keepdim()?, dtype)?,
        }),
        "nanmean" => one(match dtype()? {
            None => x()?.nanmean(dims()?, keepdim()?)?,
            Some(dtype) => x()?.nanmean_in(dims()?, keepdim()?, dtype)?,
        }),
        "any" => one(match given()? {
            None => x()?.any()?,
            Some(dims) => x()?.any_dims(dims, keepdim()?)?,
        }),
        "all" => one(match given()? {
            None => x()?.all()?,
            Some(dims) => x()?.all_dims(dims, keepdim()?)?,
        }),
        "count_nonzero" => one(x()?.count_nonzero(dims()?)?),
        "amax" | "amin" if c.named("out").is_some() => {
            let out = c.tensor(usize::MAX, "out")?;
            match op {
                "amax" => x()?.amax_out(dims()?, keepdim()?, out)?,
                _ => x()?.amin_out(dims()?, keepdim()?, out)?,
            }
            one(out.clone())
        }
        "amax" => one(x()?.amax(dims()?, keepdim()?)?),
        "amin" => one(x()?.amin(dims()?, keepdim()?)?),
        "aminmax" if c.named("out").is_some() => {
            let out = out_pair(c)?;
            x()?.aminmax_out(dims()?, keepdim()?, out)?;
            both((out.0.clone(), out.1.clone()))
        }
        "aminmax" => both(x()?.aminmax(dims()?, keepdim()?)?),
        "logsumexp" => one(x()?.logsumexp(dims()?, keepdim()?)?),
        "linalg.vector_norm" => {
            let dims = c.ints_or_none(2, "dim")?.unwrap_or_default();
            let keepdim = c.flag(3, "keepdim")?;
            one(match dtype()? {
                None => x()?.vector_norm(order(1)?, dims, keepdim)?,
                Some(dtype) => x()?.vector_norm_in(order(1)?, dims, keepdim, dtype)?,
            })
        }
        _ => Err(Stop::Missing),
    }
}

/// Along one dim, or over all elements.
pub fn along(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let dim = || c.int_or_none(1, "dim");
    let keepdim = || c.flag(2, "keepdim");
    let dtype = || c.dtype(usize::MAX, "dtype");
    match op {
        "prod" => one(match (dim()?, dtype()?) {
            (None, None) => x()?.prod()?,
            (Some(dim), None) => x()?.prod_dim(dim, keepdim()?)?,
            (dim, Some(dtype)) => x()?.prod_in(dim, keepdim()?, dtype)?,
        }),
        "argmax" => one(match dim()? {
            None => x()?.argmax()?,
            Some(dim) => x()?.argmax_dim(dim, keepdim()?)?,
        }),
        "argmin" => one(match dim()? {
            None => x()?.argmin()?,
            Some(dim) => x()?.argmin_dim(dim, keepdim()?)?,
        }),
        "max" | "min" if matches!(c.get(1, "other"), Some(Arg::Tensor(_))) => {
            let other = c.tensor(1, "other")?;
            one(if op == "max" {
                x()?.maximum(other)?
            } else {
                x()?.minimum(other)?
            })
        }
        "max" => match dim()? {
            None => one(x()?.max()?),
            Some(dim) => both(x()?.max_dim(dim, keepdim()?)?),
        },
        "min" => match dim()? {
            None => one(x()?.min()?),
            Some(dim) => both(x()?.min_dim(dim, keepdim()?)?),
        },
        "trace" => one(x()?.trace()?),
        "sum_to_size" => {
            let sizes = match c.get(1, "size") {
                Some(Arg::List(_)) => c.sizes(1, "size")?,
                _ => (1..c.args.len())
                    .map(|place| c.sizes(place, "size"))
                    .collect::<Result<Vec<_>, _>>()?
                    .concat(),
            };
            one(x()?.sum_to_size(sizes)?)
        }
        "cumsum" => one(match dtype()? {
            None => x()?.cumsum(c.int(1, "dim")?)?,
            Some(dtype) => x()?.cumsum_in(c.int(1, "dim")?, dtype)?,
        }),
        "cumprod" => one(match dtype()? {
            None => x()?.cumprod(c.int(1, "dim")?)?,
            Some(dtype) => x()?.cumprod_in(c.int(1, "dim")?, dtype)?,
        }),
        "cummax" => both(x()?.cummax(c.int(1, "dim")?)?),
        "cummin" => both(x()?.cummin(c.int(1, "dim")?)?),
        "logcumsumexp" => one(x()?.logcumsumexp(c.int(1, "dim")?)?),
        _ => Err(Stop::Missing),
    }
}

/// Variances and standard deviations: `(unbiased)`, `(dim, unbiased, keepdim)` or `(dim, correction, keepdim)`.
pub fn spread(op: &str, c: &Call<'_>) -> Made {
    if !["std", "std_mean", "var", "var_mean"].contains(&op) {
        return Err(Stop::Missing);
    }
    let x = c.tensor(0, "input")?;
    let (dims, unbiased) = match c.get(1, "dim") {
        Some(Arg::Bool(unbiased)) => (Vec::new(), *unbiased),
        _ => (
            c.ints_or_none(1, "dim")?.unwrap_or_default(),
            c.flag_or(2, "unbiased", true)?,
        ),
    };
    let correction = match c.named("correction") {
        None => f64::from(u8::from(unbiased)),
        Some(_) => c.float(usize::MAX, "correction")?,
    };
    let keepdim = c.flag(3, "keepdim")?;
    match op {
        "std" => one(x.std(dims, correction, keepdim)?),
        "var" => one(x.var(dims, correction, keepdim)?),
        "std_mean" => both(x.std_mean(dims, correction, keepdim)?),
        _ => both(x.var_mean(dims, correction, keepdim)?),
    }
}
