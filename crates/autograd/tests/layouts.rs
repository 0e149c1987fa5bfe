//! Every operation answers the same whatever the layout of its inputs: against itself on contiguous twins, which are
//! made by plain index enumeration. That the answers are right is for the recorded ones to say.

#[path = "layouts/along.rs"]
mod along;
#[path = "layouts/derivatives.rs"]
mod derivatives;
#[path = "layouts/elementwise.rs"]
mod elementwise;
#[path = "layouts/inputs.rs"]
mod inputs;
#[path = "layouts/places.rs"]
mod places;
#[path = "layouts/rows.rs"]
mod rows;

use inputs::{DTYPES, FULL, Lay, input, same, twin, walk};
use osteon_autograd::Tensor;
use osteon_spec::ops::{Class, OPS};
use osteon_spec::{DType, Result};
use rows::Row;
use std::collections::BTreeSet;

const LISTS: [&[Row]; 13] = [
    elementwise::UNARY,
    elementwise::MATRIX,
    elementwise::BINARY,
    elementwise::REST,
    along::PLAIN,
    along::REDUCTIONS,
    along::ORDER,
    along::LOSSES,
    along::POOLING,
    places::PRODUCTS,
    places::INDICES,
    places::PLAIN,
    places::ARRANGEMENTS,
];

/// Without a row, and why.
const NONE: [(&str, &str); 8] = [
    ("as_strided", "reads the storage whatever the layout"),
    (
        "as_strided_scatter",
        "writes the storage whatever the layout",
    ),
    ("view", "refuses some layouts"),
    ("view_as", "refuses some layouts"),
    ("view_as_complex", "refuses some layouts"),
    ("view_dtype", "refuses some layouts"),
    ("tril_indices", "takes no tensor"),
    ("triu_indices", "takes no tensor"),
];

/// The layouts of a row's inputs: one for all, or another for each.
fn settings() -> Vec<[Lay; 4]> {
    let mut all = vec![[Lay::Empty; 4], [Lay::Scalar; 4]];
    for (at, &lay) in FULL.iter().enumerate() {
        all.push([lay; 4]);
        all.push([0, 1, 2, 3].map(|k| FULL[(at + k) % FULL.len()]));
    }
    all
}

/// What results may differ by: nothing, except where sums are taken in another order and so round otherwise.
fn tolerance(name: &str, dtype: DType) -> f64 {
    let sums = [Class::Reduction, Class::Scan, Class::Product];
    let row = OPS.iter().find(|op| op.names.contains(&name));
    match dtype {
        _ if row.is_some_and(|op| !sums.contains(&op.class)) => 0.0,
        DType::F64 | DType::C128 => 1e-12,
        DType::F32 | DType::C64 => 1e-5,
        _ => 0.0,
    }
}

/// Runs a row on inputs, whose last dim is so many times as long, and on their twins; whether it answered.
fn check(row: &Row, dtype: (DType, bool), lays: &[Lay], times: usize) -> Result<bool> {
    let names = row.inputs.iter().zip(lays).enumerate();
    let given: Vec<Tensor> = names
        .map(|(seed, (name, &lay))| input(name, dtype, lay, seed, times))
        .collect::<Result<_>>()?;
    let twins: Vec<Tensor> = given.iter().map(twin).collect::<Result<_>>()?;
    let versions: Vec<u64> = given.iter().map(Tensor::version).collect();
    let place = format!("{} of {dtype:?}, {lays:?}, {times}", row.name);

    let (got, want) = match ((row.run)(&given), (row.run)(&twins)) {
        (Ok(got), Ok(want)) => (got, want),
        (Err(got), Err(want)) => {
            assert_eq!(got.kind(), want.kind(), "{place}: {got}, but {want}");
            (vec![], vec![])
        }
        (got, want) => panic!("{place}: {got:?}, but {want:?}"),
    };
    assert_eq!(got.len(), want.len(), "{place}");
    for (got, want) in got.iter().zip(&want) {
        assert_eq!(got.shape(), want.shape(), "{place}");
        assert_eq!(got.dtype(), want.dtype(), "{place}");
        let (a, b) = (walk(got)?, walk(want)?);
        let right = same(&a, &b, tolerance(row.name, got.dtype()));
        assert!(right, "{place}: {a:?}, but {b:?}");
    }
    for ((x, twin), version) in given.iter().zip(&twins).zip(versions) {
        assert_eq!(x.version(), version, "{place}");
        let (a, b) = (walk(x)?, walk(twin)?);
        assert!(same(&a, &b, 0.0), "{place}: input {b:?} became {a:?}");
    }
    Ok(!got.is_empty())
}

#[test]
fn layouts_make_no_difference() -> Result<()> {
    let settings = settings();
    for row in LISTS.iter().flat_map(|list| list.iter()) {
        for lays in &settings {
            let lays = &lays[..row.inputs.len()];
            let mut answered = false;
            for dtype in DTYPES {
                answered |= check(row, dtype, lays, 1)?;
            }
            let odd = matches!(lays[0], Lay::Empty | Lay::Scalar);
            let never = format!(
                "{} of {:?} never answers for {lays:?}",
                row.name, row.inputs
            );
            assert!(answered || odd, "{never}");
        }
    }
    Ok(())
}

/// The same over runs that are long enough for vectors and leave a rest, for rows whose inputs all have one shape.
#[test]
fn layouts_make_no_difference_to_long_runs() -> Result<()> {
    let alike = |row: &&Row| row.inputs.iter().all(|name| "xyzefim".contains(name));
    let mut answers = 0;
    for row in LISTS.iter().flat_map(|list| list.iter()).filter(alike) {
        for lay in FULL {
            for dtype in DTYPES {
                let lays = [lay; 4];
                answers += usize::from(check(row, dtype, &lays[..row.inputs.len()], 9)?);
            }
        }
    }
    assert!(answers > 8000, "only {answers}");
    Ok(())
}

#[test]
fn every_operation_has_a_row() {
    let rows: BTreeSet<&str> = LISTS
        .iter()
        .flat_map(|list| list.iter().map(|row| row.name))
        .collect();
    let table = OPS
        .iter()
        .filter(|op| !matches!(op.class, Class::Create | Class::InPlace))
        .flat_map(|op| op.names.iter().copied())
        .filter(|name| !name.ends_with('_') && !name.ends_with("_out"));
    for name in table.clone() {
        let none = NONE.iter().any(|(without, _)| *without == name);
        assert!(
            rows.contains(name) != none,
            "{name}: no row, or both a row and a reason"
        );
    }
    let table: BTreeSet<&str> = table.collect();
    for name in rows.iter().chain(NONE.iter().map(|(name, _)| name)) {
        let known = table.contains(name) || name.starts_with("functional::");
        assert!(known, "{name} is not in the table");
    }
}

/// Every result, and every copy on the way to it, names the line of the user who called, not one of ours.
#[test]
fn every_tensor_and_copy_is_of_the_caller_s_line() -> Result<()> {
    let mut foreign = BTreeSet::new();
    let mut check = |name: &str, op: &str, file: &str| {
        if !file.contains("tests/layouts") {
            foreign.insert(format!("{name}: {op} of {file}"));
        }
    };
    for row in LISTS.iter().flat_map(|list| list.iter()) {
        for lay in [FULL[0], FULL[1], FULL[2], Lay::Scalar] {
            for dtype in DTYPES {
                let lays = [lay; 4];
                let names = row.inputs.iter().zip(lays).enumerate();
                let given: Vec<Tensor> = names
                    .map(|(seed, (name, lay))| input(name, dtype, lay, seed, 1))
                    .collect::<Result<_>>()?;
                let mark = osteon_memory::copies::mark();
                let results = (row.run)(&given).unwrap_or_default();
                for result in &results {
                    let view = result.as_view();
                    check(row.name, view.op(), view.site().file());
                    if let osteon_memory::Origin::Allocated { op, site } = view.storage().origin() {
                        check(row.name, op, site.file());
                    }
                }
                for copy in osteon_memory::copies::since(&mark).iter() {
                    check(row.name, copy.op, copy.site.file());
                }
            }
        }
    }
    assert!(foreign.is_empty(), "{foreign:#?}");
    Ok(())
}

#[test]
fn every_derivative_is_that_of_its_differences() -> Result<()> {
    let mut wrong = Vec::new();
    for row in LISTS.iter().flat_map(|list| list.iter()) {
        for lay in derivatives::layouts().filter(|&lay| derivatives::is_checked(row, lay)) {
            let said = derivatives::wrong(row, lay).unwrap_or_else(|e| Some(e.to_string()));
            if let Some(said) = said {
                wrong.push(format!("{} {:?} of {lay:?}: {said}", row.name, row.inputs));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}
