//! What is in memory: counted, listed, drawn; who holds it, what stays, and what would be free if it went.
//!
//! Every report has a text form (`Display`, at most 100 columns wide) and a JSON form (`to_json`), whose numbers
//! docs/memory.md defines.
//!
//! ```
//! use osteon::{DType, Device, Result, Tensor, memory};
//!
//! # fn main() -> Result<()> {
//! let batch = Tensor::zeros([64, 1000], DType::F32, &Device::cpu())?.named("batch");
//! let before = memory::mark();
//! let row = batch.select(0, 3)?;
//! drop(batch);
//! println!("{}", memory::holders(&row)?); // what keeps its storage, and through what
//! println!("{}", memory::pins()?); // 252,000 bytes that `row` keeps and does not reach
//! println!("{}", memory::dominators()?); // what would be free if a tensor went
//! assert_eq!(memory::retained(&row)?, 258_048); // the storage's block, in pages of 4 KiB
//! println!("{}", memory::diff(&before)); // what there is more of
//! println!("{}", memory::step()); // which lines only grow, step by step
//! println!("{}", memory::recent().last(10)); // what happened last, on all threads
//! println!("{}", row.provenance()); // a view of what, or a copy by what for which reason
//! # Ok(())
//! # }
//! ```
//!
//! A recording has all that happens to memory between two moments:
//!
//! ```
//! # use osteon::{DType, Device, Result, Tensor, memory};
//! # fn main() -> Result<()> {
//! let recording = memory::record()?;
//! let x = Tensor::zeros([256, 256], DType::F32, &Device::cpu())?.named("x");
//! drop(x.t()?.contiguous()?);
//! let timeline = recording.stop()?;
//! assert_eq!((timeline.copies.len(), timeline.copies[0].bytes), (1, 1 << 18));
//! let folder = std::env::temp_dir().join(format!("osteon-timeline-{}", std::process::id()));
//! std::fs::create_dir_all(&folder).unwrap();
//! timeline.write_html(folder.join("memory.html"))?; // memory over time, to look at without a network
//! timeline.write_chrome_trace(folder.join("memory.json"))?; // opens in Perfetto
//! timeline.write_pprof(folder.join("memory.pb.gz"))?;
//! timeline.write_pytorch_snapshot(folder.join("memory.pickle"))?; // for torch.cuda._memory_viz
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok(())
//! # }
//! ```

use crate::{Result, Tensor};

pub use osteon_memory::{
    Budget, Bytes, Dominator, Dominators, Event, EventKind, Group, GrowingLine, Growth, GuardInfo,
    HeldBy, Holder, Holders, How, Label, MapDiff, Mark, MemoryMap, MemoryStats, Mode, OverBudget,
    Pin, PinLine, Pins, Provenance, Recent, Recording, Role, Root, Scope, ScopeId, Stat,
    StatByPool, Step, StorageInfo, TensorInfo, Timeline, allocated, bytes, diff, dominators,
    empty_cache, map, mark, max_allocated, pins, recent, record, reserved, reset_peak, scope,
    set_limit, stats, step,
};
pub use osteon_memory::{page, picture, timeline};

/// Who holds the tensor's storage: the tensors in the program's hands that look at it, those whose graphs of
/// derivatives saved something on it, those whose gradient lies on it, guards, and handles; each with the way from
/// there.
///
/// Costs a walk over all storages, tensors and graphs of the process.
///
/// # Errors
/// Out of memory.
///
/// ```
/// # use osteon::{Result, Tensor, memory};
/// # fn main() -> Result<()> {
/// let weight = Tensor::new([[1f32, 2.0], [3.0, 4.0]])?.named("weight");
/// weight.requires_grad_(true)?;
/// let loss = weight.mm(&weight)?.sum()?; // the product saved both factors
/// let held = memory::holders(&weight)?;
/// let text = held.to_string();
/// assert!(text.contains("\"weight\" tensor at ") && text.contains("-> graph: mm at "), "{text}");
/// # drop(loss);
/// # Ok(())
/// # }
/// ```
pub fn holders(tensor: &Tensor) -> Result<Holders> {
    osteon_memory::holders(tensor.storage())
}

/// The bytes of blocks that would be free if this tensor went, with all its handles: its storage, if nothing else holds
/// it, and what only its graph of derivatives and its gradient keep. Heap profilers call it the retained size.
///
/// Costs a walk over all storages, tensors and graphs of the process.
///
/// # Errors
/// Out of memory.
///
/// ```
/// # use osteon::{Result, Tensor, memory};
/// # fn main() -> Result<()> {
/// let x = Tensor::arange(0, 1024, 1)?; // 8 KiB
/// assert_eq!(memory::retained(&x)?, 8192);
/// let view = x.slice(0, 1..3)?; // keeps the storage as well
/// assert_eq!(memory::retained(&x)?, 0);
/// # drop(view);
/// # Ok(())
/// # }
/// ```
pub fn retained(tensor: &Tensor) -> Result<u64> {
    osteon_memory::retained(tensor.as_view().viewer())
}
