//! Elements out of a tensor: to Rust data, and as text.

use crate::backend::{Peek, backend};
use crate::create::reserved;
use crate::format::Printed;
use crate::{Number, View};
use bytemuck::Zeroable;
use osteon_spec::{Error, Kind, Result, Scalar};
use std::fmt;

impl View {
    /// All elements in row-major order, in a new vector.
    ///
    /// # Errors
    /// [`Kind::DType`] when `T` is not the dtype; a write guard in the way; out of memory.
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

    /// Calls `look` with a way to read single elements, all from one moment.
    pub(crate) fn peek(&self, op: &'static str, look: &mut dyn FnMut(&Peek<'_>)) -> Result<()> {
        backend(self.device()).peek(self, look).map_err(|e| e.op(op))
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
