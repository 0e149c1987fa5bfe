//! `x^y`, as `2^(y·log2 x)`.
//!
//! The product has up to 11 digits before the point, so the logarithm has that many more than the result: for `float32` it is
//! a `float64`, for `float64` a sum of two.

use super::{Exponentials, Float, coefficients as c, pick};

/// The family of `x^y`.
pub(crate) trait Powers: Exponentials {
    /// `x^y`, within 1 ulp.
    #[inline(always)]
    fn pow<T: Power>(x: T, y: T) -> T {
        let (base, exponent) = (x.into(), y.into());
        let a = base.abs();
        let log = T::log2_of_positive::<Self>(a);
        // 0 has another logarithm than the formula's; infinity and NaN are their own.
        let finite = a < f64::INFINITY;
        let high = pick(a == 0.0, f64::NEG_INFINITY, pick(finite, log.0, a));
        let low = pick(finite & (a != 0.0), log.1, 0.0);
        let magnitude = T::exp2_of_product::<Self>(high, low, exponent);
        let (whole, odd) = parity(exponent);
        let negative = base.is_sign_negative();
        let value = pick(negative & odd, -magnitude, magnitude);
        let real = !negative | whole | (a == 0.0) | (a == f64::INFINITY);
        let value = pick(real, value, f64::NAN);
        // 1 has any power, also that which is no number; -1 has infinite ones.
        let one =
            (exponent == 0.0) | (base == 1.0) | ((a == 1.0) & (exponent.abs() == f64::INFINITY));
        T::of(pick(one, 1.0, value))
    }

    /// `sqrt(x² + y²)`, within 1.5 ulp, without overflow on the way.
    #[inline(always)]
    fn hypot<T: Power>(x: T, y: T) -> T {
        let (a, b) = (x.abs().into(), y.abs().into());
        let more: f64 = pick(a > b, a, b);
        // Powers of 2 that keep squares in range: for `f64`, whose squares have no wider type.
        let up = pick(more < 1e-140, 2f64.powi(600), 1.0);
        let scale = pick(more > 1e140, 2f64.powi(-600), up);
        let (a, b) = (a * scale, b * scale);
        let root = (a * a + b * b).sqrt() / scale;
        let infinite = (x.abs() == T::INFINITY) | (y.abs() == T::INFINITY);
        pick(infinite, T::INFINITY, T::of(root))
    }

    /// `x · y` in two parts, exactly but for the last places of the second.
    #[inline(always)]
    fn product(x: f64, y: f64) -> (f64, f64) {
        let product = x * y;
        if Self::FMA {
            return (product, x.mul_add(y, -product));
        }
        let (a, b) = (x.high(), y.high());
        let (c, d) = (x - a, y - b);
        (product, ((a * b - product) + a * d + c * b) + c * d)
    }
}

impl<I: Exponentials> Powers for I {}

/// Whether a number is an integer, and whether it is an odd one.
#[inline(always)]
fn parity(y: f64) -> (bool, bool) {
    // Units are last places from here on.
    const UNITS: f64 = 4_503_599_627_370_496.0;
    let whole = |a: f64| (a >= UNITS) | ((a + UNITS) - UNITS == a);
    let a = y.abs();
    (whole(a), whole(a) & !whole(0.5 * a) & (a < 2.0 * UNITS))
}

/// `f32` or `f64`.
pub(crate) trait Power: Float + Into<f64> {
    /// The logarithm to base 2 of a positive finite number, in two parts.
    fn log2_of_positive<I: Powers>(a: f64) -> (f64, f64);
    /// `2^((high + low)·y)`.
    fn exp2_of_product<I: Powers>(high: f64, low: f64, y: f64) -> f64;
}

impl Power for f32 {
    #[inline(always)]
    fn log2_of_positive<I: Powers>(a: f64) -> (f64, f64) {
        // A subnormal `f32` is a normal `f64`.
        let (n, m) = a.split();
        let f = m - 1.0;
        let s = f / (2.0 + f);
        let z = s * s;
        let log = s * I::fma(z, I::polynomial(z, &c::LOG_SHORT), 2.0);
        (I::fma(log, std::f64::consts::LOG2_E, n), 0.0)
    }

    #[inline(always)]
    fn exp2_of_product<I: Powers>(high: f64, _: f64, y: f64) -> f64 {
        let x = super::hold(high * y, -200.0, 200.0);
        let rounder = f64::ROUNDER + f64::BIAS as f64;
        let shifted = x + rounder;
        let r = x - (shifted - rounder);
        let power = f64::power(shifted);
        I::fma(power * r, I::polynomial(r, &c::EXP2_SHORT), power)
    }
}

impl Power for f64 {
    #[inline(always)]
    fn log2_of_positive<I: Powers>(a: f64) -> (f64, f64) {
        let tiny = a < f64::MIN_POSITIVE;
        let (n, m) = pick(tiny, a * (1u64 << 52) as f64, a).split();
        let n = pick(tiny, n - 52.0, n);
        // s = f / (2 + f), and what it lacks.
        let f = m - 1.0;
        let sum = 2.0 + f;
        let s = f / sum;
        let (back, back_low) = I::product(s, sum);
        let s_low = ((f - back) - back_low - s * (f - (sum - 2.0))) / sum;
        // z = s².
        let (z, z_low) = I::product(s, s);
        let z_low = I::fma(2.0 * s, s_low, z_low);
        // w = 2/3 + z·(2/5 + …), and v = 2 + z·w.
        let rest = z * I::polynomial(z, &c::LOG_FROM_FIFTH);
        let w = c::TWO_THIRDS[0] + rest;
        let w_low = (c::TWO_THIRDS[0] - w) + rest + c::TWO_THIRDS[1];
        let (t, t_low) = I::product(z, w);
        let t_low = t_low + I::fma(z, w_low, z_low * w);
        let v = 2.0 + t;
        let v_low = (2.0 - v) + t + t_low;
        // log(1 + f) = s·v, then to base 2.
        let (log, log_low) = I::product(s, v);
        let log_low = log_low + I::fma(s, v_low, s_low * v);
        let (g, g_low) = I::product(log, c::LOG2_E[0]);
        let g_low = g_low + I::fma(log, c::LOG2_E[1], log_low * c::LOG2_E[0]);
        let high = n + g;
        (high, (n - high) + g + g_low)
    }

    #[inline(always)]
    fn exp2_of_product<I: Powers>(high: f64, low: f64, y: f64) -> f64 {
        // Beyond, all powers of numbers but 1 are 0 or infinite, and products are finite here.
        let y = super::hold(y, -1e21, 1e21);
        let (x, more) = I::product(high, y);
        let more = I::fma(low, y, more);
        let near = x.abs() < 1100.0;
        let more = pick(near, more, 0.0);
        let x = super::hold(x, -1100.0, 1100.0);
        let rounder = f64::ROUNDER + 2.0 * f64::BIAS as f64;
        let shifted = x + rounder;
        let r = (x - (shifted - rounder)) + more;
        let (a, b) = f64::powers(shifted);
        (1.0 + I::above_one_to_base_2(r)) * a * b
    }
}
