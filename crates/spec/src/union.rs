//! Which bytes several layouts reach together.

use crate::reach::{Pattern, Placed, Runs};
use crate::{Error, Kind, Result};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// The runs of bytes that any of these layouts reaches: ascending, apart, exact.
///
/// Layouts that are equal, or lie within dense ones, are looked at once; the others are merged as
/// they are walked.
///
/// # Errors
/// [`Kind::OutOfMemory`] when there is no memory for the list of layouts, or as
/// [`byte_runs`](crate::byte_runs).
///
/// ```
/// use osteon_spec::{Layout, Placed, union_runs};
/// let x = Layout::contiguous(&[10]).unwrap();
/// let (a, b) = (x.narrow(0, 0, 3).unwrap(), x.narrow(0, 2, 4).unwrap());
/// let runs: Vec<_> = union_runs(&[Placed::new(&a, 4), Placed::new(&b, 4)]).unwrap().collect();
/// assert_eq!(runs, [0..24]);
/// ```
pub fn union_runs(layouts: &[Placed<'_>]) -> Result<UnionRuns> {
    UnionRuns::new(distinct(patterns(layouts)?)?)
}

/// The number of bytes that any of these layouts reaches, exact.
///
/// Regular layouts are counted by arithmetic, whatever their size; only where several interleave
/// are their runs walked.
///
/// # Errors
/// As [`union_runs`].
///
/// ```
/// use osteon_spec::{Layout, Placed, reached_bytes};
/// let x = Layout::contiguous(&[1_000_000_000, 4]).unwrap();
/// let column = x.select(1, 0).unwrap();
/// assert_eq!(reached_bytes(&[Placed::new(&column, 4)]).unwrap(), 4_000_000_000);
/// ```
pub fn reached_bytes(layouts: &[Placed<'_>]) -> Result<usize> {
    count(patterns(layouts)?)
}

/// At most so many runs that together hold all bytes that the layouts reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoarseRuns {
    /// The runs, ascending and apart.
    pub runs: Vec<Range<usize>>,
    /// Whether they hold reached bytes only. If not, small gaps between runs were filled.
    pub exact: bool,
}

/// The runs of [`union_runs`], for a picture: where there are more than `most` (at least 1), the
/// smallest gaps are filled. The work is bounded by `most` for each layout.
///
/// # Errors
/// As [`union_runs`].
pub fn coarse_runs(layouts: &[Placed<'_>], most: usize) -> Result<CoarseRuns> {
    let most = most.max(1);
    let mut exact = true;
    let mut coarse = patterns(layouts)?;
    for pattern in &mut coarse {
        // A layout of far more runs than can be shown need not be walked: its innermost gaps,
        // mostly the smallest, are filled beforehand.
        let (filled, lossy) = pattern.clone().coarse(most.saturating_mul(8).max(1024));
        *pattern = filled;
        exact &= !lossy;
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    for run in UnionRuns::new(distinct(coarse)?)? {
        if runs.len() >= most.saturating_mul(2) {
            fill_smallest_gaps(&mut runs, most)?;
            exact = false;
        }
        runs.try_reserve(1).map_err(|_| no_memory(runs.len()))?;
        runs.push(run);
    }
    if runs.len() > most {
        fill_smallest_gaps(&mut runs, most)?;
        exact = false;
    }
    Ok(CoarseRuns { runs, exact })
}

/// Leaves `most` runs, apart by the largest gaps. Doing this while more runs come changes nothing:
/// a gap that is not among the largest so far never will be.
fn fill_smallest_gaps(runs: &mut Vec<Range<usize>>, most: usize) -> Result<()> {
    let mut gaps = list(runs.len())?;
    gaps.extend((1..runs.len()).map(|i| (Reverse(runs[i].start - runs[i - 1].end), i)));
    let kept = most - 1;
    if kept < gaps.len() {
        gaps.select_nth_unstable(kept);
        gaps.truncate(kept);
    }
    gaps.sort_unstable_by_key(|&(_, i)| i);
    let mut first = 0;
    for slot in 0..=gaps.len() {
        let next = gaps.get(slot).map_or(runs.len(), |&(_, i)| i);
        runs[slot] = runs[first].start..runs[next - 1].end;
        first = next;
    }
    runs.truncate(gaps.len() + 1);
    Ok(())
}

fn list<T>(len: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| no_memory(len))?;
    Ok(list)
}

#[cold]
fn no_memory(len: usize) -> Error {
    Error::new(
        Kind::OutOfMemory,
        format!("no memory to list the bytes that {len} views reach"),
    )
}

fn patterns(layouts: &[Placed<'_>]) -> Result<Vec<Pattern>> {
    let mut patterns = list(layouts.len())?;
    patterns.extend(layouts.iter().filter_map(|&placed| Pattern::new(placed)));
    Ok(patterns)
}

/// The patterns by position, each once, dense ones joined and what lies within those left out.
fn distinct(mut patterns: Vec<Pattern>) -> Result<Vec<Pattern>> {
    patterns.sort_unstable();
    patterns.dedup();
    let mut dense: Vec<Range<usize>> = list(patterns.len())?;
    for run in patterns
        .iter()
        .filter(|p| p.steps.is_empty())
        .map(Pattern::extent)
    {
        match dense.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => dense.push(run),
        }
    }
    let within_dense = |pattern: &Pattern| {
        let extent = pattern.extent();
        let i = dense.partition_point(|run| run.start <= extent.start);
        i > 0 && extent.end <= dense[i - 1].end
    };
    patterns.retain(|pattern| !within_dense(pattern));
    patterns
        .try_reserve(dense.len())
        .map_err(|_| no_memory(dense.len()))?;
    patterns.extend(dense.into_iter().map(|run| Pattern {
        start: run.start,
        run: run.len(),
        steps: SmallVec::new(),
    }));
    patterns.sort_unstable();
    Ok(patterns)
}

/// The bytes of a union. Patterns that share no range add up; those that all repeat the same way
/// side by side count as many times as they repeat; what is left is walked.
fn count(patterns: Vec<Pattern>) -> Result<usize> {
    let mut patterns = distinct(patterns)?.into_iter().peekable();
    let mut total = 0;
    while let Some(first) = patterns.next() {
        let mut end = first.extent().end;
        let mut cluster = list(1)?;
        cluster.push(first);
        while let Some(next) = patterns.next_if(|next| next.start < end) {
            end = end.max(next.extent().end);
            cluster
                .try_reserve(1)
                .map_err(|_| no_memory(cluster.len()))?;
            cluster.push(next);
        }
        total += count_cluster(cluster)?;
    }
    Ok(total)
}

fn count_cluster(mut cluster: Vec<Pattern>) -> Result<usize> {
    if let [only] = cluster.as_slice()
        && only.steps.is_empty()
    {
        return Ok(only.run);
    }
    let Some(times) = common_repetition(&cluster) else {
        return Ok(UnionRuns::new(cluster)?.map(|run| run.len()).sum());
    };
    for pattern in &mut cluster {
        pattern.steps.pop();
    }
    Ok(count(cluster)? * times)
}

/// How often the outermost step of every pattern repeats all the others' inner parts as well.
fn common_repetition(cluster: &[Pattern]) -> Option<usize> {
    let outermost = *cluster.first()?.steps.last()?;
    let inner =
        |pattern: &Pattern| pattern.start..pattern.start + pattern.span(pattern.steps.len() - 1);
    let start = cluster.iter().map(|p| p.start).min()?;
    cluster
        .iter()
        .all(|p| p.steps.last() == Some(&outermost) && inner(p).end - start <= outermost.stride)
        .then_some(outermost.count)
}

/// An iterator over runs of bytes of several layouts; see [`union_runs`].
#[derive(Debug)]
pub struct UnionRuns {
    sources: Vec<Runs>,
    /// The next run of each source that has one, the first on top.
    next: BinaryHeap<Reverse<(usize, usize, usize)>>,
}

impl UnionRuns {
    fn new(patterns: Vec<Pattern>) -> Result<UnionRuns> {
        let mut sources = list(patterns.len())?;
        let mut next = BinaryHeap::new();
        next.try_reserve_exact(patterns.len())
            .map_err(|_| no_memory(patterns.len()))?;
        for (i, pattern) in patterns.into_iter().enumerate() {
            let mut runs = pattern.runs()?;
            next.extend(runs.next().map(|run| Reverse((run.start, run.end, i))));
            sources.push(runs);
        }
        Ok(UnionRuns { sources, next })
    }

    /// Takes the first run, and puts its source's next one in its place.
    fn pop(&mut self) -> Option<Range<usize>> {
        let mut top = self.next.peek_mut()?;
        let Reverse((start, end, i)) = *top;
        match self.sources[i].next() {
            Some(run) => *top = Reverse((run.start, run.end, i)),
            None => drop(std::collections::binary_heap::PeekMut::pop(top)),
        }
        Some(start..end)
    }
}

impl Iterator for UnionRuns {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let mut run = self.pop()?;
        while let Some(Reverse((start, ..))) = self.next.peek()
            && *start <= run.end
            && let Some(more) = self.pop()
        {
            run.end = run.end.max(more.end);
        }
        Some(run)
    }
}
