//! Elements out of a tensor: to Rust data, and as text.

use crate::backend::{Peek, backend};
use crate::create::reserved;
use crate::format::Printed;
use crate::{Call, Compute, Number, Op, View};
use bytemuck::Zeroable;
use osteon_kernels::CompareOp;
use osteon_spec::{DType, Dims, Error, Kind, Result, Scalar, broadcast_shapes};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

impl View {
    /// All elements in row-major order, in a new vector.
    ///
    /// # Errors
    /// [`Kind::DType`] when `T` is not the dtype; a write guard in the way; out of memory.
    #[track_caller]
    pub fn to_vec<T: Number>(&self) -> Result<Vec<T>> {
        if T::DTYPE != self.dtype() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the tensor holds {}, not {}; ask for that type, or cast with to() first",
                    self.dtype(),
                    T::DTYPE
                ),
            )
            .op("to_vec"));
        }
        let mut stored: Vec<T::Stored> = reserved(self.numel(), "to_vec")?;
        stored.resize(self.numel(), T::Stored::zeroed());
        backend(self.device())
            .download(self, bytemuck::cast_slice_mut(&mut stored))
            .map_err(|e| e.op("to_vec"))?;
        Ok(T::loaded(stored))
    }

    /// The one element, converted as Rust's `as` converts.
    ///
    /// # Errors
    /// [`Kind::Value`] when there is not exactly one; a write guard in the way.
    #[track_caller]
    pub fn item(&self) -> Result<Scalar> {
        if self.numel() != 1 {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "a tensor with {} elements cannot be converted to a number; index one of shape {:?}",
                    self.numel(),
                    self.shape()
                ),
            )
            .op("item"));
        }
        let mut item = Scalar::Bool(false);
        let zeros = vec![0; self.dim()];
        self.peek("item", &mut |get| item = get(&zeros))?;
        Ok(item)
    }

    /// Whether both have the same shape and dtype and equal elements (NaN equals nothing). Allocates a
    /// `bool` for each element.
    ///
    /// # Errors
    /// Another device; a write guard in the way; out of memory.
    #[track_caller]
    pub fn equal(&self, other: &View) -> Result<bool> {
        if self.shape() != other.shape() || self.dtype() != other.dtype() {
            return Ok(false);
        }
        let same = Call {
            name: "equal",
            op: Op::Compare(CompareOp::Eq),
            compute: Compute::Promoted,
            args: &[self.into(), other.into()],
            numbers: &[],
        };
        Ok(same.fresh()?.to_vec::<bool>()?.into_iter().all(|x| x))
    }

    /// Whether all elements are close: `|a - b| <= atol + rtol·|b|` in float64, broadcast; equal infinities are
    /// close, NaN is close to nothing. Allocates both in float64.
    ///
    /// # Errors
    /// Shapes that do not broadcast; complex tensors; a write guard in the way; out of memory.
    #[track_caller]
    pub fn allclose(&self, other: &View, rtol: f64, atol: f64) -> Result<bool> {
        let op = "allclose";
        if self.dtype().is_complex() || other.dtype().is_complex() {
            return Err(
                Error::new(Kind::DType, "not defined for complex; use view_as_real()").op(op),
            );
        }
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(op))?;
        let wide = |v: &View| {
            v.with_layout(v.layout().expand_to(&shape)?, op)?
                .to_dtype(DType::F64)?
                .to_vec::<f64>()
        };
        let close = |(a, b): (f64, f64)| a == b || (a - b).abs() <= atol + rtol * b.abs();
        Ok(wide(self)?.into_iter().zip(wide(other)?).all(|(a, b)| {
            // An infinite tolerance makes nothing of different infinities close.
            close((a, b)) && (a == b || (a.is_finite() && b.is_finite()))
        }))
    }

    /// A number that stands for the elements in row-major order: equal for equal ones, and hardly ever for others. Reads
    /// each element.
    ///
    /// # Errors
    /// A write guard in the way.
    pub fn fingerprint(&self) -> Result<u64> {
        let mut hasher = DefaultHasher::new();
        if !self.device().is_meta() {
            self.peek("fingerprint", &mut |get| {
                let mut index = Dims::from_elem(0, self.dim());
                for _ in 0..self.numel() {
                    hash(get(&index), &mut hasher);
                    // The next index in row-major order.
                    for (at, &size) in index.iter_mut().zip(self.shape()).rev() {
                        *at = (*at + 1) % size;
                        if *at > 0 {
                            break;
                        }
                    }
                }
            })?;
        }
        Ok(hasher.finish())
    }

    /// Calls `look` with a way to read single elements, all from one moment.
    pub(crate) fn peek(&self, op: &'static str, look: &mut dyn FnMut(&Peek<'_>)) -> Result<()> {
        backend(self.device())
            .peek(self, look)
            .map_err(|e| e.op(op))
    }

    /// The tensor as PyTorch prints it, with what a layer above adds.
    ///
    /// # Errors
    /// A write guard in the way.
    pub fn print(&self, requires_grad: bool, grad_fn: Option<&str>) -> Result<String> {
        let printed = |get: &Peek<'_>, device_suffix| {
            Printed {
                sizes: self.shape(),
                dtype: self.dtype(),
                get,
                requires_grad,
                grad_fn,
                device_suffix,
            }
            .to_string()
        };
        if self.device().is_meta() {
            return Ok(printed(&|_| Scalar::Bool(false), Some("meta")));
        }
        let mut text = String::new();
        // Written to our own string, so that no foreign code runs while the storage is held.
        self.peek("print", &mut |get| text = printed(get, None))?;
        Ok(text)
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.print(false, None) {
            Ok(text) => f.write_str(&text),
            Err(e) => write!(f, "tensor(<{e}>)"),
        }
    }
}

fn hash(number: Scalar, hasher: &mut DefaultHasher) {
    match number {
        Scalar::Bool(b) => b.hash(hasher),
        Scalar::Int(i) => i.hash(hasher),
        Scalar::UInt(u) => u.hash(hasher),
        Scalar::Float(f) => f.to_bits().hash(hasher),
        Scalar::Complex(re, im) => [re, im].map(f64::to_bits).hash(hasher),
    }
}
