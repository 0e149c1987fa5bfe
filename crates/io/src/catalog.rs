//! What a file holds, learnt from its metadata alone.

use crate::error::bad;
use crate::source::Source;
use crate::{index, npy, npz, pt, safetensors, zipfile};
use osteon_spec::{DType, Error, Layout, Result};
use std::fmt;
use std::path::{Path, PathBuf};

/// The tensors and storages of one file.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The file.
    pub path: PathBuf,
    /// How it is written.
    pub format: Format,
    /// Its length.
    pub file_bytes: u64,
    /// The tensors, in file order, with names that are unique.
    pub tensors: Vec<TensorEntry>,
    /// The storages that [`TensorEntry::storage`] counts.
    pub storages: Vec<StorageEntry>,
    /// What is odd about the file, though it can be read.
    pub warnings: Vec<Warning>,
}

/// How a file is written; `Display` gives a short name such as `safetensors` or `pt-zip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A safetensors file.
    Safetensors,
    /// What `torch.save` writes since PyTorch 1.6: a zip archive of a pickle and its storages.
    PtZip,
    /// What `torch.save` wrote before: pickles followed by the storages.
    PtLegacy,
    /// What `torch.save` wrote before 0.1.10: a tar archive.
    PtTar,
    /// A pickle without storages.
    Pickle,
    /// One NumPy array.
    Npy,
    /// A zip archive of NumPy arrays.
    Npz,
}

/// One tensor: a view of a storage.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorEntry {
    /// The path to the tensor, joined by dots.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes, strides and offset in elements of `dtype`. It lies within its storage.
    pub layout: Layout,
    /// Position in [`Catalog::storages`].
    pub storage: usize,
    /// Whether gradients are asked for.
    pub requires_grad: bool,
    /// Whether the values are the complex conjugates of what is stored.
    pub conj: bool,
    /// Whether the values are the negatives of what is stored.
    pub neg: bool,
}

/// One run of bytes that tensors look at.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageEntry {
    /// The file's own name for it: a record's key, a tensor's or an array's name.
    pub key: String,
    /// Its size.
    pub nbytes: u64,
    /// The dtype that the file gives it, `uint8` where it gives none.
    pub dtype: DType,
    /// Where its bytes are.
    pub data: DataLocation,
}

/// Where a storage's bytes lie in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataLocation {
    /// Position of the first byte in the file.
    pub offset: u64,
    /// Bytes in the file: the storage's, or as many as their compressed form takes.
    pub length: u64,
    /// How they are kept.
    pub encoding: Encoding,
    /// The order of the bytes in an element.
    pub byte_order: ByteOrder,
    /// CRC-32 of the stored bytes, where the file has one of just those.
    pub crc32: Option<u32>,
}

/// How a storage's bytes are kept in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Stored,
    /// As a raw DEFLATE stream.
    Deflated {
        /// Bytes of the inflated stream before the storage's first (an array's header).
        skip: u64,
        /// Bytes of the whole inflated stream.
        inflated: u64,
        /// CRC-32 of the whole inflated stream.
        crc32: u32,
    },
}

/// The order of the bytes in an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// Lowest byte first.
    Little,
    /// Highest byte first.
    Big,
}

impl ByteOrder {
    /// Whether this machine reads such bytes as they are.
    pub fn is_native(self) -> bool {
        (self == ByteOrder::Little) == cfg!(target_endian = "little")
    }
}

/// What is odd about a file that can be read; `Display` is its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The class, for programs.
    pub kind: WarningKind,
    /// The message, for people.
    pub message: String,
}

/// The classes of [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// Loading the file in Python would run code that is not known to be harmless.
    Code,
    /// A tensor or storage of a kind that is not read here.
    Unsupported,
    /// An oddity of structure: bytes that nothing names, an index that does not fit, equal names.
    Structure,
}

impl Warning {
    pub(crate) fn new(kind: WarningKind, message: impl Into<String>) -> Warning {
        Warning {
            kind,
            message: message.into(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Safetensors => "safetensors",
            Format::PtZip => "pt-zip",
            Format::PtLegacy => "pt-legacy",
            Format::PtTar => "pt-tar",
            Format::Pickle => "pickle",
            Format::Npy => "npy",
            Format::Npz => "npz",
        })
    }
}

/// What the files behind a path hold: one catalog, or one for each shard of a `*.index.json`.
///
/// Reads metadata only, so that a file of any size is cheap. Nothing in a file is executed, and no
/// memory is asked for beyond what the file's own bytes can fill.
///
/// # Errors
/// [`Kind::Format`](osteon_spec::Kind::Format) for a file that is not what it says, with the file and the byte or record;
/// [`Kind::Io`](osteon_spec::Kind::Io) where the system refuses.
///
/// ```no_run
/// for catalog in osteon_io::catalog("model.pt")? {
///     for t in &catalog.tensors {
///         println!("{} {} {} on storage {}", t.name, t.dtype, t.layout, t.storage);
///     }
/// }
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn catalog(path: impl AsRef<Path>) -> Result<Vec<Catalog>> {
    let path = path.as_ref();
    if index::is_index(path) {
        return index::catalogs(path);
    }
    Ok(vec![catalog_file(path)?])
}

/// The catalog of one file that is not an index.
pub(crate) fn catalog_file(path: &Path) -> Result<Catalog> {
    let read = || catalog_source(&Source::open(path)?, path);
    read().map_err(|e| of_file(e, path))
}

/// What bytes in memory hold; `path` gives the name of a lone array and decides between formats as
/// for a file. Nothing is read from it.
///
/// # Errors
/// As [`catalog`].
pub fn catalog_bytes(path: impl AsRef<Path>, bytes: Vec<u8>) -> Result<Catalog> {
    let path = path.as_ref();
    catalog_source(&Source::from_bytes(bytes), path).map_err(|e| of_file(e, path))
}

/// An error of reading a file: whatever it is about, a shape or a number, it lies in the file's format.
#[cold]
pub(crate) fn of_file(e: Error, path: &Path) -> Error {
    let e = if e.is_shape() { bad(e.to_string()) } else { e };
    e.context(path.display())
}

/// Extensions under which pickles are kept; those of the oldest protocols begin with any byte.
pub(crate) const PICKLES: [&str; 6] = ["pt", "pth", "pkl", "pickle", "bin", "ckpt"];

/// What kind of file the first bytes announce. A name decides only where the bytes cannot: safetensors
/// files begin with a number.
pub(crate) fn catalog_source(source: &Source, path: &Path) -> Result<Catalog> {
    if source.len() == 0 {
        return Err(bad("is empty"));
    }
    let has_extension = |e: &str| path.extension().is_some_and(|x| x.eq_ignore_ascii_case(e));
    let mut start = [0; 512];
    let n = source.len().min(512) as usize;
    source.read_at(0, &mut start[..n])?;
    let start = &start[..n];
    if has_extension("safetensors") || safetensors::is_safetensors(start) {
        safetensors::catalog(source, path)
    } else if start.starts_with(npy::MAGIC) {
        npy::catalog(source, path)
    } else if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        let archive = zipfile::Archive::open(source)?;
        if pt::is_checkpoint(&archive) {
            pt::File::open_zip(source, archive)?.catalog(source, path)
        } else {
            npz::catalog(source, &archive, path)
        }
    } else if pt::is_ustar(start) || start[0] == 0x80 || PICKLES.iter().any(|e| has_extension(e)) {
        pt::File::open(source)?.catalog(source, path)
    } else if start.starts_with(b"version https://git-lfs") {
        Err(bad(
            "is a Git LFS pointer, not the file that it stands for; `git lfs pull` fetches that",
        ))
    } else {
        Err(bad(
            "is neither a safetensors, PyTorch (zip, legacy, tar), npy nor npz file, judging by its first bytes",
        ))
    }
}

/// The name of a lone array or tensor: its file's, without the extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem()
        .map(|s| s.to_string_lossy().into_owned())
        .unwrap_or_default()
}
