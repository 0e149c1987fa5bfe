//! `osteon report`: what a program saved about its memory, as text or as a page.

mod page;
mod pictures;
mod sheet;
mod timeline;

use crate::failure::Failure;
use crate::lang::{Lang, Text};
use crate::map::{refuse_same, wrote};
use crate::term::{Out, Progress, Screen};
use osteon::memory::timeline::Timeline;
use osteon::{Error, Kind, Result};
use pictures::Drawn;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use sheet::Sheet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::slice;

/// Print or draw a report that a program saved as JSON
///
/// Reads what to_json() of osteon's reports and `osteon map --json` write: maps of memory and of files, their differences,
/// pictures, timelines, out-of-memory reports, the last events, copies by line.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The report
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write it as one HTML page that needs no network, instead of printing it
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// Print every row, storage and tensor
    #[arg(long)]
    all: bool,
}

/// The version of the schemas that are known here.
const SCHEMA: u64 = 1;

/// What tells reports apart. The first ones had no kind, and go by their fields.
#[derive(Deserialize)]
struct Head {
    schema: Option<u64>,
    kind: Option<String>,
    title: Option<IgnoredAny>,
    files: Option<IgnoredAny>,
    storages: Option<IgnoredAny>,
}

pub fn run(args: &Args, screen: Screen, lang: Lang) -> std::result::Result<(), Failure> {
    if let Some(html) = &args.html {
        refuse_same(html, slice::from_ref(&args.file))?;
    }
    let report = {
        let progress = Progress::new(1);
        progress.now(&args.file.to_string_lossy());
        Report::read(&args.file, lang).map_err(|e| e.context(args.file.display()))?
    };
    let mut out = Out::new();
    match &args.html {
        Some(html) => {
            report.draw(html, lang)?;
            wrote(&mut out, html, lang)?;
        }
        None => report.print(&mut out, args.all, screen, lang)?,
    }
    out.flush()?;
    Ok(())
}

/// A report, as far as its form matters.
enum Report {
    /// Memory over time.
    Timeline(Box<Timeline>),
    /// Storages and tensors.
    Drawn(Drawn),
    /// Figures and lists.
    Sheet(Sheet),
}

impl Report {
    fn read(path: &Path, lang: Lang) -> Result<Report> {
        let json = fs::read(path).map_err(|e| Error::io("cannot read it", e))?;
        let head: Head = parse(&json)?;
        match head.schema {
            Some(SCHEMA) => {}
            Some(other) => {
                return Err(not_one(format_args!(
                    "its schema is {other}, and this version knows {SCHEMA}"
                )));
            }
            None => return Err(not_one("it has no schema")),
        }
        let fields = (head.title, head.files, head.storages);
        match (head.kind.as_deref(), fields) {
            (Some("timeline"), _) => {
                let timeline = Timeline::read_json(json.as_slice())?;
                Ok(Report::Timeline(Box::new(timeline)))
            }
            (Some("map"), _) | (None, (None, None, Some(_))) => {
                let title = MEMORY_MAP.of(lang).to_owned();
                pictures::of_memory(parse(&json)?, title).map(Report::Drawn)
            }
            (None, (Some(_), None, Some(_))) => {
                pictures::of_picture(parse(&json)?).map(Report::Drawn)
            }
            (None, (None, Some(_), None)) => pictures::of_files(parse(&json)?).map(Report::Drawn),
            (Some(kind), _) => {
                let value: Value = parse(&json)?;
                Ok(Report::Sheet(Sheet::of_json(title_of(kind, lang), &value)))
            }
            (None, _) => Err(not_one("it has neither a kind nor storages nor files")),
        }
    }

    fn print(
        &self,
        out: &mut Out,
        all: bool,
        screen: Screen,
        lang: Lang,
    ) -> std::result::Result<(), Failure> {
        match self {
            Report::Timeline(timeline) => {
                timeline::sheet(timeline, lang)?.print(out, all, screen, lang)?;
            }
            Report::Drawn(drawn) => drawn.print(out, all, screen, lang)?,
            Report::Sheet(sheet) => sheet.print(out, all, screen, lang)?,
        }
        Ok(())
    }

    fn draw(&self, html: &Path, lang: Lang) -> Result<()> {
        match self {
            Report::Timeline(timeline) => timeline.write_html_in(lang.of_picture(), html),
            Report::Drawn(drawn) => drawn.picture(lang)?.write_html(html),
            Report::Sheet(sheet) => page::write(sheet, lang, html),
        }
    }
}

fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(json).map_err(not_one)
}

fn not_one(why: impl std::fmt::Display) -> Error {
    Error::new(Kind::Value, format!("not a report of osteon: {why}"))
}

const MEMORY_MAP: Text = Text {
    en: "Memory map",
    zh: "内存图",
};

/// The heading of a kind of report; one that is not known here is called by its name.
fn title_of(kind: &str, lang: Lang) -> String {
    let known = [
        ("out_of_memory", "Out of memory", "内存不足"),
        ("recent", "The last events", "最近的事件"),
        ("copies", "Copies by line", "各代码行的拷贝"),
        ("holders", "Who holds this storage", "谁持有此存储"),
        (
            "pins",
            "What views keep beyond what they reach",
            "视图保留的自身不可达字节",
        ),
        (
            "dominators",
            "What would go with each tensor",
            "各张量释放后会释放的内存",
        ),
        (
            "growth",
            "What only grows from step to step",
            "逐步只增不减的内存",
        ),
        (
            "diff",
            "What changed between two maps",
            "两张内存图之间的变化",
        ),
    ];
    match known.into_iter().find(|(name, ..)| *name == kind) {
        Some((_, en, zh)) => Text { en, zh }.of(lang).to_owned(),
        None => kind.replace('_', " "),
    }
}
