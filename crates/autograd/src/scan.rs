//! Scans: what a reduction gives for each beginning of a dim. They read any strides as they are, and their
//! results are contiguous.

use crate::Tensor;
use crate::graph::{Recorder, record};
use crate::rules::reduce::picked;
use crate::rules::scan::{log_sums, products, sums};
use osteon_memory::{attribute, here};
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
        let out = self.as_view().cumsum(dim, None)?;
        record(out, &[self], |_, _| Ok(sums(dim)))
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
        let out = self.as_view().cumsum(dim, Some(dtype))?;
        record(out, &[self], |_, _| Ok(sums(dim)))
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
        let run = || self.as_view().cumsum_(dim);
        Recorder::in_place("cumsum_", &[self], |_| Ok(()), run, |_| Ok(sums(dim)))
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
        let out = self.as_view().cumprod(dim, None)?;
        record(out, &[self], |r, _| {
            r.save(self)?;
            Ok(products(dim))
        })
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
        let out = self.as_view().cumprod(dim, Some(dtype))?;
        record(out, &[self], |r, _| {
            r.save(self)?;
            Ok(products(dim))
        })
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
        let run = || self.as_view().cumprod_(dim);
        // What it was before is needed: a copy, as in PyTorch.
        let site = here();
        let before = |r: &mut Recorder| r.save(&attribute(site, || self.copy())?);
        Recorder::in_place("cumprod_", &[self], before, run, |_| Ok(products(dim)))
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
        self.picked(self.as_view().cummax(dim)?, picked(dim, true, true))
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
        self.picked(self.as_view().cummin(dim)?, picked(dim, true, true))
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
        self.reduced(self.as_view().logcumsumexp(dim)?, log_sums(dim))
    }
}
