//! Who looks at a storage: each live tensor has a seat in its storage's list.

use crate::events;
use crate::handle::{Handle, Refs, Shared};
use crate::label::Label;
use crate::list::{Linked, Links};
use crate::once::Once;
use crate::scope::{self, ScopeId};
use crate::storage::{Site, Storage};
use crate::sync::SpinLock;
use crate::timeline::spool;
use osteon_spec::{DType, Error, Kind, Layout, Result};
use std::any::Any;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What a viewer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A tensor that is no view of another one.
    Tensor,
    /// A tensor that was made as a view of another one.
    View,
    /// Kept by the graph of derivatives for the backward pass of the operation that it names.
    Saved,
}

/// A registered look at a storage: a layout and a dtype over its bytes, with the operation and the line that
/// made it. The registry lists it until its last handle goes.
///
/// Invariants:
/// - **V1** the layout is in bounds of the storage, which never shrinks.
/// - **V2** the storage's first byte is aligned for the dtype, so that every element is; what the pool gives
///   always is, foreign memory may not be.
#[derive(Clone)]
pub struct Viewer(Handle<Seat>);

pub(crate) struct Seat {
    refs: Refs,
    links: Links<Seat>,
    /// Not counted: while the seat is in the storage's list, the list has a handle for all of its seats.
    storage: ManuallyDrop<Storage>,
    layout: Layout,
    dtype: DType,
    op: &'static str,
    site: Site,
    scope: ScopeId,
    role: Role,
    born: u64,
    marks: AtomicU8,
    label: SpinLock<Option<Label>>,
    attachment: Once<Attachment>,
    base: Once<Attachment>,
}

/// What a layer above keeps beside a viewer, for all its handles.
pub type Attachment = Arc<dyn Any + Send + Sync>;

impl Viewer {
    /// Takes a seat at a storage.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the layout reaches beyond the storage, out of memory for the seat.
    #[inline]
    pub fn register(
        storage: Storage,
        layout: Layout,
        dtype: DType,
        op: &'static str,
        site: Site,
        role: Role,
    ) -> Result<Viewer> {
        // SAFETY: `storage` counts until it becomes the list's handle, or there is one.
        let seated = unsafe { storage.uncounted() };
        Viewer::sit(seated, Some(storage), layout, dtype, op, site, role)
    }

    /// Takes another seat at the same storage.
    ///
    /// # Errors
    /// As [`Viewer::register`].
    #[inline]
    pub fn beside(
        &self,
        layout: Layout,
        dtype: DType,
        op: &'static str,
        site: Site,
        role: Role,
    ) -> Result<Viewer> {
        // SAFETY: the list has a handle, for this seat, until it has one for the new one too.
        let seated = unsafe { self.storage().uncounted() };
        Viewer::sit(seated, None, layout, dtype, op, site, role)
    }

    /// Takes a seat at a storage. A handle is given where nobody may be seated there yet.
    #[inline]
    fn sit(
        storage: ManuallyDrop<Storage>,
        mut handle: Option<Storage>,
        layout: Layout,
        dtype: DType,
        op: &'static str,
        site: Site,
        role: Role,
    ) -> Result<Viewer> {
        // L3 of `Layout`: the product fits.
        if layout.required_len() * dtype.size() > storage.nbytes() {
            return Err(out_of_bounds(&storage, &layout, dtype).op(op));
        }
        // The widest element that is read as one is 8 bytes: complex numbers are two.
        if storage.data_ptr().addr() & (dtype.size().min(8) - 1) != 0 {
            return Err(misaligned(&storage, dtype).op(op));
        }
        let born = storage.version();
        let seat = || Seat {
            refs: Refs::one(),
            links: Links::new(),
            storage,
            layout,
            dtype,
            op,
            site,
            scope: scope::current(),
            role,
            born,
            marks: AtomicU8::new(0),
            label: SpinLock::new(None),
            attachment: Once::new(),
            base: Once::new(),
        };
        match Handle::try_new(seat) {
            Some(seat) => {
                let mut watch = seat.storage.inner().watch.lock();
                if watch.seated.is_none() {
                    watch.seated = handle.take();
                }
                // SAFETY: a new seat is in no list, and `Handle` keeps it alive and at rest until `retire`
                // has taken it out.
                unsafe { watch.viewers.push(&seat) };
                if spool::is_on() {
                    spool::view(&seat);
                }
                drop(watch);
                Ok(Viewer(seat))
            }
            None => Err(no_memory().op(op)),
        }
    }

    /// The storage that is looked at.
    #[inline]
    pub fn storage(&self) -> &Storage {
        &self.0.storage
    }

    /// The layout over it, in elements of the dtype.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The elements' type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// The operation that made it.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The line that called the operation.
    pub fn site(&self) -> Site {
        self.0.site
    }

    /// What it is for.
    #[inline]
    pub fn role(&self) -> Role {
        self.0.role
    }

    /// Whether it was made as a view of another tensor.
    #[inline]
    pub fn is_view(&self) -> bool {
        self.0.role == Role::View
    }

    /// The storage's version when it was made.
    #[inline]
    pub fn born(&self) -> u64 {
        self.0.born
    }

    /// The name it was given.
    pub fn label(&self) -> Option<Label> {
        self.0.label.lock().clone()
    }

    /// Gives it a name that every report shows; all its handles have it. Where there is no memory for the name,
    /// it keeps the one it had.
    pub fn set_label(&self, label: &str) {
        events::label(self.storage(), label);
        if spool::is_on() {
            spool::label_view(&self.0, label);
        }
        if let Some(label) = Label::new(label) {
            // The old name goes when the lock is free again.
            let _old = self.0.label.lock().replace(label);
        }
    }

    /// Room for what the layer above knows about this tensor.
    #[inline]
    pub fn attachment(&self) -> &Once<Attachment> {
        &self.0.attachment
    }

    /// Room for what the layer above knows about the tensor that this one is a view of.
    #[inline]
    pub fn base(&self) -> &Once<Attachment> {
        &self.0.base
    }

    /// Fills [`Viewer::attachment`] of a new tensor. Where another handle was first, nothing happens.
    #[inline]
    pub fn attach(&mut self, attachment: Attachment) {
        self.fill(|seat| &seat.attachment, attachment);
    }

    /// Fills [`Viewer::base`], likewise.
    #[inline]
    pub fn set_base(&mut self, base: Attachment) {
        self.fill(|seat| &seat.base, base);
    }

    #[inline]
    fn fill(&mut self, room: fn(&Seat) -> &Once<Attachment>, value: Attachment) {
        let room = room(&self.0);
        if self.0.is_unique() && room.get().is_none() {
            // SAFETY: empty, and only handles fill it, of which this is the one, lent to nobody else.
            unsafe { room.fill(value) };
        } else {
            let _ = room.set(value);
        }
    }

    /// Bits that the layer above gave a meaning, 0 at first.
    #[inline]
    pub fn marks(&self) -> u8 {
        self.0.marks.load(Ordering::Relaxed)
    }

    /// Sets the bits of `marks`.
    #[inline]
    pub fn mark(&self, marks: u8) {
        self.0.marks.fetch_or(marks, Ordering::Relaxed);
    }

    /// What tells it from other live viewers.
    pub(crate) fn seat_address(&self) -> usize {
        ptr::from_ref(&*self.0).addr()
    }

    /// Whether two handles are of one viewer.
    #[inline]
    pub fn is_same(&self, other: &Viewer) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// Whether this is the only handle.
    #[inline]
    pub fn is_unique(&self) -> bool {
        self.0.is_unique()
    }
}

#[cold]
fn out_of_bounds(storage: &Storage, layout: &Layout, dtype: DType) -> Error {
    Error::new(
        Kind::Shape,
        format!(
            "sizes {:?}, strides {:?}, storage offset {} and {dtype} require a storage of {} bytes, but storage {} has {}",
            layout.sizes(),
            layout.strides(),
            layout.offset(),
            layout.required_len() * dtype.size(),
            storage.id(),
            storage.nbytes(),
        ),
    )
}

#[cold]
fn no_memory() -> Error {
    Error::new(Kind::OutOfMemory, "no memory for the bookkeeping of a view")
}

#[cold]
fn misaligned(storage: &Storage, dtype: DType) -> Error {
    Error::new(
        Kind::Value,
        format!(
            "storage {} begins at address {:p}, which is not aligned for {dtype} ({}); copy the bytes first",
            storage.id(),
            storage.data_ptr(),
            storage.origin(),
        ),
    )
}

impl fmt::Debug for Viewer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} of {:?}",
            self.dtype(),
            self.layout(),
            self.storage()
        )
    }
}

impl Seat {
    /// A number that no other live seat has.
    pub(crate) fn key(&self) -> u64 {
        ptr::from_ref(self).addr() as u64
    }

    pub(crate) fn storage_id(&self) -> u64 {
        self.storage.id()
    }

    pub(crate) fn label(&self) -> Option<Label> {
        self.label.lock().clone()
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.refs.is_alive()
    }

    pub(crate) fn info(&self) -> TensorInfo {
        TensorInfo {
            label: self.label.lock().clone(),
            op: self.op,
            site: self.site,
            scope: self.scope,
            role: self.role,
            dtype: self.dtype,
            layout: self.layout.clone(),
        }
    }
}

/// A live tensor and what keeps it and is kept by it.
pub(crate) struct Look {
    pub(crate) info: TensorInfo,
    /// The seat's address: what tells it from other live ones.
    pub(crate) seat: usize,
    /// How many handles there are.
    pub(crate) handles: usize,
    pub(crate) attachment: Option<Attachment>,
    pub(crate) base: Option<Attachment>,
}

impl Seat {
    pub(crate) fn look(&self) -> Look {
        Look {
            info: self.info(),
            seat: ptr::from_ref(self).addr(),
            handles: self.refs.count(),
            attachment: self.attachment.get().cloned(),
            base: self.base.get().cloned(),
        }
    }
}

impl Linked for Seat {
    fn links(&self) -> &Links<Seat> {
        &self.links
    }
}

impl Shared for Seat {
    fn refs(&self) -> &Refs {
        &self.refs
    }

    #[inline]
    fn retire(&self) {
        let mut watch = self.storage.inner().watch.lock();
        // SAFETY: `sit` put every seat that has a handle into this list, and only this takes it out.
        unsafe { watch.viewers.remove(self) };
        if spool::is_on() {
            spool::view_end(self);
        }
        let last = match watch.viewers.len() {
            0 => watch.seated.take(),
            _ => None,
        };
        // The storage may go with the last one, so not while its lock is held. It is not looked at below.
        drop(watch);
        drop(last);
    }
}

/// What the registry knows of one live tensor.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// The name it was given.
    pub label: Option<Label>,
    /// The operation that made it.
    pub op: &'static str,
    /// The line that called the operation.
    pub site: Site,
    /// The scope it was made in.
    pub scope: ScopeId,
    /// What it is for.
    pub role: Role,
    /// The elements' type.
    pub dtype: DType,
    /// Sizes, strides and offset.
    pub layout: Layout,
}
