//! Where a tensor's bytes are.

use std::fmt;

/// A device: a small value, compared and copied freely.
///
/// A device that is not there cannot be constructed.
///
/// ```
/// use osteon_spec::Device;
/// assert_eq!(Device::cpu().to_string(), "cpu");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device(Place);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Place {
    Cpu,
    Meta,
}

impl Device {
    /// The machine's main memory.
    pub const fn cpu() -> Device {
        Device(Place::Cpu)
    }

    /// No memory at all: shapes, strides and accounting without a byte behind them.
    pub const fn meta() -> Device {
        Device(Place::Meta)
    }

    /// Whether this is the CPU.
    pub const fn is_cpu(&self) -> bool {
        matches!(self.0, Place::Cpu)
    }

    /// Whether this is the device without memory.
    pub const fn is_meta(&self) -> bool {
        matches!(self.0, Place::Meta)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self.0 {
            Place::Cpu => "cpu",
            Place::Meta => "meta",
        })
    }
}
