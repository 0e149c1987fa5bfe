//! Reductions, scans, and what picks elements along a dim.

use crate::check::{check, complex, layouts, numbers};
use osteon_autograd::{Interpolation, MatrixNorm, Tensor};
use osteon_spec::Result;

/// Over all layouts.
fn over<const N: usize>(name: &str, shape: [usize; N], f: impl Fn(&Tensor) -> Result<Tensor>) {
    for (k, x) in layouts(&numbers(shape)).into_iter().enumerate() {
        check(&format!("{name}, layout {k}"), &[x], |x| f(&x[0]));
    }
}

/// Over all layouts without equal elements.
fn distinct<const N: usize>(name: &str, shape: [usize; N], f: impl Fn(&Tensor) -> Result<Tensor>) {
    for (k, x) in layouts(&numbers(shape)).into_iter().take(3).enumerate() {
        check(&format!("{name}, layout {k}"), &[x], |x| f(&x[0]));
    }
}

fn also_complex<const N: usize>(
    name: &str,
    shape: [usize; N],
    f: impl Fn(&Tensor) -> Result<Tensor>,
) {
    over(name, shape, &f);
    check(&format!("{name}, complex"), &[complex(shape)], |x| f(&x[0]));
}

fn leaf(values: &[f64]) -> Tensor {
    let x = Tensor::from_slice(values, [values.len()]).unwrap();
    x.requires_grad_(true).unwrap();
    x
}

/// The gradient of the sum of what `f` makes of these numbers.
fn gradient(values: &[f64], f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Vec<f64> {
    let x = leaf(values);
    f(&x).unwrap().sum().unwrap().backward().unwrap();
    x.grad().unwrap().to_vec().unwrap()
}

/// Equal, also where both are NaN.
#[track_caller]
fn same(got: &[f64], want: &[f64]) {
    let equal = |(a, b): (&f64, &f64)| a == b || (a - b).abs() < 1e-12 || a.is_nan() && b.is_nan();
    assert!(
        got.len() == want.len() && got.iter().zip(want).all(equal),
        "{got:?}, want {want:?}"
    );
}

#[test]
fn sums_and_means() {
    also_complex("sum", [2, 3], Tensor::sum);
    also_complex("sum of a number", [], Tensor::sum);
    also_complex("sum_dims", [2, 3, 2], |x| x.sum_dims([-1, 0], false));
    also_complex("sum_dims, kept", [2, 3], |x| x.sum_dims([1], true));
    over("sum_in", [2, 3], |x| {
        x.sum_in([0], false, osteon_spec::DType::F64)
    });
    also_complex("mean", [2, 3], Tensor::mean);
    also_complex("mean_dims", [2, 3, 2], |x| x.mean_dims([1], true));
    over("nansum", [2, 3], |x| x.nansum([0], false));
    over("nanmean", [2, 3], |x| x.nanmean([0], true));
    also_complex("trace", [2, 3], Tensor::trace);
    also_complex("sum_to_size", [2, 3, 2], |x| x.sum_to_size([3, 1]));
    also_complex("sum_to_size of its own", [2, 3], |x| {
        x.sum_to_size([2, 3])?.mul(x)
    });
    over("aminmax and sums", [0, 2], |x| {
        x.sum_dims([0], false)?.add(&x.prod_dim(0, false)?)
    });
}

#[test]
fn products() {
    also_complex("prod", [2, 3], Tensor::prod);
    also_complex("prod of a number", [], Tensor::prod);
    also_complex("prod_dim", [2, 3], |x| x.prod_dim(0, false));
    also_complex("prod_dim, kept", [2, 3], |x| x.prod_dim(-1, true));
    // Polynomials have derivatives also where factors are zero.
    let zeros = Tensor::new([[0.0f64, 2.0, 0.0], [3.0, -1.5, 0.0]]).unwrap();
    check("prod with zeros", std::slice::from_ref(&zeros), |x| {
        x[0].prod()
    });
    check("prod_dim with zeros", std::slice::from_ref(&zeros), |x| {
        x[0].prod_dim(1, false)
    });
    check("cumprod with zeros", &[zeros], |x| x[0].cumprod(1));
}

#[test]
fn extremes() {
    distinct("amax", [2, 3], |x| x.amax([0], false));
    distinct("amin", [2, 3], |x| x.amin([1, 0], true));
    distinct("max", [2, 3], Tensor::max);
    distinct("min", [2, 3], Tensor::min);
    distinct("max_dim", [2, 3], |x| Ok(x.max_dim(1, false)?.0));
    distinct("min_dim", [2, 3], |x| Ok(x.min_dim(0, true)?.0));
    distinct("aminmax", [2, 3], |x| {
        let (low, high) = x.aminmax([1], false)?;
        low.mul(&high)
    });
    // Ties and NaN as PyTorch has them.
    same(
        &gradient(&[1.0, 1.0, 0.0], |x| x.amax([0], false)),
        &[0.5, 0.5, 0.0],
    );
    same(
        &gradient(&[f64::NAN, 1.0], |x| x.amax([0], false)),
        &[f64::NAN; 2],
    );
    same(
        &gradient(&[f64::NAN, 1.0, f64::NAN], Tensor::max),
        &[0.5, 0.0, 0.5],
    );
    same(
        &gradient(&[1.0, 1.0, 0.0], |x| Ok(x.max_dim(0, false)?.0)),
        &[1.0, 0.0, 0.0],
    );
    same(
        &gradient(&[1.0, 1.0, 0.0, 3.0], Tensor::median),
        &[0.5, 0.5, 0.0, 0.0],
    );
    same(
        &gradient(&[1.0, f64::NAN, 0.0], Tensor::nanmedian),
        &[0.0, 0.0, 1.0],
    );
}

#[test]
fn spreads() {
    also_complex("var", [2, 3], |x| x.var([], 1.0, false));
    also_complex("var over a dim", [2, 3], |x| x.var([1], 0.5, true));
    also_complex("std", [3, 2], |x| x.std([], 0.0, false));
    distinct("std over a dim", [3, 2], |x| x.std([0], 1.0, false));
    over("var_mean", [2, 3], |x| {
        let (var, mean) = x.var_mean([1], 1.0, false)?;
        var.mul(&mean)
    });
    distinct("std_mean", [3, 2], |x| {
        let (std, mean) = x.std_mean([0], 1.0, true)?;
        std.mul(2.0)?.add(&mean)
    });
    over("the mean of var_mean", [2, 3], |x| {
        Ok(x.var_mean([1], 1.0, false)?.1)
    });
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    same(
        &gradient(&[1.0, 1.0], |x| x.std([], 1.0, false)),
        &[0.0, 0.0],
    );
    same(&gradient(&[1.0], |x| x.var([], 1.0, false)), &[nan]);
    same(
        &gradient(&[1.0, 2.0], |x| x.var([0], 3.0, false)),
        &[1.0, -1.0],
    );
    same(
        &gradient(&[1.0, 2.0], |x| x.var([], 3.0, false)),
        &[inf, inf],
    );
}

#[test]
fn norms() {
    for order in [0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -2.0] {
        also_complex(&format!("norm {order}"), [2, 3], |x| {
            x.vector_norm(order, [1], false)
        });
    }
    for order in [f64::INFINITY, f64::NEG_INFINITY] {
        distinct(&format!("norm {order}"), [2, 3], |x| {
            x.vector_norm(order, [0], true)
        });
    }
    over("norm of all", [2, 3], |x| x.norm(2.0));
    over("vector_norm_in", [3], |x| {
        x.vector_norm_in(3.0, [], false, osteon_spec::DType::F64)
    });
    for order in [1.0, 2.0, 3.0] {
        check(
            &format!("dist {order}"),
            &[numbers([2, 3]), numbers([3])],
            |x| x[0].dist(&x[1].mul(0.3)?, order),
        );
    }
    // The subgradients that PyTorch takes.
    let inf = f64::INFINITY;
    for order in [0.5, 1.0, 1.5, 2.0, 3.0, inf] {
        same(&gradient(&[0.0, 0.0], |x| x.norm(order)), &[0.0, 0.0]);
    }
    same(
        &gradient(&[3.0, -4.0, 3.0], |x| x.norm(f64::NEG_INFINITY)),
        &[0.5, 0.0, 0.5],
    );
    same(
        &gradient(&[3.0, -4.0, 0.0], |x| x.norm(-1.0)),
        &[0.0, 0.0, 0.0],
    );
    let x = leaf(&[3.0]);
    x.norm(0.0).unwrap().backward().unwrap();
    assert!(x.grad().is_none());
}

#[test]
fn norms_of_matrices() {
    let norms = [
        MatrixNorm::Fro,
        MatrixNorm::Nuc,
        MatrixNorm::Order(2.0),
        MatrixNorm::Order(-2.0),
        MatrixNorm::Order(1.0),
        MatrixNorm::Order(f64::NEG_INFINITY),
    ];
    for norm in norms {
        for shape in [[2, 3, 2], [2, 2, 3], [1, 3, 3]] {
            let name = format!("{norm:?} of {shape:?}");
            check(&name, &[numbers(shape)], |x| {
                x[0].matrix_norm(norm, [1, 2], false)
            });
            check(&format!("{name}, complex"), &[complex(shape)], |x| {
                x[0].matrix_norm(norm, [-1, 1], true)
            });
        }
    }
    distinct("singular values", [3, 2], Tensor::singular_values);
}

#[test]
fn logarithms_of_sums() {
    over("logsumexp", [2, 3], |x| x.logsumexp([1], false));
    over("logsumexp of all", [2, 3], |x| x.logsumexp([], true));
    also_complex("logcumsumexp", [2, 3], |x| x.logcumsumexp(1));
    over("logcumsumexp of far numbers", [3], |x| {
        x.mul(300.0)?.logcumsumexp(0)?.mul(1e-3)
    });
    also_complex("logcumsumexp of a number", [], |x| x.logcumsumexp(0));
}

#[test]
fn scans() {
    also_complex("cumsum", [2, 3], |x| x.cumsum(1));
    also_complex("cumsum of a number", [], |x| x.cumsum(0));
    also_complex("cumprod", [2, 3], |x| x.cumprod(-1));
    also_complex("cumprod along the first dim", [3, 2], |x| x.cumprod(0));
    distinct("cummax", [2, 3], |x| Ok(x.cummax(1)?.0));
    distinct("cummin", [3, 2], |x| Ok(x.cummin(0)?.0));
    also_complex("cumsum_", [2, 3], |x| {
        let y = x.mul(2)?;
        y.cumsum_(1)?;
        Ok(y)
    });
    also_complex("cumprod_", [2, 3], |x| {
        let y = x.mul(2)?;
        y.cumprod_(0)?;
        Ok(y)
    });
    same(
        &gradient(&[1.0, 0.0, 0.0, 3.0], |x| x.cumprod(0)),
        &[1.0, 1.0, 0.0, 0.0],
    );
    same(
        &gradient(&[2.0, 1.0, 3.0], |x| Ok(x.cummax(0)?.0)),
        &[2.0, 0.0, 1.0],
    );
}

#[test]
fn order_along_a_dim() {
    distinct("sort", [2, 3], |x| Ok(x.sort(1, true)?.0));
    distinct("sort of a number", [], |x| Ok(x.sort(0, false)?.0));
    distinct("msort", [3, 2], Tensor::msort);
    distinct("topk", [2, 3], |x| Ok(x.topk(2, -1, true)?.0));
    distinct("kthvalue", [2, 3], |x| Ok(x.kthvalue(2, 1, true)?.0));
    distinct("median_dim", [2, 3], |x| Ok(x.median_dim(1, false)?.0));
    distinct("nanmedian_dim", [3, 2], |x| Ok(x.nanmedian_dim(0, true)?.0));
    distinct("median", [2, 3], Tensor::median);
    distinct("mode", [2, 3], |x| Ok(x.mode(1, false)?.0));
    for how in [
        Interpolation::Linear,
        Interpolation::Midpoint,
        Interpolation::Higher,
    ] {
        distinct("quantile", [2, 3], |x| x.quantile(0.3, Some(1), false, how));
    }
    check(
        "quantiles",
        &[numbers([2, 3]), Tensor::new([0.3f64, 0.8]).unwrap()],
        |x| x[0].quantiles(&x[1], Some(0), true, Interpolation::Linear),
    );
    same(
        &gradient(&[1.0, f64::NAN, 2.0], |x| {
            x.quantile(0.3, None, false, Interpolation::Linear)
        }),
        &[0.0, 1.0, 0.0],
    );
}

/// A second pass over what was freed is an error where PyTorch saves something.
#[test]
fn second_passes() {
    type Op = fn(&Tensor) -> Result<Tensor>;
    let twice = |op: Op| {
        let x = leaf(&[1.0, 2.0, 3.0, 5.0]);
        let y = op(&x).unwrap().sum().unwrap();
        y.backward().unwrap();
        y.backward().is_ok()
    };
    let saves_nothing: [Op; 5] = [
        Tensor::sum,
        Tensor::mean,
        |x| x.view([2, 2])?.trace(),
        |x| x.sum_to_size([1]),
        |x| x.cumsum(0),
    ];
    assert!(saves_nothing.into_iter().all(twice));
    let saves: [Op; 17] = [
        Tensor::prod,
        Tensor::max,
        Tensor::median,
        |x| x.amax([0], false),
        |x| x.var([], 1.0, false),
        |x| x.std([], 1.0, false),
        |x| x.logsumexp([0], false),
        |x| x.nansum([], false),
        |x| x.norm(2.0),
        |x| x.cumprod(0),
        |x| Ok(x.sort(0, false)?.0),
        |x| Ok(x.cummax(0)?.0),
        |x| Ok(x.aminmax([], false)?.0),
        |x| x.quantile(0.5, None, false, Interpolation::Linear),
        |x| x.view([2, 2])?.singular_values(),
        |x| x.softmax(0),
        |x| x.layer_norm([4], None, None, 1e-5),
    ];
    assert!(!saves.into_iter().any(twice));
}
