//! The project's own commands, as a library so that tests can run them.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bench;
pub mod ci;
pub mod codegen;
pub mod conformance;
pub mod tidy;
