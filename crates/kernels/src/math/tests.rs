//! The bounds that the functions state, measured.

use super::*;
use crate::simd::{Fused, Portable};

/// The distance from `got` to `want` in units of the last place of a number with so many digits and such a
/// smallest exponent, nearest `want`.
fn ulps(got: f64, want: f64, digits: i32, least: i32) -> f64 {
    let exponent = if want == 0.0 {
        least
    } else {
        want.abs().log2().floor() as i32
    };
    let unit = (exponent.max(least) - digits) as f64;
    let error = (got - want).abs();
    // In two steps: the unit may be subnormal.
    error / (unit + 100.0).exp2() * 100f64.exp2()
}

/// The largest error of a function of `float32`, against one of `float64`.
fn worst32(ours: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    let step = if cfg!(debug_assertions) { 8191 } else { 509 };
    let every = (0..=u32::MAX).step_by(step).map(f32::from_bits);
    for x in every.chain(edges().map(|x| x as f32)) {
        let (got, want) = (ours(x), exact(x as f64));
        let rounded = want as f32;
        if got.to_bits() == rounded.to_bits() || got.is_nan() && rounded.is_nan() {
            continue;
        }
        // One that is all but as far from the largest number as from infinity may become either.
        let near = |a: f64| {
            if a.is_finite() {
                a
            } else {
                2f64.powi(128).copysign(a)
            }
        };
        let error = ulps(
            near(got.into()),
            near(if rounded.is_finite() {
                want
            } else {
                rounded.into()
            }),
            23,
            -126,
        );
        if error > worst.0 || error.is_nan() {
            worst = (error, x);
        }
    }
    worst
}

/// The largest distance of a function of `float64` from one of the C library, whose own error is below one place.
fn worst64(ours: impl Fn(f64) -> f64, exact: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut worst = (0.0, 0.0);
    let step = if cfg!(debug_assertions) {
        1 << 45
    } else {
        1 << 42
    };
    // The lower bits are chance.
    let every = (0..=u64::MAX - 2 * step).step_by(step as usize).enumerate();
    let every = every.map(|(i, bits)| bits + (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % step);
    // And more where functions bend.
    let near = (-400_000..400_000).map(|i| i as f64 * 1.000_123e-4);
    for x in every.map(f64::from_bits).chain(near).chain(edges()) {
        let (got, want) = (ours(x), exact(x));
        if got == want && got.is_sign_negative() == want.is_sign_negative()
            || got.is_nan() && want.is_nan()
        {
            continue;
        }
        let error = ulps(got, want, 52, -1022);
        if error > worst.0 || error.is_nan() {
            worst = (error, x);
        }
    }
    worst
}

/// Numbers at which something changes.
fn edges() -> impl Iterator<Item = f64> {
    let some = [
        0.0,
        f64::INFINITY,
        f64::NAN,
        1.0,
        0.5,
        2.0,
        0.6,
        1e-45,
        1e-38,
        5e-324,
        1e-308,
        2.2250738585072014e-308,
        1.17549435e-38,
        88.722_84,
        88.73,
        87.4,
        103.97,
        104.1,
        709.78,
        709.79,
        745.13,
        745.2,
        708.5,
        710.47,
        710.5,
        89.41,
        89.42,
        3.402_823_5e38,
        f64::MAX,
        26.5,
        27.2,
        10.1,
        13.1,
        37.6,
        1e6,
        18.0,
        38.0,
        5.9604645e-8,
        1.1102230246251565e-16,
        std::f64::consts::FRAC_PI_2,
        std::f64::consts::PI,
        std::f64::consts::FRAC_PI_4,
        0.999_999_94,
        1.0 - f64::EPSILON,
    ];
    some.into_iter()
        .flat_map(|x| [x, -x, x.next_up(), -x.next_down()])
}

/// Measures functions in both arithmetics: `name: function, its reference, bounds for float32 and float64;` the latter
/// with the error of the reference, which is below one place for functions of the C library.
macro_rules! within {
    ($($name:ident: $ours:expr, $exact:expr, $bound32:expr, $bound64:expr;)*) => {$(
        #[test]
        fn $name() {
            fn both<I: Isa>(name: &str) {
                let (error, x) = worst32($ours, $exact);
                let (error64, x64) = worst64($ours, $exact);
                println!("{name} fma {}: {error:.3} at {x:e}, {error64:.3} at {x64:e}", I::FMA);
                assert!(error <= $bound32, "{name}({x:e}) of float32 is {error} units off");
                assert!(error64 <= $bound64, "{name}({x64:e}) of float64 is {error64} units off");
            }
            both::<Portable>(stringify!($name));
            both::<Fused>(stringify!($name));
        }
    )*};
}

/// Beyond, the loops ask the C library.
fn near<T: Float>(x: T) -> T {
    if x.abs() > T::of(FAR) { T::NAN } else { x }
}

/// The inverse of `erf`, within some places: an estimate through the logarithm of its tail, then Newton's steps.
fn inverse_of_erf(y: f64) -> f64 {
    let tail = 1.0 - y.abs();
    if tail <= 0.0 {
        return if tail == 0.0 {
            f64::INFINITY.copysign(y)
        } else {
            f64::NAN
        };
    }
    if y.is_nan() || y == 0.0 {
        return y;
    }
    // Winitzki's estimate, within 2e-3.
    const A: f64 = 0.147;
    let l = (-y * y).ln_1p();
    let b = 2.0 / (std::f64::consts::PI * A) + 0.5 * l;
    let mut x = ((b * b - l / A).sqrt() - b).sqrt();
    for _ in 0..3 {
        // The tail itself where it is small, so that no digits are lost.
        let error = if y.abs() < 0.5 {
            libm::erf(x) - y.abs()
        } else {
            tail - libm::erfc(x)
        };
        let slope = 2.0 / std::f64::consts::PI.sqrt() * (-x * x).exp();
        let step = error / slope;
        // Halley's correction: erf'' = -2x·erf'.
        x -= step / (1.0 + x * step);
    }
    x.copysign(y)
}

/// `x`, or the number where it is below that: beyond, results go to 0 otherwise than the exact ones.
fn from<T: Float>(x: T, least: f64) -> T {
    pick(x < T::of(least), T::of(least), x)
}

fn normal_gate(x: f64) -> f64 {
    x * 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn log_of_sum(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

within! {
    exp: |x| I::exp(x), f64::exp, 1.0, 2.0;
    exp2: |x| I::exp2(x), f64::exp2, 1.2, 2.0;
    expm1: |x| I::expm1(x), f64::exp_m1, 1.5, 2.5;
    sinh: |x| I::sinh(x), f64::sinh, 2.5, 3.5;
    cosh: |x| I::cosh(x), f64::cosh, 2.0, 3.0;
    tanh: |x| I::tanh(x), f64::tanh, 1.5, 2.5;
    ln: |x| I::ln(x), f64::ln, 1.0, 2.0;
    log2: |x| I::log2(x), f64::log2, 1.0, 2.0;
    log10: |x| I::log10(x), f64::log10, 1.0, 4.0;
    log1p: |x| I::log1p(x), f64::ln_1p, 1.5, 2.5;
    asinh: |x| I::asinh(x), libm::asinh, 3.0, 5.0;
    // The standard library's overflows, and that of libm has values below 1.
    acosh: |x| I::acosh(x), |x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }, 3.0, 5.0;
    atanh: |x| I::atanh(x), libm::atanh, 3.0, 5.0;
    softplus: |x| I::softplus(x), log_of_sum, 2.0, 3.5;
    erf: |x| I::erf(x), libm::erf, 1.5, 2.5;
    erfc: |x| I::erfc(x), libm::erfc, 6.0, 7.0;
    erfinv: |x| I::erfinv(x), inverse_of_erf, 4.0, 9.0;
    sin: |x| I::sin(near(x)), |x| near(x).sin(), 0.6, 2.0;
    cos: |x| I::cos(near(x)), |x| near(x).cos(), 0.6, 2.0;
    tan: |x| I::tan(near(x)), |x| near(x).tan(), 0.6, 3.0;
    asin: |x| I::asin(x), f64::asin, 2.0, 3.0;
    acos: |x| I::acos(x), f64::acos, 2.0, 3.0;
    atan: |x| I::atan(x), f64::atan, 2.0, 3.0;
    gelu: |x| I::gelu(from(x, -2.0)), |x| normal_gate(from(x, -2.0)), 6.0 + 4.0, 11.0;
    gelu_far: |x| I::gelu(from(x, -13.0)), |x| normal_gate(from(x, -13.0)), 12.0 + 169.0, 400.0;
    sigmoid: |x| I::sigmoid(from(x, -87.0)), |x| 1.0 / (1.0 + (-from(x, -87.0)).exp()), 2.5, 5.0;
    silu: |x| I::gated(x, from(x, -87.0)), |x| x / (1.0 + (-from(x, -87.0)).exp()), 2.5, 5.0;
    mish: |x| x * I::mish_factor(from(x, -87.0)).0, |x| x * log_of_sum(from(x, -87.0)).tanh(), 4.0, 9.0;
}

/// `x^y` for many pairs.
#[test]
fn pow() {
    fn both<I: Isa>() {
        let (mut worst, mut worst64) = (0.0, 0.0);
        let mut seed = 1u64;
        let mut next = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1u64 << 53) as f64
        };
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::INFINITY,
            -f64::INFINITY,
            f64::NAN,
            2.0,
            -2.0,
            3.0,
            -3.0,
            0.5,
            -0.5,
            1e300,
            -1e300,
            1e38,
            9_007_199_254_740_993.0,
            16_777_217.0,
            5e-324,
            -5e-324,
            1.0 + f64::EPSILON,
            1.5,
            -1.5,
            2_251_799_813_685_248.5,
        ];
        let pairs = special
            .iter()
            .flat_map(|&x| special.map(|y| (x, y)))
            .collect::<Vec<_>>();
        let n = if cfg!(debug_assertions) {
            200_000
        } else {
            4_000_000
        };
        let random = (0..n).map(|i| {
            let (x, y) = ((next() - 0.5) * [4.0, 2e3, 1480.0][i % 3], next());
            let x = if i % 3 == 0 {
                x.exp()
            } else if i % 3 == 1 {
                1.0 + x * 1e-6
            } else {
                (x / 1.05).exp()
            };
            // Powers of every magnitude.
            let y = (y * 2.0 - 1.0) * 745.0 / x.ln().abs().max(1e-9);
            (x, y)
        });
        for (x, y) in pairs.into_iter().chain(random) {
            let (got, want) = (I::pow(x, y), x.powf(y));
            assert_eq!(
                (got.is_nan(), got.is_infinite() && want == got),
                (want.is_nan(), want.is_infinite()),
                "{x} {y} {got} {want}"
            );
            if want.is_finite() && got != want {
                let error = ulps(got, want, 52, -1022);
                if error > worst64 {
                    worst64 = error;
                    println!("{x:e}^{y:e} {error}")
                }
            }
            assert!(
                want != 0.0 || got.is_sign_negative() == want.is_sign_negative(),
                "{x} {y} {got} {want}"
            );
            let (x, y) = (x as f32, y as f32);
            let (got, want) = (I::pow(x, y), (x as f64).powf(y as f64));
            assert_eq!(got.is_nan(), want.is_nan(), "{x} {y} {got} {want}");
            if !want.is_nan() && (want as f32).is_finite() && got != want as f32 {
                worst = f64::max(worst, ulps(got.into(), want, 23, -126));
            }
        }
        println!("pow fma {}: {worst:.3} {worst64:.3}", I::FMA);
        assert!(worst <= 0.6 && worst64 <= 2.0);
    }
    both::<Portable>();
    both::<Fused>();
}
