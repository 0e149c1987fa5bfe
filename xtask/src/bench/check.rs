//! Is a result right: against the same operation on row-major copies in double precision.

use osteon::{Category, DType, Result, Tensor};

/// Row-major copies, floats in double precision.
pub fn twins(inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
    inputs.iter().map(|t| twin(t)).collect()
}

pub fn twin(tensor: &Tensor) -> Result<Tensor> {
    let wide = match tensor.dtype().category() {
        Category::Float => tensor.to(DType::F64)?,
        _ => tensor.clone(),
    };
    wide.copy()?.contiguous()
}

/// What differs by more than the dtype's digits explain, if anything.
pub fn same(got: &Tensor, want: &Tensor) -> Result<Option<String>> {
    if got.shape() != want.shape() {
        return Ok(Some(format!(
            "shape {:?}, want {:?}",
            got.shape(),
            want.shape()
        )));
    }
    let tolerance = match (got.dtype().is_float(), got.element_size()) {
        (false, _) => 0.0,
        (true, 8) => 1e-12,
        (true, 4) => 1e-4,
        (true, _) => 3e-2,
    };
    let (got, want) = (
        got.to(DType::F64)?.to_vec::<f64>()?,
        want.to(DType::F64)?.to_vec::<f64>()?,
    );
    let largest = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let differs = |(a, b): (&f64, &f64)| (a - b).abs() > tolerance * (b.abs() + largest);
    Ok(got
        .iter()
        .zip(&want)
        .position(differs)
        .map(|i| format!("element {i} is {}, want {}", got[i], want[i])))
}
