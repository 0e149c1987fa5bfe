//! Scans: cumulative sums and their like. Results are contiguous, whatever the input.

use crate::backend::backend;
use crate::reduce::{Reduction, listed};
use crate::{View, write};
use osteon_kernels::{self as kernels, ReduceOp};
use osteon_spec::{Category, DType, Error, Kind, Layout, Result};
use std::panic::Location;

/// One call of a scan.
struct Scan {
    name: &'static str,
    op: ReduceOp,
    dim: isize,
    dtype: DType,
}

impl Scan {
    #[track_caller]
    fn fresh(&self, x: &View, results: [Option<DType>; 2]) -> Result<[Option<View>; 2]> {
        self.check(x)?;
        let alloc = |dtype: Option<DType>| {
            let Some(dtype) = dtype else { return Ok(None) };
            let layout = Layout::contiguous(x.shape()).map_err(|e| e.op(self.name))?;
            View::alloc(layout, dtype, &x.device(), self.name).map(Some)
        };
        let made = [alloc(results[0])?, alloc(results[1])?];
        self.run(x, made.each_ref().map(Option::as_ref))?;
        Ok(made)
    }

    #[track_caller]
    fn one(&self, x: &View) -> Result<View> {
        let [made, _] = self.fresh(x, [Some(self.dtype), None])?;
        Ok(made.expect("a result was asked for"))
    }

    #[track_caller]
    fn both(&self, x: &View) -> Result<(View, View)> {
        let [first, second] = self.fresh(x, [Some(self.dtype), Some(DType::I64)])?;
        Ok(first.zip(second).expect("two results were asked for"))
    }

    #[track_caller]
    fn in_place(&self, x: &View) -> Result<()> {
        self.check(x)?;
        write::check_itself(x, self.name)?;
        self.run(x, [Some(x), None])?;
        x.storage().record_write(self.name, Location::caller());
        Ok(())
    }

    fn check(&self, x: &View) -> Result<()> {
        listed(&[self.dim], x.dim()).map_err(|e| e.op(self.name))?;
        if kernels::reduce(self.op, self.dtype, 0.0).is_none() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", self.dtype),
            )
            .op(self.name));
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
        backend(x.device())
            .scan(&how, dst, x)
            .map_err(|e| e.op(self.name))
    }
}

impl View {
    /// The sums of the elements up to each along a dim, in a dtype: for none `int64` for integers and `bool`, else this one.
    ///
    /// # Errors
    /// A dim out of range; out of memory.
    #[track_caller]
    pub fn cumsum(&self, dim: isize, dtype: Option<DType>) -> Result<View> {
        self.accumulation("cumsum", ReduceOp::Sum, dim, dtype)?
            .one(self)
    }

    /// The products, likewise.
    ///
    /// # Errors
    /// As [`View::cumsum`].
    #[track_caller]
    pub fn cumprod(&self, dim: isize, dtype: Option<DType>) -> Result<View> {
        self.accumulation("cumprod", ReduceOp::Prod, dim, dtype)?
            .one(self)
    }

    /// [`View::cumsum`] in place, in this dtype.
    ///
    /// # Errors
    /// A dim out of range; overlap; a guard in the way.
    #[track_caller]
    pub fn cumsum_(&self, dim: isize) -> Result<()> {
        self.accumulation("cumsum_", ReduceOp::Sum, dim, Some(self.dtype()))?
            .in_place(self)
    }

    /// [`View::cumprod`] in place, in this dtype.
    ///
    /// # Errors
    /// As [`View::cumsum_`].
    #[track_caller]
    pub fn cumprod_(&self, dim: isize) -> Result<()> {
        self.accumulation("cumprod_", ReduceOp::Prod, dim, Some(self.dtype()))?
            .in_place(self)
    }

    fn accumulation(
        &self,
        name: &'static str,
        op: ReduceOp,
        dim: isize,
        dtype: Option<DType>,
    ) -> Result<Scan> {
        let own = self.dtype();
        let natural = if own.category() < Category::Float {
            DType::I64
        } else {
            own
        };
        let dtype = dtype.unwrap_or(natural);
        if dtype == DType::Bool {
            return Err(
                Error::new(Kind::DType, "not defined in bool; give another dtype").op(name),
            );
        }
        Ok(Scan {
            name,
            op,
            dim,
            dtype,
        })
    }

    /// The largest elements up to each along a dim, and where the last of them are.
    ///
    /// # Errors
    /// Complex numbers; a dim out of range; out of memory.
    #[track_caller]
    pub fn cummax(&self, dim: isize) -> Result<(View, View)> {
        Scan {
            name: "cummax",
            op: ReduceOp::LastMax,
            dim,
            dtype: self.dtype(),
        }
        .both(self)
    }

    /// The smallest elements, likewise.
    ///
    /// # Errors
    /// As [`View::cummax`].
    #[track_caller]
    pub fn cummin(&self, dim: isize) -> Result<(View, View)> {
        Scan {
            name: "cummin",
            op: ReduceOp::LastMin,
            dim,
            dtype: self.dtype(),
        }
        .both(self)
    }

    /// `log Σ e^x` of the elements up to each along a dim.
    ///
    /// # Errors
    /// Integers; a dim out of range; out of memory.
    #[track_caller]
    pub fn logcumsumexp(&self, dim: isize) -> Result<View> {
        let name = "logcumsumexp";
        crate::reduce::check_fractional(self.dtype(), name)?;
        Scan {
            name,
            op: ReduceOp::LogCumSumExp,
            dim,
            dtype: self.dtype(),
        }
        .one(self)
    }
}
