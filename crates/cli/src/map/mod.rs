//! `osteon map`: which tensors of a checkpoint share which storage, and which bytes no tensor reaches.

mod budget;
mod json;
mod table;

pub use table::wrote;

use crate::failure::Failure;
use crate::lang::Lang;
use crate::term::{Out, Progress, Screen, complain, grouped, percent};
use budget::Budget;
use osteon::files::{Catalog, catalog, catalog_bytes};
use osteon::memory::picture::{self, Picture};
use osteon::{Device, Error, Kind, Result};
use osteon_spec::{Placed, reached_bytes};
use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A few kilobytes with what goes wrong in checkpoints; data/make_built_in.py made it.
const BUILT_IN: &[u8] = include_bytes!("../../data/built_in.pt");

/// Show a checkpoint's storages and tensors: who shares, what is wasted
///
/// Reads safetensors, PyTorch's files (zip, legacy, tar), npy, npz, and *.index.json as its shards. Only metadata
/// is read, and nothing in a file is executed, so that a file may be larger than memory, and hostile.
///
/// Waste are bytes of a storage that no tensor reaches: a slice that was saved keeps its whole storage.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The files; without any, a small checkpoint that is built in
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON: every tensor and storage of every file
    #[arg(long)]
    json: bool,
    /// Also write the picture, one HTML page that needs no network
    #[arg(long, value_name = "F")]
    html: Option<PathBuf>,
    /// Exit with 3 when a file wastes more than this: 5% of its storages' bytes, or 4096, 64KiB, 1GB
    #[arg(long, value_name = "BUDGET")]
    max_waste: Option<Budget>,
    /// List every storage and tensor
    #[arg(long)]
    all: bool,
}

/// A file's catalog, and what its tensors reach.
#[derive(Debug)]
pub struct File {
    catalog: Catalog,
    /// One for each of the catalog's storages.
    storages: Vec<Reach>,
}

/// Who looks at a storage, and how much of it they reach.
#[derive(Clone, Debug, Default)]
struct Reach {
    tensors: Vec<usize>,
    reached: u64,
}

pub fn run(args: &Args, screen: Screen, lang: Lang) -> Result<ExitCode, Failure> {
    if let Some(html) = &args.html {
        refuse_same(html, &args.files)?;
    }
    let (files, mut failed) = read_all(&args.files)?;
    let mut out = Out::new();
    if args.json {
        json::write(&mut out, &files)?;
    } else if !files.is_empty() {
        table::write(&mut out, &files, args, screen, lang)?;
    }
    if let Some(html) = &args.html
        && !files.is_empty()
    {
        picture(&files, lang)?.write_html(html)?;
        if !args.json {
            wrote(&mut out, html, lang)?;
        }
    }
    out.flush()?;
    let mut over = false;
    for file in &files {
        let (waste, held) = (file.waste(), file.held());
        if let Some(budget) = args.max_waste.as_ref().filter(|b| b.is_broken(waste, held)) {
            over = true;
            complain(format_args!(
                "{}: {} of {} bytes ({}) are reached by no tensor, more than --max-waste {budget}",
                file.path(),
                grouped(waste),
                grouped(held),
                percent(waste, held),
            ));
        }
    }
    failed |= files.is_empty();
    Ok(if failed {
        ExitCode::FAILURE
    } else if over {
        ExitCode::from(3)
    } else {
        ExitCode::SUCCESS
    })
}

/// The maps of all files that can be read, and whether there were others, each with its error said.
fn read_all(paths: &[PathBuf]) -> Result<(Vec<File>, bool)> {
    if paths.is_empty() {
        let catalog = catalog_bytes("built_in.pt", BUILT_IN.to_vec())?;
        return Ok((vec![File::new(catalog)?], false));
    }
    let progress = Progress::new(paths.len());
    let (mut files, mut failed) = (Vec::new(), false);
    for path in paths {
        progress.now(&path.to_string_lossy());
        let read =
            catalog(path).and_then(|c| c.into_iter().map(File::new).collect::<Result<Vec<_>>>());
        match read {
            Ok(more) => files.extend(more),
            Err(e) => {
                failed = true;
                progress.complain(e);
            }
        }
        progress.step();
    }
    Ok((files, failed))
}

/// Refuses to write over what is read.
pub fn refuse_same(output: &Path, inputs: &[PathBuf]) -> Result<()> {
    let Ok(real) = output.canonicalize() else {
        return Ok(());
    };
    match inputs
        .iter()
        .find(|input| input.canonicalize().is_ok_and(|input| input == real))
    {
        None => Ok(()),
        Some(input) => Err(Error::new(
            Kind::Value,
            format!(
                "{}: is read, and would be overwritten; name another file to write",
                input.display()
            ),
        )),
    }
}

impl File {
    fn new(catalog: Catalog) -> Result<File> {
        let mut storages = vec![Reach::default(); catalog.storages.len()];
        for (i, tensor) in catalog.tensors.iter().enumerate() {
            storages[tensor.storage].tensors.push(i);
        }
        for storage in &mut storages {
            let tensors = storage.tensors.iter().map(|&t| &catalog.tensors[t]);
            let placed: Vec<_> = tensors
                .map(|t| Placed::new(&t.layout, t.dtype.size()))
                .collect();
            let reached = reached_bytes(&placed).map_err(|e| e.context(catalog.path.display()))?;
            storage.reached = reached as u64;
        }
        Ok(File { catalog, storages })
    }

    fn path(&self) -> Cow<'_, str> {
        self.catalog.path.to_string_lossy()
    }

    /// The bytes of a storage that no tensor reaches.
    fn unreached(&self, storage: usize) -> u64 {
        self.catalog.storages[storage]
            .nbytes
            .saturating_sub(self.storages[storage].reached)
    }

    /// The bytes of all storages.
    fn held(&self) -> u64 {
        self.catalog
            .storages
            .iter()
            .fold(0, |sum, s| sum.saturating_add(s.nbytes))
    }

    /// Those of them that no tensor reaches.
    fn waste(&self) -> u64 {
        (0..self.storages.len()).fold(0, |sum, s| sum.saturating_add(self.unreached(s)))
    }

    /// A storage as pictures show it.
    fn entry(&self, storage: usize, id: u64) -> Result<picture::StorageEntry> {
        let in_catalog = &self.catalog.storages[storage];
        let tensor = |&t: &usize| {
            let tensor = &self.catalog.tensors[t];
            let entry = picture::TensorEntry::new(tensor.dtype, &tensor.layout)?;
            let note = match (tensor.conj, tensor.neg) {
                (false, false) => None,
                (true, false) => Some("conjugated"),
                (false, true) => Some("negated"),
                (true, true) => Some("conjugated and negated"),
            };
            Ok(picture::TensorEntry {
                name: Some(tensor.name.clone()),
                note: note.map(str::to_owned),
                ..entry
            })
        };
        let tensors = self.storages[storage]
            .tensors
            .iter()
            .map(tensor)
            .collect::<Result<_>>()?;
        let origin = format!("storage {} of {}", in_catalog.key, self.path());
        let mut entry =
            picture::StorageEntry::new(id, in_catalog.nbytes, Device::cpu(), origin, tensors)?;
        entry.device = "file".into();
        Ok(entry)
    }
}

/// All files in one picture.
fn picture(files: &[File], lang: Lang) -> Result<Picture> {
    let mut entries = Vec::new();
    for file in files {
        for storage in 0..file.storages.len() {
            entries.push(file.entry(storage, entries.len() as u64)?);
        }
    }
    let (title, subtitle) = match files {
        [file] => {
            let name = file
                .catalog
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            let size = grouped(file.catalog.file_bytes);
            let words = match lang {
                Lang::En => format!("{} · {size} bytes", file.catalog.format),
                Lang::Zh => format!("{} · {size} 字节", file.catalog.format),
            };
            (name.into_owned(), words)
        }
        _ => {
            let mut paths: Vec<_> = files.iter().map(File::path).take(4).collect();
            if files.len() > paths.len() {
                paths.push("…".into());
            }
            let title = match lang {
                Lang::En => format!("{} files", files.len()),
                Lang::Zh => format!("{} 个文件", files.len()),
            };
            (title, paths.join(" · "))
        }
    };
    Ok(Picture::new(title, subtitle, entries)?.lang(lang.of_picture()))
}
