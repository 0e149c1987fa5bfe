//! Who looks at a storage, for reports.

use super::{GuardInfo, Inner, Site};
use crate::label::Label;
use crate::registry::Seat;
use std::collections::TryReserveError;

/// Who looks at a storage at one instant; see [`Inner::watched`].
pub(crate) struct Watched<T> {
    pub(crate) label: Option<Label>,
    pub(crate) last_write: Option<(&'static str, Site)>,
    /// Oldest first.
    pub(crate) tensors: Vec<T>,
    pub(crate) guards: Vec<GuardInfo>,
    /// Handles to the storage itself.
    pub(crate) handles: usize,
}

impl Inner {
    /// Who looks at the storage at one instant; `see` says what is told of each tensor.
    pub(crate) fn watched<T>(
        &self,
        see: impl Fn(&Seat) -> T,
    ) -> Result<Watched<T>, TryReserveError> {
        let (mut tensors, mut guards) = (Vec::new(), Vec::new());
        let watch = self.watch.lock();
        tensors.try_reserve_exact(watch.viewers.len())?;
        guards.try_reserve_exact(watch.guards.len())?;
        tensors.extend(watch.viewers.iter().filter(|v| v.is_alive()).map(see));
        tensors.reverse();
        guards.extend(watch.guards.iter().map(|g| GuardInfo {
            mode: g.mode,
            site: g.site,
        }));
        // Each guard has a handle of its own, and all tensors together have one.
        let known = usize::from(watch.seated.is_some()) + watch.guards.len();
        Ok(Watched {
            label: watch.label.clone(),
            last_write: watch.last_write,
            handles: self.refs.count().saturating_sub(known),
            tensors,
            guards,
        })
    }
}
