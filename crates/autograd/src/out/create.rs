//! Sequences.

use super::outs;
use crate::Tensor;
use osteon_spec::{Result, Scalar};
use osteon_tensor::View;

/// Nothing is read.
const NOTHING: [&Tensor; 0] = [];

outs! { out: One;
    /// In the dtype of `out`.
    arange_out of arange(start: impl Into<Scalar>, end: impl Into<Scalar>, step: impl Into<Scalar>) reads NOTHING
        => View::arange_out(start.into(), end.into(), step.into(), Some(out.dtype()), &out.device(), out);
    ; Tensor::arange_out(1, 7, 2, &out); [1.0, 3.0, 5.0];

    /// In the dtype of `out`.
    linspace_out of linspace(start: impl Into<Scalar>, end: impl Into<Scalar>, steps: usize) reads NOTHING
        => View::linspace_out(start.into(), end.into(), steps, out.dtype(), &out.device(), out);
    ; Tensor::linspace_out(0, 1, 3, &out); [0.0, 0.5, 1.0];

    /// In the dtype of `out`.
    logspace_out of logspace(start: impl Into<Scalar>, end: impl Into<Scalar>, steps: usize, base: f64) reads NOTHING
        => View::logspace_out(start.into(), end.into(), steps, base, out.dtype(), &out.device(), out);
    ; Tensor::logspace_out(0, 2, 3, 10.0, &out); [1.0, 10.0, 100.0];

    /// In the dtype of `out`.
    eye_out of eye_rectangular(n: usize, m: usize) reads NOTHING
        => View::eye_out(n, m, out.dtype(), &out.device(), out);
    ; Tensor::eye_out(2, 3, &out); [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];

    /// In the dtype of `out`.
    randperm_out of randperm(n: usize) reads NOTHING => View::randperm_out(n, &out.device(), out);
    ; Tensor::randperm_out(1, &out); [0.0];
}
