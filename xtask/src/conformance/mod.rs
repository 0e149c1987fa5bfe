//! `cargo xtask conformance`: recorded programs and single operations, run and compared.

mod accepted;
mod args;
mod call;
mod case;
mod choice;
mod exceptions;
mod observe;
mod ops;
mod program;
mod report;
mod steps;
mod tensors;
mod value;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde::de::IgnoredAny;

pub use accepted::dtypes_of;
pub use case::Case;
pub use program::Program;
pub use report::{Report, Totals, Verdict};

/// A line of a conformance file.
#[derive(Debug)]
pub enum Line {
    /// A program of several steps.
    Program(Program),
    /// A single operation.
    Case(Box<Case>),
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// A message for a line of neither format.
    pub fn parse(line: &str) -> Result<Line, String> {
        let line = &strict_json(line);
        #[derive(Deserialize)]
        struct Probe {
            steps: Option<IgnoredAny>,
        }
        let probe: Probe = serde_json::from_str(line).map_err(|e| e.to_string())?;
        match probe.steps {
            Some(_) => serde_json::from_str(line)
                .map(Line::Program)
                .map_err(|e| e.to_string()),
            None => Case::parse(line).map(|case| Line::Case(Box::new(case))),
        }
    }

    /// Runs it; `watch` is told what happens.
    pub fn run(&self, watch: &mut dyn FnMut(&str)) -> Verdict {
        match self {
            Line::Program(program) => program.run(watch),
            Line::Case(case) => case.run(watch),
        }
    }
}

/// Python writes some floats in words that JSON does not have; elsewhere the files have them as strings.
fn strict_json(line: &str) -> Cow<'_, str> {
    if !line.contains("NaN") && !line.contains("Infinity") {
        return Cow::Borrowed(line);
    }
    let words = [
        ("NaN", "\"nan\""),
        ("-Infinity", "\"-inf\""),
        ("Infinity", "\"inf\""),
    ];
    Cow::Owned(words.iter().fold(line.to_owned(), |line, (python, json)| {
        line.replace(python, json)
    }))
}

/// The lines of a gzipped file, each with its id: a program's own, else its number from zero.
///
/// # Errors
/// A message that names the file, and the line where one is to blame.
pub fn read(path: &Path) -> Result<Vec<(String, Line)>, String> {
    let said = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let file = File::open(path).map_err(|e| said(&e))?;
    let mut lines = Vec::new();
    for (number, line) in BufReader::new(MultiGzDecoder::new(file))
        .lines()
        .enumerate()
    {
        let line = Line::parse(&line.map_err(|e| said(&e))?)
            .map_err(|e| format!("{}, line {}: {e}", path.display(), number + 1))?;
        let id = match &line {
            Line::Program(program) => program.id.to_string(),
            Line::Case(_) => number.to_string(),
        };
        lines.push((id, line));
    }
    Ok(lines)
}

/// What the command line asks for.
#[derive(Debug, Default)]
pub struct Options {
    files: Vec<String>,
    present_ops: bool,
    verbose: Option<String>,
}

impl Options {
    /// Reads `FILE… [--present-ops] [--verbose ID]`.
    ///
    /// # Errors
    /// A message for arguments that make no sense.
    pub fn parse(args: &[String]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--present-ops" => options.present_ops = true,
                "--verbose" => {
                    let id = args
                        .next()
                        .ok_or("conformance: --verbose needs the id of a case")?;
                    options.verbose = Some(id.clone());
                }
                flag if flag.starts_with('-') => {
                    return Err(format!("conformance: unknown argument {flag}"));
                }
                file => options.files.push(file.to_owned()),
            }
        }
        if options.files.is_empty() {
            return Err("conformance: no files; try conformance/*.jsonl.gz".to_owned());
        }
        Ok(options)
    }
}

/// `cargo xtask conformance`; true when nothing failed.
///
/// # Errors
/// A message for a file that cannot be read.
pub fn run(options: &Options) -> Result<bool, String> {
    // A panic becomes the case's failure, in one line; its own message would only repeat it.
    std::panic::set_hook(Box::new(|_| ()));
    let mut totals = Totals::default();
    for file in &options.files {
        let lines = read(Path::new(file))?;
        let report = judge(&lines, options.verbose.as_deref());
        let of_file = report.totals(options.present_ops);
        println!("{file}: {of_file}");
        print!("{}", report.text());
        totals.passed += of_file.passed;
        totals.failed += of_file.failed;
        totals.skipped += of_file.skipped;
    }
    println!("{totals}");
    Ok(totals.failed == 0)
}

/// Runs all lines, or the one with this id, step by step.
fn judge(lines: &[(String, Line)], verbose: Option<&str>) -> Report {
    let mut report = Report::default();
    for (id, line) in lines {
        match verbose {
            None => report.add(id, line.run(&mut |_| ())),
            Some(wanted) if wanted == id => {
                let verdict = line.run(&mut |step| println!("{step}"));
                println!("{verdict:?}");
                report.add(id, verdict);
            }
            Some(_) => {}
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_in_python_s_words_are_read() {
        assert_eq!(
            strict_json("[[NaN,-Infinity],Infinity,1]"),
            r#"[["nan","-inf"],"inf",1]"#
        );
        assert_eq!(strict_json("[1]"), "[1]");
    }
}
