//! Pickles as data: a symbolic machine that builds a graph of what a pickle says, and never does it.
//!
//! A pickle is a program. Here a `GLOBAL` is a name, a `REDUCE` is a node that remembers what would be
//! called with what, and a persistent id is a node that remembers the id. Nothing is imported, resolved
//! or called, so there is no list of dangerous names to keep complete.

mod emit;
mod machine;
mod opcodes;
mod text;
mod value;

pub(crate) use emit::emit;
pub(crate) use machine::run;
pub(crate) use value::{Edit, Graph, Id, Make, Node, Object};

#[cfg(test)]
mod tests;
#[cfg(test)]
use value::Span;
