//! Operations element by element: over layouts, broadcast, in place, and of complex numbers.

use crate::check::{check, check_first, complex, layouts, numbers};
use osteon_autograd::functional::{self as f, Reduction};
use osteon_autograd::{Rounding, Tensor};
use osteon_spec::{DType, Device, Result};

type OfOne = fn(&Tensor) -> Result<Tensor>;
type OfTwo = fn(&Tensor, &Tensor) -> Result<Tensor>;
type InPlace = fn(&Tensor, &Tensor) -> Result<()>;

/// Methods by their names, `name` or `name(arguments)`.
macro_rules! methods {
    ($($name:ident $(($($arg:expr),*))?),*) => {
        [$((stringify!($name), (|x: &Tensor| x.$name($($($arg),*)?)) as OfOne)),*]
    };
}

/// Over layouts, without dims, and without elements.
fn everywhere(name: &str, of: impl Fn(&Tensor) -> Result<Tensor>) {
    let mut inputs = layouts(&numbers([2, 3]));
    inputs.push(numbers([]));
    inputs.push(Tensor::zeros([0, 2], DType::F64, &Device::cpu()).expect("memory"));
    for x in inputs {
        check(name, &[x], |x| of(&x[0]));
    }
}

#[test]
fn of_any_real_number() {
    for (name, of) in methods![
        neg,
        abs,
        square,
        sgn,
        relu,
        exp,
        exp2,
        expm1,
        sin,
        cos,
        tan,
        atan,
        sinh,
        cosh,
        tanh,
        asinh,
        sigmoid,
        reciprocal,
        frac,
        deg2rad,
        rad2deg,
        sinc,
        erf,
        erfc,
        relu6,
        gelu,
        gelu_tanh,
        silu,
        mish,
        elu(1.5),
        celu(0.7),
        selu,
        leaky_relu(0.1),
        hardswish,
        hardsigmoid,
        hardshrink(0.5),
        softshrink(0.5),
        hardtanh(-0.8, 0.9),
        softplus(2.0, 1.5),
        logsigmoid,
        softsign,
        tanhshrink,
        threshold(0.1, 3.0),
        nan_to_num(None, None, None),
        digamma,
        lgamma,
        pow(0),
        pow(2),
        pow(3),
        rpow(2.5),
        rsub(3, 2),
        add(2),
        mul(-2.5),
        div(4),
        float_power(3),
        clamp(-0.7, 0.8),
        clamp_min(0.1),
        clamp_max(0.1),
        fmod(0.25),
        remainder(0.25),
        conj,
        copysign(-1.0)
    ] {
        everywhere(name, of);
    }
    for (name, of) in methods![
        floor,
        sign,
        round,
        round_decimals(1),
        div_rounding(2, Rounding::Trunc)
    ] {
        check_first(name, &[numbers([2, 3])], |x| of(&x[0]));
    }
}

#[test]
fn of_numbers_in_a_range() {
    let positive = |x: &Tensor| x.abs()?.add(0.2);
    for (name, of) in methods![
        sqrt,
        rsqrt,
        log,
        log2,
        log10,
        log1p,
        pow(0.5),
        pow(-1.5),
        xlogy(2.0)
    ] {
        everywhere(name, |x| of(&positive(x)?));
    }
    for (name, of) in methods![asin, acos, atanh, erfinv] {
        everywhere(name, |x| of(&x.mul(0.6)?));
    }
    for (name, of) in methods![logit(None), logit(Some(0.35))] {
        everywhere(name, |x| of(&x.div(3)?.add(0.5)?));
    }
    everywhere("acosh", |x| positive(x)?.add(1)?.acosh());
    // Below zero too, where sums over all terms would not end.
    everywhere("digamma", |x| x.sub(7)?.digamma());
}

#[test]
fn of_one_complex_number() {
    for (name, of) in methods![
        neg,
        abs,
        square,
        sgn,
        angle,
        conj,
        exp,
        exp2,
        expm1,
        log,
        log2,
        log10,
        log1p,
        sqrt,
        rsqrt,
        reciprocal,
        sin,
        cos,
        tan,
        asin,
        acos,
        atan,
        sinh,
        cosh,
        tanh,
        asinh,
        acosh,
        atanh,
        sigmoid,
        silu,
        sinc,
        pow(3),
        pow(0.5),
        pow(num_complex::Complex::new(0.5, -1.0)),
        rpow(2.5),
        mul(num_complex::Complex::new(0.5, 2.0)),
        add(2),
        rsub(1, 2)
    ] {
        check(name, &[complex([2, 2])], |x| of(&x[0]));
    }
}

/// Over layouts of both operands, with each broadcast to the other, and of numbers.
fn of_both(name: &str, of: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) {
    let other = |t: &Tensor| t.mul(0.83)?.add(0.17);
    let check = |a: &Tensor, b: &Tensor| check(name, &[a.clone(), b.clone()], |x| of(&x[0], &x[1]));
    let others = layouts(&other(&numbers([2, 3])).expect("memory"));
    for (a, b) in layouts(&numbers([2, 3])).iter().zip(others.iter().rev()) {
        check(a, b);
        check(a, &other(&numbers([3])).expect("memory"));
        check(&other(&numbers([2, 1])).expect("memory"), a);
        check(a, &numbers([]));
    }
}

#[test]
fn of_two_real_numbers() {
    let positive = |x: &Tensor| x.abs()?.add(0.2);
    for (name, of) in [
        ("add", (|a, b| a.add(b)) as OfTwo),
        ("sub", |a, b| a.sub(b)),
        ("mul", |a, b| a.mul(b)),
        ("div", |a, b| a.div(b)),
        ("add_scaled", |a, b| a.add_scaled(b, -1.5)),
        ("sub_scaled", |a, b| a.sub_scaled(b, -1.5)),
        ("maximum", |a, b| a.maximum(b)),
        ("minimum", |a, b| a.minimum(b)),
        ("fmax", |a, b| a.fmax(b)),
        ("fmin", |a, b| a.fmin(b)),
        ("clamp_min", |a, b| a.clamp_min(b)),
        ("atan2", |a, b| a.atan2(b)),
        ("hypot", |a, b| a.hypot(b)),
        ("logaddexp", |a, b| a.logaddexp(b)),
        ("logaddexp2", |a, b| a.logaddexp2(b)),
        ("complex", Tensor::complex),
        ("where", |a, b| a.r#where(&a.gt(b)?, b)),
        ("mse_loss", |a, b| f::mse_loss(a, b, Reduction::None)),
        ("smooth_l1_loss", |a, b| {
            f::smooth_l1_loss(a, b, 0.4, Reduction::None)
        }),
        ("huber_loss", |a, b| {
            f::huber_loss(a, b, 0.4, Reduction::None)
        }),
        ("kl_div", |a, b| f::kl_div(a, b, true, Reduction::None)),
    ] {
        of_both(name, of);
    }
    of_both("pow", |a, b| positive(a)?.pow(b));
    of_both("xlogy", |a, b| a.xlogy(&positive(b)?));
    of_both("polar", |a, b| Tensor::polar(&positive(a)?, b));
    of_both("kl_div", |a, b| {
        f::kl_div(a, &positive(b)?, false, Reduction::None)
    });
    of_both("remainder", |a, b| a.remainder(&positive(b)?));
    of_both("fmod", |a, b| a.fmod(&positive(b)?));
    of_both("copysign", |a, b| a.copysign(&b.detach()?));
    let unit = |x: &Tensor| x.div(3)?.add(0.5);
    let pair = [numbers([2, 3]), numbers([2, 3]).mul(0.7).expect("memory")];
    check("binary_cross_entropy", &pair, |x| {
        f::binary_cross_entropy(&unit(&x[0])?, &unit(&x[1])?, None, Reduction::None)
    });
    check("prelu", &[numbers([2, 3]), numbers([3])], |x| {
        f::prelu(&x[0], &x[1])
    });
    check("prelu", &[numbers([2, 3]), numbers([1])], |x| {
        f::prelu(&x[0], &x[1])
    });
    check("glu", &[numbers([2, 4])], |x| f::glu(&x[0], -1));
}

#[test]
fn of_two_complex_numbers() {
    for (name, of) in [
        ("add", (|a, b| a.add(b)) as OfTwo),
        ("sub_scaled", |a, b| {
            a.sub_scaled(b, num_complex::Complex::new(0.5, 2.0))
        }),
        ("mul", |a, b| a.mul(b)),
        ("div", |a, b| a.div(b)),
        ("pow", |a, b| a.pow(b)),
        ("float_power", |a, b| a.float_power(b)),
        ("logaddexp", |a, b| a.logaddexp(b)),
    ] {
        check(name, &[complex([2, 2]), complex([2])], |x| of(&x[0], &x[1]));
        check(
            name,
            &[complex([2, 2]), numbers([2]).abs().expect("memory")],
            |x| of(&x[0], &x[1]),
        );
        check(
            name,
            &[numbers([2, 2]).abs().expect("memory"), complex([2])],
            |x| of(&x[0], &x[1]),
        );
    }
}

#[test]
fn of_three_numbers() {
    let three = |t: fn(usize) -> [Tensor; 3]| t(0);
    let real = three(|_| {
        [
            numbers([2, 3]),
            numbers([3]),
            numbers([2, 1]).mul(0.8).expect("memory"),
        ]
    });
    let complex = three(|_| [complex([2, 2]), complex([2]), complex([2, 1])]);
    for inputs in [&real, &complex] {
        check("addcmul", inputs, |x| x[0].addcmul(&x[1], &x[2], -1.5));
        check("addcdiv", inputs, |x| x[0].addcdiv(&x[1], &x[2], -1.5));
        check("lerp", inputs, |x| x[0].lerp(&x[1], &x[2]));
        check("lerp by a number", &inputs[..2], |x| x[0].lerp(&x[1], 0.3));
    }
    check("clamp", &real, |x| x[0].clamp(&x[1], &x[2].add(0.5)?));
    check(
        "clamp from a number",
        &[numbers([2, 3]), numbers([3])],
        |x| x[0].clamp(0.1, &x[1]),
    );
    check(
        "lerp by one weight",
        &[
            numbers([3]),
            numbers([3]).neg().expect("memory"),
            numbers([]),
        ],
        |x| x[0].lerp(&x[1], &x[2]),
    );
}

/// Writes in place through whole tensors and through views of them give the gradients that differences do.
#[test]
fn in_place_through_views() {
    for (name, write) in [
        ("add_", (|y, b| y.add_(b)) as InPlace),
        ("mul_", |y, b| y.mul_(b)),
        ("div_", |y, b| y.div_(b)),
        ("exp_", |y, _| y.exp_()),
        ("tanh_", |y, _| y.tanh_()),
        ("sigmoid_", |y, _| y.sigmoid_()),
        ("square_", |y, _| y.square_()),
        ("relu_", |y, _| y.relu_()),
        ("elu_", |y, _| y.elu_(1.5)),
        ("leaky_relu_", |y, _| y.leaky_relu_(0.1)),
        ("hardtanh_", |y, _| y.hardtanh_(-0.7, 0.8)),
        ("silu_", |y, _| y.silu_()),
        ("pow_", |y, _| y.pow_(3)),
        ("hypot_", |y, b| y.hypot_(b)),
        ("addcmul_", |y, b| y.addcmul_(b, b, 2)),
        ("lerp_", |y, b| y.lerp_(b, 0.3)),
        ("masked_fill_", |y, b| y.masked_fill_(&b.gt(0)?, &b.sum()?)),
        ("fill_", |y, _| y.fill_(3)),
        ("floor_", |y, _| y.floor_()),
        ("gt_", |y, b| y.gt_(b)),
    ] {
        let inputs = [numbers([3, 3]), numbers([3]).mul(0.8).expect("memory")];
        check(name, &inputs, |x| {
            let y = x[0].mul(&x[0])?.sub(0.4)?;
            write(&y, &x[1])?;
            y.mul(&x[0])
        });
        check(&format!("{name} of a column"), &inputs, |x| {
            let y = x[0].mul(&x[0])?.sub(0.4)?;
            write(&y.t()?.select(0, 1)?, &x[1])?;
            y.mul(&x[0])
        });
        check(&format!("{name} of a diagonal of a view"), &inputs, |x| {
            let y = x[0].mul(&x[0])?.sub(0.4)?;
            let view = y.slice(0, 1..)?;
            write(&view.diagonal(0, 0, 1)?, &x[1].slice(0, 1..)?)?;
            view.mul(&x[0].slice(0, ..2)?)?.add(&y.sum()?)
        });
    }
}
