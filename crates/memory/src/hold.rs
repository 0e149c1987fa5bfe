//! How an operation holds its storages: all of them, in the order of their ids, for one kernel.

use crate::access::Mode;
use crate::storage::Storage;
use osteon_spec::{Error, Kind, Result};

/// The most storages that are ordered without the heap.
const INLINE: usize = 4;

/// The storages of one running operation; they are let go when this is dropped.
///
/// Invariant **O1**: nothing that waits for another operation, and no code of a user, runs while a thread
/// has one: `hold` is called once an operation.
#[derive(Debug)]
pub struct Held<'a> {
    /// A few storages in the order of their ids, of which the first `held` are held.
    few: [Option<&'a Storage>; INLINE],
    /// How each of them is. Apart, as what is written in two parts and moved as one is waited for.
    modes: [Mode; INLINE],
    held: usize,
    /// Many storages, all held.
    many: Vec<(&'a Storage, Mode)>,
}

/// Waits for the operations that use these storages and holds them: the `reads` shared, the `writes`
/// exclusive; a storage on both lists is held once, exclusive.
///
/// # Errors
/// [`osteon_spec::Kind::Borrowed`] where a typed guard is in the way, `ReadOnly` for a write to memory that
/// may not be written, out of memory for the list of very many; nothing is
/// held then.
#[inline]
pub fn hold<'a>(reads: &[&'a Storage], writes: &[&'a Storage]) -> Result<Held<'a>> {
    let mut held = Held {
        few: [None; INLINE],
        modes: [Mode::Read; INLINE],
        held: 0,
        many: Vec::new(),
    };
    // A write comes before the reads of the same storage and stands for them.
    let wanted = writes
        .iter()
        .map(|&s| (s, Mode::Write))
        .chain(reads.iter().map(|&s| (s, Mode::Read)));
    if reads.len() + writes.len() <= INLINE {
        let mut n = 0;
        for (storage, mode) in wanted {
            if held.few[..n].contains(&Some(storage)) {
                continue;
            }
            // Insertion by id: two or three storages are the rule.
            let mut at = n;
            while at > 0 && held.few[at - 1].is_some_and(|s| s.id() > storage.id()) {
                held.few[at] = held.few[at - 1];
                held.modes[at] = held.modes[at - 1];
                at -= 1;
            }
            held.few[at] = Some(storage);
            held.modes[at] = mode;
            n += 1;
        }
        for (storage, mode) in held.few[..n].iter().flatten().zip(held.modes) {
            storage.begin(mode)?;
            held.held += 1;
        }
    } else {
        let (mut list, n) = (Vec::new(), reads.len() + writes.len());
        list.try_reserve_exact(n)
            .and_then(|()| held.many.try_reserve_exact(n))
            .map_err(|_| {
                Error::new(
                    Kind::OutOfMemory,
                    format!("no memory to hold {n} tensors at once"),
                )
            })?;
        list.extend(wanted);
        // The write of a storage sorts before its reads, and the first of its kind is kept.
        list.sort_unstable_by_key(|(s, mode)| (s.id(), *mode == Mode::Read));
        list.dedup_by_key(|(s, _)| s.id());
        for (storage, mode) in list {
            storage.begin(mode)?;
            held.many.push((storage, mode));
        }
    }
    Ok(held)
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        let few = self.few[..self.held].iter().flatten();
        for (storage, mode) in few.zip(self.modes) {
            storage.end(mode);
        }
        for (storage, mode) in &self.many {
            storage.end(*mode);
        }
    }
}
