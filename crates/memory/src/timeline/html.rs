//! The timeline as one HTML page.

use super::columns::{Columns, no_memory};
use super::{Stay, Timeline};
use crate::page::{Page, write_file};
use crate::picture::Lang;
use osteon_spec::Result;
use serde::Serialize;
use std::collections::HashMap;
use std::io;
use std::path::Path;

/// Writes the page to a file, whole or not at all.
pub(super) fn write(timeline: &Timeline, lang: Lang, path: &Path) -> Result<()> {
    let data = Data::new(timeline, lang)?;
    write_file(path, "timeline", |out| data.write_page(out))
}

/// What the page holds: the timeline with its tables column by column, stays and views in the order of their beginning, and storages
/// named by the row of their first stay.
#[derive(Serialize)]
struct Data<'a> {
    lang: Lang,
    title: &'a str,
    duration: u64,
    events: u64,
    lost: u64,
    strings: &'a [String],
    devices: &'a [super::DeviceFigures],
    layouts: Vec<[&'a [u64]; 2]>,
    storages: Columns<15>,
    changes: Columns<1>,
    views: Columns<11>,
    segments: Columns<6>,
    copies: Columns<7>,
    writes: Columns<4>,
    marks: Columns<5>,
}

impl<'a> Data<'a> {
    fn new(timeline: &'a Timeline, lang: Lang) -> Result<Data<'a>> {
        let order = by_beginning(&timeline.storages, |s| (!s.before, s.from))?;
        let stays: Vec<&Stay> = collected(order.iter().map(|&i| &timeline.storages[i as usize]))?;
        let firsts = first_stays(&stays)?;
        let (layouts, views) = views_of(timeline, &firsts)?;
        Ok(Data {
            lang,
            title: &timeline.title,
            duration: timeline.duration,
            events: timeline.events,
            lost: timeline.lost,
            strings: &timeline.strings,
            devices: &timeline.devices,
            layouts,
            storages: storages_of(&stays, &firsts)?,
            changes: changes_of(&stays)?,
            views,
            segments: segments_of(timeline)?,
            copies: copies_of(timeline, &firsts)?,
            writes: writes_of(timeline, &firsts)?,
            marks: marks_of(timeline)?,
        })
    }

    fn write_page(&self, out: &mut impl io::Write) -> io::Result<()> {
        let page = Page {
            lang: self.lang,
            title: self.title,
            markup: include_str!("page/page.html"),
            style: include_str!("page/page.css"),
            script: concat!(
                include_str!("page/words.js"),
                include_str!("page/data.js"),
                include_str!("page/model.js"),
                include_str!("page/chart.js"),
                include_str!("page/moment.js"),
                include_str!("page/details.js"),
                include_str!("page/page.js"),
            ),
            data: self,
        };
        page.write(out)
    }
}

/// The row of the first stay of each storage.
type Firsts = HashMap<u64, u64>;

fn first_stays(stays: &[&Stay]) -> Result<Firsts> {
    let mut firsts = HashMap::new();
    firsts.try_reserve(stays.len()).map_err(|_| no_memory())?;
    for (row, stay) in stays.iter().enumerate() {
        firsts.entry(stay.id).or_insert(row as u64);
    }
    Ok(firsts)
}

/// Indices of rows, sorted by a key; equal ones stay in their order.
fn by_beginning<T, K: Ord>(rows: &[T], key: impl Fn(&T) -> K) -> Result<Vec<u32>> {
    let mut order: Vec<u32> = collected(0..rows.len() as u32)?;
    order.sort_by_key(|&i| (key(&rows[i as usize]), i));
    Ok(order)
}

fn collected<T>(items: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(items.len())
        .map_err(|_| no_memory())?;
    list.extend(items);
    Ok(list)
}

fn storages_of(stays: &[&Stay], firsts: &Firsts) -> Result<Columns<15>> {
    let mut table = Columns::new([
        "id", "device", "bytes", "size", "address", "from", "to", "before", "op", "site", "scope",
        "label", "thread", "version", "moves",
    ]);
    for (row, s) in stays.iter().enumerate() {
        table.push([
            Some(s.id),
            Some(s.device.into()),
            Some(s.bytes),
            Some(s.size),
            Some(s.address),
            Some(s.from),
            s.to,
            Some(s.before.into()),
            Some(s.op.0.into()),
            Some(s.site.0.into()),
            Some(s.scope.0.into()),
            Some(s.label.0.into()),
            Some(s.thread),
            Some(s.version),
            // How many rows back the storage's first stay is: 0 for one that never moved.
            Some(row as u64 - firsts[&s.id]),
        ])?;
    }
    Ok(table)
}

/// What begins and ends, in its order: 0 where the next stay begins, else how many stays back the one that ends began.
///
/// At one time what ends comes first, unless it began just then.
fn changes_of(stays: &[&Stay]) -> Result<Columns<1>> {
    let mut ends = by_beginning(stays, |s| s.to.unwrap_or(u64::MAX))?;
    ends.retain(|&i| stays[i as usize].to.is_some());
    let mut table = Columns::new(["ago"]);
    let mut begun = stays.iter().take_while(|s| s.before).count();
    let mut ends = ends.into_iter().peekable();
    loop {
        let next = stays.get(begun).map(|s| s.from);
        let ended = ends.next_if(|&i| {
            let is_due = next.is_none_or(|from| stays[i as usize].to <= Some(from));
            (i as usize) < begun && is_due
        });
        match ended {
            Some(row) => table.push([Some((begun - row as usize) as u64)])?,
            None if next.is_some() => {
                begun += 1;
                table.push([Some(0)])?;
            }
            None => return Ok(table),
        }
    }
}

/// The views in the order of their beginning, and the distinct layouts, sizes and strides, that they name by number.
fn views_of<'a>(
    timeline: &'a Timeline,
    firsts: &Firsts,
) -> Result<(Vec<[&'a [u64]; 2]>, Columns<11>)> {
    let mut table = Columns::new([
        "stay", "from", "to", "op", "site", "scope", "label", "view", "dtype", "layout", "offset",
    ]);
    let (mut layouts, mut known) = (Vec::new(), HashMap::new());
    for i in by_beginning(&timeline.views, |v| v.from)? {
        let v = &timeline.views[i as usize];
        let layout = [&*v.shape, &*v.stride];
        known.try_reserve(1).map_err(|_| no_memory())?;
        layouts.try_reserve(1).map_err(|_| no_memory())?;
        let number = *known.entry(layout).or_insert_with(|| {
            layouts.push(layout);
            layouts.len() as u64 - 1
        });
        table.push([
            firsts.get(&v.storage).copied(),
            Some(v.from),
            v.to,
            Some(v.op.0.into()),
            Some(v.site.0.into()),
            Some(v.scope.0.into()),
            Some(v.label.0.into()),
            Some(v.view.into()),
            Some(v.dtype.0.into()),
            Some(number),
            Some(v.offset),
        ])?;
    }
    Ok((layouts, table))
}

fn segments_of(timeline: &Timeline) -> Result<Columns<6>> {
    let mut table = Columns::new(["device", "address", "size", "kind", "from", "to"]);
    for s in &timeline.segments {
        table.push([
            Some(s.device.into()),
            Some(s.address),
            Some(s.size),
            Some(s.kind.0.into()),
            Some(s.from),
            s.to,
        ])?;
    }
    Ok(table)
}

fn copies_of(timeline: &Timeline, firsts: &Firsts) -> Result<Columns<7>> {
    let mut table = Columns::new(["time", "bytes", "reason", "op", "site", "from", "to"]);
    for i in by_beginning(&timeline.copies, |c| c.time)? {
        let c = &timeline.copies[i as usize];
        table.push([
            Some(c.time),
            Some(c.bytes),
            Some(c.reason.0.into()),
            Some(c.op.0.into()),
            Some(c.site.0.into()),
            firsts.get(&c.from).copied(),
            firsts.get(&c.to).copied(),
        ])?;
    }
    Ok(table)
}

fn writes_of(timeline: &Timeline, firsts: &Firsts) -> Result<Columns<4>> {
    let mut table = Columns::new(["time", "stay", "op", "site"]);
    for i in by_beginning(&timeline.writes, |w| w.time)? {
        let w = &timeline.writes[i as usize];
        table.push([
            Some(w.time),
            firsts.get(&w.storage).copied(),
            Some(w.op.0.into()),
            Some(w.site.0.into()),
        ])?;
    }
    Ok(table)
}

fn marks_of(timeline: &Timeline) -> Result<Columns<5>> {
    let mut table = Columns::new(["time", "kind", "text", "value", "thread"]);
    for i in by_beginning(&timeline.marks, |m| m.time)? {
        let m = &timeline.marks[i as usize];
        table.push([
            Some(m.time),
            Some(m.kind.0.into()),
            Some(m.text.0.into()),
            m.value,
            Some(m.thread),
        ])?;
    }
    Ok(table)
}
