//! Checkpoint files: safetensors, PyTorch's (zip, legacy, tar), NumPy's.
//!
//! [`catalog`] says what a file holds from its metadata alone, [`load`] maps it, [`save`] writes one, and
//! [`compact`] rewrites one without the bytes that no tensor reaches.
//! Files are distrusted: nothing in them is
//! executed, every claim is checked against the bytes that are there, and what does not hold is an error
//! that names the file and the byte or record.

#![deny(missing_docs)]
#![deny(unsafe_code)]

mod atomic;
mod catalog;
mod compact;
mod error;
mod index;
mod inflate;
mod load;
mod mmap;
mod npy;
mod npz;
mod pickle;
mod pt;
mod safetensors;
mod save;
mod source;
mod zipfile;
mod zipwrite;

pub use catalog::{
    ByteOrder, Catalog, DataLocation, Encoding, Format, StorageEntry, TensorEntry, Warning,
    WarningKind, catalog, catalog_bytes,
};
pub use compact::{CompactReport, Kept, compact};
pub use load::{LoadOptions, load};
pub use save::{SaveOptions, save};
