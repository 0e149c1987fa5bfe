//! TEMP
pub mod format;
