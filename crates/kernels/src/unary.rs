//! Operations of one element.

use crate::complex::{self, quotient, wide};
use crate::element::Bool;
use crate::lane::ops;
use crate::math::Math;

ops! {
    /// An operation of one element, by PyTorch's name.
    pub enum UnaryOp;
    /// The kernel of an operation on inputs of this dtype; none where it is not defined. An
    /// operation on floats takes integers by way of the float that they promote to: look up that
    /// dtype, and pass the integers. Half precision is computed in `float32` and rounded once.
    pub fn unary = map1 over 2;

    /// `-x`; integers wrap.
    Neg {
        int: |x| x.wrapping_neg();
        float complex: |x| -x;
    }
    /// The magnitude; the smallest integer stays itself.
    Abs {
        unsigned: |x| x;
        signed: |x| x.wrapping_abs();
        float: |x| x.abs();
        complex -> Real: |x| x.norm();
    }
    /// `x · x`.
    Square {
        int: |x| x.wrapping_mul(x);
        float complex: |x| x * x;
    }
    /// `x`, or 0 where it is negative.
    Relu {
        unsigned: |x| x;
        signed: |x| x.max(0);
        float: |x| if x < 0.0 { 0.0 } else { x };
    }
    /// −1, 0 or 1; 0 for NaN.
    Sign {
        bool: |x| x;
        unsigned: |x| x.min(1);
        signed: |x| x.signum();
        float: |x| (x > 0.0) as u8 as Real - (x < 0.0) as u8 as Real;
    }
    /// [`Sign`](UnaryOp::Sign), and for complex numbers `x / |x|` (0 at 0).
    Sgn {
        bool: |x| x;
        unsigned: |x| x.min(1);
        signed: |x| x.signum();
        float: |x| (x > 0.0) as u8 as Real - (x < 0.0) as u8 as Real;
        complex: |x| { let r = x.norm(); if r == 0.0 { x * 0.0 } else { x / r } };
    }
    /// The complex conjugate; a real number itself.
    Conj { bool int float: |x| x; complex: |x| x.conj(); }
    /// The argument of a complex number; 0 or π for a real one.
    Angle {
        float: |x| if x.is_nan() { x } else if x < 0.0 { std::f64::consts::PI as Real } else { 0.0 };
        complex -> Real: |x| x.arg();
    }
    /// The square root.
    Sqrt { float complex: |x| x.sqrt(); }
    /// `1 / sqrt(x)`.
    Rsqrt { float: |x| 1.0 / x.sqrt(); complex: |x| quotient!(Input::from(1.0), x.sqrt()); }
    /// `1 / x`.
    Reciprocal { float: |x| 1.0 / x; complex: |x| quotient!(Input::from(1.0), x); }
    /// `e^x`.
    Exp { float: |x| Math::exp(x); complex: |x| x.exp(); }
    /// `2^x`.
    Exp2 { float complex: |x| x.exp2(); }
    /// `e^x - 1`, exact near 0.
    Expm1 { float: |x| x.exp_m1(); complex: |x| x.exp() - 1.0; }
    /// The natural logarithm.
    Log { float: |x| Math::ln(x); complex: |x| x.ln(); }
    /// The logarithm to base 2.
    Log2 { float complex: |x| x.log2(); }
    /// The logarithm to base 10.
    Log10 { float complex: |x| x.log10(); }
    /// `log(1 + x)`, exact near 0.
    Log1p { float: |x| x.ln_1p(); complex: |x| (x + 1.0).ln(); }
    /// The sine.
    Sin { float complex: |x| x.sin(); }
    /// The cosine.
    Cos { float complex: |x| x.cos(); }
    /// The tangent.
    Tan { float: |x| x.tan(); complex: |x| wide(x, complex::tan); }
    /// The inverse sine.
    Asin { float: |x| x.asin(); complex: |x| wide(x, complex::asin); }
    /// The inverse cosine.
    Acos { float: |x| x.acos(); complex: |x| wide(x, complex::acos); }
    /// The inverse tangent.
    Atan { float: |x| x.atan(); complex: |x| wide(x, complex::atan); }
    /// The hyperbolic sine.
    Sinh { float complex: |x| x.sinh(); }
    /// The hyperbolic cosine.
    Cosh { float complex: |x| x.cosh(); }
    /// The hyperbolic tangent.
    Tanh { float: |x| Math::tanh(x); complex: |x| wide(x, complex::tanh); }
    /// The inverse hyperbolic sine.
    Asinh { float: |x| x.asinh(); complex: |x| wide(x, complex::asinh); }
    /// The inverse hyperbolic cosine.
    Acosh { float: |x| x.acosh(); complex: |x| wide(x, complex::acosh); }
    /// The inverse hyperbolic tangent.
    Atanh { float: |x| x.atanh(); complex: |x| wide(x, complex::atanh); }
    /// `1 / (1 + e^-x)`.
    Sigmoid { float: |x| Math::sigmoid(x); complex: |x| quotient!(Input::from(1.0), (-x).exp() + 1.0); }
    /// The largest integer not above.
    Floor { int: |x| x; float: |x| x.floor(); }
    /// The smallest integer not below.
    Ceil { int: |x| x; float: |x| x.ceil(); }
    /// The nearest integer, halves to even.
    Round { int: |x| x; float: |x| x.round_ties_even(); }
    /// The integer part.
    Trunc { int: |x| x; float: |x| x.trunc(); }
    /// What [`Trunc`](UnaryOp::Trunc) takes away.
    Frac { float: |x| x - x.trunc(); }
    /// Whether it is not a number.
    IsNan {
        bool int -> Bool: |_x| false;
        float -> Bool: |x| x.is_nan();
        complex -> Bool: |x| x.is_nan();
    }
    /// Whether it is infinite.
    IsInf {
        bool int -> Bool: |_x| false;
        float complex -> Bool: |x| x.is_infinite();
    }
    /// Whether it is neither infinite nor NaN.
    IsFinite {
        bool int -> Bool: |_x| true;
        float complex -> Bool: |x| x.is_finite();
    }
    /// Whether the sign bit is set.
    SignBit {
        bool unsigned -> Bool: |_x| false;
        signed -> Bool: |x| x < 0;
        float -> Bool: |x| x.is_sign_negative();
    }
    /// Whether it is zero.
    LogicalNot {
        bool -> Bool: |x| !x;
        int -> Bool: |x| x == 0;
        float -> Bool: |x| x == 0.0;
        complex -> Bool: |x| x.re == 0.0 && x.im == 0.0;
    }
    /// Every bit the other way; `not` for `bool`.
    BitwiseNot { bool int: |x| !x; }
}
