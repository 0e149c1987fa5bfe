//! Writes in place: seen through every tensor on the storage, counted in its version, refused before anything
//! is changed. Those that change metadata take `&mut self` and change this handle alone.

use crate::arithmetic::filled;
use crate::graph::mode::enable_grad;
use crate::graph::{Recorder, erased, rule, two};
use crate::{Operand, Tensor};
use osteon_memory::{Storage, attribute, here};
use osteon_spec::{Error, Kind, Result, Scalar};

impl Tensor {
    /// Writes one number, cast, into every element. An expanded tensor may be filled.
    ///
    /// # Errors
    /// A number that the dtype cannot hold; a guard in the way; read-only memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3, 4])?;
    /// a.slice(0, 2..)?.fill_(0)?;
    /// assert_eq!(a.to_vec::<i64>()?, [1, 2, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn fill_(&self, value: impl Into<Scalar>) -> Result<()> {
        let value = value.into();
        Recorder::in_place(
            "fill_",
            &[self],
            |_| Ok(()),
            || self.as_view().fill_(value),
            |_| Ok(erased()),
        )
    }

    /// Writes zeros. An expanded tensor may be zeroed.
    ///
    /// # Errors
    /// A guard in the way; read-only memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// a.select(1, 0)?.zero_()?;
    /// assert_eq!(a.to_vec::<i64>()?, [0, 2, 0, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn zero_(&self) -> Result<()> {
        Recorder::in_place(
            "zero_",
            &[self],
            |_| Ok(()),
            || self.as_view().zero_(),
            |_| Ok(erased()),
        )
    }

    /// Writes the elements of `src`, broadcast and cast, into this tensor.
    ///
    /// # Errors
    /// A shape that does not broadcast to this one; overlap; a guard in the way; read-only memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[0i64, 0], [0, 0]])?;
    /// a.t()?.copy_(&Tensor::new([1i64, 2])?)?;
    /// assert_eq!(a.to_vec::<i64>()?, [1, 1, 2, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn copy_(&self, src: &Tensor) -> Result<()> {
        let run = || self.as_view().copy_(src.as_view());
        Recorder::in_place(
            "copy_",
            &[self, src],
            |_| Ok(()),
            run,
            |_| {
                Ok(rule(|b| {
                    two(
                        b.want(0, || b.grad()?.zeros_like(None))?,
                        b.want(1, || b.grad())?,
                    )
                }))
            },
        )
    }

    /// Writes one number where `mask`, a `bool` tensor broadcast to this shape, is true.
    ///
    /// # Errors
    /// A mask of another dtype or shape; a number that the dtype cannot hold; a tensor that overlaps
    /// itself (PyTorch would write elements that the mask did not select).
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3])?;
    /// a.masked_fill_(&Tensor::new([true, false, true])?, 0i64)?;
    /// assert_eq!(a.to_vec::<i64>()?, [0, 2, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_fill_<'a>(&self, mask: &Tensor, value: impl Into<Operand<'a>>) -> Result<()> {
        let value: Operand<'a> = value.into();
        Recorder::in_place(
            "masked_fill_",
            &[self.into(), value],
            |_| Ok(()),
            || self.as_view().masked_fill_(mask.as_view(), value.arg()),
            |r| filled(r, mask),
        )
    }

    /// [`Tensor::transpose`] of this handle.
    ///
    /// # Errors
    /// As [`Tensor::transpose`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::new([[1i64, 2, 3]])?;
    /// let b = a.clone();
    /// a.transpose_(0, 1)?;
    /// assert_eq!((a.shape(), b.shape()), (&[3, 1][..], &[1, 3][..]));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose_(&mut self, dim0: isize, dim1: isize) -> Result<()> {
        self.become_view("transpose_", |t| t.transpose(dim0, dim1))
    }

    /// [`Tensor::t`] of this handle.
    ///
    /// # Errors
    /// As [`Tensor::t`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// a.t_()?;
    /// assert_eq!(a.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn t_(&mut self) -> Result<()> {
        self.become_view("t_", |t| t.t())
    }

    /// [`Tensor::squeeze`] of this handle.
    ///
    /// # Errors
    /// As [`Tensor::squeeze`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::new([[[1i64], [2]]])?;
    /// a.squeeze_()?;
    /// assert_eq!(a.shape(), [2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze_(&mut self) -> Result<()> {
        self.become_view("squeeze_", |t| t.squeeze())
    }

    /// [`Tensor::squeeze_dims`] of this handle.
    ///
    /// # Errors
    /// As [`Tensor::squeeze_dims`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::new([[[1i64], [2]]])?;
    /// a.squeeze_dims_([0, 1])?;
    /// assert_eq!(a.shape(), [2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn squeeze_dims_(&mut self, dims: impl AsRef<[isize]>) -> Result<()> {
        self.become_view("squeeze_dims_", |t| t.squeeze_dims(dims))
    }

    /// [`Tensor::unsqueeze`] of this handle.
    ///
    /// # Errors
    /// As [`Tensor::unsqueeze`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::new([1i64, 2])?;
    /// a.unsqueeze_(-1)?;
    /// assert_eq!(a.shape(), [2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unsqueeze_(&mut self, dim: isize) -> Result<()> {
        self.become_view("unsqueeze_", |t| t.unsqueeze(dim))
    }

    /// [`Tensor::as_strided`] of this handle.
    ///
    /// # Errors
    /// As [`Tensor::as_strided`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::arange(0, 6, 1)?;
    /// a.as_strided_([2, 2], [3, 1], Some(1))?;
    /// assert_eq!(a.to_vec::<i64>()?, [1, 2, 4, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn as_strided_(
        &mut self,
        sizes: impl AsRef<[isize]>,
        strides: impl AsRef<[isize]>,
        offset: Option<isize>,
    ) -> Result<()> {
        self.become_view("as_strided_", |t| t.as_strided(sizes, strides, offset))
    }

    /// Makes this handle a view of what it was, which counts as a write.
    #[track_caller]
    fn become_view(
        &mut self,
        op: &'static str,
        look: impl FnOnce(&Tensor) -> Result<Tensor>,
    ) -> Result<()> {
        self.check_writable_in_graph().map_err(|e| e.op(op))?;
        let site = here();
        let look = || attribute(site, || look(self));
        // A tensor without history is no view made inside `no_grad`, wherever it is turned.
        let view = if self.requires_grad() {
            look()
        } else {
            enable_grad(look)
        };
        let view = view.map_err(|e| e.op(op))?;
        view.storage().record_write(op, site);
        *self = view;
        Ok(())
    }

    /// Another shape for this handle: row-major from its offset over the same storage, which grows where it
    /// must (all tensors on it follow) and never shrinks. The same shape changes nothing. New elements are
    /// unspecified.
    ///
    /// # Errors
    /// Memory that is not ours to grow (a mapped file, foreign memory); a guard in the way; out of memory. Nothing
    /// has changed then.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mut a = Tensor::new([1i64, 2])?;
    /// let b = a.clone();
    /// a.resize_([2, 2])?;
    /// assert_eq!((a.numel(), b.numel(), b.storage().nbytes()), (4, 2, 32));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn resize_(&mut self, shape: impl AsRef<[usize]>) -> Result<()> {
        if self.requires_grad() {
            return Err(Error::new(
                Kind::Autograd,
                "a tensor that requires gradients cannot change its size; detach() it first",
            )
            .op("resize_"));
        }
        if let Some(view) = self.as_view().resized(shape.as_ref())? {
            self.replace(view);
        }
        Ok(())
    }

    /// Makes this handle look at another tensor's storage, with its layout.
    ///
    /// # Errors
    /// Another dtype or device.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (mut a, b) = (Tensor::new([1i64])?, Tensor::new([[2i64, 3]])?);
    /// a.set_(&b)?;
    /// assert!(a.shares_storage(&b));
    /// assert_eq!(a.shape(), [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn set_(&mut self, source: &Tensor) -> Result<()> {
        self.check_writable_in_graph().map_err(|e| e.op("set_"))?;
        let view = self.as_view().set_like(source.as_view())?;
        self.replace(view);
        Ok(())
    }

    /// Makes this handle look at a storage, which grows where it must.
    ///
    /// # Errors
    /// Another device; lists of different length; memory that is not ours to grow; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (mut a, b) = (Tensor::new([1i64])?, Tensor::arange(0, 6, 1)?);
    /// a.set_storage_(b.storage(), 1, [2, 2], [3, 1])?;
    /// assert_eq!(a.to_vec::<i64>()?, [1, 2, 4, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn set_storage_(
        &mut self,
        storage: &Storage,
        offset: usize,
        sizes: impl AsRef<[usize]>,
        strides: impl AsRef<[usize]>,
    ) -> Result<()> {
        self.check_writable_in_graph().map_err(|e| e.op("set_"))?;
        let view = self
            .as_view()
            .set_to(storage, offset, sizes.as_ref(), strides.as_ref())?;
        self.replace(view);
        Ok(())
    }
}
