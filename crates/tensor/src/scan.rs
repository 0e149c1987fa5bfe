//! Scans: cumulative sums and their like. Results are contiguous, whatever the input.

use crate::backend::backend;
use crate::matmul::check_factors;
use crate::reduce::{Reduction, check_fractional, listed};
use crate::target::{Reads, Target, with_out};
use crate::{View, write};
use osteon_kernels::{self as kernels, ReduceOp};
use osteon_memory::here;
use osteon_spec::{Category, DType, Error, Kind, Layout, Result};

/// One call of a scan.
struct Scan<'a> {
    to: Target<'a>,
    op: ReduceOp,
    dim: isize,
    dtype: DType,
}

impl Scan<'_> {
    #[track_caller]
    fn results(&self, x: &View, second: Option<DType>) -> Result<[Option<View>; 2]> {
        self.check(x)?;
        let layout = Layout::contiguous(x.shape()).map_err(|e| e.op(self.to.op))?;
        let kind = ([Some(self.dtype), second], x.device());
        self.to
            .write_both(&layout, kind, Reads::Each(&[x]), |made| self.run(x, made))
    }

    #[track_caller]
    fn one(&self, x: &View) -> Result<View> {
        let [made, _] = self.results(x, None)?;
        Ok(made.expect("a result was asked for"))
    }

    #[track_caller]
    fn both(&self, x: &View) -> Result<(View, View)> {
        let [first, second] = self.results(x, Some(DType::I64))?;
        Ok(first.zip(second).expect("two results were asked for"))
    }

    #[track_caller]
    fn in_place(&self, x: &View) -> Result<()> {
        self.check(x)?;
        write::check_itself(x, self.to.op)?;
        self.run(x, [Some(x), None]).map_err(|e| e.op(self.to.op))?;
        x.storage().record_write(self.to.op, here());
        Ok(())
    }

    fn check(&self, x: &View) -> Result<()> {
        listed(&[self.dim], x.dim()).map_err(|e| e.op(self.to.op))?;
        if kernels::reduce(self.op, self.dtype, 0.0).is_none() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", self.dtype),
            )
            .op(self.to.op));
        }
        Ok(())
    }

    fn run(&self, x: &View, dst: [Option<&View>; 2]) -> Result<()> {
        let dims = listed(&[self.dim], x.dim())?;
        let how = Reduction {
            op: self.op,
            dtype: self.dtype,
            number: 0.0,
            dims: &dims,
        };
        backend(x.device()).scan(&how, dst, x)
    }
}

with_out! { to;
    /// The sums of the elements up to each along a dim, in a dtype: for none that of a given `out`, else `int64` for integers
    /// and `bool`, else this one.
    ///
    /// # Errors
    /// A dim out of range; out of memory.
    cumsum cumsum_out(&self, dim: isize, dtype: Option<DType>) -> View {
        self.accumulation(ReduceOp::Sum, dim, dtype, to)?.one(self)
    }

    /// The products, likewise.
    ///
    /// # Errors
    /// As [`View::cumsum`].
    cumprod cumprod_out(&self, dim: isize, dtype: Option<DType>) -> View {
        self.accumulation(ReduceOp::Prod, dim, dtype, to)?.one(self)
    }

    /// The largest elements up to each along a dim, and where the last of them are.
    ///
    /// # Errors
    /// Complex numbers; a dim out of range; out of memory.
    cummax cummax_out(&self, dim: isize) -> (View, View) {
        Scan { to, op: ReduceOp::LastMax, dim, dtype: self.dtype() }.both(self)
    }

    /// The smallest elements, likewise.
    ///
    /// # Errors
    /// As [`View::cummax`].
    cummin cummin_out(&self, dim: isize) -> (View, View) {
        Scan { to, op: ReduceOp::LastMin, dim, dtype: self.dtype() }.both(self)
    }

    /// `log Σ e^x` of the elements up to each along a dim.
    ///
    /// # Errors
    /// Integers; a dim out of range; out of memory.
    logcumsumexp logcumsumexp_out(&self, dim: isize) -> View {
        check_fractional(self.dtype(), to.op)?;
        Scan { to, op: ReduceOp::LogCumSumExp, dim, dtype: self.dtype() }.one(self)
    }
}

impl View {
    /// `y[i] = x[i] + factor[i] · y[i - 1]` along a dim, or backwards `y[i] = x[i] + factor[i + 1] · y[i + 1]`, of two
    /// views of one shape and dtype, in one pass.
    ///
    /// # Errors
    /// Integers and half precision; a dim out of range; shapes or dtypes that differ; out of memory.
    #[track_caller]
    pub fn recurrence(&self, factor: &View, dim: isize, backwards: bool) -> Result<View> {
        let op = "recurrence";
        let dim = self.existing_dim(dim, op)?;
        check_factors(self, factor, op)?;
        let is_full = matches!(self.dtype(), DType::F32 | DType::F64) || self.dtype().is_complex();
        if !is_full || self.shape() != factor.shape() {
            let message = format!(
                "expected two views of one shape, of floats or complex numbers of full precision, got {} {:?} and {:?}",
                self.dtype(),
                self.shape(),
                factor.shape()
            );
            return Err(Error::new(Kind::Value, message).op(op));
        }
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(op))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        backend(self.device())
            .recurrence(&out, [self, factor], dim, backwards)
            .map_err(|e| e.op(op))?;
        Ok(out)
    }

    /// [`View::cumsum`] in place, in this dtype.
    ///
    /// # Errors
    /// A dim out of range; overlap; a guard in the way.
    #[track_caller]
    pub fn cumsum_(&self, dim: isize) -> Result<()> {
        let to = Target::fresh("cumsum_");
        self.accumulation(ReduceOp::Sum, dim, Some(self.dtype()), to)?
            .in_place(self)
    }

    /// [`View::cumprod`] in place, in this dtype.
    ///
    /// # Errors
    /// As [`View::cumsum_`].
    #[track_caller]
    pub fn cumprod_(&self, dim: isize) -> Result<()> {
        let to = Target::fresh("cumprod_");
        self.accumulation(ReduceOp::Prod, dim, Some(self.dtype()), to)?
            .in_place(self)
    }

    fn accumulation<'a>(
        &self,
        op: ReduceOp,
        dim: isize,
        dtype: Option<DType>,
        to: Target<'a>,
    ) -> Result<Scan<'a>> {
        let natural = match self.dtype() {
            own if own.category() < Category::Float => DType::I64,
            own => own,
        };
        let dtype = dtype.or(to.dtype()).unwrap_or(natural);
        if dtype == DType::Bool {
            return Err(
                Error::new(Kind::DType, "not defined in bool; give another dtype").op(to.op),
            );
        }
        Ok(Scan { to, op, dim, dtype })
    }
}
