//! Every operation that may copy, and the one door through which elements move.

use crate::View;
use crate::backend::backend;
use crate::elementwise::{check_broadcasts_to, other_device};
use crate::write;
use osteon_memory::copies;
use osteon_memory::{CopyReason, Site, here};
use osteon_spec::{DType, Layout, MemoryFormat, Placed, ReshapeInfo, Result, reached_bytes};

/// Moves the elements of `src`, broadcast and cast, into `dst`, and says so in the copy log. All copies of
/// elements pass here.
pub(crate) fn transfer(
    dst: &View,
    src: &View,
    reason: CopyReason,
    op: &'static str,
    site: Site,
) -> Result<()> {
    let copy = copies::begin(dst.nbytes());
    backend(dst.device()).copy(dst, src).map_err(|e| e.op(op))?;
    let from = (src.storage(), src.dtype(), src.layout());
    let to = (dst.storage(), dst.dtype(), dst.layout());
    copies::record(copy, reason, op, site, from, to);
    Ok(())
}

impl View {
    /// The elements in a new storage.
    #[track_caller]
    fn copied(
        &self,
        layout: Layout,
        dtype: DType,
        reason: CopyReason,
        op: &'static str,
    ) -> Result<View> {
        copies::check(
            reason,
            op,
            format_args!("{} {} to {layout}", self.dtype(), self.layout()),
        )?;
        let to = View::alloc(layout, dtype, &self.device(), op)?;
        transfer(&to, self, reason, op, here())?;
        Ok(to)
    }

    /// Itself when it is contiguous, else a copy that an operation makes for itself.
    #[track_caller]
    pub(crate) fn dense(&self, op: &'static str) -> Result<View> {
        if self.layout().is_contiguous() {
            return Ok(self.clone());
        }
        let layout = Layout::contiguous(self.shape())?;
        self.copied(layout, self.dtype(), CopyReason::Materialized, op)
    }

    /// Itself when it has this dtype, else a copy that an operation makes for itself.
    ///
    /// # Errors
    /// Where such copies are forbidden; out of memory.
    #[track_caller]
    pub fn promoted(&self, dtype: DType, op: &'static str) -> Result<View> {
        if dtype == self.dtype() {
            return Ok(self.clone());
        }
        let layout = self
            .layout()
            .like(MemoryFormat::Preserve)
            .map_err(|e| e.op(op))?;
        self.copied(layout, dtype, CopyReason::Materialized, op)
    }

    /// A new, right-sized storage with the same elements: PyTorch's `clone`. The strides are kept where
    /// they are dense, else the order of the dims; or those of a memory format.
    ///
    /// # Errors
    /// A format that does not suit the rank; out of memory.
    #[track_caller]
    pub fn copy(&self, format: MemoryFormat) -> Result<View> {
        let layout = self.layout().like(format).map_err(|e| e.op("copy"))?;
        self.copied(layout, self.dtype(), CopyReason::Requested, "copy")
    }

    /// Itself when it is contiguous in this format, else a dense copy.
    ///
    /// # Errors
    /// A format that does not suit the rank; out of memory.
    #[track_caller]
    pub fn contiguous(&self, format: MemoryFormat) -> Result<View> {
        let l = self.layout();
        // What is to keep its order has it, dense or not.
        if format == MemoryFormat::Preserve || l.is_contiguous_in(format) {
            return Ok(self.clone());
        }
        let layout = l.like(format).map_err(|e| e.op("contiguous"))?;
        self.copied(layout, self.dtype(), CopyReason::Contiguous, "contiguous")
    }

    /// The same elements in row-major order under another shape: a view where strides can express it, else
    /// a copy.
    ///
    /// # Errors
    /// A shape with another number of elements; an implicit copy where those are forbidden; out of memory.
    #[track_caller]
    pub fn reshape(&self, shape: &[isize]) -> Result<View> {
        self.reshaped(self.layout().reshape_info(shape)?, "reshape")
    }

    #[track_caller]
    fn reshaped(&self, info: ReshapeInfo, op: &'static str) -> Result<View> {
        match info {
            ReshapeInfo::View(layout) => self.with_layout(layout, op),
            ReshapeInfo::Copy { shape, blocked, .. } => {
                copies::check(
                    CopyReason::Reshape,
                    op,
                    format_args!("{} to shape {shape:?}: {blocked}", self.layout()),
                )?;
                let dense = Layout::contiguous(self.shape()).map_err(|e| e.op(op))?;
                let copy = self.copied(dense, self.dtype(), CopyReason::Reshape, op)?;
                let layout = Layout::contiguous(&shape).map_err(|e| e.op(op))?;
                copy.with_layout(layout, op)
            }
        }
    }

    /// Dims `start..=end` as one: itself when that is one dim, else as [`View::reshape`].
    ///
    /// # Errors
    /// Those of [`Layout::flatten`] and [`View::reshape`].
    #[track_caller]
    pub fn flatten(&self, start: isize, end: isize) -> Result<View> {
        match self.layout().flatten(start, end)? {
            None => Ok(self.clone()),
            Some(info) => self.reshaped(info, "flatten"),
        }
    }

    /// All elements in one dim: a view of a contiguous tensor, else a copy, even where strides could express
    /// it (PyTorch's rule; `flatten` and `reshape` look).
    ///
    /// # Errors
    /// Those of [`View::reshape`].
    #[track_caller]
    pub fn ravel(&self) -> Result<View> {
        let dense = if self.layout().is_contiguous() {
            self.clone()
        } else {
            let layout = self
                .layout()
                .like(MemoryFormat::Contiguous)
                .map_err(|e| e.op("ravel"))?;
            self.copied(layout, self.dtype(), CopyReason::Reshape, "ravel")?
        };
        dense.with_layout(
            dense.layout().view(&[-1]).map_err(|e| e.op("ravel"))?,
            "ravel",
        )
    }

    /// The elements cast to a dtype: itself when it has it, else a copy in the same order of dims.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn to_dtype(&self, dtype: DType) -> Result<View> {
        if dtype == self.dtype() {
            Ok(self.clone())
        } else {
            self.to_dtype_copy(dtype)
        }
    }

    /// The elements cast to a dtype in a new storage, also when they have it.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn to_dtype_copy(&self, dtype: DType) -> Result<View> {
        self.to_dtype_in(dtype, MemoryFormat::Preserve)
    }

    /// The elements cast to a dtype in a new storage of this format.
    ///
    /// # Errors
    /// A format of another rank; out of memory.
    #[track_caller]
    pub fn to_dtype_in(&self, dtype: DType, format: MemoryFormat) -> Result<View> {
        let layout = self.layout().like(format).map_err(|e| e.op("to"))?;
        self.copied(layout, dtype, CopyReason::Cast, "to")
    }

    /// Itself when its elements reach all bytes of its storage, else a copy in a storage of just the bytes
    /// that it reaches: what lets a small slice release a big storage. An expanded dim stays
    /// expanded.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn compact(&self) -> Result<View> {
        let size = self.element_size();
        if reached_bytes(&[Placed::new(self.layout(), size)])? == self.storage().nbytes() {
            return Ok(self.clone());
        }
        let sizes = self.shape();
        // Expanded dims shrink to one step, to be expanded again.
        let core_layout = self.layout().each_once();
        let dense = core_layout.like(MemoryFormat::Preserve)?;
        let span = self
            .layout()
            .required_len()
            .saturating_sub(self.storage_offset());
        if self.numel() > 0 && span < dense.numel() {
            // Windows that overlap: the stretch that they share is smaller than all of them laid out.
            let stretch = self.as_strided(&[span as isize], &[1], None)?;
            let copy = stretch.copied(
                Layout::contiguous(&[span])?,
                self.dtype(),
                CopyReason::Compact,
                "compact",
            )?;
            return copy.with_layout(self.layout().with_offset(0)?, "compact");
        }
        let core = self.with_layout(core_layout, "compact")?;
        let copy = core.copied(dense, self.dtype(), CopyReason::Compact, "compact")?;
        if core.shape() == sizes {
            return Ok(copy);
        }
        copy.with_layout(copy.layout().expand_to(sizes)?, "compact")
    }

    /// Writes the elements of `src`, broadcast and cast, into this view, seen by all others of the
    /// storage. A view copied into itself changes nothing and counts as a write.
    ///
    /// # Errors
    /// A shape that does not broadcast to this one, overlap, guards, read-only memory. Nothing is
    /// written then.
    #[track_caller]
    pub fn copy_(&self, src: &View) -> Result<()> {
        let op = "copy_";
        if self.device() != src.device() {
            return Err(other_device(self.device(), src.device()).op(op));
        }
        check_broadcasts_to(src, self, op)?;
        let is_same = write::is_same_elements(self, src) && self.dtype() == src.dtype();
        if !is_same {
            write::check(self, &[src.into()], op)?;
            transfer(self, src, CopyReason::Assigned, op, here())?;
        } else {
            self.storage().check_writable().map_err(|e| e.op(op))?;
        }
        self.storage().record_write(op, here());
        Ok(())
    }
}
