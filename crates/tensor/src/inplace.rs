//! Writes in place: seen through every view of the storage, counted in its version, refused before
//! anything is changed.

use crate::View;
use crate::backend::{Arg, backend};
use crate::elementwise::{check_broadcasts_to, other_device};
use osteon_memory::{Storage, here};
use osteon_spec::{DType, Dims, Error, Kind, Layout, Result, Scalar};

impl View {
    /// Writes one number, cast, into every element. An expanded view may be filled.
    ///
    /// # Errors
    /// A number that the dtype cannot hold, guards, read-only memory.
    #[track_caller]
    pub fn fill_(&self, value: Scalar) -> Result<()> {
        self.fill_with("fill_", value)
    }

    /// Writes zeros. An expanded view may be zeroed.
    ///
    /// # Errors
    /// Guards, read-only memory.
    #[track_caller]
    pub fn zero_(&self) -> Result<()> {
        self.fill_with("zero_", Scalar::Bool(false))
    }

    #[track_caller]
    fn fill_with(&self, op: &'static str, value: Scalar) -> Result<()> {
        value.check_fits(self.dtype()).map_err(|e| e.op(op))?;
        backend(self.device())
            .fill(self, value)
            .map_err(|e| e.op(op))?;
        self.storage().record_write(op, here());
        Ok(())
    }

    /// Writes one number where `mask`, broadcast to this shape, is true. An expanded view is refused.
    ///
    /// # Errors
    /// A mask that is not `bool` or does not broadcast, a number that the dtype cannot hold, overlap.
    #[track_caller]
    pub fn masked_fill_(&self, mask: &View, value: Arg<'_>) -> Result<()> {
        let op = "masked_fill_";
        if mask.dtype() != DType::Bool {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the mask must be bool, got {}; compare to get one",
                    mask.dtype()
                ),
            )
            .op(op));
        }
        let value = self.filler(value).map_err(|e| e.op(op))?;
        check_broadcasts_to(mask, self, op)?;
        crate::write::check(self, &[mask.into()], op)?;
        backend(self.device())
            .select(self, mask, value.into(), self.into())
            .map_err(|e| e.op(op))?;
        self.storage().record_write(op, here());
        Ok(())
    }

    /// Another shape for this view's storage, row-major from its offset, for a handle that takes it: the
    /// storage grows where it must, and never shrinks. `None` where the shape is the present one.
    ///
    /// # Errors
    /// Memory that is not ours to grow, guards, out of memory. Nothing is changed then.
    #[track_caller]
    pub fn resized(&self, shape: &[usize]) -> Result<Option<View>> {
        let op = "resize_";
        if shape == self.shape() {
            return Ok(None);
        }
        let layout = Layout::contiguous(shape)
            .and_then(|l| l.with_offset(self.storage_offset()))
            .map_err(|e| e.op(op))?;
        let needed = layout.required_len() * self.element_size();
        if needed > self.storage().nbytes() {
            self.storage().grow(needed, op, here())?;
        }
        let view = self.with_layout(layout, op)?;
        self.storage().record_write(op, here());
        Ok(Some(view))
    }

    /// A view with the storage and layout of another one, for a handle that takes it.
    ///
    /// # Errors
    /// Another dtype or device.
    #[track_caller]
    pub fn set_like(&self, source: &View) -> Result<View> {
        let op = "set_";
        if source.device() != self.device() {
            return Err(other_device(self.device(), source.device()).op(op));
        }
        if source.dtype() != self.dtype() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the tensor holds {}, the source {}",
                    self.dtype(),
                    source.dtype()
                ),
            )
            .op(op));
        }
        let view = View::new(
            source.storage().clone(),
            source.layout().clone(),
            self.dtype(),
            op,
        )?;
        view.storage().record_write(op, here());
        Ok(view)
    }

    /// A view of `storage` with this dtype, for a handle that takes it; the storage grows where it must.
    ///
    /// # Errors
    /// Another device; memory that is not ours to grow; guards; out of memory.
    #[track_caller]
    pub fn set_to(
        &self,
        storage: &Storage,
        offset: usize,
        sizes: &[usize],
        strides: &[usize],
    ) -> Result<View> {
        let op = "set_";
        if storage.device() != self.device() {
            return Err(other_device(self.device(), storage.device()).op(op));
        }
        let layout = Layout::new(Dims::from_slice(sizes), Dims::from_slice(strides), offset)
            .map_err(|e| e.op(op))?;
        let needed = layout.required_len() * self.element_size();
        if needed > storage.nbytes() {
            storage.grow(needed, op, here())?;
        }
        let view = View::new(storage.clone(), layout, self.dtype(), op)?;
        storage.record_write(op, here());
        Ok(view)
    }
}
