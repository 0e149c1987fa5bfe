//! The error function and what is made of it.

use super::{Exponentials, Float, pick};
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LOG2_E};

/// The family of `erf x`.
pub(crate) trait Errors: Exponentials {
    /// `p(q) / (a + k)` with `q = (a - k) / (a + k)`: functions that fall off as `1 / a` does, from 0 on.
    #[inline(always)]
    fn tail<T: Float>(a: T, k: f64, p: &[f64]) -> T {
        let k = T::of(k);
        let inverse = T::of(1.0) / (a + k);
        inverse * Self::short_polynomial((a - k) * inverse, p)
    }

    /// What `erf |x|` leaves of 1.
    #[inline(always)]
    fn erfc_of_magnitude<T: Float>(x: T) -> T {
        let a = x.abs();
        let a = pick(a > T::ERFC_LIMIT, T::ERFC_LIMIT, a);
        // Of the square, both parts count: it goes up to where e^-a² underflows.
        let (high, low) = Self::square(a);
        Self::exp_of_sum(-high, -low) * Self::tail(a, T::TAIL_CENTER, T::TAIL)
    }

    /// The error function of small numbers: a series.
    #[inline(always)]
    fn erf_of_fraction<T: Float>(x: T) -> T {
        Self::fma(x, Self::polynomial(x * x, T::ERF), x)
    }

    /// The error function, within 1.5 ulp.
    #[inline(always)]
    fn erf<T: Float>(x: T) -> T {
        let large = T::of(1.0) - Self::erfc_of_magnitude(x);
        let small = Self::erf_of_fraction(x);
        pick(x.abs() < T::of(1.0), small, large.copysign(x))
    }

    /// What the error function leaves of 1, within 6 ulp.
    #[inline(always)]
    fn erfc<T: Float>(x: T) -> T {
        let tail = Self::erfc_of_magnitude(x);
        let large = pick(x < T::of(0.0), T::of(2.0) - tail, tail);
        let small = T::of(1.0) - Self::erf_of_fraction(x);
        pick(x.abs() < T::of(0.5), small, large)
    }

    /// The normal distribution at `-|x|`: `e^(-x²/2)` and the distribution function, both 0 where the first is no normal
    /// number. That they lose `x²` ulp to the rounding of `x²/2` is the price of a tenth of the time; the usual
    /// `(1 + erf) / 2` loses all digits long before.
    #[inline(always)]
    fn normal_below<T: Float>(x: T) -> (T, T) {
        let a = x.abs();
        let far = a > T::NORMAL_LIMIT;
        let a = pick(far, T::NORMAL_LIMIT, a);
        let rounder = T::ROUNDER + T::of(T::BIAS as f64);
        let y = a * (a * T::of(-0.5 * LOG2_E));
        let shifted = y + rounder;
        let r = y - (shifted - rounder);
        let power = pick(far, T::of(0.0), T::power(shifted));
        let linear = r * T::of(LN_2);
        let above_one = Self::fma(r * r, Self::short_polynomial(r, T::EXP2), linear);
        let bell = Self::fma(power, above_one, power);
        (bell, bell * Self::tail(a, T::MILLS_CENTER, T::MILLS))
    }

    /// `x·Φ(x)`, with the distribution function of the normal distribution, within 12 + x² ulp.
    #[inline(always)]
    fn gelu<T: Float>(x: T) -> T {
        let (_, below) = Self::normal_below(x);
        x * pick(x > T::of(0.0), T::of(1.0) - below, below)
    }

    /// Its derivative, `Φ(x) + x·φ(x)`.
    #[inline(always)]
    fn gelu_slope<T: Float>(x: T) -> T {
        let (bell, below) = Self::normal_below(x);
        let distribution = pick(x > T::of(0.0), T::of(1.0) - below, below);
        Self::fma(
            x,
            bell * T::of(0.5 * FRAC_2_SQRT_PI * FRAC_1_SQRT_2),
            distribution,
        )
    }
}

impl<I: Exponentials> Errors for I {}
