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
//!
//! # The surface, in one walk
//!
//! ```
//! use osteon::{DType, Device, Result, Storage, Tensor, s};
//!
//! # fn main() -> Result<()> {
//! let a = Tensor::new([1i64, 2, 3, 4])?; // scalars, nested arrays, Vec; the dtype is the numbers' type
//! let z = Tensor::zeros([4, 4], DType::F32, &Device::cpu())?; // ones, full, empty, arange, linspace, eye
//! let b = a.slice(0, 1..3)?; // a view; also a.i(s![1..3])?, with steps, integers, None, `...`
//! assert_eq!((b.shape(), b.stride(), b.storage_offset(), b.dim()), (&[2][..], &[1][..], 1, 1));
//! assert_eq!((b.numel(), b.element_size(), b.nbytes(), b.dtype()), (2, 8, 16, DType::I64));
//! assert_eq!(b.device(), Device::cpu());
//! assert_eq!(b.data_ptr().addr() - a.data_ptr().addr(), 8); // safe to get, unsafe to read through
//! assert!(b.is_contiguous() && b.is_view() && b.version() == 0);
//! let st: &Storage = b.storage();
//! assert_eq!((st.id(), st.nbytes(), st.tensors().len()), (a.storage().id(), 32, 2));
//! assert!(a.shares_storage(&b) && a.overlaps(&b)?); // overlaps: exact, on bytes
//! let x = z.i(s![..2, ..])?;
//! x.view([8])?.reshape([2, 2, 2])?.transpose(0, 1)?.permute([2, 0, 1])?;
//! x.t()?.expand([3, 4, 2])?;
//! let c = b.contiguous()?; // itself when already contiguous, as in PyTorch
//! assert!(c.is(&b));
//! let d = b.copy()?; // PyTorch's clone(): a new, right-sized storage. Rust's Clone is the cheap handle
//! let e = b.compact()?; // itself when it spans its whole storage, else a right-sized copy
//! assert_eq!((d.storage().nbytes(), e.storage().nbytes()), (16, 16));
//! let why = x.t()?.reshape_info([8])?; // a view, or a copy and the dims that force it; nothing is done
//! assert!(!why.is_view());
//! a.add_(&a)?; // in place, seen through every view
//! b.fill_(0)?;
//! a.copy_(&a.copy()?)?;
//! a.index_put_(s![1..3], &Tensor::new([7i64, 8])?)?; // x[1:3] = v
//! let sum = (&a + &a)?; // operators return Result
//! let out = a.empty_like()?;
//! a.add_out(&a, &out)?; // out=: op name + _out
//! assert_eq!(sum.to_vec::<i64>()?, [4, 14, 16, 16]);
//! assert_eq!(a.select(0, 0)?.item::<i64>()?, 2);
//! assert_eq!(format!("{a}"), "tensor([2, 7, 8, 8])"); // printed as PyTorch prints
//! assert!(sum.equal(&out)? && sum.allclose(&out, 1e-5, 1e-8)?);
//! let g = a.read::<i64>()?; // a guard: typed access without copying
//! assert_eq!((g.get([1]), g.as_slice()), (Some(7), Some(&[2i64, 7, 8, 8][..])));
//! assert!(a.write::<i64>().is_err()); // refused, naming the line of the guard in the way
//! drop(g);
//! let named = z.named("embed.weight"); // a label, seen in every report
//! assert_eq!(named.storage().id(), z.storage().id());
//! # Ok(())
//! # }
//! ```
//!
//! ```
//! use osteon::{DType, Device, Result, Tensor, copies, memory};
//!
//! # fn main() -> Result<()> {
//! let dev = Device::cpu();
//! let before = memory::map();
//! let x = Tensor::ones([1000, 3], DType::F32, &dev)?;
//! memory::allocated(&dev);
//! memory::reserved(&dev);
//! memory::max_allocated(&dev);
//! memory::reset_peak(&dev);
//! memory::empty_cache(&dev);
//! println!("{}", memory::stats(&dev)); // the keys of torch.cuda.memory_stats()
//! memory::set_limit(&dev, Some(1 << 40));
//! let map = memory::map(); // storages → tensors, and the bytes that nothing reaches
//! println!("{map}\n{}", map.to_json()?);
//! println!("{}", map.diff(&before)); // what grew, by line and label
//! let path = std::env::temp_dir().join(format!("osteon-map-{}.html", std::process::id()));
//! map.write_html(&path)?;
//! # std::fs::remove_file(&path).unwrap();
//! {
//!     let _in = memory::scope("encoder.3"); // allocations inside carry the scope
//!     Tensor::empty([8], DType::F32, &dev)?;
//! }
//! let mark = copies::mark();
//! let y = x.t()?.contiguous()?;
//! let log = copies::since(&mark); // each copy: reason, bytes, both layouts, line, hint
//! assert!(log.iter().any(|c| c.to.storage == y.storage().id() && c.bytes == 12_000));
//! let _none = copies::forbid(); // implicit copies become errors in this scope
//! assert!(x.t()?.reshape([3000]).unwrap_err().is_copy_forbidden());
//! # memory::set_limit(&dev, None);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod checkpoint;
pub mod memory;
pub mod nn;
pub mod optim;

pub use checkpoint::{load, load_with, save, save_with};
pub use osteon_autograd::{
    BatchNorm, Index, Indexing, Interpolation, MatrixNorm, Operand, PadMode, Reduce, RngState,
    Rounding, Tensor, To, UniqueTensors, enable_grad, functional, get_rng_state, inference_mode,
    is_grad_enabled, is_inference_mode_enabled, manual_seed, no_grad, s, set_rng_state,
};
pub use osteon_io::{LoadOptions, SaveOptions};
pub use osteon_memory::{Origin, Site, Storage};
pub use osteon_spec::ops;
pub use osteon_spec::{
    Category, DType, Device, Error, Kind, Layout, MemoryFormat, OomReport, ReshapeInfo, Result,
    Scalar, Sections,
};
pub use osteon_tensor::format::{PrintOptions, get_printoptions, set_printoptions};
pub use osteon_tensor::{
    Data, Number, ReadGuard, WriteGuard, limits, num_threads, set_num_threads,
};

/// Which copies were made, and why.
pub mod copies {
    pub use osteon_memory::copies::{
        CopyEnd, CopyEvent, CopyLog, CopyReason, CopySite, CopySummary, Forbidden, Mark, forbid,
        mark, since, summary,
    };
}

/// What checkpoint files hold, learnt from their metadata; see [`files::catalog`].
pub mod files {
    pub use osteon_io::{
        ByteOrder, Catalog, CompactReport, DataLocation, Encoding, Format, Kept, StorageEntry,
        TensorEntry, Warning, WarningKind, catalog, catalog_bytes, compact,
    };
}

/// Runs a block and returns its value; panics, listing them, if this thread copied elements in it. For tests.
///
/// ```
/// use osteon::{Tensor, assert_no_copy};
/// let x = Tensor::arange(0, 6, 1).unwrap();
/// let y = assert_no_copy!({ x.view([2, 3]).unwrap().t().unwrap() });
/// assert_eq!(y.shape(), [3, 2]);
/// ```
///
/// ```should_panic
/// use osteon::{Tensor, assert_no_copy};
/// let x = Tensor::arange(0, 6, 1).unwrap().view([2, 3]).unwrap();
/// assert_no_copy!({ x.t().unwrap().reshape([6]).unwrap() });
/// ```
#[macro_export]
macro_rules! assert_no_copy {
    ($block:expr) => {{
        let mark = $crate::copies::mark();
        let value = $block;
        let made = $crate::copies::since(&mark).on_this_thread();
        assert!(
            made.is_empty() && made.missed() == 0,
            "copies were made:\n{made}"
        );
        value
    }};
}

/// Runs a block and returns its value; panics if the blocks of memory that this thread allocated in it held more than so
/// many bytes at any moment, and lists what they were, by line. For tests. Bytes are those of the allocator's blocks,
/// which are up to an eighth larger than what is asked for, and multiples of 4 KiB above 32 KiB.
///
/// ```
/// use osteon::{DType, Device, Tensor, memory_budget};
/// let x = Tensor::zeros([1 << 16], DType::F32, &Device::cpu()).unwrap(); // 256 KiB
/// let sum = memory_budget!(300_000, { x.mul(2.0).unwrap().sum().unwrap() }); // one temporary, and the sum
/// # drop(sum);
/// ```
///
/// ```should_panic
/// use osteon::{DType, Device, Tensor, memory_budget};
/// let x = Tensor::zeros([1 << 16], DType::F32, &Device::cpu()).unwrap();
/// memory_budget!(300_000, { x.mul(2.0).unwrap().add(1.0).unwrap() }); // two at once
/// ```
#[macro_export]
macro_rules! memory_budget {
    ($bytes:expr, $block:expr) => {{
        let budget = $crate::memory::Budget::begin($bytes).expect("a recording");
        let value = $block;
        if let Some(over) = budget.end().expect("a recording") {
            panic!("{over}");
        }
        value
    }};
}

/// The examples of the README run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Gradients: how backward passes are run, and what is recorded for them.
pub mod autograd {
    pub use osteon_autograd::{
        Backward, BackwardContext, ForwardContext, Function, Grad, checkpoint, enable_grad, grad,
        inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad,
    };
}
