//! May this view be written? The rules about overlap, for every operation that writes in place.
//!
//! PyTorch decides quickly and lets pass what it finds too hard. Here the hard cases are decided exactly, so
//! that a write is either right or refused.

use crate::View;
use crate::backend::Arg;
use osteon_memory::Origin;
use osteon_spec::{
    Error, InternalOverlap, Kind, PartialOverlap, Placed, Result, overlaps, partial_overlap,
    shared_bytes,
};

/// Checks that `dst` does not overlap itself, for an operation whose elements differ.
///
/// # Errors
/// [`Kind::Overlap`].
#[inline]
pub(crate) fn check_itself(dst: &View, op: &'static str) -> Result<()> {
    if dst.layout().has_internal_overlap() == InternalOverlap::No {
        return Ok(());
    }
    // A search that ends undecided counts as an overlap.
    if dst.layout().overlaps_itself().unwrap_or(true) {
        return Err(overlaps_itself(dst).op(op));
    }
    Ok(())
}

#[cold]
fn overlaps_itself(dst: &View) -> Error {
    Error::new(
        Kind::Overlap,
        format!(
            "more than one element of the written-to tensor {} refers to one memory location; copy() it first",
            dst.layout()
        ),
    )
}

/// Checks `dst` and that every source overlaps it either not at all or element for element.
///
/// # Errors
/// [`Kind::Overlap`].
#[inline]
pub(crate) fn check(dst: &View, sources: &[Arg<'_>], op: &'static str) -> Result<()> {
    check_itself(dst, op)?;
    sources.iter().try_for_each(|source| match source {
        Arg::View(src) => check_pair(dst, src, op),
        Arg::Number(_) => Ok(()),
    })
}

/// Whether both look at the same elements of the same places, so that each element is read before it
/// is written.
pub(crate) fn is_same_elements(a: &View, b: &View) -> bool {
    a.shares_storage(b) && a.element_size() == b.element_size() && a.layout() == b.layout()
}

/// The same, but for strides of dims of size 1, which are never walked.
fn is_walked_alike(a: &View, b: &View) -> bool {
    let dims = a.shape().iter().zip(a.stride()).zip(b.stride());
    a.shares_storage(b)
        && a.element_size() == b.element_size()
        && a.storage_offset() == b.storage_offset()
        && a.shape() == b.shape()
        && dims.into_iter().all(|((&size, s), t)| size == 1 || s == t)
}

#[inline]
fn check_pair(dst: &View, src: &View, op: &'static str) -> Result<()> {
    if are_apart(dst, src) || is_same_elements(dst, src) {
        return Ok(());
    }
    let (a, b) = placed(dst, src);
    let right = match partial_overlap(a, b) {
        PartialOverlap::No | PartialOverlap::Full => true,
        PartialOverlap::Partial => false,
        // What PyTorch lets pass is right where each element meets itself, or none.
        PartialOverlap::TooHard => is_walked_alike(dst, src) || !overlaps(a, b).unwrap_or(true),
    };
    if right {
        Ok(())
    } else {
        Err(overlap(dst, src, "").op(op))
    }
}

/// The quick test: different storages that are allocated here never share a byte (nor need their
/// addresses be looked at, which another thread may be changing); foreign ones may.
#[inline]
fn are_apart(a: &View, b: &View) -> bool {
    let is_own = |v: &View| matches!(v.storage().origin(), Origin::Allocated { .. });
    let end = |v: &View| v.storage().data_ptr().wrapping_add(v.storage().nbytes());
    !a.shares_storage(b)
        && (is_own(a) && is_own(b)
            || end(a) <= b.storage().data_ptr()
            || end(b) <= a.storage().data_ptr())
}

/// Checks that `dst` and `src` share no byte at all, for an operation that reads elsewhere than it
/// writes.
///
/// # Errors
/// [`Kind::Overlap`].
pub(crate) fn check_apart(dst: &View, src: &View, op: &'static str) -> Result<()> {
    let (a, b) = placed(dst, src);
    // One tensor as both is refused also when it is empty, as in PyTorch.
    let same = dst.viewer().is_same(src.viewer());
    if same || (!are_apart(dst, src) && overlaps(a, b).unwrap_or(true)) {
        return Err(overlap(dst, src, ", which this operation reads in another order").op(op));
    }
    Ok(())
}

/// Both at their addresses, so that foreign storages over the same bytes are seen.
pub(crate) fn placed<'a>(a: &'a View, b: &'a View) -> (Placed<'a>, Placed<'a>) {
    let place = |v: &'a View| Placed::new(v.layout(), v.element_size());
    if a.shares_storage(b) {
        return (place(a), place(b));
    }
    (
        place(a).at(a.storage().data_ptr().addr()),
        place(b).at(b.storage().data_ptr().addr()),
    )
}

#[cold]
fn overlap(dst: &View, src: &View, why: &str) -> Error {
    let (a, b) = placed(dst, src);
    let base = if dst.shares_storage(src) {
        0
    } else {
        dst.storage().data_ptr().addr()
    };
    let bytes = shared_bytes(a, b).map_or_else(String::new, |r| {
        format!(
            " (bytes {}..{} of storage {})",
            r.start - base,
            r.end - base,
            dst.storage().id()
        )
    });
    Error::new(
        Kind::Overlap,
        format!(
            "some elements of the input {} and the written-to tensor {} refer to a single memory location{bytes}{why}; copy() the input first",
            src.layout(),
            dst.layout()
        ),
    )
}

impl View {
    /// Whether the two share a byte: exact, and also across foreign storages over the same memory.
    ///
    /// # Errors
    /// [`Kind::Overlap`] where strides are so unrelated that the search ends undecided.
    pub fn overlaps(&self, other: &View) -> Result<bool> {
        if are_apart(self, other) {
            return Ok(false);
        }
        let (a, b) = placed(self, other);
        overlaps(a, b)
    }
}
