//! How reports write numbers and lines.

use std::collections::TryReserveError;
use std::fmt::{self, Write};

/// A number of bytes for people: exact below 1 KiB, then three digits in binary units.
///
/// ```
/// use osteon_memory::bytes;
/// assert_eq!(bytes(17).to_string(), "17 B");
/// assert_eq!(bytes(4_000_000).to_string(), "3.81 MiB");
/// assert_eq!(bytes(320 << 20).to_string(), "320 MiB");
/// assert_eq!(format!("{:>8}|{:<8}|", bytes(17), bytes(1 << 30)), "    17 B|1 GiB   |");
/// ```
pub fn bytes(n: u64) -> Bytes {
    Bytes(n)
}

/// See [`bytes`].
#[derive(Clone, Copy, Debug)]
pub struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return padded(f, format_args!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 999.5 would be written with four digits.
        while value >= 999.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = if value.fract() == 0.0 || value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        padded(f, format_args!("{value:.digits$} {}", UNITS[unit]))
    }
}

/// `f.pad` without the text in memory.
fn padded(f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>) -> fmt::Result {
    let left = f.width().unwrap_or(0).saturating_sub(columns(text));
    let before = match f.align() {
        Some(fmt::Alignment::Right) => left,
        Some(fmt::Alignment::Center) => left / 2,
        _ => 0,
    };
    write!(
        f,
        "{:before$}{text}{:after$}",
        "",
        "",
        after = left - before
    )
}

/// `format!` that says so when there is no memory for the text.
pub(crate) fn try_string(text: fmt::Arguments<'_>) -> Result<String, TryReserveError> {
    struct Out(String, Option<TryReserveError>);
    impl Write for Out {
        fn write_str(&mut self, s: &str) -> fmt::Result {
            self.0.try_reserve(s.len()).map_err(|e| {
                self.1 = Some(e);
                fmt::Error
            })?;
            self.0.push_str(s);
            Ok(())
        }
    }
    let mut out = Out(String::new(), None);
    // A value whose `Display` fails shows as far as it came.
    let _ = out.write_fmt(text);
    out.1.map_or(Ok(out.0), Err)
}

/// One of something, or several.
pub(crate) struct Count<'a>(pub(crate) u64, pub(crate) &'a str);

impl fmt::Display for Count<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.0 == 1 { "" } else { "s" };
        padded(f, format_args!("{} {}{s}", self.0, self.1))
    }
}

/// The columns that no line of a report passes.
pub(crate) const WIDTH: usize = 100;

/// The columns that a text takes on a terminal.
pub(crate) fn columns(text: fmt::Arguments<'_>) -> usize {
    let mut counted = Clip::new(Nothing, usize::MAX, usize::MAX);
    // Counting does not fail, and a value whose `Display` fails shows as far as it came.
    let _ = counted.write_fmt(text);
    counted.at
}

/// Writes the columns before `head` and those from `tail` on, with an ellipsis between.
struct Clip<W> {
    out: W,
    at: usize,
    head: usize,
    tail: usize,
    cut: bool,
}

impl<W: Write> Clip<W> {
    fn new(out: W, head: usize, tail: usize) -> Clip<W> {
        Clip {
            out,
            at: 0,
            head,
            tail,
            cut: false,
        }
    }

    fn put(&mut self, c: char) -> fmt::Result {
        let next = self.at + columns_of(c);
        let result = if next <= self.head || self.at >= self.tail {
            self.out.write_char(c)
        } else if !std::mem::replace(&mut self.cut, true) {
            self.out.write_char('…')
        } else {
            Ok(())
        };
        self.at = next;
        result
    }
}

impl<W: Write> Write for Clip<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            // What would break or turn the line is shown, not done.
            if c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
                c.escape_unicode().try_for_each(|c| self.put(c))?;
            } else {
                self.put(c)?;
            }
        }
        Ok(())
    }
}

/// Takes what is only counted.
struct Nothing;

impl Write for Nothing {
    fn write_str(&mut self, _: &str) -> fmt::Result {
        Ok(())
    }
}

/// 2 for the wide characters of East Asia and for emoji.
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// One entry of a report: parts set side by side with two spaces between, on as many lines of at most
/// [`WIDTH`] columns as they need. A part that is longer than a line loses its middle.
pub(crate) struct Entry<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    /// Where later lines begin.
    indent: usize,
    at: usize,
    fresh: bool,
}

impl<'a, 'b> Entry<'a, 'b> {
    /// An entry that begins at column `first`; its later lines begin at `indent`.
    pub(crate) fn new(
        f: &'a mut fmt::Formatter<'b>,
        first: usize,
        indent: usize,
    ) -> Result<Entry<'a, 'b>, fmt::Error> {
        write!(f, "{:first$}", "")?;
        Ok(Entry {
            f,
            indent,
            at: first,
            fresh: true,
        })
    }

    /// Adds a part.
    pub(crate) fn part(&mut self, text: fmt::Arguments<'_>) -> Result<&mut Self, fmt::Error> {
        let long = columns(text);
        if self.fresh {
            self.fresh = false;
        } else if self.at + 2 + long <= WIDTH {
            self.f.write_str("  ")?;
            self.at += 2;
        } else {
            write!(self.f, "\n{:indent$}", "", indent = self.indent)?;
            self.at = self.indent;
        }
        let room = WIDTH.saturating_sub(self.at);
        if long <= room {
            Clip::new(&mut *self.f, usize::MAX, usize::MAX).write_fmt(text)?;
            self.at += long;
        } else {
            // A third for what comes first, an operation's name; the rest for the file and line.
            let head = room / 3;
            Clip::new(&mut *self.f, head, long - (room - head - 1)).write_fmt(text)?;
            self.at = WIDTH;
        }
        Ok(self)
    }

    /// Ends the last line.
    pub(crate) fn end(&mut self) -> fmt::Result {
        self.f.write_char('\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Parts<'a>(&'a [&'a str]);

    impl fmt::Display for Parts<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut entry = Entry::new(f, 2, 6)?;
            for part in self.0 {
                entry.part(format_args!("{part}"))?;
            }
            entry.end()
        }
    }

    #[test]
    fn entries_keep_to_the_width() {
        assert_eq!(Parts(&["one", "two"]).to_string(), "  one  two\n");
        let long = "x".repeat(60);
        // 2 + 60 + 2 + 36 columns are 100; one more goes to the next line.
        let fits = Parts(&[&long, &"y".repeat(36)]).to_string();
        assert_eq!(fits.lines().map(str::len).collect::<Vec<_>>(), [100]);
        let breaks = Parts(&[&long, &"y".repeat(37), "z"]).to_string();
        assert_eq!(
            breaks.lines().map(str::len).collect::<Vec<_>>(),
            [62, 6 + 37 + 3]
        );
        assert!(breaks.lines().nth(1).unwrap().starts_with("      y"));
        // The middle of a path goes; the operation and the line stay.
        let path = format!("zeros at /home/{}/src/main.rs:12", "deep/".repeat(40));
        let cut = Parts(&[&path]).to_string();
        let line = cut.trim_end();
        assert_eq!(line.chars().count(), 100);
        assert!(line.starts_with("  zeros at /home/deep/") && line.ends_with("/src/main.rs:12"));
        // Wide characters take two columns, and what would break a line is shown.
        let wide = Parts(&[&"权".repeat(70), "a\nb\u{202e}"]).to_string();
        assert!(
            wide.lines()
                .all(|l| l.chars().map(columns_of).sum::<usize>() <= 100)
        );
        assert!(wide.ends_with("\n      a\\u{a}b\\u{202e}\n"), "{wide}");
    }
}
