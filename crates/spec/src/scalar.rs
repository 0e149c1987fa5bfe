//! One number, of any dtype.

use crate::{Category, DType, Error, Kind, Result};
use half::{bf16, f16};
use num_complex::Complex;
use std::fmt;

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

    /// Whether the number, cast to a dtype, is what PyTorch lets into a tensor of it: fractions and signs
    /// may be lost, but nothing may overflow, and an imaginary part may not vanish.
    ///
    /// # Errors
    /// [`Kind::Value`] naming the number and the dtype's range.
    ///
    /// ```
    /// use osteon_spec::{DType, Scalar};
    /// assert!(Scalar::Float(1.9).check_fits(DType::I64).is_ok());
    /// assert!(Scalar::Int(300).check_fits(DType::I8).is_err());
    /// assert!(Scalar::Int(-1).check_fits(DType::U8).is_ok());
    /// ```
    pub fn check_fits(self, dtype: DType) -> Result<()> {
        let fits = match (dtype.category(), self) {
            (Category::Bool, _) | (_, Scalar::Bool(_)) => true,
            (Category::Complex, _) => true,
            (_, Scalar::Complex(_, im)) if im != 0.0 => false,
            (Category::Integer, Scalar::Int(i)) => integer_fits(i.into(), dtype),
            (Category::Integer, Scalar::UInt(u)) => integer_fits(u.into(), dtype),
            (Category::Integer, Scalar::Float(x) | Scalar::Complex(x, _)) => {
                let (least, most) = integer_range(dtype);
                // `most + 1` is exact as a float, `most` is not for 64 bits.
                let top = (most + 1) as f64;
                x >= least as f64 && x < top
            }
            (Category::Float, Scalar::Float(x) | Scalar::Complex(x, _)) => {
                // Narrower floats take what is too large as infinity.
                dtype != DType::F32 || !x.is_finite() || x.abs() <= f32::MAX.into()
            }
            (Category::Float, Scalar::Int(_) | Scalar::UInt(_)) => true,
        };
        if fits {
            return Ok(());
        }
        Err(Error::new(
            Kind::Value,
            format!("value {self} cannot be converted to {dtype} without overflow"),
        ))
    }
}

impl Scalar {
    /// The number itself, or the end of an integer dtype's range that it lies beyond.
    ///
    /// ```
    /// use osteon_spec::{DType, Scalar};
    /// assert_eq!(Scalar::Int(300).saturate(DType::I8), Scalar::Int(127));
    /// assert_eq!(Scalar::Int(-1).saturate(DType::U8), Scalar::Int(0));
    /// assert_eq!(Scalar::Int(300).saturate(DType::F32), Scalar::Int(300));
    /// ```
    pub fn saturate(self, dtype: DType) -> Scalar {
        let whole = match self {
            Scalar::Int(i) => i128::from(i),
            Scalar::UInt(u) => i128::from(u),
            Scalar::Float(x) if x.abs() >= 9e18 => return self,
            Scalar::Float(x) => x as i128,
            Scalar::Bool(_) | Scalar::Complex(..) => return self,
        };
        if dtype.category() != Category::Integer {
            return self;
        }
        let (least, most) = integer_range(dtype);
        if (least..=most).contains(&whole) {
            return self;
        }
        match whole.clamp(least, most) {
            end if end > i128::from(i64::MAX) => Scalar::UInt(end as u64),
            end => Scalar::Int(end as i64),
        }
    }
}

fn integer_range(dtype: DType) -> (i128, i128) {
    let bits = 8 * dtype.size() as u32;
    if dtype.is_signed() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// A negative number may wrap into an unsigned dtype as long as its magnitude fits.
fn integer_fits(i: i128, dtype: DType) -> bool {
    let (least, most) = integer_range(dtype);
    i <= most
        && if dtype.is_signed() {
            i >= least
        } else {
            -i <= most
        }
}

/// As PyTorch writes a plain number: `2`, `1.5`, `true`, `1-2j`.
impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(i) => write!(f, "{i}"),
            Scalar::UInt(u) => write!(f, "{u}"),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Complex(re, im) => write!(f, "{re}{im:+}j"),
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

    /// What `torch.zeros(1, dtype).fill_(value)` of PyTorch 2.15 does.
    #[test]
    fn overflow_is_pytorchs() {
        use Scalar::{Complex, Float, Int};
        let taken = [
            (DType::I8, Int(-128)),
            (DType::U8, Int(-255)),
            (DType::I8, Float(127.0)),
            (DType::I64, Float(1.9)),
            (DType::F16, Float(1e6)),
            (DType::BF16, Float(3.4e38)),
            (DType::F8E4M3FN, Float(449.0)),
            (DType::F32, Float(f64::INFINITY)),
            (DType::Bool, Float(2.5)),
            (DType::I8, Complex(1.0, 0.0)),
        ];
        for (dtype, value) in taken {
            assert!(value.check_fits(dtype).is_ok(), "{value} as {dtype}");
        }
        let refused = [
            (DType::I8, Int(300)),
            (DType::I8, Int(-129)),
            (DType::U8, Int(-256)),
            (DType::U8, Int(256)),
            (DType::U8, Float(-0.5)),
            (DType::I8, Float(128.0)),
            (DType::I64, Float(9_223_372_036_854_775_808.0)),
            (DType::I64, Float(f64::NAN)),
            (DType::I32, Float(f64::INFINITY)),
            (DType::F32, Float(1e300)),
            (DType::F32, Complex(1.0, 1.0)),
        ];
        for (dtype, value) in refused {
            assert!(value.check_fits(dtype).is_err(), "{value} as {dtype}");
        }
    }

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
