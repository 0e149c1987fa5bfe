//! Tensors as text, exactly as PyTorch prints them.

use crate::Tensor;
use std::fmt;

/// As PyTorch prints it. Only the elements that are shown are read.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_view(), f)
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
