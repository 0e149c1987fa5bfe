//! Softmax and normalisation of elements, given what a reduction has found out about their neighbours.

use crate::lane::ops;
use crate::math::{Exponentials, Logarithms};

ops! {
    /// A softmax, by the two results of [`ReduceOp::Exponentials`](crate::ReduceOp::Exponentials), or the gradient of its
    /// input, by that of its result, the result and a sum.
    pub enum SoftmaxOp;
    /// The kernel of `op(x, max, sum)`, or of `op(gradient, result, sum)`.
    pub fn softmax = map3 over 4;

    /// `e^(x - max) / sum`.
    Softmax { float: |x, max, sum| I::exp(x - max) / sum; }
    /// Its logarithm.
    LogSoftmax { float: |x, max, sum| x - max - I::ln(sum); }
    /// `(g - sum) · y`, where the sum is that of `g · y`.
    SoftmaxGradient { float: |g, y, sum| (g - sum) * y; }
    /// `g - e^y · sum`, where the sum is that of `g`.
    LogSoftmaxGradient { float: |g, y, sum| g - I::exp(y) * sum; }
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
