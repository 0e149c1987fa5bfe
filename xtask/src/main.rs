//! `cargo xtask`: the project's own commands.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use xtask::{bench, ci, codegen, conformance, tidy};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  ci [--only STEPS] [--skip STEPS]    everything that continuous integration checks
  tidy                                the project's own rules
  bench [--group A..I] [--filter TEXT] [--threads N] [--json OUT] [--check] [--compare PYTHON]
                                      the speed of everyday operations, beside PyTorch's and NumPy's
  codegen                             docs/ops.md, from the table of operations
  conformance FILE.jsonl.gz… [--present-ops] [--verbose ID]
                                      recorded programs and operations, run and compared
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."));
    let done = match args.split_first() {
        Some((command, rest)) => match command.as_str() {
            "ci" => ci::Selection::parse(rest).and_then(|selection| ci::run(root, &selection)),
            "bench" => bench::Options::parse(rest).and_then(|options| bench::run(&options)),
            "codegen" => codegen::run(root),
            "tidy" => tidy::run(root),
            "conformance" => {
                conformance::Options::parse(rest).and_then(|options| conformance::run(&options))
            }
            "help" | "--help" | "-h" => {
                print!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            _ => Err(format!("unknown command {command:?}\n{USAGE}")),
        },
        None => Err(USAGE.to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::from(2)
        }
    }
}
