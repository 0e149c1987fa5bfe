//! Reductions of dims to one element. Results are contiguous, whatever the input.

use crate::backend::backend;
use crate::target::{Reads, Target, with_out};
use crate::{Call, Compute, Op, UnaryOp, View};
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
    pub(crate) to: Target<'a>,
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
        let dims = listed(self.dims, x.dim()).map_err(|e| e.op(self.to.op))?;
        self.run_over(x, &dims, results)
    }

    #[track_caller]
    fn run_over(
        &self,
        x: &View,
        dims: &[usize],
        results: [Option<DType>; 2],
    ) -> Result<[Option<View>; 2]> {
        let layout = self.layout(x, dims)?;
        let how = Reduction {
            op: self.op,
            dtype: self.dtype,
            number: self.number,
            dims,
        };
        let kind = (results, x.device());
        self.to
            .write_both(&layout, kind, Reads::Apart(&[x]), |made| {
                backend(x.device()).reduce(&how, made, x)
            })
    }

    /// The layout of the result, if there is one.
    fn layout(&self, x: &View, dims: &[usize]) -> Result<Layout> {
        if kernels::reduce(self.op, self.dtype, self.number).is_none() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", self.dtype),
            )
            .op(self.to.op));
        }
        self.check_identity(x, dims)?;
        let shape = x.shape().iter().enumerate().filter_map(|(d, &size)| {
            let is_reduced = dims.contains(&d);
            (self.keepdim || !is_reduced).then_some(if is_reduced { 1 } else { size })
        });
        Layout::contiguous(&shape.collect::<Dims>()).map_err(|e| e.op(self.to.op))
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
            return Err(no_identity(self.to.op, "the tensor"));
        }
        match dims.iter().find(|&&d| x.shape()[d] == 0) {
            Some(d) => Err(no_identity(self.to.op, &format!("dim {d}"))),
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
        op: ReduceOp,
        dims: &'a [isize],
        keepdim: bool,
        to: Target<'a>,
    ) -> Reduce<'a> {
        Reduce {
            to,
            op,
            dims,
            keepdim,
            dtype: self.dtype(),
            number: 0.0,
        }
    }

    /// In a dtype, or that of the given `out`, or the one that sums have.
    #[track_caller]
    fn summed(
        &self,
        op: ReduceOp,
        dims: &[isize],
        keepdim: bool,
        dtype: Option<DType>,
        to: Target<'_>,
    ) -> Result<View> {
        let dtype = dtype.or(to.dtype()).unwrap_or(summed(self.dtype()));
        let how = self.reduction(op, dims, keepdim, to);
        // Sums and products of truth values are `or` and `and`.
        let truth = match (dtype, op) {
            (DType::Bool, ReduceOp::Sum) => Some(ReduceOp::Any),
            (DType::Bool, ReduceOp::Prod) => Some(ReduceOp::All),
            _ => None,
        };
        match truth {
            Some(op) => Reduce { op, ..how },
            None => Reduce { dtype, ..how },
        }
        .one(self, dtype)
    }

    /// How many elements one result of a reduction over dims (all for an empty list) comes from.
    ///
    /// # Errors
    /// A dim out of range or named twice.
    pub fn count(&self, dims: &[isize]) -> Result<usize> {
        Ok(listed(dims, self.dim())?
            .iter()
            .map(|&d| self.shape()[d])
            .product())
    }

    #[track_caller]
    fn truth(
        &self,
        op: ReduceOp,
        dims: Option<&[isize]>,
        keepdim: bool,
        to: Target<'_>,
    ) -> Result<View> {
        let how = self.reduction(op, dims.unwrap_or_default(), keepdim, to);
        let natural = match self.dtype() {
            DType::U8 => DType::U8,
            _ => DType::Bool,
        };
        // Both hold a truth value.
        let result = match to.dtype() {
            Some(given @ (DType::U8 | DType::Bool)) => given,
            _ => natural,
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
        let to = Target::fresh("count_nonzero");
        self.reduction(ReduceOp::CountNonzero, dims, false, to)
            .one(self, DType::I64)
    }

    #[track_caller]
    fn place(
        &self,
        op: ReduceOp,
        dim: Option<isize>,
        keepdim: bool,
        to: Target<'_>,
    ) -> Result<View> {
        if self.dtype() == DType::Bool {
            return Err(
                Error::new(Kind::DType, "not defined for bool; cast with to() first").op(to.op),
            );
        }
        self.reduction(op, dim.as_slice(), keepdim, to.second())
            .second(self, DType::I64)
    }

    /// The variance over dims (all for an empty list), divided by the number of elements less a correction, and the
    /// mean.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn var_mean(&self, dims: &[isize], correction: f64, keepdim: bool) -> Result<(View, View)> {
        let to = Target::fresh("var_mean");
        self.spread(ReduceOp::Var, dims, correction, keepdim, to)?
            .both(self, [self.dtype().to_real(), self.dtype()])
    }

    /// The root of the variance, and the mean.
    ///
    /// # Errors
    /// As [`View::var_mean`].
    #[track_caller]
    pub fn std_mean(&self, dims: &[isize], correction: f64, keepdim: bool) -> Result<(View, View)> {
        let to = Target::fresh("std_mean");
        self.spread(ReduceOp::Std, dims, correction, keepdim, to)?
            .both(self, [self.dtype().to_real(), self.dtype()])
    }

    #[track_caller]
    fn spread<'a>(
        &self,
        op: ReduceOp,
        dims: &'a [isize],
        correction: f64,
        keepdim: bool,
        to: Target<'a>,
    ) -> Result<Reduce<'a>> {
        check_fractional(self.dtype(), to.op)?;
        if let Some(given) = to.dtype().filter(|d| d.is_complex())
            && !self.dtype().is_complex()
        {
            let message = format!("the result is real, but out holds {given}");
            return Err(Error::new(Kind::DType, message).op(to.op));
        }
        Ok(Reduce {
            number: correction,
            ..self.reduction(op, dims, keepdim, to.casting())
        })
    }
}

with_out! { to;
    /// The sum over dims (all for an empty list), in a dtype: for none that of a given `out`, else `int64` for integers and
    /// `bool`, else this one. Elements are converted first.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    sum sum_out(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> View {
        self.summed(ReduceOp::Sum, dims, keepdim, dtype, to)
    }

    /// The product, likewise.
    ///
    /// # Errors
    /// As [`View::sum`].
    prod prod_out(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> View {
        self.summed(ReduceOp::Prod, dims, keepdim, dtype, to)
    }

    /// The sum of what is not NaN, likewise.
    ///
    /// # Errors
    /// As [`View::sum`]; complex numbers; floats into an `out` of integers that no dtype asks for.
    nansum nansum_out(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> View {
        let wanted = dtype.or(to.dtype()).unwrap_or(summed(self.dtype()));
        let loses_nan = self.dtype().is_float() && !wanted.is_float();
        if self.dtype().is_complex() || (loses_nan && (dtype.is_none() || wanted.is_complex())) {
            let message = format!("not defined for {} as {wanted}", self.dtype());
            return Err(Error::new(Kind::DType, message).op(to.op));
        }
        if loses_nan {
            let is_nan = Call {
                name: to.op,
                op: Op::Unary(UnaryOp::IsNan),
                compute: Compute::Promoted,
                args: &[self.into()],
                numbers: &[],
            };
            let numbers = self.masked_fill(&is_nan.fresh()?, 0.0.into())?;
            return numbers.summed(ReduceOp::Sum, dims, keepdim, dtype, to);
        }
        let op = if wanted.is_float() { ReduceOp::NanSum } else { ReduceOp::Sum };
        self.summed(op, dims, keepdim, Some(wanted), to)
    }

    /// The mean over dims (all for an empty list), in a dtype: for none that of a given `out`, else this one.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice; out of memory.
    mean mean_out(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> View {
        check_fractional(dtype.unwrap_or(self.dtype()), to.op)?;
        let dtype = dtype.or(to.dtype()).unwrap_or(self.dtype());
        check_fractional(dtype, to.op)?;
        let count = self.count(dims).map_err(|e| e.op(to.op))?;
        let how = self.reduction(ReduceOp::Mean, dims, keepdim, to);
        Reduce { dtype, number: count as f64, ..how }.one(self, dtype)
    }

    /// The mean of what is not NaN.
    ///
    /// # Errors
    /// As [`View::mean`]; complex numbers.
    nanmean nanmean_out(&self, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> View {
        check_fractional(self.dtype(), to.op)?;
        if self.dtype().is_complex() {
            return Err(Error::new(Kind::DType, "not defined for complex numbers").op(to.op));
        }
        let dtype = dtype.or(to.dtype()).unwrap_or(self.dtype());
        check_fractional(dtype, to.op)?;
        let how = self.reduction(ReduceOp::NanMean, dims, keepdim, to);
        Reduce { dtype, ..how }.one(self, dtype)
    }

    /// Whether any element is true (not zero), over dims: `bool`, but `uint8` of `uint8`; a given `out` may have either. `None`
    /// is all dims, and an empty list none.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    any any_out(&self, dims: Option<&[isize]>, keepdim: bool) -> View {
        self.truth(ReduceOp::Any, dims, keepdim, to)
    }

    /// Whether all elements are, likewise.
    ///
    /// # Errors
    /// As [`View::any`].
    all all_out(&self, dims: Option<&[isize]>, keepdim: bool) -> View {
        self.truth(ReduceOp::All, dims, keepdim, to)
    }

    /// The largest element over dims (all for an empty list); NaN where there is one.
    ///
    /// # Errors
    /// Complex numbers; a dim that is empty, out of range or named twice; out of memory.
    amax amax_out(&self, dims: &[isize], keepdim: bool) -> View {
        self.reduction(ReduceOp::Amax, dims, keepdim, to).one(self, self.dtype())
    }

    /// The smallest element, likewise.
    ///
    /// # Errors
    /// As [`View::amax`].
    amin amin_out(&self, dims: &[isize], keepdim: bool) -> View {
        self.reduction(ReduceOp::Amin, dims, keepdim, to).one(self, self.dtype())
    }

    /// The smallest and the largest element over dims.
    ///
    /// # Errors
    /// As [`View::amax`].
    aminmax aminmax_out(&self, dims: &[isize], keepdim: bool) -> (View, View) {
        let how = self.reduction(ReduceOp::Amin, dims, keepdim, to);
        let dims = listed(dims, self.dim()).map_err(|e| e.op(to.op))?;
        let (dtype, number) = (self.dtype(), 0.0);
        let kind = ([Some(dtype); 2], self.device());
        let reads = Reads::Apart(&[self]);
        let made = to.write_both(&how.layout(self, &dims)?, kind, reads, |[least, most]| {
            for (op, made) in [(ReduceOp::Amin, least), (ReduceOp::Amax, most)] {
                let how = Reduction { op, dtype, number, dims: &dims };
                backend(self.device()).reduce(&how, [made, None], self)?;
            }
            Ok(())
        })?;
        let [least, most] = made;
        Ok(least.zip(most).expect("both results were asked for"))
    }

    /// The largest elements along a dim, and where the first of them are.
    ///
    /// # Errors
    /// As [`View::amax`].
    max_dim max_dim_out(&self, dim: isize, keepdim: bool) -> (View, View) {
        let results = [self.dtype(), DType::I64];
        self.reduction(ReduceOp::Max, &[dim], keepdim, to).both(self, results)
    }

    /// The smallest elements along a dim, and where the first of them are.
    ///
    /// # Errors
    /// As [`View::amax`].
    min_dim min_dim_out(&self, dim: isize, keepdim: bool) -> (View, View) {
        let results = [self.dtype(), DType::I64];
        self.reduction(ReduceOp::Min, &[dim], keepdim, to).both(self, results)
    }

    /// Where the first largest element is: along a dim, or counted in row-major order.
    ///
    /// # Errors
    /// As [`View::amax`]; `bool`.
    argmax argmax_out(&self, dim: Option<isize>, keepdim: bool) -> View {
        self.place(ReduceOp::Max, dim, keepdim, to)
    }

    /// Where the first smallest element is, likewise.
    ///
    /// # Errors
    /// As [`View::argmax`].
    argmin argmin_out(&self, dim: Option<isize>, keepdim: bool) -> View {
        self.place(ReduceOp::Min, dim, keepdim, to)
    }

    /// The variance alone. A given `out` may hold another real dtype.
    ///
    /// # Errors
    /// As [`View::var_mean`].
    var var_out(&self, dims: &[isize], correction: f64, keepdim: bool) -> View {
        self.spread(ReduceOp::Var, dims, correction, keepdim, to)?.one(self, self.dtype().to_real())
    }

    /// The root of the variance alone, likewise.
    ///
    /// # Errors
    /// As [`View::var_mean`].
    std std_out(&self, dims: &[isize], correction: f64, keepdim: bool) -> View {
        self.spread(ReduceOp::Std, dims, correction, keepdim, to)?.one(self, self.dtype().to_real())
    }

    /// `log Σ e^x` over dims (all for an empty list), in `float32` of integers. A given `out` may hold another dtype with
    /// fractions.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    logsumexp logsumexp_out(&self, dims: &[isize], keepdim: bool) -> View {
        let dtype = match self.dtype() {
            own if own.category() < Category::Float => DType::F32,
            own => own,
        };
        let how = self.reduction(ReduceOp::LogSumExp, dims, keepdim, to.casting());
        Reduce { dtype, ..how }.one(self, dtype)
    }

    /// The norm of an order over dims (all for an empty list), in a dtype: the root of the sum of powers, the largest or smallest
    /// magnitude for ±infinity, the number of elements that are not 0 for 0.
    ///
    /// # Errors
    /// A dtype without fractions; a dim out of range or named twice, or empty where the norm is a smallest
    /// or largest magnitude or the order negative; out of memory.
    vector_norm vector_norm_out(&self, order: f64, dims: &[isize], keepdim: bool, dtype: Option<DType>) -> View {
        check_fractional(self.dtype(), to.op)?;
        let dtype = dtype.unwrap_or(self.dtype());
        check_fractional(dtype, to.op)?;
        let how = self.reduction(ReduceOp::Norm, dims, keepdim, to);
        Reduce { dtype, number: order, ..how }.one(self, dtype.to_real())
    }
}

impl View {
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
            .summed(ReduceOp::Sum, &[], false, None, Target::fresh("trace"))
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
            return self.summed(ReduceOp::Sum, &[], false, None, Target::fresh(op));
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
            ..self.reduction(ReduceOp::Sum, &[], true, Target::fresh(op))
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
