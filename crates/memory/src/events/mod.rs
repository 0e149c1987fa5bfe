//! What happens to memory, as it happens: the flight recorder, which is always on, and the copy log.
//!
//! # In which order events are
//!
//! No counter is shared by all threads, as two of them would spend more time on it than on the rest. Each event
//! has the time of a Lamport clock: a thread, a storage and a device each remember the latest time they met,
//! and an event is later than all that it touches. So events of one thread, events on one storage, and
//! allocations and frees of one device are in their order; others happened at the same time.

pub(crate) mod copies;
mod entry;
mod recent;
mod recorder;
mod slot;
mod summary;

pub(crate) use entry::{Entry, Kind};
pub use recent::{Event, EventKind, Recent, recent};
pub(crate) use recorder::{note, push, thread_number, tick};
pub(crate) use slot::Slot;
