//! Memory that an operation needs while it runs.

use crate::View;
use osteon_kernels::zeroed;
use osteon_spec::{DType, Device, Layout, Result};
use std::mem::MaybeUninit;

/// Bytes that lie on the stack: a block of the pool costs about as much as the smallest products.
const FEW: usize = 8 << 10;

/// Runs `work` with so many bytes of scratch. More than a few are a block of the pool, made by `op` like any other tensor,
/// so that the map of memory explains them and a device that is full says so before anything has been written.
#[track_caller]
pub(super) fn with_scratch<R>(
    bytes: usize,
    device: &Device,
    op: &'static str,
    work: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<R>,
) -> Result<R> {
    if bytes <= FEW {
        return work(&mut [MaybeUninit::uninit(); FEW][..bytes]);
    }
    let block = View::alloc(Layout::contiguous(&[bytes])?, DType::U8, device, op)?;
    let first = block.storage().data_mut().cast::<MaybeUninit<u8>>();
    // SAFETY: the bytes of a storage that was made here, that nobody else has, and that outlives the slice.
    work(unsafe { std::slice::from_raw_parts_mut(first, bytes) })
}

/// The same with so many words; of none, nothing is made.
#[track_caller]
pub(super) fn with_words<R>(
    words: usize,
    device: &Device,
    op: &'static str,
    work: impl FnOnce(&mut [u64]) -> Result<R>,
) -> Result<R> {
    if words == 0 {
        return work(&mut []);
    }
    let block = View::alloc(Layout::contiguous(&[words])?, DType::U64, device, op)?;
    let first = block.storage().data_mut().cast::<MaybeUninit<u64>>();
    // SAFETY: as in `with_scratch`; blocks begin where any element may.
    work(zeroed(unsafe {
        std::slice::from_raw_parts_mut(first, words)
    }))
}
