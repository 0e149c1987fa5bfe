//! The elements of one tensor in another order, or several times, in a new tensor.

use crate::graph::{Recorder, Rule, linear, record, rule, two};
use crate::views::signed;
use crate::{Operand, Tensor};
use osteon_spec::{Result, wrap_dim};
use osteon_tensor::{Triangle, View};

impl Tensor {
    /// These dims from the last index to the first. Always a copy, which keeps the order of dims.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.flip([1])?.to_vec::<i64>()?, [2, 1, 4, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn flip(&self, dims: impl AsRef<[isize]>) -> Result<Tensor> {
        let dims = dims.as_ref();
        record(self.as_view().flip(dims)?, &[self], |_, _| {
            let dims = dims.to_vec();
            Ok(linear(move |g| g.flip(&dims)))
        })
    }

    /// [`Tensor::flip`] of dim 1: left and right exchanged.
    ///
    /// # Errors
    /// Fewer than two dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.fliplr()?.to_vec::<i64>()?, [2, 1, 4, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn fliplr(&self) -> Result<Tensor> {
        self.flip([1]).map_err(|e| e.op("fliplr"))
    }

    /// [`Tensor::flip`] of dim 0: up and down exchanged.
    ///
    /// # Errors
    /// No dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.flipud()?.to_vec::<i64>()?, [3, 4, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn flipud(&self) -> Result<Tensor> {
        self.as_view().existing_dim(0, "flipud")?;
        self.flip([0])
    }

    /// The elements moved by so many places along each of these dims, those that fall off the end to the beginning; without
    /// dims, as if the tensor were a vector. Always a copy, one for each dim.
    ///
    /// # Errors
    /// Not a shift for each dim; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 5, 1)?;
    /// assert_eq!(x.roll([2], [0])?.to_vec::<i64>()?, [3, 4, 0, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn roll(&self, shifts: impl AsRef<[isize]>, dims: impl AsRef<[isize]>) -> Result<Tensor> {
        let (shifts, dims) = (shifts.as_ref(), dims.as_ref());
        record(self.as_view().roll(shifts, dims)?, &[self], |_, _| {
            // As far as the end, so that no shift is too large to be negated.
            let size = |k: usize| match dims.get(k) {
                Some(&dim) => self.size(dim),
                None => Ok(self.numel()),
            };
            let back = |(k, shift): (usize, &isize)| Ok(-(shift % size(k)?.max(1) as isize));
            let shifts = shifts.iter().enumerate().map(back);
            let (shifts, dims) = (shifts.collect::<Result<Vec<_>>>()?, dims.to_vec());
            Ok(linear(move |g| g.roll(&shifts, &dims)))
        })
    }

    /// The tensor so many times along each dim, in a new row-major tensor; more numbers than dims make new dims in front.
    ///
    /// # Errors
    /// Fewer numbers than dims; a negative one; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.repeat([2, 2])?.to_vec::<i64>()?, [1, 2, 1, 2, 1, 2, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn repeat(&self, repeats: impl AsRef<[isize]>) -> Result<Tensor> {
        let repeats = repeats.as_ref();
        let out = self.as_view().repeat(repeats)?;
        record(out, &[self], |_, _| Ok(repeated(self, repeats)))
    }

    /// As [`Tensor::repeat`], but fewer numbers than dims count for the last ones.
    ///
    /// # Errors
    /// A negative number; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.tile([2])?.to_vec::<i64>()?, [1, 2, 1, 2, 3, 4, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tile(&self, repeats: impl AsRef<[isize]>) -> Result<Tensor> {
        let repeats = repeats.as_ref();
        let out = self.as_view().tile(repeats)?;
        record(out, &[self], |_, _| {
            let mut all = vec![1; self.dim().saturating_sub(repeats.len())];
            all.extend_from_slice(repeats);
            Ok(repeated(self, &all))
        })
    }

    /// Each index of a dim so many times in a row, in a new row-major tensor; without a dim, of all elements as a
    /// vector.
    ///
    /// # Errors
    /// A negative number; a dim out of range, or any of a 0-dim tensor; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.repeat_interleave(2, None)?.to_vec::<i64>()?, [1, 1, 2, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn repeat_interleave(&self, repeats: isize, dim: Option<isize>) -> Result<Tensor> {
        let Some(dim) = dim else {
            return self.flatten(0, -1)?.repeat_interleave(repeats, Some(0));
        };
        let out = self.as_view().repeat_interleave(repeats, Some(dim))?;
        record(out, &[self], |_, _| {
            let d = wrap_dim(dim, self.dim())? as isize;
            let sizes = [self.size(d)? as isize, repeats];
            Ok(linear(move |g| {
                g.unflatten(d, sizes)?.sum_dims([d + 1], false)
            }))
        })
    }

    /// Index `i` of a dim `repeats[i]` times in a row, in a new tensor; without a dim, of all elements as a vector.
    ///
    /// # Errors
    /// Not one int64 or int32 number for each index (or one for all); a negative number; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let y = Tensor::new([7i64, 8])?.repeat_interleave_each(&Tensor::new([1i64, 3])?, None)?;
    /// assert_eq!(y.to_vec::<i64>()?, [7, 8, 8, 8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn repeat_interleave_each(&self, repeats: &Tensor, dim: Option<isize>) -> Result<Tensor> {
        let Some(dim) = dim else {
            return self
                .flatten(0, -1)?
                .repeat_interleave_each(repeats, Some(0));
        };
        let indices = self.as_view().repeated_indices(repeats.as_view(), dim)?;
        self.index_select(dim, &Tensor::from_view(indices))
            .map_err(|e| e.op("repeat_interleave"))
    }

    /// The elements on a diagonal of each matrix and below it, zeros elsewhere, in a new row-major tensor.
    ///
    /// # Errors
    /// Fewer than two dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.tril(0)?.to_vec::<i64>()?, [1, 0, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tril(&self, diagonal: isize) -> Result<Tensor> {
        let out = self.as_view().triangle(Triangle::Lower(diagonal))?;
        record(out, &[self], |_, _| Ok(linear(move |g| g.tril(diagonal))))
    }

    /// The elements on a diagonal of each matrix and above it, zeros elsewhere, in a new row-major tensor.
    ///
    /// # Errors
    /// Fewer than two dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.triu(0)?.to_vec::<i64>()?, [1, 2, 0, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn triu(&self, diagonal: isize) -> Result<Tensor> {
        let out = self.as_view().triangle(Triangle::Upper(diagonal))?;
        record(out, &[self], |_, _| Ok(linear(move |g| g.triu(diagonal))))
    }

    /// [`Tensor::tril`] in place: writes the zeros.
    ///
    /// # Errors
    /// Fewer than two dims; a tensor that overlaps itself; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// x.tril_(-1)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 0, 3, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tril_(&self, diagonal: isize) -> Result<()> {
        let run = || self.as_view().triangle_(Triangle::Lower(diagonal));
        Recorder::in_place(
            "tril_",
            &[self],
            |_| Ok(()),
            run,
            |_| Ok(linear(move |g| g.tril(diagonal))),
        )
    }

    /// [`Tensor::triu`] in place: writes the zeros.
    ///
    /// # Errors
    /// Fewer than two dims; a tensor that overlaps itself; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// x.triu_(1)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 2, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn triu_(&self, diagonal: isize) -> Result<()> {
        let run = || self.as_view().triangle_(Triangle::Upper(diagonal));
        Recorder::in_place(
            "triu_",
            &[self],
            |_| Ok(()),
            run,
            |_| Ok(linear(move |g| g.triu(diagonal))),
        )
    }

    /// `self` where `condition` (`bool`, or `uint8`) is true, else `other`, in a new tensor. All three broadcast; the dtypes of
    /// the two promote.
    ///
    /// # Errors
    /// Another condition; shapes that do not broadcast; dtypes that do not promote; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, -2])?;
    /// assert_eq!(x.r#where(&x.gt(0)?, 0)?.to_vec::<i64>()?, [1, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn r#where<'a>(&self, condition: &Tensor, other: impl Into<Operand<'a>>) -> Result<Tensor> {
        let other: Operand<'_> = other.into();
        Tensor::where_numbers(condition, Operand::Tensor(self), other)
    }

    /// [`Tensor::where`] of two operands that may both be numbers.
    ///
    /// # Errors
    /// As there.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let y = Tensor::where_numbers(&Tensor::new([true, false])?, 7, 8)?;
    /// assert_eq!(y.to_vec::<i64>()?, [7, 8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn where_numbers<'a>(
        condition: &Tensor,
        a: impl Into<Operand<'a>>,
        b: impl Into<Operand<'a>>,
    ) -> Result<Tensor> {
        let (a, b) = (a.into(), b.into());
        let out = View::choose(condition.as_view(), a.arg(), b.arg())?;
        record(out, &[a, b], |r, _| {
            r.save_view(condition.as_view())?;
            Ok(rule(|k| {
                let (g, condition) = (k.grad()?, k.saved(0)?);
                two(
                    k.want(0, || g.r#where(&condition, 0))?,
                    k.want(1, || Tensor::where_numbers(&condition, 0, &g))?,
                )
            }))
        })
    }
}

/// The derivative of repetitions: they are added up.
fn repeated(of: &Tensor, repeats: &[isize]) -> impl Rule + use<> {
    // Each dim as two: which repetition, and where in it.
    let mut sizes = vec![1; repeats.len() - of.dim()];
    sizes.extend(signed(of.shape()));
    let apart: Vec<isize> = repeats
        .iter()
        .zip(&sizes)
        .flat_map(|(&t, &n)| [t, n])
        .collect();
    let times: Vec<isize> = (0..repeats.len()).map(|d| 2 * d as isize).collect();
    let shape = signed(of.shape());
    linear(move |g| {
        if times.is_empty() {
            return Ok(g.clone());
        }
        g.reshape(&apart)?.sum_dims(&times, false)?.reshape(&shape)
    })
}
