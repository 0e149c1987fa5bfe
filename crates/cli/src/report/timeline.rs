//! A timeline in words: its figures, who had the most at the peak, what has grown since the beginning.

use super::sheet::{Column, Sheet, Table, time};
use crate::lang::{Lang, Text};
use crate::term::grouped;
use osteon::memory::bytes;
use osteon::memory::timeline::{Stay, Timeline};
use std::cmp::Reverse;
use std::collections::HashMap;

pub fn sheet(timeline: &Timeline, lang: Lang) -> Sheet {
    let word = |en, zh| Text { en, zh }.of(lang).to_owned();
    let mut sheet = Sheet {
        title: timeline.title.clone(),
        figures: vec![
            (word("recorded", "录制时长"), time(timeline.duration)),
            (word("events", "事件"), grouped(timeline.events)),
            (
                word("allocations", "分配次数"),
                grouped(timeline.storages.len() as u64),
            ),
            (
                word("tensors", "张量"),
                grouped(timeline.views.len() as u64),
            ),
        ],
        tables: vec![],
    };
    if timeline.lost > 0 {
        sheet
            .figures
            .push((word("lost events", "丢失的事件"), grouped(timeline.lost)));
    }
    for (number, device) in timeline.devices.iter().enumerate() {
        let [allocated, reserved] = [("allocated", "已分配"), ("reserved", "已保留")]
            .map(|(en, zh)| format!("{} {}", device.device, word(en, zh)));
        let peak = |at: Option<u64>, n| match lang {
            Lang::En => format!("at most {} at {}", bytes(n), time(at.unwrap_or(0))),
            Lang::Zh => format!("最多 {}，在 {}", bytes(n), time(at.unwrap_or(0))),
        };
        let ends = |start, end| match lang {
            Lang::En => format!(
                "{} at the beginning, {} at the end",
                bytes(start),
                bytes(end)
            ),
            Lang::Zh => format!("开始时 {}，结束时 {}", bytes(start), bytes(end)),
        };
        let d = device;
        let joined = |ends: String, peak: String| match lang {
            Lang::En => format!("{peak}; {ends}"),
            Lang::Zh => format!("{peak}；{ends}"),
        };
        sheet.figures.push((
            allocated,
            joined(
                ends(d.start.allocated, d.end.allocated),
                peak(d.peak.time, d.peak.allocated),
            ),
        ));
        sheet.figures.push((
            reserved,
            joined(
                ends(d.start.reserved, d.end.reserved),
                peak(d.peak_reserved.time, d.peak_reserved.reserved),
            ),
        ));
        let of_device = || {
            timeline
                .storages
                .iter()
                .filter(move |s| s.device as usize == number)
        };
        if let Some(at) = d.peak.time {
            let name = format!(
                "{} {}",
                d.device,
                word("at the peak, by line", "峰值时，按代码行")
            );
            sheet.tables.push(by_line(
                timeline,
                lang,
                name,
                of_device().filter(|s| s.from <= at && s.to.is_none_or(|to| at < to)),
            ));
        }
        let name = format!(
            "{} {}",
            d.device,
            word(
                "made while recording and still there, by line",
                "录制期间创建且仍在，按代码行"
            )
        );
        sheet.tables.push(by_line(
            timeline,
            lang,
            name,
            of_device().filter(|s| !s.before && s.to.is_none()),
        ));
    }
    sheet.tables.push(copies(timeline, lang));
    sheet
}

/// Stays summed by the line that made them, most bytes first.
fn by_line<'a>(
    timeline: &Timeline,
    lang: Lang,
    name: String,
    stays: impl Iterator<Item = &'a Stay>,
) -> Table {
    let mut sums: HashMap<_, (u64, u64)> = HashMap::new();
    for s in stays {
        let (n, sum) = sums.entry((s.op, s.site, s.label)).or_default();
        *n += 1;
        *sum = sum.saturating_add(s.size);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&(key, (n, sum))| (Reverse((sum, n)), key));
    let rows = sums.into_iter().map(|((op, site, label), (n, sum))| {
        let words = [op, site, label].map(|text| timeline.strings[text.0 as usize].clone());
        [bytes(sum).to_string(), grouped(n)]
            .into_iter()
            .chain(words)
            .collect()
    });
    Table {
        name,
        columns: columns(
            lang,
            &[("bytes", "字节"), ("storages", "存储")],
            &[("op", "算子"), ("site", "代码行"), ("label", "标签")],
        ),
        rows: rows.collect(),
        newest_last: false,
    }
}

fn copies(timeline: &Timeline, lang: Lang) -> Table {
    let mut sums: HashMap<_, (u64, u64, u64)> = HashMap::new();
    for c in &timeline.copies {
        let (n, sum, ns) = sums.entry((c.op, c.site, c.reason)).or_default();
        *n += 1;
        *sum = sum.saturating_add(c.bytes);
        *ns = ns.saturating_add(c.duration);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&(key, (n, sum, _))| (Reverse((sum, n)), key));
    let rows = sums.into_iter().map(|((op, site, reason), (n, sum, ns))| {
        let words = [op, site, reason].map(|text| timeline.strings[text.0 as usize].clone());
        [bytes(sum).to_string(), grouped(n), time(ns)]
            .into_iter()
            .chain(words)
            .collect()
    });
    Table {
        name: Text {
            en: "copies by line",
            zh: "各代码行的拷贝",
        }
        .of(lang)
        .to_owned(),
        columns: columns(
            lang,
            &[("bytes", "字节"), ("count", "次数"), ("time", "时间")],
            &[("op", "算子"), ("site", "代码行"), ("reason", "原因")],
        ),
        rows: rows.collect(),
        newest_last: false,
    }
}

fn columns(
    lang: Lang,
    numbers: &[(&'static str, &'static str)],
    texts: &[(&'static str, &'static str)],
) -> Vec<Column> {
    let word = |&(en, zh): &(&'static str, &'static str)| Text { en, zh }.of(lang);
    let numbers = numbers.iter().map(|names| Column::number(word(names)));
    numbers
        .chain(texts.iter().map(|names| Column::text(word(names))))
        .collect()
}
