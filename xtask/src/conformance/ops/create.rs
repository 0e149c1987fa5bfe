//! Tensors made from nothing, or like another.

use osteon::{Category, DType, Device, Scalar, Tensor};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::tensors::item;
use super::{Made, one};

/// Tensors made from nothing.
pub fn create(op: &str, c: &Call<'_>) -> Made {
    let cpu = Device::cpu();
    let dtype = c.dtype(usize::MAX, "dtype")?;
    let float = dtype.unwrap_or(DType::F32);
    match op {
        "arange" => {
            let (start, end) = match c.args {
                [_] if c.named("end").is_none() => (0.into(), c.scalar(0, "end")?),
                _ => (c.scalar(0, "start")?, c.scalar(1, "end")?),
            };
            let step = c.scalar_or(2, "step", 1)?;
            one(match dtype {
                None => Tensor::arange(start, end, step)?,
                Some(dtype) => Tensor::arange_in(start, end, step, dtype, &cpu)?,
            })
        }
        "eye" => {
            let n = usize::try_from(c.int(0, "n")?).map_err(negative)?;
            one(match c.int_or_none(1, "m")? {
                None => Tensor::eye(n, float, &cpu)?,
                Some(m) => {
                    Tensor::eye_rectangular(n, usize::try_from(m).map_err(negative)?, float, &cpu)?
                }
            })
        }
        "full" => {
            let value = c.scalar(1, "fill_value")?;
            let own = match value.category() {
                Category::Bool => DType::Bool,
                Category::Integer => DType::I64,
                Category::Float => DType::F32,
                Category::Complex => DType::C64,
            };
            one(Tensor::full(
                c.sizes(0, "size")?,
                value,
                dtype.unwrap_or(own),
                &cpu,
            )?)
        }
        "ones" => one(Tensor::ones(c.sizes(0, "size")?, float, &cpu)?),
        "zeros" => one(Tensor::zeros(c.sizes(0, "size")?, float, &cpu)?),
        "scalar_tensor" => one(Tensor::scalar_tensor(c.scalar(0, "s")?, float, &cpu)?),
        "linspace" | "logspace" => {
            let steps = usize::try_from(c.int(2, "steps")?).map_err(negative)?;
            let (start, end) = (end(c, 0, "start")?, end(c, 1, "end")?);
            one(if op == "linspace" {
                Tensor::linspace(start, end, steps, float, &cpu)?
            } else {
                Tensor::logspace(start, end, steps, c.float_or(3, "base", 10.0)?, float, &cpu)?
            })
        }
        _ => Err(Stop::Missing),
    }
}

fn negative(_: std::num::TryFromIntError) -> Stop {
    Stop::Unwritable("a size is negative".to_owned())
}

/// An end of a range: a number, or a tensor without dims.
fn end(c: &Call<'_>, place: usize, name: &str) -> Result<Scalar, Stop> {
    match c.get(place, name) {
        Some(Arg::Tensor(_)) => {
            let x = c.tensor(place, name)?;
            if x.dim() > 0 {
                return Err(Stop::Unwritable(format!("{name} has dims")));
            }
            Ok(item(x)?.scalar())
        }
        _ => c.scalar(place, name),
    }
}

/// Tensors of another's shape or dtype.
pub fn like(op: &str, c: &Call<'_>) -> Made {
    let cpu = Device::cpu();
    let x = || c.tensor(0, "input");
    let dtype = |x: &Tensor| Ok::<_, Stop>(c.dtype(usize::MAX, "dtype")?.unwrap_or(x.dtype()));
    match op {
        "full_like" => {
            one(x()?.full_like(c.scalar(1, "fill_value")?, c.dtype(usize::MAX, "dtype")?)?)
        }
        "ones_like" => one(x()?.ones_like(c.dtype(usize::MAX, "dtype")?)?),
        "zeros_like" => one(x()?.zeros_like(c.dtype(usize::MAX, "dtype")?)?),
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
