//! Tensors as files, in the format that the name asks for.

use crate::atomic::{self, Out, put};
use crate::compact::archive_name;
use crate::zipfile::is_plain;
use crate::zipwrite::Writer;
use crate::{npy, pt, safetensors};
use osteon_memory::Storage;
use osteon_spec::{DType, Error, Kind, Layout, Placed, Result, overlaps};
use osteon_tensor::{ReadGuard, View};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

const OP: &str = "save";

/// How [`save`] goes about it.
///
/// ```
/// let options = osteon_io::SaveOptions::new().separate(true);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    separate: bool,
}

impl SaveOptions {
    /// Tensors that share memory are an error in formats that cannot say so.
    pub fn new() -> SaveOptions {
        SaveOptions::default()
    }

    /// Whether formats that cannot express sharing (all but `.pt`) get a copy of its own for each tensor
    /// that shares memory with another.
    #[must_use]
    pub fn separate(mut self, separate: bool) -> SaveOptions {
        self.separate = separate;
        self
    }
}

/// Writes tensors to a file, whose extension says how:
///
/// - `.pt`, `.pth`: as `torch.save` writes a dict of these tensors. Each storage is written once and whole,
///   and tensors keep sharing, strides and offsets: `torch.load(weights_only=True)` gives the same.
/// - `.safetensors`, `.npz`: each tensor dense and row-major.
/// - `.npy`: the one tensor, dense and row-major.
///
/// Elements are streamed: no tensor is made dense in memory. The file appears whole under its name or not at
/// all. While it is written, operations that would write one of the storages are errors.
///
/// # Errors
/// [`Kind::Value`] for an extension that is none of these, two tensors of one name, a name that the format
/// cannot hold, tensors that share memory (see [`SaveOptions::separate`]), or not one tensor for `.npy`;
/// [`Kind::DType`] for a dtype that NumPy does not have; [`Kind::Device`] for tensors without memory here;
/// [`Kind::Io`].
#[track_caller]
pub fn save(
    path: impl AsRef<Path>,
    tensors: &[(String, View)],
    options: &SaveOptions,
) -> Result<()> {
    let path = path.as_ref();
    let write = || {
        let extension = path
            .extension()
            .map(|e| e.to_string_lossy().to_lowercase())
            .unwrap_or_default();
        let tensors = Tensors::new(tensors)?;
        match &*extension {
            "pt" | "pth" => {
                atomic::write(path, |out| pt::write(&tensors, &archive_name(path), out))
            }
            "safetensors" => {
                tensors.check_apart(options)?;
                atomic::write(path, |out| safetensors::write(&tensors, out))
            }
            "npz" => {
                tensors.check_apart(options)?;
                atomic::write(path, |out| write_npz(&tensors, out))
            }
            "npy" => match &*tensors.list {
                [one] => atomic::write(path, |out| {
                    put(out, &npy::encode(one.view)?)?;
                    tensors.write_dense(one, out)
                }),
                list => Err(value(format!(
                    "an .npy file holds one tensor, not {}",
                    list.len()
                ))),
            },
            _ => Err(value(format!(
                "{} has none of the extensions .pt, .pth, .safetensors, .npz, .npy",
                path.display()
            ))),
        }
    };
    write().map_err(|e: Error| e.op(OP))
}

#[cold]
fn value(message: String) -> Error {
    Error::new(Kind::Value, message)
}

/// Tensors with their bytes held for reading.
pub(crate) struct Tensors<'a> {
    pub list: Vec<Held<'a>>,
    /// The storages, each once, in the order of their first tensors.
    pub storages: Vec<(Storage, ReadGuard<u8>)>,
}

/// One tensor.
pub(crate) struct Held<'a> {
    pub name: &'a str,
    pub view: &'a View,
    /// Position in [`Tensors::storages`].
    pub storage: usize,
}

impl<'a> Tensors<'a> {
    #[track_caller]
    fn new(tensors: &'a [(String, View)]) -> Result<Tensors<'a>> {
        let mut names = HashSet::new();
        let mut numbers = HashMap::new();
        let mut held = Tensors {
            list: Vec::new(),
            storages: Vec::new(),
        };
        for (name, view) in tensors {
            if !names.insert(name) {
                return Err(value(format!("two tensors are named {name:?}")));
            }
            let storage = view.storage();
            let in_tensor = |e: Error| e.context(format_args!("tensor {name:?}"));
            if !view.device().is_cpu() {
                let message = format!("is on {}; move it to the cpu first", view.device());
                return Err(in_tensor(Error::new(Kind::Device, message)));
            }
            let number = match numbers.get(&storage.id()) {
                Some(&number) => number,
                None => {
                    let guard = bytes_of(storage).map_err(in_tensor)?;
                    numbers.insert(storage.id(), held.storages.len());
                    held.storages.push((storage.clone(), guard));
                    held.storages.len() - 1
                }
            };
            held.list.push(Held {
                name,
                view,
                storage: number,
            });
        }
        Ok(held)
    }

    /// Writes the elements of one in row-major order.
    pub fn write_dense(&self, t: &Held<'_>, out: &mut impl Write) -> Result<()> {
        let bytes = slice(&self.storages[t.storage].1);
        write_dense(bytes, t.view.layout(), t.view.element_size(), out)
    }

    /// Refuses tensors that share a byte, unless they may be written separately.
    fn check_apart(&self, options: &SaveOptions) -> Result<()> {
        if options.separate {
            return Ok(());
        }
        let placed = |t: &Held<'a>| {
            let base = t.view.storage().data_ptr().addr();
            let placed = Placed::new(t.view.layout(), t.view.element_size());
            (
                placed.extent().start + base,
                placed.extent().end + base,
                base,
            )
        };
        let mut order: Vec<_> = self.list.iter().map(|t| (placed(t), t)).collect();
        order.retain(|((start, end, _), _)| start < end);
        order.sort_by_key(|(place, _)| *place);
        for (i, ((_, end, base), t)) in order.iter().enumerate() {
            // Those that begin behind the end of this one cannot meet it.
            for ((_, _, other_base), u) in order[i + 1..]
                .iter()
                .take_while(|((start, ..), _)| start < end)
            {
                let a = Placed::new(t.view.layout(), t.view.element_size()).at(*base);
                let b = Placed::new(u.view.layout(), u.view.element_size()).at(*other_base);
                if overlaps(a, b)? {
                    return Err(value(format!(
                        "tensors {:?} and {:?} share memory, which the format cannot express; save as .pt, or \
                         write a copy of each with SaveOptions::separate",
                        t.name, u.name
                    )));
                }
            }
        }
        Ok(())
    }
}

/// The bytes of a whole storage, held for reading.
#[track_caller]
fn bytes_of(storage: &Storage) -> Result<ReadGuard<u8>> {
    let all = Layout::contiguous(&[storage.nbytes()])?;
    View::new(storage.clone(), all, DType::U8, OP)?.read()
}

/// The bytes under a guard of [`bytes_of`], whose one dim is contiguous.
pub(crate) fn slice(guard: &ReadGuard<u8>) -> &[u8] {
    guard.as_slice().unwrap_or_default()
}

/// Bytes gathered before they are written.
const BUFFER: usize = 64 * 1024;

/// Writes the elements of a layout over `bytes` in row-major order.
fn write_dense(bytes: &[u8], layout: &Layout, size: usize, out: &mut impl Write) -> Result<()> {
    if layout.numel() == 0 {
        return Ok(());
    }
    let (sizes, strides) = (layout.sizes(), layout.strides());
    // The innermost dims that lie without gaps are one run.
    let (mut outer, mut run) = (sizes.len(), 1);
    while outer > 0 && (sizes[outer - 1] == 1 || strides[outer - 1] == run) {
        outer -= 1;
        run *= sizes[outer];
    }
    let run = run * size;
    let mut index = vec![0; outer];
    let mut at = layout.offset() * size;
    let mut buffer = Vec::with_capacity(BUFFER);
    loop {
        let run = &bytes[at..at + run];
        if buffer.len() + run.len() > BUFFER {
            put(out, &buffer)?;
            buffer.clear();
        }
        if run.len() >= BUFFER {
            put(out, run)?;
        } else {
            buffer.extend_from_slice(run);
        }
        // The next index, the last dim first.
        let Some(d) = (0..outer).rev().find(|&d| index[d] + 1 < sizes[d]) else {
            break;
        };
        for d in d + 1..outer {
            at -= index[d] * strides[d] * size;
            index[d] = 0;
        }
        index[d] += 1;
        at += strides[d] * size;
    }
    put(out, &buffer)
}

fn write_npz(tensors: &Tensors<'_>, out: &mut Out) -> Result<()> {
    let mut zip = Writer::new(out);
    for t in &tensors.list {
        if !is_plain(t.name) {
            return Err(value(format!(
                "{:?} cannot be the name of an array in an archive",
                t.name
            )));
        }
        let header =
            npy::encode(t.view).map_err(|e| e.context(format_args!("tensor {:?}", t.name)))?;
        let size = (header.len() + t.view.nbytes()) as u64;
        zip.record(&format!("{}.npy", t.name), size, |out| {
            put(out, &header)?;
            tensors.write_dense(t, out)
        })?;
    }
    zip.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use osteon_spec::Dims;

    #[test]
    fn row_major_order_of_any_strides() {
        let bytes: Vec<u8> = (0..120).collect();
        let cases: [(&[usize], &[usize], usize); 7] = [
            (&[2, 3, 4], &[12, 4, 1], 5),
            (&[4, 3, 2], &[1, 4, 12], 0),
            (&[3, 1, 2], &[7, 99, 1], 1),
            (&[2, 3], &[0, 2], 4),
            (&[], &[], 7),
            (&[0, 3], &[3, 1], 0),
            (&[5, 2], &[1, 1], 0),
        ];
        for (sizes, strides, offset) in cases {
            for size in [1, 2] {
                let layout =
                    Layout::new(Dims::from_slice(sizes), Dims::from_slice(strides), offset)
                        .unwrap();
                let mut want: Vec<u8> = Vec::new();
                for i in 0..layout.numel() {
                    let (mut rest, mut at) = (i, offset);
                    for (n, s) in sizes.iter().zip(strides).rev() {
                        at += rest % n * s;
                        rest /= n;
                    }
                    want.extend(&bytes[at * size..(at + 1) * size]);
                }
                let mut got = Vec::new();
                write_dense(&bytes, &layout, size, &mut got).unwrap();
                assert_eq!(got, want, "{layout}");
            }
        }
    }
}
