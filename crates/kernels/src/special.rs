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

/// The derivative of [`digamma`], `order` times, at least once: `±order!` times the sum over all k from 0 of
/// `(x + k)^-(order + 1)`. Infinite where that has a pole.
pub(crate) fn polygamma(order: f64, x: f64) -> f64 {
    let power = order + 1.0;
    let sum = if x > 0.0 {
        zeta(power, x)
    } else {
        // The terms below 0 are all those as far as `above` from 0, but for those beyond `x`.
        let (above, below) = (x.ceil() - x, x - x.floor());
        let beyond = zeta(power, above) - zeta(power, 1.0 - x);
        let below = zeta(power, if below == 0.0 { 1.0 } else { below });
        below + if power % 2.0 == 0.0 { beyond } else { -beyond }
    };
    let factor = libm::tgamma(power);
    if order % 2.0 == 0.0 {
        -factor * sum
    } else {
        factor * sum
    }
}

/// The sum over all k from 0 of `(x + k)^-s`, for `x >= 0` and `s > 1`: some terms, and the rest by the formula of Euler
/// and Maclaurin.
fn zeta(s: f64, x: f64) -> f64 {
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 + s {
        sum += x.powf(-s);
        x += 1.0;
    }
    // B(2k) / (2k)!, from k = 1.
    const C: [f64; 6] = [
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30240.0,
        -1.0 / 1209600.0,
        1.0 / 47900160.0,
        -691.0 / 1307674368000.0,
    ];
    let last = x.powf(-s);
    sum += x.powf(1.0 - s) / (s - 1.0) + 0.5 * last;
    let mut term = last * s / x;
    for (k, c) in C.iter().enumerate() {
        sum += c * term;
        let n = s + 2.0 * k as f64;
        term *= (n + 1.0) * (n + 2.0) / (x * x);
    }
    sum
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
        let order = |n: f64| move |x| polygamma(n, x);
        check(
            order(1.0),
            &[
                (1.0, 1.644_934_066_848_226_4),
                (0.25, 17.197_329_154_507_11),
                (-1.5, 9.379_246_644_989_124),
                (-1000.25, 19.738_209_551_699_785),
                (1e-3, 1_000_001.642_533_195_8),
                (0.0, inf),
                (-2.0, inf),
                (inf, 0.0),
                (f64::NAN, f64::NAN),
            ],
        );
        check(
            order(2.0),
            &[
                (1.0, -2.404_113_806_319_188_6),
                (-0.25, 122.697_366_783_662_36),
            ],
        );
        check(order(3.0), &[(-2.75, 1_558.489_751_283_293_6)]);
        check(order(5.0), &[(0.5, 7_691.113_548_602_436)]);
    }
}
