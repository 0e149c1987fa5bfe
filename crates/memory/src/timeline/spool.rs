//! Where recordings write: one file without a name, shared by all recordings that run, through one buffer.
//!
//! Each recording is a stretch of the file. Where one begins, what is there already is entered again, for it; the
//! others know these storages and tensors by their ids and keys, and pass over them.
//!
//! The lock is a leaf: under it nothing is locked. Allocations, frees and changes of segments are entered under their
//! device's lock, tensors under their storage's, so that the file has them in the order in which they happened.

use super::record::{Record, Totals};
use crate::block::PoolKind;
use crate::device;
use crate::events::{Spread, copies::CopyReason, thread_number};
use crate::pool::Pool;
use crate::raw::RawMemory;
use crate::registry::{Role, Seat};
use crate::scope::{self, ScopeId};
use crate::storage::{Inner, Owner, Site};
use osteon_spec::{Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::hash::BuildHasherDefault;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The buffer is written when it is this long.
const BUFFER: usize = 1 << 16;

static ON: AtomicBool = AtomicBool::new(false);
static SPOOL: Mutex<Option<Spool>> = Mutex::new(None);

/// Whether something is being recorded.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

fn spool() -> MutexGuard<'static, Option<Spool>> {
    SPOOL.lock().unwrap_or_else(|e| e.into_inner())
}

struct Spool {
    file: Arc<File>,
    buffer: Vec<u8>,
    /// Bytes in the file.
    written: u64,
    started: Instant,
    /// The time of the last record.
    last: u64,
    records: u64,
    /// Records that could not be written.
    lost: u64,
    recordings: usize,
    texts: Texts,
    /// The segments of each device as last entered, and the pool's count of changes then.
    segments: [(u64, Vec<Segment>); 2],
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    address: u64,
    size: u64,
    large: bool,
}

/// The texts of the program: operations, lines, scopes. As many as it has.
#[derive(Default)]
struct Texts {
    list: Vec<Arc<str>>,
    by_text: HashMap<Arc<str>, u32>,
    /// By address of what lives for ever, so that the rule is one look-up without a text.
    by_place: HashMap<(usize, usize), u32, BuildHasherDefault<Spread>>,
    by_scope: HashMap<ScopeId, u32>,
}

impl Texts {
    /// The number of a text; 0, the empty one, where there is no memory for it.
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.by_text.get(text) {
            return number;
        }
        if self.list.try_reserve(1).is_err() || self.by_text.try_reserve(1).is_err() {
            return 0;
        }
        let text: Arc<str> = Arc::from(text);
        let number = self.list.len() as u32;
        self.list.push(text.clone());
        self.by_text.insert(text, number);
        number
    }

    fn place(&mut self, place: (usize, usize), text: impl FnOnce(&mut Texts) -> u32) -> u32 {
        if let Some(&number) = self.by_place.get(&place) {
            return number;
        }
        let number = text(self);
        if self.by_place.try_reserve(1).is_ok() {
            self.by_place.insert(place, number);
        }
        number
    }

    fn op(&mut self, op: &'static str) -> u32 {
        self.place((op.as_ptr().addr(), op.len()), |t| t.number(op))
    }

    fn site(&mut self, site: Site) -> u32 {
        let place = (std::ptr::from_ref(site).addr(), usize::MAX);
        self.place(place, |t| t.number(&site.to_string()))
    }

    fn scope(&mut self, scope: ScopeId) -> u32 {
        if scope == ScopeId::ROOT {
            return 0;
        }
        if let Some(&number) = self.by_scope.get(&scope) {
            return number;
        }
        let number = self.number(scope.path());
        if self.by_scope.try_reserve(1).is_ok() {
            self.by_scope.insert(scope, number);
        }
        number
    }
}

/// A stretch of the spool's file, and what is needed to read it.
pub(super) struct Stretch {
    pub(super) file: Arc<File>,
    pub(super) bytes: std::ops::Range<u64>,
    pub(super) texts: Vec<Arc<str>>,
    pub(super) lost: u64,
}

/// Where a recording began.
#[derive(Debug)]
pub(super) struct Start {
    at: u64,
    lost: u64,
}

impl Spool {
    fn new() -> Result<Spool> {
        let io = |e| Error::io("cannot make a file for the recording", e);
        let mut buffer = Vec::new();
        buffer
            .try_reserve_exact(2 * BUFFER)
            .map_err(|_| io(std::io::ErrorKind::OutOfMemory.into()))?;
        let mut texts = Texts::default();
        texts.number("");
        Ok(Spool {
            file: Arc::new(tempfile::tempfile().map_err(io)?),
            buffer,
            written: 0,
            started: Instant::now(),
            last: 0,
            records: 0,
            lost: 0,
            recordings: 0,
            texts,
            segments: Default::default(),
        })
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn enter(&mut self, record: &Record) {
        self.enter_at(self.now(), record);
    }

    fn enter_at(&mut self, now: u64, record: &Record) {
        if self.lost > 0 {
            self.lost += 1;
            return;
        }
        record.write(now - self.last, &mut self.buffer);
        self.last = now;
        self.records += 1;
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        match self.file.write_all_at(&self.buffer, self.written) {
            Ok(()) => self.written += self.buffer.len() as u64,
            // The disk is full: nothing after the first gap is entered, and what was written ends with a whole record.
            Err(_) => self.lost += 1,
        }
        self.buffer.clear();
    }

    fn alloc(
        &mut self,
        device: u32,
        storage: &Inner,
        owner: &Owner,
        by: (&'static str, Option<Site>),
        before: bool,
    ) {
        let (size, address) = match owner {
            Owner::Pool(block) => (block.size(), block.ptr().addr().get()),
            _ => (0, 0),
        };
        let scope = storage.scope();
        let record = Record::Alloc {
            before,
            thread: if before { 0 } else { thread_number() },
            device,
            id: storage.id(),
            bytes: storage.nbytes() as u64,
            size: size as u64,
            address: address as u64,
            op: self.texts.op(by.0),
            site: match (by.1, storage.origin().path()) {
                (Some(site), _) => self.texts.site(site),
                (None, path) => self.texts.number(path.unwrap_or_default()),
            },
            scope: self.texts.scope(scope),
            version: storage.version(),
        };
        self.enter(&record);
    }

    fn view(&mut self, seat: &Seat, before: bool) {
        let info = seat.info();
        let list = |l: &[usize]| l.iter().map(|&n| n as u64).collect();
        let record = Record::View {
            before,
            key: seat.key(),
            storage: seat.storage_id(),
            op: self.texts.op(info.op),
            site: self.texts.site(info.site),
            scope: self.texts.scope(info.scope),
            view: info.role == Role::View,
            dtype: self.texts.op(info.dtype.name()),
            shape: list(info.layout.sizes()),
            stride: list(info.layout.strides()),
            offset: info.layout.offset() as u64,
        };
        self.enter(&record);
    }

    fn label_view(&mut self, seat: &Seat, label: &str, before: bool) {
        self.enter(&Record::LabelView {
            before,
            thread: thread_number(),
            key: seat.key(),
            storage: seat.storage_id(),
            text: label.as_bytes().into(),
        });
    }

    fn label_storage(&mut self, storage: &Inner, label: &str, before: bool) {
        self.enter(&Record::LabelStorage {
            before,
            thread: thread_number(),
            id: storage.id(),
            text: label.as_bytes().into(),
        });
    }

    /// Enters how the segments differ from those entered last.
    fn segments<R: RawMemory>(&mut self, device: u32, pool: &Pool<R>) {
        let (changes, known) = &mut self.segments[device as usize];
        if *changes == pool.changes() {
            return;
        }
        *changes = pool.changes();
        let known = std::mem::take(known);
        let segments = segments_of(pool);
        // One moment: where a segment gets another shape, the one ends when the other begins.
        let now = self.now();
        for old in known.iter().filter(|s| segments.binary_search(s).is_err()) {
            let address = old.address;
            self.enter_at(now, &Record::Unmap { device, address });
        }
        for new in segments.iter().filter(|s| known.binary_search(s).is_err()) {
            self.enter_at(now, &new.record(device, false));
        }
        self.segments[device as usize].1 = segments;
    }
}

impl Segment {
    fn record(&self, device: u32, before: bool) -> Record {
        Record::Map {
            before,
            device,
            address: self.address,
            size: self.size,
            large: self.large,
        }
    }
}

fn segments_of<R: RawMemory>(pool: &Pool<R>) -> Vec<Segment> {
    pool.segments()
        .map(|s| Segment {
            address: s.address as u64,
            size: s.size as u64,
            large: s.kind == PoolKind::Large,
        })
        .collect()
}

fn totals<R: RawMemory>(pool: &Pool<R>) -> Totals {
    let stats = pool.stats();
    Totals {
        allocated: stats.allocated_bytes.all.current,
        requested: stats.requested_bytes.all.current,
        reserved: stats.reserved_bytes.all.current,
    }
}

/// Begins a recording: enters all that is there. Allocations wait meanwhile.
pub(super) fn begin() -> Result<Start> {
    let [cpu, meta] = device::all();
    let mut states = [cpu.lock(), meta.lock()];
    let start = {
        let mut spool = spool();
        let s = match &mut *spool {
            Some(s) => s,
            none => none.insert(Spool::new()?),
        };
        s.flush();
        s.recordings += 1;
        let start = Start {
            at: s.written,
            lost: s.lost,
        };
        let time = s.now();
        let figures = states.each_mut().map(|state| totals(state.pool()));
        s.enter(&Record::Begin { time, figures });
        for (device, state) in (0..).zip(&mut states) {
            let (changes, now) = (state.pool().changes(), segments_of(state.pool()));
            now.iter()
                .for_each(|segment| s.enter(&segment.record(device, true)));
            s.segments[device as usize] = (changes, now);
        }
        // From here on others enter what they do.
        ON.store(true, Ordering::Relaxed);
        start
    };
    for (device, state) in (0..).zip(&states) {
        for storage in state.storages.iter() {
            // Under the storage's lock, so that each of its tensors is entered here, or when it is made, and goes after.
            let watch = storage.watch.lock();
            let mut spool = spool();
            let Some(s) = &mut *spool else { continue };
            // SAFETY: the device's lock is held.
            let owner = unsafe { storage.owner() };
            s.alloc(device, storage, owner, storage.origin().maker(), true);
            if let Some(label) = watch.label() {
                s.label_storage(storage, label, true);
            }
            for seat in watch.viewers.iter().filter(|v| v.is_alive()) {
                s.view(seat, true);
                if let Some(label) = seat.label() {
                    s.label_view(seat, &label, true);
                }
            }
        }
    }
    Ok(start)
}

/// Ends a recording, and gives what is needed to read it.
pub(super) fn end(start: &Start) -> Option<Stretch> {
    let [cpu, meta] = device::all();
    let mut states = [cpu.lock(), meta.lock()];
    let figures = states.each_mut().map(|state| totals(state.pool()));
    let mut spool = spool();
    let s = spool.as_mut()?;
    s.enter(&Record::End { figures });
    s.flush();
    let stretch = Stretch {
        file: s.file.clone(),
        bytes: start.at..s.written,
        texts: s.texts.list.clone(),
        lost: s.lost - start.lost,
    };
    leave(&mut spool);
    Some(stretch)
}

/// Ends a recording that nobody will read.
pub(super) fn abandon() {
    leave(&mut spool());
}

fn leave(spool: &mut Option<Spool>) {
    if let Some(s) = spool {
        s.recordings -= 1;
        if s.recordings == 0 {
            ON.store(false, Ordering::Relaxed);
            *spool = None;
        }
    }
}

#[cold]
fn with(enter: impl FnOnce(&mut Spool)) {
    if let Some(spool) = &mut *spool() {
        enter(spool);
    }
}

/// Enters that a storage got its bytes. Under its device's lock.
pub(crate) fn alloc<R: RawMemory>(
    device: u32,
    storage: &Inner,
    owner: &Owner,
    by: (&'static str, Option<Site>),
    pool: &Pool<R>,
) {
    with(|s| {
        s.segments(device, pool);
        s.alloc(device, storage, owner, by, false);
    });
}

/// Enters that it gave them back. Under its device's lock.
pub(crate) fn free<R: RawMemory>(device: u32, storage: &Inner, pool: &Pool<R>) {
    let record = Record::Free {
        id: storage.id(),
        version: storage.version(),
    };
    with(|s| {
        s.enter(&record);
        s.segments(device, pool);
    });
}

/// Enters what became of the segments. Under the device's lock.
pub(crate) fn segments<R: RawMemory>(device: u32, pool: &Pool<R>) {
    with(|s| s.segments(device, pool));
}

/// Enters a new tensor. Under its storage's lock.
pub(crate) fn view(seat: &Seat) {
    with(|s| s.view(seat, false));
}

/// Enters that it went. Under its storage's lock.
pub(crate) fn view_end(seat: &Seat) {
    with(|s| s.enter(&Record::ViewEnd { key: seat.key() }));
}

/// Enters a storage's label.
pub(crate) fn label_storage(storage: &Inner, label: &str) {
    with(|s| s.label_storage(storage, label, false));
}

/// Enters a tensor's label.
pub(crate) fn label_view(seat: &Seat, label: &str) {
    with(|s| s.label_view(seat, label, false));
}

/// Enters a copy that took that long.
pub(crate) fn copy(
    (reason, op, site): (CopyReason, &'static str, Site),
    duration: Duration,
    bytes: u64,
    (from, to): (u64, u64),
) {
    with(|s| {
        let record = Record::Copy {
            thread: thread_number(),
            duration: duration.as_nanos() as u64,
            bytes,
            reason: s.texts.op(reason.name()),
            op: s.texts.op(op),
            site: s.texts.site(site),
            scope: s.texts.scope(scope::current()),
            from,
            to,
        };
        s.enter(&record);
    });
}

/// Enters a write in place.
pub(crate) fn write(storage: u64, op: &'static str, site: Site) {
    with(|s| {
        let record = Record::Write {
            thread: thread_number(),
            storage,
            op: s.texts.op(op),
            site: s.texts.site(site),
            scope: s.texts.scope(scope::current()),
        };
        s.enter(&record);
    });
}

/// Enters a moment worth a line.
pub(crate) fn mark(kind: &'static str, text: &str, value: Option<u64>) {
    with(|s| {
        let record = Record::Mark {
            thread: thread_number(),
            kind: s.texts.op(kind),
            text: s.texts.number(text),
            value: value.map_or(0, |v| v.saturating_add(1)),
        };
        s.enter(&record);
    });
}
