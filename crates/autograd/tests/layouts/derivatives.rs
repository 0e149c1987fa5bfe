//! The derivative of every operation, over layouts, against central differences of the operation on row-major twins.

use crate::inputs::{FULL, Lay, input, twin};
use crate::rows::Row;
use osteon_autograd::Tensor;
use osteon_spec::{DType, Result};

const STEP: f64 = 1e-6;

/// Rows that are not checked, and why; those of the second list only where elements repeat.
const SKIPPED: [(&str, &str); 24] = [
    ("detach", "has no derivative: that is what it is for"),
    ("heaviside", "has none, as in PyTorch"),
    ("unique", "has none: the values of sets jump"),
    ("unique_dim", "has none"),
    ("unique_consecutive", "has none"),
    ("unique_consecutive_dim", "has none"),
    ("bincount", "has none, as in PyTorch"),
    ("histc", "has none, as in PyTorch"),
    ("where_numbers", "takes no tensor of numbers"),
    ("bfloat16", "rounds, so that differences are noise"),
    ("half", "rounds"),
    ("float", "rounds"),
    ("to", "rounds"),
    ("to_copy", "rounds"),
    (
        "index_copy",
        "of repeated indices the last wins, and all get its gradient, as in PyTorch",
    ),
    ("index_put", "the same"),
    ("put", "the same"),
    ("scatter", "the same"),
    ("remainder", "jumps within a step"),
    ("fmod", "jumps within a step"),
    ("functional::embedding", "the same as index_select, of rows"),
    ("mode", "of numbers that do not repeat any may be it"),
    ("quantiles", "has kinks where a rank is met"),
    ("quantile", "has kinks where a rank is met"),
];
const SKIPPED_WHERE_REPEATED: [&str; 22] = [
    "max",
    "min",
    "median",
    "nanmedian",
    "msort",
    "amax",
    "amin",
    "aminmax",
    "max_dim",
    "min_dim",
    "vector_norm",
    "norm",
    "matrix_norm",
    "cummax",
    "cummin",
    "sort",
    "topk",
    "kthvalue",
    "median_dim",
    "nanmedian_dim",
    "singular_values",
    "inverse",
];

/// An input with its layout, no element where functions have kinks or jumps, and no two alike.
fn smooth(name: &str, lay: Lay, seed: usize) -> Result<Tensor> {
    let x = input(name, (DType::F64, false), lay, seed, 1)?;
    if !x.dtype().is_float() {
        return x.detach();
    }
    let nudge = |t: &Tensor| -> Result<Tensor> {
        let steps: Vec<f64> = (0..t.numel())
            .map(|i| 0.0371 + 0.00173 * i as f64)
            .collect();
        let steps = Tensor::from_vec(steps, t.shape())?;
        match name {
            "e" | "f" | "o" => t.mul(0.8)?.add(&steps.mul(0.5)?),
            _ => t.add(&steps),
        }
    };
    if lay == Lay::Expanded && x.dim() > 0 {
        return nudge(&x.narrow(0, 0, 1)?)?.expand_as(&x)?.detach();
    }
    x.copy_(&nudge(&x)?)?;
    x.detach()
}

/// Different weights for the elements of results, so that no two errors cancel.
fn weighted(results: &[Tensor]) -> Result<Option<Tensor>> {
    let mut total: Option<Tensor> = None;
    for (k, t) in results.iter().enumerate() {
        if !t.dtype().is_float() {
            continue;
        }
        let weights: Vec<f64> = (0..t.numel())
            .map(|i| ((i + 3 * k) as f64 * 0.7548).fract() + 0.2)
            .collect();
        let weights = Tensor::from_vec(weights, t.shape())?.to(t.dtype())?;
        let part = t.mul(&weights)?.sum()?.to(DType::F64)?;
        total = Some(match total {
            None => part,
            Some(total) => total.add(&part)?,
        });
    }
    Ok(total)
}

/// Whether a row is checked for inputs that lie like this.
pub fn is_checked(row: &Row, lay: Lay) -> bool {
    !SKIPPED.iter().any(|(name, _)| *name == row.name)
        && (lay != Lay::Expanded || !SKIPPED_WHERE_REPEATED.contains(&row.name))
}

/// What is wrong with the derivative of a row for inputs that lie like this.
pub fn wrong(row: &Row, lay: Lay) -> Result<Option<String>> {
    let names = row.inputs.iter().enumerate();
    let given: Vec<Tensor> = names
        .map(|(seed, name)| smooth(name, lay, seed))
        .collect::<Result<_>>()?;
    let twins: Vec<Tensor> = given.iter().map(twin).collect::<Result<_>>()?;
    for t in given.iter().filter(|t| t.dtype().is_float()) {
        t.requires_grad_(true)?;
    }
    let Ok(results) = (row.run)(&given) else {
        return Ok(None);
    };
    let Some(total) = weighted(&results)? else {
        return Ok(None);
    };
    if !total.requires_grad() {
        // Results without numbers of the inputs: positions, comparisons, shapes.
        let of_numbers = given.iter().any(|t| t.dtype().is_float())
            && results.iter().any(|t| t.dtype().is_float());
        return Ok(of_numbers.then(|| "has no derivative".to_owned()));
    }
    total.backward()?;
    for (k, (x, t)) in given.iter().zip(&twins).enumerate() {
        if !x.dtype().is_float() {
            continue;
        }
        let got = match x.grad() {
            Some(g) => g.to_vec::<f64>()?,
            None => vec![0.0; x.numel()],
        };
        let numbers = t.to_vec::<f64>()?;
        for (i, &got) in got.iter().enumerate() {
            let at = |by: f64| -> Result<f64> {
                let mut moved = numbers.clone();
                moved[i] += by;
                let mut inputs = twins.clone();
                inputs[k] = Tensor::from_vec(moved, t.shape())?;
                weighted(&(row.run)(&inputs)?)?.map_or(Ok(0.0), |t| t.item())
            };
            let want = (at(STEP)? - at(-STEP)?) / (2.0 * STEP);
            if (got - want).abs() > 1e-5 * (1.0 + want.abs()) {
                return Ok(Some(format!(
                    "input {k}, element {i} of {:?}: {got}, but differences give {want}",
                    x.layout()
                )));
            }
        }
    }
    Ok(None)
}

/// The layouts to try.
pub fn layouts() -> impl Iterator<Item = Lay> {
    FULL.into_iter().chain([Lay::Scalar, Lay::Empty])
}
