//! Softmax and its kin: one reduction, then one loop over the elements. Results are contiguous.

use crate::backend::{Arg, backend};
use crate::reduce::{Reduce, check_fractional};
use crate::{Call, Compute, Op, UnaryOp, View};
use osteon_kernels::{ReduceOp, SoftmaxOp};
use osteon_spec::{DType, Error, Kind, Layout, Result};

/// The dtype in which what is known of many elements of this dtype is kept.
pub(crate) fn accurate(dtype: DType) -> DType {
    if dtype.is_float() && dtype.size() == 2 {
        DType::F32
    } else {
        dtype
    }
}

impl View {
    /// `e^x / Σ e^x` along a dim. With a dtype the elements are converted first, as a logged copy.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    #[track_caller]
    pub fn softmax(&self, dim: isize, dtype: Option<DType>) -> Result<View> {
        self.normalized_exponentials("softmax", SoftmaxOp::Softmax, dim, dtype)
    }

    /// The logarithm of [`View::softmax`], exact where that is too small.
    ///
    /// # Errors
    /// As [`View::softmax`].
    #[track_caller]
    pub fn log_softmax(&self, dim: isize, dtype: Option<DType>) -> Result<View> {
        self.normalized_exponentials("log_softmax", SoftmaxOp::LogSoftmax, dim, dtype)
    }

    /// [`View::softmax`] of `-x`.
    ///
    /// # Errors
    /// As [`View::softmax`].
    #[track_caller]
    pub fn softmin(&self, dim: isize, dtype: Option<DType>) -> Result<View> {
        let (args, op) = ([Arg::View(self)], Op::Unary(UnaryOp::Neg));
        let minus = Call {
            name: "softmin",
            op,
            compute: Compute::Promoted,
            args: &args,
            numbers: &[],
        }
        .fresh()?;
        minus.softmax(dim, dtype)
    }

    #[track_caller]
    fn normalized_exponentials(
        &self,
        name: &'static str,
        op: SoftmaxOp,
        dim: isize,
        dtype: Option<DType>,
    ) -> Result<View> {
        if let Some(dtype) = dtype.filter(|&d| d != self.dtype()) {
            return self
                .to_dtype(dtype)?
                .normalized_exponentials(name, op, dim, None);
        }
        let dtype = self.dtype();
        check_fractional(dtype, name)?;
        if dtype.is_complex() {
            return Err(Error::new(Kind::DType, "not defined for complex numbers").op(name));
        }
        let how = Reduce {
            name,
            op: ReduceOp::Exponentials,
            dims: &[dim],
            keepdim: true,
            dtype,
            number: 0.0,
        };
        let (max, sum) = how.both(self, [accurate(dtype); 2])?;
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(name))?;
        let out = View::alloc(layout, dtype, &self.device(), name)?;
        backend(self.device())
            .softmax(op, dtype, &out, [self.into(), (&max).into(), (&sum).into()])
            .map_err(|e| e.op(name))?;
        Ok(out)
    }
}
