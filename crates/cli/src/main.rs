//! The `osteon` command.

#![forbid(unsafe_code)]

mod compact;
mod drawing;
mod failure;
mod lang;
mod map;
mod report;
mod term;
mod tour;

use clap::{Parser, Subcommand};
use failure::Failure;
use lang::Lang;
use std::process::ExitCode;
use term::{Screen, complain};

/// Tensors, views and storages explained to the byte
///
/// Without a command: the tour.
#[derive(Debug, Parser)]
#[command(name = "osteon", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The language of the output; by default the environment's (LC_ALL, LC_MESSAGES, LANG)
    #[arg(long, global = true, value_enum)]
    lang: Option<Lang>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tour(tour::Args),
    Map(map::Args),
    Compact(compact::Args),
    Report(report::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let lang = cli.lang.unwrap_or_else(Lang::from_environment);
    match run(cli.command, lang) {
        Ok(code) => code,
        Err(e) => {
            complain(e);
            ExitCode::FAILURE
        }
    }
}

fn run(command: Option<Command>, lang: Lang) -> Result<ExitCode, Failure> {
    match command.unwrap_or_else(|| Command::Tour(tour::Args::default())) {
        Command::Tour(args) => {
            tour::run(&args, Screen::of_stdout(), lang).map(|()| ExitCode::SUCCESS)
        }
        Command::Map(args) => map::run(&args, Screen::of_stdout(), lang),
        Command::Compact(args) => compact::run(&args, lang).map(|()| ExitCode::SUCCESS),
        Command::Report(args) => {
            report::run(&args, Screen::of_stdout(), lang).map(|()| ExitCode::SUCCESS)
        }
    }
}
