//! Elements by index tensors and masks.

use crate::Tensor;
use osteon_spec::Result;

impl Tensor {
    /// The rows of a dim that a vector of indices names, in a new row-major tensor.
    ///
    /// # Errors
    /// An index out of range (negative ones are), or no int64 or int32 vector; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4], [5, 6]])?;
    /// let rows = x.index_select(0, &Tensor::new([2i64, 0])?)?;
    /// assert_eq!(rows.to_vec::<i64>()?, [5, 6, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_select(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        self.as_view()
            .index_select(dim, index.as_view())
            .map(Tensor::from_view)
    }

    /// Along a dim, the element that `index`, of the same rank, names at each of its places, in a new row-major tensor of its
    /// shape.
    ///
    /// # Errors
    /// An index out of range; another rank; an index larger than the tensor in another dim; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let picked = x.gather(1, &Tensor::new([[1i64], [0]])?)?;
    /// assert_eq!(picked.to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, dim: isize, index: &Tensor) -> Result<Tensor> {
        self.as_view()
            .gather(dim, index.as_view())
            .map(Tensor::from_view)
    }

    /// The elements at which `mask`, a `bool` tensor, is true, as a new vector; both broadcast.
    ///
    /// # Errors
    /// Another mask; shapes that do not broadcast; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, -2, 3])?;
    /// assert_eq!(x.masked_select(&x.gt(0)?)?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Result<Tensor> {
        self.as_view()
            .masked_select(mask.as_view())
            .map(Tensor::from_view)
    }

    /// The coordinates of the elements that are not zero: a new int64 matrix with a row for each, in row-major order of the
    /// elements. Its columns are dense.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[0i64, 7], [8, 0]])?;
    /// assert_eq!(x.nonzero()?.to_vec::<i64>()?, [0, 1, 1, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nonzero(&self) -> Result<Tensor> {
        self.as_view().nonzero().map(Tensor::from_view)
    }

    /// [`Tensor::nonzero`], under NumPy's name.
    ///
    /// # Errors
    /// As [`Tensor::nonzero`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let places = Tensor::new([0i64, 5, 0, 6])?.argwhere()?;
    /// assert_eq!(places.shape(), [2, 1]);
    /// assert_eq!(places.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn argwhere(&self) -> Result<Tensor> {
        self.nonzero()
    }
}
