//! Small readers of the formats that timelines are written in.

pub mod pickle;
pub mod protobuf;
