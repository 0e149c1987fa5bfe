//! Copies in which the part that a view looks at is another tensor's.

use crate::Tensor;
use crate::graph::{Geometry, Strided, record, rule, two};
use crate::views::bounds;
use osteon_spec::{Layout, Result};

impl Tensor {
    /// A copy of the whole storage under this layout, with `source`, cast, written where `place` looks.
    #[track_caller]
    fn with_written(
        &self,
        source: &Tensor,
        op: &'static str,
        place: impl FnOnce(&Layout) -> Result<Layout>,
    ) -> Result<Tensor> {
        let copy = self.as_view().copy_of_storage()?;
        let target = place(copy.layout()).map_err(|e| e.op(op))?;
        let target = copy.with_layout(target, op)?;
        target.check_same_shape(source.as_view(), op)?;
        target.copy_(source.as_view())?;
        record(copy, &[self, source], |_, copy| {
            let geometry = |layout: &Layout| Geometry {
                layout: layout.clone(),
                dtype: copy.dtype(),
                device: copy.device(),
            };
            let place = Strided::new(&geometry(copy.layout()), geometry(target.layout()));
            Ok(rule(move |b| {
                let outer = place.base_copy(&b.grad()?)?;
                let inner = place.look(&outer)?;
                let written = b.want(1, || inner.copy())?;
                inner.zero_()?;
                two(Some(outer), written)
            }))
        })
    }

    /// A copy with `source` at one index of a dim. Copies the whole storage, so that the layout stays.
    ///
    /// # Errors
    /// An index or dim out of range; a source of another shape; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let y = x.select_scatter(&Tensor::new([0i64, 0])?, 0, 1)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 2, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn select_scatter(&self, source: &Tensor, dim: isize, index: isize) -> Result<Tensor> {
        self.with_written(source, "select_scatter", |l| l.select(dim, index))
    }

    /// A copy with `source` at a slice of a dim, as [`Tensor::slice_step`] takes it. Copies the whole storage.
    ///
    /// # Errors
    /// A dim out of range; a step below 1; a source of another shape; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3, 4])?;
    /// let y = x.slice_scatter(&Tensor::new([8i64, 9])?, 0, .., 2)?;
    /// assert_eq!(y.to_vec::<i64>()?, [8, 2, 9, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn slice_scatter(
        &self,
        source: &Tensor,
        dim: isize,
        range: impl std::ops::RangeBounds<isize>,
        step: isize,
    ) -> Result<Tensor> {
        let (start, end) = bounds(&range);
        self.with_written(source, "slice_scatter", |l| l.slice(dim, start, end, step))
    }

    /// A copy with `source` on a diagonal. Copies the whole storage.
    ///
    /// # Errors
    /// Dims that are the same or out of range; a source of another shape; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let y = x.diagonal_scatter(&Tensor::new([8i64, 9])?, 0, 0, 1)?;
    /// assert_eq!(y.to_vec::<i64>()?, [8, 2, 3, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn diagonal_scatter(
        &self,
        source: &Tensor,
        offset: isize,
        dim1: isize,
        dim2: isize,
    ) -> Result<Tensor> {
        self.with_written(source, "diagonal_scatter", |l| {
            l.diagonal(offset, dim1, dim2)
        })
    }

    /// A copy with `source` at exactly these sizes, strides and offset. Copies the whole storage.
    ///
    /// # Errors
    /// A layout that the storage does not hold; a source of another shape; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3, 4])?;
    /// let y = x.as_strided_scatter(&Tensor::new([8i64, 9])?, [2], [2], Some(1))?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 8, 3, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn as_strided_scatter(
        &self,
        source: &Tensor,
        sizes: impl AsRef<[isize]>,
        strides: impl AsRef<[isize]>,
        offset: Option<isize>,
    ) -> Result<Tensor> {
        self.with_written(source, "as_strided_scatter", |l| {
            l.as_strided(sizes.as_ref(), strides.as_ref(), offset)
        })
    }
}
