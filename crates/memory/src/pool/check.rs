//! The invariants of a pool, checked in full.

use super::Pool;
use super::fit::priority;
use super::list::{Links, List, NIL};
use super::space::{Chunk, PAGE, Space, State};
use crate::block::PoolKind;
use crate::raw::RawMemory;

/// Fails with a message unless a condition holds.
macro_rules! ensure {
    ($cond:expr, $($message:tt)+) => {
        if !$cond {
            return Err(format!($($message)+));
        }
    };
}

/// What the statistics of one half should be, counted from the books.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    segment: usize,
    reserved_bytes: usize,
    allocation: usize,
    allocated_bytes: usize,
    requested_bytes: usize,
    inactive_split: usize,
    inactive_split_bytes: usize,
}

/// Checks everything that must always hold of a pool: segments are disjoint and tiled by chunks,
/// every free list and tree holds exactly what it should, runs agree with their chunks, and the
/// statistics equal a recount.
///
/// For tests and fuzzing: it walks everything and allocates.
///
/// # Errors
///
/// The first thing found wrong.
pub fn pool_is_valid<R: RawMemory>(pool: &Pool<R>) -> Result<(), String> {
    let mut end = 0;
    for segment in pool.segments() {
        ensure!(
            segment.address >= end,
            "{segment:?} overlaps the one before"
        );
        end = segment.address + segment.size;
        let mut at = segment.address;
        for piece in segment.blocks() {
            ensure!(
                piece.address == at,
                "{piece:?} is not at {at:#x} in {segment:?}"
            );
            ensure!(piece.size > 0, "{piece:?} is empty");
            at += piece.size;
        }
        ensure!(at == end, "the pieces of {segment:?} end at {at:#x}");
    }
    for kind in PoolKind::BOTH {
        let mut count = Count::default();
        check_space(pool, &pool.spaces[kind as usize], &mut count)?;
        if kind == PoolKind::Small {
            check_runs(pool, &mut count)?;
        }
        let t = &pool.tally;
        let stated = Count {
            segment: t.segment.of(kind),
            reserved_bytes: t.reserved_bytes.of(kind),
            allocation: t.allocation.of(kind),
            allocated_bytes: t.allocated_bytes.of(kind),
            requested_bytes: t.requested_bytes.of(kind),
            inactive_split: t.inactive_split.of(kind),
            inactive_split_bytes: t.inactive_split_bytes.of(kind),
        };
        ensure!(
            count == stated,
            "{kind:?}: counted {count:?}, stated {stated:?}"
        );
    }
    Ok(())
}

fn check_space<R: RawMemory>(
    pool: &Pool<R>,
    space: &Space,
    count: &mut Count,
) -> Result<(), String> {
    let (mut free, mut idle, mut used) = (Vec::new(), Vec::new(), 0);
    let mut end = 0;
    for &edge in &space.segments {
        let Chunk {
            addr: start,
            size,
            state,
            ..
        } = *space.chunk(edge);
        ensure!(state == State::Edge, "segment {edge} has no edge");
        ensure!(
            size > 0 && start > end,
            "segment {start:#x} is empty or touches the last"
        );
        let granule = pool.granule;
        ensure!(
            start % granule == 0 && size % granule == 0,
            "segment {start:#x} off granule"
        );
        end = start + size;
        count.segment += 1;
        count.reserved_bytes += size;
        used += 1;
        let (mut at, mut before, mut after_free) = (start, edge, false);
        let mut i = space.chunk(edge).next;
        while i != edge {
            let c = space.chunk(i);
            ensure!(
                c.addr == at && c.size > 0 && c.size.is_multiple_of(PAGE),
                "chunk {i} at {at:#x}: {c:?}"
            );
            ensure!(
                c.prev == before,
                "chunk {i} links back to {} not {before}",
                c.prev
            );
            let is_free = matches!(c.state, State::Free { .. });
            ensure!(
                !(is_free && after_free),
                "free chunk {i} follows a free one"
            );
            match c.state {
                State::Free { .. } => {
                    free.push(i);
                    let whole = space.granules(i).size;
                    if whole > 0 {
                        idle.push(i);
                    }
                    count.inactive_split += usize::from(c.size > whole);
                    count.inactive_split_bytes += c.size - whole;
                }
                State::Live { requested, .. } => {
                    ensure!(
                        requested <= c.size,
                        "chunk {i}: {requested} asked of {}",
                        c.size
                    );
                    count.allocation += 1;
                    count.allocated_bytes += c.size;
                    count.requested_bytes += requested;
                }
                State::Run(run) => {
                    let of_run = pool.small.runs.get(run as usize).map(|r| (r.chunk, r.addr));
                    ensure!(
                        of_run == Some((i, at)),
                        "chunk {i} is not that of run {run}"
                    );
                }
                State::Edge | State::Spare => return Err(format!("chunk {i} is {:?}", c.state)),
            }
            used += 1;
            (at, before, after_free, i) = (at + c.size, i, is_free, c.next);
        }
        ensure!(
            at == end,
            "chunks end at {at:#x} in a segment up to {end:#x}"
        );
        ensure!(
            space.chunk(edge).prev == before,
            "segment {start:#x} does not close"
        );
    }
    let spare = space
        .chunks
        .iter()
        .filter(|c| c.state == State::Spare)
        .count();
    ensure!(
        used + spare == space.chunks.len(),
        "{used} used + {spare} spare nodes of {}",
        space.chunks.len()
    );
    ensure!(
        space.spare_nodes().count() == spare,
        "the list of spare nodes is wrong"
    );

    let mut sorted = free.clone();
    sorted.sort_by_key(|&i| (space.chunk(i).size, space.chunk(i).addr));
    let tree = in_order(space)?;
    ensure!(
        tree == sorted,
        "the tree holds {tree:?}, free are {sorted:?}"
    );

    let mut listed = elements(&space.idle, &space.chunks, |c| c.idle)?;
    let since = |&i: &u32| match space.chunk(i).state {
        State::Free { since } => since,
        _ => u64::MAX,
    };
    ensure!(
        listed.is_sorted_by_key(since),
        "idle chunks are not in order of age"
    );
    listed.sort_unstable();
    idle.sort_unstable();
    ensure!(
        listed == idle,
        "the idle list holds {listed:?}, idle are {idle:?}"
    );
    Ok(())
}

/// The nodes of the tree in order, by an explicit stack; checks heap order.
fn in_order(space: &Space) -> Result<Vec<u32>, String> {
    let (mut nodes, mut stack, mut at) = (Vec::new(), Vec::new(), space.fit.root);
    loop {
        while at != NIL {
            ensure!(stack.len() <= space.chunks.len(), "the tree has a cycle");
            for child in space.chunk(at).child.into_iter().filter(|&c| c != NIL) {
                ensure!(
                    priority(child) <= priority(at),
                    "node {child} outranks {at}"
                );
            }
            stack.push(at);
            at = space.chunk(at).child[0];
        }
        let Some(i) = stack.pop() else {
            return Ok(nodes);
        };
        nodes.push(i);
        at = space.chunk(i).child[1];
    }
}

/// The elements of a list from first to last; checks the links both ways.
fn elements<T>(list: &List, nodes: &[T], links: impl Fn(&T) -> Links) -> Result<Vec<u32>, String> {
    let (mut found, mut before, mut at) = (Vec::new(), NIL, list.first);
    while at != NIL {
        ensure!(found.len() < nodes.len(), "a list has a cycle");
        let links = links(&nodes[at as usize]);
        ensure!(
            links.before == before,
            "element {at} links back to {}",
            links.before
        );
        found.push(at);
        (before, at) = (at, links.after);
    }
    ensure!(
        list.last == before,
        "a list ends at {before} but says {}",
        list.last
    );
    Ok(found)
}

fn check_runs<R: RawMemory>(pool: &Pool<R>, count: &mut Count) -> Result<(), String> {
    let small = &pool.small;
    let (mut partial, mut spare) = (Vec::new(), Vec::new());
    for class in &small.classes {
        partial.extend(elements(&class.partial, &small.runs, |r| r.links)?);
        spare.extend((class.spare != NIL).then_some(class.spare));
    }
    let space = &pool.spaces[PoolKind::Small as usize];
    for (i, run) in small
        .runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.slots() > 0)
    {
        let i = i as u32;
        let chunk = space.chunk(run.chunk);
        ensure!(chunk.state == State::Run(i), "run {i} has no chunk");
        ensure!(
            run.slots() * run.slot_size() <= chunk.size,
            "run {i} leaves its chunk"
        );
        let live: Vec<_> = (0..run.slots())
            .filter_map(|slot| run.live_slot(slot))
            .collect();
        ensure!(
            live.len() == run.live as usize,
            "run {i}: {} live of {}",
            live.len(),
            run.live
        );
        let mut listed = vec![false; run.slots()];
        for slot in run.free_slots() {
            ensure!(
                run.live_slot(slot as usize).is_none(),
                "live slot {slot} of run {i} listed"
            );
            ensure!(
                !std::mem::replace(&mut listed[slot as usize], true),
                "slot {slot} listed twice"
            );
        }
        let free = listed.iter().filter(|&&l| l).count();
        ensure!(free + live.len() == run.slots(), "run {i} lost a slot");
        ensure!(
            partial.contains(&i) == (free > 0 && !live.is_empty()),
            "run {i}: partial list"
        );
        ensure!(spare.contains(&i) == live.is_empty(), "run {i}: spare");
        count.allocation += live.len();
        count.allocated_bytes += live.len() * run.slot_size();
        count.requested_bytes += live.iter().map(|&(_, requested)| requested).sum::<usize>();
        count.inactive_split += usize::from(free > 0);
        count.inactive_split_bytes += chunk.size - live.len() * run.slot_size();
    }
    Ok(())
}
