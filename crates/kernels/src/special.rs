//! Special functions of `float64`, and of `float32` by way of them where speed matters little.

use std::f64::consts::PI;

/// The derivative of [`libm::lgamma`]: by recurrence to where its asymptotic series is exact to the last
/// place, and by reflection for negative numbers.
pub(crate) fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.floor() || x.is_infinite() {
            return f64::NAN;
        }
        // The fraction alone, because π·x loses digits.
        return digamma(1.0 - x) - PI / (PI * x.fract()).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    // B(2k) / 2k, from k = 1.
    const C: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32760.0,
        1.0 / 12.0,
    ];
    let series = C.iter().rev().fold(0.0, |sum, &c| (sum + c) * z);
    sum + x.ln() - 0.5 / x - series
}

/// The inverse of `erf`: an estimate through the logarithm of its tail, then Newton's steps.
pub(crate) fn erfinv(y: f64) -> f64 {
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
    let b = 2.0 / (PI * A) + 0.5 * l;
    let mut x = ((b * b - l / A).sqrt() - b).sqrt();
    for _ in 0..3 {
        // The tail itself where it is small, so that no digits are lost.
        let error = if y.abs() < 0.5 {
            libm::erf(x) - y.abs()
        } else {
            tail - libm::erfc(x)
        };
        let slope = 2.0 / PI.sqrt() * (-x * x).exp();
        let step = error / slope;
        // Halley's correction: erf'' = -2x·erf'.
        x -= step / (1.0 + x * step);
    }
    x.copysign(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(f: impl Fn(f64) -> f64, known: &[(f64, f64)]) {
        for &(x, want) in known {
            let got = f(x);
            let close = (got - want).abs() <= want.abs() * 2e-14;
            assert!(
                close || got == want || got.is_nan() && want.is_nan(),
                "{x}: {got}, not {want}"
            );
        }
    }

    /// Values of the mpmath library, and the limits.
    #[test]
    fn special_functions_have_their_known_values() {
        let inf = f64::INFINITY;
        check(
            digamma,
            &[
                (1.0, -0.577_215_664_901_532_9),
                (0.5, -1.963_510_026_021_423_5),
                (-1.5, 0.703_156_640_645_243_2),
                (10.0, 2.251_752_589_066_721),
                (1e-5, -100_000.577_199_215_68),
                (0.0, -inf),
                (-0.0, inf),
                (-2.0, f64::NAN),
                (inf, inf),
                (-inf, f64::NAN),
            ],
        );
        check(
            erfinv,
            &[
                (0.5, 0.476_936_276_204_469_9),
                (-0.5, -0.476_936_276_204_469_9),
                (1e-10, 8.862_269_254_527_58e-11),
                (0.999_999, 3.458_910_737_275_499),
                (1.0, inf),
                (-1.0, -inf),
                (1.5, f64::NAN),
                (0.0, 0.0),
            ],
        );
    }
}
