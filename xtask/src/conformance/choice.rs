//! Where an operation promises no order among equal values, any index of an equal value is right.

use osteon::Tensor;

use super::case::{Case, Expected, Output};
use super::observe::Observed;
use super::value::Number;

/// Operations whose second result (or only one, for `argmax` and its like) is indices of which any
/// may be given among equal values: its place among the results, the place of the dim among the
/// arguments, and the dim in its absence.
const CHOICES: &[(&str, usize, usize, Option<isize>)] = &[
    ("argmax", 0, 1, None),
    ("argmin", 0, 1, None),
    ("argsort", 0, 1, Some(-1)),
    ("max", 1, 1, None),
    ("min", 1, 1, None),
    ("median", 1, 1, None),
    ("nanmedian", 1, 1, None),
    ("mode", 1, 1, Some(-1)),
    ("kthvalue", 1, 2, Some(-1)),
    ("topk", 1, 2, Some(-1)),
    ("sort", 1, 1, Some(-1)),
];

/// Whether a result that differs from the recorded one is indices of the same values.
pub fn equally_right(
    case: &Case,
    place: usize,
    want: &Expected,
    got: &Output,
    tensors: &[Tensor],
) -> bool {
    let Some((_, _, dim_place, absent)) = CHOICES
        .iter()
        .find(|(op, at, ..)| *op == case.op && *at == place)
    else {
        return false;
    };
    let call = case.call(tensors);
    if call.flag(usize::MAX, "stable").unwrap_or(false) {
        return false;
    }
    let (
        Expected::Tensor {
            dtype,
            shape,
            stride,
            values: want,
            ..
        },
        Output::Tensor(got),
    ) = (want, got)
    else {
        return false;
    };
    let (Ok(got), Some(Ok(input))) = (Observed::of(got), tensors.first().map(Observed::of)) else {
        return false;
    };
    if (*dtype, shape, stride) != (got.dtype, &got.shape, &got.stride) {
        return false;
    }
    let Ok(dim) = call
        .int_or_none(*dim_place, "dim")
        .map(|dim| dim.or(*absent))
    else {
        return false;
    };
    let at = |indices: &[Number]| picked(&input, dim, indices);
    match (at(want), at(&got.values)) {
        (Some(want), Some(got)) => want
            .iter()
            .zip(&got)
            .all(|(w, g)| w == g || (w.re().is_nan() && g.re().is_nan())),
        _ => false,
    }
}

/// The values that indices along a dim (over all elements, for none) stand for.
fn picked(input: &Observed, dim: Option<isize>, indices: &[Number]) -> Option<Vec<Number>> {
    let numel = input.values.len();
    let (inner, size) = match dim {
        Some(dim) if !input.shape.is_empty() => {
            let dim = usize::try_from(if dim < 0 {
                dim + input.shape.len() as isize
            } else {
                dim
            })
            .ok()?;
            (
                input.shape.get(dim + 1..)?.iter().product(),
                input.shape[dim],
            )
        }
        _ => (1, numel),
    };
    // Along the dim the result may have another size than the input; all else keeps its place.
    let lines = numel.checked_div(size)?;
    let per_line = indices.len().checked_div(lines)?;
    let pick = |(n, index): (usize, &Number)| {
        let Number::Int(index) = *index else {
            return None;
        };
        let (outer, inside) = (n / (per_line * inner), n % inner);
        let index = usize::try_from(index).ok().filter(|i| *i < size)?;
        input
            .values
            .get((outer * size + index) * inner + inside)
            .copied()
    };
    indices.iter().enumerate().map(pick).collect()
}
