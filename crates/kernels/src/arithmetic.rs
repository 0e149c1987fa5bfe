//! Numbers as sums carry them: wide enough that rounding is that of the result alone.

use crate::lane::Lane;
use crate::math;
use crate::sums::Term;
use num_complex::Complex;
use std::ops::{Add, Mul, Sub};

/// An element type that sums and products take.
pub(crate) trait Arithmetic: Lane {
    /// What they grow in: `float64` for floats.
    type Wide: Term<Wide = Self::Wide>;
    /// What few of them are added in.
    type Near: Term<Wide = Self::Wide>;
    const ONE: Self::Wide;
    fn wide(x: Self::Value) -> Self::Wide;
    fn near(x: Self::Value) -> Self::Near;
    fn narrow(x: Self::Wide) -> Self::Value;
    fn mul(a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

/// An element type with fractions: what means and norms take.
pub(crate) trait Fractional: Arithmetic<Near: Sub<Output = Self::Near>> {
    /// What few magnitudes or squares are added in.
    type Part: Term<Wide = f64>;
    fn scaled(a: Self::Wide, by: f64) -> Self::Wide;
    fn is_nan(x: Self::Value) -> bool;
    /// The distance from zero.
    fn magnitude(x: Self::Wide) -> f64;
    /// Its square.
    fn square(x: Self::Wide) -> f64;
    /// Both, of which few are added.
    fn near_magnitude(x: Self::Near) -> Self::Part;
    fn near_square(x: Self::Near) -> Self::Part;
    /// A number of the type of the parts.
    fn real(x: f64) -> <Self::Real as Lane>::Value;
}

impl Arithmetic for i64 {
    type Wide = i64;
    type Near = i64;
    const ONE: i64 = 1;
    #[inline(always)]
    fn wide(x: i64) -> i64 {
        x
    }
    #[inline(always)]
    fn near(x: i64) -> i64 {
        x
    }
    #[inline(always)]
    fn narrow(x: i64) -> i64 {
        x
    }
    #[inline(always)]
    fn mul(a: i64, b: i64) -> i64 {
        a.wrapping_mul(b)
    }
}

macro_rules! fractional {
    ($($T:ty, $Wide:ty, $Near:ty, $Part:ty, $Real:ty, $one:expr, |$v:ident| $wide:expr, $near:expr, $narrow:expr, $nan:expr,
       $magnitude:expr, $square:expr;)*) => {$(
        impl Arithmetic for $T {
            type Wide = $Wide;
            type Near = $Near;
            const ONE: $Wide = $one;
            #[inline(always)]
            fn wide($v: $T) -> $Wide {
                $wide
            }
            #[inline(always)]
            fn near($v: $T) -> $Near {
                $near
            }
            #[inline(always)]
            fn narrow($v: $Wide) -> $T {
                $narrow
            }
            #[inline(always)]
            fn mul(a: $Wide, b: $Wide) -> $Wide {
                a * b
            }
        }

        impl Fractional for $T {
            type Part = $Part;
            #[inline(always)]
            fn scaled(a: $Wide, by: f64) -> $Wide {
                a * by
            }
            #[inline(always)]
            fn is_nan($v: $T) -> bool {
                $nan
            }
            #[inline(always)]
            fn magnitude($v: $Wide) -> f64 {
                $magnitude
            }
            #[inline(always)]
            fn square($v: $Wide) -> f64 {
                $square
            }
            #[inline(always)]
            fn near_magnitude($v: $Near) -> $Part {
                $magnitude
            }
            #[inline(always)]
            fn near_square($v: $Near) -> $Part {
                $square
            }
            #[inline(always)]
            fn real(x: f64) -> $Real {
                x as $Real
            }
        }
    )*};
}

fractional! {
    f32, f64, f32, f32, f32, 1.0, |x| x as f64, x, x as f32, x.is_nan(), x.abs(), x * x;
    f64, f64, f64, f64, f64, 1.0, |x| x, x, x, x.is_nan(), x.abs(), x * x;
    Complex<f32>, Complex<f64>, Complex<f64>, f64, f32, Complex::new(1.0, 0.0),
        |x| Complex::new(x.re as f64, x.im as f64), Complex::new(x.re as f64, x.im as f64),
        Complex::new(x.re as f32, x.im as f32), x.is_nan(), x.norm(), x.norm_sqr();
    Complex<f64>, Complex<f64>, Complex<f64>, f64, f64, Complex::new(1.0, 0.0), |x| x, x, x,
        x.is_nan(), x.norm(), x.norm_sqr();
}

/// An element type with an order: what extremes take. NaN comes before every number.
pub(crate) trait Ordered: Lane<Value: PartialOrd> {
    const LOWEST: Self::Value;
    const HIGHEST: Self::Value;
    fn is_nan(x: Self::Value) -> bool;

    /// Whether `x` replaces `best`: it goes beyond it, or is the first NaN.
    #[inline(always)]
    fn beats<const MAX: bool>(x: Self::Value, best: Self::Value) -> bool {
        let beyond = if MAX { x > best } else { x < best };
        beyond | (Self::is_nan(x) & !Self::is_nan(best))
    }
}

macro_rules! ordered {
    ($($T:ty, $low:expr, $high:expr, |$v:ident| $nan:expr;)*) => {$(
        impl Ordered for $T {
            const LOWEST: $T = $low;
            const HIGHEST: $T = $high;
            #[inline(always)]
            fn is_nan($v: $T) -> bool {
                $nan
            }
        }
    )*};
}

ordered! {
    i64, i64::MIN, i64::MAX, |_x| false;
    u64, u64::MIN, u64::MAX, |_x| false;
    i32, i32::MIN, i32::MAX, |_x| false;
    i16, i16::MIN, i16::MAX, |_x| false;
    i8, i8::MIN, i8::MAX, |_x| false;
    u8, u8::MIN, u8::MAX, |_x| false;
    u32, u32::MIN, u32::MAX, |_x| false;
    u16, u16::MIN, u16::MAX, |_x| false;
    f32, f32::NEG_INFINITY, f32::INFINITY, |x| x.is_nan();
    f64, f64::NEG_INFINITY, f64::INFINITY, |x| x.is_nan();
}

/// A float that loops compute in.
pub(crate) trait Float:
    Lane<Value = Self>
    + Ordered
    + Fractional<Wide = f64, Near = Self, Part = Self>
    + Term<Wide = f64>
    + math::Float
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + PartialOrd
{
}

impl Float for f32 {}
impl Float for f64 {}
