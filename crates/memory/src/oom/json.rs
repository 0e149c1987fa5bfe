//! The report as JSON.

use super::room::Room;
use super::{FreeRun, Neighbour, Report};
use crate::events::Event;
use crate::json::{shown, shown_option};
use crate::map::Group;
use crate::storage::{Origin, Site};
use osteon_spec::Device;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct ReportJson<'a> {
    schema: u32,
    kind: &'static str,
    #[serde(serialize_with = "shown")]
    device: Device,
    request: Request<'a>,
    verdict: &'static str,
    #[serde(serialize_with = "shown")]
    explanation: super::Verdict,
    advice: &'static str,
    limit: Option<u64>,
    storages: u64,
    allocated: u64,
    requested: u64,
    reserved: u64,
    idle: u64,
    cached: u64,
    largest_free: Option<Run<'a>>,
    holders: &'a [Group],
    omitted: usize,
    room: Option<RoomJson<'a>>,
    events: &'a [Event],
}

#[derive(Serialize)]
struct Request<'a> {
    bytes: usize,
    op: Option<&'static str>,
    #[serde(serialize_with = "shown_option")]
    site: Option<Site>,
    dtype: Option<&'static str>,
    shape: Option<&'a [usize]>,
}

#[derive(Serialize)]
struct Run<'a> {
    bytes: u64,
    below: Option<Side<'a>>,
    above: Option<Side<'a>>,
}

#[derive(Serialize)]
struct Side<'a> {
    storage: u64,
    label: Option<&'a str>,
    allocated: Option<u64>,
    #[serde(serialize_with = "shown_option")]
    origin: Option<&'a Origin>,
}

#[derive(Serialize)]
struct RoomJson<'a> {
    free: Set<'a>,
    compact: Set<'a>,
}

#[derive(Serialize)]
struct Set<'a> {
    storages: &'a [u64],
    groups: &'a [Group],
}

impl<'a> Side<'a> {
    fn new(of: &'a Neighbour) -> Side<'a> {
        let known = of.known.as_ref();
        Side {
            storage: of.id,
            label: known.and_then(|(label, ..)| label.as_deref()),
            allocated: known.map(|&(_, allocated, _)| allocated),
            origin: known.map(|(.., origin)| origin),
        }
    }
}

impl<'a> Run<'a> {
    fn new(free: &'a FreeRun) -> Run<'a> {
        Run {
            bytes: free.bytes,
            below: free.below.as_ref().map(Side::new),
            above: free.above.as_ref().map(Side::new),
        }
    }
}

impl<'a> RoomJson<'a> {
    fn new(room: &'a Room) -> RoomJson<'a> {
        let set = |storages, groups| Set { storages, groups };
        RoomJson {
            free: set(&room.free, &room.free_groups),
            compact: set(&room.compact, &room.compact_groups),
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let u = &self.usage;
        ReportJson {
            schema: 1,
            kind: "out_of_memory",
            device: self.device,
            request: Request {
                bytes: self.error.requested,
                op: self.by.map(|(op, _)| op),
                site: self.by.map(|(_, site)| site),
                dtype: self.wanted.as_ref().map(|(dtype, _)| dtype.name()),
                shape: self.wanted.as_ref().map(|(_, layout)| layout.sizes()),
            },
            verdict: self.verdict.name(),
            explanation: self.verdict,
            advice: self.verdict.advice(),
            limit: u.limit,
            storages: u.storages,
            allocated: u.allocated,
            requested: u.requested,
            reserved: u.reserved,
            idle: u.idle(),
            cached: u.cached,
            largest_free: self.largest_free.as_ref().map(Run::new),
            holders: &self.holders,
            omitted: self.omitted,
            room: self.room.as_ref().map(RoomJson::new),
            events: &self.events,
        }
        .serialize(to)
    }
}
