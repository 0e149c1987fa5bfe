//! Softmax and its kin.

use crate::Tensor;
use crate::graph::record;
use crate::rules::softmax::{log_softmax, softmax};
use osteon_spec::{DType, Result};

impl Tensor {
    /// `e^x / Σ e^x` along a dim, without overflow on the way.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1000.0f64, 1000.0])?;
    /// assert_eq!(x.softmax(0)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, dim: isize) -> Result<Tensor> {
        record(self.as_view().softmax(dim)?, &[self], |r, out| {
            r.save_output(out)?;
            Ok(softmax(dim))
        })
    }

    /// [`Tensor::softmax`] of the elements in a dtype: a copy, which is logged, where that is another.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([7.0f32, 7.0])?;
    /// assert_eq!(x.softmax_in(0, DType::F64)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.to(dtype)?.softmax(dim)
    }

    /// The logarithm of [`Tensor::softmax`], also where that is too small to be told from 0.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.0f64, 1000.0])?;
    /// assert_eq!(x.log_softmax(0)?.to_vec::<f64>()?, [-1000.0, 0.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax(&self, dim: isize) -> Result<Tensor> {
        record(self.as_view().log_softmax(dim)?, &[self], |r, out| {
            r.save_output(out)?;
            Ok(log_softmax(dim))
        })
    }

    /// [`Tensor::log_softmax`] of the elements in a dtype: a copy, which is logged, where that is another.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let y = Tensor::new([7.0f32, 7.0])?.log_softmax_in(0, DType::F64)?;
    /// assert!(y.allclose(&Tensor::new([-0.6931471805599453, -0.6931471805599453])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.to(dtype)?.log_softmax(dim)
    }

    /// [`Tensor::softmax`] of `-x`.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.0f64, 1.0986122886681098])?; // e^-x is 1 and 1/3
    /// assert!(x.softmin(0)?.allclose(&Tensor::new([0.75, 0.25])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmin(&self, dim: isize) -> Result<Tensor> {
        self.neg()?.softmax(dim)
    }

    /// [`Tensor::softmin`] of the elements in a dtype: a copy, which is logged, where that is another.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([7.0f32, 7.0])?;
    /// assert_eq!(x.softmin_in(0, DType::F64)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmin_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.neg()?.softmax_in(dim, dtype)
    }
}
