//! How reports write numbers.

use std::fmt;

/// A number of bytes for people: exact below 1 KiB, then three digits in binary units.
///
/// ```
/// use osteon_memory::bytes;
/// assert_eq!(bytes(17).to_string(), "17 B");
/// assert_eq!(bytes(4_000_000).to_string(), "3.81 MiB");
/// assert_eq!(bytes(320 << 20).to_string(), "320 MiB");
/// ```
pub fn bytes(n: u64) -> Bytes {
    Bytes(n)
}

/// See [`bytes`].
#[derive(Clone, Copy, Debug)]
pub struct Bytes(u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 999.5 would be written with four digits.
        while value >= 999.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let digits = if value.fract() == 0.0 || value >= 99.95 {
            0
        } else if value >= 9.995 {
            1
        } else {
            2
        };
        f.pad(&format!("{value:.digits$} {}", UNITS[unit]))
    }
}
