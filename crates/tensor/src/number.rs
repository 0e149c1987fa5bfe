//! The Rust types whose values go into tensors and come out.

use osteon_kernels::{Bool, Element};
use osteon_spec::{DType, Dims, Error, Kind, Result, Scalar};
use std::borrow::Cow;

/// A Rust type of a tensor's elements: `bool`, the integers, `f16`, `bf16`, `f32`, `f64`, and complex
/// numbers of `f32` and `f64`.
///
/// In memory an element is a [`Number::Stored`], which any bytes are a value of; that is the type
/// itself but for `bool`.
///
/// Only those types are numbers: guards rely on it.
pub trait Number: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The dtype of such elements.
    const DTYPE: DType;
    /// The element in memory.
    type Stored: Element;
    /// To memory.
    fn store(self) -> Self::Stored;
    /// From memory.
    fn load(stored: Self::Stored) -> Self;
    /// Several to memory; the same slice but for `bool`.
    fn stored(values: &[Self]) -> Cow<'_, [Self::Stored]>;
    /// Several from memory; the same vector but for `bool`.
    fn loaded(stored: Vec<Self::Stored>) -> Vec<Self>;
    /// As a number of any dtype.
    fn to_scalar(self) -> Scalar;
    /// From a number of any dtype, as Rust's `as` converts; complex numbers to real ones by their real
    /// part.
    fn from_scalar(scalar: Scalar) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! real {
    ($($ty:ty, $dtype:ident, $wide:ident => $cast:expr;)*) => { $(
        impl sealed::Sealed for $ty {}
        impl Number for $ty {
            const DTYPE: DType = DType::$dtype;
            type Stored = $ty;
            #[inline]
            fn store(self) -> $ty {
                self
            }
            #[inline]
            fn load(stored: $ty) -> $ty {
                stored
            }
            fn stored(values: &[$ty]) -> Cow<'_, [$ty]> {
                Cow::Borrowed(values)
            }
            fn loaded(stored: Vec<$ty>) -> Vec<$ty> {
                stored
            }
            fn to_scalar(self) -> Scalar {
                Scalar::from(self)
            }
            fn from_scalar(scalar: Scalar) -> $ty {
                let $wide = scalar;
                $cast
            }
        }
    )* };
}

/// A number as any primitive type.
macro_rules! primitive {
    ($scalar:ident as $ty:ty) => {
        match $scalar {
            Scalar::Bool(b) => b as u8 as $ty,
            Scalar::Int(i) => i as $ty,
            Scalar::UInt(u) => u as $ty,
            Scalar::Float(x) | Scalar::Complex(x, _) => x as $ty,
        }
    };
}

real! {
    u8, U8, s => primitive!(s as u8);
    i8, I8, s => primitive!(s as i8);
    i16, I16, s => primitive!(s as i16);
    i32, I32, s => primitive!(s as i32);
    i64, I64, s => primitive!(s as i64);
    u16, U16, s => primitive!(s as u16);
    u32, U32, s => primitive!(s as u32);
    u64, U64, s => primitive!(s as u64);
    f32, F32, s => primitive!(s as f32);
    f64, F64, s => primitive!(s as f64);
    half::f16, F16, s => half::f16::from_f64(primitive!(s as f64));
    half::bf16, BF16, s => half::bf16::from_f64(primitive!(s as f64));
    num_complex::Complex<f32>, C64, s => {
        let (re, im) = parts(s);
        num_complex::Complex::new(re as f32, im as f32)
    };
    num_complex::Complex<f64>, C128, s => {
        let (re, im) = parts(s);
        num_complex::Complex::new(re, im)
    };
}

fn parts(scalar: Scalar) -> (f64, f64) {
    match scalar {
        Scalar::Complex(re, im) => (re, im),
        other => (primitive!(other as f64), 0.0),
    }
}

impl sealed::Sealed for bool {}
impl Number for bool {
    const DTYPE: DType = DType::Bool;
    type Stored = Bool;
    #[inline]
    fn store(self) -> Bool {
        Bool::from(self)
    }
    #[inline]
    fn load(stored: Bool) -> bool {
        stored.get()
    }
    fn stored(values: &[bool]) -> Cow<'_, [Bool]> {
        Cow::Owned(values.iter().map(|&b| Bool::from(b)).collect())
    }
    fn loaded(stored: Vec<Bool>) -> Vec<bool> {
        stored.into_iter().map(Bool::get).collect()
    }
    fn to_scalar(self) -> Scalar {
        Scalar::Bool(self)
    }
    fn from_scalar(scalar: Scalar) -> bool {
        match scalar {
            Scalar::Bool(b) => b,
            Scalar::Int(i) => i != 0,
            Scalar::UInt(u) => u != 0,
            Scalar::Float(x) => x != 0.0,
            Scalar::Complex(re, im) => re != 0.0 || im != 0.0,
        }
    }
}

/// Rust data that a tensor can be made of: a number, or arrays, slices and vectors of such data, nested.
pub trait Data {
    /// The numbers in it.
    type Item: Number;
    /// The number of nested levels.
    const RANK: usize;
    /// Checks that all rows of a level are equally long, and writes down how long.
    ///
    /// # Errors
    /// [`Kind::Shape`] for a ragged level.
    fn shape(&self, level: usize, shape: &mut Dims) -> Result<()>;
    /// Appends the numbers in row-major order.
    fn append(&self, out: &mut Vec<Self::Item>);
}

macro_rules! number_data {
    ($($ty:ty)*) => { $(
        impl Data for $ty {
            type Item = $ty;
            const RANK: usize = 0;
            fn shape(&self, _level: usize, _shape: &mut Dims) -> Result<()> {
                Ok(())
            }
            fn append(&self, out: &mut Vec<$ty>) {
                out.push(*self);
            }
        }
    )* };
}

number_data! {
    bool u8 i8 i16 i32 i64 u16 u32 u64 f32 f64 half::f16 half::bf16
    num_complex::Complex<f32> num_complex::Complex<f64>
}

impl<D: Data> Data for [D] {
    type Item = D::Item;
    const RANK: usize = D::RANK + 1;

    fn shape(&self, level: usize, shape: &mut Dims) -> Result<()> {
        match shape.get(level) {
            None => {
                // Levels below an empty one have size 0.
                shape.push(self.len());
                if self.is_empty() {
                    shape.resize(level + Self::RANK, 0);
                }
            }
            Some(&n) if n != self.len() => {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "rows of dim {level} differ in length: {n} and {}; a tensor needs equal ones",
                        self.len()
                    ),
                ));
            }
            Some(_) => {}
        }
        self.iter().try_for_each(|row| row.shape(level + 1, shape))
    }

    fn append(&self, out: &mut Vec<D::Item>) {
        self.iter().for_each(|row| row.append(out));
    }
}

macro_rules! list_data {
    ($([$($generic:tt)*] $ty:ty;)*) => { $(
        impl<D: Data, $($generic)*> Data for $ty {
            type Item = D::Item;
            const RANK: usize = D::RANK + 1;
            fn shape(&self, level: usize, shape: &mut Dims) -> Result<()> {
                self[..].shape(level, shape)
            }
            fn append(&self, out: &mut Vec<D::Item>) {
                self[..].append(out);
            }
        }
    )* };
}

list_data! {
    [const N: usize] [D; N];
    [] Vec<D>;
    [] &[D];
    [const N: usize] &[D; N];
    [] &Vec<D>;
}
