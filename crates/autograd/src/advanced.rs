//! Elements by index tensors and masks.

use crate::Tensor;
use crate::graph::{one, record, rule};
use crate::views::signed;
use osteon_spec::{Result, broadcast_shapes, wrap_dim};

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
        let out = self.as_view().index_select(dim, index.as_view())?;
        record(out, &[self], |r, _| {
            r.save_view(index.as_view())?;
            Ok(rule(move |b| {
                let (g, whole) = b.zeros(0)?;
                whole.index_add_(dim, &b.saved(0)?, &g, 1)?;
                one(whole)
            }))
        })
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
        let out = self.as_view().gather(dim, index.as_view())?;
        record(out, &[self], |r, _| {
            r.save_view(index.as_view())?;
            Ok(rule(move |b| {
                let (g, whole) = b.zeros(0)?;
                whole.scatter_add_(dim, &b.saved(0)?, &g)?;
                one(whole)
            }))
        })
    }

    /// The elements of these numbers in row-major order, negative ones from the end, in a new row-major tensor of the index's shape.
    ///
    /// # Errors
    /// An index out of range, or not of int64; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.take(&Tensor::new([2i64, -1])?)?.to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Result<Tensor> {
        record(self.as_view().take(index.as_view())?, &[self], |r, _| {
            r.save_view(index.as_view())?;
            Ok(rule(|b| {
                let (g, whole) = b.zeros(0)?;
                whole.put_(&b.saved(0)?, &g, true)?;
                one(whole)
            }))
        })
    }

    /// [`Tensor::gather`] of tensor and index broadcast to each other in all other dims, where negative indices count from the end;
    /// without a dim, of both as vectors, where they do not.
    ///
    /// # Errors
    /// Ranks or sizes that do not fit; an index out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[3i64, 1], [2, 4]])?;
    /// let sorted = x.take_along_dim(&x.argsort(1, false)?, Some(1))?;
    /// assert_eq!(sorted.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn take_along_dim(&self, index: &Tensor, dim: Option<isize>) -> Result<Tensor> {
        let Some(dim) = dim else {
            let found = self.reshape([-1])?.gather(0, &index.reshape([-1])?);
            return found.map_err(|e| e.op("take_along_dim"));
        };
        let out = self.as_view().take_along_dim(index.as_view(), dim)?;
        record(out, &[self], |r, out| {
            r.save_view(index.as_view())?;
            let d = wrap_dim(dim, out.dim())?;
            let n = self.shape()[d];
            Ok(rule(move |b| {
                let g = b.grad()?;
                // Negative indices count from the end.
                let index = b.saved(0)?.remainder(n as i64)?.expand(signed(g.shape()))?;
                let mut shape = g.shape().to_vec();
                shape[d] = n;
                let whole = g.new_zeros(shape)?;
                whole.scatter_add_(d as isize, &index, &g)?;
                one(whole)
            }))
        })
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
        let out = self.as_view().masked_select(mask.as_view())?;
        record(out, &[self], |r, _| {
            r.save_view(mask.as_view())?;
            let (m, n) = (mask.layout().clone(), self.layout().clone());
            Ok(rule(move |b| {
                let shape = broadcast_shapes(&[m.sizes(), n.sizes()])?;
                let (g, mask) = (b.grad()?, b.saved(0)?);
                let whole = g.new_zeros(&shape)?;
                whole.masked_scatter_(&mask, &g)?;
                one(whole)
            }))
        })
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
