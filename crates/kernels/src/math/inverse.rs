//! The inverses of sine, cosine and tangent, and of the error function.

use super::{Float, Logarithms, pick};
use std::f64::consts::PI;

/// The family of `atan x`.
pub(crate) trait Inverses: Logarithms {
    /// `atan t` for `t` in 0 … 1, but for what it is taken from.
    #[inline(always)]
    fn atan_of_fraction<T: Float>(t: T) -> T {
        let z = t * t;
        Self::fma(t * z, Self::polynomial(z, T::ATAN), t)
    }

    /// `π/2 - x`.
    #[inline(always)]
    fn complement<T: Float>(x: T) -> T {
        T::of(0.5 * PI) - (x - T::HALF_PI_LOW)
    }

    /// The inverse tangent, within 2 ulp.
    #[inline(always)]
    fn atan<T: Float>(x: T) -> T {
        let (a, one) = (x.abs(), T::of(1.0));
        let steep = a > one;
        let ratio = pick(steep, one, a) / pick(steep, a, one);
        let angle = Self::atan_of_fraction(ratio);
        pick(steep, Self::complement(angle), angle).copysign(x)
    }

    /// The angle of the point `(x, y)`, within 2 ulp.
    #[inline(always)]
    fn atan2<T: Float>(y: T, x: T) -> T {
        let (height, width) = (y.abs(), x.abs());
        let steep = height > width;
        let less = pick(steep, width, height);
        let more = pick(steep, height, width);
        let ratio = less / more;
        // 0 / 0 and ∞ / ∞ are no numbers here, but a NaN stays one.
        let ratio = pick((less == more) & (more == T::of(0.0)), more, ratio);
        let ratio = pick((less == more) & (more == T::INFINITY), T::of(1.0), ratio);
        let angle = Self::atan_of_fraction(ratio);
        let angle = pick(steep, Self::complement(angle), angle);
        let behind = T::of(PI) - (angle - T::of(2.0) * T::HALF_PI_LOW);
        pick(x.is_sign_negative(), behind, angle).copysign(y)
    }

    /// `asin s` for `s` in 0 … 0.58, with its square.
    #[inline(always)]
    fn asin_of_half<T: Float>(s: T, z: T) -> T {
        Self::fma(s * z, Self::polynomial(z, T::ASIN), s)
    }

    /// What `asin` and `acos` are made of: whether `|x|` is large, and `asin |x|`, or there
    /// `asin(sqrt((1 - |x|) / 2))`, which is half of `acos |x|`.
    #[inline(always)]
    fn asin_parts<T: Float>(x: T) -> (bool, T) {
        let a = x.abs();
        // From here on, twice the other angle is below 1, and no digit is lost when it is taken from π/2.
        let steep = a > T::of(0.58);
        let z = pick(steep, T::of(0.5) * (T::of(1.0) - a), a * a);
        let s = pick(steep, z.sqrt(), a);
        (steep, Self::asin_of_half(s, z))
    }

    /// The inverse sine, within 2 ulp.
    #[inline(always)]
    fn asin<T: Float>(x: T) -> T {
        let (steep, angle) = Self::asin_parts(x);
        pick(steep, Self::complement(angle + angle), angle).copysign(x)
    }

    /// The inverse cosine, within 2 ulp.
    #[inline(always)]
    fn acos<T: Float>(x: T) -> T {
        let (steep, angle) = Self::asin_parts(x);
        let twice = angle + angle;
        let behind = T::of(PI) - (twice - T::of(2.0) * T::HALF_PI_LOW);
        let ahead = pick(x < T::of(0.0), behind, twice);
        pick(steep, ahead, Self::complement(angle.copysign(x)))
    }

    /// The inverse of the error function, within 4 ulp: polynomials in `w = -log(1 - x²)`, or in its root (after Giles,
    /// "Approximating the erfinv function", 2012).
    #[inline(always)]
    fn erfinv<T: Float>(x: T) -> T {
        let (a, one) = (x.abs(), T::of(1.0));
        let w = -Self::ln((one - a) * (one + a));
        let near = Self::polynomial(w - T::of(T::ERFINV_CENTER), T::ERFINV);
        let root = w.sqrt();
        let piece = |(from, center, coefficients): (f64, f64, _), nearer| {
            let far = Self::polynomial(root - T::of(center), coefficients);
            pick(w > T::of(from), far, nearer)
        };
        let mut factor = piece(T::ERFINV_FAR, near);
        if let Some(farther) = T::ERFINV_FARTHER {
            factor = piece(farther, factor);
        }
        x * pick(a == one, T::INFINITY, factor)
    }
}

impl<I: Logarithms> Inverses for I {}
