//! Comparisons: two elements to a `bool`.

use crate::element::Bool;
use crate::lane::ops;

ops! {
    /// A comparison, by PyTorch's name. The result is `bool`.
    pub enum CompareOp;
    /// The kernel of a comparison whose inputs promote to this dtype; none where it is not defined.
    /// Inputs of other dtypes are converted on the way.
    pub fn compare = map2 over 3;

    /// `x == y`.
    Eq { bool int float complex -> Bool: |x, y| x == y; }
    /// `x != y`.
    Ne { bool int float complex -> Bool: |x, y| x != y; }
    /// `x < y`.
    Lt { bool -> Bool: |x, y| !x & y; int float -> Bool: |x, y| x < y; }
    /// `x <= y`.
    Le { bool -> Bool: |x, y| !x | y; int float -> Bool: |x, y| x <= y; }
    /// `x > y`.
    Gt { bool -> Bool: |x, y| x & !y; int float -> Bool: |x, y| x > y; }
    /// `x >= y`.
    Ge { bool -> Bool: |x, y| x | !y; int float -> Bool: |x, y| x >= y; }
    /// Whether both are true, that is, not zero.
    LogicalAnd {
        bool -> Bool: |x, y| x & y;
        int -> Bool: |x, y| (x != 0) & (y != 0);
        float -> Bool: |x, y| (x != 0.0) & (y != 0.0);
        complex -> Bool: |x, y| truth(x) & truth(y);
    }
    /// Whether either is true.
    LogicalOr {
        bool -> Bool: |x, y| x | y;
        int -> Bool: |x, y| (x != 0) | (y != 0);
        float -> Bool: |x, y| (x != 0.0) | (y != 0.0);
        complex -> Bool: |x, y| truth(x) | truth(y);
    }
    /// Whether just one is true.
    LogicalXor {
        bool -> Bool: |x, y| x ^ y;
        int -> Bool: |x, y| (x != 0) ^ (y != 0);
        float -> Bool: |x, y| (x != 0.0) ^ (y != 0.0);
        complex -> Bool: |x, y| truth(x) ^ truth(y);
    }
    /// Whether `|x - y| <= atol + |rtol·y|`, with the numbers `rtol`, `atol` and, in the third, whether two NaN
    /// are close.
    IsClose {
        float -> Bool: |x, y; p| {
            let off = (x - y).abs();
            x == y
                || (off <= p[1] + (p[0] * y).abs() && off.is_finite())
                || (p[2] != 0.0 && x.is_nan() && y.is_nan())
        };
        complex -> Bool: |x, y; p| {
            let off = (x - y).norm();
            x == y
                || (off <= p[1].re + (p[0] * y).norm() && off.is_finite())
                || (p[2].re != 0.0 && x.is_nan() && y.is_nan())
        };
    }
}

#[inline(always)]
fn truth<T: num_complex::ComplexFloat>(x: T) -> bool {
    x != T::zero()
}
