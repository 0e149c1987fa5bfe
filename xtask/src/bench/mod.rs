//! `cargo xtask bench`: the speed of everyday operations, as medians, beside PyTorch's and NumPy's on the same cores.

mod chain;
mod check;
mod compare;
mod copies;
mod create;
mod elementwise;
mod goals;
mod limits;
mod matmul;
mod measure;
mod minilm;
mod record;
mod reductions;
mod report;
mod sink;
mod training;
mod views;

use std::path::{Path, PathBuf};

use osteon::Result;

pub use record::Record;
use sink::Sink;

/// A group of cases: its letter, and what runs them.
type Group = (char, fn(&mut Sink) -> Result<()>);

const GROUPS: [Group; 9] = [
    ('A', views::run),
    ('B', copies::run),
    ('C', elementwise::run),
    ('D', reductions::run),
    ('E', matmul::run),
    ('F', create::run),
    ('G', training::run),
    ('H', minilm::run),
    ('I', chain::run),
];

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Options {
    groups: Vec<char>,
    filter: Option<String>,
    threads: Vec<usize>,
    json: Option<PathBuf>,
    check: bool,
    /// Also beside a thread that keeps a core busy.
    neighbour: bool,
    compare: Option<Peers>,
    /// Figures of a comparison to write the page from once more, and where that goes.
    again: Option<(PathBuf, PathBuf)>,
}

/// The other programs that a comparison runs.
#[derive(Clone, Debug)]
struct Peers {
    python: PathBuf,
    script: PathBuf,
    rounds: usize,
    /// Where the table goes.
    report: PathBuf,
}

const USAGE: &str =
    "bench [--group A..I] [--filter TEXT] [--threads N] [--json OUT] [--check] [--neighbour]
      [--compare PYTHON] [--script torch_bench.py] [--rounds N] [--report FILE]
      [--again JSON] [--report FILE]";

impl Options {
    /// Reads the arguments; see `USAGE`.
    ///
    /// # Errors
    /// A message for arguments that make no sense.
    pub fn parse(args: &[String]) -> Result<Options, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut options = Options {
            groups: GROUPS.iter().map(|(letter, _)| *letter).collect(),
            filter: None,
            threads: if cores > 1 {
                vec![cores.min(2), 1]
            } else {
                vec![1]
            },
            json: None,
            check: false,
            neighbour: false,
            compare: None,
            again: None,
        };
        let mut again = None;
        let mut peers = Peers {
            python: PathBuf::new(),
            script: PathBuf::from("../shared/bench/torch_bench.py"),
            rounds: 5,
            report: PathBuf::from("docs/performance.md"),
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || {
                args.next()
                    .ok_or(format!("bench: {arg} needs a value\nusage: {USAGE}"))
            };
            let number = |text: &String| {
                text.parse()
                    .ok()
                    .filter(|&n| n > 0)
                    .ok_or(format!("bench: {arg} needs a number, got {text}"))
            };
            match arg.as_str() {
                "--check" => options.check = true,
                "--neighbour" => options.neighbour = true,
                "--group" => options.groups = groups(value()?)?,
                "--filter" => options.filter = Some(value()?.clone()),
                "--threads" => options.threads = vec![number(value()?)?],
                "--json" => options.json = Some(value()?.into()),
                "--compare" => peers.python = value()?.into(),
                "--script" => peers.script = value()?.into(),
                "--rounds" => peers.rounds = number(value()?)?,
                "--again" => again = Some(PathBuf::from(value()?)),
                "--report" => peers.report = value()?.into(),
                other => return Err(format!("bench: unknown argument {other}\nusage: {USAGE}")),
            }
        }
        options.again = again.map(|figures| (figures, peers.report.clone()));
        if peers.python != Path::new("") {
            options.compare = Some(peers);
        }
        Ok(options)
    }
}

/// `A`, `BD` or `A..C`.
fn groups(text: &str) -> Result<Vec<char>, String> {
    let all = || GROUPS.iter().map(|(letter, _)| *letter);
    let picked: Vec<char> = match text.split_once("..") {
        Some((a, b)) => all()
            .filter(|g| *a <= *g.to_string() && *g.to_string() <= *b)
            .collect(),
        None => all().filter(|g| text.contains(*g)).collect(),
    };
    if picked.is_empty() {
        Err(format!("bench: no group in {text:?}; there are A to I"))
    } else {
        Ok(picked)
    }
}

/// `cargo xtask bench`; true when nothing failed.
///
/// # Errors
/// A message for what cannot be run or written.
pub fn run(options: &Options) -> Result<bool, String> {
    if let Some((figures, report)) = &options.again {
        return compare::again(figures, report);
    }
    if let Some(peers) = &options.compare {
        return compare::run(options, peers);
    }
    let mut records = Vec::new();
    for &threads in &options.threads {
        osteon::set_num_threads(threads);
        for (letter, cases) in GROUPS
            .iter()
            .filter(|(letter, _)| options.groups.contains(letter))
        {
            let mut sink = Sink::new(*letter, threads, options);
            cases(&mut sink).map_err(|e| format!("bench: group {letter}: {e}"))?;
            records.extend(sink.into_records());
        }
        if options.check {
            // Results do not depend on the number of threads: once is enough.
            break;
        }
    }
    let failed = records.iter().filter(|r| r.error.is_some()).count();
    println!("{} cases, {failed} failed", records.len());
    if let Some(path) = &options.json {
        let lines: String = records.iter().map(|r| r.to_json() + "\n").collect();
        std::fs::write(path, lines).map_err(|e| format!("bench: {}: {e}", path.display()))?;
    }
    Ok(failed == 0)
}
