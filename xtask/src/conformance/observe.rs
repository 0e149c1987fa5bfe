//! All that can be seen of a tensor from outside.

use std::fmt;

use osteon::{DType, Device, Result, Tensor};

use super::tensors::values;
use super::value::Number;

/// What one tensor shows.
#[derive(Debug, PartialEq)]
pub struct Observed {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub stride: Vec<usize>,
    pub offset: usize,
    pub storage: u64,
    pub storage_nbytes: usize,
    pub contiguous: bool,
    pub version: u64,
    pub requires_grad: bool,
    pub is_leaf: bool,
    pub grad: Option<Vec<Number>>,
    pub values: Vec<Number>,
}

impl Observed {
    pub fn of(tensor: &Tensor) -> Result<Observed> {
        Ok(Observed {
            dtype: tensor.dtype(),
            shape: tensor.shape().to_vec(),
            stride: tensor.stride().to_vec(),
            offset: tensor.storage_offset(),
            storage: tensor.storage().id(),
            storage_nbytes: tensor.storage().nbytes(),
            contiguous: tensor.is_contiguous(),
            version: tensor.version(),
            requires_grad: tensor.requires_grad(),
            // A view whose history is ambiguous has none to show.
            is_leaf: tensor.is_leaf().unwrap_or(false),
            grad: tensor.grad().map(|g| values(&g)).transpose()?,
            values: values(tensor)?,
        })
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Observed {
            dtype,
            shape,
            stride,
            offset,
            storage,
            storage_nbytes,
            contiguous,
            version,
            requires_grad,
            is_leaf,
            grad,
            values,
        } = self;
        write!(
            f,
            "{dtype} shape {shape:?} stride {stride:?} offset {offset} in storage {storage} of {storage_nbytes} bytes, \
             version {version}{}, values {values:?}",
            if *contiguous { ", contiguous" } else { "" }
        )?;
        if *requires_grad {
            let leaf = if *is_leaf { ", leaf" } else { "" };
            write!(f, ", requires grad{leaf}, grad {grad:?}")?;
        }
        Ok(())
    }
}

/// What the CPU's accounting says is asked for now.
pub fn requested_bytes() -> i64 {
    let stats = osteon::memory::stats(&Device::cpu());
    i64::try_from(stats.requested_bytes.all.current).unwrap_or(i64::MAX)
}
