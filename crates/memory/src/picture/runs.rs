//! Arithmetic on byte ranges: merge, count the tensors on each byte, coarsen for drawing.

use super::{Run, TensorEntry};
use osteon_spec::{Error, Kind, Result};
use std::ops::Range;

/// A list that will hold `n` items, or the error that it cannot be had.
fn list<T>(n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(n)
        .map_err(|_| Error::new(Kind::OutOfMemory, format!("no memory for {n} byte ranges of a memory picture")))?;
    Ok(v)
}

/// The ranges as ascending, disjoint runs; those that touch or overlap become one.
pub(super) fn normalise(mut ranges: Vec<Range<u64>>) -> Result<Vec<Run>> {
    if let Some(bad) = ranges.iter().find(|range| range.start > range.end) {
        return Err(Error::new(Kind::Value, format!("the byte range {bad:?} ends before it starts")));
    }
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, kept| {
        let touches = next.start <= kept.end;
        if touches {
            kept.end = kept.end.max(next.end);
        }
        touches
    });
    let mut runs = list(ranges.len())?;
    runs.extend(ranges.into_iter().map(|Range { start, end }| Run { start, end, tensors: 1, reached: end - start }));
    Ok(runs)
}

/// The storage's runs: a new run wherever the number of tensors changes. The tensors' runs are exact.
pub(super) fn count(tensors: &[TensorEntry]) -> Result<Vec<Run>> {
    // Every start adds a tensor and every end takes one away: sweep over them in the order of bytes.
    let mut edges = list(2 * tensors.iter().map(|tensor| tensor.runs.len()).sum::<usize>())?;
    for run in tensors.iter().flat_map(|tensor| &tensor.runs) {
        edges.extend([(run.start, 1i64), (run.end, -1)]);
    }
    edges.sort_unstable();
    let mut runs: Vec<Run> = list(edges.len())?;
    let (mut on, mut from) = (0, 0);
    for (at, change) in edges {
        if on > 0 && from < at {
            let tensors = on as u64;
            match runs.last_mut() {
                Some(last) if last.end == from && last.tensors == tensors => {
                    last.end = at;
                    last.reached = at - last.start;
                }
                _ => runs.push(Run { start: from, end: at, tensors, reached: at - from }),
            }
        }
        on += change;
        from = at;
    }
    Ok(runs)
}

/// At most `limit` runs, and whether that needed coarse ones. The sum of `reached` stays the same.
///
/// Half of `limit` cells make up the storage. Runs that start in the same cell and are shorter than it become
/// one, gaps included; a longer run stays alone, so that a long stretch never takes on the count of a short
/// neighbour. Nothing can start in a cell after a long run, so that a cell yields two runs at most.
pub(super) fn coarsen(runs: &mut Vec<Run>, nbytes: u64, limit: usize) -> Result<bool> {
    if runs.len() <= limit {
        return Ok(false);
    }
    let cell = nbytes.div_ceil((limit / 2).max(1) as u64).max(1);
    let mut kept: Vec<Run> = list(limit)?;
    for &run in runs.iter() {
        match kept.last_mut() {
            Some(group) if group.start / cell == run.start / cell && run.end - run.start < cell => {
                group.end = run.end;
                group.tensors = group.tensors.max(run.tensors);
                group.reached += run.reached;
            }
            _ => kept.push(run),
        }
    }
    *runs = kept;
    Ok(true)
}
