//! Functions of floats, for `float32` without branches and calls, so that loops over them become
//! vector code: within 2 units in the last place (the tests look at a million values of each).
//! `float64` goes to the standard library.

use crate::special;

/// The functions, of `f32` and `f64`.
pub(crate) trait Math {
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn sigmoid(self) -> Self;
    fn erf(self) -> Self;
    fn erfc(self) -> Self;
    fn erfinv(self) -> Self;
    fn lgamma(self) -> Self;
    fn digamma(self) -> Self;
    fn polygamma(self, order: Self) -> Self;
    fn next_toward(self, other: Self) -> Self;
}

/// The neighbour of `x` towards `y`; `y` itself, sign and all, where they are equal.
macro_rules! next_toward {
    ($x:expr, $y:expr) => {{
        let (x, y) = ($x, $y);
        if x.is_nan() || y.is_nan() {
            x + y
        } else if x < y {
            x.next_up()
        } else if x > y {
            x.next_down()
        } else {
            y
        }
    }};
}

impl Math for f64 {
    fn exp(self) -> f64 {
        f64::exp(self)
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    fn tanh(self) -> f64 {
        f64::tanh(self)
    }
    fn sigmoid(self) -> f64 {
        1.0 / (1.0 + (-self).exp())
    }
    fn erf(self) -> f64 {
        libm::erf(self)
    }
    fn erfc(self) -> f64 {
        libm::erfc(self)
    }
    fn erfinv(self) -> f64 {
        special::erfinv(self)
    }
    fn lgamma(self) -> f64 {
        // libm gives -∞ its NaN of the C standard's older editions.
        if self.is_infinite() {
            f64::INFINITY
        } else {
            libm::lgamma(self)
        }
    }
    fn digamma(self) -> f64 {
        special::digamma(self)
    }
    fn polygamma(self, order: f64) -> f64 {
        special::polygamma(order, self)
    }
    fn next_toward(self, other: f64) -> f64 {
        next_toward!(self, other)
    }
}

/// `ln 2` in two parts, the first with so few bits that its multiples are exact.
const LN2_HIGH: f32 = 355.0 / 512.0;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// A sum with it has units as last places: it rounds to an integer, whose bits are the sum's low
/// ones.
const ROUNDER: f32 = 12_582_912.0;

/// `c[0] + c[1]·x + c[2]·x² + …`. The coefficients below are minimax fits.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, c: [f32; N]) -> f32 {
    c.iter().rev().fold(0.0, |sum, &c| sum * x + c)
}

impl Math for f32 {
    /// `e^x = 2^n · e^r` with `|r| <= ln 2 / 2`.
    #[inline(always)]
    fn exp(self) -> f32 {
        // Beyond, the result is 0 or infinity, by rounding below; a NaN passes.
        let x = self.clamp(-110.0, 90.0);
        let shifted = x * std::f32::consts::LOG2_E + ROUNDER;
        let n = shifted - ROUNDER;
        let r = x - n * LN2_HIGH - n * LN2_LOW;
        const C: [f32; 6] = [
            0.5,
            1.666_666_6e-1,
            4.166_629_5e-2,
            8.333_497e-3,
            1.394_466e-3,
            1.979_034_2e-4,
        ];
        let e = 1.0 + (r + r * r * polynomial(r, C));
        // In two factors, because 2^n itself may be no normal number.
        let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
        let half = n >> 1;
        let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
        e * power(half) * power(n.wrapping_sub(half))
    }

    /// `ln x = n·ln 2 + ln m` with `m` around 1, and `ln m` by its series in `(m-1)/(m+1)`.
    #[inline(always)]
    fn ln(self) -> f32 {
        let tiny = self < f32::MIN_POSITIVE;
        let x = if tiny { self * 8_388_608.0 } else { self };
        // Where the exponent steps is moved from 1 to √½, so that m is in √½ … √2.
        let bits = x
            .to_bits()
            .wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits());
        let n = (bits as i32 >> 23) - if tiny { 23 } else { 0 };
        let m = (bits & 0x007f_ffff).wrapping_add(std::f32::consts::FRAC_1_SQRT_2.to_bits());
        let f = f32::from_bits(m) - 1.0;
        let s = f / (2.0 + f);
        const C: [f32; 4] = [6.666_667e-1, 4.000_033_7e-1, 2.853_717e-1, 2.358_498_8e-1];
        let square = s * s;
        // ln m = f - f²/2 + s·(f²/2 + the rest), which loses less than 2s + s³·(…).
        let half = 0.5 * f * f;
        let n = n as f32;
        let ln = n * LN2_HIGH
            + (f - (half - (s * (half + square * polynomial(square, C)) + n * LN2_LOW)));
        if self > 0.0 && self < f32::INFINITY {
            ln
        } else if self == 0.0 {
            f32::NEG_INFINITY
        } else if self < 0.0 {
            f32::NAN
        } else {
            self
        }
    }

    #[inline(always)]
    fn tanh(self) -> f32 {
        let x = self.abs();
        const C: [f32; 6] = [
            -3.333_333_3e-1,
            1.333_320_9e-1,
            -5.394_713e-2,
            2.170_254_3e-2,
            -8.181_581e-3,
            2.146_498_7e-3,
        ];
        let small = x + x * (x * x * polynomial(x * x, C));
        let large = 1.0 - 2.0 / (1.0 + Math::exp(2.0 * x));
        (if x < 0.625 { small } else { large }).copysign(self)
    }

    #[inline(always)]
    fn sigmoid(self) -> f32 {
        1.0 / (1.0 + Math::exp(-self))
    }

    /// A series up to 1; beyond, what `e^(-x²)·p(1/(1 + x/2))` leaves of 1.
    #[inline(always)]
    fn erf(self) -> f32 {
        const SMALL: [f32; 7] = [
            std::f32::consts::FRAC_2_SQRT_PI,
            -3.761_262_6e-1,
            1.128_359_4e-1,
            -2.685_421_1e-2,
            5.189_087e-3,
            -8.016_864e-4,
            7.875_875e-5,
        ];
        const LARGE: [f32; 9] = [
            2.820_809e-1,
            2.824_656_4e-1,
            2.425_905_3e-1,
            2.035_235_8e-1,
            -2.350_111_7e-2,
            2.611_652_6e-1,
            -4.552_436_8e-1,
            2.563_744e-1,
            -4.935_268e-2,
        ];
        let x = self.abs();
        let small = x * polynomial(x * x, SMALL);
        let t = 1.0 / (1.0 + 0.5 * x);
        let large = 1.0 - Math::exp(-x * x) * t * polynomial(t, LARGE);
        (if x < 1.0 { small } else { large }).copysign(self)
    }

    fn erfc(self) -> f32 {
        libm::erfcf(self)
    }

    fn erfinv(self) -> f32 {
        special::erfinv(self.into()) as f32
    }

    fn lgamma(self) -> f32 {
        Math::lgamma(f64::from(self)) as f32
    }

    fn digamma(self) -> f32 {
        special::digamma(self.into()) as f32
    }
    fn polygamma(self, order: f32) -> f32 {
        special::polygamma(order.into(), self.into()) as f32
    }

    fn next_toward(self, other: f32) -> f32 {
        next_toward!(self, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest error over a million floats of every magnitude, in units in the last place.
    fn worst(ours: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> (f64, f32) {
        let mut worst = (0.0, 0.0);
        for bits in (0..=u32::MAX).step_by(4093) {
            let x = f32::from_bits(bits);
            let (got, want) = (ours(x), exact(x as f64));
            let rounded = want as f32;
            if got.to_bits() == rounded.to_bits() || got.is_nan() && rounded.is_nan() {
                continue;
            }
            assert!(
                got.is_finite() && !rounded.is_nan(),
                "{x:e}: {got:e}, not {rounded:e}"
            );
            let unit = (rounded.abs().next_up() - rounded.abs()) as f64;
            let error = (got as f64 - want).abs() / unit;
            if error > worst.0 {
                worst = (error, x);
            }
        }
        worst
    }

    #[test]
    fn float32_functions_are_exact_to_two_last_places() {
        let check = |name, (error, x): (f64, f32), bound| {
            assert!(error < bound, "{name}({x:e}) is {error} units off");
        };
        check("exp", worst(Math::exp, f64::exp), 1.5);
        check("ln", worst(Math::ln, f64::ln), 1.5);
        check("tanh", worst(Math::tanh, f64::tanh), 2.0);
        check("erf", worst(Math::erf, libm::erf), 4.0);
        // Below, e^-x overflows, and the result is PyTorch's 0, not the subnormal number.
        let low = |x: f32| x < -88.0;
        let ours = |x| if low(x) { 0.0 } else { Math::sigmoid(x) };
        let exact = |x: f64| {
            if low(x as f32) {
                0.0
            } else {
                1.0 / (1.0 + (-x).exp())
            }
        };
        check("sigmoid", worst(ours, exact), 2.5);
    }

    #[test]
    fn float32_functions_at_the_edges() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        for x in [
            0.0, -0.0, inf, -inf, nan, -1.0, 1.0, 88.722_84, 88.73, -87.4, -103.97, -104.1, 1e-45,
            1e-38,
        ] {
            for (ours, theirs) in [
                (Math::exp(x), x.exp()),
                (Math::ln(x), x.ln()),
                (Math::tanh(x), x.tanh()),
            ] {
                let close = (ours - theirs).abs() <= theirs.abs() * 2.4e-7;
                assert!(
                    close || ours == theirs || ours.is_nan() && theirs.is_nan(),
                    "{x}: {ours} {theirs}"
                );
            }
        }
        assert_eq!((Math::sigmoid(inf), Math::sigmoid(-inf)), (1.0, 0.0));
        assert!(Math::tanh(-0.0f32).is_sign_negative());
    }
}
