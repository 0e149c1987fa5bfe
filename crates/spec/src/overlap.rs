//! Whether layouts share bytes, with each other or with themselves: exactly, and as PyTorch judges.

use crate::reach::{Pattern, Placed, Runs};
use crate::solve::{Budget, Term, reaches};
use crate::{Error, Kind, Layout, Result};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Range;

/// PyTorch's quick verdict on a layout that is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InternalOverlap {
    /// Every element has a position of its own.
    No,
    /// An expanded dimension: elements share a position.
    Yes,
    /// Not decided. PyTorch lets these pass; [`Layout::overlaps_itself`] decides.
    TooHard,
}

/// PyTorch's quick verdict on an output and an input in one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartialOverlap {
    /// They share no byte.
    No,
    /// The same elements at the same places.
    Full,
    /// They share bytes in another way.
    Partial,
    /// Not decided. PyTorch lets these pass; [`overlaps`] decides.
    TooHard,
}

impl Layout {
    /// PyTorch's quick verdict on whether two elements share a position.
    pub fn has_internal_overlap(&self) -> InternalOverlap {
        if self.is_non_overlapping_and_dense() {
            InternalOverlap::No
        } else if self
            .sizes()
            .iter()
            .zip(self.strides())
            .any(|(&n, &s)| n > 1 && s == 0)
        {
            InternalOverlap::Yes
        } else {
            InternalOverlap::TooHard
        }
    }

    /// Whether two elements share a position, exactly. Nanoseconds unless strides interleave.
    ///
    /// # Errors
    /// [`Kind::Overlap`] when a million tries did not decide it, which takes many dimensions of
    /// unrelated strides.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[6]).unwrap();
    /// assert!(x.unfold(0, 3, 1).unwrap().overlaps_itself().unwrap());
    /// assert!(!x.unfold(0, 3, 3).unwrap().overlaps_itself().unwrap());
    /// ```
    pub fn overlaps_itself(&self) -> Result<bool> {
        match self.has_internal_overlap() {
            InternalOverlap::No => return Ok(false),
            InternalOverlap::Yes => return Ok(true),
            InternalOverlap::TooHard => {}
        }
        let pairs = self
            .strides()
            .iter()
            .copied()
            .zip(self.sizes().iter().copied());
        let mut dims: SmallVec<[(usize, usize); 8]> = pairs.filter(|&(_, size)| size > 1).collect();
        dims.sort_unstable();
        let (mut span, mut nested) = (0, true);
        for &(stride, size) in &dims {
            nested &= stride > span;
            span += stride * (size - 1);
        }
        // More elements than positions share some.
        if nested || self.numel() > span + 1 {
            return Ok(!nested);
        }
        // Two indices share a position iff a step forward in the first dimension in which they
        // differ is undone by steps in the dimensions after it.
        let mut budget = Budget::full();
        for (i, &(stride, size)) in dims.iter().enumerate() {
            let others = dims[..i].iter().map(|&(s, n)| Term {
                value: s as i128,
                most: 2 * (n as i128 - 1),
            });
            let first = Term {
                value: stride as i128,
                most: size as i128 - 2,
            };
            // The others' steps are counted from all the way back, the first one's from 1.
            let back: i128 = dims[..i]
                .iter()
                .map(|&(s, n)| s as i128 * (n as i128 - 1))
                .sum();
            let target = back - stride as i128;
            match reaches(others.chain([first]), target, target, &mut budget) {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => {
                    return Err(Error::new(
                        Kind::Overlap,
                        format!(
                            "whether elements of {self} share memory is too hard to decide; \
                             copy() makes a layout whose elements do not"
                        ),
                    ));
                }
            }
        }
        Ok(false)
    }
}

/// Whether two layouts share a byte, exactly; also of different storages, placed by address.
/// Nanoseconds to microseconds: ranges, then divisors, then a search.
///
/// # Errors
/// [`Kind::Overlap`] when a million tries did not decide it, which takes many dimensions of
/// unrelated strides.
///
/// ```
/// use osteon_spec::{Layout, Placed, overlaps};
/// let x = Layout::contiguous(&[1_000_000, 2]).unwrap();
/// let (even, odd) = (x.select(1, 0).unwrap(), x.select(1, 1).unwrap());
/// assert!(!overlaps(Placed::new(&even, 4), Placed::new(&odd, 4)).unwrap());
/// ```
pub fn overlaps(a: Placed<'_>, b: Placed<'_>) -> Result<bool> {
    let (ra, rb) = (a.extent(), b.extent());
    if ra.is_empty() || rb.is_empty() || ra.start >= rb.end || rb.start >= ra.end {
        return Ok(false);
    }
    if ra.start == rb.start {
        return Ok(true);
    }
    let (Some(pa), Some(pb)) = (Pattern::new(a), Pattern::new(b)) else {
        return Ok(false);
    };
    // A byte of a is one of b iff steps of a, plus the steps of b counted backwards from its last,
    // bridge the distance from the start of a to the last run of b, up to the lengths of the runs.
    let terms = pa.steps.iter().chain(&pb.steps).map(|step| Term {
        value: step.stride as i128,
        most: step.count as i128 - 1,
    });
    let to_last_run = pb.start as i128 - pa.start as i128 + (pb.extent().len() - pb.run) as i128;
    let (low, high) = (
        to_last_run - (pa.run as i128 - 1),
        to_last_run + (pb.run as i128 - 1),
    );
    reaches(terms, low, high, &mut Budget::full()).ok_or_else(|| {
        Error::new(
            Kind::Overlap,
            format!(
                "whether {} and {} share memory is too hard to decide; copy() one of them first",
                a.layout(),
                b.layout()
            ),
        )
    })
}

/// The first run of bytes that two layouts share, for messages; `None` when they share none. Where
/// finding it would take long, what their extents share.
pub fn shared_bytes(a: Placed<'_>, b: Placed<'_>) -> Option<Range<usize>> {
    const STEPS: usize = 10_000;
    let (ra, rb) = (a.extent(), b.extent());
    let both = ra.start.max(rb.start)..ra.end.min(rb.end);
    if both.is_empty() {
        return None;
    }
    let runs = |placed| -> Option<Runs> { Pattern::new(placed)?.runs().ok() };
    let (Some(mut runs_a), Some(mut runs_b)) = (runs(a), runs(b)) else {
        return Some(both);
    };
    let (mut next_a, mut next_b) = (runs_a.next(), runs_b.next());
    for _ in 0..STEPS {
        let (run_a, run_b) = (next_a.as_ref()?, next_b.as_ref()?);
        let shared = run_a.start.max(run_b.start)..run_a.end.min(run_b.end);
        if !shared.is_empty() {
            return Some(shared);
        }
        match run_a.end.cmp(&run_b.end) {
            Ordering::Less => next_a = runs_a.next(),
            _ => next_b = runs_b.next(),
        }
    }
    Some(both)
}

/// PyTorch's quick verdict on whether an output and an input of one storage overlap.
pub fn partial_overlap(a: Placed<'_>, b: Placed<'_>) -> PartialOverlap {
    let (la, lb) = (a.layout(), b.layout());
    if la.numel() == 0 || lb.numel() == 0 {
        return PartialOverlap::No;
    }
    if !la.is_non_overlapping_and_dense() || !lb.is_non_overlapping_and_dense() {
        return PartialOverlap::TooHard;
    }
    let (ra, rb) = (a.extent(), b.extent());
    if ra == rb && la.strides() == lb.strides() {
        PartialOverlap::Full
    } else if ra.start < rb.end && rb.start < ra.end {
        PartialOverlap::Partial
    } else {
        PartialOverlap::No
    }
}
