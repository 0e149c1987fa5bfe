//! Writes of elements by index tensors and masks, in place and as new tensors.

use crate::graph::{Back, Recorder, rule, two};
use crate::views::signed;
use crate::{Operand, PadMode, Tensor};
use osteon_spec::{MemoryFormat, Result, Scalar};

impl Tensor {
    /// Writes the elements of `source`, in row-major order, to those at which `mask`, a `bool` tensor broadcast to this
    /// shape, is true. A source that is not contiguous is copied first.
    ///
    /// # Errors
    /// Another mask; a source of another dtype or with fewer elements than the mask selects; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, -2, -3])?;
    /// x.masked_scatter_(&x.lt(0)?, &Tensor::new([8i64, 9])?)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 8, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_scatter_(&self, mask: &Tensor, source: &Tensor) -> Result<()> {
        let run = || {
            self.as_view()
                .masked_scatter_(mask.as_view(), source.as_view())
        };
        let save = |r: &mut Recorder| r.save_view(mask.as_view());
        Recorder::in_place("masked_scatter_", &[self, source], save, run, |_| {
            Ok(rule(|b| {
                let (g, mask) = (b.grad()?, b.saved(0)?);
                let written = b.want(1, || {
                    let taken = g.masked_select(&mask)?;
                    let source: usize = b.sizes(1).iter().product();
                    let rest = source.saturating_sub(taken.numel()) as isize;
                    let padded = taken.pad([0, rest], PadMode::Constant(Scalar::Int(0)))?;
                    padded.view(signed(b.sizes(1)))
                })?;
                two(b.want(0, || g.masked_fill(&mask, 0))?, written)
            }))
        })
    }

    /// [`Tensor::masked_scatter_`] to a row-major copy, expanded to the mask's shape.
    ///
    /// # Errors
    /// As there; shapes that do not broadcast; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let mask = Tensor::new([[true, false], [false, true]])?;
    /// let y = Tensor::new([1i64, 2])?.masked_scatter(&mask, &Tensor::new([8i64, 9])?)?;
    /// assert_eq!(y.to_vec::<i64>()?, [8, 2, 1, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
        let [x, mask] = both(self, mask)?;
        x.changed(MemoryFormat::Contiguous, |x| {
            x.masked_scatter_(&mask, source)
        })
    }

    /// Writes each element of `source` to the place along a dim that `index`, of the same rank, says.
    /// Of repeated places the last wins.
    ///
    /// # Errors
    /// An index out of range; shapes that do not fit; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[0i64, 0, 0], [0, 0, 0]])?;
    /// a.scatter_(1, &Tensor::new([[2i64], [0]])?, &Tensor::new([[5i64], [6]])?)?;
    /// assert_eq!(a.to_vec::<i64>()?, [0, 0, 5, 6, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_<'a>(
        &self,
        dim: isize,
        index: &Tensor,
        source: impl Into<Operand<'a>>,
    ) -> Result<()> {
        let source = source.into();
        let read = source.tensor().map(|t| read(t, index)).transpose()?;
        let source = read.as_ref().map_or(source, Operand::Tensor);
        let mut inputs = vec![self];
        inputs.extend(&read);
        let run = || self.as_view().scatter_(dim, index.as_view(), source.arg());
        let save = |r: &mut Recorder| r.save_view(index.as_view());
        Recorder::in_place("scatter_", &inputs, save, run, |_| {
            Ok(rule(move |b| {
                let (g, index) = (b.grad()?, b.saved(0)?);
                let kept = b.want(0, || g.scatter(dim, &index, 0))?;
                two(kept, b.want(1, || taken(b, &g, dim, &index))?)
            }))
        })
    }

    /// [`Tensor::scatter_`] to a row-major copy.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let y = x.scatter(1, &Tensor::new([[1i64], [0]])?, 9)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 9, 9, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter<'a>(
        &self,
        dim: isize,
        index: &Tensor,
        source: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        self.changed(MemoryFormat::Contiguous, |x| x.scatter_(dim, index, source))
    }

    /// Adds each element of `source` to the place along a dim that `index`, of the same rank, names.
    ///
    /// # Errors
    /// As [`Tensor::scatter_`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// x.scatter_add_(0, &Tensor::new([0i64, 0, 1])?, &Tensor::new([10i64, 20, 30])?)?;
    /// assert_eq!(x.to_vec::<i64>()?, [31, 32]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_add_(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<()> {
        let source = &read(source, index)?;
        let run = || {
            self.as_view()
                .scatter_add_(dim, index.as_view(), source.as_view())
        };
        let save = |r: &mut Recorder| match r.needs(1) {
            true => r.save_view(index.as_view()),
            false => Ok(()),
        };
        Recorder::in_place("scatter_add_", &[self, source], save, run, |_| {
            Ok(rule(move |b| {
                let g = b.grad()?;
                let added = b.want(1, || taken(b, &g, dim, &b.saved(0)?))?;
                two(Some(g), added)
            }))
        })
    }

    /// [`Tensor::scatter_add_`] to a row-major copy.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// let y = x.scatter_add(0, &Tensor::new([[1i64, 0]])?, &Tensor::new([[10i64, 20]])?)?;
    /// assert_eq!(y.to_vec::<i64>()?, [1, 22, 13, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn scatter_add(&self, dim: isize, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.changed(MemoryFormat::Contiguous, |x| {
            x.scatter_add_(dim, index, source)
        })
    }

    /// Writes the elements of `source` to those of these numbers in row-major order. Of numbers that repeat the last
    /// wins, or, with `accumulate`, all are added.
    ///
    /// # Errors
    /// An index out of range, or not of int64; a source of another dtype or number of elements; overlap.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// x.put_(&Tensor::new([-1i64, 0])?, &Tensor::new([8i64, 9])?, false)?;
    /// assert_eq!(x.to_vec::<i64>()?, [9, 2, 3, 8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn put_(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<()> {
        let run = || {
            self.as_view()
                .put_(index.as_view(), source.as_view(), accumulate)
        };
        let save = |r: &mut Recorder| r.save_view(index.as_view());
        Recorder::in_place("put_", &[self, source], save, run, |_| {
            Ok(rule(move |b| {
                let (g, index) = (b.grad()?, b.saved(0)?);
                let kept = b.want(0, || {
                    if accumulate {
                        return Ok(g.clone());
                    }
                    g.put(&index, &g.new_zeros(index.shape())?, false)
                })?;
                let written = b.want(1, || g.take(&index)?.reshape(signed(b.sizes(1))))?;
                two(kept, written)
            }))
        })
    }

    /// [`Tensor::put_`] to a copy that keeps the order of dims.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// let y = x.put(&Tensor::new([0i64, 0])?, &Tensor::new([10i64, 20])?, true)?;
    /// assert_eq!(y.to_vec::<i64>()?, [31, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn put(&self, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        self.changed(MemoryFormat::Preserve, |x| {
            x.put_(index, source, accumulate)
        })
    }
}

/// The part of a source that is read: an index may be smaller.
pub(crate) fn read(source: &Tensor, index: &Tensor) -> Result<Tensor> {
    if index.numel() == 0 || source.dim() != index.dim() {
        return Ok(source.clone());
    }
    let mut part = source.clone();
    for (d, &size) in index.shape().iter().enumerate() {
        if size < part.shape()[d] {
            part = part.narrow(d as isize, 0, size as isize)?;
        }
    }
    Ok(part)
}

/// The gradient of the elements that were written where `index` says: those of input 1.
pub(crate) fn taken(b: &Back<'_>, g: &Tensor, dim: isize, index: &Tensor) -> Result<Tensor> {
    if index.numel() == 0 {
        return g.new_zeros(b.sizes(1));
    }
    g.gather(dim, index)?.reshape(signed(b.sizes(1)))
}

#[track_caller]
fn both(a: &Tensor, b: &Tensor) -> Result<[Tensor; 2]> {
    let mut list = Tensor::broadcast_tensors(&[a, b])?.into_iter();
    let mut next = || list.next().unwrap_or_else(|| a.clone());
    Ok([next(), next()])
}
