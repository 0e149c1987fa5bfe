//! One number, of any dtype.

use crate::Category;
use half::{bf16, f16};
use num_complex::Complex;

/// One number as it goes into a tensor or comes out: the widest of its kind, so that nothing is
/// rounded on the way.
///
/// ```
/// use osteon_spec::Scalar;
/// assert_eq!(Scalar::from(3u8), Scalar::UInt(3));
/// assert_eq!(Scalar::from(0.5f32), Scalar::Float(0.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// A `bool`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A real floating-point number.
    Float(f64),
    /// A complex number: its real and its imaginary part.
    Complex(f64, f64),
}

impl Scalar {
    /// The kind of number.
    pub fn category(self) -> Category {
        match self {
            Scalar::Bool(_) => Category::Bool,
            Scalar::Int(_) | Scalar::UInt(_) => Category::Integer,
            Scalar::Float(_) => Category::Float,
            Scalar::Complex(..) => Category::Complex,
        }
    }
}

/// Conversions that lose nothing.
macro_rules! from {
    ($($number:ty => $variant:ident),+ $(,)?) => {$(
        impl From<$number> for Scalar {
            fn from(value: $number) -> Scalar {
                Scalar::$variant(value.into())
            }
        }
    )+};
}

from! {
    bool => Bool,
    i8 => Int,
    i16 => Int,
    i32 => Int,
    i64 => Int,
    u8 => UInt,
    u16 => UInt,
    u32 => UInt,
    u64 => UInt,
    f16 => Float,
    bf16 => Float,
    f32 => Float,
    f64 => Float,
}

impl<T: Into<f64>> From<Complex<T>> for Scalar {
    fn from(value: Complex<T>) -> Scalar {
        Scalar::Complex(value.re.into(), value.im.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_widens_exactly() {
        assert_eq!(Scalar::from(true), Scalar::Bool(true));
        assert_eq!(Scalar::from(i64::MIN), Scalar::Int(i64::MIN));
        assert_eq!(Scalar::from(-1i8), Scalar::Int(-1));
        assert_eq!(Scalar::from(u64::MAX), Scalar::UInt(u64::MAX));
        assert_eq!(Scalar::from(f16::from_f32(0.5)), Scalar::Float(0.5));
        assert_eq!(Scalar::from(bf16::from_f32(0.5)), Scalar::Float(0.5));
        assert_eq!(
            Scalar::from(0.1f32),
            Scalar::Float(0.100_000_001_490_116_12)
        );
        assert_eq!(
            Scalar::from(Complex::new(1f32, -2.0)),
            Scalar::Complex(1.0, -2.0)
        );
    }
}
