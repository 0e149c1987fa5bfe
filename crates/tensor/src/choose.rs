//! One value in place of others.

use crate::View;
use crate::backend::{Arg, backend};
use crate::elementwise::other_device;
use osteon_spec::{DType, Error, Kind, Layout, Result, Scalar, broadcast_shapes};

impl View {
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
                    format!(
                        "the value must be a number or a 0-dim tensor, got shape {:?}",
                        v.shape()
                    ),
                ));
            }
            Arg::View(v) if v.dtype().is_complex() && !self.dtype().is_complex() => {
                return Err(Error::new(
                    Kind::DType,
                    format!(
                        "a {} value does not fit a {} tensor",
                        v.dtype(),
                        self.dtype()
                    ),
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
        format!(
            "the mask must be bool, got {}; compare to get one",
            mask.dtype()
        ),
    )
}
