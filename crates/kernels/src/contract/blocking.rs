//! In what portions a product is done: panels that are packed at a time, tiles that a thread takes at a time.

use super::ALIGN;
use super::list::{DEEPEST, LONGEST};
use super::typed::Typed;
use crate::par::num_threads;

/// Packed steps of a sum that are done at a time: with more, slivers leave the first-level cache too soon; with fewer, sums
/// are loaded and stored too often. Tall tiles multiply what they load so often that slivers may come from the second level:
/// twice as many (`float32` at 512: 209 instead of 202 GFLOP/s, but with 6 rows 185 instead of 197).
const DEPTH: usize = 256;
const TALL: usize = 12;
/// Bytes of a packed panel, twice as many for a team: what is worked on at a time stays in the last-level cache.
const PANEL: usize = 1 << 20;
/// Bytes of a block of sums that wait for the next panels, where the destination cannot hold them.
const SUMS: usize = 1 << 20;
/// Bytes of the left panel that a thread works on at a time: they stay in the second-level cache.
const TASK: usize = 192 << 10;
/// Slivers of the right panel that a thread works on at a time.
const SLIVERS: usize = 4;
/// Multiplications that are worth a thread, or, in a team, a task.
const GRAIN: usize = 1 << 18;
/// Tasks for each thread of a team: with fewer, one that shares its core holds up the others.
const TASKS: usize = 12;

/// Blocks of a product, each of which is a round: its panels are packed, then its tiles multiplied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocking {
    /// Threads.
    pub(super) workers: usize,
    /// Whether they share the panels of one matrix after the other, or each does matrices of its own.
    pub(super) team: bool,
    /// Whether results go past the caches.
    pub(super) stream: bool,
    /// Whether sums wait in scratch for the next round.
    pub(super) wait: bool,
    /// Rows, columns and depth of a block, and how many there are of each.
    pub(super) block: [usize; 3],
    pub(super) blocks: [usize; 3],
    /// Rows and columns of a task, and how many of each a block has.
    pub(super) task: [usize; 2],
    pub(super) tasks: [usize; 2],
    /// How many tasks pack each panel: none of an operand that is read where it lies.
    pub(super) packs: [usize; 2],
    /// Bytes of both panels and of the sums that wait.
    pub(super) parts: [usize; 3],
}

impl Blocking {
    /// `direct`: which operands are read where they lie.
    pub(super) fn new(
        typed: &Typed,
        batch: usize,
        sizes: [usize; 3],
        direct: [bool; 2],
        stream: bool,
    ) -> Blocking {
        let micro = &typed.micro;
        let [rows, cols, depth] = sizes.map(|n| n.max(1));
        let one = rows.saturating_mul(cols).saturating_mul(depth);
        let work = one.saturating_mul(batch);
        let workers = num_threads().min(work.div_ceil(GRAIN)).max(1);
        // Matrices of a batch are the better portions, but for a few large ones.
        let team = workers > 1 && batch < 4 * workers && one / workers >= GRAIN;
        let workers = if team {
            workers
        } else {
            workers.min(batch.max(1))
        };

        let mut deepest = DEPTH * micro.fold;
        if micro.rows >= TALL {
            deepest *= 2;
        }
        if !typed.in_place {
            // Sums that wait need smaller blocks, for each of which more is packed again and threads wait for each other:
            // twice as many steps (`bfloat16` at 2048: 400 instead of 370 GFLOP/s).
            deepest *= 2;
        }
        let deepest = deepest.min(DEEPEST);
        let deep = depth.div_ceil(deepest);
        let kept = even(depth, deepest, micro.fold);
        let wait = deep > 1 && !typed.in_place;
        // Both panels hold as many lanes of a depth as bytes allow; sums that wait are a square.
        let lane = kept.div_ceil(micro.fold) * micro.step;
        let lanes = if team { 2 * PANEL } else { PANEL } / lane;
        let most = if wait {
            lanes.min((SUMS / typed.sum_size).isqrt())
        } else {
            lanes
        };
        let block = [
            even(rows, most, micro.rows),
            even(cols, most, micro.cols),
            kept,
        ];
        let sliver = [micro.rows, micro.cols];
        let tall = (TASK / lane).min(LONGEST - micro.rows);
        let mut task = [
            even(block[0], tall, sliver[0]),
            even(block[1], SLIVERS * micro.cols, micro.cols),
        ];
        let count = |task: [usize; 2]| [0, 1].map(|k| block[k].div_ceil(task[k]));
        while team && count(task)[0] * count(task)[1] < TASKS * workers {
            // The wider side is halved.
            let k = usize::from(task[1] / sliver[1] * 2 > task[0] / sliver[0]);
            if task[k] <= sliver[k] || task[0] * task[1] * kept < 2 * GRAIN {
                break;
            }
            task[k] = (task[k] / 2).next_multiple_of(sliver[k]);
        }
        let tasks = count(task);
        let packed = |side: usize| match direct[side] {
            true => 0,
            false => (block[side] * lane).next_multiple_of(ALIGN),
        };
        let sums = if wait {
            block[0] * block[1] * typed.sum_size
        } else {
            0
        };
        Blocking {
            workers,
            team,
            stream: stream && deep == 1 && typed.in_place,
            wait,
            block,
            blocks: [0, 1, 2].map(|k| [rows, cols, depth][k].div_ceil(block[k])),
            task,
            tasks,
            packs: [0, 1].map(|side| if direct[side] { 0 } else { tasks[side] }),
            parts: [packed(0), packed(1), sums],
        }
    }

    /// Bytes of scratch of a team, or of a worker that is alone.
    pub(super) fn share(&self) -> usize {
        self.parts.iter().sum()
    }

    pub(super) fn scratch(&self) -> usize {
        self.share() * if self.team { 1 } else { self.workers }
    }
}

/// The smallest portion, a multiple of `unit`, of which no more are needed than of `most`, rounded up to a multiple.
fn even(size: usize, most: usize, unit: usize) -> usize {
    let most = most.next_multiple_of(unit).max(unit);
    size.div_ceil(size.div_ceil(most)).next_multiple_of(unit)
}
