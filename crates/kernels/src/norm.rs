//! Softmax and normalisation of elements, given what a reduction has found out about their neighbours.

use crate::lane::ops;
use crate::math::Exponentials;

ops! {
    /// A softmax, by the two results of [`ReduceOp::Softmax`](crate::ReduceOp::Softmax) or of
    /// [`ReduceOp::LogSoftmax`](crate::ReduceOp::LogSoftmax), or the gradient of its input, by that of its result, the result and a
    /// sum.
    pub enum SoftmaxOp;
    /// The kernel of `op(x, max, share or log)`, or of `op(gradient, result, sum)`.
    pub fn softmax = map3 over 4;

    /// `e^(x - max) / sum`.
    Softmax { float: |x, max, share| I::lifted_exp(x - max) * share; }
    /// Its logarithm.
    LogSoftmax { float: |x, max, log| x - max - log; }
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
