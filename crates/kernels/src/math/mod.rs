//! Functions of floats, each one expression without branches and calls, so that loops over them become vector code at
//! every level of [`simd`](crate::simd), for `float32` and `float64` alike.
//!
//! A family of functions is a trait with provided methods that every [`Isa`] has: `I::exp(x)` is the exponential function
//! in the instructions that `I` stands for. What depends on it is [`fma`](Core::fma) alone: with fused multiplication and
//! addition an exponential takes two thirds of the time, and without it, a call of `f32::mul_add` thirty times
//! as long. Every function is written so that it keeps its bound, in units in the last place (ulp), either way; the
//! tests measure them over the whole range, against `float64` for `float32` and against the C library for `float64`.

mod coefficients;
mod erf;
mod exp;
mod inverse;
mod log;
mod power;
#[cfg(test)]
mod tests;
mod trig;

pub(crate) use erf::Errors;
pub(crate) use exp::Exponentials;
pub(crate) use inverse::Inverses;
pub(crate) use log::Logarithms;
pub(crate) use power::Powers;
pub(crate) use trig::{Circulars, FAR};

use crate::simd::Isa;
use crate::special;
use coefficients::Coefficients;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `f32` or `f64`: what the functions need to know of it.
pub(crate) trait Float:
    Copy
    + PartialOrd
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Coefficients
{
    /// The bits of the fraction.
    const FRACTION: u32;
    const BIAS: i32;
    const INFINITY: Self;
    const NAN: Self;
    const MIN_POSITIVE: Self;
    /// A sum with it has units as last places: it rounds to an integer, whose bits are the sum's low ones.
    const ROUNDER: Self;
    /// The nearest number: for constants.
    fn of(x: f64) -> Self;
    fn abs(self) -> Self;
    fn sqrt(self) -> Self;
    fn copysign(self, sign: Self) -> Self;
    fn is_sign_negative(self) -> bool;
    fn mul_add(self, y: Self, z: Self) -> Self;
    /// The number with the lower half of its digits cleared, so that its square is exact.
    fn high(self) -> Self;
    /// `2^n` of a sum `n + BIAS + ROUNDER`, where that is a normal number.
    fn power(shifted: Self) -> Self;
    /// Two factors of `2^n`, which itself may be no normal number, of a sum `n + 2·BIAS + ROUNDER`.
    fn powers(shifted: Self) -> (Self, Self);
    /// `(n, m)` of a normal `x = 2^n · m` with `m` in √½ … √2; any numbers of others.
    fn split(self) -> (Self, Self);
    /// The logarithm of the magnitude of the gamma function.
    fn lgamma(self) -> Self;
    /// Its derivative.
    fn digamma(self) -> Self;
    /// The derivative of that, so many times.
    fn polygamma(self, order: Self) -> Self;
    /// The neighbour of this number towards another; the other itself, sign and all, where they are equal.
    fn next_toward(self, other: Self) -> Self;
}

macro_rules! float {
    ($($T:ident, $Bits:ident, $rounder:expr, $low:expr;)*) => {$(
        impl Float for $T {
            const FRACTION: u32 = $T::MANTISSA_DIGITS - 1;
            const BIAS: i32 = $T::MAX_EXP - 1;
            const INFINITY: $T = $T::INFINITY;
            const NAN: $T = $T::NAN;
            const MIN_POSITIVE: $T = $T::MIN_POSITIVE;
            const ROUNDER: $T = $rounder;
            #[inline(always)]
            fn of(x: f64) -> $T {
                x as $T
            }
            #[inline(always)]
            fn abs(self) -> $T {
                self.abs()
            }
            #[inline(always)]
            fn sqrt(self) -> $T {
                self.sqrt()
            }
            #[inline(always)]
            fn copysign(self, sign: $T) -> $T {
                self.copysign(sign)
            }
            #[inline(always)]
            fn is_sign_negative(self) -> bool {
                self.is_sign_negative()
            }
            #[inline(always)]
            fn mul_add(self, y: $T, z: $T) -> $T {
                self.mul_add(y, z)
            }
            #[inline(always)]
            fn high(self) -> $T {
                $T::from_bits(self.to_bits() & !$low)
            }
            #[inline(always)]
            fn power(shifted: $T) -> $T {
                $T::from_bits(shifted.to_bits() << Self::FRACTION)
            }
            #[inline(always)]
            fn powers(shifted: $T) -> ($T, $T) {
                // Both exponents with their biases.
                let sum = shifted.to_bits().wrapping_sub(Self::ROUNDER.to_bits());
                let half = sum >> 1;
                let power = |n: $Bits| $T::from_bits(n << Self::FRACTION);
                (power(half), power(sum.wrapping_sub(half)))
            }
            #[inline(always)]
            fn split(self) -> ($T, $T) {
                // Where the exponent steps is moved from 1 to √½.
                const STEP: $Bits = (std::f64::consts::FRAC_1_SQRT_2 as $T).to_bits();
                const UNITS: $T = ((1 as $Bits) << ($T::MANTISSA_DIGITS - 1)) as $T;
                let bits = self.to_bits().wrapping_add((1.0 as $T).to_bits().wrapping_sub(STEP));
                let n = $T::from_bits((bits >> Self::FRACTION) | UNITS.to_bits());
                let fraction = bits & ((1 << Self::FRACTION) - 1);
                (n - (UNITS + Self::BIAS as $T), $T::from_bits(fraction.wrapping_add(STEP)))
            }
            fn lgamma(self) -> $T {
                // libm gives -∞ its NaN of the C standard's older editions.
                if self.is_infinite() {
                    $T::INFINITY
                } else {
                    libm::lgamma(self.into()) as $T
                }
            }
            fn digamma(self) -> $T {
                special::digamma(self.into()) as $T
            }
            fn polygamma(self, order: $T) -> $T {
                special::polygamma(order.into(), self.into()) as $T
            }
            fn next_toward(self, other: $T) -> $T {
                if self.is_nan() || other.is_nan() {
                    self + other
                } else if self < other {
                    self.next_up()
                } else if self > other {
                    self.next_down()
                } else {
                    other
                }
            }
        }
    )*};
}

float! {
    f32, u32, 12_582_912.0, 0xfff;
    f64, u64, 6_755_399_441_055_744.0, 0xffff_ffff;
}

/// What all functions are made of.
pub(crate) trait Core: Isa {
    /// `x · y + z`, rounded once where that is one instruction.
    #[inline(always)]
    fn fma<T: Float>(x: T, y: T, z: T) -> T {
        if Self::FMA {
            x.mul_add(y, z)
        } else {
            x * y + z
        }
    }

    /// `x²` in two parts, exactly.
    #[inline(always)]
    fn square<T: Float>(x: T) -> (T, T) {
        if Self::FMA {
            let square = x * x;
            (square, x.mul_add(x, -square))
        } else {
            let high = x.high();
            (high * high, (x - high) * (x + high))
        }
    }

    /// `c[0] + c[1]·x + c[2]·x² + …` of two coefficients or more, four at a time: sums side by side, where Horner's single
    /// one would wait for each of its steps.
    #[inline(always)]
    fn polynomial<T: Float>(x: T, c: &[f64]) -> T {
        let square = x * x;
        let fourth = square * square;
        let pair = |a: f64, b: f64| Self::fma(x, T::of(b), T::of(a));
        let four = |&[a, b, c, d]: &[f64; 4]| Self::fma(square, pair(c, d), pair(a, b));
        let (fours, rest) = c.as_chunks::<4>();
        let (fours, highest) = match (fours, rest) {
            (_, &[a]) => (fours, T::of(a)),
            (_, &[a, b]) => (fours, pair(a, b)),
            (_, &[a, b, c]) => (fours, Self::fma(square, T::of(c), pair(a, b))),
            ([fours @ .., last], _) => (fours, four(last)),
            _ => (fours, T::of(0.0)),
        };
        let more = |sum, c| Self::fma(sum, fourth, four(c));
        fours.iter().rev().fold(highest, more)
    }

    /// The same by Horner's scheme where it is short: the fewest operations, for formulas that have enough else to do
    /// meanwhile.
    #[inline(always)]
    fn short_polynomial<T: Float>(x: T, c: &[f64]) -> T {
        match c {
            [first @ .., last] if c.len() <= 8 => {
                let more = |sum, &c: &f64| Self::fma(sum, x, T::of(c));
                first.iter().rev().fold(T::of(*last), more)
            }
            _ => Self::polynomial(x, c),
        }
    }
}

impl<I: Isa> Core for I {}

/// One of two numbers, both of them computed: of an `if`, the compiler would move their computations into the branches, and
/// then not find its way back to a vector loop.
#[inline(always)]
fn pick<T: Float>(first: bool, a: T, b: T) -> T {
    std::hint::select_unpredictable(first, a, b)
}

/// `x` between two bounds; NaN passes.
#[inline(always)]
fn hold<T: Float>(x: T, low: T, high: T) -> T {
    let x = pick(x < low, low, x);
    pick(x > high, high, x)
}
