//! Holding a storage: operations for as long as a kernel, guards for as long as their owners like.

use super::{NEXT_ID, Site, Storage};
use crate::access::{Mode, Refused};
use crate::sync::Ordering;
use osteon_spec::{Error, Kind, Result};

/// A guard, as its storage knows it.
pub(super) struct GuardNote {
    pub(super) serial: u64,
    pub(super) mode: Mode,
    pub(super) site: Site,
}

/// A guard that somebody holds on a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardInfo {
    /// For reading or for writing.
    pub mode: Mode,
    /// The line that took it.
    pub site: Site,
}

impl Storage {
    /// Waits for operations, then keeps operations that conflict away, with an error that names `site`,
    /// until the guard goes.
    ///
    /// # Errors
    /// [`Kind::Borrowed`] where another guard is in the way, [`Kind::ReadOnly`].
    pub fn guard(&self, mode: Mode, site: Site) -> Result<StorageGuard> {
        if mode == Mode::Write {
            self.check_writable()?;
        }
        let serial = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        {
            let mut watch = self.0.watch.lock();
            watch.guards.try_reserve(1).map_err(|_| {
                Error::new(
                    Kind::OutOfMemory,
                    "no memory for the bookkeeping of a guard",
                )
            })?;
            watch.guards.push(GuardNote { serial, mode, site });
        }
        match self.0.access.take_guard(mode) {
            Ok(()) => {
                if mode == Mode::Write {
                    self.record_write("write", site);
                }
                Ok(StorageGuard {
                    storage: self.clone(),
                    mode,
                    serial,
                })
            }
            Err(refused) => {
                self.forget_guard(serial);
                Err(self.borrowed_error(refused))
            }
        }
    }

    /// Checks that an operation may read or write the bytes now. Waits for those that are at it.
    ///
    /// # Errors
    /// [`Kind::Borrowed`] where a guard is in the way, [`Kind::ReadOnly`].
    pub fn check_access(&self, mode: Mode) -> Result<()> {
        self.begin(mode)?;
        self.end(mode);
        Ok(())
    }

    fn forget_guard(&self, serial: u64) {
        self.0.watch.lock().guards.retain(|g| g.serial != serial);
    }

    #[inline]
    pub(crate) fn begin(&self, mode: Mode) -> Result<()> {
        if mode == Mode::Write {
            self.check_writable()?;
        }
        self.0
            .access
            .begin(mode)
            .map_err(|refused| self.borrowed_error(refused))
    }

    #[inline]
    pub(crate) fn end(&self, mode: Mode) {
        self.0.access.end(mode);
    }

    #[cold]
    fn borrowed_error(&self, refused: Refused) -> Error {
        let mode = match refused {
            Refused::ReadGuard => Mode::Read,
            Refused::WriteGuard => Mode::Write,
        };
        let watch = self.0.watch.lock();
        let site = watch.guards.iter().find(|g| g.mode == mode).map(|g| g.site);
        drop(watch);
        let verb = if mode == Mode::Read {
            "read"
        } else {
            "written"
        };
        let place = site.map_or_else(String::new, |s| format!(" taken at {s}"));
        Error::new(
            Kind::Borrowed,
            format!(
                "storage {} is being {verb} through a guard{place}; drop the guard first",
                self.id()
            ),
        )
    }
}

/// A user's hold on a storage's bytes, for as long as they like; see [`Storage::guard`].
#[derive(Debug)]
pub struct StorageGuard {
    storage: Storage,
    mode: Mode,
    serial: u64,
}

impl StorageGuard {
    /// The storage that is held.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }
}

impl Drop for StorageGuard {
    fn drop(&mut self) {
        self.storage.0.access.drop_guard(self.mode);
        self.storage.forget_guard(self.serial);
    }
}
