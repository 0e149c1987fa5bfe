//! Tensors made from nothing, or like another.

use osteon::{DType, Device, Tensor};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::{Made, one};

/// Tensors made from nothing.
pub fn create(op: &str, c: &Call<'_>) -> Made {
    let cpu = Device::cpu();
    let dtype = c.dtype(usize::MAX, "dtype")?;
    let float = dtype.unwrap_or(DType::F32);
    match op {
        "arange" => {
            let (start, end) = match c.args {
                [_] => (0.into(), c.scalar(0, "end")?),
                _ => (c.scalar(0, "start")?, c.scalar(1, "end")?),
            };
            let step = c.scalar_or(2, "step", 1)?;
            one(match dtype {
                None => Tensor::arange(start, end, step)?,
                Some(dtype) => Tensor::arange_in(start, end, step, dtype, &cpu)?,
            })
        }
        "eye" => match (c.int(0, "n")?, c.int_or_none(1, "m")?) {
            (_, Some(_)) => Err(Stop::Missing),
            (n, None) => one(Tensor::eye(
                usize::try_from(n).map_err(negative)?,
                float,
                &cpu,
            )?),
        },
        "full" => one(Tensor::full(
            c.sizes(0, "size")?,
            c.scalar(1, "fill_value")?,
            float,
            &cpu,
        )?),
        "ones" => one(Tensor::ones(c.sizes(0, "size")?, float, &cpu)?),
        "zeros" => one(Tensor::zeros(c.sizes(0, "size")?, float, &cpu)?),
        "scalar_tensor" => one(Tensor::full([], c.scalar(0, "s")?, float, &cpu)?),
        "linspace" => {
            let steps = usize::try_from(c.int(2, "steps")?).map_err(negative)?;
            one(Tensor::linspace(
                end(c, 0, "start")?,
                end(c, 1, "end")?,
                steps,
                float,
                &cpu,
            )?)
        }
        _ => Err(Stop::Missing),
    }
}

fn negative(_: std::num::TryFromIntError) -> Stop {
    Stop::Unwritable("a size is negative".to_owned())
}

/// An end of a range: a number, or a tensor of one number.
fn end(c: &Call<'_>, place: usize, name: &str) -> Result<f64, Stop> {
    match c.get(place, name) {
        Some(Arg::Tensor(_)) => Ok(c.tensor(place, name)?.item::<f64>()?),
        _ => c.float(place, name),
    }
}

/// Tensors of another's shape or dtype.
pub fn like(op: &str, c: &Call<'_>) -> Made {
    let cpu = Device::cpu();
    let x = || c.tensor(0, "input");
    let dtype = |x: &Tensor| Ok::<_, Stop>(c.dtype(usize::MAX, "dtype")?.unwrap_or(x.dtype()));
    match op {
        "new_full" => one(Tensor::full(
            c.sizes(1, "size")?,
            c.scalar(2, "fill_value")?,
            dtype(x()?)?,
            &cpu,
        )?),
        "new_ones" => one(Tensor::ones(c.sizes(1, "size")?, dtype(x()?)?, &cpu)?),
        "new_zeros" => one(Tensor::zeros(c.sizes(1, "size")?, dtype(x()?)?, &cpu)?),
        _ => Err(Stop::Missing),
    }
}
