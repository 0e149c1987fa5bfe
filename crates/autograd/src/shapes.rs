//! Shapes like those of other tensors, and of a least rank.

use crate::Tensor;
use crate::views::signed;
use osteon_spec::Result;

impl Tensor {
    /// [`Tensor::reshape`] to the shape of another tensor.
    ///
    /// # Errors
    /// As [`Tensor::reshape`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 4, 1)?.reshape_as(&Tensor::new([[0u8, 0], [0, 0]])?)?.shape(), [2, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn reshape_as(&self, other: &Tensor) -> Result<Tensor> {
        self.reshape(signed(other.shape()))
    }

    /// The shape of another tensor: [`Tensor::view`] to it.
    ///
    /// # Errors
    /// As [`Tensor::view`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 4, 1)?.view_as(&Tensor::new([[0u8, 0], [0, 0]])?)?.stride(), [2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn view_as(&self, other: &Tensor) -> Result<Tensor> {
        self.view(signed(other.shape()))
    }

    /// [`Tensor::expand`] to the shape of another tensor.
    ///
    /// # Errors
    /// As [`Tensor::expand`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([5i64])?.expand_as(&Tensor::new([0u8; 3])?)?.to_vec::<i64>()?, [5, 5, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn expand_as(&self, other: &Tensor) -> Result<Tensor> {
        self.expand(signed(other.shape()))
    }

    /// With at least one dim: itself when it has that.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new(7i64)?.atleast_1d()?.shape(), [1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_1d(&self) -> Result<Tensor> {
        if self.dim() == 0 {
            self.unsqueeze(0)
        } else {
            Ok(self.clone())
        }
    }

    /// With at least two dims, new ones in front: itself when it has them.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.atleast_2d()?.shape(), [1, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_2d(&self) -> Result<Tensor> {
        match self.dim() {
            0 => self.view([1, 1]),
            1 => self.unsqueeze(0),
            _ => Ok(self.clone()),
        }
    }

    /// With at least three dims, new ones around a vector and behind a matrix: itself when it has them.
    ///
    /// # Errors
    /// Out of memory for the view itself.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2, 3])?.atleast_3d()?.shape(), [1, 3, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn atleast_3d(&self) -> Result<Tensor> {
        match self.dim() {
            0 => self.view([1, 1, 1]),
            1 => self.unsqueeze(0)?.unsqueeze(-1),
            2 => self.unsqueeze(-1),
            _ => Ok(self.clone()),
        }
    }
}
