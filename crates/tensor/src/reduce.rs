//! Reductions of dims to one element. Results are contiguous, whatever the input.

use crate::backend::{Arg, backend};
use crate::{BinaryOp, Call, Compute, Op, View};
use osteon_kernels::{self as kernels, ReduceOp};
use osteon_spec::{Category, DType, Dims, Error, Kind, Layout, Result, wrap_dim};

/// What a backend is to do with elements along dims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction<'a> {
    pub(crate) op: ReduceOp,
    /// What elements are converted to first.
    pub(crate) dtype: DType,
    /// What the operation takes beside them.
    pub(crate) number: f64,
    /// The dims, from the front, without repetition.
    pub(crate) dims: &'a [usize],
}

/// The dims that a list names: all for an empty one.
pub(crate) fn listed(dims: &[isize], rank: usize) -> Result<Dims> {
    if dims.is_empty() {
        return Ok((0..rank).collect());
    }
    let mut listed = Dims::new();
    for &dim in dims {
        let d = wrap_dim(dim, rank)?;
        if listed.contains(&d) {
            return Err(Error::new(
                Kind::Value,
                format!("dim {d} appears more than once in the list of dims {dims:?}"),
            ));
        }
        listed.push(d);
    }
    // The one dim of a 0-dim tensor is none of its own.
    listed.retain(|d| *d < rank);
    Ok(listed)
}

/// The dtype that sums of this one have: `int64` for integers and `bool`.
fn summed(dtype: DType) -> DType {
    if dtype.category() < Category::Float {
        DType::I64
    } else {
        dtype
    }
}

#[cold]
fn no_identity(op: &'static str, why: &str) -> Error {
    Error::new(
        Kind::Value,
        format!("{why} is empty, and there is no {op} of nothing; give a dim that has elements"),
    )
    .op(op)
}

/// One call of a reduction.
#[derive(Clone, Copy)]
pub(crate) struct Reduce<'a> {
    pub(crate) name: &'static str,
    pub(crate) op: ReduceOp,
    /// Empty for all.
    pub(crate) dims: &'a [isize],
    pub(crate) keepdim: bool,
    pub(crate) dtype: DType,
    pub(crate) number: f64,
}

impl Reduce<'_> {
    /// The results of these dtypes.
    #[track_caller]
    pub(crate) fn run(&self, x: &View, results: [Option<DType>; 2]) -> Result<[Option<View>; 2]> {
        let dims = listed(self.dims, x.dim()).map_err(|e| e.op(self.name))?;
        self.run_over(x, &dims, results)
    }

    #[track_caller]
    fn run_over(
        &self,
        x: &View,
        dims: &[usize],
        results: [Option<DType>; 2],
    ) -> Result<[Option<View>; 2]> {
        if kernels::reduce(self.op, self.dtype, self.number).is_none() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", self.dtype),
            )
            .op(self.name));
        }
        self.check_identity(x, dims)?;
        let shape = x.shape().iter().enumerate().filter_map(|(d, &size)| {
            let is_reduced = dims.contains(&d);
            (self.keepdim || !is_reduced).then_some(if is_reduced { 1 } else { size })
        });
        let shape: Dims = shape.collect();
        let alloc = |dtype: Option<DType>| {
            let Some(dtype) = dtype else { return Ok(None) };
            let layout = Layout::contiguous(&shape).map_err(|e| e.op(self.name))?;
            View::alloc(layout, dtype, &x.device(), self.name).map(Some)
        };
        let made = [alloc(results[0])?, alloc(results[1])?];
        let how = Reduction {
            op: self.op,
            dtype: self.dtype,
            number: self.number,
            dims,
        };
        backend(x.device())
            .reduce(&how, made.each_ref().map(Option::as_ref), x)
            .map_err(|e| e.op(self.name))?;
        Ok(made)
    }

    /// Extremes of nothing are not defined.
    fn check_identity(&self, x: &View, dims: &[usize]) -> Result<()> {
        use ReduceOp::{Amax, Amin, Max, Min, Norm};
        let needs = match self.op {
            Amax | Amin | Max | Min => true,
            Norm => self.number < 0.0 || self.number == f64::INFINITY,
            _ => false,
        };
        if !needs {
            return Ok(());
        }
        if self.dims.is_empty() && x.numel() == 0 {
            return Err(no_identity(self.name, "the tensor"));
        }
        match dims.iter().find(|&&d| x.shape()[d] == 0) {
            Some(d) => Err(no_identity(self.name, &format!("dim {d}"))),
            None => Ok(()),
        }
    }

    /// The first result.
    #[track_caller]
    pub(crate) fn one(&self, x: &View, result: DType) -> Result<View> {
        let [first, _] = self.run(x, [Some(result), None])?;
        Ok(first.expect("a result was asked for"))
    }

    /// The second result alone.
    #[track_caller]
    fn second(&self, x: &View, result: DType) -> Result<View> {
        let [_, second] = self.run(x, [None, Some(result)])?;
        Ok(second.expect("a result was asked for"))
    }

    /// Both results.
    #[track_caller]
    pub(crate) fn both(&self, x: &View, results: [DType; 2]) -> Result<(View, View)> {
        let [first, second] = self.run(x, results.map(Some))?;
        Ok(first.zip(second).expect("two results were asked for"))
    }
}

impl View {
    fn reduction<'a>(
        &self,
        name: &'static str,
        op: ReduceOp,
        dims: &'a [isize],
        keepdim: bool,
    ) -> Reduce<'a> {
        Reduce {
            name,
            op,
            dims,
            keepdim,
            dtype: self.dtype(),
            number: 0.0,
        }
    }

    /// The sum over dims (all for an empty list), in a dtype: for none `int64` for integers and `bool`, else
    /// this one. Elements are converted first.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn sum(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> Result<View> {
        self.summed("sum", ReduceOp::Sum, dims, keepdim, dtype)
    }

    /// The product, likewise.
    ///
    /// # Errors
    /// As [`View::sum`].
    #[track_caller]
    pub fn prod(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> Result<View> {
        self.summed("prod", ReduceOp::Prod, dims, keepdim, dtype)
    }

    /// The sum of what is not NaN, likewise.
    ///
    /// # Errors
    /// As [`View::sum`]; complex numbers.
    #[track_caller]
    pub fn nansum(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> Result<View> {
        if self.dtype().is_complex() {
            return Err(Error::new(Kind::DType, "not defined for complex numbers").op("nansum"));
        }
        let op = match dtype.unwrap_or(summed(self.dtype())).is_float() {
            true => ReduceOp::NanSum,
            false => ReduceOp::Sum,
        };
        self.summed("nansum", op, dims, keepdim, dtype)
    }

    #[track_caller]
    fn summed(
        &self,
        name: &'static str,
        op: ReduceOp,
        dims: &[isize],
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<View> {
        let dtype = dtype.unwrap_or(summed(self.dtype()));
        let how = self.reduction(name, op, dims, keepdim);
        match (dtype, op) {
            // Sums and products of truth values are `or` and `and`.
            (DType::Bool, ReduceOp::Sum) => Reduce {
                op: ReduceOp::Any,
                ..how
            }
            .one(self, dtype),
            (DType::Bool, ReduceOp::Prod) => Reduce {
                op: ReduceOp::All,
                ..how
            }
            .one(self, dtype),
            _ => Reduce { dtype, ..how }.one(self, dtype),
        }
    }

    /// The mean over dims (all for an empty list), in a dtype.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn mean(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> Result<View> {
        let dtype = dtype.unwrap_or(self.dtype());
        check_fractional(dtype, "mean")?;
        let count = self.count(dims).map_err(|e| e.op("mean"))?;
        let how = self.reduction("mean", ReduceOp::Mean, dims, keepdim);
        Reduce {
            dtype,
            number: count as f64,
            ..how
        }
        .one(self, dtype)
    }

    /// How many elements one result comes from.
    pub(crate) fn count(&self, dims: &[isize]) -> Result<usize> {
        Ok(listed(dims, self.dim())?
            .iter()
            .map(|&d| self.shape()[d])
            .product())
    }

    /// The mean of what is not NaN.
    ///
    /// # Errors
    /// As [`View::mean`]; complex numbers.
    #[track_caller]
    pub fn nanmean(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> Result<View> {
        check_fractional(self.dtype(), "nanmean")?;
        let dtype = dtype.unwrap_or(self.dtype());
        Reduce {
            dtype,
            ..self.reduction("nanmean", ReduceOp::NanMean, dims, keepdim)
        }
        .one(self, dtype)
    }

    /// Whether any element is true (not zero), over dims: `bool`, but `uint8` of `uint8`. `None` is all dims, and an empty
    /// list none.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn any(&self, dims: Option<&[isize]>, keepdim: bool) -> Result<View> {
        self.truth("any", ReduceOp::Any, dims, keepdim)
    }

    /// Whether all elements are, likewise.
    ///
    /// # Errors
    /// As [`View::any`].
    #[track_caller]
    pub fn all(&self, dims: Option<&[isize]>, keepdim: bool) -> Result<View> {
        self.truth("all", ReduceOp::All, dims, keepdim)
    }

    #[track_caller]
    fn truth(
        &self,
        name: &'static str,
        op: ReduceOp,
        dims: Option<&[isize]>,
        keepdim: bool,
    ) -> Result<View> {
        let how = self.reduction(name, op, dims.unwrap_or_default(), keepdim);
        let result = if self.dtype() == DType::U8 {
            DType::U8
        } else {
            DType::Bool
        };
        if dims.is_some_and(<[isize]>::is_empty) {
            let [made, _] = how.run_over(self, &[], [Some(result), None])?;
            return Ok(made.expect("a result was asked for"));
        }
        how.one(self, result)
    }

    /// How many elements are not zero.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn count_nonzero(&self, dims: &[isize]) -> Result<View> {
        self.reduction("count_nonzero", ReduceOp::CountNonzero, dims, false)
            .one(self, DType::I64)
    }

    /// The largest element over dims (all for an empty list); NaN where there is one.
    ///
    /// # Errors
    /// Complex numbers; a dim that is empty, out of range or named twice; out of memory.
    #[track_caller]
    pub fn amax(&self, dims: &[isize], keepdim: bool) -> Result<View> {
        self.reduction("amax", ReduceOp::Amax, dims, keepdim)
            .one(self, self.dtype())
    }

    /// The smallest element, likewise.
    ///
    /// # Errors
    /// As [`View::amax`].
    #[track_caller]
    pub fn amin(&self, dims: &[isize], keepdim: bool) -> Result<View> {
        self.reduction("amin", ReduceOp::Amin, dims, keepdim)
            .one(self, self.dtype())
    }

    /// The largest elements along a dim, and where the first of them are.
    ///
    /// # Errors
    /// As [`View::amax`].
    #[track_caller]
    pub fn max_dim(&self, dim: isize, keepdim: bool) -> Result<(View, View)> {
        self.reduction("max", ReduceOp::Max, &[dim], keepdim)
            .both(self, [self.dtype(), DType::I64])
    }

    /// The smallest elements along a dim, and where the first of them are.
    ///
    /// # Errors
    /// As [`View::amax`].
    #[track_caller]
    pub fn min_dim(&self, dim: isize, keepdim: bool) -> Result<(View, View)> {
        self.reduction("min", ReduceOp::Min, &[dim], keepdim)
            .both(self, [self.dtype(), DType::I64])
    }

    /// Where the first largest element is: along a dim, or counted in row-major order.
    ///
    /// # Errors
    /// As [`View::amax`]; `bool`.
    #[track_caller]
    pub fn argmax(&self, dim: Option<isize>, keepdim: bool) -> Result<View> {
        self.place("argmax", ReduceOp::Max, dim, keepdim)
    }

    /// Where the first smallest element is, likewise.
    ///
    /// # Errors
    /// As [`View::argmax`].
    #[track_caller]
    pub fn argmin(&self, dim: Option<isize>, keepdim: bool) -> Result<View> {
        self.place("argmin", ReduceOp::Min, dim, keepdim)
    }

    #[track_caller]
    fn place(
        &self,
        name: &'static str,
        op: ReduceOp,
        dim: Option<isize>,
        keepdim: bool,
    ) -> Result<View> {
        if self.dtype() == DType::Bool {
            return Err(
                Error::new(Kind::DType, "not defined for bool; cast with to() first").op(name),
            );
        }
        self.reduction(name, op, dim.as_slice(), keepdim)
            .second(self, DType::I64)
    }

    /// The variance over dims (all for an empty list), divided by the number of elements less a correction, and the
    /// mean.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn var_mean(&self, dims: &[isize], correction: f64, keepdim: bool) -> Result<(View, View)> {
        self.spread("var_mean", ReduceOp::Var, dims, correction, keepdim)?
            .both(self, [self.dtype().to_real(), self.dtype()])
    }

    /// The root of the variance, and the mean.
    ///
    /// # Errors
    /// As [`View::var_mean`].
    #[track_caller]
    pub fn std_mean(&self, dims: &[isize], correction: f64, keepdim: bool) -> Result<(View, View)> {
        self.spread("std_mean", ReduceOp::Std, dims, correction, keepdim)?
            .both(self, [self.dtype().to_real(), self.dtype()])
    }

    /// The variance alone.
    ///
    /// # Errors
    /// As [`View::var_mean`].
    #[track_caller]
    pub fn var(&self, dims: &[isize], correction: f64, keepdim: bool) -> Result<View> {
        self.spread("var", ReduceOp::Var, dims, correction, keepdim)?
            .one(self, self.dtype().to_real())
    }

    /// The root of the variance alone.
    ///
    /// # Errors
    /// As [`View::var_mean`].
    #[track_caller]
    pub fn std(&self, dims: &[isize], correction: f64, keepdim: bool) -> Result<View> {
        self.spread("std", ReduceOp::Std, dims, correction, keepdim)?
            .one(self, self.dtype().to_real())
    }

    #[track_caller]
    fn spread<'a>(
        &self,
        name: &'static str,
        op: ReduceOp,
        dims: &'a [isize],
        correction: f64,
        keepdim: bool,
    ) -> Result<Reduce<'a>> {
        check_fractional(self.dtype(), name)?;
        Ok(Reduce {
            number: correction,
            ..self.reduction(name, op, dims, keepdim)
        })
    }

    /// `log Σ e^x` over dims (all for an empty list), in `float32` of integers.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn logsumexp(&self, dims: &[isize], keepdim: bool) -> Result<View> {
        let own = self.dtype();
        let dtype = if own.category() < Category::Float {
            DType::F32
        } else {
            own
        };
        Reduce {
            dtype,
            ..self.reduction("logsumexp", ReduceOp::LogSumExp, dims, keepdim)
        }
        .one(self, dtype)
    }

    /// The norm of an order over dims (all for an empty list), in a dtype: the root of the sum of powers, the largest or smallest
    /// magnitude for ±infinity, the number of elements that are not 0 for 0.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice, or empty where the norm is a smallest
    /// or largest magnitude or the order negative; out of memory.
    #[track_caller]
    pub fn vector_norm(
        &self,
        order: f64,
        dims: &[isize],
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<View> {
        let name = "vector_norm";
        check_fractional(self.dtype(), name)?;
        let dtype = dtype.unwrap_or(self.dtype());
        check_fractional(dtype, name)?;
        Reduce {
            dtype,
            number: order,
            ..self.reduction(name, ReduceOp::Norm, dims, keepdim)
        }
        .one(self, dtype.to_real())
    }

    /// The norm of an order of the difference of two.
    ///
    /// # Errors
    /// Shapes that do not broadcast; as [`View::vector_norm`].
    #[track_caller]
    pub fn dist(&self, other: &View, order: f64) -> Result<View> {
        let args = [Arg::View(self), Arg::View(other)];
        let op = Op::Binary(BinaryOp::Sub);
        let apart = Call {
            name: "dist",
            op,
            compute: Compute::Promoted,
            args: &args,
            numbers: &[],
        }
        .fresh()?;
        apart.vector_norm(order, &[], false, None)
    }

    /// The sum of the diagonal of a matrix.
    ///
    /// # Errors
    /// Another rank; `bool`; out of memory.
    #[track_caller]
    pub fn trace(&self) -> Result<View> {
        if self.dim() != 2 {
            return Err(Error::new(
                Kind::Shape,
                format!("expected a matrix, got shape {:?}", self.shape()),
            )
            .op("trace"));
        }
        if self.dtype() == DType::Bool {
            return Err(
                Error::new(Kind::DType, "not defined for bool; cast with to() first").op("trace"),
            );
        }
        self.diagonal(0, 0, 1)?
            .summed("trace", ReduceOp::Sum, &[], false, None)
    }

    /// The sum over dims such that the result has this shape, which broadcasts to this tensor's: what expanding undoes.
    /// Itself where the shape is its own.
    ///
    /// # Errors
    /// A shape that does not broadcast to this one; out of memory.
    #[track_caller]
    pub fn sum_to_size(&self, shape: &[usize]) -> Result<View> {
        let op = "sum_to_size";
        if shape.is_empty() {
            return self.summed(op, ReduceOp::Sum, &[], false, None);
        }
        if shape == self.shape() {
            return self.alias();
        }
        let missing = self.dim().checked_sub(shape.len());
        let fits = |m: usize| {
            shape
                .iter()
                .zip(&self.shape()[m..])
                .all(|(&to, &s)| to == s || to == 1)
        };
        let Some(missing) = missing.filter(|&m| fits(m)) else {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "shape {shape:?} does not broadcast to shape {:?}",
                    self.shape()
                ),
            )
            .op(op));
        };
        let is_summed = |d: usize| d < missing || shape[d - missing] == 1;
        let dims: Dims = (0..self.dim()).filter(|&d| is_summed(d)).collect();
        let how = Reduce {
            keepdim: true,
            ..self.reduction(op, ReduceOp::Sum, &[], true)
        };
        let dtype = summed(self.dtype());
        let [sum, _] = Reduce { dtype, ..how }.run_over(self, &dims, [Some(dtype), None])?;
        let sum = sum.expect("a result was asked for");
        let layout = Layout::contiguous(shape).map_err(|e| e.op(op))?;
        sum.with_layout(layout, op)
    }
}

/// Checks that a dtype has fractions.
pub(crate) fn check_fractional(dtype: DType, op: &'static str) -> Result<()> {
    if dtype.category() >= Category::Float {
        return Ok(());
    }
    Err(Error::new(
        Kind::DType,
        format!("expected a floating point or complex dtype, got {dtype}; cast with to() first"),
    )
    .op(op))
}
