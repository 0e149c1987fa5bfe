//! `osteon tour`: the lesson of tensors, views and storages, each point run live.

mod memory;
mod sharing;
mod stage;
mod views;

use crate::drawing::Drawing;
use crate::failure::Failure;
use crate::lang::{Lang, Text};
use crate::term::{Out, Screen, Style, left, safe, width};
use osteon::memory::{MemoryMap, map};
use stage::Stage;
use std::io::Write;
use std::path::PathBuf;

/// The lesson of tensors, views and storages, run live; also what plain `osteon` shows
///
/// Every number and address is of this run: the code that is shown is the code that runs.
#[derive(Debug, Default, clap::Args)]
pub struct Args {
    /// Also write the picture of the tour's memory, one HTML page that needs no network
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
}

/// One point of the lesson.
pub struct Point {
    title: Text,
    /// How it is commonly told.
    told: Text,
    verdict: Verdict,
    /// Shows it, live.
    run: fn(&mut Stage<'_>) -> Result<(), Failure>,
    /// What was seen.
    truth: Text,
}

/// Whether the common telling is right.
#[derive(Clone, Copy)]
enum Verdict {
    Right,
    HalfRight,
    Accident,
    Wrong,
}

impl Verdict {
    fn words(self) -> (Style, Text) {
        match self {
            Verdict::Right => (
                Style::Good,
                Text {
                    en: "RIGHT",
                    zh: "正确",
                },
            ),
            Verdict::HalfRight => (
                Style::Fair,
                Text {
                    en: "HALF RIGHT",
                    zh: "对一半",
                },
            ),
            Verdict::Accident => (
                Style::Bad,
                Text {
                    en: "AN ACCIDENT",
                    zh: "巧合",
                },
            ),
            Verdict::Wrong => (
                Style::Bad,
                Text {
                    en: "WRONG",
                    zh: "错误",
                },
            ),
        }
    }
}

const TITLE: Text = Text {
    en: "Tensors, views and storages: a lesson in 17 points, run live",
    zh: "张量、视图与存储：十七个要点，现场运行",
};
const INTRO: Text = Text {
    en: "A tensor is the skin, the storage is the bone. Below, each point of the lesson is first told as it is \
         commonly told. Then code runs, and its results decide. Every address, id and number is of this run: \
         the code that you see is the code that ran.",
    zh: "张量是皮，存储是骨。下面的每个要点先给出常见的说法，然后运行代码，由结果来判断对错。\
         所有地址、编号和数字都来自这一次运行：您看到的代码就是实际运行的代码。",
};
const TOLD: Text = Text {
    en: "Told: ",
    zh: "说法：",
};
const SEEN: Text = Text {
    en: "Seen: ",
    zh: "结论：",
};
const PICTURE: Text = Text {
    en: "The picture of this program, drawn from memory::map(): storages, and below each the tensors on it. \
         A and B are two tensors on one storage, C has its own: three tensors, two storages. And first_row is \
         still there, since point 4: one row that keeps a whole batch alive.",
    zh: "这个程序的图，由 memory::map() 画出：先是存储，下面是它上面的张量。A 和 B 是同一个存储上的两个张量，\
         C 有自己的存储：三个张量，两个存储。第 4 点的 first_row 也还在：仅仅一行，却让整个批次无法释放。",
};
const NEXT: Text = Text {
    en: "What to run next (from a clone: cargo run --release -- …)",
    zh: "接下来可以运行（在仓库中：cargo run --release -- …）",
};
const COMMANDS: [(&str, Text); 4] = [
    (
        "osteon map",
        Text {
            en: "the same for a checkpoint (one is built in)",
            zh: "画检查点的图（内置了一个小检查点）",
        },
    ),
    (
        "osteon map FILE --html map.html",
        Text {
            en: "for yours, also as a page for the browser",
            zh: "您自己的检查点，并生成浏览器页面",
        },
    ),
    (
        "osteon compact IN OUT",
        Text {
            en: "rewrite one without the unreached bytes",
            zh: "重写检查点，去掉没有张量可达的字节",
        },
    ),
    (
        "osteon tour --html tour.html",
        Text {
            en: "this tour, its memory as a page",
            zh: "这个导览，并把它的内存画成页面",
        },
    ),
];

pub fn run(args: &Args, mut screen: Screen, lang: Lang) -> Result<(), Failure> {
    // Longer lines of text are hard to read.
    screen.width = screen.width.min(96);
    let mut out = Out::new();
    let stage = &mut Stage {
        out: &mut out,
        screen,
        lang,
        kept: Vec::new(),
    };
    writeln!(stage.out, "{}\n", screen.paint(Style::Bold, TITLE.of(lang)))?;
    stage.say(INTRO, 0)?;
    let points = sharing::POINTS
        .iter()
        .chain(&views::POINTS)
        .chain(&memory::POINTS);
    for (number, point) in (1..).zip(points) {
        writeln!(stage.out)?;
        point.write(number, stage)?;
    }
    let now = map();
    writeln!(stage.out)?;
    stage.say(PICTURE, 0)?;
    writeln!(stage.out)?;
    draw(&now, stage)?;
    writeln!(stage.out, "\n{}", screen.paint(Style::Bold, NEXT.of(lang)))?;
    for (command, what) in COMMANDS {
        writeln!(stage.out, "  {}{}", left(command, 33), what.of(lang))?;
    }
    if let Some(html) = &args.html {
        let mut picture = now.picture()?.lang(lang.of_picture());
        picture.subtitle = TITLE.of(lang).into();
        picture.write_html(html)?;
        crate::map::wrote(stage.out, html, lang)?;
    }
    out.flush()?;
    Ok(())
}

/// The picture as text.
fn draw(map: &MemoryMap, stage: &mut Stage<'_>) -> Result<(), Failure> {
    let picture = map.picture()?;
    let names: Vec<_> = picture.storages.iter().map(|s| s.id.to_string()).collect();
    let drawing = Drawing::new(
        stage.screen,
        stage.lang,
        names.iter().map(String::as_str),
        true,
    );
    drawing.header(stage.out)?;
    for (name, storage) in names.iter().zip(&picture.storages) {
        drawing.storage(stage.out, name, &storage.origin, storage)?;
    }
    writeln!(stage.out)?;
    Drawing::legend(stage.out, stage.screen, stage.lang)?;
    Ok(())
}

impl Point {
    fn write(&self, number: usize, stage: &mut Stage<'_>) -> Result<(), Failure> {
        let (screen, lang) = (stage.screen, stage.lang);
        let (style, verdict) = self.verdict.words();
        let (title, verdict) = (self.title.of(lang), verdict.of(lang));
        let gap = screen
            .width
            .saturating_sub(4 + width(title) + width(verdict) + 2)
            .max(1);
        writeln!(
            stage.out,
            "{number:>2}  {} {} {}",
            screen.paint(Style::Bold, title),
            screen.paint(Style::Dim, "─".repeat(gap)),
            screen.paint(style, verdict),
        )?;
        self.paragraph(TOLD, self.told, Style::Dim, stage)?;
        writeln!(stage.out)?;
        (self.run)(stage)?;
        writeln!(stage.out)?;
        self.paragraph(SEEN, self.truth, style, stage)
    }

    fn paragraph(
        &self,
        head: Text,
        text: Text,
        style: Style,
        stage: &mut Stage<'_>,
    ) -> Result<(), Failure> {
        let (head, text) = (head.of(stage.lang), text.of(stage.lang));
        let columns = stage.screen.width.saturating_sub(4);
        for (i, line) in crate::term::wrap(&format!("{head}{text}"), columns)
            .iter()
            .enumerate()
        {
            match line.strip_prefix(head.trim_end()).filter(|_| i == 0) {
                Some(rest) => writeln!(
                    stage.out,
                    "    {}{rest}",
                    stage.screen.paint(style, head.trim_end())
                )?,
                None => writeln!(stage.out, "    {}", safe(line))?,
            }
        }
        Ok(())
    }
}
