//! Operations of three elements.

use crate::complex::{quotient, wide_of};
use crate::convert::Convert;
use crate::lane::ops;

ops! {
    /// An operation of three elements, by PyTorch's name.
    pub enum TernaryOp;
    /// The kernel of an operation whose inputs promote to this dtype; none where it is not defined.
    /// Inputs of other dtypes are converted on the way. Half precision is computed in `float32` and
    /// rounded once.
    pub fn ternary = map3 over 4;

    /// `x + value·y·z`, with the number `value`.
    Addcmul: light {
        int: |x, y, z; p| x.wrapping_add(p[0].wrapping_mul(y).wrapping_mul(z));
        float: |x, y, z; p| x + p[0] * y * z;
        complex: |x, y, z; p| (wide_of(x) + wide_of(p[0]) * wide_of(y) * wide_of(z)).to();
    }
    /// `x + value·y/z`, with the number `value`.
    Addcdiv: light {
        float: |x, y, z; p| x + p[0] * y / z;
        complex: |x, y, z; p| {
            (wide_of(x) + quotient!(wide_of(p[0]) * wide_of(y), wide_of(z))).to()
        };
    }
    /// From `x` to `y` by the weight `z`, exact at both ends.
    Lerp: light {
        float: |x, y, z| if z.abs() < 0.5 { x + z * (y - x) } else { y - (y - x) * (1.0 - z) };
        complex: |x, y, z| {
            if z.norm() < 0.5 { x + z * (y - x) } else { y - (y - x) * (-z + 1.0) }
        };
    }
    /// `x` held between `y` and `z` (`z` where they cross); NaN where any is.
    Clamp: light {
        int: |x, y, z| x.max(y).min(z);
        float: |x, y, z| {
            let low = if x > y || x.is_nan() { x } else { y };
            if low < z || low.is_nan() { low } else { z }
        };
    }
}
