//! Storages: runs of bytes on one device, with an owner, an id, a version and a birthplace.

mod guard;
mod origin;
mod watched;

pub use guard::{GuardInfo, StorageGuard};
pub use origin::{Origin, Site};

pub(crate) use origin::Line;
pub(crate) use watched::Watched;

use crate::access::Access;
use crate::block::Block;
use crate::device::{self, Stamp};
use crate::events::copies::{self, CopyReason};
use crate::events::{self, Entry, Kind as EventKind};
use crate::handle::{Handle, Refs, Shared};
use crate::label::Label;
use crate::list::{Linked, Links, List};
use crate::registry::{Seat, TensorInfo};
use crate::scope::{self, ScopeId};
use crate::sync::{AtomicU64, Ordering, SpinLock};
use crate::timeline::spool;
use guard::GuardNote;
use osteon_spec::{DType, Device, Error, Kind, Layout, Result};
use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// A run of bytes on one device that tensors look at.
///
/// Cloning makes another handle to the same bytes. They are freed exactly once, when the last handle and
/// the last tensor go.
#[derive(Clone)]
pub struct Storage(Handle<Inner>);

/// What is behind a [`Storage`].
///
/// Invariants:
/// - **S1** `ptr` is valid for reads of `nbytes` initialised bytes (for writes too unless `read_only`), and null
///   exactly when there are no bytes or the device has no memory.
/// - **S2** `nbytes` never falls: a tensor that was in bounds stays so.
/// - **S3** `ptr`, `nbytes` and `owner` change only in [`Storage::grow`], which holds the storage as a
///   writing operation and the device's lock.
/// - **S4** `owner` is touched under the device's lock only.
pub(crate) struct Inner {
    refs: Refs,
    links: Links<Inner>,
    id: u64,
    device: Device,
    origin: Origin,
    scope: ScopeId,
    read_only: bool,
    ptr: AtomicPtr<u8>,
    nbytes: AtomicUsize,
    owner: UnsafeCell<Owner>,
    version: AtomicU64,
    /// The time of the last event.
    clock: AtomicU64,
    /// What filled it, if a copy did: the reason's number and one, and the storage that was read.
    copied: [AtomicU64; 2],
    access: Access,
    pub(crate) watch: SpinLock<Watch>,
}

// SAFETY: the raw pointer is S1's, the list links and `owner` are touched under the device's lock alone (S4),
// and foreign owners are `Send + Sync`.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// Who looks at a storage.
///
/// Invariant **W1**: `seated` is a handle to the storage itself, there while `viewers` has members: one for all of them, so
/// that nothing is counted when a view comes or goes.
pub(crate) struct Watch {
    pub(crate) viewers: List<Seat>,
    pub(crate) seated: Option<Storage>,
    guards: Vec<GuardNote>,
    label: Option<Label>,
    last_write: Option<(&'static str, Site)>,
}

impl Watch {
    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }
}

/// Who gives the bytes back.
pub(crate) enum Owner {
    /// Not yet in the device's list.
    Unlisted,
    /// There are no bytes to give back: an empty storage, or a device without memory.
    Nothing,
    Pool(Block),
    Foreign(#[expect(dead_code, reason = "kept for its drop")] Box<dyn Any + Send + Sync>),
}

impl Owner {
    /// The bytes of the allocator's block, 0 where there is none.
    pub(crate) fn allocated(&self) -> usize {
        match self {
            Owner::Pool(block) => block.size(),
            _ => 0,
        }
    }
}

static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

impl Storage {
    /// New bytes, initialised to something unspecified, 64-byte aligned.
    ///
    /// # Errors
    /// Out of memory, with a report; nothing has changed then.
    #[inline]
    pub fn allocate(
        nbytes: usize,
        device: &Device,
        op: &'static str,
        site: Site,
    ) -> Result<Storage> {
        Storage::allocate_or(nbytes, device, op, site, || None)
    }

    /// New bytes for a tensor of this layout and dtype, which a report of full memory names.
    ///
    /// # Errors
    /// As [`Storage::allocate`].
    #[inline]
    pub fn allocate_for(
        layout: &Layout,
        dtype: DType,
        device: &Device,
        op: &'static str,
        site: Site,
    ) -> Result<Storage> {
        // L3 of `Layout`: the product fits.
        let nbytes = layout.required_len() * dtype.size();
        Storage::allocate_or(nbytes, device, op, site, || Some((dtype, layout.clone())))
    }

    #[inline]
    fn allocate_or(
        nbytes: usize,
        device: &Device,
        op: &'static str,
        site: Site,
        wanted: impl FnOnce() -> Option<(DType, Layout)>,
    ) -> Result<Storage> {
        let origin = Origin::Allocated { op, site };
        let report = match Storage::unlisted(*device, origin, false) {
            Some(storage) => {
                let adopted = device::of(device).lock().adopt(&storage.0, nbytes);
                match adopted {
                    Ok(stamp) => {
                        storage.0.record(EventKind::Alloc, (op, Some(site)), stamp);
                        return Ok(storage);
                    }
                    Err(report) => report,
                }
            }
            None => device::no_memory_for_books(device, nbytes),
        };
        Err(report.into_error(op, site, wanted()))
    }

    /// Bytes of an owner that is kept alive and can give them as a slice: a mapped file, a
    /// vector, a string. Read-only. Copies nothing.
    ///
    /// # Errors
    /// Out of memory, for the few bytes of bookkeeping.
    pub fn from_owner<T>(owner: T, origin: Origin) -> Result<Storage>
    where
        T: AsRef<[u8]> + Send + Sync + 'static,
    {
        // Not in a box: moving a box ends the validity of pointers to what is in it, and the slice may
        // lie in the owner itself.
        let owner = Arc::new(owner);
        let bytes = (*owner).as_ref();
        let (ptr, len) = (bytes.as_ptr().cast_mut(), bytes.len());
        // SAFETY: the slice stays valid while its owner is neither moved, nor lent mutably, nor dropped, and
        // the `Arc` does none of these before the storage goes. Read-only keeps `cast_mut` harmless.
        unsafe { Storage::from_raw_parts(ptr, len, true, Box::new(owner), origin) }
    }

    /// Bytes that belong to somebody else, kept alive by `owner`. Copies nothing.
    ///
    /// # Safety
    /// `ptr` is valid for reads of `nbytes` initialised bytes until `owner` is dropped, on any thread; for
    /// writes too unless `read_only`. Nobody else writes them while a tensor operation reads them, or touches
    /// them at all while one writes them.
    ///
    /// # Errors
    /// [`Kind::Value`] for an origin that says the bytes are allocated here; out of memory, for the few bytes of
    /// bookkeeping.
    pub unsafe fn from_raw_parts(
        ptr: *mut u8,
        nbytes: usize,
        read_only: bool,
        owner: Box<dyn Any + Send + Sync>,
        origin: Origin,
    ) -> Result<Storage> {
        // What is allocated here may grow and never overlaps another storage.
        if let Origin::Allocated { .. } = origin {
            return Err(Error::new(
                Kind::Value,
                "memory with an owner of its own has the origin Mapped or Foreign, not Allocated",
            ));
        }
        let storage = Storage::unlisted(Device::cpu(), origin, read_only).ok_or_else(|| {
            Error::new(
                Kind::OutOfMemory,
                "no memory for the bookkeeping of a foreign storage",
            )
        })?;
        let inner = &storage.0;
        inner.ptr.store(
            if nbytes == 0 { ptr::null_mut() } else { ptr },
            Ordering::Relaxed,
        );
        inner.nbytes.store(nbytes, Ordering::Relaxed);
        let stamp = device::of(&Device::cpu())
            .lock()
            .adopt_foreign(inner, owner);
        inner.record(EventKind::Alloc, inner.origin.maker(), stamp);
        Ok(storage)
    }

    /// `None` where there is no memory for it.
    #[inline]
    pub(crate) fn unlisted(device: Device, origin: Origin, read_only: bool) -> Option<Storage> {
        let inner = || Inner {
            refs: Refs::one(),
            links: Links::new(),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            device,
            origin,
            scope: scope::current(),
            read_only,
            ptr: AtomicPtr::new(ptr::null_mut()),
            nbytes: AtomicUsize::new(0),
            owner: UnsafeCell::new(Owner::Unlisted),
            version: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            copied: [AtomicU64::new(0), AtomicU64::new(0)],
            access: Access::new(),
            watch: SpinLock::new(Watch {
                viewers: List::new(),
                seated: None,
                guards: Vec::new(),
                label: None,
                last_write: None,
            }),
        };
        Handle::try_new(inner).map(Storage)
    }

    /// A number that no other storage of this process has or will have.
    #[inline]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The bytes asked for.
    #[inline]
    pub fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    /// The first byte's address; null for an empty storage and on a device without memory.
    ///
    /// Safe to get, unsafe to read through: operations on other threads may write, and
    /// [`Storage::grow`] moves the bytes.
    #[inline]
    pub fn data_ptr(&self) -> *const u8 {
        self.0.ptr.load(Ordering::Relaxed)
    }

    /// The same for writing, for kernels that hold the storage through [`crate::hold`].
    #[inline]
    pub fn data_mut(&self) -> *mut u8 {
        self.0.ptr.load(Ordering::Relaxed)
    }

    /// Where the bytes are.
    #[inline]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Where the bytes came from.
    pub fn origin(&self) -> &Origin {
        &self.0.origin
    }

    /// Whether writes are refused: the bytes are a mapped file's, or their owner lends them for
    /// reading only.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.0.read_only
    }

    /// Checks that the bytes may be written.
    ///
    /// # Errors
    /// [`Kind::ReadOnly`].
    #[inline]
    pub fn check_writable(&self) -> Result<()> {
        if self.0.read_only {
            Err(self.read_only_error())
        } else {
            Ok(())
        }
    }

    /// How often the bytes were written by operations, through any tensor.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Relaxed)
    }

    /// Counts a write also for other storages over the same bytes of somebody else's: what was computed
    /// from them is as outdated.
    #[cold]
    fn tell_twins(&self, op: &'static str, site: Site) {
        let bytes = |s: &Inner| s.ptr().addr()..s.ptr().addr() + s.nbytes();
        let (mine, state) = (bytes(&self.0), device::of(&self.device()).lock());
        for twin in state.storages.iter() {
            let theirs = bytes(twin);
            if twin.id() != self.id() && theirs.start < mine.end && mine.start < theirs.end {
                twin.watch.lock().last_write = Some((op, site));
                twin.version.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts one more write, by an operation called from a line. Other storages over the same foreign bytes
    /// count it too.
    #[inline]
    pub fn record_write(&self, op: &'static str, site: Site) {
        self.0.watch.lock().last_write = Some((op, site));
        self.0.version.fetch_add(1, Ordering::Relaxed);
        if !matches!(self.0.origin, Origin::Allocated { .. }) {
            self.tell_twins(op, site);
        }
        if spool::is_on() {
            spool::write(self.id(), op, site);
        }
        events::push(
            self.0.tick(0),
            Entry {
                kind: EventKind::Write,
                op,
                site: Some(site),
                storage: self.id(),
                ..Entry::default()
            },
        );
    }

    /// The operation that wrote the bytes last, through any tensor, and the line that called it; `None` where
    /// [`Storage::version`] is 0. What filled a fresh storage is no write.
    pub fn last_write(&self) -> Option<(&'static str, Site)> {
        self.0.watch.lock().last_write
    }

    /// The copy that filled the storage, if one did: why, and the id of the storage that was read. Later writes in place
    /// do not change it.
    pub fn copied_from(&self) -> Option<(CopyReason, u64)> {
        let [reason, from] = &self.0.copied;
        let reason = (reason.load(Ordering::Acquire) as usize).checked_sub(1)?;
        Some((*CopyReason::ALL.get(reason)?, from.load(Ordering::Relaxed)))
    }

    /// Enters that a copy filled it.
    pub(crate) fn set_copied_from(&self, reason: CopyReason, from: u64) {
        let [kept, source] = &self.0.copied;
        source.store(from, Ordering::Relaxed);
        kept.store(reason as u64 + 1, Ordering::Release);
    }

    /// The name it was given, if any.
    pub fn label(&self) -> Option<Label> {
        self.0.watch.lock().label.clone()
    }

    /// Gives it a name that every report shows. Where there is no memory for the name, it keeps the one it had.
    pub fn set_label(&self, label: &str) {
        events::label(self, label);
        if spool::is_on() {
            spool::label_storage(&self.0, label);
        }
        if let Some(label) = Label::new(label) {
            // The old name goes when the lock is free again.
            let _old = self.0.watch.lock().label.replace(label);
        }
    }

    /// The live tensors on these bytes, oldest first, as they are at one instant; none where there is no memory
    /// for the list. [`holders`](fn@crate::holders) tells what else keeps the bytes.
    pub fn tensors(&self) -> Vec<TensorInfo> {
        let watched = self.0.watched(Seat::info);
        watched.map(|w| w.tensors).unwrap_or_default()
    }

    /// Whether nobody but this handle's owner holds the storage.
    pub fn is_unique(&self) -> bool {
        self.0.is_unique() && self.0.watch.lock().viewers.len() <= 1
    }

    /// Another handle that does not count.
    ///
    /// # Safety
    /// As [`Handle::uncounted`].
    #[inline]
    pub(crate) unsafe fn uncounted(&self) -> ManuallyDrop<Storage> {
        // SAFETY: the caller's contract.
        let handle = unsafe { self.0.uncounted() };
        ManuallyDrop::new(Storage(ManuallyDrop::into_inner(handle)))
    }

    /// Makes the storage at least this large. The bytes move, which the copy log says, and the tensors on
    /// them follow. The new bytes are initialised to something unspecified.
    ///
    /// # Errors
    /// When the memory is not ours to grow, when a guard is held, or out of memory; nothing has
    /// changed then.
    pub fn grow(&self, nbytes: usize, op: &'static str, site: Site) -> Result<()> {
        if nbytes <= self.nbytes() {
            return Ok(());
        }
        if matches!(
            self.origin(),
            Origin::Mapped { .. } | Origin::Foreign { .. }
        ) {
            return Err(Error::new(
                Kind::ReadOnly,
                format!(
                    "storage {} cannot grow from {} to {nbytes} bytes: it is {}; copy() gives a tensor of its own",
                    self.id(),
                    self.nbytes(),
                    self.origin()
                ),
            )
            .op(op));
        }
        let held = crate::hold(&[], &[self]).map_err(|e| e.op(op))?;
        let len = self.nbytes();
        let copy = copies::begin(len);
        // While we waited, another thread may have made it larger still.
        if nbytes <= len {
            return Ok(());
        }
        let grown = device::of(&self.device())
            .lock()
            .grow(&self.0, nbytes, (op, Some(site)));
        match grown {
            Ok([freed, allocated]) => {
                self.0
                    .record_bytes(EventKind::Free, self.origin().maker(), freed, len);
                self.0.record(EventKind::Alloc, (op, Some(site)), allocated);
            }
            Err(report) => return Err(report.into_error(op, site, None)),
        }
        drop(held);
        // No layout describes more bytes than any machine has, as storages on meta may have.
        if let Ok(layout) = Layout::contiguous(&[len])
            && len > 0
        {
            let side = (self, DType::U8, &layout);
            copies::record(copy, CopyReason::Resize, op, site, side, side);
        }
        Ok(())
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    #[cold]
    fn read_only_error(&self) -> Error {
        Error::new(
            Kind::ReadOnly,
            format!(
                "storage {} is read-only ({}); copy() gives a tensor that can be written",
                self.id(),
                self.origin()
            ),
        )
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Storage {} ({} bytes on {}, {})",
            self.id(),
            self.nbytes(),
            self.device(),
            self.origin()
        )
    }
}

impl PartialEq for Storage {
    /// Identity, never contents.
    fn eq(&self, other: &Storage) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl Eq for Storage {}

impl Inner {
    #[inline]
    pub(crate) fn nbytes(&self) -> usize {
        self.nbytes.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

    #[inline]
    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(crate) fn scope(&self) -> ScopeId {
        self.scope
    }

    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.load(Ordering::Relaxed)
    }

    /// The time of an event on this storage, later than all that it and the calling thread met, and than `seen`.
    #[inline]
    pub(crate) fn tick(&self, seen: u64) -> u64 {
        let now = events::tick(seen.max(self.clock.load(Ordering::Relaxed)));
        self.clock.fetch_max(now, Ordering::Relaxed);
        now
    }

    /// The same for a storage that nobody else has: one that is new, or about to go.
    #[inline]
    pub(crate) fn tick_alone(&self, seen: u64) -> u64 {
        let now = events::tick(seen.max(self.clock.load(Ordering::Relaxed)));
        self.clock.store(now, Ordering::Relaxed);
        now
    }

    /// The time of an event on two storages.
    #[inline]
    pub(crate) fn tick_with(&self, other: &Inner) -> u64 {
        let [a, b] = [self, other].map(|s| &s.clock);
        let now = events::tick(a.load(Ordering::Relaxed).max(b.load(Ordering::Relaxed)));
        a.fetch_max(now, Ordering::Relaxed);
        b.fetch_max(now, Ordering::Relaxed);
        now
    }

    /// Enters that the storage got or gave back its block.
    #[inline]
    fn record(&self, kind: EventKind, by: (&'static str, Option<Site>), stamp: Stamp) {
        self.record_bytes(kind, by, stamp, self.nbytes());
    }

    #[inline]
    fn record_bytes(
        &self,
        kind: EventKind,
        (op, site): (&'static str, Option<Site>),
        stamp: Stamp,
        nbytes: usize,
    ) {
        events::push(
            stamp.clock,
            Entry {
                kind,
                op,
                site,
                storage: self.id,
                bytes: nbytes as u64,
                other: stamp.allocated,
                reason: None,
            },
        );
    }

    /// Points the storage at new bytes, S3's one place.
    ///
    /// # Safety
    /// The device's lock is held; the storage is new or held as a writing operation; S1 holds for the
    /// new values.
    #[inline]
    pub(crate) unsafe fn set_bytes(&self, ptr: *mut u8, nbytes: usize, owner: Owner) -> Owner {
        self.ptr.store(ptr, Ordering::Relaxed);
        self.nbytes.store(nbytes, Ordering::Relaxed);
        // SAFETY: S4: the device's lock is held.
        unsafe { std::mem::replace(&mut *self.owner.get(), owner) }
    }

    /// # Safety
    /// The device's lock is held.
    pub(crate) unsafe fn owner(&self) -> &Owner {
        // SAFETY: S4.
        unsafe { &*self.owner.get() }
    }
}

impl Linked for Inner {
    fn links(&self) -> &Links<Inner> {
        &self.links
    }
}

impl Shared for Inner {
    fn refs(&self) -> &Refs {
        &self.refs
    }

    #[inline]
    fn retire(&self) {
        let released = device::of(&self.device).lock().release(self);
        if let Some(stamp) = released {
            self.record(EventKind::Free, self.origin.maker(), stamp);
        }
    }
}
