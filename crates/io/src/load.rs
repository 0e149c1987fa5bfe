//! Files as tensors: mapped where their bytes can be used as they lie, else copied.

use crate::catalog::{
    Catalog, DataLocation, Encoding, StorageEntry, TensorEntry, catalog_source, of_file,
};
use crate::error::bad;
use crate::index;
use crate::inflate::{Inflated, check_crc, crc32_of};
use crate::mmap::Mapping;
use crate::source::Source;
use osteon_memory::copies;
use osteon_memory::{CopyReason, Origin, Site, Storage};
use osteon_spec::{DType, Device, Error, Kind, Layout, Result};
use osteon_tensor::{Call, Compute, Op, UnaryOp, View};
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

const OP: &str = "load";

/// How [`load`] goes about it.
///
/// ```
/// let options = osteon_io::LoadOptions::new().mapped(false).inflate_limit(64 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    mapped: bool,
    inflate_limit: u64,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions {
            mapped: true,
            inflate_limit: 1 << 30,
        }
    }
}

impl LoadOptions {
    /// Files are mapped, and compressed entries inflated up to 1 GiB each.
    pub fn new() -> LoadOptions {
        LoadOptions::default()
    }

    /// Whether files are mapped, as they are unless told otherwise, or read into memory.
    ///
    /// Mapped tensors cost no memory of their own, are read from the disk when they are first used, and
    /// are read-only. While they live, no other process may change or truncate the file: their values
    /// would change, or the system would end this process. Where that can happen, read.
    #[must_use]
    pub fn mapped(mut self, mapped: bool) -> LoadOptions {
        self.mapped = mapped;
        self
    }

    /// The most bytes that a compressed entry may inflate to.
    #[must_use]
    pub fn inflate_limit(mut self, bytes: u64) -> LoadOptions {
        self.inflate_limit = bytes;
        self
    }
}

/// The tensors of a file, or of all shards of a `*.index.json`, by name.
///
/// Tensors that share a storage in the file share one here. Each is labelled with its name. A storage
/// is a window on the mapped file where its bytes are aligned, uncompressed and in this machine's byte
/// order; else it is a copy, which is in the copy log with [`CopyReason::Loaded`]. A tensor saved with
/// its conjugate or negative bit set gets a storage of its own with the values that the bit stands for.
///
/// # Errors
/// As [`catalog`](crate::catalog()); a compressed entry beyond the limit, or one that is not what it declares; out of
/// memory.
#[track_caller]
pub fn load(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Vec<(String, View)>> {
    let (path, site) = (path.as_ref(), Location::caller());
    if !index::is_index(path) {
        return load_file(path, options, site, &|_| true);
    }
    // A tensor that is not where the index says is found before anything is loaded.
    index::catalogs(path)?;
    let index = index::read(path)?;
    let mut tensors = Vec::new();
    for (file, shard) in index.shards(path)? {
        // Where two shards hold one name, the index decides.
        let ours = |name: &str| index.file_of(name).is_none_or(|f| f == file);
        tensors.extend(load_file(&shard, options, site, &ours)?);
    }
    Ok(tensors)
}

fn load_file(
    path: &Path,
    options: &LoadOptions,
    site: Site,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, View)>> {
    let read = || {
        let source = Source::open(path)?;
        let catalog = catalog_source(&source, path)?;
        Loader::new(&source, &catalog, options, site)?.tensors(wanted)
    };
    read().map_err(|e: Error| of_file(e, path))
}

struct Loader<'a> {
    source: &'a Source,
    catalog: &'a Catalog,
    options: &'a LoadOptions,
    site: Site,
    mapping: Option<Mapping>,
    path: Arc<str>,
}

impl<'a> Loader<'a> {
    fn new(
        source: &'a Source,
        catalog: &'a Catalog,
        options: &'a LoadOptions,
        site: Site,
    ) -> Result<Loader<'a>> {
        let mapping = match source.file().filter(|_| options.mapped) {
            Some(file) => Some(Mapping::new(file, source.len())?),
            None => None,
        };
        let path = catalog.path.to_string_lossy().into();
        Ok(Loader {
            source,
            catalog,
            options,
            site,
            mapping,
            path,
        })
    }

    fn tensors(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<(String, View)>> {
        let entries: Vec<&TensorEntry> = self
            .catalog
            .tensors
            .iter()
            .filter(|t| wanted(&t.name))
            .collect();
        let mut on = vec![Vec::new(); self.catalog.storages.len()];
        for t in &entries {
            on[t.storage].push(t.dtype);
        }
        let mut storages = Vec::new();
        for (entry, dtypes) in self.catalog.storages.iter().zip(&on) {
            let storage = match dtypes.is_empty() {
                true => None,
                false => Some(
                    self.storage(entry, dtypes)
                        .map_err(|e| e.context(format_args!("storage {:?}", entry.key)))?,
                ),
            };
            storages.push(storage);
        }
        let mut tensors = Vec::new();
        for t in entries {
            let storage = storages[t.storage].clone();
            // Every storage with a tensor on it was made above.
            let storage = storage.ok_or_else(|| bad("a tensor without a storage"))?;
            let view = View::new(storage, t.layout.clone(), t.dtype, OP)
                .and_then(|view| resolved(view, t))
                .map_err(|e| e.context(format_args!("tensor {:?}", t.name)))?;
            view.viewer().set_label(&t.name);
            tensors.push((t.name.clone(), view));
        }
        Ok(tensors)
    }

    /// The bytes of a storage on which tensors of these dtypes lie.
    fn storage(&self, entry: &StorageEntry, dtypes: &[DType]) -> Result<Storage> {
        let nbytes =
            usize::try_from(entry.nbytes).map_err(|_| crate::error::out_of_memory(entry.nbytes))?;
        let swap = match entry.data.byte_order.is_native() {
            true => 1,
            false => swap_unit(dtypes)?,
        };
        let align = dtypes.iter().map(|d| d.size().min(8)).max().unwrap_or(1);
        let mapped = self.mapping.as_ref().filter(|_| nbytes > 0);
        let window = match mapped {
            Some(mapping) => Some(self.window(mapping, &entry.data)?),
            None => None,
        };
        match window {
            Some(w)
                if entry.data.encoding == Encoding::Stored
                    && swap == 1
                    && w.data_ptr().addr().is_multiple_of(align) =>
            {
                Ok(w)
            }
            window => self.copied(entry, nbytes, swap, window),
        }
    }

    /// The file's own bytes as a storage.
    fn window(&self, mapping: &Mapping, data: &DataLocation) -> Result<Storage> {
        let range = data.offset as usize..(data.offset + data.length) as usize;
        let window = mapping
            .window(range)
            .ok_or_else(|| bad("its data lies outside of the file"))?;
        let origin = Origin::Mapped {
            path: self.path.clone(),
            offset: data.offset,
        };
        Storage::from_owner(window, origin)
    }

    /// The bytes in memory of our own, in this machine's order. `window` is what could not be used as it is.
    fn copied(
        &self,
        entry: &StorageEntry,
        nbytes: usize,
        swap: usize,
        window: Option<Storage>,
    ) -> Result<Storage> {
        let storage = Storage::allocate(nbytes, &Device::cpu(), OP, self.site)?;
        let bytes = View::new(
            storage.clone(),
            Layout::contiguous(&[nbytes])?,
            DType::U8,
            OP,
        )?;
        let copy = copies::begin(nbytes);
        let mut guard = bytes.write::<u8>()?;
        // A one-dimensional view of bytes is contiguous.
        let buf = guard.as_mut_slice().unwrap_or_default();
        let DataLocation {
            offset,
            length,
            encoding,
            crc32,
            ..
        } = entry.data;
        match encoding {
            Encoding::Stored => {
                self.source.read_at(offset, buf)?;
                check_crc(crc32_of(buf), crc32.unwrap_or(0))?;
            }
            Encoding::Deflated {
                skip,
                inflated,
                crc32,
            } => {
                if inflated > self.options.inflate_limit {
                    return Err(bad(format!(
                        "inflates to {inflated} bytes; the limit is {} (LoadOptions::inflate_limit)",
                        self.options.inflate_limit
                    )));
                }
                let mut stream = Inflated::new(self.source, offset, length, inflated, crc32);
                stream.skip(skip)?;
                stream.read(buf)?;
                stream.finish()?;
            }
        }
        if swap > 1 {
            buf.chunks_exact_mut(swap).for_each(<[u8]>::reverse);
        }
        drop(guard);
        if let Some(window) = window {
            let all = Layout::contiguous(&[window.nbytes()])?;
            let from = (&window, DType::U8, &all);
            let to = (&storage, DType::U8, bytes.layout());
            copies::record(copy, CopyReason::Loaded, OP, self.site, from, to);
        }
        Ok(storage)
    }
}

/// Bytes of the numbers to be turned around: half an element where that is complex.
fn swap_unit(dtypes: &[DType]) -> Result<usize> {
    let unit = |d: &DType| d.to_real().size();
    let first = dtypes.first().map_or(1, unit);
    if dtypes.iter().any(|d| unit(d) != first) {
        return Err(Error::new(
            Kind::DType,
            "holds elements of several sizes in the other byte order, which cannot be turned around",
        ));
    }
    Ok(first)
}

/// The view itself, or the values that its conjugate and negative bits stand for.
fn resolved(view: View, entry: &TensorEntry) -> Result<View> {
    let apply = |view: View, op| {
        let args = [(&view).into()];
        Call {
            name: OP,
            op: Op::Unary(op),
            compute: Compute::Promoted,
            args: &args,
            numbers: &[],
        }
        .fresh()
    };
    let view = if entry.conj {
        apply(view, UnaryOp::Conj)?
    } else {
        view
    };
    if entry.neg {
        apply(view, UnaryOp::Neg)
    } else {
        Ok(view)
    }
}
