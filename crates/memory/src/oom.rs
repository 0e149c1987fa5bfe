//! What an out-of-memory error knows.

use crate::block::{AllocError, AllocReason, FreeInfo};
use crate::pool::Pool;
use crate::raw::RawMemory;
use crate::storage::Site;
use crate::text::bytes;
use osteon_spec::{Device, Error, OomReport};
use serde_json::json;
use std::fmt;

/// A failed allocation: the request, the limit, what is live, what is cached, and the largest
/// free run with the storages that bound it.
#[derive(Debug)]
pub(crate) struct Report {
    device: Device,
    error: AllocError,
    allocated: u64,
    requested: u64,
    reserved: u64,
    largest_free: Option<FreeInfo>,
    by: Option<(&'static str, Site)>,
}

impl Report {
    pub(crate) fn new<R: RawMemory>(device: Device, error: AllocError, pool: &Pool<R>) -> Report {
        let stats = pool.stats();
        Report {
            device,
            error,
            allocated: stats.allocated_bytes.all.current,
            requested: stats.requested_bytes.all.current,
            reserved: stats.reserved_bytes.all.current,
            largest_free: pool.largest_free(),
            by: None,
        }
    }

    pub(crate) fn into_error(mut self: Box<Report>, op: &'static str, site: Site) -> Error {
        self.by = Some((op, site));
        let message = format!("out of memory: {self}");
        Error::out_of_memory(message, self).op(op)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} on {}",
            bytes(self.error.requested as u64),
            self.device
        )?;
        if let Some((op, site)) = self.by {
            write!(f, " for {op} at {site}")?;
        }
        match self.error.reason {
            AllocReason::Limit { limit } => write!(
                f,
                "; the limit is {}: raise it with memory::set_limit(), or free something",
                bytes(limit as u64)
            )?,
            AllocReason::System => write!(f, "; the system has no more memory to give")?,
            AllocReason::TooLarge => write!(f, "; no address space holds that many")?,
        }
        write!(
            f,
            ". In use {} ({} asked for), reserved {}, of which {} is idle",
            bytes(self.allocated),
            bytes(self.requested),
            bytes(self.reserved),
            bytes(self.reserved.saturating_sub(self.allocated)),
        )?;
        if let Some(free) = self.largest_free {
            write!(f, "; the largest free run is {}", bytes(free.size as u64))?;
            let mut said = " between storages ";
            for id in [free.below, free.above].into_iter().flatten() {
                write!(f, "{said}{id}")?;
                said = " and ";
            }
        }
        Ok(())
    }
}

impl OomReport for Report {
    fn to_json(&self) -> String {
        let limit = match self.error.reason {
            AllocReason::Limit { limit } => Some(limit),
            _ => None,
        };
        json!({
            "schema": 1,
            "device": self.device.to_string(),
            "requested": self.error.requested,
            "op": self.by.map(|(op, _)| op),
            "site": self.by.map(|(_, site)| site.to_string()),
            "limit": limit,
            "allocated_bytes": self.allocated,
            "requested_bytes": self.requested,
            "reserved_bytes": self.reserved,
            "largest_free": self.largest_free.map(|f| json!({
                "bytes": f.size, "below": f.below, "above": f.above,
            })),
        })
        .to_string()
    }
}
