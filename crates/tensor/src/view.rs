//! A view: a storage, a layout over it, and a dtype.

use osteon_memory::{Role, Site, Storage, Viewer, here};
use osteon_spec::{DType, Device, Layout, Result};
use std::fmt;

/// A storage, a layout over its bytes, and a dtype. Many views share one storage, and a view never copies.
///
/// Cloning makes another handle to the same view. The registry lists a view, with the operation and
/// the line that made it, until its last handle goes.
#[derive(Clone)]
pub struct View(pub(crate) Viewer);

impl View {
    /// A view of a storage that is no view of another tensor: of a loaded file, of foreign memory.
    ///
    /// # Errors
    /// When the layout reaches beyond the storage, or the storage's address does not suit the dtype.
    #[track_caller]
    #[inline]
    pub fn new(storage: Storage, layout: Layout, dtype: DType, op: &'static str) -> Result<View> {
        Viewer::register(storage, layout, dtype, op, here(), Role::Tensor).map(View)
    }

    /// A new storage, and a view of all of it. Its elements are initialised to something unspecified.
    ///
    /// # Errors
    /// Out of memory, with a report.
    #[track_caller]
    #[inline]
    pub fn alloc(layout: Layout, dtype: DType, device: &Device, op: &'static str) -> Result<View> {
        let site = here();
        let storage = Storage::allocate_for(&layout, dtype, device, op, site)?;
        Viewer::register(storage, layout, dtype, op, site, Role::Tensor).map(View)
    }

    /// A view of the same storage with another layout, which the storage must hold.
    ///
    /// # Errors
    /// When the layout reaches beyond the storage.
    #[track_caller]
    #[inline]
    pub fn with_layout(&self, layout: Layout, op: &'static str) -> Result<View> {
        let (viewer, dtype) = (self.viewer(), self.dtype());
        viewer
            .beside(layout, dtype, op, here(), Role::View)
            .map(View)
    }

    /// The same bytes once more, in the registry as kept for the backward pass of `op`, called at `site`.
    ///
    /// # Errors
    /// Out of memory.
    #[inline]
    pub fn saved(&self, op: &'static str, site: Site) -> Result<View> {
        let (viewer, layout) = (self.viewer(), self.layout().clone());
        viewer
            .beside(layout, self.dtype(), op, site, Role::Saved)
            .map(View)
    }

    /// The registry's entry of this view.
    #[inline]
    pub fn viewer(&self) -> &Viewer {
        &self.0
    }

    /// The same, to fill its rooms where the view is new.
    #[inline]
    pub fn viewer_mut(&mut self) -> &mut Viewer {
        &mut self.0
    }

    /// The storage.
    #[inline]
    pub fn storage(&self) -> &Storage {
        self.0.storage()
    }

    /// Sizes, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.0.layout()
    }

    /// The elements' type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// Where the storage is.
    #[inline]
    pub fn device(&self) -> Device {
        self.storage().device()
    }

    /// The sizes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.layout().sizes()
    }

    /// The strides, in elements.
    #[inline]
    pub fn stride(&self) -> &[usize] {
        self.layout().strides()
    }

    /// The first element's position in the storage, in elements.
    #[inline]
    pub fn storage_offset(&self) -> usize {
        self.layout().offset()
    }

    /// The number of dimensions.
    #[inline]
    pub fn dim(&self) -> usize {
        self.layout().rank()
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.layout().numel()
    }

    /// Bytes of one element.
    #[inline]
    pub fn element_size(&self) -> usize {
        self.dtype().size()
    }

    /// `numel · element_size`, as if every element had bytes of its own.
    #[inline]
    pub fn nbytes(&self) -> usize {
        // L2 and L3 of `Layout`: an expanded view's product fits too.
        self.numel().saturating_mul(self.element_size())
    }

    /// The first element's address, null for a view without elements. Safe to get, unsafe to read through.
    #[inline]
    pub fn data_ptr(&self) -> *const u8 {
        let base = self.storage().data_ptr();
        if self.numel() == 0 || base.is_null() {
            return std::ptr::null();
        }
        base.wrapping_add(self.storage_offset() * self.element_size())
    }

    /// How often the storage was written.
    #[inline]
    pub fn version(&self) -> u64 {
        self.storage().version()
    }

    /// Whether it was made as a view of another tensor: by any view operation but `detach` and
    /// `view_dtype`, which PyTorch does not track.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.0.is_view()
    }

    /// The operation that made it.
    pub fn op(&self) -> &'static str {
        self.0.op()
    }

    /// The line that made it.
    pub fn site(&self) -> Site {
        self.0.site()
    }

    /// Whether both look at one storage.
    #[inline]
    pub fn shares_storage(&self, other: &View) -> bool {
        self.storage() == other.storage()
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
