//! pprof's profile: a gzipped protocol buffer (`profile.proto`), written field by field.

use super::file_and_line;
use crate::timeline::{Stay, Text, Timeline};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::{self, Write};

/// The values of a sample, in pairs of count and bytes.
const TYPES: [(&str, &str); 6] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// Bytes of a protocol buffer.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n > 127 {
            self.0.push(n as u8 | 128);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    /// A field that is a number. Zero is what a missing one means.
    fn number(&mut self, field: u64, n: u64) {
        if n != 0 {
            self.varint(field << 3);
            self.varint(n);
        }
    }

    /// A field that is a text or a message.
    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A field that is a list of numbers.
    fn numbers(&mut self, field: u64, list: &[u64]) {
        let mut packed = Message::default();
        list.iter().for_each(|&n| packed.varint(n));
        self.bytes(field, &packed.0);
    }
}

/// The tables of a profile: texts, functions and places, each once.
#[derive(Default)]
struct Tables<'a> {
    texts: HashMap<&'a str, u64>,
    list: Vec<&'a str>,
    functions: HashMap<(&'a str, &'a str), u64>,
    places: HashMap<(u64, u64), u64>,
    profile: Message,
}

impl<'a> Tables<'a> {
    fn text(&mut self, text: &'a str) -> u64 {
        *self.texts.entry(text).or_insert_with(|| {
            self.list.push(text);
            self.list.len() as u64 - 1
        })
    }

    /// A place: a line of a file, in a function.
    fn place(&mut self, function: &'a str, file: &'a str, line: u64) -> u64 {
        let number = self.functions.len() as u64 + 1;
        let id = *self.functions.entry((function, file)).or_insert(number);
        if id == number {
            let (name, file) = (self.text(function), self.text(file));
            let mut m = Message::default();
            m.number(1, id);
            m.number(2, name);
            m.number(3, name);
            m.number(4, file);
            self.profile.bytes(5, &m.0);
        }
        let number = self.places.len() as u64 + 1;
        let place = *self.places.entry((id, line)).or_insert(number);
        if place == number {
            let mut at = Message::default();
            at.number(1, id);
            at.number(2, line);
            let mut m = Message::default();
            m.number(1, place);
            m.bytes(4, &at.0);
            self.profile.bytes(4, &m.0);
        }
        place
    }
}

pub(super) fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut tables = Tables::default();
    tables.text("");
    let mut types = Message::default();
    for (kind, unit) in TYPES {
        let mut m = Message::default();
        m.number(1, tables.text(kind));
        m.number(2, tables.text(unit));
        types.bytes(1, &m.0);
    }
    for ((op, site, scope, label), values) in sums(timeline) {
        let (file, line) = file_and_line(timeline.text(site));
        // The innermost first: the operation at its line, then the scopes around it.
        let mut stack = vec![tables.place(timeline.text(op), file, line)];
        let scopes = timeline.text(scope).rsplit('.').filter(|s| !s.is_empty());
        stack.extend(scopes.map(|scope| tables.place(scope, "", 0)));
        let mut sample = Message::default();
        sample.numbers(1, &stack);
        sample.numbers(2, &values);
        if label != Text(0) {
            let mut m = Message::default();
            m.number(1, tables.text("label"));
            m.number(2, tables.text(timeline.text(label)));
            sample.bytes(3, &m.0);
        }
        tables.profile.bytes(2, &sample.0);
    }
    let default = tables.text("peak_space");
    let Tables { list, profile, .. } = tables;
    let mut end = Message::default();
    list.iter().for_each(|text| end.bytes(6, text.as_bytes()));
    end.number(10, timeline.duration);
    end.number(14, default);
    let mut zip = GzEncoder::new(out, Compression::default());
    for part in [types, profile, end] {
        zip.write_all(&part.0)?;
    }
    zip.finish().map(drop)
}

type Group = (Text, Text, Text, Text);

/// The values of all stays of one operation, line, scope and label, in the order of their first.
fn sums(timeline: &Timeline) -> Vec<(Group, [u64; 6])> {
    let mut groups: HashMap<Group, usize> = HashMap::new();
    let mut sums: Vec<(Group, [u64; 6])> = Vec::new();
    let mut add = |s: &Stay, at: usize| {
        let group = (s.op, s.site, s.scope, s.label);
        let place = *groups.entry(group).or_insert_with(|| {
            sums.push((group, [0; 6]));
            sums.len() - 1
        });
        sums[place].1[at] += 1;
        sums[place].1[at + 1] += s.size;
    };
    timeline.storages.iter().for_each(|s| add(s, 0));
    for (number, device) in timeline.devices.iter().enumerate() {
        let peak = device.peak.time.unwrap_or(0);
        let of_it = timeline
            .stays_at(peak)
            .filter(|s| s.device as usize == number);
        of_it.for_each(|s| add(s, 2));
    }
    timeline
        .storages
        .iter()
        .filter(|s| s.to.is_none())
        .for_each(|s| add(s, 4));
    sums
}
