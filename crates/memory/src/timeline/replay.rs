//! A stretch of the spool read back as a timeline.

use super::record::{Record, Totals};
use super::spool::Stretch;
use super::{
    CopySpan, DeviceFigures, Figures, Moment, SegmentSpan, Stay, Text, Timeline, ViewSpan, Write,
};
use osteon_spec::{Device, Error, Kind, Result};
use std::collections::HashMap;
use std::fs::File;
use std::hash::Hash;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Reads a recording.
pub(super) fn timeline(stretch: &Stretch) -> Result<Timeline> {
    let mut replay = Replay::new(stretch)?;
    let mut from = BufReader::with_capacity(
        1 << 16,
        Window {
            file: &stretch.file,
            bytes: stretch.bytes.clone(),
        },
    );
    let io = |e| Error::io("cannot read the recording", e);
    while !from.fill_buf().map_err(io)?.is_empty() {
        let (after, record) = Record::read(&mut from).map_err(io)?;
        replay.step(after, record)?;
    }
    replay.finish()
}

/// A stretch of a file.
struct Window<'a> {
    file: &'a File,
    bytes: Range<u64>,
}

impl Read for Window<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = (self.bytes.end - self.bytes.start).min(to.len() as u64) as usize;
        let n = self.file.read_at(&mut to[..left], self.bytes.start)?;
        self.bytes.start += n as u64;
        Ok(n)
    }
}

struct Replay {
    timeline: Timeline,
    numbers: HashMap<String, u32>,
    /// What has not ended.
    stays: HashMap<u64, Stay>,
    views: HashMap<u64, ViewSpan>,
    segments: HashMap<(u32, u64), SegmentSpan>,
    /// The names of storages: their own, or that of the first tensor that got one.
    names: HashMap<u64, Text>,
    now: [Totals; 2],
    /// The time of the spool at which the recording began, and the present one.
    began: Option<u64>,
    time: u64,
    label: Text,
    segment_kinds: [Text; 2],
}

impl Replay {
    fn new(stretch: &Stretch) -> Result<Replay> {
        let mut strings = Vec::new();
        reserve(&mut strings, stretch.texts.len())?;
        strings.extend(stretch.texts.iter().map(|t| t.to_string()));
        let device = |device: Device| DeviceFigures {
            device: device.to_string(),
            ..DeviceFigures::default()
        };
        let mut replay = Replay {
            timeline: Timeline {
                schema: 1,
                kind: "timeline".into(),
                title: "Memory over time".into(),
                duration: 0,
                events: 0,
                lost: stretch.lost,
                strings,
                devices: vec![device(Device::cpu()), device(Device::meta())],
                storages: Vec::new(),
                views: Vec::new(),
                segments: Vec::new(),
                copies: Vec::new(),
                writes: Vec::new(),
                marks: Vec::new(),
            },
            numbers: HashMap::new(),
            stays: HashMap::new(),
            views: HashMap::new(),
            segments: HashMap::new(),
            names: HashMap::new(),
            now: [Totals::default(); 2],
            began: None,
            time: 0,
            label: Text(0),
            segment_kinds: [Text(0); 2],
        };
        for (text, number) in stretch.texts.iter().zip(0..) {
            insert(&mut replay.numbers, text.to_string(), number)?;
        }
        replay.label = replay.text("label")?;
        replay.segment_kinds = [replay.text("small")?, replay.text("large")?];
        Ok(replay)
    }

    /// The number of a text, which may be a new one.
    fn text(&mut self, text: &str) -> Result<Text> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(Text(number));
        }
        let number = self.timeline.strings.len() as u32;
        push(&mut self.timeline.strings, text.to_owned())?;
        insert(&mut self.numbers, text.to_owned(), number)?;
        Ok(Text(number))
    }

    /// The time of the recording.
    fn at(&self) -> u64 {
        self.time.saturating_sub(self.began.unwrap_or(self.time))
    }

    fn step(&mut self, after: u64, record: Record) -> Result<()> {
        self.time += after;
        let at = self.at();
        self.timeline.duration = at;
        let since = |before: bool| if before { 0 } else { at };
        match record {
            Record::Begin { time, figures } => self.begin(time, figures),
            Record::End { figures } => {
                // Another recording's end is followed by ours.
                for (device, totals) in self.timeline.devices.iter_mut().zip(figures) {
                    device.end = figures_at(None, totals);
                }
            }
            Record::Alloc {
                before,
                thread,
                device,
                id,
                bytes,
                size,
                address,
                op,
                site,
                scope,
                version,
            } => {
                if self.stays.contains_key(&id) {
                    return Ok(());
                }
                let stay = Stay {
                    id,
                    device,
                    bytes,
                    size,
                    address,
                    from: since(before),
                    to: None,
                    before,
                    op: Text(op),
                    site: Text(site),
                    scope: Text(scope),
                    label: Text(0),
                    thread: u64::from(thread),
                    version,
                };
                insert(&mut self.stays, id, stay)?;
                if !before {
                    self.timeline.events += 1;
                    let now = &mut self.now[device as usize % 2];
                    now.allocated += size;
                    now.requested += if size > 0 { bytes } else { 0 };
                    self.peak(device as usize);
                }
            }
            Record::Free { id, version } => {
                self.timeline.events += 1;
                if let Some(mut stay) = self.stays.remove(&id) {
                    let now = &mut self.now[stay.device as usize % 2];
                    now.allocated = now.allocated.saturating_sub(stay.size);
                    let requested = if stay.size > 0 { stay.bytes } else { 0 };
                    now.requested = now.requested.saturating_sub(requested);
                    stay.to = Some(at);
                    stay.version = version;
                    push(&mut self.timeline.storages, stay)?;
                }
            }
            Record::View {
                before,
                key,
                storage,
                op,
                site,
                scope,
                view,
                dtype,
                shape,
                stride,
                offset,
            } => {
                if self.views.contains_key(&key) {
                    return Ok(());
                }
                self.timeline.events += u64::from(!before);
                let span = ViewSpan {
                    storage,
                    from: since(before),
                    to: None,
                    before,
                    op: Text(op),
                    site: Text(site),
                    scope: Text(scope),
                    label: Text(0),
                    view,
                    dtype: Text(dtype),
                    shape,
                    stride,
                    offset,
                };
                insert(&mut self.views, key, span)?;
            }
            Record::ViewEnd { key } => {
                self.timeline.events += 1;
                if let Some(mut span) = self.views.remove(&key) {
                    span.to = Some(at);
                    push(&mut self.timeline.views, span)?;
                }
            }
            Record::LabelStorage {
                before,
                thread,
                id,
                text,
            } => {
                let label = self.labelled(before, thread, id, &text)?;
                insert(&mut self.names, id, label)?;
            }
            Record::LabelView {
                before,
                thread,
                key,
                storage,
                text,
            } => {
                let label = self.labelled(before, thread, storage, &text)?;
                if let Some(span) = self.views.get_mut(&key) {
                    span.label = label;
                }
                if !self.names.contains_key(&storage) {
                    insert(&mut self.names, storage, label)?;
                }
            }
            Record::Map {
                before,
                device,
                address,
                size,
                large,
            } => self.map(before, device, address, size, large)?,
            Record::Unmap { device, address } => self.unmap(device, address)?,
            Record::Copy {
                thread,
                duration,
                bytes,
                reason,
                op,
                site,
                scope,
                from,
                to,
            } => {
                self.timeline.events += 1;
                let copy = CopySpan {
                    time: at,
                    duration,
                    bytes,
                    reason: Text(reason),
                    op: Text(op),
                    site: Text(site),
                    scope: Text(scope),
                    from,
                    to,
                    thread: u64::from(thread),
                };
                push(&mut self.timeline.copies, copy)?;
            }
            Record::Write {
                thread,
                storage,
                op,
                site,
                scope,
            } => {
                self.timeline.events += 1;
                let write = Write {
                    time: at,
                    storage,
                    op: Text(op),
                    site: Text(site),
                    scope: Text(scope),
                    thread: u64::from(thread),
                };
                push(&mut self.timeline.writes, write)?;
            }
            Record::Mark {
                thread,
                kind,
                text,
                value,
            } => {
                let mark = Moment {
                    time: at,
                    kind: Text(kind),
                    text: Text(text),
                    value: value.checked_sub(1),
                    thread: u64::from(thread),
                };
                self.mark(mark)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, time: u64, figures: [Totals; 2]) {
        // Another recording that begins meanwhile is none of ours.
        if self.began.is_some() {
            return;
        }
        (self.began, self.time) = (Some(time), time);
        self.now = figures;
        for (device, totals) in self.timeline.devices.iter_mut().zip(figures) {
            device.start = figures_at(None, totals);
            device.peak = figures_at(Some(0), totals);
            device.peak_reserved = device.peak;
        }
    }

    /// Compares what is now with the highest yet.
    fn peak(&mut self, device: usize) {
        let at = self.at();
        let (now, figures) = (self.now[device % 2], &mut self.timeline.devices[device % 2]);
        if now.allocated > figures.peak.allocated {
            figures.peak = figures_at(Some(at), now);
        }
        if now.reserved > figures.peak_reserved.reserved {
            figures.peak_reserved = figures_at(Some(at), now);
        }
    }

    fn map(
        &mut self,
        before: bool,
        device: u32,
        address: u64,
        size: u64,
        large: bool,
    ) -> Result<()> {
        // Where a recording begins, the others know the segments already.
        if self.segments.contains_key(&(device, address)) {
            return Ok(());
        }
        if !before {
            self.now[device as usize % 2].reserved += size;
            self.peak(device as usize);
        }
        let span = SegmentSpan {
            device,
            address,
            size,
            kind: self.segment_kinds[usize::from(large)],
            from: if before { 0 } else { self.at() },
            to: None,
        };
        insert(&mut self.segments, (device, address), span)
    }

    fn unmap(&mut self, device: u32, address: u64) -> Result<()> {
        let Some(mut span) = self.segments.remove(&(device, address)) else {
            return Ok(());
        };
        let now = &mut self.now[device as usize % 2];
        now.reserved = now.reserved.saturating_sub(span.size);
        span.to = Some(self.at());
        push(&mut self.timeline.segments, span)
    }

    /// The number of a label, which is a moment of its own unless it was there before.
    fn labelled(&mut self, before: bool, thread: u32, storage: u64, text: &[u8]) -> Result<Text> {
        let label = self.text(&String::from_utf8_lossy(text))?;
        if !before {
            self.mark(Moment {
                time: self.at(),
                kind: self.label,
                text: label,
                value: Some(storage),
                thread: u64::from(thread),
            })?;
        }
        Ok(label)
    }

    fn mark(&mut self, mark: Moment) -> Result<()> {
        self.timeline.events += 1;
        push(&mut self.timeline.marks, mark)
    }

    /// What has not ended comes last, in the order of its beginning.
    fn finish(mut self) -> Result<Timeline> {
        let t = &mut self.timeline;
        append(&mut t.storages, self.stays, |s| (s.from, s.id))?;
        append(&mut t.views, self.views, |v| (v.from, v.storage))?;
        append(&mut t.segments, self.segments, |s| (s.from, s.address))?;
        for stay in &mut t.storages {
            stay.label = self.names.get(&stay.id).copied().unwrap_or_default();
        }
        Ok(self.timeline)
    }
}

fn figures_at(time: Option<u64>, totals: Totals) -> Figures {
    Figures {
        time,
        allocated: totals.allocated,
        requested: totals.requested,
        reserved: totals.reserved,
    }
}

fn append<K, T, O: Ord>(
    list: &mut Vec<T>,
    map: HashMap<K, T>,
    order: impl Fn(&T) -> O,
) -> Result<()> {
    let ended = list.len();
    reserve(list, map.len())?;
    list.extend(map.into_values());
    list[ended..].sort_by_key(order);
    Ok(())
}

fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<()> {
    list.try_reserve(more).map_err(|_| no_memory())
}

fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    reserve(list, 1)?;
    list.push(item);
    Ok(())
}

fn insert<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, value: V) -> Result<()> {
    map.try_reserve(1).map_err(|_| no_memory())?;
    map.insert(key, value);
    Ok(())
}

#[cold]
fn no_memory() -> Error {
    Error::new(
        Kind::OutOfMemory,
        "no memory to hold the whole recording; record a shorter stretch",
    )
}
