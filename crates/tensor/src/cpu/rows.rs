//! Loops over whole rows.

use crate::View;
use crate::backend::Arg;
use osteon_kernels::{self as kernels, ROW_OPERANDS, RowOp, Value};
use osteon_memory::{Storage, hold};
use osteon_spec::{DType, Plan, Result};
use smallvec::SmallVec;
use std::array;

/// Bytes from one element to the next along dim `d` of the shape that an operand broadcasts to.
fn stride(arg: Option<&Arg<'_>>, rank: usize, d: usize) -> isize {
    let Some(Arg::View(view)) = arg else {
        return 0;
    };
    match (d + view.dim()).checked_sub(rank) {
        Some(own) if view.shape()[own] != 1 => (view.stride()[own] * view.element_size()) as isize,
        _ => 0,
    }
}

/// See [`Backend::rows`](crate::backend::Backend::rows).
pub(super) fn rows(
    op: RowOp,
    (dtype, number): (DType, f64),
    args: &[Arg<'_>],
    dims: &[usize],
) -> Result<bool> {
    let Some(kernel) = kernels::row_kernel(op, dtype, number) else {
        return Ok(false);
    };
    let view = |k: usize| match args.get(k) {
        Some(&Arg::View(view)) => Some(view),
        _ => None,
    };
    let of_rows = op.rows()..args.len();
    if of_rows
        .filter_map(view)
        .any(|v| v.dtype() != kernel.dtype())
    {
        return Ok(false);
    }
    let shape = view(0).map_or(&[][..], View::shape);
    let storages = |of: &dyn Fn(&usize) -> bool| -> SmallVec<[&Storage; ROW_OPERANDS]> {
        let some = (0..args.len()).filter(of).filter_map(view);
        some.map(View::storage).collect()
    };
    let writes = |k: &usize| op.written().contains(k);
    let _held = hold(&storages(&|k| !writes(k)), &storages(&writes))?;
    let mut numbers = [Value::ZERO; ROW_OPERANDS];
    for (k, number) in numbers.iter_mut().enumerate() {
        if let Some(&Arg::Number(scalar)) = args.get(k) {
            *number = Value::new(scalar, kernel.dtype());
        }
    }
    let ptrs = array::from_fn(|k| match view(k) {
        Some(v) => v.storage().data_mut(),
        None => numbers[k].as_ptr().cast_mut(),
    });
    let dtypes = array::from_fn(|k| view(k).map_or(kernel.dtype(), View::dtype));
    let offset = |v: &View| (v.storage_offset() * v.element_size()) as isize;
    let plan = |of: &dyn Fn(&usize) -> bool, offsets: [isize; ROW_OPERANDS]| {
        let dims: SmallVec<[usize; 6]> = (0..shape.len()).filter(of).collect();
        let sizes: SmallVec<[usize; 6]> = dims.iter().map(|&d| shape[d]).collect();
        let strides: [SmallVec<[isize; 6]>; ROW_OPERANDS] = array::from_fn(|k| {
            let stride = |&d: &usize| stride(args.get(k), shape.len(), d);
            dims.iter().map(stride).collect()
        });
        let strides = strides.each_ref().map(|s| &s[..]);
        Plan::from_strides(&sizes, offsets, strides).sorted()
    };
    let starts = plan(
        &|d| !dims.contains(d),
        array::from_fn(|k| view(k).map_or(0, offset)),
    );
    let line = plan(&|d| dims.contains(d), [0; ROW_OPERANDS]);
    // SAFETY: the walk contract, as in `run`: the walks are made of the views' own dims; what is written is fresh, or
    // an operand element for element; numbers are read only and outlive the call.
    Ok(unsafe { kernel.run(&starts, &line, ptrs, dtypes) })
}
