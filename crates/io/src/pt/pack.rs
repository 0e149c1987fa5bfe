//! Where the bytes that tensors reach go when the others are dropped.

use super::rebuild::Tensor;
use osteon_spec::{Dims, Layout, Placed, Result, byte_runs, reached_bytes};
use std::ops::Range;

/// What becomes of one storage.
#[derive(Debug)]
pub(super) struct Packing {
    pub pieces: Pieces,
    pub nbytes: u64,
    /// The tensors' new layouts, in the order in which they were given.
    pub layouts: Vec<Layout>,
    /// Bytes that nothing reaches and that stay.
    pub holes: u64,
}

/// The bytes that are kept, in ascending order.
#[derive(Debug)]
pub(super) enum Pieces {
    /// All of them, as they are.
    Whole,
    /// Those of a lone tensor, without gaps.
    Dense(Layout, usize),
    /// Ranges of the old storage, each with its new first byte.
    Ranges(Vec<(Range<u64>, u64)>),
}

/// Packs a storage of `nbytes` for the tensors on it; its size must stay a multiple of `item_size`.
pub(super) fn pack(nbytes: u64, item_size: u64, tensors: &[&Tensor]) -> Result<Packing> {
    if let [t] = tensors
        && let Some(layout) = dense(&t.layout)?
    {
        let size = t.dtype.size();
        let bytes = (layout.required_len() * size) as u64;
        if bytes.is_multiple_of(item_size) {
            let (pieces, layout) = match bytes == nbytes {
                true => (Pieces::Whole, t.layout.clone()),
                false => (Pieces::Dense(t.layout.clone(), size), layout),
            };
            return Ok(Packing {
                pieces,
                nbytes: bytes,
                layouts: vec![layout],
                holes: 0,
            });
        }
    }
    share(nbytes, item_size, tensors)
}

/// The dims of a layout, in their own order, without gaps between the elements. Dims that are expanded
/// stay so. `None` where elements overlap or interleave, so that no order of dims describes them.
fn dense(layout: &Layout) -> Result<Option<Layout>> {
    let (sizes, strides) = (layout.sizes(), layout.strides());
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    // From the innermost dim outwards; among equal strides the last dim is the innermost.
    order.sort_by_key(|&d| (strides[d], std::cmp::Reverse(d)));
    let mut new = Dims::from_slice(strides);
    let (mut elements, mut span) = (1, 1);
    for d in order {
        if strides[d] == 0 && sizes[d] > 1 {
            continue;
        }
        if sizes[d] > 1 && strides[d] < span {
            return Ok(None);
        }
        new[d] = elements;
        if sizes[d] > 1 {
            elements *= sizes[d];
            span += (sizes[d] - 1) * strides[d];
        }
    }
    if layout.numel() == 0 {
        new = Dims::from_slice(Layout::contiguous(sizes)?.strides());
    }
    Layout::new(Dims::from_slice(sizes), new, 0).map(Some)
}

/// Tensors that share keep their strides: what lies between the first and the last byte of one stays,
/// what lies between tensors goes.
fn share(nbytes: u64, item_size: u64, tensors: &[&Tensor]) -> Result<Packing> {
    let placed: Vec<Placed<'_>> = tensors
        .iter()
        .map(|t| Placed::new(&t.layout, t.dtype.size()))
        .collect();
    let mut extents: Vec<Range<u64>> = placed
        .iter()
        .map(|p| p.extent())
        .filter(|e| !e.is_empty())
        .map(|e| e.start as u64..e.end as u64)
        .collect();
    extents.sort_by_key(|e| e.start);
    let mut kept: Vec<Range<u64>> = Vec::new();
    for e in extents {
        match kept.last_mut() {
            Some(last) if e.start <= last.end => last.end = last.end.max(e.end),
            _ => kept.push(e),
        }
    }
    // A range moves by a multiple of the largest element, so that offsets stay whole.
    let align = tensors
        .iter()
        .map(|t| t.dtype.size() as u64)
        .max()
        .unwrap_or(1);
    let mut ranges = Vec::new();
    let mut next = 0u64;
    for range in kept {
        let start = next + (range.start % align + align - next % align) % align;
        next = start + (range.end - range.start);
        ranges.push((range, start));
    }
    let size = next.next_multiple_of(item_size);
    let moved = |t: &Tensor, extent: Range<usize>| {
        if extent.is_empty() {
            return t.layout.with_offset(0);
        }
        let at = extent.start as u64;
        // Every extent lies in the last range that begins no later.
        let (range, start) = &ranges[ranges.partition_point(|(range, _)| range.start <= at) - 1];
        t.layout
            .with_offset((start + (at - range.start)) as usize / t.dtype.size())
    };
    let layouts = tensors
        .iter()
        .zip(&placed)
        .map(|(t, p)| moved(t, p.extent()));
    let layouts = layouts.collect::<Result<Vec<_>>>()?;
    let holes = size - reached_bytes(&placed)? as u64;
    let pieces = if size == nbytes {
        Pieces::Whole
    } else {
        Pieces::Ranges(ranges)
    };
    Ok(Packing {
        pieces,
        nbytes: size,
        layouts,
        holes,
    })
}

impl Pieces {
    /// Calls `f` with every run of old bytes and where it goes, ascending in both.
    pub fn runs(
        &self,
        nbytes: u64,
        mut f: impl FnMut(Range<u64>, u64) -> Result<()>,
    ) -> Result<()> {
        match self {
            Pieces::Whole => f(0..nbytes, 0),
            Pieces::Ranges(ranges) => ranges
                .iter()
                .try_for_each(|(range, at)| f(range.clone(), *at)),
            Pieces::Dense(layout, size) => {
                let mut at = 0;
                for run in byte_runs(Placed::new(layout, *size))? {
                    let run = run.start as u64..run.end as u64;
                    let len = run.end - run.start;
                    f(run, at)?;
                    at += len;
                }
                Ok(())
            }
        }
    }
}
