//! Exponential and hyperbolic functions.

use super::{Core, Float, hold, pick};

/// The family of `e^x`.
pub(crate) trait Exponentials: Core {
    /// `x` as `n·ln 2 + r`: `r`, and `n` added to a number, which [`Float::power`] makes `2^n` of.
    #[inline(always)]
    fn reduced<T: Float>(x: T, rounder: T) -> (T, T) {
        let shifted = Self::fma(x, T::of(std::f64::consts::LOG2_E), rounder);
        let n = shifted - rounder;
        let r = Self::fma(n, -T::LN2_LOW, Self::fma(n, -T::LN2_HIGH, x));
        (r, shifted)
    }

    /// `e^r - 1` of what is left of a number.
    #[inline(always)]
    fn above_one<T: Float>(r: T) -> T {
        Self::fma(r * r, Self::polynomial(r, T::EXP), r)
    }

    /// `e^(x + more)`, the second being much smaller.
    #[inline(always)]
    fn exp_of_sum<T: Float>(x: T, more: T) -> T {
        Self::exp_by(x, |r| r + more)
    }

    /// `e^x`, within 1 ulp.
    #[inline(always)]
    fn exp<T: Float>(x: T) -> T {
        Self::exp_by(x, |r| r)
    }

    /// `e^x`, with something done to what is left of `x`.
    #[inline(always)]
    fn exp_by<T: Float>(x: T, rest: impl Fn(T) -> T) -> T {
        // Beyond, the result is 0 or infinity, by rounding below; a NaN passes.
        let x = hold(x, T::EXP_LOW, T::EXP_HIGH);
        let (r, shifted) = Self::reduced(x, T::ROUNDER + T::of(2.0 * T::BIAS as f64));
        let (a, b) = T::powers(shifted);
        (T::of(1.0) + Self::above_one(rest(r))) * a * b
    }

    /// `e^x` times 2 to the power of [`LIFT`](super::coefficients::Coefficients::LIFT), within 1 ulp, for `x` not above 0: what
    /// is no normal number without the factor is one with it, and a softmax takes it back when it divides by its sum. That is
    /// two thirds of the operations of [`exp`](Exponentials::exp).
    #[inline(always)]
    fn lifted_exp<T: Float>(x: T) -> T {
        // Beyond, the result without the factor is 0; a NaN passes.
        let x = pick(x < T::EXP_LOW, T::EXP_LOW, x);
        let (r, shifted) = Self::reduced(x, T::ROUNDER + T::of((T::BIAS + T::LIFT) as f64));
        let (power, p) = (T::power(shifted), Self::short_polynomial(r, T::EXP));
        Self::fma(power, Self::fma(r * r, p, r), power)
    }

    /// `2^x`, within 1.2 ulp.
    #[inline(always)]
    fn exp2<T: Float>(x: T) -> T {
        let limit = T::of(T::BIAS as f64);
        let x = hold(
            x,
            -(limit + T::of(T::FRACTION as f64 + 2.0)),
            limit + T::of(1.0),
        );
        let rounder = T::ROUNDER + limit + limit;
        let shifted = x + rounder;
        let r = x - (shifted - rounder);
        let (a, b) = T::powers(shifted);
        (T::of(1.0) + Self::above_one_to_base_2(r)) * a * b
    }

    /// `2^r - 1` for `|r|` up to ½.
    #[inline(always)]
    fn above_one_to_base_2<T: Float>(r: T) -> T {
        let linear = r * T::of(std::f64::consts::LN_2);
        Self::fma(r * r, Self::polynomial(r, T::EXP2), linear)
    }

    /// `e^x - 1`, within 1.5 ulp.
    #[inline(always)]
    fn expm1<T: Float>(x: T) -> T {
        let x1 = hold(x, T::of(-2.0) * T::SATURATED, T::EXP_HIGH);
        let half = Self::part_of_expm1(x1, 1);
        // The digits of a subnormal number are lost in its half.
        pick(x.abs() < T::TINY, x, half + half)
    }

    /// `(e^x - 1) / 2^shift`, for `x` and a shift that keep this in range.
    #[inline(always)]
    fn part_of_expm1<T: Float>(x: T, shift: i32) -> T {
        let rounder = T::ROUNDER + T::of((T::BIAS - shift) as f64);
        let shifted = Self::fma(x, T::of(std::f64::consts::LOG2_E), rounder);
        let n = shifted - rounder;
        // What rounding takes from r counts where 2^n - 1 and 2^n·r all but cancel.
        let high = Self::fma(n, -T::LN2_HIGH, x);
        let r = Self::fma(n, -T::LN2_LOW, high);
        let more = Self::fma(n, -T::LN2_LOW, high - r);
        let rest = Self::fma(r * r, Self::polynomial(r, T::EXP), more);
        let (power, one) = (T::power(shifted), T::of(1.0 / (1 << shift) as f64));
        Self::fma(power, rest, Self::fma(power, r, power - one))
    }

    /// Half of `1 + e^-x`, in one rounding after that of `e^-x`; infinite where `e^-x` is.
    #[inline(always)]
    fn half_logistic<T: Float>(x: T) -> T {
        let y = hold(-x, -T::EXP_NORMAL, T::EXP_LIMIT);
        let rounder = T::ROUNDER + T::of(T::BIAS as f64 - 1.0);
        let (r, shifted) = Self::reduced(y, rounder);
        let power = T::power(shifted);
        let sum = Self::fma(power, Self::above_one(r), power + T::of(0.5));
        pick(x < -T::EXP_LIMIT, T::INFINITY, sum)
    }

    /// `1 / (1 + e^-x)`, within 2.5 ulp; 0 where `e^-x` overflows, as PyTorch's.
    #[inline(always)]
    fn sigmoid<T: Float>(x: T) -> T {
        T::of(0.5) / Self::half_logistic(x)
    }

    /// `x / (1 + e^-y)`, within 2.5 ulp.
    #[inline(always)]
    fn gated<T: Float>(x: T, y: T) -> T {
        T::of(0.5) * x / Self::half_logistic(y)
    }

    /// The hyperbolic tangent, within 1.5 ulp: a series in `x²`, beyond it `1 - 2 / (1 + e^2x)`.
    #[inline(always)]
    fn tanh<T: Float>(x: T) -> T {
        let a = x.abs();
        let z = x * x;
        let small = Self::fma(x * z, Self::polynomial(z, T::TANH), x);
        let y = hold(a + a, T::of(0.0), T::of(2.0) * T::SATURATED);
        let large = T::of(1.0) - T::of(1.0) / Self::half_logistic(-y);
        pick(a < T::of(0.6), small, large.copysign(x))
    }

    /// The hyperbolic sine, within 2.5 ulp.
    #[inline(always)]
    fn sinh<T: Float>(x: T) -> T {
        let a = x.abs();
        // (e^a - e^-a) / 2 by k = (e^a - 1) / 4, which overflows later than the result.
        let k = Self::part_of_expm1(pick(a > T::COSH_HIGH, T::COSH_HIGH, a), 2);
        let half = k + k / Self::fma(T::of(4.0), k, T::of(1.0));
        pick(a < T::TINY, a, half + half).copysign(x)
    }

    /// The hyperbolic cosine, within 2 ulp.
    #[inline(always)]
    fn cosh<T: Float>(x: T) -> T {
        let a = x.abs();
        let a = pick(a > T::COSH_HIGH, T::COSH_HIGH, a);
        let rounder = T::ROUNDER + T::of(T::BIAS as f64 - 2.0);
        let (r, shifted) = Self::reduced(a, rounder);
        // A quarter of e^a, which overflows later than the result.
        let power = T::power(shifted);
        let quarter = Self::fma(power, Self::above_one(r), power);
        let sum = quarter + T::of(0.0625) / quarter;
        sum + sum
    }

    /// `tanh(log(1 + e^x))`, the factor of mish, within 3 ulp where `e^x` is a normal number, and `x` times its derivative: with `e = e^x` and
    /// `w = e (e + 2)` the factor is `w / (w + 2)`, its derivative `4 e (e + 1) / (w + 2)²`.
    #[inline(always)]
    fn mish_factor<T: Float>(x: T) -> (T, T) {
        // Beyond, the factor is 1 to the last place, and nothing overflows.
        let e = Self::exp(pick(x > T::SATURATED, T::SATURATED, x));
        let w = e * (e + T::of(2.0));
        let sum = w + T::of(2.0);
        let slope = T::of(4.0) * e * (e + T::of(1.0)) / (sum * sum);
        // Infinity times nothing is PyTorch's NaN.
        (w / sum, x * pick(x > T::SATURATED, T::of(0.0), slope))
    }
}

impl<I: Core> Exponentials for I {}
