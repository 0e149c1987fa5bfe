//! Numbers into tensors and out of them.

use num_complex::Complex;
use osteon::{Category, DType, Result, Tensor};

use super::value::Number;

/// A contiguous tensor of these numbers.
pub fn make(numbers: &[Number], shape: &[usize], dtype: DType) -> Result<Tensor> {
    let reals = |numbers: &[Number]| numbers.iter().map(|n| n.re()).collect::<Vec<f64>>();
    let wide = match dtype.category() {
        Category::Bool => Tensor::from_vec(
            numbers.iter().map(|n| n.re() != 0.0).collect::<Vec<bool>>(),
            shape,
        )?,
        Category::Integer => Tensor::from_vec(
            numbers.iter().map(|n| n.whole()).collect::<Vec<i64>>(),
            shape,
        )?,
        Category::Float => Tensor::from_vec(reals(numbers), shape)?,
        Category::Complex => {
            let parts = numbers
                .iter()
                .flat_map(|n| [n.re(), n.im()])
                .collect::<Vec<f64>>();
            Tensor::from_vec(parts, [shape, &[2]].concat())?.view_as_complex()?
        }
    };
    wide.to(dtype)
}

/// A tensor's values in row-major order.
pub fn values(tensor: &Tensor) -> Result<Vec<Number>> {
    Ok(match tensor.dtype().category() {
        Category::Bool => tensor
            .to_vec::<bool>()?
            .into_iter()
            .map(|b| Number::Int(b.into()))
            .collect(),
        Category::Integer => {
            let whole = tensor.to(DType::I64)?.to_vec::<i64>()?;
            whole.into_iter().map(|n| Number::Int(n.into())).collect()
        }
        Category::Float => tensor
            .to(DType::F64)?
            .to_vec::<f64>()?
            .into_iter()
            .map(Number::Real)
            .collect(),
        Category::Complex => {
            let parts = tensor.to(DType::C128)?.view_as_real()?.to_vec::<f64>()?;
            parts
                .chunks_exact(2)
                .map(|z| Number::Complex(z[0], z[1]))
                .collect()
        }
    })
}

/// The one element of a tensor.
pub fn item(tensor: &Tensor) -> Result<Number> {
    Ok(match tensor.dtype().category() {
        Category::Bool => Number::Int(tensor.item::<bool>()?.into()),
        Category::Integer => Number::Int(tensor.item::<i64>()?.into()),
        Category::Float => Number::Real(tensor.item::<f64>()?),
        Category::Complex => {
            let z = tensor.item::<Complex<f64>>()?;
            Number::Complex(z.re, z.im)
        }
    })
}
