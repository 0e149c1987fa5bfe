//! A tensor engine with PyTorch's storage model that explains every byte and every copy.
//!
//! A [`Tensor`] is a shape, strides and an offset over a [`Storage`] that it may share; memory in use is the sum of
//! storages. Operations have PyTorch's names and answers. At any moment [`memory::map`] tells which
//! storages are alive, which tensors look at them and which lines made them, and [`copies::since`] which copies were
//! made, and why; nothing need be switched on.
//!
//! ```
//! use osteon::{DType, Device, Result, Tensor, copies, memory, s};
//!
//! fn main() -> Result<()> {
//!     let batch = Tensor::zeros([64, 1000], DType::F32, &Device::cpu())?.named("batch");
//!     let first = batch.i(s![0])?; // a view: 4,000 bytes that keep 256,000 alive
//!     assert_eq!(first.storage().nbytes(), 256_000);
//!
//!     let mark = copies::mark();
//!     let kept = first.compact()?; // a storage of its own
//!     assert_eq!(kept.storage().nbytes(), 4_000);
//!     assert_eq!(copies::since(&mark).len(), 1);
//!
//!     println!("{}", memory::map());
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub use osteon_autograd::{Index, Operand, Tensor, To, s};
pub use osteon_memory::{Origin, Site, Storage};
pub use osteon_spec::{
    Category, DType, Device, Error, Kind, Layout, MemoryFormat, OomReport, ReshapeInfo, Result, Scalar, Sections,
};
pub use osteon_tensor::format::{PrintOptions, get_printoptions, set_printoptions};
pub use osteon_tensor::{Data, Number, ReadGuard, WriteGuard};

/// What is in memory: counted, listed, drawn.
pub mod memory {
    pub use osteon_memory::picture;
    pub use osteon_memory::{
        Bytes, DiffEntry, MapDiff, MemoryMap, MemoryStats, Scope, ScopeId, Stat, StatByPool, StorageInfo, TensorInfo,
        allocated, bytes, empty_cache, map, max_allocated, reserved, reset_peak, scope, set_limit, stats,
    };
}

/// Which copies were made, and why.
pub mod copies {
    pub use osteon_memory::copies::{
        CopyEnd, CopyEvent, CopyLog, CopyReason, Forbidden, Mark, forbid, mark, since,
    };
}

/// What checkpoint files hold, learnt from their metadata; see [`files::catalog`].
pub mod files {
    pub use osteon_io::{
        ByteOrder, Catalog, CompactReport, DataLocation, Encoding, Format, Kept, StorageEntry, TensorEntry, Warning,
        WarningKind, catalog, catalog_bytes, compact,
    };
}
