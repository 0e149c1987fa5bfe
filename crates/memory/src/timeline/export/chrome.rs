//! Chrome's trace format: one JSON object with a list of events.

use super::name_of;
use crate::timeline::{Text, Timeline};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// The process that all events belong to.
const PROCESS: u32 = 1;

#[derive(Serialize)]
struct Event<'a> {
    ph: &'static str,
    pid: u32,
    tid: u64,
    /// Microseconds.
    ts: f64,
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// How far a moment's line reaches: the thread or the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl Default for Event<'_> {
    fn default() -> Self {
        Event {
            ph: "i",
            pid: PROCESS,
            tid: 0,
            ts: 0.0,
            name: "",
            cat: "",
            dur: None,
            id: None,
            s: None,
            args: Value::Null,
        }
    }
}

/// The list of events as it is written.
struct List<W> {
    out: W,
    first: bool,
}

impl<W: Write> List<W> {
    fn push(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.out
            .write_all(if self.first { b"\n" } else { b",\n" })?;
        self.first = false;
        serde_json::to_writer(&mut self.out, event).map_err(io::Error::from)
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1e3
}

pub(super) fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut list = List { out, first: true };
    names(timeline, &mut list)?;
    counters(timeline, &mut list)?;
    storages(timeline, &mut list)?;
    threads(timeline, &mut list)?;
    list.out.write_all(b"\n]}\n")
}

fn names(timeline: &Timeline, list: &mut List<impl Write>) -> io::Result<()> {
    let mut name = |tid, what, name: &str| {
        list.push(&Event {
            ph: "M",
            tid,
            name: what,
            args: json!({ "name": name }),
            ..Event::default()
        })
    };
    name(0, "process_name", &timeline.title)?;
    let threads: BTreeSet<u64> = timeline
        .copies
        .iter()
        .map(|c| c.thread)
        .chain(timeline.writes.iter().map(|w| w.thread))
        .chain(timeline.marks.iter().map(|m| m.thread))
        .collect();
    for thread in threads {
        name(thread, "thread_name", &format!("thread {thread}"))?;
    }
    Ok(())
}

/// The three figures of each device, wherever one changes.
fn counters(timeline: &Timeline, list: &mut List<impl Write>) -> io::Result<()> {
    for (number, device) in timeline.devices.iter().enumerate() {
        // Allocated, requested and reserved bytes that come or go at a time.
        let mut changes: Vec<(u64, [i64; 3])> = Vec::new();
        let is_of = |device: u32| device as usize == number;
        for s in timeline
            .storages
            .iter()
            .filter(|s| is_of(s.device) && s.size > 0)
        {
            let bytes = [s.size as i64, s.bytes as i64, 0];
            changes.extend((!s.before).then_some((s.from, bytes)));
            changes.extend(s.to.map(|to| (to, bytes.map(i64::wrapping_neg))));
        }
        for s in timeline.segments.iter().filter(|s| is_of(s.device)) {
            // Those of time 0 are in the device's figures.
            changes.extend((s.from > 0).then_some((s.from, [0, 0, s.size as i64])));
            changes.extend(s.to.map(|to| (to, [0, 0, -(s.size as i64)])));
        }
        let start = device.start;
        if changes.is_empty() && start.reserved == 0 {
            continue;
        }
        changes.sort_by_key(|c| c.0);
        let mut now = [start.allocated, start.requested, start.reserved].map(|n| n as i64);
        let name = format!("memory of {}", device.device);
        let mut put = |time, now: [i64; 3]| {
            list.push(&Event {
                ph: "C",
                ts: micros(time),
                name: &name,
                args: json!({"allocated": now[0], "requested": now[1], "reserved": now[2]}),
                ..Event::default()
            })
        };
        put(0, now)?;
        for same in changes.chunk_by(|a, b| a.0 == b.0) {
            for (_, change) in same {
                now = std::array::from_fn(|i| now[i] + change[i]);
            }
            put(same[0].0, now)?;
        }
    }
    Ok(())
}

/// A span from the first to the last moment of each stay.
fn storages(timeline: &Timeline, list: &mut List<impl Write>) -> io::Result<()> {
    for (number, s) in timeline.storages.iter().enumerate() {
        let end = |ph, time, args| Event {
            ph,
            tid: s.thread,
            ts: micros(time),
            name: name_of(timeline, s),
            cat: "storage",
            // Stays of one storage are apart.
            id: Some(number as u64 + 1),
            args,
            ..Event::default()
        };
        let args = json!({
            "storage": s.id,
            "bytes": s.bytes,
            "allocated": s.size,
            "op": timeline.text(s.op),
            "site": timeline.text(s.site),
            "scope": timeline.text(s.scope),
            "writes": s.version,
            "here_before": s.before,
        });
        list.push(&end("b", s.from, args))?;
        list.push(&end("e", s.to.unwrap_or(timeline.duration), Value::Null))?;
    }
    Ok(())
}

/// What threads did.
fn threads(timeline: &Timeline, list: &mut List<impl Write>) -> io::Result<()> {
    let text = |t: Text| timeline.text(t);
    for c in &timeline.copies {
        list.push(&Event {
            ph: "X",
            tid: c.thread,
            ts: micros(c.time.saturating_sub(c.duration)),
            dur: Some(micros(c.duration)),
            name: text(c.op),
            cat: "copy",
            args: json!({
                "bytes": c.bytes, "reason": text(c.reason), "site": text(c.site),
                "scope": text(c.scope), "from": c.from, "to": c.to,
            }),
            ..Event::default()
        })?;
    }
    for w in &timeline.writes {
        list.push(&Event {
            tid: w.thread,
            ts: micros(w.time),
            name: text(w.op),
            cat: "write",
            s: Some("t"),
            args: json!({
                "storage": w.storage, "site": text(w.site), "scope": text(w.scope),
            }),
            ..Event::default()
        })?;
    }
    for m in &timeline.marks {
        let (kind, name) = (text(m.kind), text(m.text));
        let (ph, s) = match kind {
            "scope" => ("B", None),
            "scope_end" => ("E", None),
            _ => ("i", Some("p")),
        };
        list.push(&Event {
            ph,
            tid: m.thread,
            ts: micros(m.time),
            name: if name.is_empty() { kind } else { name },
            cat: if s.is_some() { "mark" } else { "scope" },
            s,
            args: if s.is_some() {
                json!({ "kind": kind, "value": m.value })
            } else {
                Value::Null
            },
            ..Event::default()
        })?;
    }
    Ok(())
}
