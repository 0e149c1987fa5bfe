//! Values at the edges of dtypes and shapes: PyTorch's recorded answers, and where osteon differs on purpose
//! (docs/differences.md), what it gives instead.

use num_complex::Complex;
use osteon_autograd::Tensor;
use osteon_autograd::functional::{self, Reduction};
use osteon_spec::{DType, Device, Result, Scalar};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn same(found: &[f64], expected: &[f64]) -> bool {
    let close = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * b.abs()
    };
    found.len() == expected.len() && found.iter().zip(expected).all(close)
}

fn numbers(x: &Tensor) -> Vec<f64> {
    x.to(DType::F64).unwrap().to_vec().unwrap()
}

#[test]
fn a_huber_loss_has_the_dtype_of_its_input() -> Result<()> {
    let (x, y) = (
        Tensor::new([1f64, 3.0, -2.0])?,
        Tensor::new([0f64, 1.0, 2.0])?,
    );
    let loss = |of: DType, to: DType, reduction| {
        functional::huber_loss(&x.to(of)?, &y.to(to)?, 1.0, reduction)
    };
    for (of, to) in [
        (DType::F32, DType::F64),
        (DType::F64, DType::F32),
        (DType::F16, DType::F32),
        (DType::F32, DType::I64),
        (DType::F32, DType::F32),
    ] {
        let each = loss(of, to, Reduction::None)?;
        assert_eq!(
            (each.dtype(), numbers(&each)),
            (of, vec![0.5, 1.5, 3.5]),
            "{of} {to}"
        );
        let sum = loss(of, to, Reduction::Sum)?;
        assert_eq!((sum.dtype(), numbers(&sum)), (of, vec![5.5]));
        let mean = loss(of, to, Reduction::Mean)?;
        assert!(mean.dtype() == of && (numbers(&mean)[0] - 5.5 / 3.0).abs() < 1e-3);
    }
    for (of, to) in [
        (DType::I64, DType::F32),
        (DType::I64, DType::I64),
        (DType::Bool, DType::F32),
    ] {
        assert!(loss(of, to, Reduction::Mean).is_err(), "{of} {to}");
    }
    Ok(())
}

#[test]
fn complex_numbers_at_infinity() -> Result<()> {
    let of = |re: f64, im: f64| Tensor::new([Complex::new(re, im)]);
    let is = |x: Tensor, re: f64, im: f64| {
        let z = x.to_vec::<Complex<f64>>().unwrap()[0];
        assert!(same(&[z.re, z.im], &[re, im]), "{z} instead of {re} {im}");
    };
    for (re, im) in [
        (INF, 0.0),
        (INF, INF),
        (-INF, 1.0),
        (0.0, INF),
        (NAN, 1.0),
        (INF, NAN),
        (-INF, INF),
    ] {
        is(of(re, im)?.sgn()?, NAN, NAN);
    }
    is(of(0.0, 0.0)?.sgn()?, 0.0, 0.0);
    is(of(1e300, 1e300)?.sgn()?, 0.5f64.sqrt(), 0.5f64.sqrt());
    is(of(-INF, 1.0)?.expm1()?, -1.0, 0.0);
    is(of(0.0, INF)?.expm1()?, NAN, NAN);
    is(of(NAN, 1.0)?.expm1()?, NAN, NAN);
    is(of(1e300, 1e300)?.expm1()?, -INF, -INF);
    is(of(0.0, 0.0)?.expm1()?, 0.0, 0.0);
    // PyTorch has NaN in one part or both, though its exp() is right there.
    is(of(INF, 0.0)?.expm1()?, INF, 0.0);
    is(of(INF, INF)?.expm1()?, INF, NAN);
    is(of(-INF, INF)?.expm1()?, -1.0, 0.0);
    for (re, im) in [(INF, 0.0), (INF, INF), (-INF, INF)] {
        let (a, b) = (of(re, im)?.exp()?.sub(1)?, of(re, im)?.expm1()?);
        let (a, b) = (
            a.to_vec::<Complex<f64>>()?[0],
            b.to_vec::<Complex<f64>>()?[0],
        );
        assert!(same(&[a.re, a.im], &[b.re, b.im]), "{a} {b}");
    }
    Ok(())
}

#[test]
fn complex_numbers_near_zero_keep_their_digits() -> Result<()> {
    let z = Complex::new(1e-12, 3e-13);
    let x = Tensor::new([z])?;
    // The next term of both series is z² / 2.
    let (exp, log) = (z + z * z / 2.0, z - z * z / 2.0);
    for (found, expected) in [(x.expm1()?, exp), (x.log1p()?, log)] {
        let found = found.to_vec::<Complex<f64>>()?[0];
        assert!(
            (found - expected).norm() <= 1e-15 * z.norm(),
            "{found:e} {expected:e}"
        );
    }
    for z in [
        Complex::new(0.3, -0.2),
        Complex::new(-0.4, 0.1),
        Complex::new(2.0, 3.0),
    ] {
        let there = Tensor::new([z])?
            .expm1()?
            .log1p()?
            .to_vec::<Complex<f64>>()?[0];
        assert!((there - z).norm() < 1e-14, "{there} {z}");
    }
    Ok(())
}

#[test]
fn a_bound_that_no_element_can_keep_is_refused() -> Result<()> {
    let x = Tensor::new([0u8, 5, 255])?;
    let signed = Tensor::new([0i8, 5, -1])?;
    assert!(x.clamp_max(-1).is_err() && x.clamp_max_(-1).is_err());
    assert!(x.clamp_min(300).is_err() && x.clamp(300, 400).is_err() && x.clamp(-5, -1).is_err());
    assert!(x.clamp_max_out(-1, &x).is_err() && x.version() == 0);
    assert!(signed.clamp_min(200).is_err() && signed.clamp_max(-200).is_err());
    for kept in [x.clamp_min(-1)?, x.clamp_max(300)?, x.clamp(-1, 300)?] {
        assert!(kept.equal(&x)?);
    }
    for kept in [signed.clamp_min(-200)?, signed.clamp_max(200)?] {
        assert!(kept.equal(&signed)?);
    }
    let half = x.clamp_max(-1.0)?;
    assert_eq!((half.dtype(), numbers(&half)), (DType::F32, vec![-1.0; 3]));
    Ok(())
}

#[test]
fn medians_and_modes_of_nothing() -> Result<()> {
    let empty = |shape: &[usize], dtype| Tensor::zeros(shape, dtype, &Device::cpu());
    type Pick = fn(&Tensor, isize, bool) -> Result<(Tensor, Tensor)>;
    let picks: [Pick; 4] = [
        Tensor::median_dim,
        Tensor::nanmedian_dim,
        Tensor::mode,
        |x, dim, keep| x.kthvalue(1, dim, keep),
    ];
    for dtype in [DType::F32, DType::I64] {
        for pick in picks {
            for (shape, dim) in [(&[0][..], 0), (&[0, 3], 0), (&[3, 0], 1), (&[2, 0, 3], 1)] {
                assert!(
                    pick(&empty(shape, dtype)?, dim, false).is_err(),
                    "{shape:?}"
                );
            }
            for (shape, dim, left, kept) in [
                (&[0, 3][..], 1, &[0][..], &[0, 1][..]),
                (&[3, 0], 0, &[0], &[1, 0]),
                (&[2, 0, 3], 0, &[0, 3], &[1, 0, 3]),
            ] {
                let x = empty(shape, dtype)?;
                for (keep, shape) in [(false, left), (true, kept)] {
                    let (values, indices) = pick(&x, dim, keep)?;
                    assert_eq!((values.shape(), values.dtype()), (shape, dtype));
                    assert_eq!((indices.shape(), indices.dtype()), (shape, DType::I64));
                }
            }
        }
    }
    let none = empty(&[0], DType::F32)?;
    assert!(numbers(&none.median()?)[0].is_nan() && numbers(&none.nanmedian()?)[0].is_nan());
    // PyTorch casts NaN and gives the smallest int64.
    let none = empty(&[0], DType::I64)?;
    assert!(none.median().is_err() && none.nanmedian().is_err());
    Ok(())
}

#[test]
fn membership_among_elements_of_any_layout() -> Result<()> {
    let m = Tensor::arange(0.0, 12.0, 1.0)?.view([3, 4])?;
    let found = m.isin(&m.t()?.slice(0, ..2)?, false)?; // PyTorch cannot view these as a vector.
    let columns = [true, true, false, false].repeat(3);
    assert_eq!(found.to_vec::<bool>()?, columns);
    assert!(
        m.slice_step(1, .., 2)?
            .isin(&m.t()?, false)?
            .all()?
            .item::<bool>()?
    );
    assert!(
        !m.isin(&Tensor::zeros([0], DType::F32, &Device::cpu())?, false)?
            .any()?
            .item::<bool>()?
    );
    let mixed = Tensor::new([1i64, 2])?.isin(&Tensor::new([1.0, 2.5])?, false)?;
    assert_eq!(mixed.to_vec::<bool>()?, [true, false]);
    Ok(())
}

#[test]
fn take_along_dim_counts_from_the_end_where_it_has_a_dim() -> Result<()> {
    let m = Tensor::arange(0.0, 12.0, 1.0)?.view([3, 4])?;
    let take = |index: Tensor, dim| m.take_along_dim(&index, dim);
    assert_eq!(
        numbers(&take(Tensor::new([[-1i64, 0, -2, 1]])?, Some(0))?),
        [8.0, 1.0, 6.0, 7.0]
    );
    assert_eq!(
        numbers(&take(Tensor::new([[0i64], [-1], [2]])?, Some(1))?),
        [0.0, 7.0, 10.0]
    );
    assert_eq!(numbers(&take(Tensor::new([11i64, 0])?, None)?), [11.0, 0.0]);
    for index in [-1i64, -12, -13, 12] {
        assert!(take(Tensor::new([index])?, None).is_err(), "{index}");
    }
    // PyTorch takes the remainder of any index.
    for index in [3i64, -4] {
        assert!(
            take(Tensor::new([[index, 0, 0, 0]])?, Some(0)).is_err(),
            "{index}"
        );
    }
    assert!(take(Tensor::new([[0i32]])?, Some(0)).is_err());
    assert!(take(Tensor::new([[0i64], [1]])?, Some(1)).is_err());
    let scalar = Tensor::new(5.0)?;
    assert!(scalar.take_along_dim(&Tensor::new(0i64)?, Some(0)).is_err());
    assert!(scalar.take_along_dim(&Tensor::new(-1i64)?, None).is_err());
    assert_eq!(
        numbers(&scalar.take_along_dim(&Tensor::new(0i64)?, None)?),
        [5.0]
    );
    let out = Tensor::new([0f32])?;
    assert!(
        m.take_along_dim_out(&Tensor::new([-1i64])?, None, &out)
            .is_err()
    );
    Ok(())
}

#[test]
fn powers_evenly_apart_in_every_dtype() -> Result<()> {
    type Call = (f64, f64, usize, f64, DType, &'static [f64]);
    let calls: &[Call] = &[
        (0.0, 3.0, 4, 10.0, DType::F32, &[1.0, 10.0, 100.0, 1000.0]),
        (0.0, 3.0, 4, 2.0, DType::I64, &[1.0, 2.0, 4.0, 8.0]),
        (-2.0, 10.0, 4, 10.0, DType::I64, &[0.0, 100.0, 1e6, 1e10]),
        (0.0, 1.0, 3, 0.0, DType::F32, &[1.0, 0.0, 0.0]),
        (0.0, 2.0, 3, -2.0, DType::F32, &[1.0, -2.0, 4.0]),
        (0.0, 1.5, 4, -2.0, DType::F32, &[1.0, NAN, -2.0, NAN]),
        (0.0, 400.0, 3, 10.0, DType::F32, &[1.0, INF, INF]),
        (
            0.0,
            20.0,
            3,
            10.0,
            DType::I32,
            &[1.0, -2147483648.0, -2147483648.0],
        ),
        (0.0, 20.0, 3, 10.0, DType::U8, &[1.0, 0.0, 0.0]),
        (0.0, 5.0, 3, 10.0, DType::F16, &[1.0, 316.25, INF]),
        (0.0, 2.0, 1, 10.0, DType::I64, &[1.0]),
        (0.0, 2.0, 0, 10.0, DType::I64, &[]),
        (1.7, 2.9, 3, 2.0, DType::I64, &[2.0, 2.0, 4.0]),
        (0.0, 10.0, 3, 2.0, DType::U8, &[1.0, 32.0, 0.0]),
        (0.0, 10.0, 3, 2.0, DType::I8, &[1.0, 32.0, 0.0]),
        (
            -1.5,
            1.5,
            4,
            2.5,
            DType::BF16,
            &[0.25390625, 0.6328125, 1.578125, 3.953125],
        ),
        (
            0.0,
            64.0,
            3,
            2.0,
            DType::I64,
            &[1.0, 4294967296.0, -9223372036854775808.0],
        ),
        (
            0.0,
            1.0,
            5,
            10.0,
            DType::F64,
            &[
                1.0,
                1.7782794100389228,
                3.1622776601683795,
                5.623413251903491,
                10.0,
            ],
        ),
        (NAN, 1.0, 3, 10.0, DType::F32, &[NAN, NAN, NAN]),
        (0.0, INF, 3, 10.0, DType::F32, &[NAN, NAN, NAN]),
        (0.0, 1.0, 3, INF, DType::F32, &[1.0, INF, INF]),
        (3.5, -2.0, 4, 1.5, DType::I32, &[3.0, 1.0, 0.0, 0.0]),
        (0.0, 5.0, 4, 2.5, DType::I32, &[1.0, 4.0, 21.0, 97.0]),
        (0.0, 2.0, 3, 2.5, DType::I64, &[1.0, 2.0, 6.0]),
    ];
    let mut failures = Vec::new();
    for &(start, end, steps, base, dtype, expected) in calls {
        match Tensor::logspace(start, end, steps, base, dtype, &Device::cpu()) {
            Ok(x) if same(&numbers(&x), expected) => {}
            other => failures.push(format!(
                "logspace({start}, {end}, {steps}, {base}, {dtype}): {:?} instead of {expected:?}",
                other.map(|x| numbers(&x))
            )),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(Tensor::logspace(0, 2, 3, 10.0, DType::Bool, &Device::cpu()).is_err());
    let z = Tensor::logspace(
        0,
        Scalar::Complex(0.0, 1.0),
        2,
        10.0,
        DType::C128,
        &Device::cpu(),
    )?;
    let z = z.to_vec::<Complex<f64>>()?[1];
    assert!(
        same(
            &[z.re, z.im],
            &[-0.668_201_510_190_312_5, 0.743_980_336_957_493_2]
        ),
        "{z}"
    );
    Ok(())
}

#[test]
fn the_mean_beside_a_spread_is_that_of_mean() -> Result<()> {
    // PyTorch has NaN, depending on where the infinity stands.
    for x in [
        [INF, 1.0, 2.0],
        [1.0, -INF, 2.0],
        [INF, -INF, 0.0],
        [INF, INF, INF],
        [NAN, 1.0, INF],
    ] {
        let x = Tensor::new(x)?;
        let mean = numbers(&x.mean()?);
        for (spread, beside) in [x.std_mean([0], 1.0, false)?, x.var_mean([0], 1.0, false)?] {
            assert!(
                numbers(&spread)[0].is_nan() && same(&numbers(&beside), &mean),
                "{x}"
            );
        }
    }
    Ok(())
}
