//! Elements in another order: mirrored, sorted, picked by a mask.

use super::held;
use super::scratch::with_words;
use crate::View;
use crate::backend::Arg;
use osteon_kernels::{
    self as kernels, ClassLists, Classes, Lanes, Matrices, NotSorted, Pick, Triangle,
};
use osteon_memory::hold;
use osteon_spec::{DType, Dims, Error, Kind, Layout, Plan, Result};

/// Byte strides of a view.
fn byte_strides(view: &View) -> Vec<isize> {
    let size = view.element_size();
    view.stride().iter().map(|s| (s * size) as isize).collect()
}

/// The byte at which a view begins.
fn first_byte(view: &View) -> isize {
    (view.storage_offset() * view.element_size()) as isize
}

/// See [`Backend::flip`](crate::backend::Backend::flip).
pub(super) fn flip(dst: &View, src: &View, dims: &[usize]) -> Result<()> {
    let _held = held(dst, [Arg::View(src)])?;
    if dst.numel() == 0 {
        return Ok(());
    }
    let mut strides = byte_strides(src);
    let mut offset = first_byte(src);
    for &d in dims {
        offset += strides[d] * (src.shape()[d] - 1) as isize;
        strides[d] = -strides[d];
    }
    let plan = Plan::from_strides(
        dst.shape(),
        [first_byte(dst), offset],
        [&byte_strides(dst), &strides],
    )
    .sorted();
    // SAFETY: the walk contract, as in `run`: the source's own elements, from the last on in some dims.
    unsafe {
        kernels::copy(
            &plan,
            dst.storage().data_mut(),
            src.storage().data_ptr(),
            dst.element_size(),
        );
    }
    Ok(())
}

/// See [`Backend::triangle`](crate::backend::Backend::triangle).
pub(super) fn triangle(keep: Triangle, dst: &View, src: &View) -> Result<()> {
    let _held = held(dst, [Arg::View(src)])?;
    let (shape, row) = (dst.shape(), dst.dim() - 1);
    if dst.numel() == 0 {
        return Ok(());
    }
    let strides = [byte_strides(dst), byte_strides(src)];
    let matrices = Matrices {
        starts: Plan::from_strides(
            &shape[..row],
            [first_byte(dst), first_byte(src)],
            strides.each_ref().map(|s| &s[..row]),
        ),
        rows: shape[row - 1],
        columns: shape[row],
        steps: strides.each_ref().map(|s| s[row]),
    };
    let (to, from) = (dst.storage().data_mut(), src.storage().data_ptr());
    // SAFETY: the walk contract, as in `run`; both are the same view or share no byte.
    unsafe { kernels::triangle(keep, &matrices, to, from, dst.element_size()) };
    Ok(())
}

/// See [`Backend::sort`](crate::backend::Backend::sort).
pub(super) fn sort(
    pick: &Pick,
    [values, indices]: [&View; 2],
    src: &View,
    dim: usize,
) -> Result<()> {
    if values.numel() == 0 {
        return Ok(());
    }
    let views = [values, indices, src];
    let without = |list: &[usize]| {
        let mut list = Dims::from_slice(list);
        list.remove(dim);
        list
    };
    let lane_strides = views.map(|v| {
        let mut strides = byte_strides(v);
        strides.remove(dim);
        strides
    });
    let lanes = Lanes {
        starts: Plan::from_strides(
            &without(src.shape()),
            views.map(first_byte),
            lane_strides.each_ref().map(Vec::as_slice),
        ),
        steps: views.map(|v| byte_strides(v)[dim]),
        len: src.shape()[dim],
    };
    with_words(lanes.words(pick), &src.device(), "sort", |words| {
        let _held = hold(&[src.storage()], &[values.storage(), indices.storage()])?;
        let ptrs = views.map(|v| v.storage().data_mut());
        // SAFETY: the walk contract, as in `run`: the results are fresh, and have as many elements along the dim
        // as are asked for.
        match unsafe { kernels::sort(pick, &lanes, ptrs, src.dtype(), words) } {
            Ok(()) => Ok(()),
            Err(NotSorted::NoOrder) => Err(unordered(src.dtype())),
            Err(NotSorted::NoMemory) => Err(Error::new(
                Kind::OutOfMemory,
                format!("no memory for the keys of {} elements", lanes.len),
            )),
        }
    })
}

#[cold]
fn unordered(dtype: DType) -> Error {
    Error::new(Kind::DType, format!("elements of {dtype} have no order"))
}

/// See [`Backend::keys`](crate::backend::Backend::keys).
pub(super) fn keys(src: &View, out: &mut [u64]) -> Result<()> {
    let _held = hold(&[src.storage()], &[])?;
    debug_assert_eq!(out.len(), src.numel());
    let plan = row_major(src);
    // SAFETY: the walk contract, as in `run`.
    let ordered = unsafe { kernels::order_keys(&plan, src.storage().data_ptr(), src.dtype(), out) };
    if ordered {
        Ok(())
    } else {
        Err(unordered(src.dtype()))
    }
}

/// See [`Backend::classes`](crate::backend::Backend::classes).
#[track_caller]
pub(super) fn classes(src: &View, consecutive: bool) -> Result<[View; 3]> {
    let n = src.numel();
    let op = match consecutive {
        true => "unique_consecutive",
        false => "unique",
    };
    let made =
        |shape: &[usize]| View::alloc(Layout::contiguous(shape)?, DType::I64, &src.device(), op);
    let inverse = made(src.shape())?;
    with_words(
        n.saturating_mul(Classes::LISTS),
        &src.device(),
        op,
        |words| {
            let held = hold(&[src.storage()], &[])?;
            let from = src.storage().data_ptr();
            // SAFETY: the walk contract, as in `run`.
            let found =
                unsafe { Classes::new(&row_major(src), from, src.dtype(), consecutive, words) };
            drop(held);
            let found = found.ok_or_else(|| unordered(src.dtype()))?;
            let [firsts, counts] = [made(&[found.len()])?, made(&[found.len()])?];
            let [of_firsts, of_counts, of_inverse] =
                [&firsts, &counts, &inverse].map(|list| list.storage().data_mut());
            // SAFETY: all three are fresh, and nobody else has them.
            unsafe {
                found.write(ClassLists {
                    firsts: of_firsts,
                    counts: of_counts,
                    inverse: of_inverse,
                });
            }
            Ok([firsts, inverse.clone(), counts])
        },
    )
}

fn row_major(view: &View) -> Plan<1> {
    Plan::row_major(view.shape(), [(view.layout(), view.element_size())])
}

/// See [`Backend::count_true`](crate::backend::Backend::count_true).
pub(super) fn count_true(src: &View) -> Result<usize> {
    let _held = hold(&[src.storage()], &[])?;
    // SAFETY: the walk contract, as in `run`.
    Ok(unsafe { count(src, src.layout()) })
}

/// # Safety
/// The storage is held, and the layout, broadcast or not, is in bounds of it.
unsafe fn count(src: &View, layout: &Layout) -> usize {
    let plan = Plan::row_major(layout.sizes(), [(layout, src.element_size())]);
    // SAFETY: the caller's contract.
    unsafe { kernels::count_nonzero(&plan, src.storage().data_ptr(), src.dtype()) }
}

/// See [`Backend::nonzero`](crate::backend::Backend::nonzero).
pub(super) fn nonzero(dst: &View, src: &View) -> Result<bool> {
    let _held = held(dst, [Arg::View(src)])?;
    let strides = byte_strides(dst);
    // SAFETY: the walk contract, as in `run`; the destination has so many rows.
    Ok(unsafe {
        kernels::nonzero(
            src.shape(),
            &row_major(src),
            src.storage().data_ptr(),
            src.dtype(),
            dst.shape()[0],
            dst.storage().data_mut().offset(first_byte(dst)),
            [strides[0], strides[1]],
        )
    })
}

/// The walk over a view and a mask that have one shape.
fn masked(view: &View, mask: &View) -> Plan<2> {
    let own = (view.layout(), view.element_size());
    Plan::row_major(view.shape(), [own, (mask.layout(), mask.element_size())])
}

/// See [`Backend::masked_select`](crate::backend::Backend::masked_select).
pub(super) fn masked_select(dst: &View, src: &View, mask: &View) -> Result<bool> {
    let _held = held(dst, [Arg::View(src), Arg::View(mask)])?;
    // SAFETY: the walk contract, as in `run`; the destination is dense.
    Ok(unsafe {
        kernels::masked_select(
            &masked(src, mask),
            dst.storage().data_mut().offset(first_byte(dst)),
            src.storage().data_ptr(),
            mask.storage().data_ptr(),
            src.element_size(),
            dst.numel(),
        )
    })
}

/// See [`Backend::masked_scatter`](crate::backend::Backend::masked_scatter).
pub(super) fn masked_scatter(dst: &View, mask: &View, src: &View) -> Result<()> {
    let _held = held(dst, [Arg::View(mask), Arg::View(src)])?;
    debug_assert!(src.layout().is_contiguous());
    // SAFETY: for the whole body: the walk contract, as in `run`; the source is dense.
    unsafe {
        let moved = kernels::masked_scatter(
            &masked(dst, mask),
            dst.storage().data_mut(),
            mask.storage().data_ptr(),
            src.storage().data_ptr().offset(first_byte(src)),
            dst.element_size(),
            src.numel(),
        );
        if moved {
            return Ok(());
        }
        let wanted = count(mask, mask.layout());
        Err(Error::new(
            Kind::Shape,
            format!(
                "the mask selects {wanted} elements, the source has {}",
                src.numel()
            ),
        ))
    }
}
