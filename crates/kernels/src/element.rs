//! The Rust types of elements, and the one `match` over dtypes.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use num_complex::Complex;
use osteon_spec::DType;

/// A type of element as it lies in memory: any bytes are a valid value.
///
/// # Safety
/// `size_of::<Self>()` is `Self::DTYPE.size()`, and the representation is that of the dtype.
pub unsafe trait Element: Pod + Send + Sync {
    /// The dtype of this type.
    const DTYPE: DType;
}

/// A `bool` in memory: a byte that is true unless zero. Bytes from files and views may be anything,
/// so Rust's `bool` never refers to a storage.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// The value.
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    #[inline(always)]
    fn from(value: bool) -> Bool {
        Bool(value as u8)
    }
}

/// Two are equal when both are true or both are false, whatever the bytes.
impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

/// An 8-bit float with 4 exponent and 3 mantissa bits: no infinities, the largest number is 448.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E4M3FN(pub u8);

/// An 8-bit float with 5 exponent and 2 mantissa bits: the upper half of a `float16`.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub struct F8E5M2(pub u8);

macro_rules! elements {
    ($($dtype:ident $ty:ty;)*) => {$(
        // SAFETY: the type is the dtype's representation; the size is checked here.
        unsafe impl Element for $ty {
            const DTYPE: DType = {
                assert!(size_of::<$ty>() == DType::$dtype.size());
                DType::$dtype
            };
        }
    )*};
}

elements! {
    Bool Bool; U8 u8; I8 i8; I16 i16; I32 i32; I64 i64; U16 u16; U32 u32; U64 u64;
    F16 f16; BF16 bf16; F32 f32; F64 f64; C64 Complex<f32>; C128 Complex<f64>;
    F8E4M3FN F8E4M3FN; F8E5M2 F8E5M2;
}

/// The one `match` over dtypes: `with_element!(dtype, T => expr)` is `expr` with the element type
/// of `dtype` named `T`.
///
/// With a set of dtypes in front, `with_element!(float: dtype, T => expr)` is `Some(expr)` for a
/// dtype of the set and `None` for any other; `expr` need not compile for others. The sets are
/// those that loops compute in: `bool`, `int` (and its parts `signed` and `unsigned`), `float`
/// (`float32`, `float64`) and `complex`; and `half` (`float16`, `bfloat16`), for the few loops that do not compute in
/// `float32` instead. 8-bit floats are in none.
///
/// ```
/// use osteon_kernels::with_element;
/// use osteon_spec::DType;
/// assert_eq!(with_element!(DType::BF16, T => size_of::<T>()), 2);
/// assert_eq!(with_element!(int: DType::I16, T => T::MAX as i64), Some(32767));
/// assert_eq!(with_element!(int: DType::F32, T => T::MAX as i64), None);
/// ```
#[macro_export]
macro_rules! with_element {
    (bool: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e; Bool $crate::Bool)
    };
    (int: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e;
            U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, U16 u16, U32 u32, U64 u64)
    };
    (unsigned: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e; U8 u8, U16 u16, U32 u32, U64 u64)
    };
    (signed: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e; I8 i8, I16 i16, I32 i32, I64 i64)
    };
    (float: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e; F32 f32, F64 f64)
    };
    (half: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e; F16 $crate::f16, BF16 $crate::bf16)
    };
    (complex: $dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@some $dtype, $T, $e; C64 $crate::Complex<f32>, C128 $crate::Complex<f64>)
    };
    ($dtype:expr, $T:ident => $e:expr) => {
        $crate::with_element!(@match $dtype, $T, $e;
            Bool $crate::Bool, U8 u8, I8 i8, I16 i16, I32 i32, I64 i64, U16 u16, U32 u32, U64 u64,
            F16 $crate::f16, BF16 $crate::bf16, F32 f32, F64 f64,
            C64 $crate::Complex<f32>, C128 $crate::Complex<f64>,
            F8E4M3FN $crate::F8E4M3FN, F8E5M2 $crate::F8E5M2)
    };
    (@some $dtype:expr, $T:ident, $e:expr; $($variant:ident $ty:ty),*) => {
        $crate::with_element!(@match $dtype, $T, Some($e); $($variant $ty),* ; _ => None)
    };
    (@match $dtype:expr, $T:ident, $e:expr; $($variant:ident $ty:ty),* $(; $rest:pat => $other:expr)?) => {
        match $dtype {
            $($crate::DType::$variant => { #[allow(dead_code)] type $T = $ty; $e })*
            $($rest => $other)?
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_its_element() {
        for dtype in DType::ALL {
            assert_eq!(with_element!(dtype, T => T::DTYPE), dtype);
            assert_eq!(with_element!(dtype, T => size_of::<T>()), dtype.size());
            let sets = [
                with_element!(bool: dtype, T => T::DTYPE),
                with_element!(int: dtype, T => T::DTYPE),
                with_element!(float: dtype, T => T::DTYPE),
                with_element!(complex: dtype, T => T::DTYPE),
            ];
            let found: Vec<_> = sets.into_iter().flatten().collect();
            let computed = !(dtype.is_float() && dtype.size() < 4);
            assert_eq!(
                found,
                if computed { vec![dtype] } else { vec![] },
                "{dtype}"
            );
        }
    }

    #[test]
    fn any_byte_is_a_bool() {
        for byte in 0..=255u8 {
            assert_eq!(bytemuck::cast::<u8, Bool>(byte).get(), byte != 0);
        }
    }
}
