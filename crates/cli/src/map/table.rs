//! The map as text.

use super::{Args, File};
use crate::drawing::Drawing;
use crate::failure::Failure;
use crate::lang::{Lang, Text};
use crate::term::{Screen, Style, counted, grouped, percent, safe, wrap};
use osteon::files::Format;
use osteon::memory::bytes;
use std::cmp::Reverse;
use std::io::{self, Write};
use std::path::Path;

/// Storages of one file that are listed, unless all are asked for.
const STORAGES: usize = 20;

const BUILT_IN: Text = Text {
    en: "No file is named, so this is a small checkpoint that is built in.",
    zh: "没有指定文件，这里展示内置的小检查点。",
};
const NOT_READ: Text = Text {
    en: "Only metadata was read; no values were loaded, nothing was executed.",
    zh: "只读取了元数据：没有载入数值，也没有执行文件中的代码。",
};
const COMPACT: Text = Text {
    en: "To get rid of the waste: osteon compact IN OUT",
    zh: "去掉浪费的字节：osteon compact IN OUT",
};
const NO_TENSORS: Text = Text {
    en: "no tensors",
    zh: "没有张量",
};
const WARNING: Text = Text {
    en: "warning: ",
    zh: "警告：",
};

pub fn write(
    out: &mut dyn Write,
    files: &[File],
    args: &Args,
    screen: Screen,
    lang: Lang,
) -> Result<(), Failure> {
    if args.files.is_empty() {
        writeln!(out, "{}\n", BUILT_IN.of(lang))?;
    }
    for file in files {
        file.write(out, args.all, screen, lang)?;
        writeln!(out)?;
    }
    if files.len() > 1 {
        let mut sum = Sum::default();
        files.iter().for_each(|file| sum.add(file));
        let what = match lang {
            Lang::En => format!("All {} files", files.len()),
            Lang::Zh => format!("全部 {} 个文件", files.len()),
        };
        writeln!(
            out,
            "{}\n{}\n",
            screen.paint(Style::Bold, what),
            sum.told(screen, lang)
        )?;
    }
    Drawing::legend(out, screen, lang)?;
    writeln!(out, "{}", screen.paint(Style::Dim, NOT_READ.of(lang)))?;
    if files.iter().any(|f| f.waste() > 0 && f.is_pytorch()) {
        writeln!(out, "{}", COMPACT.of(lang))?;
    }
    Ok(())
}

/// Says where the picture is.
pub fn wrote(out: &mut dyn Write, html: &Path, lang: Lang) -> io::Result<()> {
    let html = html.to_string_lossy();
    match lang {
        Lang::En => writeln!(out, "The picture: {}", safe(&html)),
        Lang::Zh => writeln!(out, "图：{}", safe(&html)),
    }
}

impl File {
    fn is_pytorch(&self) -> bool {
        matches!(
            self.catalog.format,
            Format::PtZip | Format::PtLegacy | Format::PtTar
        )
    }

    fn write(
        &self,
        out: &mut dyn Write,
        all: bool,
        screen: Screen,
        lang: Lang,
    ) -> Result<(), Failure> {
        let size = grouped(self.catalog.file_bytes);
        let about = match lang {
            Lang::En => format!("{}, {size} bytes", self.catalog.format),
            Lang::Zh => format!("{}，{size} 字节", self.catalog.format),
        };
        let path = self.path();
        let path = screen.paint(Style::Bold, safe(&path));
        writeln!(out, "{path}  {}", screen.paint(Style::Dim, about))?;
        for warning in &self.catalog.warnings {
            let text = format!("{}{}", WARNING.of(lang), safe(&warning.message));
            for line in wrap(&text, screen.width.saturating_sub(2)) {
                writeln!(out, "  {}", screen.paint(Style::Fair, line))?;
            }
        }
        let mut order: Vec<_> = (0..self.storages.len()).collect();
        order.sort_by_key(|&s| Reverse((self.unreached(s), self.catalog.storages[s].nbytes)));
        let listed = if all {
            order.len()
        } else {
            order.len().min(STORAGES)
        };
        let key = |s: usize| self.catalog.storages[s].key.as_str();
        let drawing = Drawing::new(screen, lang, order[..listed].iter().map(|&s| key(s)), all);
        if listed > 0 {
            writeln!(out)?;
            drawing.header(out)?;
        }
        for &storage in &order[..listed] {
            let entry = self.entry(storage, storage as u64)?;
            drawing.storage(out, key(storage), "", &entry)?;
        }
        if listed < order.len() {
            let rest = &order[listed..];
            let more = grouped(rest.len() as u64);
            let held = bytes(rest.iter().map(|&s| self.catalog.storages[s].nbytes).sum());
            let line = match (lang, rest.iter().map(|&s| self.unreached(s)).sum()) {
                (Lang::En, 0) => {
                    format!("… and {more} more storages of {held}, none wasted (--all)")
                }
                (Lang::En, n) => format!(
                    "… and {more} more storages of {held}, {} wasted (--all)",
                    bytes(n)
                ),
                (Lang::Zh, 0) => format!("……还有 {more} 个存储，共 {held}，没有浪费（--all）"),
                (Lang::Zh, n) => format!(
                    "……还有 {more} 个存储，共 {held}，浪费 {}（--all）",
                    bytes(n)
                ),
            };
            writeln!(out, "  {}", screen.paint(Style::Dim, line))?;
        }
        let mut sum = Sum::default();
        sum.add(self);
        writeln!(out, "\n{}", sum.told(screen, lang))?;
        Ok(())
    }
}

/// Totals of a file, or of several.
#[derive(Default)]
struct Sum {
    tensors: u64,
    storages: u64,
    /// Storages with more than one tensor.
    shared: u64,
    held: u64,
    waste: u64,
}

impl Sum {
    fn add(&mut self, file: &File) {
        self.tensors += file.catalog.tensors.len() as u64;
        self.storages += file.storages.len() as u64;
        self.shared += file.storages.iter().filter(|s| s.tensors.len() > 1).count() as u64;
        self.held = self.held.saturating_add(file.held());
        self.waste = self.waste.saturating_add(file.waste());
    }

    fn told(&self, screen: Screen, lang: Lang) -> String {
        let Sum {
            tensors,
            storages,
            shared,
            held,
            waste,
        } = *self;
        if storages == 0 {
            return format!("  {}", NO_TENSORS.of(lang));
        }
        let share = percent(waste, held);
        let (held, shared) = (grouped(held), grouped(shared));
        let first = match lang {
            Lang::En => {
                let shared = if self.shared == 0 {
                    String::new()
                } else {
                    format!(" ({shared} shared by several)")
                };
                format!(
                    "{} on {}{shared}: {held} bytes",
                    counted(tensors, "tensor"),
                    counted(storages, "storage")
                )
            }
            Lang::Zh => {
                let shared = if self.shared == 0 {
                    String::new()
                } else {
                    format!("（{shared} 个由多个张量共享）")
                };
                format!(
                    "{} 个张量，{} 个存储{shared}：{held} 字节",
                    grouped(tensors),
                    grouped(storages)
                )
            }
        };
        let second = match (lang, self.waste) {
            (Lang::En, 0) => "every byte is reached".into(),
            (Lang::En, n) => format!("{} bytes ({share}) are reached by no tensor", grouped(n)),
            (Lang::Zh, 0) => "每个字节都可达".into(),
            (Lang::Zh, n) => format!("{} 字节（{share}）没有任何张量可达", grouped(n)),
        };
        let style = if self.waste == 0 {
            Style::Good
        } else {
            Style::Bad
        };
        format!("  {first}\n  {}", screen.paint(style, second))
    }
}
