//! Elements as a set, in bins, and in order.

use crate::Tensor;
use crate::rules::reduce::extreme_of_all;
use osteon_spec::{DType, Error, Kind, Result, Scalar, wrap_dim};
use osteon_tensor::{Pick, Unique, View};

/// The different elements of a tensor; see [`Tensor::unique`].
#[derive(Clone, Debug)]
pub struct UniqueTensors {
    /// Each of them once.
    pub values: Tensor,
    /// For each element (or slice) its place among them, int64.
    pub inverse: Tensor,
    /// How often each of them occurs, int64.
    pub counts: Tensor,
}

impl From<Unique> for UniqueTensors {
    fn from(unique: Unique) -> UniqueTensors {
        UniqueTensors {
            values: Tensor::from_view(unique.values),
            inverse: Tensor::from_view(unique.inverse),
            counts: Tensor::from_view(unique.counts),
        }
    }
}

/// How [`Tensor::quantile`] reads between two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpolation {
    /// In proportion.
    Linear,
    /// The lower one.
    Lower,
    /// The higher one.
    Higher,
    /// The middle of both.
    Midpoint,
    /// The nearer one, of two the one with the even rank.
    Nearest,
}

impl Tensor {
    /// The different elements in ascending order; each NaN is different from all others.
    ///
    /// Three new tensors; takes 24 bytes an element for the time being.
    ///
    /// # Errors
    /// Complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let found = Tensor::new([3i64, 1, 3])?.unique()?;
    /// assert_eq!(found.values.to_vec::<i64>()?, [1, 3]);
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [1, 0, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unique(&self) -> Result<UniqueTensors> {
        self.as_view().unique(false).map(Into::into)
    }

    /// The different slices at the indices of a dim, in lexicographic order.
    ///
    /// # Errors
    /// A dim out of range; complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let found = Tensor::new([[3i64, 4], [1, 2], [3, 4]])?.unique_dim(0)?;
    /// assert_eq!(found.values.to_vec::<i64>()?, [1, 2, 3, 4]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_dim(&self, dim: isize) -> Result<UniqueTensors> {
        self.as_view().unique_dim(dim, false).map(Into::into)
    }

    /// One element for each run of equal ones in row-major order.
    ///
    /// # Errors
    /// As [`Tensor::unique`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let found = Tensor::new([1i64, 1, 2, 1])?.unique_consecutive()?;
    /// assert_eq!(found.values.to_vec::<i64>()?, [1, 2, 1]);
    /// assert_eq!(found.counts.to_vec::<i64>()?, [2, 1, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_consecutive(&self) -> Result<UniqueTensors> {
        self.as_view().unique(true).map(Into::into)
    }

    /// One slice for each run of equal ones at neighbouring indices of a dim.
    ///
    /// # Errors
    /// As [`Tensor::unique_dim`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let found = Tensor::new([[1i64, 1, 2], [3, 3, 3]])?.unique_consecutive_dim(1)?;
    /// assert_eq!(found.values.to_vec::<i64>()?, [1, 2, 3, 3]);
    /// assert_eq!(found.inverse.to_vec::<i64>()?, [0, 0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn unique_consecutive_dim(&self, dim: isize) -> Result<UniqueTensors> {
        self.as_view().unique_dim(dim, true).map(Into::into)
    }

    /// Whether each element is one of `test` (or, inverted, is not): a new `bool` tensor.
    ///
    /// # Errors
    /// Dtypes that do not promote; complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2, 3])?;
    /// let found = x.isin(&Tensor::new([3i64, 1])?, false)?;
    /// assert_eq!(found.to_vec::<bool>()?, [true, false, true]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn isin(&self, test: &Tensor, invert: bool) -> Result<Tensor> {
        self.as_view()
            .isin(test.as_view(), invert)
            .map(Tensor::from_view)
    }

    /// For each of `values` where it would go in the last dim of this tensor, which is in ascending order: before
    /// equal elements, or, from the `right`, behind them. A new int64 tensor. `sorter` are indices that sort this
    /// tensor.
    ///
    /// # Errors
    /// Neither a vector nor the dims of the values but the last; another dtype; a sorter of another shape; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let edges = Tensor::new([1i64, 3, 5])?;
    /// let places = edges.searchsorted(&Tensor::new([3i64, 6])?, false, None)?;
    /// assert_eq!(places.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn searchsorted(
        &self,
        values: &Tensor,
        right: bool,
        sorter: Option<&Tensor>,
    ) -> Result<Tensor> {
        let sorter = sorter.map(Tensor::as_view);
        self.as_view()
            .searchsorted(values.as_view(), right, sorter)
            .map(Tensor::from_view)
    }

    /// [`Tensor::searchsorted`] of these elements in a vector of boundaries.
    ///
    /// # Errors
    /// Boundaries that are no vector, or of another dtype; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let edges = Tensor::new([1i64, 3, 5])?;
    /// let buckets = Tensor::new([3i64, 6])?.bucketize(&edges, true)?;
    /// assert_eq!(buckets.to_vec::<i64>()?, [2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn bucketize(&self, boundaries: &Tensor, right: bool) -> Result<Tensor> {
        let op = "bucketize";
        if boundaries.dim() != 1 {
            let message = format!(
                "the boundaries must be a vector, got shape {:?}",
                boundaries.shape()
            );
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        boundaries
            .searchsorted(self, right, None)
            .map_err(|e| e.op(op))
    }

    /// How often each of the numbers 0, 1, … occurs in a vector of integers, at least for `minlength` of them: a new int64
    /// tensor. With `weights`, the sum of the weights at each number instead, in their float dtype, or float64.
    ///
    /// # Errors
    /// No vector of integers; a negative number; weights of another shape; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 3, 1])?.bincount(None, 0)?.to_vec::<i64>()?, [0, 2, 0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn bincount(&self, weights: Option<&Tensor>, minlength: usize) -> Result<Tensor> {
        let op = "bincount";
        let error = |message: String| Err(Error::new(Kind::Value, message).op(op));
        if self.dim() != 1 || !(self.dtype().is_integer()) {
            return error(format!(
                "needs a vector of integers, got {} {:?}",
                self.dtype(),
                self.shape()
            ));
        }
        if let Some(w) = weights
            && w.shape() != self.shape()
        {
            return error(format!(
                "weights have shape {:?}, the numbers {:?}",
                w.shape(),
                self.shape()
            ));
        }
        let numbers = self.to(DType::I64)?;
        let read = numbers.read::<i64>()?;
        let copied;
        let values = match read.as_slice() {
            Some(values) => values,
            None => {
                copied = numbers.to_vec::<i64>()?;
                &copied
            }
        };
        let (least, most) = values
            .iter()
            .fold((0, -1), |(least, most), &n| (n.min(least), n.max(most)));
        if least < 0 {
            return error(format!("numbers must not be negative, got {least}"));
        }
        let size = [usize::try_from(most)
            .map_or(0, |n| n.saturating_add(1))
            .max(minlength)];
        let device = self.device();
        let Some(weights) = weights.filter(|_| !values.is_empty()) else {
            // Of nothing the counts are whole, weights or not.
            let bins = Tensor::zeros(size, DType::I64, &device)?;
            let mut counts = bins.write::<i64>()?;
            if let Some(counts) = counts.as_mut_slice() {
                values.iter().for_each(|&n| counts[n as usize] += 1);
            }
            drop(counts);
            return Ok(bins);
        };
        drop(read);
        // Counts have no derivative, weighted or not.
        let weights = match weights.dtype() {
            DType::F32 => weights.detach()?,
            _ => weights.detach()?.to(DType::F64)?,
        };
        let bins = Tensor::zeros(size, weights.dtype(), &device)?;
        bins.index_add_(0, &numbers, &weights, 1)
            .map_err(|e| e.op(op))?;
        Ok(bins)
    }

    /// How many elements lie in each of `bins` equal intervals from `min` to `max` (from the least to the largest where both are equal), in a new
    /// tensor of this dtype. Elements outside and NaN count nowhere.
    ///
    /// # Errors
    /// No floats; no bins; bounds that are not finite or in the wrong order; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let bins = Tensor::new([0f32, 1.0, 1.5, 4.0])?.histc(2, 0.0, 4.0)?;
    /// assert_eq!(bins.to_vec::<f32>()?, [3.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn histc(&self, bins: usize, min: f64, max: f64) -> Result<Tensor> {
        let op = "histc";
        if !self.dtype().is_float() {
            let message = format!("needs floats, got {}; cast with to() first", self.dtype());
            return Err(Error::new(Kind::DType, message).op(op));
        }
        let values = self.to(DType::F64)?.to_vec::<f64>()?;
        let (mut low, mut high) = (min, max);
        if low == high && !values.is_empty() {
            low = values.iter().copied().fold(f64::INFINITY, f64::min);
            high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        }
        if low == high {
            (low, high) = (low - 1.0, high + 1.0);
        }
        if bins == 0 || low > high || !low.is_finite() || !high.is_finite() {
            let message = format!("cannot make {bins} bins from {low} to {high}");
            return Err(Error::new(Kind::Value, message).op(op));
        }
        // In this dtype, rounding and all: that decides for elements at a border.
        let width = Tensor::scalar_tensor(high - low, self.dtype(), &self.device())?;
        let places = self.sub(low)?.mul(bins as i64)?.div(&width)?;
        let places = places.to(DType::F64)?.to_vec::<f64>()?;
        let inside = values
            .into_iter()
            .zip(places)
            .filter(|(x, _)| (low..=high).contains(x));
        // The last interval has both its ends.
        let places: Vec<i64> = inside
            .map(|(_, at)| (at as usize).min(bins - 1) as i64)
            .collect();
        let n = places.len();
        let places = Tensor::from_vec(places, [n])?;
        let counts = Tensor::zeros([bins], DType::I64, &self.device())?;
        counts.index_add_(
            0,
            &places,
            &Tensor::ones([n], DType::I64, &self.device())?,
            1,
        )?;
        counts.to(self.dtype())
    }

    /// The element below which the share `q` of those along a dim lies (of all, without a dim), read between its
    /// neighbours; NaN where there is one. Sorts a copy.
    ///
    /// # Errors
    /// No float32 or float64; a share below 0 or above 1; no elements; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{Interpolation, Tensor};
    /// let x = Tensor::new([0f64, 10.0, 30.0])?;
    /// assert_eq!(x.quantile(0.25, None, false, Interpolation::Linear)?.item::<f64>()?, 5.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn quantile(
        &self,
        q: f64,
        dim: Option<isize>,
        keepdim: bool,
        interpolation: Interpolation,
    ) -> Result<Tensor> {
        let q = Tensor::full([], q, self.dtype(), &self.device())?;
        self.quantiles(&q, dim, keepdim, interpolation)
    }

    /// [`Tensor::quantile`] for each of several shares: a new dim in front.
    ///
    /// # Errors
    /// As there; shares that are no vector of the same dtype.
    ///
    /// ```
    /// # use osteon_autograd::{Interpolation, Tensor};
    /// let (x, q) = (Tensor::new([0f64, 10.0, 30.0])?, Tensor::new([0.25f64, 1.0])?);
    /// let found = x.quantiles(&q, None, false, Interpolation::Linear)?;
    /// assert_eq!(found.to_vec::<f64>()?, [5.0, 30.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn quantiles(
        &self,
        q: &Tensor,
        dim: Option<isize>,
        keepdim: bool,
        interpolation: Interpolation,
    ) -> Result<Tensor> {
        let op = "quantile";
        let (sorted, mut shape) = self.sorted_lanes(dim, keepdim)?;
        if q.dtype() != self.dtype() || q.dim() > 1 {
            let message = format!(
                "q must be a {} vector, got {} {:?}",
                self.dtype(),
                q.dtype(),
                q.shape()
            );
            return Err(Error::new(Kind::Value, message).op(op));
        }
        if !q.device().is_meta() {
            let inside = q.ge(0.0)?.logical_and(&q.le(1.0)?)?;
            if !inside.all()?.item::<bool>()? {
                return Err(Error::new(Kind::Value, "every q must be from 0 to 1").op(op));
            }
        }
        let last = sorted.size(-1)? as isize - 1;
        // NaN is sorted to the end, and is every quantile then.
        let nan = sorted.narrow(-1, last, 1)?.isnan()?;
        let ranks = q.reshape([-1])?.mul(last as f64)?;
        let ranks = ranks.masked_fill(&nan, last as f64)?;
        let found = match interpolation {
            Interpolation::Lower => sorted.at_ranks(&ranks.floor()?)?,
            Interpolation::Higher => sorted.at_ranks(&ranks.ceil()?)?,
            Interpolation::Nearest => sorted.at_ranks(&ranks.round()?)?,
            Interpolation::Linear | Interpolation::Midpoint => {
                let floor = ranks.floor()?;
                let share = match interpolation {
                    Interpolation::Midpoint => ranks.full_like(0.5, None)?,
                    _ => ranks.sub(&floor)?,
                };
                sorted
                    .at_ranks(&floor)?
                    .lerp(&sorted.at_ranks(&ranks.ceil()?)?, &share)?
            }
        };
        if q.dim() == 0 {
            return found.reshape(shape);
        }
        // Each lane's results side by side in memory.
        shape.push(q.numel() as isize);
        found.reshape(shape)?.movedim([-1], [0])
    }

    /// The elements of the last dim at whole numbers.
    #[track_caller]
    fn at_ranks(&self, ranks: &Tensor) -> Result<Tensor> {
        self.gather(-1, &ranks.promoted(DType::I64, "quantile")?)
    }

    /// The lanes along a dim (or all elements as one), sorted, as a last dim, and the shape of a result.
    #[track_caller]
    fn sorted_lanes(&self, dim: Option<isize>, keepdim: bool) -> Result<(Tensor, Vec<isize>)> {
        let op = "quantile";
        if !matches!(self.dtype(), DType::F32 | DType::F64) {
            let message = format!(
                "needs float32 or float64, got {}; cast with to() first",
                self.dtype()
            );
            return Err(Error::new(Kind::DType, message).op(op));
        }
        let mut shape = crate::views::signed(self.shape());
        let lanes = match dim {
            _ if self.dim() == 0 => {
                wrap_dim(dim.unwrap_or(0), 0).map_err(|e| e.op(op))?;
                self.reshape([1])?
            }
            None => {
                shape = if keepdim {
                    vec![1; self.dim()]
                } else {
                    Vec::new()
                };
                self.reshape([-1])?
            }
            Some(dim) => {
                let d = self.as_view().existing_dim(dim, op)?;
                if keepdim {
                    shape[d] = 1;
                } else {
                    shape.remove(d);
                }
                self.movedim([d as isize], [-1])?
            }
        };
        if lanes.numel() == 0 {
            return Err(Error::new(Kind::Value, "there are no elements").op(op));
        }
        Ok((lanes.sort(-1, false)?.0, shape))
    }

    /// The lower median of all elements; NaN where there is one, or where there are none.
    ///
    /// # Errors
    /// `bool` or complex elements; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([4i64, 1, 3, 2])?.median()?.item::<i64>()?, 2);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn median(&self) -> Result<Tensor> {
        self.median_of_all(Pick::Median, "median")
    }

    /// The lower median of all elements but NaN.
    ///
    /// # Errors
    /// As [`Tensor::median`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([f64::NAN, 1.0, 5.0, 2.0])?.nanmedian()?.item::<f64>()?, 2.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn nanmedian(&self) -> Result<Tensor> {
        self.median_of_all(Pick::NanMedian, "nanmedian")
    }

    #[track_caller]
    fn median_of_all(&self, pick: Pick, op: &'static str) -> Result<Tensor> {
        let out = if self.numel() == 0 && self.dtype().is_float() {
            View::full(&[], Scalar::Float(f64::NAN), self.dtype(), &self.device())?
        } else {
            self.as_view()
                .reshape(&[-1])?
                .one_of_each(pick, 0, false, op)?
                .0
        };
        self.reduced(out, extreme_of_all())
    }
}

/// The quantile of each lane, which is sorted and not empty.
impl Tensor {
    /// A vector of integers as rows of zeros with a one at the integer's place, in a last dim of so many classes (of as many
    /// as the largest integer needs, without a number): a new int64 tensor.
    ///
    /// # Errors
    /// Another dtype than int64; an integer that is negative or no class; no elements and no number; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 0])?.one_hot(Some(3))?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 1, 0, 1, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn one_hot(&self, classes: Option<usize>) -> Result<Tensor> {
        let op = "one_hot";
        if self.dtype() != DType::I64 {
            let message = format!("needs int64, got {}; cast with to() first", self.dtype());
            return Err(Error::new(Kind::DType, message).op(op));
        }
        let values = self.to_vec::<i64>()?;
        let most = values.iter().max().map_or(0, |&n| n.saturating_add(1));
        let classes = classes.unwrap_or(most.max(0) as usize);
        if classes == 0 || values.iter().any(|&n| n < 0 || n as usize >= classes) {
            let message =
                format!("the integers must be from 0 to below the number of classes, {classes}");
            return Err(Error::new(Kind::Value, message).op(op));
        }
        let shape: Vec<usize> = self.shape().iter().copied().chain([classes]).collect();
        let rows = View::zeros(&shape, DType::I64, &self.device())?;
        let index = self.unsqueeze(-1)?;
        rows.scatter_(-1, index.as_view(), Scalar::Int(1).into())?;
        Ok(Tensor::from_view(rows))
    }
}
