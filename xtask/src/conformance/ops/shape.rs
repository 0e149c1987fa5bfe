//! Views, and what moves elements without changing them.

use osteon::DType;

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
use super::super::steps::range;
use super::{Made, one};

/// Views.
pub fn views(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "T" => one(x()?.T()?),
        "mT" => one(x()?.mT()?),
        "t" => one(x()?.t()?),
        "as_strided" => one(x()?.as_strided(
            c.ints(1, "size")?,
            c.ints(2, "stride")?,
            c.int_or_none(3, "storage_offset")?,
        )?),
        "atleast_1d" => one(x()?.atleast_1d()?),
        "broadcast_to" => one(x()?.broadcast_to(c.ints(1, "size")?)?),
        "diagonal" => diagonal(c, 0, 1),
        "linalg.diagonal" => diagonal(c, -2, -1),
        "expand" => one(x()?.expand(c.ints(1, "size")?)?),
        "expand_as" => one(x()?.expand_as(c.tensor(1, "other")?)?),
        "imag" => one(x()?.imag()?),
        "movedim" => one(x()?.movedim(c.ints(1, "source")?, c.ints(2, "destination")?)?),
        "narrow" => {
            let start = match c.get(2, "start") {
                Some(Arg::Tensor(_)) => c.tensor(2, "start")?.item::<i64>()? as isize,
                _ => c.int(2, "start")?,
            };
            one(x()?.narrow(c.int(1, "dim")?, start, c.int(3, "length")?)?)
        }
        "permute" => one(x()?.permute(c.ints(1, "dims")?)?),
        "real" => one(x()?.real()?),
        "select" => one(x()?.select(c.int(1, "dim")?, c.int(2, "index")?)?),
        "slice" => {
            let bounds = range(c.int_or_none(2, "start")?, c.int_or_none(3, "end")?);
            one(x()?.slice_step(c.int_or(1, "dim", 0)?, bounds, c.int_or(4, "step", 1)?)?)
        }
        "squeeze" => one(match c.ints_or_none(1, "dim")? {
            None => x()?.squeeze()?,
            Some(dims) => x()?.squeeze_dims(dims)?,
        }),
        "transpose" => one(x()?.transpose(c.int(1, "dim0")?, c.int(2, "dim1")?)?),
        "unflatten" => one(x()?.unflatten(c.int(1, "dim")?, c.ints(2, "sizes")?)?),
        "unfold" => {
            one(x()?.unfold(c.int(1, "dimension")?, c.int(2, "size")?, c.int(3, "step")?)?)
        }
        "unsqueeze" => one(x()?.unsqueeze(c.int(1, "dim")?)?),
        "view" => one(x()?.view(c.ints(1, "shape")?)?),
        "view_as" => one(x()?.view_as(c.tensor(1, "other")?)?),
        "view_as_complex" => one(x()?.view_as_complex()?),
        "view_as_real" => one(x()?.view_as_real()?),
        _ => Err(Stop::Missing),
    }
}

fn diagonal(c: &Call<'_>, dim1: isize, dim2: isize) -> Made {
    let (dim1, dim2) = (c.int_or(2, "dim1", dim1)?, c.int_or(3, "dim2", dim2)?);
    one(c
        .tensor(0, "input")?
        .diagonal(c.int_or(1, "offset", 0)?, dim1, dim2)?)
}

/// Views that come as a list.
pub fn pieces(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let dim = || c.int_or(2, "dim", 0);
    let in_sizes = matches!(c.get(1, "split_size_or_sections"), Some(Arg::List(_)));
    let made = match op {
        "chunk" | "unsafe_chunk" => x()?.chunk(c.int(1, "chunks")?, dim()?)?,
        "split" | "split_with_sizes" if in_sizes => {
            x()?.split_with_sizes(c.ints(1, "split_sizes")?, dim()?)?
        }
        "split" | "unsafe_split" => x()?.split(c.int(1, "split_size")?, dim()?)?,
        "tensor_split" => match c.get(1, "indices_or_sections") {
            Some(Arg::List(_)) => x()?.tensor_split(&c.ints(1, "indices")?[..], dim()?)?,
            Some(Arg::Tensor(_)) => {
                let sections = c.tensor(1, "sections")?.to(DType::I64)?.to_vec::<i64>()?;
                let sections: Vec<isize> = sections.into_iter().map(|n| n as isize).collect();
                match c.tensor(1, "sections")?.dim() {
                    0 => x()?.tensor_split(sections[0], dim()?)?,
                    _ => x()?.tensor_split(&sections[..], dim()?)?,
                }
            }
            _ => x()?.tensor_split(c.int(1, "sections")?, dim()?)?,
        },
        "dsplit" if in_sizes => x()?.dsplit(&c.ints(1, "indices")?[..])?,
        "dsplit" => x()?.dsplit(c.int(1, "sections")?)?,
        "hsplit" if in_sizes => x()?.hsplit(&c.ints(1, "indices")?[..])?,
        "hsplit" => x()?.hsplit(c.int(1, "sections")?)?,
        "vsplit" if in_sizes => x()?.vsplit(&c.ints(1, "indices")?[..])?,
        "vsplit" => x()?.vsplit(c.int(1, "sections")?)?,
        "unbind" => x()?.unbind(c.int_or(1, "dim", 0)?)?,
        _ => return Err(Stop::Missing),
    };
    Ok(made.into_iter().map(Output::Tensor).collect())
}

/// Copies, and what copies only where it must.
pub fn copies(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "bool" => to(c, DType::Bool),
        "byte" => to(c, DType::U8),
        "double" => to(c, DType::F64),
        "float" => to(c, DType::F32),
        "half" => to(c, DType::F16),
        "int" => to(c, DType::I32),
        "long" => to(c, DType::I64),
        "short" => to(c, DType::I16),
        "clone" => one(match c.memory_format("memory_format")? {
            None => x()?.copy()?,
            Some(format) => x()?.copy_in(format)?,
        }),
        "contiguous" => one(match c.memory_format("memory_format")? {
            None => x()?.contiguous()?,
            Some(format) => x()?.contiguous_in(format)?,
        }),
        "flatten" => one(x()?.flatten(c.int_or(1, "start_dim", 0)?, c.int_or(2, "end_dim", -1)?)?),
        "ravel" => one(x()?.ravel()?),
        "reshape" => one(x()?.reshape(c.ints(1, "shape")?)?),
        _ => Err(Stop::Missing),
    }
}

fn to(c: &Call<'_>, dtype: DType) -> Made {
    let x = c.tensor(0, "input")?;
    one(match c.memory_format("memory_format")? {
        None => x.to(dtype)?,
        Some(format) => x.to_in(dtype, format)?,
    })
}
