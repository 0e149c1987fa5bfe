//! Products.

use super::super::args::Call;
use super::super::call::Stop;
use super::{Made, one};

/// Products of two tensors.
pub fn products(op: &str, c: &Call<'_>) -> Made {
    macro_rules! by_name {
        ($($name:ident)*) => {
            match op {
                $(stringify!($name) => one(c.tensor(0, "input")?.$name(c.tensor(1, "other")?)?),)*
                "__rmatmul__" => one(c.tensor(1, "other")?.matmul(c.tensor(0, "self")?)?),
                _ => Err(Stop::Missing),
            }
        };
    }
    by_name! { bmm dot matmul mm mv }
}
