//! Sine, cosine and tangent.
//!
//! `float32` is computed in `float64`: its reduction by multiples of π/2 needs one step there in place of four, and short
//! polynomials give results that are rounded once.

use super::{Core, Float, coefficients as c, pick};

/// The family of `sin x`, for `|x|` up to [`FAR`]; beyond, the functions of the standard library.
pub(crate) trait Circulars: Core {
    /// The sine, within 0.6 ulp for `float32` and 1 for `float64`.
    #[inline(always)]
    fn sin<T: Circular>(x: T) -> T {
        let (sin, cos, quadrant) = x.sin_cos::<Self>();
        let value = pick(quadrant & 1 == 0, sin, cos);
        T::of(negated(value, quadrant & 2))
    }

    /// The cosine, within the same.
    #[inline(always)]
    fn cos<T: Circular>(x: T) -> T {
        let (sin, cos, quadrant) = x.sin_cos::<Self>();
        let value = pick(quadrant & 1 == 0, cos, sin);
        T::of(negated(value, quadrant.wrapping_add(1) & 2))
    }

    /// The tangent, within 0.6 ulp for `float32` and 2 for `float64`.
    #[inline(always)]
    fn tan<T: Circular>(x: T) -> T {
        let (sin, cos, quadrant) = x.sin_cos::<Self>();
        let even = quadrant & 1 == 0;
        let above = pick(even, sin, cos);
        let below = pick(even, cos, -sin);
        T::of(above / below)
    }
}

impl<I: Core> Circulars for I {}

/// Multiples of π/2 are exact to here.
pub(crate) const FAR: f64 = 1e6;

/// `f32` or `f64`.
pub(crate) trait Circular: Float {
    /// The sine and cosine of `x` less the nearest multiple of π/2, and that multiple.
    fn sin_cos<I: Core>(self) -> (f64, f64, u64);
}

/// `x`, or `-x` where the second bit is set.
#[inline(always)]
fn negated(x: f64, sign: u64) -> f64 {
    f64::from_bits(x.to_bits() ^ (sign << 62))
}

/// `x` less `n·π/2` in two parts, and `n`, which is below 2^20: the parts of π/2 have 33 bits each but for the last.
#[inline(always)]
fn reduced<I: Core>(x: f64) -> (f64, f64, u64) {
    let shifted = I::fma(x, std::f64::consts::FRAC_2_PI, f64::ROUNDER);
    let n = shifted - f64::ROUNDER;
    let first = I::fma(n, -c::HALF_PI[0], x);
    let step = n * c::HALF_PI[1];
    let second = first - step;
    let part = first - second;
    let rounded = (first - (second + part)) + (part - step);
    let low = I::fma(n, -c::HALF_PI[3], I::fma(n, -c::HALF_PI[2], rounded));
    let r = second + low;
    (r, (second - r) + low, shifted.to_bits())
}

impl Circular for f32 {
    #[inline(always)]
    fn sin_cos<I: Core>(self) -> (f64, f64, u64) {
        let x = f64::from(self);
        let shifted = I::fma(x, std::f64::consts::FRAC_2_PI, f64::ROUNDER);
        let n = shifted - f64::ROUNDER;
        let r = I::fma(n, -c::HALF_PI_REST, I::fma(n, -c::HALF_PI[0], x));
        let z = r * r;
        let sin = I::fma(r * z, I::polynomial(z, &c::SIN_SHORT), r);
        let cos = I::fma(z * z, I::polynomial(z, &c::COS_SHORT), 1.0 - 0.5 * z);
        (sin, cos, shifted.to_bits())
    }
}

impl Circular for f64 {
    #[inline(always)]
    fn sin_cos<I: Core>(self) -> (f64, f64, u64) {
        let (r, low, n) = reduced::<I>(self);
        let z = r * r;
        let sin = r + I::fma(r * z, I::polynomial(z, &c::SIN), low);
        // 1 - z/2 in two parts.
        let half = 0.5 * z;
        let high = 1.0 - half;
        let rest = I::fma(z * z, I::polynomial(z, &c::COS), -(r * low));
        let cos = high + (((1.0 - high) - half) + rest);
        (sin, cos, n)
    }
}
