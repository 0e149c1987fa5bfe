//! Element types: names, sizes, categories and PyTorch's promotion rules.

use crate::{Error, Kind, Result};
use std::fmt;

/// The type of a tensor's elements.
///
/// The text form is PyTorch's name (`float32`, `int64`, `bool`, …).
///
/// ```
/// use osteon_spec::DType;
/// assert_eq!(DType::F32.to_string(), "float32");
/// assert_eq!(DType::from_name("int64"), Some(DType::I64));
/// assert_eq!(DType::C64.size(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DType {
    /// One byte, zero or not.
    Bool,
    /// 8-bit unsigned integer.
    U8,
    /// 8-bit signed integer.
    I8,
    /// 16-bit signed integer.
    I16,
    /// 32-bit signed integer.
    I32,
    /// 64-bit signed integer.
    I64,
    /// 16-bit unsigned integer.
    U16,
    /// 32-bit unsigned integer.
    U32,
    /// 64-bit unsigned integer.
    U64,
    /// IEEE half precision.
    F16,
    /// The upper half of a `float32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Complex of two `float32`.
    C64,
    /// Complex of two `float64`.
    C128,
    /// 8-bit float, 4 exponent and 3 mantissa bits, no infinities. Stored, viewed and cast only.
    F8E4M3FN,
    /// 8-bit float, 5 exponent and 2 mantissa bits. Stored, viewed and cast only.
    F8E5M2,
}

/// The kind of number a [`DType`] holds; type promotion moves up this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    /// `bool`.
    Bool,
    /// Signed and unsigned integers.
    Integer,
    /// Real floating point, 8-bit floats included.
    Float,
    /// Complex.
    Complex,
}

impl DType {
    /// Every dtype, in declaration order.
    pub const ALL: [DType; 17] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
        DType::F8E4M3FN,
        DType::F8E5M2,
    ];

    /// PyTorch's name, without the `torch.` prefix.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "uint8",
            DType::I8 => "int8",
            DType::I16 => "int16",
            DType::I32 => "int32",
            DType::I64 => "int64",
            DType::U16 => "uint16",
            DType::U32 => "uint32",
            DType::U64 => "uint64",
            DType::F16 => "float16",
            DType::BF16 => "bfloat16",
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::C64 => "complex64",
            DType::C128 => "complex128",
            DType::F8E4M3FN => "float8_e4m3fn",
            DType::F8E5M2 => "float8_e5m2",
        }
    }

    /// The dtype of this PyTorch name, if there is one.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 | DType::F8E4M3FN | DType::F8E5M2 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The kind of number.
    pub const fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64 => Category::Integer,
            DType::F16
            | DType::BF16
            | DType::F32
            | DType::F64
            | DType::F8E4M3FN
            | DType::F8E5M2 => Category::Float,
            DType::C64 | DType::C128 => Category::Complex,
        }
    }

    /// Real floating point (PyTorch's `is_floating_point`).
    pub const fn is_float(self) -> bool {
        matches!(self.category(), Category::Float)
    }

    /// Complex (PyTorch's `is_complex`).
    pub const fn is_complex(self) -> bool {
        matches!(self.category(), Category::Complex)
    }

    /// An integer, `bool` excluded.
    pub const fn is_integer(self) -> bool {
        matches!(self.category(), Category::Integer)
    }

    /// Whether values below zero exist.
    pub const fn is_signed(self) -> bool {
        !matches!(
            self,
            DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64
        )
    }

    /// The largest finite number of a dtype of floats, and of a complex one's parts.
    pub const fn largest(self) -> f64 {
        match self {
            DType::F8E4M3FN => 448.0,
            DType::F8E5M2 => 57344.0,
            DType::F16 => 65504.0,
            DType::BF16 => 3.389_531_389_251_535_5e38,
            DType::F32 | DType::C64 => f32::MAX as f64,
            _ => f64::MAX,
        }
    }

    /// One of the two 8-bit floats, which are stored, viewed and cast but not computed with.
    pub const fn is_float8(self) -> bool {
        matches!(self, DType::F8E4M3FN | DType::F8E5M2)
    }

    /// `uint16`, `uint32` or `uint64`: dtypes that PyTorch promotes only with floats.
    pub const fn is_wide_unsigned(self) -> bool {
        matches!(self, DType::U16 | DType::U32 | DType::U64)
    }

    /// The real type of a complex dtype's parts; any other dtype itself.
    pub const fn to_real(self) -> DType {
        match self {
            DType::C64 => DType::F32,
            DType::C128 => DType::F64,
            other => other,
        }
    }

    /// The complex dtype whose parts have this type (`float16` and `bfloat16` widen to `complex64`).
    pub const fn to_complex(self) -> DType {
        match self {
            DType::F64 | DType::C128 => DType::C128,
            _ => DType::C64,
        }
    }

    /// PyTorch's `promote_types`: the smallest dtype that holds both kinds of value.
    ///
    /// # Errors
    /// 8-bit floats promote with nothing else; `uint16/32/64` only with real floats.
    ///
    /// ```
    /// use osteon_spec::DType;
    /// assert_eq!(DType::U8.promote(DType::I8).unwrap(), DType::I16);
    /// assert_eq!(DType::F16.promote(DType::BF16).unwrap(), DType::F32);
    /// assert!(DType::U16.promote(DType::I32).is_err());
    /// ```
    pub fn promote(self, other: DType) -> Result<DType> {
        use DType::*;
        let (a, b) = (self, other);
        if a == b {
            return Ok(a);
        }
        if a.is_float8() || b.is_float8() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "promotion for float8 types is not supported, attempted to promote {a} and {b}; cast one of them with to() first"
                ),
            ));
        }
        if a.is_wide_unsigned() || b.is_wide_unsigned() {
            if a.is_float() {
                return Ok(a);
            }
            if b.is_float() {
                return Ok(b);
            }
            return Err(Error::new(
                Kind::DType,
                format!(
                    "promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a} and {b}; cast one of them with to() first"
                ),
            ));
        }
        let (low, high) = if a.category() <= b.category() {
            (a, b)
        } else {
            (b, a)
        };
        Ok(match (low.category(), high.category()) {
            (l, h) if l == h => match (a, b) {
                // The one pair of integers where neither holds the other.
                (U8, I8) | (I8, U8) => I16,
                (F16, BF16) | (BF16, F16) => F32,
                // Within a category a wider dtype holds a narrower; u8 fits every wider integer.
                _ if a.size() >= b.size() => a,
                _ => b,
            },
            (Category::Float, Category::Complex) if low == F64 => C128,
            _ => high,
        })
    }

    /// PyTorch's `can_cast`: whether a result of this dtype may be written in place into `to`
    /// (the category must not fall: no float into an integer, no complex into a real, no number
    /// into a `bool`).
    pub fn can_cast(self, to: DType) -> bool {
        self.category() <= to.category()
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.promote_types` of PyTorch 2.15 for every pair, in the order of [`DType::ALL`].
    const PROMOTE: &str = include_str!("../tests/data/promote.txt");

    #[test]
    fn promotion_is_pytorchs() {
        let mut pairs = 0;
        for (a, line) in DType::ALL.into_iter().zip(PROMOTE.lines()) {
            for (b, want) in DType::ALL.into_iter().zip(line.split_whitespace()) {
                assert_eq!(a.promote(b).ok(), DType::from_name(want), "{a} with {b}");
                pairs += 1;
            }
        }
        assert_eq!(pairs, 17 * 17);
    }

    #[test]
    fn names_round_trip() {
        for d in DType::ALL {
            assert_eq!(DType::from_name(d.name()), Some(d));
        }
        assert_eq!(DType::from_name("torch.float32"), None);
    }
}
