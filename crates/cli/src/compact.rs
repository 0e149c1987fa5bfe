//! `osteon compact`: a checkpoint without the bytes that no tensor reaches.

use crate::failure::Failure;
use crate::lang::Lang;
use crate::map::refuse_same;
use crate::term::{Out, Progress, grouped, percent, safe};
use osteon::files;
use std::io::Write;
use std::path::PathBuf;
use std::slice;

/// Rewrite a checkpoint without the bytes that no tensor reaches
///
/// PyTorch reads the result as it reads the original (with weights_only=True too). A tensor alone on its storage
/// becomes dense; tensors that share a storage keep sharing it. What cannot be packed is kept, and said. OUT appears
/// whole or not at all.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The checkpoint
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write; must not be IN
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

pub fn run(args: &Args, lang: Lang) -> Result<(), Failure> {
    refuse_same(&args.output, slice::from_ref(&args.input))?;
    let report = {
        let progress = Progress::new(1);
        progress.now(&args.input.to_string_lossy());
        files::compact(&args.input, &args.output)?
    };
    let mut out = Out::new();
    let (before, after) = (report.bytes_before, report.bytes_after);
    let output = args.output.to_string_lossy();
    let (output, was, is) = (safe(&output), grouped(before), grouped(after));
    // The records of a small file may take more than was wasted.
    let saved = percent(before.saturating_sub(after), before);
    match lang {
        Lang::En => writeln!(
            out,
            "{output}: {was} bytes before, {is} after: {saved} less"
        )?,
        Lang::Zh => writeln!(out, "{output}：原 {was} 字节，现 {is} 字节，减少 {saved}")?,
    }
    for kept in &report.kept {
        match lang {
            Lang::En => writeln!(out, "  kept: {}", safe(&kept.to_string()))?,
            Lang::Zh => writeln!(out, "  保留：{}", safe(&kept.to_string()))?,
        }
    }
    out.flush()?;
    Ok(())
}
