//! Numbers as the files write them and as tensors hold them, and how the two compare.

use std::fmt;

use osteon::{DType, Scalar};
use serde_json::Value;

/// One number of a tensor: an integer (or a bool, as 0 or 1), a real, or a complex number.
#[derive(Clone, Copy)]
pub enum Number {
    Int(i128),
    Real(f64),
    Complex(f64, f64),
}

impl Number {
    /// Reads a JSON value: a number, a bool, `"nan"`, `"inf"`, `"-inf"`, `[re, im]` or
    /// `{"complex": [re, im]}`.
    pub fn parse(value: &Value) -> Option<Number> {
        match value {
            Value::Bool(b) => Some(Number::Int(i128::from(*b))),
            Value::Number(n) => {
                let whole = n.as_i64().map(i128::from).or(n.as_u64().map(i128::from));
                whole.map(Number::Int).or(n.as_f64().map(Number::Real))
            }
            Value::String(s) => named_float(s).map(Number::Real),
            Value::Array(parts) => match &parts[..] {
                [re, im] => Some(Number::Complex(
                    Number::parse(re)?.re(),
                    Number::parse(im)?.re(),
                )),
                _ => None,
            },
            Value::Object(map) => match (map.get("complex"), map.get("float")) {
                (Some(parts), _) => Number::parse(parts),
                (_, Some(x)) => Some(Number::Real(Number::parse(x)?.re())),
                _ => None,
            },
            Value::Null => None,
        }
    }

    /// The real part, as a float.
    pub fn re(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Real(x) | Number::Complex(x, _) => x,
        }
    }

    /// The number as an integer; the whole part of a real one.
    pub fn whole(self) -> i64 {
        match self {
            Number::Int(n) => n as i64,
            Number::Real(x) | Number::Complex(x, _) => x as i64,
        }
    }

    /// The imaginary part.
    pub fn im(self) -> f64 {
        match self {
            Number::Complex(_, y) => y,
            _ => 0.0,
        }
    }

    /// The number as an argument of an operation.
    pub fn scalar(self) -> Scalar {
        match self {
            Number::Int(n) => i64::try_from(n).map_or(Scalar::Float(n as f64), Scalar::Int),
            Number::Real(x) => Scalar::Float(x),
            Number::Complex(x, y) => Scalar::Complex(x, y),
        }
    }
}

impl From<Scalar> for Number {
    fn from(value: Scalar) -> Number {
        match value {
            Scalar::Bool(b) => Number::Int(i128::from(b)),
            Scalar::Int(n) => Number::Int(i128::from(n)),
            Scalar::UInt(n) => Number::Int(i128::from(n)),
            Scalar::Float(x) => Number::Real(x),
            Scalar::Complex(x, y) => Number::Complex(x, y),
        }
    }
}

/// Bit for bit, so that a snapshot with NaN in it equals itself.
impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        match (*self, *other) {
            (Number::Int(a), Number::Int(b)) => a == b,
            (Number::Real(a), Number::Real(b)) => a.to_bits() == b.to_bits(),
            (Number::Complex(a, b), Number::Complex(c, d)) => {
                (a.to_bits(), b.to_bits()) == (c.to_bits(), d.to_bits())
            }
            _ => false,
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(n) => write!(f, "{n}"),
            Number::Real(x) => write!(f, "{x:?}"),
            Number::Complex(x, y) => write!(f, "{x:?}{y:+?}i"),
        }
    }
}

/// Reads a list of numbers.
pub fn parse_numbers(values: &[Value]) -> Option<Vec<Number>> {
    values.iter().map(Number::parse).collect()
}

fn named_float(name: &str) -> Option<f64> {
    match name {
        "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// How far a floating-point value may be off, relative to the larger of the value and the largest
/// finite magnitude of its tensor.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    pub half: f64,
    pub single: f64,
    pub double: f64,
    pub complex: f64,
}

impl Tolerance {
    pub const PROGRAMS: Tolerance = Tolerance {
        half: 1e-2,
        single: 1e-6,
        double: 1e-6,
        complex: 1e-6,
    };
    pub const OPS: Tolerance = Tolerance {
        half: 1.6e-2,
        single: 1e-5,
        double: 1e-7,
        complex: 1e-7,
    };

    /// Ends the words of a difference of complex numbers that is one of `float32`'s last digits.
    pub const LAST_DIGITS: &str = ", which is float32's last digits";

    fn of(self, dtype: DType) -> f64 {
        match (dtype.is_complex(), dtype.is_float(), dtype.size()) {
            (true, ..) => self.complex,
            (_, true, 8) => self.double,
            (_, true, 4) => self.single,
            (_, true, _) => self.half,
            _ => 0.0,
        }
    }

    /// Where two row-major lists of one tensor's values differ, in words.
    pub fn difference(self, dtype: DType, want: &[Number], got: &[Number]) -> Option<String> {
        if want.len() != got.len() {
            return Some(format!("{} values, want {}", got.len(), want.len()));
        }
        let relative = self.of(dtype);
        let magnitudes = want.iter().flat_map(|n| [n.re().abs(), n.im().abs()]);
        let largest = magnitudes.filter(|m| m.is_finite()).fold(0.0, f64::max);
        let same = |want: Number, got: Number, relative: f64| match (want, got) {
            (Number::Int(a), Number::Int(b)) => a == b,
            _ if relative == 0.0 => false,
            _ => {
                close(want.re(), got.re(), relative, largest)
                    && close(want.im(), got.im(), relative, largest)
            }
        };
        let pairs = || want.iter().zip(got);
        let first = pairs().position(|(w, g)| !same(*w, *g, relative))?;
        let last_digits = dtype == DType::C64 && pairs().all(|(w, g)| same(*w, *g, self.single));
        Some(format!(
            "value {first} is {:?}, want {:?}{}",
            got[first],
            want[first],
            if last_digits { Self::LAST_DIGITS } else { "" }
        ))
    }
}

fn close(want: f64, got: f64, relative: f64, largest: f64) -> bool {
    if want.is_nan() || got.is_nan() {
        return want.is_nan() && got.is_nan();
    }
    if want.is_infinite() || got.is_infinite() {
        return want == got;
    }
    (want - got).abs() <= relative * largest.max(want.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn numbers(value: Value) -> Vec<Number> {
        parse_numbers(value.as_array().unwrap()).unwrap()
    }

    fn differ(dtype: DType, want: Value, got: Value) -> bool {
        Tolerance::PROGRAMS
            .difference(dtype, &numbers(want), &numbers(got))
            .is_some()
    }

    #[test]
    fn numbers_are_read_in_every_spelling() {
        let read = numbers(
            json!([1, true, 0.5, "-inf", [1, -2.0], {"complex": [0, 1.5]}, {"float": "nan"}]),
        );
        assert_eq!(
            format!("{read:?}"),
            "[1, 1, 0.5, -inf, 1.0-2.0i, 0.0+1.5i, NaN]"
        );
        assert!(Number::parse(&json!("infinity")).is_none());
        assert_eq!(
            Number::parse(&json!(u64::MAX)).unwrap(),
            Number::Int(u64::MAX.into())
        );
    }

    #[test]
    fn integers_are_exact_and_floats_are_close() {
        assert!(differ(
            DType::I64,
            json!([1i64 << 60]),
            json!([(1i64 << 60) + 1])
        ));
        assert!(!differ(DType::F32, json!([1.0]), json!([1.0 + 9e-7])));
        assert!(differ(DType::F32, json!([1.0]), json!([1.0 + 2e-6])));
        assert!(!differ(DType::BF16, json!([1.0]), json!([1.009])));
        assert!(!differ(DType::F32, json!([3]), json!([3.0])));
    }

    #[test]
    fn closeness_is_relative_to_the_largest_finite_value() {
        assert!(!differ(
            DType::F64,
            json!([1e6, 0.0, "inf"]),
            json!([1e6, 0.5, "inf"])
        ));
        assert!(differ(
            DType::F64,
            json!([1.0, 0.0, "inf"]),
            json!([1.0, 0.5, "inf"])
        ));
    }

    #[test]
    fn nan_and_infinities_match_themselves_alone() {
        assert!(!differ(
            DType::F32,
            json!(["nan", "inf"]),
            json!(["nan", "inf"])
        ));
        assert!(differ(DType::F32, json!(["nan"]), json!([0.0])));
        assert!(differ(DType::F32, json!([0.0]), json!(["nan"])));
        assert!(differ(DType::F32, json!(["inf"]), json!(["-inf"])));
        assert!(differ(DType::F32, json!([1e30]), json!(["inf"])));
        assert!(differ(DType::C64, json!([[1, 2]]), json!([[1, 3]])));
    }

    #[test]
    fn a_missing_value_is_a_difference() {
        assert!(differ(DType::F32, json!([1, 2]), json!([1])));
    }
}
