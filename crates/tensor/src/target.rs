//! Where a result goes: to a new tensor, or to one that is given (`_out`).

use crate::View;
use crate::elementwise::other_device;
use crate::write;
use osteon_spec::{DType, Device, Error, Kind, Layout, Result};
use std::panic::Location;

/// A new tensor of this layout, or the given one, if it suits: the same shape, dtype and device, no overlap with itself
/// or with what is read.
#[track_caller]
pub(crate) fn target(
    out: Option<&View>,
    layout: Layout,
    (dtype, device): (DType, Device),
    reads: &[&View],
    op: &'static str,
) -> Result<View> {
    let Some(out) = out else {
        return View::alloc(layout, dtype, &device, op);
    };
    if out.device() != device {
        return Err(other_device(device, out.device()).op(op));
    }
    if out.dtype() != dtype {
        let message = format!("the result is {dtype}, but out holds {}", out.dtype());
        return Err(Error::new(Kind::DType, message).op(op));
    }
    if out.shape() != layout.sizes() {
        let message = format!(
            "the result has shape {:?}, but out has {:?}; resize_() it first",
            layout.sizes(),
            out.shape()
        );
        return Err(Error::new(Kind::Shape, message).op(op));
    }
    write::check_itself(out, op)?;
    for read in reads {
        write::check_apart(out, read, op)?;
    }
    Ok(out.clone())
}

/// Counts the write of a given tensor.
#[track_caller]
pub(crate) fn written(out: Option<&View>, op: &'static str) {
    if let Some(out) = out {
        out.storage().record_write(op, Location::caller());
    }
}
