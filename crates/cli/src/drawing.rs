//! Storages and their tensors drawn with characters: a bar for each storage, its bytes to scale, and below it one
//! for each tensor, where several share it.

use crate::lang::{Lang, Text};
use crate::term::{Screen, Style, left, percent, right, safe, width};
use osteon::memory::bytes;
use osteon::memory::picture::{Run, StorageEntry, TensorEntry};
use std::io::{self, Write};

/// Tensors of one storage that are listed, unless all are asked for.
const TENSORS: usize = 8;
/// Columns of the numbers: bytes, reached, waste, its share, and the space before the bar.
const NUMBERS: usize = 9 + 10 + 10 + 8 + 2;
/// The longest bar.
const BAR: usize = 40;

const STORAGE: Text = Text {
    en: "storage",
    zh: "存储",
};
const SIZE: Text = Text {
    en: "bytes",
    zh: "字节",
};
const REACHED: Text = Text {
    en: "reached",
    zh: "可达",
};
const WASTE: Text = Text {
    en: "waste",
    zh: "浪费",
};
const LEGEND: [(Cell, Text); 4] = [
    (
        Cell::One,
        Text {
            en: "reached by one",
            zh: "一个张量可达",
        },
    ),
    (
        Cell::Shared,
        Text {
            en: "shared by several",
            zh: "多个张量共享",
        },
    ),
    (
        Cell::Part,
        Text {
            en: "in part",
            zh: "部分可达",
        },
    ),
    (
        Cell::None,
        Text {
            en: "by none",
            zh: "无张量可达",
        },
    ),
];

/// How storages are drawn on a screen.
#[derive(Clone, Copy, Debug)]
pub struct Drawing {
    pub screen: Screen,
    pub lang: Lang,
    /// Columns of the storages' names.
    key: usize,
    bar: usize,
    all: bool,
}

/// What is reached of the bytes behind one character of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cell {
    None,
    /// In a tensor's own bar: not reached by this one.
    Apart,
    Part,
    One,
    Shared,
}

impl Cell {
    fn glyph(self) -> (Style, char) {
        match self {
            Cell::None => (Style::Bad, '░'),
            Cell::Apart => (Style::Dim, '·'),
            Cell::Part => (Style::Good, '▒'),
            Cell::One => (Style::Good, '▓'),
            Cell::Shared => (Style::Shared, '█'),
        }
    }
}

impl Drawing {
    /// For storages of these names; `all` lists every tensor.
    pub fn new<'a>(
        screen: Screen,
        lang: Lang,
        names: impl Iterator<Item = &'a str>,
        all: bool,
    ) -> Drawing {
        let longest = names.map(|name| width(&safe(name))).max().unwrap_or(0);
        let key = longest.clamp(12, 24);
        let bar = screen.width.saturating_sub(2 + key + NUMBERS).clamp(8, BAR);
        Drawing {
            screen,
            lang,
            key,
            bar,
            all,
        }
    }

    /// The names of the columns.
    pub fn header(&self, out: &mut dyn Write) -> io::Result<()> {
        let [storage, size, reached, waste] =
            [STORAGE, SIZE, REACHED, WASTE].map(|t| t.of(self.lang));
        let line = [
            left(storage, self.key),
            right(size, 9),
            right(reached, 10),
            right(waste, 10),
        ]
        .concat();
        writeln!(out, "  {}", self.screen.paint(Style::Dim, line))
    }

    /// What the characters of the bars mean.
    pub fn legend(out: &mut dyn Write, screen: Screen, lang: Lang) -> io::Result<()> {
        let entry =
            |(cell, text): (Cell, Text)| format!("{} {}", painted(screen, &[cell]), text.of(lang));
        writeln!(out, "{}", LEGEND.map(entry).join("   "))
    }

    /// A storage, what it came from if that is to be said, and its tensors.
    pub fn storage(
        &self,
        out: &mut dyn Write,
        name: &str,
        origin: &str,
        entry: &StorageEntry,
    ) -> io::Result<()> {
        let name = safe(name);
        let short = console::truncate_str(&name, self.key, "…");
        let unreached = entry.nbytes.saturating_sub(entry.reached_bytes);
        let (waste, share) = match unreached {
            0 => (self.screen.paint(Style::Dim, right("·", 10)), " ".repeat(8)),
            n => {
                let numbers = [
                    right(&bytes(n).to_string(), 10),
                    right(&percent(n, entry.nbytes), 8),
                ];
                let [waste, share] = numbers.map(|text| self.screen.paint(Style::Bad, text));
                (waste, share)
            }
        };
        // A bar has something to say where there is waste or sharing.
        let is_plain = unreached == 0 && entry.tensors.len() == 1;
        let cells = self.cells(entry);
        let bar_of = |runs| bar(runs, entry.nbytes, cells);
        let drawn = if is_plain {
            String::new()
        } else {
            format!("{share}  {}", painted(self.screen, &bar_of(&entry.runs)))
        };
        writeln!(
            out,
            "  {}{:>9}{:>10}{waste}{drawn}",
            self.screen.paint(Style::Bold, left(&short, self.key)),
            bytes(entry.nbytes),
            bytes(entry.reached_bytes),
        )?;
        if !origin.is_empty() {
            let origin = safe(origin);
            let line = self
                .screen
                .clip(&origin, self.screen.width.saturating_sub(4));
            writeln!(out, "    {}", self.screen.paint(Style::Dim, line))?;
        }
        let listed = if self.all {
            entry.tensors.len()
        } else {
            TENSORS
        };
        for tensor in entry.tensors.iter().take(listed) {
            // Said already, where the storage has its one tensor's name.
            let said = entry.tensors.len() == 1
                && tensor.name.as_deref().is_some_and(|n| safe(n) == *short);
            let text = self.tensor(tensor, said);
            let columns = 2 + self.key + NUMBERS - 2;
            if entry.tensors.len() == 1 {
                let text = self.screen.clip(&text, self.screen.width);
                writeln!(out, "{text}")?;
                continue;
            }
            let text = left(&self.screen.clip(&text, columns), columns);
            // What it does not reach, others may.
            let own = bar_of(&tensor.runs)
                .iter()
                .map(|&c| if c == Cell::None { Cell::Apart } else { c })
                .collect::<Vec<_>>();
            writeln!(out, "{text}  {}", painted(self.screen, &own))?;
        }
        if entry.tensors.len() > listed {
            let more = entry.tensors.len() - listed;
            let line = match self.lang {
                Lang::En => format!("… and {more} more tensors (--all)"),
                Lang::Zh => format!("……还有 {more} 个张量（--all）"),
            };
            writeln!(out, "    {}", self.screen.paint(Style::Dim, line))?;
        }
        Ok(())
    }

    fn tensor(&self, tensor: &TensorEntry, said: bool) -> String {
        let mut text = String::from("    ");
        if let (Some(name), false) = (&tensor.name, said) {
            text.push_str(&safe(name));
            text.push_str("  ");
        }
        text.push_str(&format!("{} {:?}", tensor.dtype, tensor.shape));
        if !is_row_major(&tensor.shape, &tensor.stride) {
            text.push_str(&format!("  stride {:?}", tensor.stride));
        }
        if tensor.offset > 0 {
            text.push_str(&format!("  offset {}", tensor.offset));
        }
        for more in [&tensor.op, &tensor.note].into_iter().flatten() {
            text.push_str("  ");
            text.push_str(&safe(more));
        }
        text
    }

    /// Characters of a storage's bar: of a small one, as many for each element.
    fn cells(&self, entry: &StorageEntry) -> usize {
        let itemsize = entry.tensors.first().map_or(1, |t| {
            osteon::DType::from_name(&t.dtype).map_or(1, |dtype| dtype.size())
        });
        match usize::try_from(entry.nbytes).map(|n| n / itemsize) {
            Ok(0) => 0,
            Ok(elements) if elements <= self.bar => self.bar / elements * elements,
            _ => self.bar,
        }
    }
}

fn painted(screen: Screen, cells: &[Cell]) -> String {
    let same = |group: &[Cell]| {
        let (style, glyph) = group[0].glyph();
        screen.paint(style, String::from(glyph).repeat(group.len()))
    };
    cells.chunk_by(|a, b| a == b).map(same).collect()
}

fn is_row_major(shape: &[u64], stride: &[u64]) -> bool {
    let mut dense = 1;
    let as_dense = |(&size, &stride): (&u64, &u64)| {
        let ok = size == 1 || stride == dense;
        dense *= size;
        ok
    };
    shape.contains(&0) || shape.iter().zip(stride).rev().all(as_dense)
}

/// What runs reach of `nbytes` bytes behind each of `count` characters.
fn bar(runs: &[Run], nbytes: u64, count: usize) -> Vec<Cell> {
    // Bytes are counted in parts of a character, so that borders within a byte come out even.
    let scale = count as u128;
    let size = u128::from(nbytes);
    let mut reached = vec![(0u128, 0u128); count];
    for run in runs.iter().filter(|run| run.end > run.start) {
        let (start, end) = (u128::from(run.start) * scale, u128::from(run.end) * scale);
        for cell in start / size..=((end - 1) / size).min(scale.saturating_sub(1)) {
            let overlap = end.min((cell + 1) * size) - start.max(cell * size);
            let bytes = overlap * u128::from(run.reached) / u128::from(run.end - run.start);
            let (one, shared) = &mut reached[cell as usize];
            *(if run.tensors > 1 { shared } else { one }) += bytes;
        }
    }
    let cell = |(one, shared)| match one + shared {
        0 => Cell::None,
        all if all < size => Cell::Part,
        _ if shared >= one => Cell::Shared,
        _ => Cell::One,
    };
    reached.into_iter().map(cell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(runs: &[[u64; 4]], nbytes: u64, count: usize) -> String {
        let runs: Vec<Run> = runs.iter().map(|&run| run.into()).collect();
        bar(&runs, nbytes, count)
            .into_iter()
            .map(|cell| cell.glyph().1)
            .collect()
    }

    #[test]
    fn bars() {
        assert_eq!(drawn(&[[0, 4, 1, 4], [4, 6, 2, 2]], 8, 8), "▓▓▓▓██░░");
        assert_eq!(
            drawn(&[[0, 4, 1, 4], [4, 6, 2, 2]], 8, 16),
            "▓▓▓▓▓▓▓▓████░░░░"
        );
        // Ten elements of a million are seen, and no more is claimed.
        assert_eq!(drawn(&[[0, 40, 1, 40]], 4_000_000, 6), "▒░░░░░");
        // A coarse run: half of its bytes are reached.
        assert_eq!(drawn(&[[0, 80, 1, 40]], 80, 4), "▒▒▒▒");
        assert_eq!(drawn(&[], 80, 4), "░░░░");
        assert_eq!(drawn(&[], 0, 0), "");
    }

    #[test]
    fn row_major() {
        assert!(is_row_major(&[2, 3], &[3, 1]));
        assert!(is_row_major(&[], &[]));
        assert!(is_row_major(&[1, 3], &[77, 1]));
        assert!(!is_row_major(&[3, 2], &[1, 3]));
        assert!(!is_row_major(&[4], &[2]));
    }
}
