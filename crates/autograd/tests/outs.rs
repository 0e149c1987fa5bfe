//! Results in given tensors: which dtypes PyTorch takes and what they then hold, strides, overlap, versions, and that a
//! failure changes nothing.

use osteon_autograd::{Interpolation, MatrixNorm, Rounding, Tensor, no_grad};
use osteon_memory::copies;
use osteon_spec::{DType, Device, Result};
use std::collections::HashMap;

/// An operation: what it gives anew, and how it writes that into given tensors.
struct Row {
    name: &'static str,
    fresh: fn(&Tensor) -> Result<Vec<Tensor>>,
    write: fn(&Tensor, &[Tensor]) -> Result<()>,
}

/// `name: |x| result; |out| write;`, with as many results as `out` is said to have.
macro_rules! rows {
    ($($name:literal: |$x:ident| $fresh:expr; |$o:ident| $write:expr;)*) => {
        &[$(Row {
            name: $name,
            fresh: |$x| Results::list($fresh?),
            write: |$x, $o| $write,
        }),*]
    };
}

trait Results {
    fn list(self) -> Result<Vec<Tensor>>;
}
impl Results for Tensor {
    fn list(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}
impl Results for (Tensor, Tensor) {
    fn list(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.0, self.1])
    }
}

fn row(x: &Tensor, i: isize) -> Result<Tensor> {
    x.select(0, i)
}
fn batch(x: &Tensor) -> Result<Tensor> {
    x.unsqueeze(0)
}
fn two(x: &Tensor) -> Result<Tensor> {
    Tensor::new([1i64, 2])?.to(x.dtype())
}
fn places() -> Result<Tensor> {
    Tensor::new([[0i64, 1, 2]])
}
const FRO: MatrixNorm = MatrixNorm::Fro;
const LINEAR: Interpolation = Interpolation::Linear;

/// Every `_out` that has a dtype rule of its own, on a 3×3 matrix.
const ROWS: &[Row] = rows! {
    "sum_dims": |x| x.sum_dims([0], false); |o| x.sum_dims_out([0], false, &o[0]);
    "nansum": |x| x.nansum([0], false); |o| x.nansum_out([0], false, &o[0]);
    "mean_dims": |x| x.mean_dims([0], false); |o| x.mean_dims_out([0], false, &o[0]);
    "nanmean": |x| x.nanmean([0], false); |o| x.nanmean_out([0], false, &o[0]);
    "prod_dim": |x| x.prod_dim(0, false); |o| x.prod_dim_out(0, false, &o[0]);
    "amax": |x| x.amax([0], false); |o| x.amax_out([0], false, &o[0]);
    "argmax_dim": |x| x.argmax_dim(0, false); |o| x.argmax_dim_out(0, false, &o[0]);
    "all_dims": |x| x.all_dims([0], false); |o| x.all_dims_out([0], false, &o[0]);
    "any": |x| x.any(); |o| x.any_out(&o[0]);
    "var": |x| x.var([0], 1.0, false); |o| x.var_out([0], 1.0, false, &o[0]);
    "std": |x| x.std([0], 1.0, false); |o| x.std_out([0], 1.0, false, &o[0]);
    "vector_norm": |x| x.vector_norm(2.0, [0], false); |o| x.vector_norm_out(2.0, [0], false, &o[0]);
    "matrix_norm": |x| x.matrix_norm(FRO, [-2, -1], false); |o| x.matrix_norm_out(FRO, [-2, -1], false, &o[0]);
    "logsumexp": |x| x.logsumexp([0], false); |o| x.logsumexp_out([0], false, &o[0]);
    "cumsum": |x| x.cumsum(0); |o| x.cumsum_out(0, &o[0]);
    "cumprod": |x| x.cumprod(0); |o| x.cumprod_out(0, &o[0]);
    "logcumsumexp": |x| x.logcumsumexp(0); |o| x.logcumsumexp_out(0, &o[0]);
    "cat": |x| Tensor::cat(&[x, x], 0); |o| Tensor::cat_out(&[x, x], 0, &o[0]);
    "stack": |x| Tensor::stack(&[x, x], 0); |o| Tensor::stack_out(&[x, x], 0, &o[0]);
    "stack_last": |x| Tensor::stack(&[x, x], 2); |o| Tensor::stack_out(&[x, x], 2, &o[0]);
    "hstack": |x| Tensor::hstack(&[x, x]); |o| Tensor::hstack_out(&[x, x], &o[0]);
    "vstack": |x| Tensor::vstack(&[x, x]); |o| Tensor::vstack_out(&[x, x], &o[0]);
    "dstack": |x| Tensor::dstack(&[x, x]); |o| Tensor::dstack_out(&[x, x], &o[0]);
    "column_stack": |x| Tensor::column_stack(&[x, x]); |o| Tensor::column_stack_out(&[x, x], &o[0]);
    "msort": |x| x.msort(); |o| x.msort_out(&o[0]);
    "mm": |x| x.mm(x); |o| x.mm_out(x, &o[0]);
    "bmm": |x| batch(x)?.bmm(&batch(x)?); |o| batch(x)?.bmm_out(&batch(x)?, &o[0]);
    "mv": |x| x.mv(&row(x, 0)?); |o| x.mv_out(&row(x, 0)?, &o[0]);
    "dot": |x| row(x, 0)?.dot(&row(x, 1)?); |o| row(x, 0)?.dot_out(&row(x, 1)?, &o[0]);
    "vdot": |x| row(x, 0)?.vdot(&row(x, 1)?); |o| row(x, 0)?.vdot_out(&row(x, 1)?, &o[0]);
    "matmul": |x| x.matmul(x); |o| x.matmul_out(x, &o[0]);
    "inner": |x| x.inner(x); |o| x.inner_out(x, &o[0]);
    "outer": |x| row(x, 0)?.outer(&row(x, 1)?); |o| row(x, 0)?.outer_out(&row(x, 1)?, &o[0]);
    "tensordot": |x| x.tensordot(x, [1], [0]); |o| x.tensordot_out(x, [1], [0], &o[0]);
    "addmm": |x| x.addmm(x, x); |o| x.addmm_out(x, x, 1, 1, &o[0]);
    "addmv": |x| row(x, 0)?.addmv(x, &row(x, 0)?); |o| row(x, 0)?.addmv_out(x, &row(x, 0)?, 1, 1, &o[0]);
    "addbmm": |x| x.addbmm(&batch(x)?, &batch(x)?); |o| x.addbmm_out(&batch(x)?, &batch(x)?, 1, 1, &o[0]);
    "baddbmm": |x| batch(x)?.baddbmm(&batch(x)?, &batch(x)?);
        |o| batch(x)?.baddbmm_out(&batch(x)?, &batch(x)?, 1, 1, &o[0]);
    "addr": |x| x.addr(&row(x, 0)?, &row(x, 1)?, 1, 1); |o| x.addr_out(&row(x, 0)?, &row(x, 1)?, 1, 1, &o[0]);
    "vecdot": |x| x.vecdot(x, -1); |o| x.vecdot_out(x, -1, &o[0]);
    "cross": |x| x.cross(&x.t()?, 1); |o| x.cross_out(&x.t()?, 1, &o[0]);
    "multi_dot": |x| Tensor::multi_dot(&[x, x, x]); |o| Tensor::multi_dot_out(&[x, x, x], &o[0]);
    "matrix_power": |x| x.matrix_power(3); |o| x.matrix_power_out(3, &o[0]);
    "inverse": |x| x.inverse(); |o| x.inverse_out(&o[0]);
    "softmax": |x| x.softmax(0); |o| x.softmax_out(0, &o[0]);
    "log_softmax": |x| x.log_softmax(0); |o| x.log_softmax_out(0, &o[0]);
    "tril": |x| x.tril(0); |o| x.tril_out(0, &o[0]);
    "diag": |x| x.diag(0); |o| x.diag_out(0, &o[0]);
    "diag_vector": |x| row(x, 0)?.diag(0); |o| row(x, 0)?.diag_out(0, &o[0]);
    "diff": |x| x.diff(1, -1, None, None); |o| x.diff_out(1, -1, None, None, &o[0]);
    "take_along_dim": |x| x.take_along_dim(&places()?, Some(0)); |o| x.take_along_dim_out(&places()?, Some(0), &o[0]);
    "nonzero": |x| x.nonzero(); |o| x.nonzero_out(&o[0]);
    "bucketize": |x| x.bucketize(&two(x)?, false); |o| x.bucketize_out(&two(x)?, false, &o[0]);
    "searchsorted": |x| two(x)?.searchsorted(x, false, None); |o| two(x)?.searchsorted_out(x, false, None, &o[0]);
    "histc": |x| x.histc(4, 0.0, 0.0); |o| x.histc_out(4, 0.0, 0.0, &o[0]);
    "quantile": |x| x.quantile(0.5, Some(0), false, LINEAR); |o| x.quantile_out(0.5, Some(0), false, LINEAR, &o[0]);
    "where": |x| x.r#where(&x.real()?.gt(1)?, x); |o| x.where_out(&x.real()?.gt(1)?, x, &o[0]);
    "isin": |x| x.isin(x, false); |o| x.isin_out(x, false, &o[0]);
    "median_dim": |x| x.median_dim(0, false); |o| x.median_dim_out(0, false, (&o[0], &o[1]));
    "max_dim": |x| x.max_dim(0, false); |o| x.max_dim_out(0, false, (&o[0], &o[1]));
    "sort": |x| x.sort(0, false); |o| x.sort_out(0, false, (&o[0], &o[1]));
    "topk": |x| x.topk(2, 0, true); |o| x.topk_out(2, 0, true, (&o[0], &o[1]));
    "kthvalue": |x| x.kthvalue(2, 0, false); |o| x.kthvalue_out(2, 0, false, (&o[0], &o[1]));
    "mode": |x| x.mode(0, false); |o| x.mode_out(0, false, (&o[0], &o[1]));
    "cummax": |x| x.cummax(0); |o| x.cummax_out(0, (&o[0], &o[1]));
    "nanmedian_dim": |x| x.nanmedian_dim(0, false); |o| x.nanmedian_dim_out(0, false, (&o[0], &o[1]));
    "aminmax": |x| x.aminmax([0], false); |o| x.aminmax_out([0], false, (&o[0], &o[1]));
    "addcmul": |x| x.addcmul(x, x, 1); |o| x.addcmul_out(x, x, 1, &o[0]);
    "addcdiv": |x| x.addcdiv(x, x, 1); |o| x.addcdiv_out(x, x, 1, &o[0]);
    "lerp": |x| x.lerp(x, 0.5); |o| x.lerp_out(x, 0.5, &o[0]);
    "logit": |x| x.logit(Some(1e-3)); |o| x.logit_out(Some(1e-3), &o[0]);
    "add_scaled": |x| x.add_scaled(x, 2); |o| x.add_scaled_out(x, 2, &o[0]);
    "div_rounding": |x| x.div_rounding(x, Rounding::Floor); |o| x.div_rounding_out(x, Rounding::Floor, &o[0]);
    "complex": |x| Tensor::complex(x, x); |o| Tensor::complex_out(x, x, &o[0]);
};

/// Those that read nothing.
const SEQUENCES: &[Row] = rows! {
    "arange": |_x| Tensor::arange(0, 5, 1); |o| Tensor::arange_out(0, 5, 1, &o[0]);
    "arange_floats": |_x| Tensor::arange(0, 2.5, 0.5); |o| Tensor::arange_out(0, 2.5, 0.5, &o[0]);
    "linspace": |_x| Tensor::linspace(0, 3, 4, DType::F32, &Device::cpu()); |o| Tensor::linspace_out(0, 3, 4, &o[0]);
    "logspace": |_x| Tensor::logspace(0, 3, 4, 10.0, DType::F32, &Device::cpu());
        |o| Tensor::logspace_out(0, 3, 4, 10.0, &o[0]);
    "eye": |_x| Tensor::eye(3, DType::F32, &Device::cpu()); |o| Tensor::eye_out(3, 3, &o[0]);
};

/// Those that make their result anew and copy it, logged, into the given tensor.
const THROUGH_A_TEMPORARY: [&str; 8] = [
    "matrix_power",
    "inverse",
    "diff",
    "bucketize",
    "searchsorted",
    "histc",
    "quantile",
    "isin",
];

fn matrix(dtype: DType) -> Tensor {
    let x = [[1.3, 2.7, -0.4], [3.1, 0.2, 5.9], [0.7, 1.1, 2.2]];
    Tensor::new(x.map(|row| row.map(|v| v as f32)))
        .unwrap()
        .to(dtype)
        .unwrap()
}

/// The elements, of complex ones both parts.
fn numbers(x: &Tensor) -> Vec<f64> {
    let x = if x.dtype().is_complex() {
        x.view_as_real().unwrap()
    } else {
        x.clone()
    };
    x.to(DType::F64).unwrap().to_vec().unwrap()
}

fn dtype(name: &str) -> DType {
    let names = ["f32", "f64", "f16", "i64", "i32", "u8", "b", "c64"];
    let dtypes = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::Bool,
        DType::C64,
    ];
    dtypes[names.iter().position(|&n| n == name).unwrap()]
}

/// Whether osteon takes or refuses what PyTorch does not, or holds another number, and why.
fn differs(name: &str, from: &str, to: &str) -> bool {
    match (name, from, to) {
        // PyTorch casts the elements to uint8 before it asks whether they are true: 0.2 is not.
        ("all_dims", "f32" | "f16" | "c64", "u8") => true,
        // PyTorch drops the imaginary parts, with a warning.
        ("logsumexp", "c64", "f32" | "f64" | "f16") => true,
        _ => false,
    }
}

#[test]
fn an_out_of_any_dtype_that_pytorch_takes_is_taken_and_no_other() {
    /// The shape of a result, and its elements.
    type Record = (Vec<usize>, Vec<f64>);
    let mut records: HashMap<(&str, &str, &str), Record> = HashMap::new();
    let mut shapes: HashMap<&str, Vec<usize>> = HashMap::new();
    for line in include_str!("data/outs.txt").lines() {
        let [name, from, to, shape, values] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let shape: Vec<usize> = shape
            .split('x')
            .filter(|&n| n != "-")
            .map(|n| n.parse().unwrap())
            .collect();
        let values = values.split(',').map(|v| v.parse().unwrap()).collect();
        shapes.insert(name, shape.clone());
        records.insert((name, from, to), (shape, values));
    }
    let mut failures = Vec::new();
    for name in shapes.keys() {
        let (method, tested) = name
            .split_once('.')
            .map_or((*name, 0), |(m, k)| (m, k.parse().unwrap()));
        let rows = || ROWS.iter().chain(SEQUENCES);
        let row = rows().find(|row| row.name == method).expect(name);
        for from in ["f32", "f16", "i64", "b", "c64"] {
            let reads_nothing = SEQUENCES.iter().any(|row| row.name == method);
            if reads_nothing && from != "f32" {
                continue;
            }
            let x = matrix(dtype(from));
            let fresh = (row.fresh)(&x).ok();
            for to in ["f32", "f64", "f16", "i64", "i32", "u8", "b", "c64"] {
                if differs(name, from, to) {
                    continue;
                }
                let wanted = records.get(&(*name, from, to));
                // The number of rows of `nonzero` depends on the elements.
                let shape = wanted.map_or(&shapes[name], |w| &w.0);
                let outs: Vec<Tensor> = (0..2)
                    .map(|k| {
                        let kind = match &fresh {
                            Some(fresh) if k != tested && k < fresh.len() => fresh[k].dtype(),
                            _ => dtype(to),
                        };
                        Tensor::full(shape, 1, kind, &Device::cpu()).unwrap()
                    })
                    .collect();
                let what = format!("{name}_out of {from} into {to}");
                let done = (row.write)(&x, &outs);
                let out = &outs[tested];
                match (wanted, done) {
                    (None, Ok(())) => failures.push(format!("{what}: taken, {:?}", numbers(out))),
                    (Some(_), Err(e)) => failures.push(format!("{what}: {e}")),
                    (None, Err(_)) => {
                        let same = numbers(out) == numbers(&out.ones_like(None).unwrap());
                        assert!(same && out.version() == 0, "{what} changed something");
                    }
                    (Some((_, values)), Ok(())) => {
                        let tolerance = if [from, to].contains(&"f16") {
                            5e-3
                        } else {
                            2e-5
                        };
                        let close = |a: &f64, b: &f64| {
                            (a - b).abs() <= tolerance * (1.0 + b.abs())
                                || a == b
                                || (a.is_nan() && b.is_nan())
                        };
                        let found = numbers(out);
                        if !found.iter().zip(values).all(|(a, b)| close(a, b)) {
                            failures.push(format!("{what}: {found:?}, PyTorch {values:?}"));
                        }
                        assert_eq!(out.version(), 1, "{what}");
                    }
                }
            }
        }
    }
    failures.sort();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A tensor of this shape whose strides are those of a transposed every-second slice, and the whole of its storage.
fn spread(like: &Tensor) -> (Tensor, Tensor) {
    let mut shape: Vec<usize> = like.shape().iter().rev().copied().collect();
    shape.push(2);
    let whole = Tensor::full(shape, 1, like.dtype(), &like.device()).unwrap();
    let half = whole.select(-1, 1).unwrap();
    let dims: Vec<isize> = (0..half.dim() as isize).rev().collect();
    (half.permute(dims).unwrap(), whole.select(-1, 0).unwrap())
}

/// Every row on the dtypes that it is defined for, with what it gives anew.
fn each(mut look: impl FnMut(&Row, &Tensor, Vec<Tensor>)) {
    for dtype in [DType::F64, DType::C128, DType::I64, DType::Bool] {
        for row in ROWS.iter().chain(SEQUENCES) {
            for x in [matrix(dtype), matrix(dtype).t().unwrap()] {
                if let Ok(fresh) = (row.fresh)(&x) {
                    look(row, &x, fresh);
                }
            }
        }
    }
}

#[test]
fn an_out_is_written_through_its_strides_and_counts_once() {
    each(|row, x, fresh| {
        let (outs, rest): (Vec<_>, Vec<_>) = fresh.iter().map(spread).unzip();
        (row.write)(x, &outs).unwrap_or_else(|e| panic!("{}: {e}", row.name));
        for ((out, rest), fresh) in outs.iter().zip(rest).zip(&fresh) {
            assert!(
                out.equal(fresh).unwrap(),
                "{}: {out} instead of {fresh}",
                row.name
            );
            assert!(
                rest.equal(&rest.ones_like(None).unwrap()).unwrap(),
                "{}",
                row.name
            );
            assert_eq!(out.version(), 1, "{}", row.name);
        }
    });
}

#[test]
fn only_what_says_so_copies_its_result() {
    each(|row, x, fresh| {
        let outs: Vec<Tensor> = fresh.iter().map(|t| t.empty_like().unwrap()).collect();
        let forbidden = copies::forbid();
        let done = (row.write)(x, &outs);
        drop(forbidden);
        let refused = done.is_err_and(|e| e.is_copy_forbidden());
        let temporary = THROUGH_A_TEMPORARY.contains(&row.name);
        assert_eq!(refused, temporary, "{}", row.name);
    });
}

#[test]
fn another_shape_an_expanded_out_and_a_guarded_input_are_refused_and_change_nothing() {
    each(|row, x, fresh| {
        let name = row.name;
        let unchanged = |out: &Tensor| {
            assert_eq!(out.version(), 0, "{name}");
            assert!(out.equal(&out.ones_like(None).unwrap()).unwrap(), "{name}");
        };
        let ones = |shape: &[usize], k: usize| {
            Tensor::full(shape, 1, fresh[k].dtype(), &Device::cpu()).unwrap()
        };
        for k in 0..fresh.len() {
            let outs = |wrong: Tensor| -> Vec<Tensor> {
                let mut outs: Vec<Tensor> = (0..fresh.len())
                    .map(|k| ones(fresh[k].shape(), k))
                    .collect();
                outs[k] = wrong;
                outs
            };
            let mut larger = fresh[k].shape().to_vec();
            larger.push(2);
            let given = outs(ones(&larger, k));
            assert!((row.write)(x, &given).is_err(), "{name}");
            given.iter().for_each(unchanged);
            if fresh[k].numel() > 1 {
                let all: Vec<isize> = fresh[k].shape().iter().map(|&n| n as isize).collect();
                let given = outs(ones(&[], k).expand(all).unwrap());
                assert!((row.write)(x, &given).unwrap_err().is_overlap(), "{name}");
                given.iter().for_each(unchanged);
            }
        }
        let given: Vec<Tensor> = (0..fresh.len())
            .map(|k| ones(fresh[k].shape(), k))
            .collect();
        if SEQUENCES.iter().all(|s| s.name != name) {
            let guard = x.view_as_bytes_guard();
            assert!((row.write)(x, &given).unwrap_err().is_borrowed(), "{name}");
            drop(guard);
            given.iter().for_each(unchanged);
        }
    });
}

/// A write guard, whatever the dtype.
trait Guarded {
    fn view_as_bytes_guard(&self) -> Box<dyn std::any::Any>;
}
impl Guarded for Tensor {
    fn view_as_bytes_guard(&self) -> Box<dyn std::any::Any> {
        match self.dtype() {
            DType::F64 => Box::new(self.write::<f64>().unwrap()),
            DType::I64 => Box::new(self.write::<i64>().unwrap()),
            DType::Bool => Box::new(self.write::<bool>().unwrap()),
            _ => Box::new(self.write::<num_complex::Complex<f64>>().unwrap()),
        }
    }
}

#[test]
fn an_out_that_is_an_input_is_right_or_refused() {
    each(|row, x, fresh| {
        for k in 0..fresh.len() {
            if fresh[k].dtype() != x.dtype() || fresh[k].shape() != x.shape() {
                continue;
            }
            let x = x.copy().unwrap();
            let mut outs: Vec<Tensor> = fresh.iter().map(|t| t.empty_like().unwrap()).collect();
            outs[k] = x.clone();
            let before = x.copy().unwrap();
            match (row.write)(&x, &outs) {
                Ok(()) => assert!(x.equal(&fresh[k]).unwrap(), "{}", row.name),
                Err(e) => {
                    assert!(e.is_overlap(), "{}: {e}", row.name);
                    assert!(x.equal(&before).unwrap(), "{}", row.name);
                }
            }
            // Now a row further on.
            let whole = Tensor::full([12], 1, x.dtype(), &x.device()).unwrap();
            let x = whole.as_strided([3, 3], [3, 1], Some(0)).unwrap();
            x.copy_(&before).unwrap();
            outs[k] = whole.as_strided([3, 3], [3, 1], Some(3)).unwrap();
            match (row.write)(&x, &outs) {
                Ok(()) => assert!(outs[k].equal(&fresh[k]).unwrap(), "{}", row.name),
                Err(e) => {
                    assert!(e.is_overlap(), "{}: {e}", row.name);
                    assert!(x.equal(&before).unwrap(), "{}", row.name);
                }
            }
        }
    });
}

#[test]
fn two_outs_of_one_storage_are_refused() -> Result<()> {
    let x = Tensor::new([3i64, 1, 2])?;
    let out = Tensor::new([0i64, 0, 0])?;
    assert!(x.sort_out(0, false, (&out, &out)).unwrap_err().is_overlap());
    assert_eq!((out.version(), out.to_vec::<i64>()?), (0, vec![0, 0, 0]));
    Ok(())
}

#[test]
fn gradients_are_not_recorded_but_asked_for() -> Result<()> {
    let names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    let without = [
        "argmax_dim",
        "all_dims",
        "any",
        "nonzero",
        "bucketize",
        "searchsorted",
        "isin",
    ];
    for row in ROWS {
        let x = matrix(DType::F64);
        let Ok(fresh) = (row.fresh)(&x) else { continue };
        x.requires_grad_(true)?;
        let outs: Vec<Tensor> = fresh.iter().map(|t| t.empty_like().unwrap()).collect();
        let refused = (row.write)(&x, &outs).is_err();
        assert_eq!(
            refused,
            !without.contains(&row.name),
            "{} of {names:?}",
            row.name
        );
        if refused {
            assert!(outs.iter().all(|out| out.version() == 0), "{}", row.name);
        }
        no_grad(|| (row.write)(&x, &outs))?;
        assert!(
            outs.iter().zip(&fresh).all(|(a, b)| a.equal(b).unwrap()),
            "{}",
            row.name
        );
    }
    let leaf = Tensor::new([0f64; 3])?;
    leaf.requires_grad_(true)?;
    assert!(matrix(DType::F64).sum_dims_out([0], false, &leaf).is_err());
    Ok(())
}
