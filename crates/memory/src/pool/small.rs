//! Small blocks: size classes, and runs of equal slots.
//!
//! Invariants, checked by [`pool_is_valid`](crate::pool_is_valid):
//!
//! 1. A run is one chunk of the small space, cut into slots of one class.
//! 2. A slot is live, or in its run's list of free slots. The list lies in the tags of the free
//!    slots, never in the blocks: the pool does not touch the memory it hands out.
//! 3. A run with both live and free slots is in its class's `partial` list, a full one in no
//!    list, an empty one is its class's `spare`.
//! 4. `inactive_split_bytes` counts the bytes of runs that are not live blocks, and
//!    `inactive_split` the runs with a free slot.

use std::collections::TryReserveError;

use super::list::{Linked, Links, List, NIL};
use super::space::PAGE;

/// The largest size that is a small block. Larger ones are cut to 4 KiB, which wastes less of
/// them than a size class would.
pub const SMALL_MAX: usize = 32 << 10;

/// Sixteen classes in steps of 64 bytes up to 1 KiB, then eight for each doubling: no block is
/// more than 12.5 % (or 63 bytes) larger than asked for.
const CLASSES: usize = 16 + 8 * 5;

/// What `requested` holds for a slot that is free.
const FREE: u16 = u16::MAX;

/// The class of a size of at most [`SMALL_MAX`] bytes.
#[inline]
fn class_of(bytes: usize) -> usize {
    debug_assert!(bytes <= SMALL_MAX);
    let last = bytes.saturating_sub(1);
    if last < 1024 {
        last / 64
    } else {
        let log = last.ilog2() as usize;
        16 + (log - 10) * 8 + ((last >> (log - 3)) & 7)
    }
}

/// The bytes of the blocks of a class.
const fn class_size(class: usize) -> usize {
    if class < 16 {
        (class + 1) * 64
    } else {
        let (octave, step) = ((class - 16) / 8, (class - 16) % 8);
        (9 + step) << (octave + 7)
    }
}

/// How the runs of a class are cut.
#[derive(Clone, Copy, Debug)]
struct Shape {
    slot: usize,
    slots: usize,
    run: usize,
}

/// The smallest runs of at least four slots and 16 KiB that leave at most 1/32 over at the end.
/// Small, because every class in use has one partial run; not smaller, because a run is some
/// hundred bytes of books.
const SHAPES: [Shape; CLASSES] = {
    let mut shapes = [Shape {
        slot: 0,
        slots: 0,
        run: 0,
    }; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let slot = class_size(class);
        let mut run = 4 * PAGE;
        while run / slot < 4 || (run % slot) * 32 > run {
            run += PAGE;
        }
        shapes[class] = Shape {
            slot,
            slots: run / slot,
            run,
        };
        class += 1;
    }
    shapes
};

/// A chunk cut into equal slots.
pub(super) struct Run {
    pub(super) addr: usize,
    /// The chunk of the small space that it is.
    pub(super) chunk: u32,
    class: u8,
    pub(super) live: u32,
    /// The first free slot, or `NIL`.
    head: u32,
    /// Of a live slot its tag, of a free one the next free slot.
    tags: Vec<u64>,
    requested: Vec<u16>,
    pub(super) links: Links,
}

impl Linked for Run {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Run {
    /// The bytes of one slot.
    pub(super) fn slot_size(&self) -> usize {
        SHAPES[self.class as usize].slot
    }

    pub(super) fn slots(&self) -> usize {
        self.tags.len()
    }

    /// The tag and the requested bytes of a live slot.
    pub(super) fn live_slot(&self, slot: usize) -> Option<(u64, usize)> {
        let requested = *self.requested.get(slot)?;
        (requested != FREE).then(|| (self.tags[slot], usize::from(requested)))
    }

    /// The free slots in the order in which they will be used.
    pub(super) fn free_slots(&self) -> impl Iterator<Item = u32> {
        let next = |&slot: &u32| self.tags.get(slot as usize).map(|&tag| tag as u32);
        std::iter::successors(Some(self.head), next).take_while(|&slot| slot != NIL)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    pub(super) partial: List,
    pub(super) spare: u32,
}

/// A slot that was taken.
pub(super) struct Taken {
    pub(super) addr: usize,
    pub(super) size: usize,
    pub(super) run: u32,
    pub(super) slot: u32,
    /// It was the run's last free slot.
    pub(super) filled: bool,
}

/// A slot that was given back.
pub(super) struct Given {
    pub(super) size: usize,
    pub(super) requested: usize,
    /// The run had no free slot before.
    pub(super) was_full: bool,
    /// The run is empty now.
    pub(super) empty: bool,
}

pub(super) struct Small {
    pub(super) runs: Vec<Run>,
    /// Entries of `runs` that are not in use, linked through `links.after`.
    vacant: u32,
    pub(super) classes: [Class; CLASSES],
}

impl Small {
    pub(super) const EMPTY: Small = Small {
        runs: Vec::new(),
        vacant: NIL,
        classes: [Class {
            partial: List::EMPTY,
            spare: NIL,
        }; CLASSES],
    };

    /// The bytes of the chunk that a run for blocks of this size needs.
    pub(super) fn run_bytes(bytes: usize) -> usize {
        SHAPES[class_of(bytes)].run
    }

    /// Takes a slot for `bytes` bytes; `None` if no run of its class has a free one.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize, tag: u64) -> Option<Taken> {
        let class = class_of(bytes);
        let i = match self.classes[class].partial.first {
            NIL => self.revive(class)?,
            i => i,
        };
        let run = &mut self.runs[i as usize];
        let slot = run.head;
        let next = std::mem::replace(&mut run.tags[slot as usize], tag) as u32;
        run.requested[slot as usize] = bytes as u16;
        run.head = next;
        run.live += 1;
        let size = SHAPES[class].slot;
        let addr = run.addr + slot as usize * size;
        let filled = next == NIL;
        if filled {
            self.classes[class].partial.remove(&mut self.runs, i);
        }
        Some(Taken {
            addr,
            size,
            run: i,
            slot,
            filled,
        })
    }

    /// Puts the spare run of a class to use.
    fn revive(&mut self, class: usize) -> Option<u32> {
        let Class { partial, spare } = &mut self.classes[class];
        let i = std::mem::replace(spare, NIL);
        if i == NIL {
            return None;
        }
        partial.push_first(&mut self.runs, i);
        Some(i)
    }

    /// Gives a slot back. An empty run is in no list afterwards; see [`retire`](Self::retire).
    #[inline]
    pub(super) fn give(&mut self, i: u32, slot: u32, addr: usize) -> Given {
        let run = &mut self.runs[i as usize];
        let class = run.class as usize;
        let size = SHAPES[class].slot;
        let requested = std::mem::replace(&mut run.requested[slot as usize], FREE);
        assert!(
            requested != FREE && run.addr + slot as usize * size == addr,
            "a block given back to a pool that did not make it"
        );
        let was_full = run.head == NIL;
        run.tags[slot as usize] = u64::from(run.head);
        run.head = slot;
        run.live -= 1;
        let empty = run.live == 0;
        match (was_full, empty) {
            (true, false) => self.classes[class].partial.push_first(&mut self.runs, i),
            (false, true) => self.classes[class].partial.remove(&mut self.runs, i),
            _ => {}
        }
        Given {
            size,
            requested: usize::from(requested),
            was_full,
            empty,
        }
    }

    /// Keeps an empty run as its class's spare, or, where there is one or `keep` is false, drops
    /// its books and returns the chunk to free.
    ///
    /// One spare a class keeps a program that makes and drops a single small tensor from making
    /// and dropping a run each time.
    pub(super) fn retire(&mut self, i: u32, keep: bool) -> Option<u32> {
        let spare = &mut self.classes[self.runs[i as usize].class as usize].spare;
        if keep && *spare == NIL {
            *spare = i;
            return None;
        }
        Some(self.drop_run(i))
    }

    /// Drops the books of one spare run and returns the chunk to free; `None` if there is none.
    pub(super) fn drop_spare(&mut self) -> Option<u32> {
        let class = self.classes.iter_mut().find(|c| c.spare != NIL)?;
        let i = std::mem::replace(&mut class.spare, NIL);
        Some(self.drop_run(i))
    }

    fn drop_run(&mut self, i: u32) -> u32 {
        let vacant = self.vacant;
        let run = &mut self.runs[i as usize];
        (run.tags, run.requested) = (Vec::new(), Vec::new());
        run.links.after = vacant;
        self.vacant = i;
        run.chunk
    }

    /// The books of a new run for blocks of this size, not in use before
    /// [`add_run`](Self::add_run).
    pub(super) fn new_run(&mut self, bytes: usize) -> Result<Run, TryReserveError> {
        let class = class_of(bytes);
        let Shape { slots, .. } = SHAPES[class];
        let (mut tags, mut requested) = (Vec::new(), Vec::new());
        tags.try_reserve_exact(slots)?;
        requested.try_reserve_exact(slots)?;
        self.runs.try_reserve(1)?;
        tags.extend((1..slots as u64).chain([u64::from(NIL)]));
        requested.resize(slots, FREE);
        let (addr, chunk, live, head, links) = (0, NIL, 0, 0, Links::NONE);
        Ok(Run {
            addr,
            chunk,
            class: class as u8,
            live,
            head,
            tags,
            requested,
            links,
        })
    }

    /// Puts a run to use, cut from a chunk. Returns its number.
    pub(super) fn add_run(&mut self, mut run: Run, addr: usize, chunk: u32) -> u32 {
        (run.addr, run.chunk) = (addr, chunk);
        let class = run.class as usize;
        let i = self.vacant;
        let i = if i == NIL {
            self.runs.push(run);
            (self.runs.len() - 1) as u32
        } else {
            self.vacant = self.runs[i as usize].links.after;
            self.runs[i as usize] = run;
            i
        };
        self.classes[class].partial.push_first(&mut self.runs, i);
        i
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        let sizes: Vec<usize> = (0..CLASSES).map(class_size).collect();
        assert_eq!(sizes[0], 64);
        assert_eq!(sizes[15..18], [1024, 1152, 1280]);
        assert_eq!(sizes[CLASSES - 2..], [30 << 10, 32 << 10]);
        for bytes in 0..=SMALL_MAX {
            let naive = sizes.iter().position(|&s| s >= bytes).unwrap();
            assert_eq!(class_of(bytes), naive, "{bytes} bytes");
            let size = sizes[naive];
            assert!(size.is_multiple_of(64));
            assert!(size - bytes.max(1) < 64 || size * 8 <= bytes * 9);
        }
    }

    #[test]
    fn runs_waste_little() {
        for Shape { slot, slots, run } in SHAPES {
            assert!(slots >= 4 && slots * slot <= run && run % PAGE == 0);
            assert!((run - slots * slot) * 32 <= run, "{slot}: {run}");
            assert!(run <= 160 << 10, "{slot}: {run}");
        }
        let all: usize = SHAPES.iter().map(|s| s.run).sum();
        assert!(all < 3 << 20, "one run of every class: {all}");
    }
}
