//! Elementwise operations against the same formulas in `f64`, one element after the other, over layouts and dtypes; and
//! what they refuse.

use osteon_autograd::{Rounding, Tensor};
use osteon_spec::{DType, Device, Kind, Result};

/// Numbers on both sides of everything that a formula tells apart.
fn numbers(n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| ((i * 37 % 101) as f64 - 50.0) / 8.0)
        .collect()
}

/// The same numbers in many layouts.
fn layouts(dtype: DType) -> Result<Vec<Tensor>> {
    let x = Tensor::from_vec(numbers(240), [4, 5, 12])?.to(dtype)?;
    Ok(vec![
        x.permute([2, 0, 1])?,
        x.slice_step(2, .., 5)?,
        x.slice(0, 1..3)?.transpose(0, 2)?,
        x.select(2, 3)?.unsqueeze(1)?.expand([4, 3, 5])?,
        x.slice(0, 2..2)?,
        x.select(0, 1)?.select(0, 2)?.select(0, 7)?,
        x,
    ])
}

fn wide(x: &Tensor) -> Result<Vec<f64>> {
    x.to(DType::F64)?.to_vec()
}

fn close(name: &str, dtype: DType, got: &[f64], want: &[f64]) {
    let tolerance = match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 2e-6,
        _ => 1.6e-2,
    };
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let right =
            (g - w).abs() <= tolerance * w.abs().max(1.0) || g == w || g.is_nan() && w.is_nan();
        assert!(right, "{name} of {dtype}: element {i} is {g}, not {w}");
    }
    assert_eq!(got.len(), want.len());
}

type Row = (&'static str, fn(&Tensor) -> Result<Tensor>, fn(f64) -> f64);

#[test]
fn activations_are_their_formulas() -> Result<()> {
    let rows: [Row; 13] = [
        ("relu", Tensor::relu, |x| x.max(0.0)),
        ("relu6", Tensor::relu6, |x| x.clamp(0.0, 6.0)),
        ("silu", Tensor::silu, |x| x / (1.0 + (-x).exp())),
        ("mish", Tensor::mish, |x| x * x.exp().ln_1p().tanh()),
        (
            "elu",
            |x| x.elu(1.5),
            |x| if x > 0.0 { x } else { 1.5 * x.exp_m1() },
        ),
        (
            "celu",
            |x| x.celu(2.0),
            |x| if x > 0.0 { x } else { 2.0 * (x / 2.0).exp_m1() },
        ),
        (
            "leaky_relu",
            |x| x.leaky_relu(0.1),
            |x| if x > 0.0 { x } else { 0.1 * x },
        ),
        ("hardswish", Tensor::hardswish, |x| {
            x * (x + 3.0).clamp(0.0, 6.0) / 6.0
        }),
        (
            "hardshrink",
            |x| x.hardshrink(0.5),
            |x| if x.abs() <= 0.5 { 0.0 } else { x },
        ),
        (
            "softshrink",
            |x| x.softshrink(0.5),
            |x| x.signum() * (x.abs() - 0.5).max(0.0),
        ),
        (
            "softplus",
            |x| x.softplus(2.0, 20.0),
            |x| (2.0 * x).exp().ln_1p() / 2.0,
        ),
        ("softsign", Tensor::softsign, |x| x / (1.0 + x.abs())),
        ("logsigmoid", Tensor::logsigmoid, |x| -(-x).exp().ln_1p()),
    ];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        for x in layouts(dtype)? {
            let input = wide(&x)?;
            for (name, op, formula) in rows {
                let want: Vec<f64> = input.iter().map(|&x| formula(x)).collect();
                let got = op(&x)?;
                assert_eq!((got.shape(), got.dtype()), (x.shape(), dtype), "{name}");
                close(name, dtype, &wide(&got)?, &want);
            }
        }
    }
    Ok(())
}

type Row2 = (
    &'static str,
    fn(&Tensor, &Tensor) -> Result<Tensor>,
    fn(f64, f64) -> f64,
);

#[test]
fn operations_of_two_are_their_formulas() -> Result<()> {
    let rows: [Row2; 9] = [
        (
            "floor_divide",
            |x, y| x.floor_divide(y),
            |x, y| (x / y).floor(),
        ),
        (
            "div_trunc",
            |x, y| x.div_rounding(y, Rounding::Trunc),
            |x, y| (x / y).trunc(),
        ),
        (
            "remainder",
            |x, y| x.remainder(y),
            |x, y| x - y * (x / y).floor(),
        ),
        ("fmod", |x, y| x.fmod(y), |x, y| x % y),
        ("hypot", Tensor::hypot, f64::hypot),
        ("heaviside", Tensor::heaviside, |x, y| {
            if x == 0.0 { y } else { (x > 0.0).into() }
        }),
        ("logaddexp", Tensor::logaddexp, |x, y| {
            (x.exp() + y.exp()).ln()
        }),
        ("copysign", |x, y| x.copysign(y), f64::copysign),
        ("sub_scaled", |x, y| x.sub_scaled(y, 2), |x, y| x - 2.0 * y),
    ];
    for dtype in [DType::F32, DType::F64] {
        // No element is zero, so that no quotient is infinite.
        let row = Tensor::from_vec(vec![0.75, -1.5, 2.0], [3])?.to(dtype)?;
        for x in layouts(dtype)?.into_iter().filter(|x| x.dim() > 0) {
            let x = x.slice(-1, ..3)?;
            let y = row
                .slice(0, ..x.size(-1)? as isize)?
                .expand(x.shape().iter().map(|&n| n as isize).collect::<Vec<_>>())?;
            let (a, b) = (wide(&x)?, wide(&y)?);
            for (name, op, formula) in rows {
                let want: Vec<f64> = a.iter().zip(&b).map(|(&x, &y)| formula(x, y)).collect();
                close(name, dtype, &wide(&op(&x, &y)?)?, &want);
            }
        }
    }
    Ok(())
}

#[test]
fn integers_are_not_divided_by_zero_and_nothing_is_written() -> Result<()> {
    let x = Tensor::new([7i64, -7, 5])?;
    let y = Tensor::new([2i64, 0, 1])?;
    for failed in [
        x.floor_divide_(&y),
        x.remainder_(&y),
        x.fmod_(0),
        x.div_rounding_(&y, Rounding::Trunc),
        x.remainder_(false),
    ] {
        assert!(failed.unwrap_err().to_string().contains("division by zero"));
    }
    assert_eq!((x.to_vec::<i64>()?, x.version()), (vec![7, -7, 5], 0));
    let none = Tensor::zeros([0], DType::I64, &Device::cpu())?;
    assert_eq!(none.floor_divide(0)?.numel(), 0);
    Ok(())
}

#[test]
fn numbers_beyond_a_dtype_are_compared_exactly() -> Result<()> {
    let x = Tensor::new([1i8, -3])?;
    assert_eq!(x.lt(300)?.to_vec::<bool>()?, [true, true]);
    assert_eq!(x.eq(257)?.to_vec::<bool>()?, [false, false]);
    let x = Tensor::new([1u8, 200])?;
    assert_eq!(x.lt(-1)?.to_vec::<bool>()?, [false, false]);
    assert_eq!(x.clamp(-1, 300)?.to_vec::<u8>()?, [1, 200]);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Result<()> {
    let whole = Tensor::new([1i64, 2])?;
    let mask = Tensor::new([true, false])?;
    let real = Tensor::new([1f32, 2.0])?;
    let refused = [
        whole.gelu(),
        mask.relu(),
        real.celu(0.0),
        real.softshrink(-1.0),
        real.hardtanh(1.0, -1.0),
        whole.add_scaled(&whole, 0.5),
        mask.sub(&mask),
        whole.pow(-1),
        whole.lerp(&whole, 0.5),
        real.lerp(&real.double()?, 0.5),
        whole.addcdiv(&whole, &whole, 1),
        real.heaviside(&whole),
        Tensor::complex(&real, &real.double()?),
        Tensor::complex(&real.half()?, &real.half()?),
        real.isclose(&real, -1.0, 0.0, false),
        real.masked_fill(&real, 0),
        whole.byte()?.masked_fill(&mask, 300),
        mask.positive(),
    ];
    for (i, result) in refused.into_iter().enumerate() {
        assert!(
            result.is_err(),
            "row {i}: {:?}",
            result.map(|t| t.to_string())
        );
    }
    assert!(real.float_power_(2).is_err() && whole.clamp_(0.5, 1.5).is_err());
    assert_eq!((real.version(), whole.version()), (0, 0));
    Ok(())
}

/// Recorded: PyTorch rounds the quotient of two half-precision tensors before it becomes a whole number, but not the
/// quotient by one number.
#[test]
fn whole_quotients_of_half_precision_are_rounded_first() -> Result<()> {
    type Case = (DType, Rounding, [f64; 2], [f64; 2]);
    let cases: [Case; 6] = [
        (
            DType::F16,
            Rounding::Trunc,
            [-5.4140625, 0.1746826171875],
            [-31.0, -30.0],
        ),
        (
            DType::F16,
            Rounding::Floor,
            [-8.0703125, 0.006683349609375],
            [-1209.0, -1208.0],
        ),
        (
            DType::BF16,
            Rounding::Trunc,
            [21.625, -0.0517578125],
            [-418.0, -416.0],
        ),
        (
            DType::BF16,
            Rounding::Trunc,
            [-3.75, 0.1103515625],
            [-34.0, -33.0],
        ),
        (
            DType::BF16,
            Rounding::Floor,
            [21.625, -0.0517578125],
            [-420.0, -418.0],
        ),
        (
            DType::BF16,
            Rounding::Floor,
            [6.375, -0.0087890625],
            [-724.0, -728.0],
        ),
    ];
    for (dtype, rounding, [x, y], [by_tensor, by_number]) in cases {
        let (xs, ys) = (
            Tensor::new([x, x, x])?.to(dtype)?,
            Tensor::new([y, y, y])?.to(dtype)?,
        );
        assert_eq!(
            wide(&xs.div_rounding(&ys, rounding)?)?,
            [by_tensor; 3],
            "{x} / {y}"
        );
        assert_eq!(
            wide(&xs.div_rounding(y, rounding)?)?,
            [by_number; 3],
            "{x} / {y}"
        );
        let one = ys.narrow(0, 1, 1)?;
        assert_eq!(
            wide(&xs.div_rounding(&one, rounding)?)?,
            [by_number; 3],
            "{x} / {y}"
        );
    }
    Ok(())
}

#[test]
fn nothing_compares_with_nan_but_as_unequal() -> Result<()> {
    for dtype in [
        DType::F32,
        DType::F64,
        DType::BF16,
        DType::U8,
        DType::I64,
        DType::Bool,
    ] {
        let x = Tensor::new([0i64, 1, 1])?.to(dtype)?;
        for (name, got) in [
            ("lt", x.lt(f64::NAN)?),
            ("le", x.le(f64::NAN)?),
            ("gt", x.gt(f64::NAN)?),
            ("ge", x.ge(f64::NAN)?),
            ("eq", x.eq(f64::NAN)?),
            ("not ne", x.ne(f64::NAN)?.logical_not()?),
        ] {
            assert_eq!(got.to_vec::<bool>()?, [false; 3], "{name} of {dtype}");
        }
    }
    Ok(())
}

/// Recorded: 4.3 is 4.3125 in bfloat16, and ten to that power 20480.
#[test]
fn ranges_end_at_numbers_of_their_dtype() -> Result<()> {
    let x = Tensor::logspace(4.3, 2, 4, 10.0, DType::BF16, &Device::cpu())?;
    assert_eq!(wide(&x)?, [20480.0, 3488.0, 588.0, 100.0]);
    Ok(())
}

#[test]
fn parts_make_complex_numbers_of_their_precision() -> Result<()> {
    let (x, out) = (Tensor::new([1.0, 2.0])?, Tensor::new([1f32, 2.0])?);
    let out = Tensor::complex(&out, &out)?;
    for refused in [
        Tensor::complex_out(&x, &x, &out),
        Tensor::polar_out(&x, &x, &out),
    ] {
        assert_eq!(refused.unwrap_err().kind(), Kind::DType);
    }
    assert_eq!(out.real()?.to_vec::<f32>()?, [1.0, 2.0]);
    Ok(())
}

/// Recorded: the width of all bins, 8.421875, is 8.4375 in bfloat16, which puts -0.17578125 one bin lower.
#[test]
fn bins_of_half_precision_have_widths_of_it() -> Result<()> {
    let x = Tensor::new([-4.65625, -0.17578125, 3.765625, 1.1328125, -0.5703125])?;
    let counts = x.to(DType::BF16)?.histc(100, 0.0, 0.0)?;
    let filled = counts.nonzero()?.to_vec::<i64>()?;
    assert_eq!(filled, [0, 48, 52, 68, 99]);
    Ok(())
}
