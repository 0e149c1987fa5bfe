//! What the examples share: a progress bar with the loss, and the report of memory at the end.

use indicatif::{ProgressBar, ProgressStyle};
use osteon::{Device, Result, memory};
use std::path::Path;

/// A bar of so many steps on a terminal; elsewhere ten lines.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    steps: u64,
}

impl Progress {
    pub fn new(steps: u64) -> Progress {
        memory::reset_peak(&Device::cpu());
        let style =
            ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  {per_sec}, {eta} left");
        let bar = ProgressBar::new(steps);
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress { bar, steps }
    }

    /// One step more.
    pub fn step(&self, loss: f64) {
        self.bar.set_message(format!("loss {loss:.4}"));
        self.bar.inc(1);
        let done = self.bar.position();
        if self.bar.is_hidden() && (done == 1 || done.is_multiple_of((self.steps / 10).max(1))) {
            println!("step {done}/{}  loss {loss:.4}", self.steps);
        }
    }

    /// Leaves the terminal to other text.
    pub fn finish(&self) {
        self.bar.finish();
    }
}

/// What a step holds in memory, drawn when it holds most: after its forward pass.
#[derive(Debug)]
pub struct Picture(memory::MemoryMap);

impl Picture {
    pub fn take() -> Picture {
        Picture(memory::map())
    }

    /// Says how much memory was needed at most, and writes the picture of it.
    pub fn report(&self, name: &str) -> Result<()> {
        let peak = memory::max_allocated(&Device::cpu()) as f64;
        println!("peak memory: {:.1} MiB", peak / f64::from(1 << 20));
        let folder = Path::new("target");
        let path = if folder.is_dir() {
            folder
        } else {
            Path::new(".")
        }
        .join(name);
        self.0.write_html(&path)?;
        println!("what one step holds: {}", path.display());
        Ok(())
    }
}
