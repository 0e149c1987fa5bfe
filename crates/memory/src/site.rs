//! The line of the user that what happens now is attributed to.

use crate::storage::Site;
use std::cell::Cell;
use std::panic::Location;

thread_local! {
    static AT: Cell<Option<Site>> = const { Cell::new(None) };
}

struct Restore(Option<Site>);

impl Drop for Restore {
    fn drop(&mut self) {
        AT.set(self.0);
    }
}

/// The line that everything here is attributed to: that of [`attribute`], if one is running on this thread, else
/// the caller's. Every operation asks this, not `Location::caller`, so that a closure or the backward pass of
/// an operation does not hide the user's line.
#[track_caller]
#[inline]
pub fn here() -> Site {
    match AT.get() {
        Some(site) => site,
        None => Location::caller(),
    }
}

/// Attributes all that `f` does on this thread to a line. The outermost call wins: what an operation does for itself
/// belongs to the line that called it.
#[inline]
pub fn attribute<R>(site: Site, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(AT.get());
    AT.set(Some(AT.get().unwrap_or(site)));
    f()
}

/// Runs code of a user inside of an operation: its lines are its own again.
#[inline]
pub fn unattributed<R>(f: impl FnOnce() -> R) -> R {
    let _restore = Restore(AT.take());
    f()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn op() -> Site {
        here()
    }

    #[test]
    fn the_outermost_line_wins_and_user_code_has_its_own() {
        let (outer, inner) = (Location::caller(), op());
        assert_eq!(inner.line(), line!() - 1);
        let seen = attribute(outer, || attribute(inner, op));
        assert_eq!(seen, outer);
        let (seen, own) = attribute(outer, || unattributed(|| (op().line(), line!())));
        assert_eq!(seen, own);
        let caught = std::panic::catch_unwind(|| attribute(outer, || panic!("boom")));
        assert!(caught.is_err() && op().line() == line!());
    }
}
