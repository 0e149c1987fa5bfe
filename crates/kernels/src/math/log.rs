//! Logarithms and what is made of them.

use super::{Exponentials, Float, pick};

/// The family of `log x`: with `x = 2^n·(1 + f)` and `s = f / (2 + f)`, `log(1 + f)` is `f - f²/2 + s·(f²/2 + s²·p(s²))`,
/// which loses less than `2s + s³·p(s²)`.
pub(crate) trait Logarithms: Exponentials {
    /// The parts of the formula: `n`, `f`, `f²/2` and `s·(f²/2 + s²·p(s²))`.
    #[inline(always)]
    fn log_parts<T: Float>(x: T) -> (T, T, T, T) {
        let tiny = x < T::MIN_POSITIVE;
        let scale = T::of((1u64 << T::FRACTION) as f64);
        let (n, m) = pick(tiny, x * scale, x).split();
        let n = pick(tiny, n - T::of(T::FRACTION as f64), n);
        let f = m - T::of(1.0);
        let half = T::of(0.5) * f * f;
        let s = f / (T::of(2.0) + f);
        let z = s * s;
        (
            n,
            f,
            half,
            s * Self::fma(z, Self::polynomial(z, T::LOG), half),
        )
    }

    /// The logarithm, found for a positive finite number, of any other one too.
    #[inline(always)]
    fn logarithm_of<T: Float>(x: T, log: T) -> T {
        let other = pick(x < T::of(0.0), T::NAN, x);
        let other = pick(x == T::of(0.0), -T::INFINITY, other);
        pick((x > T::of(0.0)) & (x < T::INFINITY), log, other)
    }

    /// The natural logarithm, within 1 ulp.
    #[inline(always)]
    fn ln<T: Float>(x: T) -> T {
        Self::ln_of_sum(x, T::of(0.0))
    }

    /// `log x + more`, the second being smaller than the last place of `x`.
    #[inline(always)]
    fn ln_of_sum<T: Float>(x: T, more: T) -> T {
        let (n, f, half, rest) = Self::log_parts(x);
        let low = Self::fma(n, T::LN2_LOW, rest + more);
        let log = Self::fma(n, T::LN2_HIGH, f - (half - low));
        Self::logarithm_of(x, log)
    }

    /// A logarithm to another base, whose `[1 / ln, log of 2]` come as two parts each.
    #[inline(always)]
    fn log_to<T: Float>(x: T, [inverse, inverse_low, two, two_low]: [f64; 4]) -> T {
        let (n, f, half, rest) = Self::log_parts(x);
        let high = (f - half).high();
        let low = (f - high) - half + rest;
        let product = high * T::of(inverse);
        let more = Self::fma(
            n,
            T::of(two_low),
            Self::fma(low, T::of(inverse), (low + high) * T::of(inverse_low)),
        );
        let whole = n * T::of(two);
        let sum = whole + product;
        Self::logarithm_of(x, sum + (more + ((whole - sum) + product)))
    }

    /// The logarithm to base 2, within 1 ulp.
    #[inline(always)]
    fn log2<T: Float>(x: T) -> T {
        Self::log_to(x, T::LOG2)
    }

    /// The logarithm to base 10, within 1 ulp.
    #[inline(always)]
    fn log10<T: Float>(x: T) -> T {
        Self::log_to(x, T::LOG10)
    }

    /// `log(1 + x)`, within 1.5 ulp: `log u + e / u` where the sum `1 + x` is `u` rounded, and `e` what that took away.
    #[inline(always)]
    fn log1p<T: Float>(x: T) -> T {
        let u = x + T::of(1.0);
        let part = u - T::of(1.0);
        let rounded = (x - part) + (T::of(1.0) - (u - part));
        let log = Self::ln_of_sum(u, rounded / u);
        pick(x.abs() < T::TINY, x, log)
    }

    /// `log(1 + x)` for `x` in 0 … 1, within 1.5 ulp: no exponent to part with.
    #[inline(always)]
    fn log1p_of_fraction<T: Float>(x: T) -> T {
        let half = T::of(0.5) * x * x;
        let s = x / (T::of(2.0) + x);
        let z = s * s;
        x - (half - s * Self::fma(z, Self::polynomial(z, T::LOG_WIDE), half))
    }

    /// `log(1 + e^x)`, within 2 ulp.
    #[inline(always)]
    fn softplus<T: Float>(x: T) -> T {
        let above = pick(x < T::of(0.0), T::of(0.0), x);
        above + Self::log1p_of_fraction(Self::exp(-x.abs()))
    }

    /// The inverse hyperbolic sine, within 3 ulp.
    #[inline(always)]
    fn asinh<T: Float>(x: T) -> T {
        let a = x.abs();
        // Beyond, 1 + a² is a² to the last place, and may overflow.
        let large = a > T::of(1.0) / (T::TINY * T::TINY);
        let root = (T::of(1.0) + a * a).sqrt();
        let inner = a + a * a / (T::of(1.0) + root);
        let log = Self::log1p(pick(large, a, inner));
        let ln2 = T::of(std::f64::consts::LN_2);
        pick(large, log + ln2, log).copysign(x)
    }

    /// The inverse hyperbolic cosine, within 3 ulp.
    #[inline(always)]
    fn acosh<T: Float>(x: T) -> T {
        let t = x - T::of(1.0);
        let large = x > T::of(1.0) / (T::TINY * T::TINY);
        let inner = t + (t * (t + T::of(2.0))).sqrt();
        let log = Self::log1p(pick(large, x, inner));
        let ln2 = T::of(std::f64::consts::LN_2);
        let log = pick(large, log + ln2, log);
        pick(x < T::of(1.0), T::NAN, log)
    }

    /// The inverse hyperbolic tangent, within 3 ulp.
    #[inline(always)]
    fn atanh<T: Float>(x: T) -> T {
        let a = x.abs();
        (T::of(0.5) * Self::log1p((a + a) / (T::of(1.0) - a))).copysign(x)
    }
}

impl<I: Exponentials> Logarithms for I {}
