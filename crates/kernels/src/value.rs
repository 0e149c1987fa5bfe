//! One element outside of a tensor.

use crate::convert::Convert;
use crate::element::Element;
use crate::with_element;
use num_complex::Complex;
use osteon_spec::{Category, DType, Scalar};

/// An element of any dtype as it lies in memory: what a number operand points to (with strides 0).
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Value([u8; 16]);

impl Value {
    /// Zero of every dtype.
    pub const ZERO: Value = Value([0; 16]);

    /// A number as an element of this dtype, converted as [`cast`](crate::cast()) converts.
    ///
    /// ```
    /// use osteon_kernels::Value;
    /// use osteon_spec::{DType, Scalar};
    /// let v = Value::new(Scalar::Float(300.7), DType::I8);
    /// assert_eq!(v.read(DType::I8), Scalar::Int(44));
    /// ```
    pub fn new(number: Scalar, dtype: DType) -> Value {
        fn convert<T: Convert>(number: Scalar) -> T {
            match number {
                Scalar::Bool(v) => T::from_int(v as i64),
                Scalar::Int(v) => T::from_int(v),
                Scalar::UInt(v) => T::from_uint(v),
                Scalar::Float(v) => T::from_f64(v),
                Scalar::Complex(re, im) => T::from_c128(Complex::new(re, im)),
            }
        }
        with_element!(dtype, T => Value::of(convert::<T>(number)))
    }

    /// An element.
    pub fn of<T: Element>(element: T) -> Value {
        let mut value = Value::ZERO;
        value.0[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&element));
        value
    }

    /// Reads the element of this dtype at a pointer.
    ///
    /// # Safety
    /// `dtype.size()` bytes may be read there.
    pub unsafe fn load(at: *const u8, dtype: DType) -> Value {
        let mut value = Value::ZERO;
        // SAFETY: the caller's contract; an element has 16 bytes at most.
        unsafe { std::ptr::copy_nonoverlapping(at, value.0.as_mut_ptr(), dtype.size()) };
        value
    }

    /// Where the element lies, for a plan in which it does not move.
    pub fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }

    /// The element, which is of this dtype, as a number: nothing is rounded.
    pub fn read(&self, dtype: DType) -> Scalar {
        with_element!(dtype, T => {
            let v: T = self.get();
            match dtype.category() {
                Category::Bool => Scalar::Bool(v.to::<i64>() != 0),
                Category::Integer if dtype.is_signed() => Scalar::Int(v.to()),
                Category::Integer => Scalar::UInt(v.to()),
                Category::Float => Scalar::Float(v.to()),
                Category::Complex => {
                    let v: Complex<f64> = v.to();
                    Scalar::Complex(v.re, v.im)
                }
            }
        })
    }

    /// The element, of the type it was made of.
    #[inline(always)]
    pub(crate) fn get<T: Element>(&self) -> T {
        bytemuck::pod_read_unaligned(&self.0[..size_of::<T>()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_in_and_come_out() {
        for dtype in DType::ALL {
            let v = Value::new(Scalar::Int(1), dtype).read(dtype);
            let want = match dtype.category() {
                Category::Bool => Scalar::Bool(true),
                Category::Integer if dtype.is_signed() => Scalar::Int(1),
                Category::Integer => Scalar::UInt(1),
                Category::Float => Scalar::Float(1.0),
                Category::Complex => Scalar::Complex(1.0, 0.0),
            };
            assert_eq!(v, want, "{dtype}");
        }
        let v = Value::new(Scalar::Int(-1), DType::U64).read(DType::U64);
        assert_eq!(v, Scalar::UInt(u64::MAX));
        let v = Value::new(Scalar::Complex(0.0, 2.0), DType::Bool).read(DType::Bool);
        assert_eq!(v, Scalar::Bool(true));
    }
}
