//! Code that is shown and run: one source for both.

use crate::lang::{Lang, Text};
use crate::term::{Screen, Style, width, wrap};
use osteon::Tensor;
use std::fmt::{Debug, Display};
use std::io::{self, Write};

/// Columns before code and before results on lines of their own.
const CODE: usize = 5;
/// The column at which values end, where they fit.
const VALUES: usize = 80;

/// Runs statements, each shown on the stage before: `statement;` shows itself, `=> expression;` also its value,
/// `print expression;` the `println!` of it and what that prints.
macro_rules! live {
    ($stage:ident;) => {};
    ($stage:ident; => $value:expr; $($rest:tt)*) => {
        $stage.value(stringify!($value), &$value)?;
        live! { $stage; $($rest)* }
    };
    ($stage:ident; print $value:expr; $($rest:tt)*) => {
        $stage.print(stringify!($value), &$value)?;
        live! { $stage; $($rest)* }
    };
    ($stage:ident; $statement:stmt; $($rest:tt)*) => {
        $stage.code(stringify!($statement))?;
        $statement
        live! { $stage; $($rest)* }
    };
}
pub(super) use live;

/// Where the tour plays.
pub struct Stage<'a> {
    pub out: &'a mut dyn Write,
    pub screen: Screen,
    pub lang: Lang,
    /// Tensors that stay alive to the end, for the picture.
    pub kept: Vec<Tensor>,
}

impl Stage<'_> {
    /// A statement, which is about to run.
    pub fn code(&mut self, code: &str) -> io::Result<()> {
        let code = format!("{};", code.trim_end_matches(';'));
        for line in code.lines() {
            writeln!(self.out, "{:CODE$}{line}", "")?;
        }
        Ok(())
    }

    /// An expression and its value: on one line where they fit.
    pub fn value(&mut self, code: &str, value: &dyn Debug) -> io::Result<()> {
        let value = format!("{value:?}");
        let free = self.screen.width.saturating_sub(CODE);
        if !code.contains('\n') && width(code) + 3 + width(&value) <= free {
            let gap = free
                .min(VALUES)
                .saturating_sub(width(code) + 2 + width(&value))
                .max(1);
            let gap = self.screen.paint(Style::Dim, "·".repeat(gap));
            let value = self.screen.paint(Style::Bold, value);
            return writeln!(self.out, "{:CODE$}{code} {gap} {value}", "");
        }
        for line in code.lines() {
            writeln!(self.out, "{:CODE$}{line}", "")?;
        }
        self.result(&value)
    }

    /// A `println!` and its output.
    pub fn print(&mut self, code: &str, value: &dyn Display) -> io::Result<()> {
        self.code(&format!("println!(\"{{}}\", {code})"))?;
        self.result(&value.to_string())
    }

    fn result(&mut self, text: &str) -> io::Result<()> {
        for line in text
            .lines()
            .flat_map(|l| wrap(l, self.screen.width.saturating_sub(CODE + 2)))
        {
            writeln!(
                self.out,
                "{:CODE$}  {}",
                "",
                self.screen.paint(Style::Bold, line)
            )?;
        }
        Ok(())
    }

    /// A paragraph in words.
    pub fn say(&mut self, text: Text, indent: usize) -> io::Result<()> {
        for line in wrap(text.of(self.lang), self.screen.width.saturating_sub(indent)) {
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }
}
