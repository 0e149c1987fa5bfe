//! What a terminal needs: its width, colours, names that cannot steer it, pipes that close, progress.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::env;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Columns of a text that is not for a terminal.
const PIPE_WIDTH: usize = 96;

/// Where text goes, and how it may look there.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns to fill.
    pub width: usize,
    /// Whether longer lines are cut: a program that reads a pipe gets names whole.
    pub clips: bool,
    /// Whether colours are welcome.
    pub colours: bool,
}

/// How a piece of text stands out. The text says the same without.
#[derive(Clone, Copy, Debug)]
pub enum Style {
    Bold,
    Dim,
    Good,
    Fair,
    Bad,
    Shared,
}

impl Screen {
    /// Standard output as it is.
    pub fn of_stdout() -> Screen {
        let terminal = io::stdout().is_terminal();
        let refused = env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || env::var_os("TERM").is_some_and(|v| v == "dumb");
        let columns = console::Term::stdout()
            .size_checked()
            .map(|(_, columns)| columns.into());
        Screen {
            width: if terminal {
                columns.unwrap_or(80).max(40)
            } else {
                PIPE_WIDTH
            },
            clips: terminal,
            colours: terminal && !refused,
        }
    }

    /// Text in a style, where colours are welcome.
    pub fn paint(&self, style: Style, text: impl Into<String>) -> String {
        let text = text.into();
        if !self.colours || text.is_empty() {
            return text;
        }
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Fair => "33",
            Style::Bad => "31",
            Style::Shared => "34",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Text of at most so many columns, where lines are cut.
    pub fn clip<'a>(&self, text: &'a str, columns: usize) -> Cow<'a, str> {
        if self.clips {
            console::truncate_str(text, columns, "…")
        } else {
            Cow::Borrowed(text)
        }
    }
}

/// Columns that a text takes.
pub fn width(text: &str) -> usize {
    console::measure_text_width(text)
}

/// The text with spaces after it, up to so many columns.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// The text with spaces before it, up to so many columns.
pub fn right(text: &str, columns: usize) -> String {
    format!("{:1$}{text}", "", columns.saturating_sub(width(text)))
}

/// The text with what would steer a terminal, or break or turn its line, as `\u{1b}`.
pub fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            out.extend(c.escape_unicode())
        } else {
            out.push(c)
        }
    }
    Cow::Owned(out)
}

/// Control characters, and format characters that are invisible or turn the direction of a line.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text in lines of at most so many columns. Breaks at spaces and around wide characters, but never before
/// a mark that closes.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    const CLOSES: &str = "，。、：；？！）」』”’…—";
    const OPENS: &str = "（「『“‘";
    let mut lines = Vec::new();
    let (mut line, mut piece) = (String::new(), String::new());
    let mut place = |line: &mut String, piece: &mut String| {
        if width(line) + width(piece.trim_end()) > columns && !line.is_empty() {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        line.push_str(piece);
        piece.clear();
    };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        piece.push(c);
        let wide = |c: char| !c.is_ascii() && width(c.encode_utf8(&mut [0; 4])) == 2;
        let breaks = match chars.peek() {
            None => true,
            Some(&next) if CLOSES.contains(next) || OPENS.contains(c) => false,
            Some(&next) => (c == ' ' && next != ' ') || wide(c) || wide(next),
        };
        if breaks {
            place(&mut line, &mut piece);
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

/// A number with its thousands apart.
pub fn grouped(n: impl Into<u128>) -> String {
    let digits = n.into().to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// One of something, or several, in English.
pub fn counted(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{} {what}s", grouped(n)),
    }
}

/// A part of a whole as a percentage; what is neither nothing nor all is never shown as such.
pub fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64 * 100.0
    };
    match share {
        _ if part > 0 && share < 0.05 => "<0.1 %".into(),
        _ if part < whole && share >= 99.95 => ">99.9 %".into(),
        _ => format!("{share:.1} %"),
    }
}

/// Standard output. When the reader goes (`| head`), what is left to say is dropped in silence.
pub struct Out(BufWriter<Pipe>);

struct Pipe {
    to: StdoutLock<'static>,
    closed: bool,
}

impl Out {
    pub fn new() -> Out {
        Out(BufWriter::new(Pipe {
            to: io::stdout().lock(),
            closed: false,
        }))
    }
}

impl Pipe {
    fn quietly<T>(
        &mut self,
        done: T,
        run: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.closed {
            return Ok(done);
        }
        match run(&mut self.to) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(done)
            }
            result => result,
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.quietly(bytes.len(), |to| to.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.quietly((), Write::flush)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Says in one line on standard error what is wrong. Where that is closed too, there is nobody to tell.
pub fn complain(what: impl fmt::Display) {
    let _ = writeln!(io::stderr(), "osteon: {}", safe(&what.to_string()));
}

/// A progress bar on standard error, of work that turns out to take more than a second, where that is a terminal.
pub struct Progress {
    bar: ProgressBar,
    done: Sender<()>,
}

impl Progress {
    /// For so many steps; with 1, time alone is shown.
    pub fn new(steps: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::hidden());
        let template = match steps {
            1 => "{spinner} {elapsed} {wide_msg}",
            _ => "{bar:30} {pos}/{len} {elapsed} {wide_msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (done, wait) = mpsc::channel();
        let shown = bar.clone();
        // Without a thread to be had there is no bar, and the work goes on.
        let _ = thread::Builder::new().spawn(move || {
            if wait.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(100));
            }
        });
        Progress { bar, done }
    }

    /// Says what is being done now.
    pub fn now(&self, what: &str) {
        self.bar.set_message(safe(what).into_owned());
    }

    /// [`complain`] above the bar.
    pub fn complain(&self, what: impl fmt::Display) {
        self.bar.suspend(|| complain(what));
    }

    /// One step is done.
    pub fn step(&self) {
        self.bar.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // The thread may have ended already, after showing the bar.
        let _ = self.done.send(());
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(safe("layer.0"), "layer.0");
        assert_eq!(
            safe("a\x1b[31m\r\n\u{9b}\u{202e}b"),
            "a\\u{1b}[31m\\u{d}\\u{a}\\u{9b}\\u{202e}b"
        );
    }

    #[test]
    fn shares_are_never_rounded_to_all_or_nothing() {
        assert_eq!(percent(0, 7), "0.0 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(percent(7, 7), "100.0 %");
        assert_eq!(percent(199_560, 200_000), "99.8 %");
        assert_eq!(percent(1, 1_000_000), "<0.1 %");
        assert_eq!(percent(999_999, 1_000_000), ">99.9 %");
    }

    #[test]
    fn colours_only_where_they_are_welcome() {
        let screen = |colours| Screen {
            width: 80,
            clips: true,
            colours,
        };
        assert_eq!(screen(false).paint(Style::Bad, "x"), "x");
        assert_eq!(screen(true).paint(Style::Bad, "x"), "\x1b[31mx\x1b[0m");
        assert_eq!(screen(true).clip("张量 tensor", 7), "张量 t…");
    }

    #[test]
    fn thousands() {
        assert_eq!(grouped(0u8), "0");
        assert_eq!(grouped(999u16), "999");
        assert_eq!(grouped(1_000u16), "1,000");
        assert_eq!(grouped(12_345_678u32), "12,345,678");
    }

    #[test]
    fn lines_fit() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("one", 2), ["one"]);
        // Two columns each, and no line begins with a comma.
        assert_eq!(
            wrap("张量是外壳，存储是骨头。", 10),
            ["张量是外", "壳，存储是", "骨头。"]
        );
        assert_eq!(wrap("用 copy() 复制", 8), ["用", "copy()", "复制"]);
    }
}
