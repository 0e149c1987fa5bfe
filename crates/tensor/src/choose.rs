//! One of two values for each element, by a mask.

use crate::View;
use crate::backend::{Arg, backend};
use crate::elementwise::other_device;
use osteon_spec::{
    DType, Error, Kind, Layout, Result, Scalar, broadcast_shapes, elementwise_output,
    result_type,
};

impl View {
    /// `a` where this mask is true, else `b`.
    ///
    /// # Errors
    /// A mask that is neither `bool` nor `uint8`; shapes that do not broadcast; dtypes that do not promote; a
    /// number that the dtype cannot hold; out of memory.
    #[track_caller]
    pub fn where_cond(&self, a: Arg<'_>, b: Arg<'_>) -> Result<View> {
        let op = "where";
        if self.dtype() != DType::Bool && self.dtype() != DType::U8 {
            return Err(not_a_mask(self).op(op));
        }
        let dtype = result_type(&[a.operand(), b.operand()]).map_err(|e| e.op(op))?;
        let scalar = Layout::scalar();
        let mut layouts = [self.layout(), &scalar, &scalar];
        for (k, arg) in [a, b].into_iter().enumerate() {
            match arg {
                Arg::View(v) if v.device() != self.device() => {
                    return Err(other_device(self.device(), v.device()).op(op));
                }
                Arg::View(v) => layouts[k + 1] = v.layout(),
                Arg::Number(n) => n.check_fits(dtype).map_err(|e| e.op(op))?,
            }
        }
        let layout = broadcast_shapes(&layouts.map(Layout::sizes))
            .and_then(|shape| elementwise_output(&layouts, &shape))
            .map_err(|e| e.op(op))?;
        let out = View::alloc(layout, dtype, &self.device(), op)?;
        backend(self.device()).select(&out, self, a, b).map_err(|e| e.op(op))?;
        Ok(out)
    }

    /// A contiguous copy, of the shape that both broadcast to, with `value` where the mask is true.
    ///
    /// # Errors
    /// A mask that is not `bool`; shapes that do not broadcast; a value that this dtype cannot hold, or of more
    /// than one element; out of memory.
    #[track_caller]
    pub fn masked_fill(&self, mask: &View, value: Arg<'_>) -> Result<View> {
        let op = "masked_fill";
        if mask.dtype() != DType::Bool {
            return Err(not_a_mask(mask).op(op));
        }
        if mask.device() != self.device() {
            return Err(other_device(self.device(), mask.device()).op(op));
        }
        let value = self.filler(value).map_err(|e| e.op(op))?;
        let layout = broadcast_shapes(&[self.shape(), mask.shape()])
            .and_then(|shape| Layout::contiguous(&shape))
            .map_err(|e| e.op(op))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        backend(self.device())
            .select(&out, mask, value.into(), self.into())
            .map_err(|e| e.op(op))?;
        Ok(out)
    }

    /// A tensor laid out like this one, with `value` everywhere.
    ///
    /// # Errors
    /// A value that this dtype cannot hold, or of more than one element; out of memory.
    #[track_caller]
    pub fn fill(&self, value: Arg<'_>) -> Result<View> {
        let op = "fill";
        let value = self.filler(value).map_err(|e| e.op(op))?;
        self.full_like(value, self.dtype(), op)
    }

    /// The one number that an argument gives for elements of this dtype.
    pub(crate) fn filler(&self, value: Arg<'_>) -> Result<Scalar> {
        let number = match value {
            Arg::Number(n) => n,
            Arg::View(v) if v.dim() > 0 => {
                return Err(Error::new(
                    Kind::Shape,
                    format!("the value must be a number or a 0-dim tensor, got shape {:?}", v.shape()),
                ));
            }
            Arg::View(v) if v.dtype().is_complex() && !self.dtype().is_complex() => {
                return Err(Error::new(
                    Kind::DType,
                    format!("a {} value does not fit a {} tensor", v.dtype(), self.dtype()),
                ));
            }
            Arg::View(v) => v.item()?,
        };
        number.check_fits(self.dtype())?;
        Ok(number)
    }
}

#[cold]
fn not_a_mask(mask: &View) -> Error {
    Error::new(
        Kind::DType,
        format!("the mask must be bool, got {}; compare to get one", mask.dtype()),
    )
}
