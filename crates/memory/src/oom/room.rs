//! A small set of storages whose going would make room for a request.

use crate::block::{AllocError, AllocReason};
use crate::map::{By, Group, MemoryMap, StorageInfo, groups};
use crate::pool::{Pool, SMALL_MAX, Window};
use crate::raw::RawMemory;
use std::collections::TryReserveError;

/// What would make room: storages to let go, and storages whose tensors to replace by their `compact()`.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) free: Vec<u64>,
    pub(super) compact: Vec<u64>,
    /// The same storages by name, line and holder.
    pub(super) free_groups: Vec<Group>,
    pub(super) compact_groups: Vec<Group>,
}

/// Finds one, if there is one: the cheapest of
/// - neighbouring blocks that make one run of the request's size;
/// - where idle memory goes back to the system: neighbouring blocks, or blocks from anywhere, whose granules make up
///   for what is missing; whole segments, if these do not.
///
/// The cost is the live bytes that would be lost. The blocks are chosen greedily, so that fewer might do.
pub(super) fn find<R: RawMemory>(
    pool: &Pool<R>,
    error: &AllocError,
    map: &MemoryMap,
) -> Result<Option<Room>, TryReserveError> {
    let size = Pool::<R>::chunk_size(error.requested);
    let cost = |tag, size| map.storage(tag).map_or(size, cost);
    let mut found = Vec::new();
    found.try_reserve_exact(3)?;
    // A small block wants a run, and runs come from the other half of the pool.
    if error.requested > SMALL_MAX {
        found.extend(one(pool.cheapest_window(size, false, cost))?);
    }
    let granule = pool.granule();
    let mapped = size.checked_next_multiple_of(granule).unwrap_or(usize::MAX);
    let missing = match error.reason {
        // Not even when nothing else is reserved.
        AllocReason::Limit { limit } if mapped > limit => None,
        AllocReason::Limit { limit } => {
            let reserved = pool.stats().reserved_bytes.all.current as usize;
            Some(reserved.saturating_add(mapped).saturating_sub(limit))
        }
        AllocReason::System | AllocReason::TooLarge => Some(mapped),
    };
    if let Some(missing) = missing
        && pool.gives_back()
    {
        let missing = missing.saturating_sub(pool.idle_bytes());
        found.extend(one(pool.cheapest_window(missing, true, cost))?);
        let each = |(tag, start, size)| {
            (
                Window {
                    start,
                    end: start + size,
                    cost: cost(tag, size),
                },
                0,
            )
        };
        found.extend(greedy(pool, missing, pool.large_blocks().map(each))?);
        if found.is_empty() {
            found.extend(greedy(pool, missing, pool.large_windows(cost))?);
        }
    }
    let lost = |windows: &[Window]| windows.iter().map(|w| w.cost).sum::<usize>();
    let best = found.into_iter().min_by_key(|w| (lost(w), w.len()));
    let Some(mut windows) = best.filter(|w| !w.is_empty()) else {
        return Ok(None);
    };
    windows.sort_unstable_by_key(|w| w.start);
    let mut chosen = Vec::new();
    for (tag, start, _) in pool.large_blocks() {
        let before = windows.partition_point(|w| w.start <= start);
        if before > 0 && start < windows[before - 1].end {
            chosen.try_reserve(1)?;
            chosen.push(tag);
        }
    }
    Room::new(chosen, map).map(Some)
}

fn one(window: Option<Window>) -> Result<Option<Vec<Window>>, TryReserveError> {
    let mut list = Vec::new();
    list.try_reserve_exact(1)?;
    list.extend(window);
    Ok(Some(list).filter(|list| !list.is_empty()))
}

/// The bytes that are lost where a storage goes: those of a copy of what its tensors reach, if that is much less
/// than the block.
fn cost(s: &StorageInfo) -> usize {
    if compacts(s) {
        s.allocated - s.compact_frees()
    } else {
        s.allocated
    }
}

fn compacts(s: &StorageInfo) -> bool {
    s.compact_frees() > s.allocated / 2
}

/// Windows whose granules, less those that are free already, are at least `missing` bytes: the cheapest for their
/// size first, the last one replaced by the cheapest that is enough. `windows` gives each with its free granules.
fn greedy<R: RawMemory>(
    pool: &Pool<R>,
    missing: usize,
    windows: impl Iterator<Item = (Window, usize)>,
) -> Result<Option<Vec<Window>>, TryReserveError> {
    let mut all: Vec<(usize, Window)> = Vec::new();
    for (window, free) in windows {
        let whole = pool.whole(window.start, window.end) - free;
        if whole > 0 {
            all.try_reserve(1)?;
            all.push((whole, window));
        }
    }
    let share = |&(whole, w): &(usize, Window)| w.cost as f64 / whole as f64;
    all.sort_unstable_by(|a, b| {
        (share(a).total_cmp(&share(b)))
            .then(b.0.cmp(&a.0))
            .then(a.1.start.cmp(&b.1.start))
    });
    let (mut n, mut sum) = (0, 0);
    while sum < missing {
        let Some((whole, _)) = all.get(n) else {
            return Ok(None);
        };
        sum += whole;
        n += 1;
    }
    if let Some(last) = n.checked_sub(1) {
        let left = missing - (sum - all[last].0);
        let enough = (last..all.len()).filter(|&i| all[i].0 >= left);
        if let Some(i) = enough.min_by_key(|&i| (all[i].1.cost, i)) {
            all.swap(last, i);
        }
    }
    let mut chosen = Vec::new();
    chosen.try_reserve_exact(n)?;
    chosen.extend(all[..n].iter().map(|&(_, w)| w));
    Ok(Some(chosen))
}

impl Room {
    pub(super) fn groups(&mut self) -> impl Iterator<Item = &mut Group> {
        self.free_groups.iter_mut().chain(&mut self.compact_groups)
    }

    fn new(mut chosen: Vec<u64>, map: &MemoryMap) -> Result<Room, TryReserveError> {
        chosen.sort_unstable();
        let (mut free, mut compact) = (Vec::new(), Vec::new());
        for id in chosen {
            let list = match map.storage(id) {
                Some(s) if compacts(s) => &mut compact,
                _ => &mut free,
            };
            list.try_reserve(1)?;
            list.push(id);
        }
        let of = |ids: &[u64]| {
            let known = ids.iter().filter_map(|&id| map.storage(id));
            groups(known.map(|s| (s, 1)), By::Holder)
        };
        Ok(Room {
            free_groups: of(&free)?,
            compact_groups: of(&compact)?,
            free,
            compact,
        })
    }
}
