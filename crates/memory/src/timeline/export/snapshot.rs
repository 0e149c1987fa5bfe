//! A snapshot as `torch.cuda.memory._snapshot()` gives one: the segments at the end, and all events.
//!
//! Whatever was there when the recording began is mapped and allocated at its first moment, so that the events begin
//! with nothing. Segments are `expandable` ones, which grow and shrink by events of their own.

use super::file_and_line;
use super::pickle::Pickler;
use crate::timeline::{SegmentSpan, Stay, Text, Timeline, ViewSpan};
use std::collections::HashMap;
use std::io::{self, Write};

/// A frame is known by operation, line and scope.
type Frame = (Text, Text, Text);
type Pickle<'a, W> = Pickler<'a, W, Frame>;

/// What happened. Numbers are those of stays, and of marks.
#[derive(Clone, Copy)]
enum Action {
    Map { address: u64, size: u64 },
    Unmap { address: u64, size: u64 },
    Alloc(usize),
    FreeRequested(usize),
    FreeCompleted(usize),
    Annotate { mark: usize, stay: usize },
    OutOfMemory(usize),
}

/// An action, when, and which comes first of what happened in one moment.
type Timed = (u64, Turn, Action);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Free,
    Unmap,
    Map,
    Alloc,
    Other,
    /// Of what was made in the same moment.
    FreeAtOnce,
}

pub(super) fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let tensors = first_tensors(timeline);
    let mut p = Pickle::new(out)?;
    p.dict(|p| {
        p.text("segments")?;
        segments(timeline, p)?;
        p.text("device_traces")?;
        p.list(0..timeline.devices.len(), |p, device| {
            p.list(actions(timeline, device)?, |p, (time, _, action)| {
                p.dict(|p| entry(timeline, &tensors, time, action, p))
            })
        })?;
        p.text("allocator_settings")?;
        p.dict(|p| {
            p.text("expandable_segments")?;
            p.bool(true)
        })?;
        p.text("external_annotations")?;
        p.list([(); 0], |_, ()| Ok(()))
    })?;
    p.finish()
}

/// The tensor that tells most of each storage: the first that is no view.
fn first_tensors(timeline: &Timeline) -> HashMap<u64, &ViewSpan> {
    let mut first: HashMap<u64, &ViewSpan> = HashMap::new();
    for view in &timeline.views {
        let known = first.entry(view.storage).or_insert(view);
        if (view.view, view.from) < (known.view, known.from) {
            *known = view;
        }
    }
    first
}

/// The segments at the end, in order of address, and their blocks, which tile them.
fn segments<'a>(timeline: &'a Timeline, p: &mut Pickle<'a, impl Write>) -> io::Result<()> {
    let mut live: Vec<&Stay> = timeline
        .storages
        .iter()
        .filter(|s| s.to.is_none() && s.size > 0)
        .collect();
    live.sort_by_key(|s| (s.device, s.address));
    let mut segments: Vec<&SegmentSpan> = timeline
        .segments
        .iter()
        .filter(|s| s.to.is_none())
        .collect();
    segments.sort_by_key(|s| (s.device, s.address));
    p.list(segments, |p, segment| {
        let end = segment.address + segment.size;
        let first =
            live.partition_point(|s| (s.device, s.address) < (segment.device, segment.address));
        let last = live.partition_point(|s| (s.device, s.address) < (segment.device, end));
        let inside = &live[first..last];
        let (mut blocks, mut at) = (Vec::new(), segment.address);
        for &stay in inside {
            blocks.extend((stay.address > at).then(|| (at, stay.address - at, None)));
            blocks.push((stay.address, stay.size, Some(stay)));
            at = stay.address + stay.size;
        }
        blocks.extend((end > at).then(|| (at, end - at, None)));
        p.dict(|p| {
            p.entry("device", u64::from(segment.device))?;
            p.entry("address", segment.address)?;
            p.entry("total_size", segment.size)?;
            p.entry("allocated_size", inside.iter().map(|s| s.size).sum())?;
            p.entry("active_size", inside.iter().map(|s| s.size).sum())?;
            p.entry("requested_size", inside.iter().map(|s| s.bytes).sum())?;
            p.entry("stream", 0)?;
            p.text_entry("segment_type", timeline.text(segment.kind))?;
            p.text("segment_pool_id")?;
            p.pair(0, 0)?;
            p.text("is_expandable")?;
            p.bool(true)?;
            p.text("frames")?;
            p.list([(); 0], |_, ()| Ok(()))?;
            p.text("blocks")?;
            p.list(blocks, |p, (address, size, stay)| {
                p.dict(|p| {
                    p.entry("address", address)?;
                    p.entry("size", size)?;
                    p.entry("requested_size", stay.map_or(0, |s| s.bytes))?;
                    let state = if stay.is_some() {
                        "active_allocated"
                    } else {
                        "inactive"
                    };
                    p.text_entry("state", state)?;
                    p.text("frames")?;
                    match stay {
                        Some(s) => frames(timeline, (s.op, s.site, s.scope), p),
                        None => p.list([(); 0], |_, ()| Ok(())),
                    }
                })
            })
        })
    })
}

/// All that happened on a device, in order.
fn actions(timeline: &Timeline, device: usize) -> io::Result<Vec<Timed>> {
    let is_of = |d: u32| d as usize == device;
    let mut all: Vec<Timed> = Vec::new();
    // Room for what there may be at most.
    let most = 3 * timeline.storages.len() + 4 * timeline.segments.len() + timeline.marks.len();
    all.try_reserve_exact(most)
        .map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (i, s) in timeline.storages.iter().enumerate() {
        if !is_of(s.device) || s.size == 0 {
            continue;
        }
        all.push((s.from, Turn::Alloc, Action::Alloc(i)));
        if s.label != Text(0) {
            places.entry(s.id).or_default().push(i);
        }
        if let Some(to) = s.to {
            let turn = if to == s.from {
                Turn::FreeAtOnce
            } else {
                Turn::Free
            };
            all.push((to, turn, Action::FreeRequested(i)));
            all.push((to, turn, Action::FreeCompleted(i)));
        }
    }
    for (mark, m) in timeline.marks.iter().enumerate() {
        let is_there = |&&i: &&usize| {
            let s = &timeline.storages[i];
            s.from <= m.time && s.to.is_none_or(|to| m.time < to)
        };
        match (timeline.text(m.kind), m.value) {
            ("label", Some(id)) => {
                let stay = places
                    .get(&id)
                    .and_then(|stays| stays.iter().find(is_there));
                let annotate = |&stay| (m.time, Turn::Other, Action::Annotate { mark, stay });
                all.extend(stay.map(annotate));
            }
            ("oom", _) if device == 0 => {
                all.push((m.time, Turn::Other, Action::OutOfMemory(mark)));
            }
            _ => {}
        }
    }
    mappings(timeline, device, &mut all);
    all.sort_by_key(|&(time, turn, _)| (time, turn));
    Ok(all)
}

/// What was mapped and unmapped: at each moment the bytes that new segments have and old ones had not, and the other
/// way round.
fn mappings(timeline: &Timeline, device: usize, all: &mut Vec<Timed>) {
    let mut changes: Vec<(u64, u64, i64)> = Vec::new();
    for s in timeline
        .segments
        .iter()
        .filter(|s| s.device as usize == device)
    {
        let (low, high) = (s.address, s.address + s.size);
        changes.extend([(s.from, low, 1), (s.from, high, -1)]);
        changes.extend(
            s.to.into_iter()
                .flat_map(|to| [(to, low, -1), (to, high, 1)]),
        );
    }
    // At each time, from address to address: how many more segments hold the bytes that follow than before.
    changes.sort_unstable();
    for moment in changes.chunk_by(|a, b| a.0 == b.0) {
        let mut more = 0;
        for (i, &(time, address, step)) in moment.iter().enumerate() {
            more += step;
            let size = moment.get(i + 1).map_or(0, |next| next.1 - address);
            if size > 0 && more > 0 {
                all.push((time, Turn::Map, Action::Map { address, size }));
            } else if size > 0 && more < 0 {
                all.push((time, Turn::Unmap, Action::Unmap { address, size }));
            }
        }
    }
}

fn entry<'a>(
    timeline: &'a Timeline,
    tensors: &HashMap<u64, &'a ViewSpan>,
    time: u64,
    action: Action,
    p: &mut Pickle<'a, impl Write>,
) -> io::Result<()> {
    let mut head = |action: &'a str, address: u64, size: u64| {
        p.text_entry("action", action)?;
        p.entry(
            if action == "oom" {
                "device_free"
            } else {
                "addr"
            },
            address,
        )?;
        p.entry("size", size)?;
        p.entry("stream", 0)?;
        p.entry("time_us", time / 1000)?;
        p.text("frames")
    };
    match action {
        Action::Map { address, size } | Action::Unmap { address, size } => {
            let is_map = matches!(action, Action::Map { .. });
            head(
                if is_map {
                    "segment_map"
                } else {
                    "segment_unmap"
                },
                address,
                size,
            )?;
            p.list([(); 0], |_, ()| Ok(()))
        }
        Action::Alloc(i) => {
            let s = &timeline.storages[i];
            head("alloc", s.address, s.bytes)?;
            frames(timeline, (s.op, s.site, s.scope), p)?;
            p.text("user_metadata")?;
            let tensor = tensors.get(&s.id).copied();
            p.dict(|p| about(timeline, timeline.text(s.label), s.id, tensor, p))
        }
        Action::FreeRequested(i) | Action::FreeCompleted(i) => {
            let s = &timeline.storages[i];
            let is_request = matches!(action, Action::FreeRequested(_));
            let action = if is_request {
                "free_requested"
            } else {
                "free_completed"
            };
            head(action, s.address, s.bytes)?;
            frames(timeline, (s.op, s.site, s.scope), p)
        }
        Action::Annotate { mark, stay } => {
            let s = &timeline.storages[stay];
            head("annotate", s.address, s.bytes)?;
            p.list([(); 0], |_, ()| Ok(()))?;
            p.text("user_metadata")?;
            let (name, tensor) = (timeline.marks[mark].text, tensors.get(&s.id).copied());
            p.dict(|p| about(timeline, timeline.text(name), s.id, tensor, p))
        }
        Action::OutOfMemory(i) => {
            let m = &timeline.marks[i];
            // Viewers hold numbers as floats.
            head("oom", 0, m.value.unwrap_or(0).min((1 << 53) - 1))?;
            // The mark's text is "zeros at src/main.rs:3:5".
            let (op, site) = timeline.text(m.text).split_once(" at ").unwrap_or_default();
            let (file, line) = file_and_line(site);
            p.list([()], |p, ()| frame(op, file, line, p))
        }
    }
}

fn about<'a>(
    timeline: &'a Timeline,
    name: &'a str,
    storage: u64,
    tensor: Option<&'a ViewSpan>,
    p: &mut Pickle<'a, impl Write>,
) -> io::Result<()> {
    p.text_entry("tensor", name)?;
    p.entry("storage", storage)?;
    let Some(tensor) = tensor else { return Ok(()) };
    p.text_entry("dtype", timeline.text(tensor.dtype))?;
    p.text("shape")?;
    p.list(tensor.shape.iter(), |p, &n| p.number(n))
}

/// The operation at its line, and the scope around it. Written once each.
fn frames<'a>(
    timeline: &'a Timeline,
    (op, site, scope): Frame,
    p: &mut Pickle<'a, impl Write>,
) -> io::Result<()> {
    p.once((op, site, scope), |p| {
        let (file, line) = file_and_line(timeline.text(site));
        let scope = timeline.text(scope);
        let outer = (!scope.is_empty()).then_some((scope, "scope", 0));
        let all = std::iter::once((timeline.text(op), file, line)).chain(outer);
        p.list(all, |p, (name, file, line)| frame(name, file, line, p))
    })
}

fn frame<'a>(
    name: &'a str,
    file: &'a str,
    line: u64,
    p: &mut Pickle<'a, impl Write>,
) -> io::Result<()> {
    p.dict(|p| {
        p.text_entry("filename", file)?;
        p.entry("line", line)?;
        p.text_entry("name", name)
    })
}
