//! The elements of one tensor in another order, or several times, in a new tensor.

use crate::{Operand, Tensor};
use osteon_spec::Result;
use osteon_tensor::{Arg, Triangle, View};

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
        self.as_view().flip(dims.as_ref()).map(Tensor::from_view)
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
        self.as_view()
            .roll(shifts.as_ref(), dims.as_ref())
            .map(Tensor::from_view)
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
        self.as_view()
            .repeat(repeats.as_ref())
            .map(Tensor::from_view)
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
        self.as_view().tile(repeats.as_ref()).map(Tensor::from_view)
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
        self.as_view()
            .repeat_interleave(repeats, dim)
            .map(Tensor::from_view)
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
        self.as_view()
            .repeat_interleave_each(repeats.as_view(), dim)
            .map(Tensor::from_view)
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
        self.as_view()
            .triangle(Triangle::Lower(diagonal))
            .map(Tensor::from_view)
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
        self.as_view()
            .triangle(Triangle::Upper(diagonal))
            .map(Tensor::from_view)
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
        self.as_view().triangle_(Triangle::Lower(diagonal))
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
        self.as_view().triangle_(Triangle::Upper(diagonal))
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
        let (a, b) = (Arg::View(self.as_view()), other.into().arg());
        View::choose(condition.as_view(), a, b).map(Tensor::from_view)
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
        View::choose(condition.as_view(), a.into().arg(), b.into().arg()).map(Tensor::from_view)
    }
}
