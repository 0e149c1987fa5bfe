//! What an operation takes beside the tensor that it is called on.

use crate::Tensor;
use osteon_spec::Scalar;
use osteon_tensor::Arg;

/// A tensor, or a plain number, which promotes dtypes by its kind only.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    /// A tensor, broadcast where shapes differ.
    Tensor(&'a Tensor),
    /// A number.
    Number(Scalar),
}

impl<'a> Operand<'a> {
    /// The tensor, if it is one.
    pub(crate) fn tensor(self) -> Option<&'a Tensor> {
        match self {
            Operand::Tensor(t) => Some(t),
            Operand::Number(_) => None,
        }
    }

    pub(crate) fn arg(self) -> Arg<'a> {
        match self {
            Operand::Tensor(t) => Arg::View(t.as_view()),
            Operand::Number(n) => Arg::Number(n),
        }
    }
}

impl<'a> From<Operand<'a>> for Option<&'a Tensor> {
    fn from(operand: Operand<'a>) -> Self {
        operand.tensor()
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(tensor: &'a Tensor) -> Operand<'a> {
        Operand::Tensor(tensor)
    }
}

impl From<Scalar> for Operand<'_> {
    fn from(number: Scalar) -> Self {
        Operand::Number(number)
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => { $(
        impl From<$ty> for Operand<'_> {
            fn from(number: $ty) -> Self {
                Operand::Number(number.into())
            }
        }
    )* };
}

numbers! {
    bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 half::f16 half::bf16
    num_complex::Complex<f32> num_complex::Complex<f64>
}
