//! Operations that look at a tensor in several pieces, under PyTorch's names. None copies.

use crate::Tensor;
use crate::graph::{Parts, Strided, many_views, viewed, wanted};
use osteon_spec::{Layout, Result, Sections};
use osteon_tensor::View;

impl Tensor {
    /// Pieces of `size` along a dim, the last one perhaps smaller.
    ///
    /// # Errors
    /// A size below 0, or 0 with something to split.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let parts = Tensor::arange(0, 5, 1)?.split(2, 0)?;
    /// assert_eq!(parts.iter().map(Tensor::numel).collect::<Vec<_>>(), [2, 2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn split(&self, size: isize, dim: isize) -> Result<Vec<Tensor>> {
        let views = self.as_view().split(size, dim)?;
        many_views(self, views, || Parts::of(self, |l| l.split(size, dim)))
    }

    /// Pieces of these sizes along a dim.
    ///
    /// # Errors
    /// Sizes that do not add up to the dim's.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 5, 1)?.split_with_sizes([1, 4], 0)?[1].to_vec::<i64>()?, [1, 2, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn split_with_sizes(&self, sizes: impl AsRef<[isize]>, dim: isize) -> Result<Vec<Tensor>> {
        let views = self.as_view().split_with_sizes(sizes.as_ref(), dim)?;
        many_views(self, views, || {
            Parts::of(self, |l| l.split_with_sizes(sizes.as_ref(), dim))
        })
    }

    /// At most so many pieces of equal size along a dim; there may be fewer.
    ///
    /// # Errors
    /// A count below 1.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 4, 1)?.chunk(3, 0)?.len(), 2);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn chunk(&self, chunks: isize, dim: isize) -> Result<Vec<Tensor>> {
        let views = self.as_view().chunk(chunks, dim)?;
        many_views(self, views, || Parts::of(self, |l| l.chunk(chunks, dim)))
    }

    /// Each index of a dim.
    ///
    /// # Errors
    /// A scalar.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let rows = Tensor::new([[1i64, 2], [3, 4]])?.unbind(0)?;
    /// assert_eq!(rows[1].to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unbind(&self, dim: isize) -> Result<Vec<Tensor>> {
        let views = self.as_view().unbind(dim)?;
        many_views(self, views, || Parts::of(self, |l| l.unbind(dim)))
    }

    /// Exactly so many pieces along a dim (some may be empty), or a piece before each of these indices and one after
    /// the last.
    ///
    /// # Errors
    /// A scalar, a count below 1.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 5, 1)?;
    /// assert_eq!(x.tensor_split(3, 0)?.len(), 3);
    /// assert_eq!(x.tensor_split(&[1, 4], 0)?[1].to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tensor_split<'a>(
        &self,
        sections: impl Into<Sections<'a>>,
        dim: isize,
    ) -> Result<Vec<Tensor>> {
        let sections = sections.into();
        self.each_view(self.as_view().tensor_split(sections, dim)?, |l| {
            l.tensor_split(sections, dim)
        })
    }

    /// [`Tensor::tensor_split`] along dim 1, or dim 0 of a vector.
    ///
    /// # Errors
    /// Too few dims, a count below 1, or one that does not divide the dim where that is asked for.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]])?.hsplit(2)?[1].to_vec::<i64>()?, [2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn hsplit<'a>(&self, sections: impl Into<Sections<'a>>) -> Result<Vec<Tensor>> {
        let sections = sections.into();
        self.each_view(self.as_view().hsplit(sections)?, |l| l.hsplit(sections))
    }

    /// [`Tensor::tensor_split`] along dim 0.
    ///
    /// # Errors
    /// Too few dims, a count below 1, or one that does not divide the dim where that is asked for.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]])?.vsplit(2)?[1].to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn vsplit<'a>(&self, sections: impl Into<Sections<'a>>) -> Result<Vec<Tensor>> {
        let sections = sections.into();
        self.each_view(self.as_view().vsplit(sections)?, |l| l.vsplit(sections))
    }

    /// [`Tensor::tensor_split`] along dim 2.
    ///
    /// # Errors
    /// Too few dims, a count below 1, or one that does not divide the dim where that is asked for.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::arange(0, 4, 1)?.view([1, 2, 2])?.dsplit(2)?[0].to_vec::<i64>()?, [0, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn dsplit<'a>(&self, sections: impl Into<Sections<'a>>) -> Result<Vec<Tensor>> {
        let sections = sections.into();
        self.each_view(self.as_view().dsplit(sections)?, |l| l.dsplit(sections))
    }

    /// Pieces each of which is a view of its own, and may be written in place.
    fn each_view(
        &self,
        views: Vec<View>,
        look: impl FnOnce(&Layout) -> Result<Vec<Layout>>,
    ) -> Result<Vec<Tensor>> {
        let base = if wanted(&[self]) {
            look(&Layout::contiguous(self.shape())?)?
        } else {
            Vec::new()
        };
        let piece = |(k, view): (usize, View)| {
            viewed(self, view, || Strided::over(self, |_| Ok(base[k].clone())))
        };
        views.into_iter().enumerate().map(piece).collect()
    }
}
