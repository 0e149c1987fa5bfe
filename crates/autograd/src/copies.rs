//! Operations that may copy. Each says when; each copy is in the copy log with its reason.

use crate::Tensor;
use crate::graph::{record, reshaped, same, viewed};
use osteon_spec::{DType, MemoryFormat, Result};

/// What [`Tensor::to`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// The elements' type.
    DType(DType),
}

impl From<DType> for To {
    fn from(dtype: DType) -> To {
        To::DType(dtype)
    }
}

impl Tensor {
    /// A new, right-sized storage with the same elements: PyTorch's `clone()`. Always copies. The strides are
    /// kept where they are dense; an expanded dim becomes a full one.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3, 4])?;
    /// let d = a.slice(0, 1..3)?.copy()?;
    /// assert_eq!(d.storage().nbytes(), 16);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        self.copy_in(MemoryFormat::Preserve)
    }

    /// [`Tensor::copy`] laid out in a memory format: PyTorch's `clone(memory_format=…)`.
    ///
    /// # Errors
    /// A format that does not suit the rank; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::MemoryFormat;
    /// let x = Tensor::arange(0, 8, 1)?.view([1, 2, 2, 2])?;
    /// let y = x.copy_in(MemoryFormat::ChannelsLast)?;
    /// assert_eq!(y.stride(), [8, 1, 4, 2]);
    /// assert!(y.equal(&x)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_in(&self, format: MemoryFormat) -> Result<Tensor> {
        record(self.as_view().copy(format)?, &[self], |_, _| Ok(same()))
    }

    /// Itself when it is contiguous already, as in PyTorch: a contiguous slice keeps its whole storage alive
    /// ([`Tensor::compact`] lets it go). Else a dense, row-major copy.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert!(a.contiguous()?.is(&a));
    /// let c = a.t()?.contiguous()?;
    /// assert!(!c.shares_storage(&a));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn contiguous(&self) -> Result<Tensor> {
        self.contiguous_in(MemoryFormat::Contiguous)
    }

    /// [`Tensor::contiguous`] in a memory format.
    ///
    /// # Errors
    /// A format that does not suit the rank; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::MemoryFormat;
    /// let x = Tensor::arange(0, 8, 1)?.view([1, 2, 2, 2])?;
    /// let y = x.contiguous_in(MemoryFormat::ChannelsLast)?;
    /// assert_eq!(y.stride(), [8, 1, 4, 2]);
    /// assert!(y.contiguous_in(MemoryFormat::ChannelsLast)?.is(&y));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn contiguous_in(&self, format: MemoryFormat) -> Result<Tensor> {
        self.same_or(self.as_view().contiguous(format)?)
    }

    /// Itself when it spans its whole storage, else a copy in a storage of just the bytes that it
    /// reaches: the way to let a small slice release a big storage. An expanded dim stays expanded.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let big = Tensor::arange(0, 1_000_000, 1)?;
    /// let small = big.slice(0, ..4)?.compact()?;
    /// assert_eq!(small.storage().nbytes(), 32);
    /// assert!(small.compact()?.is(&small));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn compact(&self) -> Result<Tensor> {
        self.same_or(self.as_view().compact()?)
    }

    /// The same elements in row-major order under another shape: a view where strides can express it,
    /// else a copy, an implicit one. [`Tensor::reshape_info`] says in advance which, and why.
    ///
    /// # Errors
    /// A shape with another number of elements; a copy inside `copies::forbid()`; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert!(x.reshape([4])?.shares_storage(&x));
    /// assert_eq!(x.t()?.reshape([-1])?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape(&self, shape: impl AsRef<[isize]>) -> Result<Tensor> {
        self.rearranged(self.as_view().reshape(shape.as_ref())?)
    }

    /// Dims `start..=end` as one: itself when that is one dim, else as [`Tensor::reshape`].
    ///
    /// # Errors
    /// A start after the end; as [`Tensor::reshape`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 12, 1)?.view([2, 3, 2])?;
    /// assert_eq!(x.flatten(1, -1)?.shape(), [2, 6]);
    /// assert!(x.flatten(0, 1)?.shares_storage(&x) && x.flatten(2, 2)?.is(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn flatten(&self, start_dim: isize, end_dim: isize) -> Result<Tensor> {
        self.rearranged(self.as_view().flatten(start_dim, end_dim)?)
    }

    /// All elements in one dim: a view of a contiguous tensor, else a copy, an implicit one, even where
    /// strides could express it (PyTorch's rule; `flatten` and `reshape` look).
    ///
    /// # Errors
    /// A copy inside `copies::forbid()`; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert!(x.ravel()?.shares_storage(&x));
    /// assert_eq!(x.t()?.ravel()?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn ravel(&self) -> Result<Tensor> {
        self.rearranged(self.as_view().ravel()?)
    }

    /// The elements cast to a dtype: itself when it has it, else a copy. Floats are cut and wrap into
    /// integers as PyTorch's do.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([300.7f32, -1.5])?;
    /// assert_eq!(x.to(DType::I8)?.to_vec::<i8>()?, [44, -1]);
    /// assert!(x.to(DType::F32)?.is(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn to(&self, to: impl Into<To>) -> Result<Tensor> {
        let To::DType(dtype) = to.into();
        self.same_or(self.as_view().to_dtype(dtype)?)
    }

    /// The elements cast to a dtype in a new storage, also when they have it: PyTorch's
    /// `to(dtype, copy=True)`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([1i64, 2])?;
    /// let y = x.to_copy(DType::I64)?;
    /// assert!(y.equal(&x)? && !y.shares_storage(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn to_copy(&self, dtype: DType) -> Result<Tensor> {
        record(self.as_view().to_dtype_copy(dtype)?, &[self], |_, _| {
            Ok(same())
        })
    }

    /// Itself when it has this dtype, else a copy that an operation makes for itself.
    #[track_caller]
    pub(crate) fn promoted(&self, dtype: DType, op: &'static str) -> Result<Tensor> {
        self.same_or(self.as_view().promoted(dtype, op)?)
    }

    /// This tensor where the view is its own, else a new one.
    /// The tensor itself, or a copy of it.
    fn same_or(&self, view: osteon_tensor::View) -> Result<Tensor> {
        if view.viewer().is_same(self.as_view().viewer()) {
            return Ok(self.clone());
        }
        record(view, &[self], |_, _| Ok(same()))
    }

    /// The tensor itself, a view of it, or a copy, in another shape.
    fn rearranged(&self, view: osteon_tensor::View) -> Result<Tensor> {
        if view.viewer().is_same(self.as_view().viewer()) {
            Ok(self.clone())
        } else if view.shares_storage(self.as_view()) {
            viewed(self, view, || Ok(reshaped()))
        } else {
            record(view, &[self], |_, _| Ok(reshaped()))
        }
    }
}
