//! Who holds what: the paths from what a program has in its hands to a storage, the views that pin more than they
//! reach, and what would be freed if a tensor went.

mod dominators;
mod heap;
mod paths;
mod pins;
mod text;

pub use dominators::{Dominator, Dominators, dominators, retained};
pub use heap::{Graph, Link, set_graph};
pub use paths::{Holder, Holders, Step, holders};
pub use pins::{Pin, PinLine, Pins, pins};

pub(crate) use paths::name_roots;
