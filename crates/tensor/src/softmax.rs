//! Softmax and its kin: a loop over rows, or a reduction and then a loop over the elements. Results are contiguous.

use crate::View;
use crate::backend::backend;
use crate::reduce::{Reduce, check_fractional, listed};
use crate::target::{Reads, Target, with_out};
use osteon_kernels::{ReduceOp, RowOp, SoftmaxOp};
use osteon_spec::{DType, Error, Kind, Layout, Result};

/// The dtype in which what is known of many elements of this dtype is kept.
pub(crate) fn accurate(dtype: DType) -> DType {
    if dtype.is_float() && dtype.size() == 2 {
        DType::F32
    } else {
        dtype
    }
}

with_out! { to;
    /// `e^x / Σ e^x` along a dim.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    softmax softmax_out(&self, dim: isize) -> View {
        self.normalized_exponentials(SoftmaxOp::Softmax, dim, to)
    }

    /// The logarithm of [`View::softmax`], exact where that is too small.
    ///
    /// # Errors
    /// As [`View::softmax`].
    log_softmax log_softmax_out(&self, dim: isize) -> View {
        self.normalized_exponentials(SoftmaxOp::LogSoftmax, dim, to)
    }
}

impl View {
    #[track_caller]
    fn normalized_exponentials(&self, op: SoftmaxOp, dim: isize, to: Target<'_>) -> Result<View> {
        let dtype = self.dtype();
        check_fractional(dtype, to.op)?;
        if dtype.is_complex() {
            return Err(Error::new(Kind::DType, "not defined for complex numbers").op(to.op));
        }
        let dims = listed(&[dim], self.dim()).map_err(|e| e.op(to.op))?;
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(to.op))?;
        let kind = (dtype, self.device());
        to.write(layout, kind, Reads::Each(&[self]), |out| {
            let backend = backend(self.device());
            let (whole, reduction) = match op {
                SoftmaxOp::LogSoftmax => (RowOp::LogSoftmax, ReduceOp::LogSoftmax),
                _ => (RowOp::Softmax, ReduceOp::Softmax),
            };
            if backend.rows(whole, (dtype, 0.0), &[out.into(), self.into()], &dims)? {
                return Ok(());
            }
            let how = Reduce {
                to: Target::fresh(to.op),
                op: reduction,
                dims: &[dim],
                keepdim: true,
                dtype,
                number: 0.0,
            };
            let (max, rest) = how.both(self, [accurate(dtype); 2])?;
            backend.softmax(op, dtype, out, [self.into(), (&max).into(), (&rest).into()])
        })
    }
}
