//! A timeline in words: its figures, who had the most at the peak, what was made and stayed, what was copied.

use super::sheet::{Column, Sheet, Table, time};
use crate::lang::{Lang, Text};
use crate::term::grouped;
use osteon::Result;
use osteon::memory::bytes;
use osteon::memory::timeline::{DeviceFigures, LineSum, Text as Name, Timeline};
use std::cmp::Reverse;
use std::collections::HashMap;

/// A text in both languages.
type Words = (&'static str, &'static str);

const AT_PEAK: Words = ("at the peak, by line", "峰值时，按代码行");
const STAYED: Words = (
    "made while recording and still there, by line",
    "录制期间创建且仍在，按代码行",
);

/// What a timeline tells in one language.
struct Teller<'a> {
    timeline: &'a Timeline,
    lang: Lang,
}

pub fn sheet(timeline: &Timeline, lang: Lang) -> Result<Sheet> {
    let teller = Teller { timeline, lang };
    let mut sheet = Sheet {
        title: timeline.title.clone(),
        figures: teller.figures(),
        tables: vec![],
    };
    for (number, device) in timeline.devices.iter().enumerate() {
        // Nothing ever was on it.
        if !timeline
            .storages
            .iter()
            .any(|s| s.device as usize == number)
        {
            continue;
        }
        sheet.figures.extend(teller.device(device));
        let named = |words| format!("{} {}", device.device, teller.word(words));
        if let Some(at) = device.peak.time {
            let at_peak = timeline.by_line(timeline.live_at(number, at))?;
            sheet.tables.push(teller.by_line(named(AT_PEAK), at_peak));
        }
        let stayed = timeline.by_line(timeline.stayed(number))?;
        sheet.tables.push(teller.by_line(named(STAYED), stayed));
    }
    sheet.tables.push(teller.copies());
    Ok(sheet)
}

impl Teller<'_> {
    fn word(&self, (en, zh): Words) -> String {
        Text { en, zh }.of(self.lang).to_owned()
    }

    fn name(&self, name: Name) -> String {
        self.timeline.text(name).to_owned()
    }

    fn figures(&self) -> Vec<(String, String)> {
        let t = self.timeline;
        let mut figures = vec![
            (self.word(("recorded", "录制时长")), time(t.duration)),
            (self.word(("events", "事件")), grouped(t.events)),
            (
                self.word(("allocations", "分配次数")),
                grouped(t.storages.len() as u64),
            ),
            (
                self.word(("tensors", "张量")),
                grouped(t.views.len() as u64),
            ),
        ];
        if t.lost > 0 {
            figures.push((self.word(("lost events", "丢失的事件")), grouped(t.lost)));
        }
        figures
    }

    /// What the device's allocator had in blocks and from the system: first, last, and at the most.
    fn device(&self, d: &DeviceFigures) -> [(String, String); 2] {
        let peak = self.word(("peak", "峰值"));
        let told = |start, end, most, at: Option<u64>| {
            let (start, end, most) = (bytes(start), bytes(end), bytes(most));
            format!("{start} → {end}, {peak} {most} ({})", time(at.unwrap_or(0)))
        };
        let name = |words| format!("{} {}", d.device, self.word(words));
        let (first, last) = (&d.start, &d.end);
        [
            (
                name(("allocated", "已分配")),
                told(
                    first.allocated,
                    last.allocated,
                    d.peak.allocated,
                    d.peak.time,
                ),
            ),
            (
                name(("reserved", "已保留")),
                told(
                    first.reserved,
                    last.reserved,
                    d.peak_reserved.reserved,
                    d.peak_reserved.time,
                ),
            ),
        ]
    }

    fn by_line(&self, name: String, sums: Vec<LineSum>) -> Table {
        let rows = sums.into_iter().map(|s| {
            let numbers = [bytes(s.bytes).to_string(), grouped(s.storages)];
            let words = [self.name(s.op), self.name(s.site), s.label];
            numbers.into_iter().chain(words).collect()
        });
        Table {
            name,
            columns: self.columns(
                &[("bytes", "字节"), ("storages", "存储")],
                &[("op", "算子"), ("site", "代码行"), ("label", "标签")],
            ),
            rows: rows.collect(),
            newest_last: false,
        }
    }

    fn copies(&self) -> Table {
        let mut sums: HashMap<_, (u64, u64, u64)> = HashMap::new();
        for c in &self.timeline.copies {
            let (sum, n, ns) = sums.entry((c.op, c.site, c.reason)).or_default();
            *sum = sum.saturating_add(c.bytes);
            *n += 1;
            *ns = ns.saturating_add(c.duration);
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|&(key, sum)| (Reverse(sum), key));
        let rows = sums.into_iter().map(|((op, site, reason), (sum, n, ns))| {
            let numbers = [bytes(sum).to_string(), grouped(n), time(ns)];
            let words = [op, site, reason].map(|name| self.name(name));
            numbers.into_iter().chain(words).collect()
        });
        Table {
            name: self.word(("copies by line", "各代码行的拷贝")),
            columns: self.columns(
                &[("bytes", "字节"), ("count", "次数"), ("time", "时间")],
                &[("op", "算子"), ("site", "代码行"), ("reason", "原因")],
            ),
            rows: rows.collect(),
            newest_last: false,
        }
    }

    fn columns(&self, numbers: &[Words], texts: &[Words]) -> Vec<Column> {
        let numbers = numbers.iter().map(|&w| Column::number(&self.word(w)));
        let texts = texts.iter().map(|&w| Column::text(&self.word(w)));
        numbers.chain(texts).collect()
    }
}
