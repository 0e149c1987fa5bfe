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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::tensors::make;
    use osteon::DType;
    use serde_json::json;

    /// Whether these indices are as right as the recorded 1, 0, 2 for a sort of 1, 0, 1.
    fn right(kwargs: serde_json::Value, indices: [i128; 3]) -> bool {
        let line = json!({
            "op": "sort", "dtype": "float64", "kwargs": kwargs,
            "args": [{"tensor": {"dtype": "float64", "shape": [3], "stride": [1], "offset": 0, "storage": [1, 0, 1]}}],
            "out": [{"dtype": "float64", "shape": [3], "stride": [1], "offset": 0, "alias_of": null, "values": [0, 1, 1]},
                    {"dtype": "int64", "shape": [3], "stride": [1], "offset": 0, "alias_of": null, "values": [1, 0, 2]}]
        });
        let case = Case::parse(&line.to_string()).expect("a case");
        let want = Expected::parse(&line["out"][1]).expect("a result");
        let input = make(&[1, 0, 1].map(Number::Int), &[3], DType::F64).expect("memory");
        let got = make(&indices.map(Number::Int), &[3], DType::I64).expect("memory");
        equally_right(&case, 1, &want, &Output::Tensor(got), &[input])
    }

    #[test]
    fn any_index_of_an_equal_value_is_right() {
        assert!(right(json!({}), [1, 0, 2]));
        assert!(right(json!({}), [1, 2, 0]));
        assert!(!right(json!({}), [0, 1, 2]));
        assert!(!right(json!({}), [1, 2, 3]));
        assert!(!right(json!({"stable": true}), [1, 2, 0]));
    }

    #[test]
    fn indices_along_a_dim_are_looked_up_in_their_line() {
        let input =
            make(&[1, 2, 3, 4, 5, 6].map(Number::Int), &[2, 3], DType::I64).expect("memory");
        let input = Observed::of(&input).expect("values");
        let at = |dim, indices: &[i128]| {
            let indices: Vec<Number> = indices.iter().map(|n| Number::Int(*n)).collect();
            format!(
                "{:?}",
                picked(&input, dim, &indices).expect("indices in range")
            )
        };
        assert_eq!(at(Some(0), &[1, 0, 1]), "[4, 2, 6]");
        assert_eq!(at(Some(-1), &[2, 0]), "[3, 4]");
        assert_eq!(at(Some(1), &[2, 0, 0, 1]), "[3, 1, 4, 5]");
        assert_eq!(at(None, &[5]), "[6]");
    }
}
