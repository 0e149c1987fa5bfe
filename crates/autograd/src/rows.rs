//! Writes of whole rows by a vector of indices, in place and as new tensors.

use crate::graph::{Back, Recorder, rule, two};
use crate::product::{conjugate, times};
use crate::views::signed;
use crate::{Operand, Tensor};
use osteon_memory::{attribute, here};
use osteon_spec::{DType, Error, Kind, MemoryFormat, Result, Scalar};

impl Tensor {
    /// A copy in this format, changed in place.
    #[track_caller]
    pub(crate) fn changed(
        &self,
        format: MemoryFormat,
        change: impl FnOnce(&Tensor) -> Result<()>,
    ) -> Result<Tensor> {
        let copy = self.copy_in(format)?;
        attribute(here(), || change(&copy))?;
        Ok(copy)
    }

    /// Writes one number, or that of a 0-dim tensor, at these indices of a dim. Repeated indices are fine.
    ///
    /// # Errors
    /// An index out of range, or a list that is no int64 or int32 vector; a number that the dtype cannot
    /// hold; a value with dims.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// a.index_fill_(1, &Tensor::new([0i64, 2])?, 0)?;
    /// assert_eq!(a.to_vec::<i64>()?, [0, 2, 0, 0, 5, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_fill_<'a>(
        &self,
        dim: isize,
        index: &Tensor,
        value: impl Into<Operand<'a>>,
    ) -> Result<()> {
        let value = value.into();
        let number = match value {
            Operand::Number(number) => number,
            Operand::Tensor(t) if t.dim() == 0 => t.as_view().item()?,
            Operand::Tensor(t) => {
                let message = format!("the value must have no dims, got shape {:?}", t.shape());
                return Err(Error::new(Kind::Shape, message).op("index_fill_"));
            }
        };
        let run = || self.as_view().index_fill_(dim, index.as_view(), number);
        let save = |r: &mut Recorder| r.save_view(index.as_view());
        let inputs: Vec<&Tensor> = [self].into_iter().chain(value.tensor()).collect();
        Recorder::in_place("index_fill_", &inputs, save, run, |_| {
            Ok(rule(move |b| {
                let (g, index) = (b.grad()?, b.saved(0)?);
                let filled = b.want(1, || {
                    // Each place once, however often it is named.
                    let places = g.zeros_like(Some(DType::Bool))?;
                    places.index_fill_(dim, &index, true)?;
                    g.r#where(&places, 0)?.sum()
                })?;
                two(b.want(0, || g.index_fill(dim, &index, 0))?, filled)
            }))
        })
    }

    /// [`Tensor::index_fill_`] of a copy that keeps the order of dims.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// let y = x.index_fill(0, &Tensor::new([0i64, 2])?, 9)?;
    /// assert_eq!(y.to_vec::<i64>()?, [9, 2, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_fill<'a>(
        &self,
        dim: isize,
        index: &Tensor,
        value: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        self.changed(MemoryFormat::Preserve, |x| x.index_fill_(dim, index, value))
    }

    /// Adds row `i` of `source` to row `index[i]` of this tensor, along a dim. Repeated indices add up.
    ///
    /// # Errors
    /// An index out of range; a source of another shape or dtype; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([1i64, 2, 3])?;
    /// a.index_add_(0, &Tensor::new([0i64, 2, 0])?, &Tensor::new([1i64, 2, 3])?, 10)?;
    /// assert_eq!(a.to_vec::<i64>()?, [41, 2, 23]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_add_(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        alpha: impl Into<Scalar>,
    ) -> Result<()> {
        let alpha = alpha.into();
        let run = || {
            self.as_view()
                .index_add_(dim, index.as_view(), source.as_view(), alpha)
        };
        let save = |r: &mut Recorder| match r.needs(1) {
            true => r.save_view(index.as_view()),
            false => Ok(()),
        };
        Recorder::in_place("index_add_", &[self, source], save, run, |_| {
            Ok(rule(move |b| {
                let g = b.grad()?;
                let added = b.want(1, || times(&rows(b, &g, dim)?, conjugate(alpha)))?;
                two(Some(g), added)
            }))
        })
    }

    /// [`Tensor::index_add_`] to a row-major copy.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// let y = x.index_add(0, &Tensor::new([0i64, 0])?, &Tensor::new([10i64, 20])?, 1)?;
    /// assert_eq!(y.to_vec::<i64>()?, [31, 2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_add(
        &self,
        dim: isize,
        index: &Tensor,
        source: &Tensor,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        self.changed(MemoryFormat::Contiguous, |x| {
            x.index_add_(dim, index, source, alpha)
        })
    }

    /// Writes row `i` of `source` into row `index[i]` of this tensor, along a dim. Of repeated indices the
    /// last wins.
    ///
    /// # Errors
    /// An index out of range; a source of another shape or dtype; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// a.index_copy_(0, &Tensor::new([1i64, 0])?, &Tensor::new([[5i64, 6], [7, 8]])?)?;
    /// assert_eq!(a.to_vec::<i64>()?, [7, 8, 5, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_copy_(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<()> {
        let run = || {
            self.as_view()
                .index_copy_(dim, index.as_view(), source.as_view())
        };
        let save = |r: &mut Recorder| r.save_view(index.as_view());
        Recorder::in_place("index_copy_", &[self, source], save, run, |_| {
            Ok(rule(move |b| {
                let g = b.grad()?;
                let kept = b.want(0, || g.index_fill(dim, &b.saved(0)?, 0))?;
                two(kept, b.want(1, || rows(b, &g, dim))?)
            }))
        })
    }

    /// [`Tensor::index_copy_`] to a row-major copy.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// let y = x.index_copy(0, &Tensor::new([2i64, 0])?, &Tensor::new([10i64, 20])?)?;
    /// assert_eq!(y.to_vec::<i64>()?, [20, 2, 10]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_copy(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.changed(MemoryFormat::Contiguous, |x| {
            x.index_copy_(dim, index, source)
        })
    }
}

/// The gradient of the rows that were written where the saved index, the first of what is saved, says.
fn rows(b: &Back<'_>, g: &Tensor, dim: isize) -> Result<Tensor> {
    g.index_select(dim, &b.saved(0)?)?
        .reshape(signed(b.sizes(1)))
}
