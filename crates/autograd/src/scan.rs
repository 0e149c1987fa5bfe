//! Scans: what a reduction gives for each beginning of a dim. They read any strides as they are, and their
//! results are contiguous.

use crate::Tensor;
use crate::reduce::pair;
use osteon_spec::{DType, Result};

impl Tensor {
    /// The sums of the elements up to each along a dim: `int64` of integers and `bool`.
    ///
    /// # Errors
    /// A dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.cumsum(0)?.to_vec::<i64>()?, [1, 3, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cumsum(&self, dim: isize) -> Result<Tensor> {
        self.as_view().cumsum(dim, None).map(Tensor::from_view)
    }

    /// [`Tensor::cumsum`] of the elements converted to a dtype first, on the way.
    ///
    /// # Errors
    /// `bool`; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// assert_eq!(x.cumsum_in(0, DType::F32)?.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cumsum_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.as_view()
            .cumsum(dim, Some(dtype))
            .map(Tensor::from_view)
    }

    /// [`Tensor::cumsum`] in place, in this dtype.
    ///
    /// # Errors
    /// `bool`; a dim out of range; a tensor that overlaps itself; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// x.cumsum_(0)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 3, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cumsum_(&self, dim: isize) -> Result<()> {
        self.as_view().cumsum_(dim)
    }

    /// The products of the elements up to each along a dim: `int64` of integers and `bool`.
    ///
    /// # Errors
    /// A dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.cumprod(0)?.to_vec::<i64>()?, [1, 2, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cumprod(&self, dim: isize) -> Result<Tensor> {
        self.as_view().cumprod(dim, None).map(Tensor::from_view)
    }

    /// [`Tensor::cumprod`] of the elements converted to a dtype first, on the way.
    ///
    /// # Errors
    /// `bool`; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([2i64, 3, 4])?;
    /// assert_eq!(x.cumprod_in(0, DType::F32)?.to_vec::<f32>()?, [2.0, 6.0, 24.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cumprod_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.as_view()
            .cumprod(dim, Some(dtype))
            .map(Tensor::from_view)
    }

    /// [`Tensor::cumprod`] in place, in this dtype.
    ///
    /// # Errors
    /// `bool`; a dim out of range; a tensor that overlaps itself; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([2i64, 3, 4])?;
    /// x.cumprod_(0)?;
    /// assert_eq!(x.to_vec::<i64>()?, [2, 6, 24]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cumprod_(&self, dim: isize) -> Result<()> {
        self.as_view().cumprod_(dim)
    }

    /// The largest elements up to each along a dim, and where the last of them are; NaN counts as beyond all.
    ///
    /// # Errors
    /// Complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (values, indices) = Tensor::new([1i64, 3, 3])?.cummax(0)?;
    /// assert_eq!(values.to_vec::<i64>()?, [1, 3, 3]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cummax(&self, dim: isize) -> Result<(Tensor, Tensor)> {
        self.as_view().cummax(dim).map(pair)
    }

    /// The smallest elements up to each along a dim, and where the last of them are; NaN counts as beyond all.
    ///
    /// # Errors
    /// Complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (values, indices) = Tensor::new([1i64, 3, 3])?.cummin(0)?;
    /// assert_eq!(values.to_vec::<i64>()?, [1, 1, 1]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cummin(&self, dim: isize) -> Result<(Tensor, Tensor)> {
        self.as_view().cummin(dim).map(pair)
    }

    /// `log Σ e^x` of the elements up to each along a dim, without overflow on the way.
    ///
    /// # Errors
    /// Integers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1000.0f64, 1000.0])?;
    /// assert_eq!(x.logcumsumexp(0)?.to_vec::<f64>()?, [1000.0, 1000.0 + 2f64.ln()]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn logcumsumexp(&self, dim: isize) -> Result<Tensor> {
        self.as_view().logcumsumexp(dim).map(Tensor::from_view)
    }
}
