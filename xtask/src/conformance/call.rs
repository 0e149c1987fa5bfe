//! Why a call gave nothing.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use osteon::Error;

/// Why a call gave no results.
#[derive(Debug)]
pub enum Stop {
    /// The engine has no such operation.
    Missing,
    /// It refused.
    Failed(Error),
    /// It panicked, which it never may.
    Panicked(String),
    /// Rust's types already exclude the call.
    Unwritable(String),
    /// The recorded case makes no sense to this program.
    Unreadable(String),
}

impl Stop {
    /// Runs a call; a panic inside it becomes a reason like others.
    pub fn catch<T>(call: impl FnOnce() -> Result<T, Stop>) -> Result<T, Stop> {
        catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or(payload.downcast_ref::<&str>().copied());
            Err(Stop::Panicked(text.unwrap_or("without words").to_owned()))
        })
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Missing => f.write_str("no such operation"),
            Stop::Failed(e) => write!(f, "error: {e}"),
            Stop::Panicked(what) => write!(f, "panicked: {what}"),
            Stop::Unwritable(why) => write!(f, "cannot be written: {why}"),
            Stop::Unreadable(why) => write!(f, "cannot be read: {why}"),
        }
    }
}
