//! Which bytes tensors reach, as runs that a picture can hold: counted, and coarse where there are too many.

use super::{MAX_RUNS, Run, TensorEntry};
use osteon_spec::{Error, Kind, Layout, Placed, Result, byte_runs, coarse_runs, reached_bytes};

/// The most runs of one tensor that are walked.
const WALK_TENSOR: usize = 1 << 14;

/// The most runs of a storage's tensors together that are walked.
const WALK_STORAGE: usize = 1 << 19;

/// A list that will hold `n` items, or the error that it cannot be had.
pub(super) fn list<T>(n: usize) -> Result<Vec<T>> {
    let mut v = Vec::new();
    v.try_reserve_exact(n).map_err(|_| no_memory(n))?;
    Ok(v)
}

fn no_memory(n: usize) -> Error {
    Error::new(
        Kind::OutOfMemory,
        format!("no memory for {n} parts of a memory picture"),
    )
}

/// A tensor's runs, and the bytes that it reaches.
pub(super) fn of_tensor(placed: Placed<'_>) -> Result<(Vec<Run>, u64)> {
    let reached = reached_bytes(&[placed])? as u64;
    let run = |range: std::ops::Range<usize>, is_exact| Run {
        start: range.start as u64,
        end: range.end as u64,
        tensors: 1,
        reached: if is_exact { range.len() as u64 } else { 0 },
    };
    let mut runs = Vec::new();
    for range in byte_runs(placed)? {
        if runs.len() == WALK_TENSOR {
            let coarse = coarse_runs(&[placed], MAX_RUNS)?;
            runs = coarse
                .runs
                .into_iter()
                .map(|range| run(range, false))
                .collect();
            spread(&mut runs, reached);
            return Ok((runs, reached));
        }
        runs.try_reserve(1).map_err(|_| no_memory(runs.len()))?;
        runs.push(run(range, true));
    }
    coarsen(&mut runs, placed.extent().end as u64, MAX_RUNS)?;
    Ok((runs, reached))
}

/// A storage's runs, a new one wherever the number of tensors changes; whether they are exact; and the bytes that
/// are reached.
pub(super) fn of_storage(
    tensors: &[TensorEntry],
    layouts: &[(Layout, usize)],
    nbytes: u64,
) -> Result<(Vec<Run>, bool, u64)> {
    let mut placed = list(layouts.len())?;
    placed.extend(
        layouts
            .iter()
            .map(|(layout, itemsize)| Placed::new(layout, *itemsize)),
    );
    let reached = reached_bytes(&placed)? as u64;

    let mut edges = Edges::default();
    let mut exact = true;
    for &tensor in &placed {
        let left = WALK_STORAGE.saturating_sub(edges.0.len() / 2);
        for range in byte_runs(tensor)?.take(left + 1) {
            edges.add(range.start as u64, range.end as u64, true)?;
        }
        if edges.0.len() / 2 > WALK_STORAGE {
            // Too many to walk: what the tensors' own runs tell.
            edges.0.clear();
            for run in tensors.iter().flat_map(|tensor| &tensor.runs) {
                edges.add(run.start, run.end, run.is_exact())?;
                exact &= run.is_exact();
            }
            break;
        }
    }
    let mut runs = edges.count()?;
    spread(&mut runs, reached);
    exact &= !coarsen(&mut runs, nbytes, MAX_RUNS)?;
    Ok((runs, exact, reached))
}

/// Where tensors begin and end to reach: position, change in the number of tensors, and of those among them
/// that reach every byte.
#[derive(Default)]
struct Edges(Vec<(u64, i64, i64)>);

impl Edges {
    fn add(&mut self, start: u64, end: u64, is_exact: bool) -> Result<()> {
        self.0.try_reserve(2).map_err(|_| no_memory(self.0.len()))?;
        let full = i64::from(is_exact);
        self.0.extend([(start, 1, full), (end, -1, -full)]);
        Ok(())
    }

    /// Runs by a sweep over the edges; `reached` is 0 where no tensor reaches every byte.
    fn count(mut self) -> Result<Vec<Run>> {
        self.0.sort_unstable();
        let mut runs: Vec<Run> = list(self.0.len())?;
        let (mut from, mut on, mut full) = (0, 0, 0);
        for (at, change_on, change_full) in self.0 {
            if on > 0 && from < at {
                let reached = if full > 0 { at - from } else { 0 };
                let next = Run {
                    start: from,
                    end: at,
                    tensors: on as u64,
                    reached,
                };
                match runs.last_mut() {
                    Some(last)
                        if last.end == from
                            && last.tensors == next.tensors
                            && last.is_exact() == next.is_exact() =>
                    {
                        last.end = at;
                        last.reached += reached;
                    }
                    _ => runs.push(next),
                }
            }
            on += change_on;
            full += change_full;
            from = at;
        }
        Ok(runs)
    }
}

/// Gives the runs whose `reached` is not known their share by length of what makes up the sum.
fn spread(runs: &mut [Run], sum: u64) {
    let known: u64 = runs.iter().map(|run| run.reached).sum();
    let unknown: u64 = runs
        .iter()
        .filter(|run| run.reached == 0)
        .map(|run| run.end - run.start)
        .sum();
    let left = u128::from(sum.saturating_sub(known).min(unknown));
    // Rounding the running sum, not each share, makes the shares add up.
    let mut before = 0;
    for run in runs.iter_mut().filter(|run| run.reached == 0) {
        let after = before + run.end - run.start;
        let share = |length: u64| left * u128::from(length) / u128::from(unknown);
        run.reached = (share(after) - share(before)) as u64;
        before = after;
    }
}

/// At most `limit` runs, and whether that took coarse ones. The sum of `reached` stays the same.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Coarse runs lose places, never bytes, and stay within the storage and the limit.
        #[test]
        fn coarse_runs_keep_the_sums(parts in prop::collection::vec((1u64..400, 0u64..40, 1u64..4), 401..2000)) {
            let (mut at, mut runs) = (0, Vec::new());
            for (long, gap, tensors) in parts {
                runs.push(Run { start: at, end: at + long, tensors, reached: long });
                at += long + gap;
            }
            let mut coarse = runs.clone();
            coarsen(&mut coarse, at, MAX_RUNS).unwrap();
            prop_assert!(coarse.len() <= MAX_RUNS);
            prop_assert!(coarse.windows(2).all(|w| w[0].end <= w[1].start) && coarse[coarse.len() - 1].end <= at);
            for group in &coarse {
                let within: Vec<_> = runs.iter().filter(|run| group.start <= run.start && run.end <= group.end).collect();
                prop_assert_eq!(group.reached, within.iter().map(|run| run.reached).sum::<u64>());
                prop_assert_eq!(Some(group.tensors), within.iter().map(|run| run.tensors).max());
            }
        }

        #[test]
        fn shares_add_up(lengths in prop::collection::vec((1u64..1_000_000, any::<bool>()), 1..50), part in 0.0..=1.0f64) {
            let mut at = 0;
            let mut runs: Vec<Run> = lengths.iter().map(|&(long, known)| {
                at += long;
                Run { start: at - long, end: at, tensors: 1, reached: if known { long } else { 0 } }
            }).collect();
            let known: u64 = runs.iter().map(|run| run.reached).sum();
            let sum = known + ((at - known) as f64 * part) as u64;
            spread(&mut runs, sum);
            prop_assert_eq!(runs.iter().map(|run| run.reached).sum::<u64>(), sum);
            prop_assert!(runs.iter().all(|run| run.reached <= run.end - run.start));
        }
    }
}
