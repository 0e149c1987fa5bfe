//! Order along a dim.

use crate::Tensor;
use crate::rules::reduce::picked;
use osteon_spec::Result;
use osteon_tensor::Pick;

impl Tensor {
    /// The elements along a dim in order, and where each was (int64). Stable; NaN counts as the largest. Both results keep the order of
    /// dims.
    ///
    /// # Errors
    /// A dim out of range; complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (values, indices) = Tensor::new([3i64, 1, 2])?.sort(-1, false)?;
    /// assert_eq!(values.to_vec::<i64>()?, [1, 2, 3]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 2, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn sort(&self, dim: isize, descending: bool) -> Result<(Tensor, Tensor)> {
        self.picked(
            self.as_view().sort(dim, descending)?,
            picked(dim, true, false),
        )
    }

    /// The indices of [`Tensor::sort`].
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let order = Tensor::new([3i64, 1, 2])?.argsort(-1, true)?;
    /// assert_eq!(order.to_vec::<i64>()?, [0, 2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn argsort(&self, dim: isize, descending: bool) -> Result<Tensor> {
        Ok(self.sort(dim, descending)?.1)
    }

    /// The values of [`Tensor::sort`] along the first dim.
    ///
    /// # Errors
    /// As [`Tensor::sort`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[3i64, 1], [2, 4]])?;
    /// assert_eq!(x.msort()?.to_vec::<i64>()?, [2, 1, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn msort(&self) -> Result<Tensor> {
        Ok(self.sort(0, false)?.0)
    }

    /// The `k` largest elements along a dim (the smallest, unless `largest`), in order, and where each was. Of equal ones
    /// any may be meant.
    ///
    /// # Errors
    /// More than there are; a dim out of range; `bool` or complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (values, _) = Tensor::new([3i64, 1, 2])?.topk(2, -1, true)?;
    /// assert_eq!(values.to_vec::<i64>()?, [3, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn topk(&self, k: isize, dim: isize, largest: bool) -> Result<(Tensor, Tensor)> {
        self.picked(
            self.as_view().topk(k, dim, largest)?,
            picked(dim, true, false),
        )
    }

    /// The `k`th smallest element along a dim, counted from 1, and where it was.
    ///
    /// # Errors
    /// Fewer elements than that; a dim out of range; `bool` or complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (value, index) = Tensor::new([30i64, 10, 20])?.kthvalue(2, -1, false)?;
    /// assert_eq!((value.item::<i64>()?, index.item::<i64>()?), (20, 2));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn kthvalue(&self, k: isize, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let found = self.as_view().kthvalue(k, dim, keepdim)?;
        self.picked(found, picked(dim, keepdim, false))
    }

    /// The lower median along a dim, and where it was; NaN where there is one.
    ///
    /// # Errors
    /// An empty dim; a dim out of range; `bool` or complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (value, index) = Tensor::new([40i64, 10, 30, 20])?.median_dim(-1, false)?;
    /// assert_eq!((value.item::<i64>()?, index.item::<i64>()?), (20, 3));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn median_dim(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let found = self
            .as_view()
            .one_of_each(Pick::Median, dim, keepdim, "median")?;
        self.picked(found, picked(dim, keepdim, false))
    }

    /// The lower median along a dim of what is not NaN, and where it was.
    ///
    /// # Errors
    /// As [`Tensor::median_dim`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (value, index) = Tensor::new([f64::NAN, 10.0, 50.0])?.nanmedian_dim(-1, false)?;
    /// assert_eq!((value.item::<f64>()?, index.item::<i64>()?), (10.0, 1));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nanmedian_dim(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let found = self
            .as_view()
            .one_of_each(Pick::NanMedian, dim, keepdim, "nanmedian")?;
        self.picked(found, picked(dim, keepdim, false))
    }

    /// The element that occurs most often along a dim, the smallest of several, and where it was last.
    ///
    /// # Errors
    /// As [`Tensor::median_dim`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (value, _) = Tensor::new([3i64, 1, 3])?.mode(-1, false)?;
    /// assert_eq!(value.item::<i64>()?, 3);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn mode(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let found = self
            .as_view()
            .one_of_each(Pick::Mode, dim, keepdim, "mode")?;
        self.picked(found, picked(dim, keepdim, false))
    }
}
