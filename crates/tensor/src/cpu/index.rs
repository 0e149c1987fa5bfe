//! Indexed moves.

use super::undefined;
use crate::View;
use crate::backend::Arg;
use crate::index::{Indexed, Move, Walk};
use osteon_kernels::{self as kernels, Value};
use osteon_memory::{Storage, hold};
use osteon_spec::{Error, Kind, Plan, Result};

/// See [`Backend::indexed`](crate::backend::Backend::indexed).
pub(super) fn indexed(what: Move<'_>, dst: &View, src: Arg<'_>, how: &Indexed<'_>) -> Result<()> {
    let mut reads: Vec<&Storage> = how.pointers.iter().map(|p| p.index.storage()).collect();
    let number = match src {
        Arg::View(_) => Value::ZERO,
        Arg::Number(n) => Value::new(n, dst.dtype()),
    };
    let (src_ptr, src_offset) = match src {
        Arg::View(v) => {
            reads.push(v.storage());
            (v.storage().data_ptr(), v.storage_offset())
        }
        Arg::Number(_) => (number.as_ptr(), 0),
    };
    let _held = hold(&reads, &[dst.storage()])?;
    let size = dst.element_size();
    let bytes = |n: &usize| (n * size) as isize;
    let plan = |walk: &Walk, offsets: [isize; 2]| {
        let strides = walk
            .strides
            .each_ref()
            .map(|s| s.iter().map(bytes).collect::<Vec<_>>());
        Plan::from_strides(&walk.shape, offsets, strides.each_ref().map(Vec::as_slice))
    };
    let offsets = [bytes(&dst.storage_offset()), bytes(&src_offset)];
    let mut indices = Vec::with_capacity(how.pointers.len());
    for p in how.pointers {
        let index = kernels::Index::new(
            &how.positions.shape,
            p.index.layout(),
            p.index.storage().data_ptr(),
            p.index.dtype(),
            p.size,
            bytes(&p.stride),
        );
        // SAFETY: the walk contract, as in `run`, of the indices.
        if let Some((at, value)) = unsafe { index.first_out_of_range(p.wrap) } {
            return Err(Error::new(
                Kind::Index,
                format!(
                    "index {value}, at place {at} of the index tensor, is out of range for a dim of size {}",
                    p.size
                ),
            ));
        }
        indices.push(index);
    }
    let walk = kernels::Indexed {
        positions: plan(&how.positions, offsets),
        slice: plan(&how.slice, [0, 0]).sorted(),
        indices: &indices,
    };
    let dst_ptr = dst.storage().data_mut();
    // SAFETY: the walk contract, as in `run`: the walks are made of the views' own dims, and every index is in
    // range. Callers have checked that the destination shares no byte with what is read.
    unsafe {
        match what {
            Move::Get => walk.get(dst_ptr, src_ptr, size),
            Move::Set => walk.set(dst_ptr, src_ptr, size),
            Move::Reduce(op, numbers) => {
                let kernel =
                    kernels::binary(op, dst.dtype()).ok_or_else(|| undefined(op, dst.dtype()))?;
                walk.reduce(&kernel.with(numbers), dst_ptr, src_ptr, dst.dtype());
            }
        }
    }
    Ok(())
}
