//! Storages: runs of bytes on one device, with an owner, an id, a version and a birthplace.

use crate::access::{Access, Mode, Refused};
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
use osteon_spec::{DType, Device, Error, Kind, Layout, Result};
use std::any::Any;
use std::cell::UnsafeCell;
use std::collections::TryReserveError;
use std::fmt;
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// A place in a user's program.
pub type Site = &'static Location<'static>;

/// A place as reports for people show it: `file:line`, the file without the detours (`a/../`) that build tools make.
pub(crate) struct Line(pub(crate) Site);

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.0.file();
        // From the back: each `..` takes the part before it along.
        let (mut kept, mut up) = (0u64, 0);
        for (i, part) in file.rsplit('/').enumerate() {
            match part {
                ".." => up += 1,
                _ if up > 0 => up -= 1,
                _ if i < 64 => kept |= 1 << i,
                _ => {}
            }
        }
        let parts = file.split('/').count();
        if parts > 64 || up > 0 || kept.count_ones() as usize == parts {
            return write!(f, "{file}:{}", self.0.line());
        }
        for (i, part) in file.split('/').enumerate() {
            let left = parts - 1 - i;
            if kept >> left & 1 == 1 {
                write!(f, "{part}{}", if left > 0 { "/" } else { "" })?;
            }
        }
        write!(f, ":{}", self.0.line())
    }
}

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
pub(crate) struct Watch {
    pub(crate) viewers: List<Seat>,
    guards: Vec<GuardNote>,
    label: Option<Label>,
    last_write: Option<(&'static str, Site)>,
}

struct GuardNote {
    serial: u64,
    mode: Mode,
    site: Site,
}

/// Who looks at a storage at one instant; see [`Inner::watched`].
pub(crate) struct Watched<T> {
    pub(crate) label: Option<Label>,
    pub(crate) last_write: Option<(&'static str, Site)>,
    /// Oldest first.
    pub(crate) tensors: Vec<T>,
    pub(crate) guards: Vec<GuardInfo>,
    /// Handles to the storage itself.
    pub(crate) handles: usize,
}

/// A guard that somebody holds on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardInfo {
    /// For reading or for writing.
    pub mode: Mode,
    /// The line that took it.
    pub site: Site,
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

/// Where a storage's bytes came from.
#[derive(Clone)]
pub enum Origin {
    /// Allocated by an operation at a place in the program.
    Allocated {
        /// The operation's name.
        op: &'static str,
        /// The line that called it.
        site: Site,
    },
    /// A window on a mapped file.
    Mapped {
        /// The file.
        path: Arc<str>,
        /// The first byte in the file.
        offset: u64,
    },
    /// Memory that belongs to somebody else, who is kept alive.
    Foreign {
        /// Who, in words.
        owner: Arc<str>,
        /// The line that brought it in.
        site: Site,
    },
}

impl Origin {
    /// The mapped file.
    pub(crate) fn path(&self) -> Option<&str> {
        match self {
            Origin::Mapped { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The operation, or what it is if none made it, and the line.
    pub(crate) fn maker(&self) -> (&'static str, Option<Site>) {
        match self {
            Origin::Allocated { op, site } => (op, Some(site)),
            Origin::Mapped { .. } => ("mapped", None),
            Origin::Foreign { site, .. } => ("foreign", Some(site)),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Allocated { op, site } => write!(f, "{op} at {}", Line(site)),
            Origin::Mapped { path, offset } => write!(f, "mapped file {path} at byte {offset}"),
            Origin::Foreign { owner, site } => write!(f, "{owner} at {}", Line(site)),
        }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
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
            Ok(storage) => {
                let adopted = device::of(device).lock().adopt(&storage.0, nbytes);
                match adopted {
                    Ok(stamp) => {
                        storage.0.record(EventKind::Alloc, (op, Some(site)), stamp);
                        return Ok(storage);
                    }
                    Err(report) => report,
                }
            }
            Err(()) => device::no_memory_for_books(device, nbytes),
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
        let storage = Storage::unlisted(Device::cpu(), origin, read_only).map_err(|()| {
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

    pub(crate) fn unlisted(device: Device, origin: Origin, read_only: bool) -> Result<Storage, ()> {
        let inner = Inner {
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
                guards: Vec::new(),
                label: None,
                last_write: None,
            }),
        };
        Handle::try_new(inner).map(Storage).map_err(drop)
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
    /// for the list. [`holders`](crate::holders) tells what else keeps the bytes.
    pub fn tensors(&self) -> Vec<TensorInfo> {
        let watched = self.0.watched(Seat::info);
        watched.map(|w| w.tensors).unwrap_or_default()
    }

    /// Whether nobody but this handle's owner holds the storage.
    pub fn is_unique(&self) -> bool {
        self.0.is_unique()
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

    /// Waits for operations, then keeps operations that conflict away, with an error that names `site`,
    /// until the guard goes.
    ///
    /// # Errors
    /// [`Kind::Borrowed`] where another guard is in the way, [`Kind::ReadOnly`].
    pub fn guard(&self, mode: Mode, site: Site) -> Result<StorageGuard> {
        if mode == Mode::Write {
            self.check_writable()?;
        }
        let serial = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        {
            let mut watch = self.0.watch.lock();
            watch.guards.try_reserve(1).map_err(|_| {
                Error::new(
                    Kind::OutOfMemory,
                    "no memory for the bookkeeping of a guard",
                )
            })?;
            watch.guards.push(GuardNote { serial, mode, site });
        }
        match self.0.access.take_guard(mode) {
            Ok(()) => {
                if mode == Mode::Write {
                    self.record_write("write", site);
                }
                Ok(StorageGuard {
                    storage: self.clone(),
                    mode,
                    serial,
                })
            }
            Err(refused) => {
                self.forget_guard(serial);
                Err(self.borrowed_error(refused))
            }
        }
    }

    fn forget_guard(&self, serial: u64) {
        self.0.watch.lock().guards.retain(|g| g.serial != serial);
    }

    pub(crate) fn begin(&self, mode: Mode) -> Result<()> {
        if mode == Mode::Write {
            self.check_writable()?;
        }
        self.0
            .access
            .begin(mode)
            .map_err(|refused| self.borrowed_error(refused))
    }

    pub(crate) fn end(&self, mode: Mode) {
        self.0.access.end(mode);
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

    #[cold]
    fn borrowed_error(&self, refused: Refused) -> Error {
        let mode = match refused {
            Refused::ReadGuard => Mode::Read,
            Refused::WriteGuard => Mode::Write,
        };
        let watch = self.0.watch.lock();
        let site = watch.guards.iter().find(|g| g.mode == mode).map(|g| g.site);
        drop(watch);
        let verb = if mode == Mode::Read {
            "read"
        } else {
            "written"
        };
        let place = site.map_or_else(String::new, |s| format!(" taken at {s}"));
        Error::new(
            Kind::Borrowed,
            format!(
                "storage {} is being {verb} through a guard{place}; drop the guard first",
                self.id()
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

/// A user's hold on a storage's bytes, for as long as they like; see [`Storage::guard`].
#[derive(Debug)]
pub struct StorageGuard {
    storage: Storage,
    mode: Mode,
    serial: u64,
}

impl StorageGuard {
    /// The storage that is held.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }
}

impl Drop for StorageGuard {
    fn drop(&mut self) {
        self.storage.0.access.drop_guard(self.mode);
        self.storage.forget_guard(self.serial);
    }
}

impl Inner {
    pub(crate) fn nbytes(&self) -> usize {
        self.nbytes.load(Ordering::Relaxed)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn device(&self) -> Device {
        self.device
    }

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

    /// Who looks at the storage at one instant; `see` says what is told of each tensor.
    pub(crate) fn watched<T>(
        &self,
        see: impl Fn(&Seat) -> T,
    ) -> Result<Watched<T>, TryReserveError> {
        let (mut tensors, mut guards) = (Vec::new(), Vec::new());
        let watch = self.watch.lock();
        tensors.try_reserve_exact(watch.viewers.len())?;
        guards.try_reserve_exact(watch.guards.len())?;
        tensors.extend(watch.viewers.iter().filter(|v| v.is_alive()).map(see));
        tensors.reverse();
        guards.extend(watch.guards.iter().map(|g| GuardInfo {
            mode: g.mode,
            site: g.site,
        }));
        // Each tensor and each guard has a handle of its own.
        let known = watch.viewers.len() + watch.guards.len();
        Ok(Watched {
            label: watch.label.clone(),
            last_write: watch.last_write,
            handles: self.refs.count().saturating_sub(known),
            tensors,
            guards,
        })
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
