//! Conjugation.

use crate::Tensor;
use crate::elementwise::unary;
use osteon_spec::{Error, Kind, Result};
use osteon_tensor::{Compute, UnaryOp};

impl Tensor {
    /// The complex conjugates, in a new tensor; a real tensor itself. (PyTorch puts the work off until somebody reads.)
    ///
    /// # Errors
    /// A guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1f32, 2.0]])?.view_as_complex()?;
    /// assert_eq!(x.conj()?.imag()?.to_vec::<f32>()?, [-2.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn conj(&self) -> Result<Tensor> {
        if !self.dtype().is_complex() {
            return Ok(self.clone());
        }
        unary("conj", UnaryOp::Conj, Compute::Promoted, self).fresh()
    }

    /// [`Tensor::mT`] with complex elements conjugated, which copies; a view of a real tensor.
    ///
    /// # Errors
    /// A vector; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[[1f32, 2.0], [3.0, 4.0]]])?.view_as_complex()?;
    /// let y = x.mH()?;
    /// assert_eq!(y.shape(), [2, 1]);
    /// assert_eq!(y.imag()?.to_vec::<f32>()?, [-2.0, -4.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    #[allow(non_snake_case, reason = "PyTorch's name")]
    pub fn mH(&self) -> Result<Tensor> {
        let transposed = self.mT()?;
        if self.dtype().is_complex() {
            transposed.conj()
        } else {
            Ok(transposed)
        }
    }

    /// [`Tensor::mH`], by its other name.
    ///
    /// # Errors
    /// As [`Tensor::mH`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.adjoint()?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// assert!(x.adjoint()?.shares_storage(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn adjoint(&self) -> Result<Tensor> {
        self.mH()
    }

    /// [`Tensor::mH`] of a matrix; a scalar itself, conjugated.
    ///
    /// # Errors
    /// Another number of dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[[1f32, 2.0], [3.0, 4.0]]])?.view_as_complex()?;
    /// assert_eq!(x.H()?.imag()?.to_vec::<f32>()?, [-2.0, -4.0]);
    /// assert!(x.unsqueeze(0)?.H().is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    #[allow(non_snake_case, reason = "PyTorch's name")]
    pub fn H(&self) -> Result<Tensor> {
        if !matches!(self.dim(), 0 | 2) {
            let message = format!(
                "needs a matrix, got shape {:?}; mH() takes batches",
                self.shape()
            );
            return Err(Error::new(Kind::Shape, message).op("H"));
        }
        self.mH()
    }

    /// Itself: conjugation is never put off.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1f32, 2.0]])?.view_as_complex()?.conj()?;
    /// assert!(x.resolve_conj().is(&x));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn resolve_conj(&self) -> Tensor {
        self.clone()
    }
}
