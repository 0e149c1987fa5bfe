//! Checkpoint files as tensors.

use crate::{Result, Tensor};
use osteon_io::{LoadOptions, SaveOptions};
use std::collections::BTreeMap;
use std::path::Path;

/// The tensors of a checkpoint by name: safetensors (also a sharded `*.index.json`), PyTorch's `.pt` and
/// `.pth`, NumPy's `.npy` and `.npz`. Each tensor carries its name as its label.
///
/// Nothing in a file is ever executed. Data are mapped where they lie: loading reads no tensor and takes no
/// memory until one is used, and the tensors are read-only ([`Tensor::copy`] gives one that can be written). What cannot
/// be used where it lies (compressed, misaligned, another byte order) is copied, which the copy log shows.
/// Tensors that share a storage in a `.pt` file share it here.
///
/// While mapped tensors live, no other process may truncate the file; [`load_with`] can read it instead.
///
/// # Errors
/// A file that is broken, of an unknown format, or cannot be read; out of memory.
///
/// ```
/// # use osteon::{Result, Tensor};
/// # fn main() -> Result<()> {
/// let path = std::env::temp_dir().join(format!("osteon-load-{}.safetensors", std::process::id()));
/// osteon::save(&path, [("w", &Tensor::new([1f32, 2.0])?)])?;
/// let weights = osteon::load(&path)?;
/// assert_eq!(weights["w"].to_vec::<f32>()?, [1.0, 2.0]);
/// assert!(weights["w"].fill_(0.0).unwrap_err().is_read_only());
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn load(path: impl AsRef<Path>) -> Result<BTreeMap<String, Tensor>> {
    load_with(path, &LoadOptions::new())
}

/// [`load`], told how.
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn load_with(
    path: impl AsRef<Path>,
    options: &LoadOptions,
) -> Result<BTreeMap<String, Tensor>> {
    let views = osteon_io::load(path, options)?;
    Ok(views
        .into_iter()
        .map(|(name, view)| {
            let tensor = Tensor::from_view(view).named(&name);
            (name, tensor)
        })
        .collect())
}

/// Writes tensors to a checkpoint whose extension says the format: `.safetensors`, `.pt`, `.pth`, `.npz`, or `.npy` for
/// a single one. The file appears whole or not at all.
///
/// `.pt` keeps sharing, strides and offsets, and `torch.load(weights_only=True)` reads it. The other formats hold dense
/// tensors; tensors that share bytes are an error there, since the file could not say so ([`save_with`] can
/// write each on its own).
///
/// # Errors
/// Tensors that share memory in a format that cannot say so; a dtype that the format lacks; the file system's.
#[track_caller]
pub fn save<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
) -> Result<()> {
    save_with(path, tensors, &SaveOptions::new())
}

/// [`save`], told how.
///
/// # Errors
/// As [`save`].
#[track_caller]
pub fn save_with<'a, N: AsRef<str>>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (N, &'a Tensor)>,
    options: &SaveOptions,
) -> Result<()> {
    let views: Vec<_> = tensors
        .into_iter()
        .map(|(name, t)| (name.as_ref().to_owned(), t.as_view().clone()))
        .collect();
    osteon_io::save(path, &views, options)
}
