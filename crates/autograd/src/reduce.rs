//! Reductions: many elements to one. They read any strides as they are, and their results are contiguous.
//!
//! An empty list of dims means all of them, as in PyTorch (but for `any_dims` and `all_dims`, where it means none).
//! Floats are added up in `float64`, after a few terms of `float32` at a time in their own precision; results do not depend on
//! the number of threads.

use crate::Tensor;
use crate::graph::{Recorder, Rule, linear, record, same, viewed, wanted};
use crate::rules::reduce::{
    Spread, extreme, extreme_of_all, log_sum_exp, of_numbers, picked, product, shared, spread,
};
use osteon_spec::{DType, Result};
use osteon_tensor::View;

fn pair((first, second): (View, View)) -> (Tensor, Tensor) {
    (Tensor::from_view(first), Tensor::from_view(second))
}

impl Tensor {
    /// A reduction of this tensor whose derivative looks at both.
    pub(crate) fn reduced<R: Rule + 'static>(&self, out: View, rule: R) -> Result<Tensor> {
        record(out, &[self], |r, out| {
            r.save(self)?;
            r.save_output(out)?;
            Ok(rule)
        })
    }

    /// Elements of this tensor that were picked along a dim, and their indices.
    pub(crate) fn picked<R: Rule + 'static>(
        &self,
        (values, indices): (View, View),
        rule: R,
    ) -> Result<(Tensor, Tensor)> {
        if !wanted(&[self]) {
            return Ok(pair((values, indices)));
        }
        let mut recorder = Recorder::new(values.op(), values.site(), &[self])?;
        recorder.save_view(&indices)?;
        let values = recorder.finish(values, rule)?;
        Ok((values, Tensor::from_view(indices)))
    }

    /// A sum or mean of the elements that are numbers.
    fn without_nan(
        &self,
        out: View,
        dims: &[isize],
        keepdim: bool,
        is_mean: bool,
    ) -> Result<Tensor> {
        record(out, &[self], |r, _| {
            r.save(self)?;
            Ok(of_numbers(dims, keepdim, is_mean))
        })
    }

    /// A measure of how far elements are spread, and their mean.
    fn spread_and_mean(
        &self,
        (first, mean): (View, View),
        how: Spread,
    ) -> Result<(Tensor, Tensor)> {
        if !wanted(&[self]) {
            return Ok(pair((first, mean)));
        }
        let mut recorder = Recorder::new(first.op(), first.site(), &[self])?;
        recorder.save(self)?;
        if how.is_root {
            recorder.save_output(&first)?;
        }
        let outs = recorder.finish_many(vec![first, mean], how)?;
        Ok((outs[0].clone(), outs[1].clone()))
    }
}

impl Tensor {
    /// The sum of all elements: `int64` of integers and `bool`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.sum()?.item::<i64>()?, 21);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn sum(&self) -> Result<Tensor> {
        record(self.as_view().sum(&[], false, None)?, &[self], |_, _| {
            Ok(spread(&[], false))
        })
    }

    /// The sum over dims, which stay with size 1 where `keepdim` says so.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.sum_dims([0], false)?.to_vec::<i64>()?, [5, 7, 9]);
    /// assert_eq!(x.sum_dims([-1], true)?.shape(), [2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().sum(dims, keepdim, None)?;
        record(out, &[self], |_, _| Ok(spread(dims, keepdim)))
    }

    /// [`Tensor::sum_dims`] with the elements converted to a dtype first, on the way.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64 << 40, 1])?;
    /// assert_eq!(x.sum_in([], false, osteon_spec::DType::I32)?.item::<i64>()?, 1);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_in(&self, dims: impl AsRef<[isize]>, keepdim: bool, dtype: DType) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().sum(dims, keepdim, Some(dtype))?;
        record(out, &[self], |_, _| Ok(spread(dims, keepdim)))
    }

    /// The product of all elements: `int64` of integers and `bool`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.prod()?.item::<i64>()?, 720);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn prod(&self) -> Result<Tensor> {
        self.reduced(self.as_view().prod(&[], false, None)?, product(&[], false))
    }

    /// The product along a dim.
    ///
    /// # Errors
    /// A dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.prod_dim(1, false)?.to_vec::<i64>()?, [6, 120]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn prod_dim(&self, dim: isize, keepdim: bool) -> Result<Tensor> {
        let out = self.as_view().prod(&[dim], keepdim, None)?;
        self.reduced(out, product(&[dim], keepdim))
    }

    /// The product along a dim, or of all elements, converted to a dtype first, on the way.
    ///
    /// # Errors
    /// A dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.prod_in(Some(1), false, DType::F64)?.to_vec::<f64>()?, [2.0, 12.0]);
    /// assert_eq!(x.prod_in(None, false, DType::I32)?.item::<i32>()?, 24);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn prod_in(&self, dim: Option<isize>, keepdim: bool, dtype: DType) -> Result<Tensor> {
        let dims = dim.as_slice();
        let out = self.as_view().prod(dims, keepdim, Some(dtype))?;
        self.reduced(out, product(dims, keepdim))
    }

    /// The mean of all elements.
    ///
    /// # Errors
    /// Integers, which have no fractions: [`Tensor::mean_in`] converts them. Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 2.0], [3.0, 6.0]])?;
    /// assert_eq!(x.mean()?.item::<f64>()?, 3.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn mean(&self) -> Result<Tensor> {
        self.mean_of(&[], false, None)
    }

    /// The mean over dims.
    ///
    /// # Errors
    /// Integers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 2.0], [3.0, 6.0]])?;
    /// assert_eq!(x.mean_dims([0], false)?.to_vec::<f64>()?, [2.0, 4.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn mean_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        self.mean_of(dims.as_ref(), keepdim, None)
    }

    /// The mean over dims, of elements converted to a dtype first, on the way.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.mean_in([], false, osteon_spec::DType::F32)?.item::<f32>()?, 3.5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn mean_in(
        &self,
        dims: impl AsRef<[isize]>,
        keepdim: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        self.mean_of(dims.as_ref(), keepdim, Some(dtype))
    }

    #[track_caller]
    fn mean_of(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> Result<Tensor> {
        let out = self.as_view().mean(dims, keepdim, dtype)?;
        record(out, &[self], |_, _| {
            Ok(shared(dims, keepdim, self.as_view().count(dims)?))
        })
    }

    /// The sum of what is not NaN, over dims.
    ///
    /// # Errors
    /// Complex numbers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1.0f32, f32::NAN, 2.0])?;
    /// assert_eq!(x.nansum([], false)?.item::<f32>()?, 3.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nansum(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().nansum(dims, keepdim, None)?;
        self.without_nan(out, dims, keepdim, false)
    }

    /// The mean of what is not NaN, over dims.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1.0f32, f32::NAN, 2.0])?;
    /// assert_eq!(x.nanmean([], false)?.item::<f32>()?, 1.5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nanmean(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().nanmean(dims, keepdim, None)?;
        self.without_nan(out, dims, keepdim, true)
    }

    /// [`Tensor::nansum`] with the elements converted to a dtype first, on the way; of floats as integers NaN still counts
    /// for nothing, through a temporary.
    ///
    /// # Errors
    /// Complex numbers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1.5f32, f32::NAN, 2.25])?;
    /// assert_eq!(x.nansum_in([], false, osteon_spec::DType::F64)?.item::<f64>()?, 3.75);
    /// assert_eq!(x.nansum_in([], false, osteon_spec::DType::I64)?.item::<i64>()?, 3);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nansum_in(
        &self,
        dims: impl AsRef<[isize]>,
        keepdim: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().nansum(dims, keepdim, Some(dtype))?;
        self.without_nan(out, dims, keepdim, false)
    }

    /// [`Tensor::nanmean`] with the elements converted to a dtype first, on the way.
    ///
    /// # Errors
    /// Integers, also as the dtype; complex numbers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1.5f32, f32::NAN, 2.0])?;
    /// assert_eq!(x.nanmean_in([], false, osteon_spec::DType::F64)?.item::<f64>()?, 1.75);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nanmean_in(
        &self,
        dims: impl AsRef<[isize]>,
        keepdim: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().nanmean(dims, keepdim, Some(dtype))?;
        self.without_nan(out, dims, keepdim, true)
    }

    /// Whether any element is true (not zero): `bool`, but `uint8` of `uint8`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert!(Tensor::new([0.0f32, 2.0])?.any()?.item::<bool>()?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn any(&self) -> Result<Tensor> {
        self.as_view().any(None, false).map(Tensor::from_view)
    }

    /// Whether any element is true, over dims; over none for an empty list.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[false, false], [false, true]])?;
    /// assert_eq!(x.any_dims([1], false)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn any_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        self.as_view()
            .any(Some(dims.as_ref()), keepdim)
            .map(Tensor::from_view)
    }

    /// Whether all elements are true (not zero): `bool`, but `uint8` of `uint8`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert!(!Tensor::new([0.0f32, 2.0])?.all()?.item::<bool>()?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn all(&self) -> Result<Tensor> {
        self.as_view().all(None, false).map(Tensor::from_view)
    }

    /// Whether all elements are true, over dims; over none for an empty list.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[true, false], [true, true]])?;
    /// assert_eq!(x.all_dims([1], false)?.to_vec::<bool>()?, [false, true]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn all_dims(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        self.as_view()
            .all(Some(dims.as_ref()), keepdim)
            .map(Tensor::from_view)
    }

    /// How many elements are not zero, over dims.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 0], [2, 3]])?;
    /// assert_eq!(x.count_nonzero([])?.item::<i64>()?, 3);
    /// assert_eq!(x.count_nonzero([0])?.to_vec::<i64>()?, [2, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn count_nonzero(&self, dims: impl AsRef<[isize]>) -> Result<Tensor> {
        self.as_view()
            .count_nonzero(dims.as_ref())
            .map(Tensor::from_view)
    }

    /// The largest element over dims; NaN where there is one.
    ///
    /// # Errors
    /// Complex numbers; dims without elements, out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.amax([0], false)?.to_vec::<i64>()?, [4, 5, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn amax(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().amax(dims, keepdim)?;
        self.reduced(out, extreme(dims, keepdim))
    }

    /// The largest element of all; NaN where there is one.
    ///
    /// # Errors
    /// Complex numbers; no elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.max()?.item::<i64>()?, 6);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn max(&self) -> Result<Tensor> {
        self.reduced(self.as_view().amax(&[], false)?, extreme_of_all())
    }

    /// The largest elements along a dim, and where the first of them are; NaN counts as beyond all.
    ///
    /// # Errors
    /// Complex numbers; a dim without elements or out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 3], [4, 2]])?;
    /// let (values, indices) = x.max_dim(1, false)?;
    /// assert_eq!(values.to_vec::<i64>()?, [3, 4]);
    /// assert_eq!(indices.to_vec::<i64>()?, [1, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn max_dim(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let found = self.as_view().max_dim(dim, keepdim)?;
        self.picked(found, picked(dim, keepdim, false))
    }

    /// Where the first largest element is, counted in row-major order.
    ///
    /// # Errors
    /// Complex numbers and `bool`; no elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.argmax()?.item::<i64>()?, 5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn argmax(&self) -> Result<Tensor> {
        self.as_view().argmax(None, false).map(Tensor::from_view)
    }

    /// Where the first largest elements along a dim are.
    ///
    /// # Errors
    /// Complex numbers and `bool`; a dim without elements or out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.argmax_dim(1, false)?.to_vec::<i64>()?, [2, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn argmax_dim(&self, dim: isize, keepdim: bool) -> Result<Tensor> {
        self.as_view()
            .argmax(Some(dim), keepdim)
            .map(Tensor::from_view)
    }

    /// The smallest element over dims; NaN where there is one.
    ///
    /// # Errors
    /// Complex numbers; dims without elements, out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.amin([0], false)?.to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn amin(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().amin(dims, keepdim)?;
        self.reduced(out, extreme(dims, keepdim))
    }

    /// The smallest element of all; NaN where there is one.
    ///
    /// # Errors
    /// Complex numbers; no elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.min()?.item::<i64>()?, 1);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn min(&self) -> Result<Tensor> {
        self.reduced(self.as_view().amin(&[], false)?, extreme_of_all())
    }

    /// The smallest elements along a dim, and where the first of them are; NaN counts as beyond all.
    ///
    /// # Errors
    /// Complex numbers; a dim without elements or out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 3], [4, 2]])?;
    /// let (values, indices) = x.min_dim(1, false)?;
    /// assert_eq!(values.to_vec::<i64>()?, [1, 2]);
    /// assert_eq!(indices.to_vec::<i64>()?, [0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn min_dim(&self, dim: isize, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let found = self.as_view().min_dim(dim, keepdim)?;
        self.picked(found, picked(dim, keepdim, false))
    }

    /// Where the first smallest element is, counted in row-major order.
    ///
    /// # Errors
    /// Complex numbers and `bool`; no elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.argmin()?.item::<i64>()?, 0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn argmin(&self) -> Result<Tensor> {
        self.as_view().argmin(None, false).map(Tensor::from_view)
    }

    /// Where the first smallest elements along a dim are.
    ///
    /// # Errors
    /// Complex numbers and `bool`; a dim without elements or out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.argmin_dim(1, false)?.to_vec::<i64>()?, [0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn argmin_dim(&self, dim: isize, keepdim: bool) -> Result<Tensor> {
        self.as_view()
            .argmin(Some(dim), keepdim)
            .map(Tensor::from_view)
    }

    /// The smallest and the largest element over dims.
    ///
    /// # Errors
    /// Complex numbers; dims without elements, out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// let (low, high) = x.aminmax([], false)?;
    /// assert_eq!((low.item::<i64>()?, high.item::<i64>()?), (1, 6));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn aminmax(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<(Tensor, Tensor)> {
        let dims = dims.as_ref();
        Ok((self.amin(dims, keepdim)?, self.amax(dims, keepdim)?))
    }

    /// The variance over dims: squared distances from the mean, divided by the number of elements less `correction` (1 for a sample, 0 for
    /// a whole population).
    ///
    /// # Errors
    /// Integers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1.0f64, 2.0, 6.0])?;
    /// assert_eq!(x.var([], 1.0, false)?.item::<f64>()?, 7.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn var(&self, dims: impl AsRef<[isize]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let how = Spread {
            dims: dims.to_vec(),
            keepdim,
            correction,
            is_root: false,
        };
        record(
            self.as_view().var(dims, correction, keepdim)?,
            &[self],
            |r, _| {
                r.save(self)?;
                Ok(how)
            },
        )
    }

    /// The standard deviation over dims: the root of [`Tensor::var`].
    ///
    /// # Errors
    /// Integers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.0f64, 2.0])?;
    /// assert_eq!(x.std([], 0.0, false)?.item::<f64>()?, 1.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn std(&self, dims: impl AsRef<[isize]>, correction: f64, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let how = Spread {
            dims: dims.to_vec(),
            keepdim,
            correction,
            is_root: true,
        };
        self.reduced(self.as_view().std(dims, correction, keepdim)?, how)
    }

    /// [`Tensor::var`] and [`Tensor::mean_dims`] in one pass.
    ///
    /// # Errors
    /// Integers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (var, mean) = Tensor::new([1.0f64, 2.0, 6.0])?.var_mean([], 1.0, false)?;
    /// assert_eq!((var.item::<f64>()?, mean.item::<f64>()?), (7.0, 3.0));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn var_mean(
        &self,
        dims: impl AsRef<[isize]>,
        correction: f64,
        keepdim: bool,
    ) -> Result<(Tensor, Tensor)> {
        let dims = dims.as_ref();
        let how = Spread {
            dims: dims.to_vec(),
            keepdim,
            correction,
            is_root: false,
        };
        self.spread_and_mean(self.as_view().var_mean(dims, correction, keepdim)?, how)
    }

    /// [`Tensor::std`] and [`Tensor::mean_dims`] in one pass.
    ///
    /// # Errors
    /// Integers; a dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (std, mean) = Tensor::new([1.0f64, 5.0])?.std_mean([], 0.0, false)?;
    /// assert_eq!((std.item::<f64>()?, mean.item::<f64>()?), (2.0, 3.0));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn std_mean(
        &self,
        dims: impl AsRef<[isize]>,
        correction: f64,
        keepdim: bool,
    ) -> Result<(Tensor, Tensor)> {
        let dims = dims.as_ref();
        let how = Spread {
            dims: dims.to_vec(),
            keepdim,
            correction,
            is_root: true,
        };
        self.spread_and_mean(self.as_view().std_mean(dims, correction, keepdim)?, how)
    }

    /// `log Σ e^x` over dims, without overflow on the way; in `float32` of integers.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1000.0f64, 1000.0])?;
    /// assert_eq!(x.logsumexp([0], false)?.item::<f64>()?, 1000.0 + 2f64.ln());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn logsumexp(&self, dims: impl AsRef<[isize]>, keepdim: bool) -> Result<Tensor> {
        let dims = dims.as_ref();
        let out = self.as_view().logsumexp(dims, keepdim)?;
        self.reduced(out, log_sum_exp(dims, keepdim))
    }

    /// The sum of the diagonal of a matrix.
    ///
    /// # Errors
    /// Another rank; `bool`; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([[1i64, 2], [3, 4]])?.trace()?.item::<i64>()?, 5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn trace(&self) -> Result<Tensor> {
        let out = self.as_view().trace()?;
        let (rows, columns) = (self.shape()[0], self.shape()[1]);
        record(out, &[self], |_, _| {
            Ok(linear(move |g| {
                let whole = Tensor::zeros([rows, columns], g.dtype(), &g.device())?;
                whole.diagonal(0, 0, 1)?.copy_(g)?;
                Ok(whole)
            }))
        })
    }

    /// The sum over dims such that the result has this shape, which broadcasts to this tensor's: what expanding
    /// undoes. The same tensor where it has that shape.
    ///
    /// # Errors
    /// A shape that does not broadcast to this one; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2, 3], [4, 5, 6]])?;
    /// assert_eq!(x.sum_to_size([3])?.to_vec::<i64>()?, [5, 7, 9]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn sum_to_size(&self, shape: impl AsRef<[usize]>) -> Result<Tensor> {
        let out = self.as_view().sum_to_size(shape.as_ref())?;
        if out.shares_storage(self.as_view()) {
            return viewed(self, out, || Ok(same()));
        }
        record(out, &[self], |_, _| Ok(spread(&[], true)))
    }
}
