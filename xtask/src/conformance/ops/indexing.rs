//! Elements by indices and masks.

use osteon::{Index, Reduce, Tensor};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
use super::super::steps::range;
use super::{Made, one};

/// What an index may be: those of `__getitem__` and `index_put`.
pub fn indices(c: &Call<'_>, arg: &Arg) -> Result<Vec<Index>, Stop> {
    let one_index = |arg: &Arg| {
        Ok(match arg {
            Arg::Int(i) => Index::Int(*i),
            Arg::Bool(b) => Index::Bool(*b),
            Arg::Slice(start, end, step) => Index::Slice {
                start: *start,
                end: *end,
                step: step.unwrap_or(1),
            },
            Arg::Ellipsis => Index::Ellipsis,
            Arg::None => Index::NewAxis,
            Arg::Tensor(_) => Index::from(c.as_tensor(arg, "index")?),
            Arg::List(list) => Index::Tensor(numbers(list)?),
            _ => return Err(Stop::Unwritable("no index".to_owned())),
        })
    };
    match arg {
        Arg::List(list) => list.iter().map(one_index).collect(),
        single => Ok(vec![one_index(single)?]),
    }
}

/// A list of numbers, which Python takes for an index tensor.
fn numbers(list: &[Arg]) -> Result<Tensor, Stop> {
    let whole: Option<Vec<i64>> = list
        .iter()
        .map(|a| match a {
            Arg::Int(i) => Some(*i as i64),
            _ => None,
        })
        .collect();
    let whole = whole.ok_or_else(|| Stop::Unwritable("an index that is no number".to_owned()))?;
    let n = whole.len();
    Ok(Tensor::from_vec(whole, [n])?)
}

/// Reading.
pub fn read(op: &str, c: &Call<'_>) -> Made {
    if c.named("out").is_some() {
        return read_into(op, c);
    }
    let x = || c.tensor(0, "input");
    match op {
        "__getitem__" => one(match c.get(1, "index") {
            // A list of nothing but numbers is Python's `x[[0, 3]]`, an index tensor.
            Some(Arg::List(list)) if list.iter().all(|a| matches!(a, Arg::Int(_))) => {
                x()?.i([Index::Tensor(numbers(list)?)])?
            }
            Some(index) => x()?.i(indices(c, index)?)?,
            None => x()?.i([Index::NewAxis])?,
        }),
        "argwhere" => one(x()?.argwhere()?),
        "gather" => one(x()?.gather(c.int(1, "dim")?, c.tensor(2, "index")?)?),
        "index_select" => one(x()?.index_select(c.int(1, "dim")?, c.tensor(2, "index")?)?),
        "masked_select" => one(x()?.masked_select(c.tensor(1, "mask")?)?),
        "nonzero" if c.flag(usize::MAX, "as_tuple")? => {
            let columns = x()?.atleast_1d()?.nonzero()?.unbind(1)?;
            Ok(columns.into_iter().map(Output::Tensor).collect())
        }
        "nonzero" => one(x()?.nonzero()?),
        "take" => one(x()?.take(c.tensor(1, "index")?)?),
        "take_along_dim" => {
            one(x()?.take_along_dim(c.tensor(1, "indices")?, c.int_or_none(2, "dim")?)?)
        }
        _ => Err(Stop::Missing),
    }
}

/// Reading into a given tensor.
fn read_into(op: &str, c: &Call<'_>) -> Made {
    let (x, out) = (c.tensor(0, "input")?, c.tensor(usize::MAX, "out")?);
    match op {
        "gather" => x.gather_out(c.int(1, "dim")?, c.tensor(2, "index")?, out)?,
        "index_select" => x.index_select_out(c.int(1, "dim")?, c.tensor(2, "index")?, out)?,
        "masked_select" => x.masked_select_out(c.tensor(1, "mask")?, out)?,
        "take" => x.take_out(c.tensor(1, "index")?, out)?,
        _ => return Err(Stop::Missing),
    }
    one(out.clone())
}

/// Writing, as new tensors.
pub fn write(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let dim = || c.int(1, "dim");
    let index = || c.tensor(2, "index");
    match op {
        "as_strided_scatter" => one(x()?.as_strided_scatter(
            c.tensor(1, "src")?,
            c.ints(2, "size")?,
            c.ints(3, "stride")?,
            c.int_or_none(4, "storage_offset")?,
        )?),
        "diagonal_scatter" => one(x()?.diagonal_scatter(
            c.tensor(1, "src")?,
            c.int_or(2, "offset", 0)?,
            c.int_or(3, "dim1", 0)?,
            c.int_or(4, "dim2", 1)?,
        )?),
        "index_add" => {
            let source = c.tensor(3, "source")?;
            one(x()?.index_add(dim()?, index()?, source, c.scalar_or(4, "alpha", 1)?)?)
        }
        "index_copy" => one(x()?.index_copy(dim()?, index()?, c.tensor(3, "source")?)?),
        "index_fill" => one(x()?.index_fill(dim()?, index()?, c.operand(3, "value")?)?),
        "index_put" => {
            let places = match c.get(1, "indices") {
                Some(index) => indices(c, index)?,
                None => return Err(Stop::Unreadable("there are no indices".to_owned())),
            };
            let values = c.tensor(2, "values")?;
            one(if c.flag(3, "accumulate")? {
                x()?.index_put_accumulate(places, values)?
            } else {
                x()?.index_put(places, values)?
            })
        }
        "masked_scatter" => one(x()?.masked_scatter(c.tensor(1, "mask")?, c.tensor(2, "source")?)?),
        "put" => {
            let (places, source) = (c.tensor(1, "index")?, c.tensor(2, "source")?);
            one(x()?.put(places, source, c.flag(3, "accumulate")?)?)
        }
        "scatter" => {
            let source = match c.get(3, "src") {
                None => c.operand(usize::MAX, "value")?,
                Some(_) => c.operand(3, "src")?,
            };
            one(match c.named("reduce") {
                Some(name) => x()?.scatter_reduce(dim()?, index()?, source, reduce(name)?, true)?,
                None => x()?.scatter(dim()?, index()?, source)?,
            })
        }
        "scatter_add" => one(x()?.scatter_add(dim()?, index()?, c.tensor(3, "src")?)?),
        "scatter_reduce" => {
            let (source, how) = (c.tensor(3, "src")?, c.need(4, "reduce")?);
            let include = c.flag_or(5, "include_self", true)?;
            one(x()?.scatter_reduce(dim()?, index()?, source, reduce(how)?, include)?)
        }
        "select_scatter" => {
            let (dim, index) = (c.int(2, "dim")?, c.int(3, "index")?);
            one(x()?.select_scatter(c.tensor(1, "src")?, dim, index)?)
        }
        "slice_scatter" => {
            let bounds = range(c.int_or_none(3, "start")?, c.int_or_none(4, "end")?);
            let (dim, step) = (c.int_or(2, "dim", 0)?, c.int_or(5, "step", 1)?);
            one(x()?.slice_scatter(c.tensor(1, "src")?, dim, bounds, step)?)
        }
        _ => Err(Stop::Missing),
    }
}

fn reduce(name: &Arg) -> Result<Reduce, Stop> {
    let Arg::Text(name) = name else {
        return Err(Stop::Unwritable("the reduction has no name".to_owned()));
    };
    Ok(match name.as_str() {
        "sum" | "add" => Reduce::Sum,
        "prod" | "multiply" => Reduce::Prod,
        "mean" => Reduce::Mean,
        "amax" => Reduce::Amax,
        "amin" => Reduce::Amin,
        _ => return Err(Stop::Unwritable(format!("no reduction {name}"))),
    })
}
