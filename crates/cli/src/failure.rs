//! Why a command ends early.

use std::fmt;
use std::io;

/// An error of the library, or of standard output.
#[derive(Debug)]
pub enum Failure {
    Library(osteon::Error),
    Output(io::Error),
}

impl From<osteon::Error> for Failure {
    fn from(e: osteon::Error) -> Failure {
        Failure::Library(e)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Failure {
        Failure::Output(e)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Library(e) => e.fmt(f),
            Failure::Output(e) => write!(f, "cannot write to standard output: {e}"),
        }
    }
}
