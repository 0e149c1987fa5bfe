//! Softmax and normalisation of elements, given what a reduction has found out about their neighbours.

use crate::lane::ops;
use crate::math::Math;

ops! {
    /// A softmax, by the two results of [`ReduceOp::Exponentials`](crate::ReduceOp::Exponentials).
    pub enum SoftmaxOp;
    /// The kernel of `op(x, max, sum)`.
    pub fn softmax = map3 over 4;

    /// `e^(x - max) / sum`.
    Softmax { float: |x, max, sum| Math::exp(x - max) / sum; }
    /// Its logarithm.
    LogSoftmax { float: |x, max, sum| x - max - Math::ln(sum); }
}

ops! {
    /// A normalisation.
    pub enum NormalizeOp;
    /// The kernel of `(x - mean) · scale · weight + bias`.
    pub fn normalize = map5 over 6;

    /// `(x - mean) · scale · weight + bias`.
    Normalize {
        float complex: |x, mean, scale, weight, bias| (x - mean) * scale * weight + bias;
    }
}
