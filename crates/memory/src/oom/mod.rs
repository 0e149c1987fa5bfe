//! What an out-of-memory error knows: the request, what is in use and by whom, why it could not be met, and what
//! would have to go.
//!
//! A report is made at the moment of the failure, under the device's lock, so that its figures fit each other. What
//! it cannot hold, because memory is full, it leaves out and says so.

mod json;
mod room;
mod text;
mod verdict;

use crate::block::{AllocError, AllocReason};
use crate::device::State;
use crate::events::{self, Event, EventKind};
use crate::holders::name_roots;
use crate::label::Label;
use crate::map::{By, Group, MemoryMap, StorageInfo, groups};
use crate::storage::{Origin, Site};
use osteon_spec::{DType, Device, Error, Layout, OomReport, Result};
use room::Room;
use verdict::Verdict;

/// A failed allocation.
#[derive(Debug)]
pub(crate) struct Report {
    device: Device,
    error: AllocError,
    by: Option<(&'static str, Site)>,
    wanted: Option<(DType, Layout)>,
    verdict: Verdict,
    usage: Usage,
    largest_free: Option<FreeRun>,
    /// Everything on the device, most bytes first.
    holders: Vec<Group>,
    room: Option<Room>,
    /// Storages that there was no memory to list.
    omitted: usize,
    /// What happened before, oldest first.
    events: Vec<Event>,
}

/// How many events a report has.
const EVENTS: usize = 8;

/// The device's figures at the failure.
#[derive(Clone, Copy, Debug)]
struct Usage {
    limit: Option<u64>,
    storages: u64,
    allocated: u64,
    requested: u64,
    reserved: u64,
    /// What could be given back to the system: whole granules that are free.
    cached: u64,
}

impl Usage {
    /// Reserved, and in no block.
    fn idle(&self) -> u64 {
        self.reserved.saturating_sub(self.allocated)
    }
}

/// The largest free run, and the storages on both sides; none at the end of what is mapped.
#[derive(Debug)]
struct FreeRun {
    bytes: u64,
    below: Option<Neighbour>,
    above: Option<Neighbour>,
}

#[derive(Debug)]
struct Neighbour {
    id: u64,
    /// What is known of it, where there was memory to list it.
    known: Option<(Option<Label>, u64, Origin)>,
}

impl Neighbour {
    fn new(id: u64, map: &MemoryMap) -> Neighbour {
        let known = |s: &StorageInfo| (s.name().cloned(), s.allocated as u64, s.origin.clone());
        Neighbour {
            id,
            known: map.storage(id).map(known),
        }
    }
}

impl Report {
    pub(crate) fn new(device: Device, error: AllocError, state: &mut State) -> Report {
        let mut map = MemoryMap::default();
        map.add(state);
        map.storages.sort_unstable_by_key(|s| s.id);
        let storages = state.storages.len() as u64;
        let pool = state.pool();
        let stats = pool.stats();
        let usage = Usage {
            limit: pool.limit().map(|limit| limit as u64),
            storages,
            allocated: stats.allocated_bytes.all.current,
            requested: stats.requested_bytes.all.current,
            reserved: stats.reserved_bytes.all.current,
            cached: pool.idle_bytes() as u64,
        };
        let largest_free = pool.largest_free().map(|free| FreeRun {
            bytes: free.size as u64,
            below: free.below.map(|id| Neighbour::new(id, &map)),
            above: free.above.map(|id| Neighbour::new(id, &map)),
        });
        let room = match error.reason {
            AllocReason::TooLarge => None,
            _ => room::find(pool, &error, &map).unwrap_or_default(),
        };
        let all = map.storages.iter().map(|s| (s, 1));
        let holders = groups(all, By::Holder).unwrap_or_default();
        let longest = largest_free.as_ref().map_or(0, |free| free.bytes);
        let verdict = Verdict::of(&error, &usage, longest, &holders);
        // What the map could not list, and all of it where there was no memory to sort it.
        let listed: i64 = holders.iter().map(|g| g.storages).sum();
        Report {
            device,
            error,
            by: None,
            wanted: None,
            verdict,
            usage,
            largest_free,
            holders,
            room,
            omitted: storages as usize - listed as usize,
            events: Vec::new(),
        }
    }

    /// The error of an operation, which the recorder enters. Not under any lock: it looks at the recorder.
    #[cold]
    pub(crate) fn into_error(
        mut self: Box<Report>,
        op: &'static str,
        site: Site,
        wanted: Option<(DType, Layout)>,
    ) -> Error {
        self.by = Some((op, site));
        self.wanted = wanted;
        let room = self.room.iter_mut().flat_map(Room::groups);
        name_roots(self.holders.iter_mut().chain(room));
        let recent = events::recent();
        if self.events.try_reserve_exact(EVENTS).is_ok() {
            let told = recent.iter().rev().filter(|e| tells(e.kind)).take(EVENTS);
            self.events.extend(told.cloned());
            self.events.reverse();
        }
        events::out_of_memory(self.error.requested, op, site);
        Error::out_of_memory(self).op(op)
    }
}

/// Whether an event has to do with bytes.
fn tells(kind: EventKind) -> bool {
    !matches!(
        kind,
        EventKind::Label | EventKind::Scope | EventKind::ScopeEnd(_)
    )
}

impl OomReport for Report {
    fn to_json(&self) -> Result<String> {
        crate::json::to_string(self, "out-of-memory report")
    }
}
