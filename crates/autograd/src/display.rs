//! Tensors as text, exactly as PyTorch prints them.

use crate::Tensor;
use std::fmt;

/// As PyTorch prints it. Only the elements that are shown are read.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grad_fn = self.grad_fn().map(|g| g.name());
        match self
            .as_view()
            .print(self.requires_grad(), grad_fn.as_deref())
        {
            Ok(text) => f.write_str(&text),
            Err(e) => write!(f, "tensor(<{e}>)"),
        }
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
