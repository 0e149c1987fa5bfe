//! Every operation that only looks, under PyTorch's names. None copies: a view is a new layout over
//! the same storage, and keeps the storage alive.

use crate::Tensor;
use crate::graph::{Geometry, Strided, linear, reshaped, same, viewed};
use osteon_spec::{DType, Layout, Result, wrap_dim};
use std::ops::{Bound, RangeBounds};

impl Tensor {
    /// Indices `range` of a dim, clamped to it, as Python's `x[a:b]`; negative bounds count from the
    /// end.
    ///
    /// # Errors
    /// A dim out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3, 4])?;
    /// let b = a.slice(0, 1..3)?;
    /// assert_eq!(b.to_vec::<i64>()?, [2, 3]);
    /// assert_eq!(b.data_ptr().addr() - a.data_ptr().addr(), 8);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    #[inline]
    pub fn slice(&self, dim: isize, range: impl RangeBounds<isize>) -> Result<Tensor> {
        let (start, end) = bounds(&range);
        viewed(self, self.as_view().slice(dim, start, end, 1)?, || {
            Strided::over(self, |l| l.slice(dim, start, end, 1))
        })
    }

    /// [`Tensor::slice`] in steps.
    ///
    /// # Errors
    /// A dim out of range; a step below 1.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::arange(0, 6, 1)?;
    /// assert_eq!(a.slice_step(0, 1.., 2)?.to_vec::<i64>()?, [1, 3, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn slice_step(
        &self,
        dim: isize,
        range: impl RangeBounds<isize>,
        step: isize,
    ) -> Result<Tensor> {
        let (start, end) = bounds(&range);
        viewed(self, self.as_view().slice(dim, start, end, step)?, || {
            Strided::over(self, |l| l.slice(dim, start, end, step))
        })
    }

    /// The same elements in row-major order under another shape; one size may be -1. Fails where strides
    /// cannot express it: [`Tensor::reshape`] copies then.
    ///
    /// # Errors
    /// A shape with another number of elements, or one that strides cannot express.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 6, 1)?;
    /// assert_eq!(x.view([2, -1])?.stride(), [3, 1]);
    /// assert!(x.view([2, 3])?.t()?.view([6]).unwrap_err().is_layout());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn view(&self, shape: impl AsRef<[isize]>) -> Result<Tensor> {
        viewed(
            self,
            self.as_view().view(shape.as_ref())?,
            || Ok(reshaped()),
        )
    }

    /// The dims in another order.
    ///
    /// # Errors
    /// A list that does not name every dim once.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 6, 1)?.view([1, 2, 3])?;
    /// assert_eq!(x.permute([2, 0, -2])?.shape(), [3, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn permute(&self, dims: impl AsRef<[isize]>) -> Result<Tensor> {
        let dims = dims.as_ref();
        viewed(self, self.as_view().permute(dims)?, || {
            let mut inverse = vec![0; dims.len()];
            for (i, &d) in dims.iter().enumerate() {
                inverse[wrap_dim(d, dims.len())?] = i as isize;
            }
            Ok(linear(move |g| g.permute(&inverse)))
        })
    }

    /// Two dims exchanged.
    ///
    /// # Errors
    /// A dim out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.transpose(0, -1)?.to_vec::<i64>()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self, dim0: isize, dim1: isize) -> Result<Tensor> {
        viewed(self, self.as_view().transpose(dim0, dim1)?, || {
            Ok(linear(move |g| g.transpose(dim0, dim1)))
        })
    }

    /// [`Tensor::transpose`], by NumPy's name.
    ///
    /// # Errors
    /// A dim out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]])?.swapaxes(0, 1)?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn swapaxes(&self, dim0: isize, dim1: isize) -> Result<Tensor> {
        self.transpose(dim0, dim1)
    }

    /// [`Tensor::transpose`], by its other name.
    ///
    /// # Errors
    /// A dim out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2, 3]])?.swapdims(0, -1)?.shape(), [3, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn swapdims(&self, dim0: isize, dim1: isize) -> Result<Tensor> {
        self.transpose(dim0, dim1)
    }

    /// A matrix transposed; a vector or a scalar as it is.
    ///
    /// # Errors
    /// More than two dims.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.t()?.stride(), [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn t(&self) -> Result<Tensor> {
        viewed(self, self.as_view().t()?, || Ok(linear(Tensor::t)))
    }

    /// Some dims moved to other places, the rest in their order.
    ///
    /// # Errors
    /// Lists that differ in length or repeat a dim.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 6, 1)?.view([1, 2, 3])?;
    /// assert_eq!(x.movedim([0], [2])?.shape(), [2, 3, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn movedim(
        &self,
        source: impl AsRef<[isize]>,
        destination: impl AsRef<[isize]>,
    ) -> Result<Tensor> {
        let (from, to) = (source.as_ref(), destination.as_ref());
        viewed(self, self.as_view().movedim(from, to)?, || {
            let (from, to) = (from.to_vec(), to.to_vec());
            Ok(linear(move |g| g.movedim(&to, &from)))
        })
    }

    /// [`Tensor::movedim`], by NumPy's name.
    ///
    /// # Errors
    /// Lists that differ in length or repeat a dim.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 1)?.view([1, 2, 3])?.moveaxis([-1], [0])?.shape(), [3, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn moveaxis(
        &self,
        source: impl AsRef<[isize]>,
        destination: impl AsRef<[isize]>,
    ) -> Result<Tensor> {
        self.movedim(source, destination)
    }

    /// One index of a dim, which goes: `x[index]` for dim 0.
    ///
    /// # Errors
    /// A dim or an index out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.select(1, -1)?.to_vec::<i64>()?, [2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn select(&self, dim: isize, index: isize) -> Result<Tensor> {
        viewed(self, self.as_view().select(dim, index)?, || {
            Strided::over(self, |l| l.select(dim, index))
        })
    }

    /// `length` indices of a dim from `start`.
    ///
    /// # Errors
    /// Indices beyond the dim.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 6, 1)?;
    /// assert_eq!(x.narrow(0, 2, 3)?.to_vec::<i64>()?, [2, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn narrow(&self, dim: isize, start: isize, length: isize) -> Result<Tensor> {
        viewed(self, self.as_view().narrow(dim, start, length)?, || {
            Strided::over(self, |l| l.narrow(dim, start, length))
        })
    }

    /// A diagonal of two dims, as a last dim in their place.
    ///
    /// # Errors
    /// The same dim twice, a dim out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 9, 1)?.view([3, 3])?;
    /// assert_eq!(x.diagonal(1, 0, 1)?.to_vec::<i64>()?, [1, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal(&self, offset: isize, dim1: isize, dim2: isize) -> Result<Tensor> {
        viewed(self, self.as_view().diagonal(offset, dim1, dim2)?, || {
            Strided::over(self, |l| l.diagonal(offset, dim1, dim2))
        })
    }

    /// Windows of `size` along a dim, `step` apart, as a last dim. Windows may overlap: writing through
    /// them is refused then.
    ///
    /// # Errors
    /// A window larger than the dim, a step below 1.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 4, 1)?;
    /// assert_eq!(x.unfold(0, 2, 1)?.to_vec::<i64>()?, [0, 1, 1, 2, 2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unfold(&self, dim: isize, size: isize, step: isize) -> Result<Tensor> {
        viewed(self, self.as_view().unfold(dim, size, step)?, || {
            Strided::over(self, |l| l.unfold(dim, size, step))
        })
    }

    /// Exactly these sizes, strides and offset (the tensor's own for `None`) over the whole storage.
    ///
    /// # Errors
    /// A layout that reaches beyond the storage, negative numbers.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 6, 1)?;
    /// assert_eq!(x.as_strided([2, 2], [1, 2], Some(1))?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn as_strided(
        &self,
        sizes: impl AsRef<[isize]>,
        strides: impl AsRef<[isize]>,
        offset: Option<isize>,
    ) -> Result<Tensor> {
        viewed(
            self,
            self.as_view()
                .as_strided(sizes.as_ref(), strides.as_ref(), offset)?,
            || {
                let of = Geometry::of(self);
                let layout = of
                    .layout
                    .as_strided(sizes.as_ref(), strides.as_ref(), offset)?;
                Ok(Strided::new(
                    &of,
                    Geometry {
                        layout,
                        ..of.clone()
                    },
                ))
            },
        )
    }

    /// Without the dims of size 1.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 3, 1)?.view([1, 3, 1])?;
    /// assert_eq!(x.squeeze()?.shape(), [3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze(&self) -> Result<Tensor> {
        viewed(self, self.as_view().squeeze()?, || Ok(reshaped()))
    }

    /// Without those of these dims that have size 1.
    ///
    /// # Errors
    /// A dim out of range or named twice.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 3, 1)?.view([1, 3, 1])?;
    /// assert_eq!(x.squeeze_dims([0, 1])?.shape(), [3, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze_dims(&self, dims: impl AsRef<[isize]>) -> Result<Tensor> {
        viewed(self, self.as_view().squeeze_dims(dims.as_ref())?, || {
            Ok(reshaped())
        })
    }

    /// With a dim of size 1 put in.
    ///
    /// # Errors
    /// A place out of range.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 3, 1)?;
    /// assert_eq!(x.unsqueeze(-1)?.shape(), [3, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unsqueeze(&self, dim: isize) -> Result<Tensor> {
        viewed(self, self.as_view().unsqueeze(dim)?, || Ok(reshaped()))
    }

    /// Dims of size 1, and new ones in front, repeated with stride 0; -1 keeps a size.
    ///
    /// # Errors
    /// A size that is neither 1 nor the one asked for.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 3, 1)?;
    /// let y = x.expand([1000, -1])?;
    /// assert_eq!((y.numel(), y.storage().nbytes()), (3000, 24));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn expand(&self, sizes: impl AsRef<[isize]>) -> Result<Tensor> {
        viewed(self, self.as_view().expand(sizes.as_ref())?, || Ok(same()))
    }

    /// [`Tensor::expand`], by NumPy's name.
    ///
    /// # Errors
    /// A size that is neither 1 nor the one asked for.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.broadcast_to([2, 2])?.to_vec::<i64>()?, [1, 2, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_to(&self, sizes: impl AsRef<[isize]>) -> Result<Tensor> {
        self.expand(sizes)
    }

    /// One dim as several; one size may be -1.
    ///
    /// # Errors
    /// Sizes that do not multiply to the dim's.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 6, 1)?;
    /// assert_eq!(x.unflatten(0, [-1, 2])?.shape(), [3, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unflatten(&self, dim: isize, sizes: impl AsRef<[isize]>) -> Result<Tensor> {
        viewed(self, self.as_view().unflatten(dim, sizes.as_ref())?, || {
            Ok(reshaped())
        })
    }

    /// Another tensor over the same elements.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert!(Tensor::new([1i64, 2])?.alias()?.is_view());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn alias(&self) -> Result<Tensor> {
        viewed(self, self.as_view().alias()?, || Ok(same()))
    }

    /// The same elements outside of the graph. Shares the storage, and keeps all of it alive.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 3, 1)?;
    /// assert!(x.detach()?.shares_storage(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn detach(&self) -> Result<Tensor> {
        self.as_view().detach().map(Tensor::from_view)
    }

    /// The same bytes as elements of another dtype: PyTorch's `view(dtype)`. Elements of another size make the
    /// last dim longer or shorter.
    ///
    /// # Errors
    /// A last stride other than 1, a size, stride or offset that does not come out even.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([1f32, -2.0])?;
    /// assert_eq!(x.view_dtype(DType::I32)?.to_vec::<i32>()?, [0x3f80_0000, -0x4000_0000]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn view_dtype(&self, dtype: DType) -> Result<Tensor> {
        self.as_view().view_dtype(dtype).map(Tensor::from_view)
    }

    /// A complex tensor as pairs of real and imaginary parts in a last dim of size 2.
    ///
    /// # Errors
    /// A real tensor.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1f32, 2.0]])?.view_as_complex()?.view_as_real()?.shape(), [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn view_as_real(&self) -> Result<Tensor> {
        let view = self.as_view().view_as_real()?;
        let dtype = view.dtype();
        viewed(self, view, || {
            Strided::as_dtype(self, dtype, Layout::view_as_real)
        })
    }

    /// Pairs in a last dim of size 2 as complex numbers.
    ///
    /// # Errors
    /// Another last size or stride, odd strides, a dtype other than float32 and float64.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.view_as_complex()?.dtype(), DType::C64);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn view_as_complex(&self) -> Result<Tensor> {
        let view = self.as_view().view_as_complex()?;
        let dtype = view.dtype();
        viewed(self, view, || {
            Strided::as_dtype(self, dtype, Layout::view_as_complex)
        })
    }

    /// The real parts of a complex tensor; a real tensor itself.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]])?.view_as_complex()?;
    /// assert_eq!(x.real()?.to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn real(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Ok(self.clone());
        }
        let view = self.as_view().real()?;
        viewed(self, view, || {
            Strided::as_dtype(self, self.dtype().to_real(), Layout::real)
        })
    }

    /// The imaginary parts of a complex tensor.
    ///
    /// # Errors
    /// A real tensor.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1f32, 2.0]])?.view_as_complex()?.imag()?.to_vec::<f32>()?, [2.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn imag(&self) -> Result<Tensor> {
        let view = self.as_view().imag()?;
        viewed(self, view, || {
            Strided::as_dtype(self, self.dtype().to_real(), Layout::imag)
        })
    }

    /// All dims in reverse: PyTorch's `T`, which is meant for matrices.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 1)?.view([1, 2, 3])?.T()?.stride(), [1, 3, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    #[allow(non_snake_case, reason = "PyTorch's name")]
    pub fn T(&self) -> Result<Tensor> {
        let dims: Vec<isize> = (0..self.dim() as isize).rev().collect();
        self.permute(dims)
    }

    /// Each matrix of a batch transposed; a scalar itself.
    ///
    /// # Errors
    /// A vector.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 6, 1)?.view([1, 2, 3])?.mT()?.shape(), [1, 3, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    #[allow(non_snake_case, reason = "PyTorch's name")]
    pub fn mT(&self) -> Result<Tensor> {
        if self.dim() == 0 {
            return Ok(self.clone());
        }
        viewed(self, self.as_view().mt()?, || Ok(linear(Tensor::mT)))
    }
}

/// Sizes as the signed numbers that shape arguments are.
pub(crate) fn signed(sizes: &[usize]) -> Vec<isize> {
    // L2 of `Layout`: sizes fit.
    sizes.iter().map(|&n| n as isize).collect()
}

/// The bounds of a Rust range as those of a Python slice.
pub(crate) fn bounds(range: &impl RangeBounds<isize>) -> (Option<isize>, Option<isize>) {
    let start = match range.start_bound() {
        Bound::Included(&a) => Some(a),
        Bound::Excluded(&a) => Some(a.saturating_add(1)),
        Bound::Unbounded => None,
    };
    let end = match range.end_bound() {
        // `..=-1` ends with the last index, which no exclusive bound counted from the end says.
        Bound::Included(&-1) | Bound::Unbounded => None,
        Bound::Included(&b) => Some(b.saturating_add(1)),
        Bound::Excluded(&b) => Some(b),
    };
    (start, end)
}
