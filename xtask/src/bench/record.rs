//! One measured case, as a line of JSON.

use serde::{Deserialize, Serialize};

use super::limits::Limits;

/// A case that was run, in the form that the peers' script prints.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Who ran it.
    pub peer: String,
    /// The group's letter.
    pub group: String,
    /// The operation.
    pub case: String,
    /// Its sizes.
    pub params: String,
    /// The number of threads.
    pub threads: usize,
    /// Nanoseconds a run.
    #[serde(default)]
    pub median_ns: f64,
    /// The fastest tenth is below.
    #[serde(default)]
    pub p10: f64,
    /// The slowest tenth is above.
    #[serde(default)]
    pub p90: f64,
    /// Bytes that must move.
    #[serde(default)]
    pub bytes: f64,
    /// Floating-point operations.
    #[serde(default)]
    pub flops: f64,
    /// The most bytes that were live at once, above what was live before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_live: Option<u64>,
    /// The most bytes that were reserved at once, above what was live before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_reserved: Option<u64>,
    /// The largest resident set, above its size before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rss: Option<u64>,
    /// By what it takes longer while another thread keeps a core busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<f64>,
    /// What the machine can do: no case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// Why it has no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Record {
    /// As one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What joins it with the same case of a peer.
    pub fn key(&self) -> (String, String, String, usize) {
        (
            self.group.clone(),
            self.case.clone(),
            self.params.clone(),
            self.threads,
        )
    }
}
