//! Operations of one element.

use crate::complex::{self, ONE, quotient, wide};
use crate::element::Bool;
use crate::kernel::Kernel;
use crate::lane::{computed_in, map1_but, ops};
use crate::math::{Circulars, Errors, Exponentials, FAR, Float, Inverses, Logarithms};
use crate::simd::simd_loop;
use crate::with_element;
use osteon_spec::DType;

ops! {
    /// An operation of one element, by PyTorch's name.
    pub enum UnaryOp;
    /// [`unary`] but for the operations whose formulas do not hold for all numbers.
    fn tabulated = map1 over 2;

    /// `-x`; integers wrap.
    Neg: light {
        int: |x| x.wrapping_neg();
        float complex: |x| -x;
    }
    /// The magnitude; the smallest integer stays itself.
    Abs: light {
        unsigned: |x| x;
        signed: |x| x.wrapping_abs();
        float: |x| x.abs();
        complex -> Real: |x| x.norm();
    }
    /// `x · x`.
    Square: light {
        int: |x| x.wrapping_mul(x);
        float: |x| x * x;
        complex: |x| wide(x, |x| x * x);
    }
    /// `x · x · x`.
    Cube: light {
        float: |x| x * x * x;
        complex: |x| wide(x, |x| x * x * x);
    }
    /// `x`, or 0 where it is negative.
    Relu: light {
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
        complex: |x| {
            let r = x.norm();
            match r.is_finite() {
                true if r == 0.0 => x * 0.0,
                true => x / r,
                false => num_complex::Complex::new(Real::NAN, Real::NAN),
            }
        };
    }
    /// The complex conjugate; a real number itself.
    Conj { bool int float: |x| x; complex: |x| x.conj(); }
    /// The argument of a complex number; 0 or π for a real one.
    Angle {
        float: |x| if x.is_nan() { x } else if x < 0.0 { std::f64::consts::PI as Real } else { 0.0 };
        complex -> Real: |x| x.arg();
    }
    /// The square root.
    Sqrt: light { float: |x| x.sqrt(); complex: |x| wide(x, |x| x.sqrt()); }
    /// `1 / sqrt(x)`.
    Rsqrt { float: |x| 1.0 / x.sqrt(); complex: |x| wide(x, |x| quotient!(ONE, x.sqrt())); }
    /// `1 / x`.
    Reciprocal: light { float: |x| 1.0 / x; complex: |x| wide(x, |x| quotient!(ONE, x)); }
    /// `e^x`.
    Exp { float: |x| I::exp(x); complex: |x| x.exp(); }
    /// `2^x`.
    Exp2 { float: |x| I::exp2(x); complex: |x| (x * std::f64::consts::LN_2 as Real).exp(); }
    /// `e^x - 1`, exact near 0.
    Expm1 {
        float: |x| I::expm1(x);
        // cos(y) - 1 is -2 sin²(y / 2), which loses no digits.
        complex: |x| if x.re.is_finite() && x.im.is_finite() {
            let half = (x.im * 0.5).sin();
            let re = x.re.exp_m1() * x.im.cos() - half * half * 2.0;
            num_complex::Complex::new(re, x.re.exp() * x.im.sin())
        } else {
            x.exp() - 1.0
        };
    }
    /// The natural logarithm.
    Log { float: |x| I::ln(x); complex: |x| x.ln(); }
    /// The logarithm to base 2.
    Log2 { float: |x| I::log2(x); complex: |x| x.log2(); }
    /// The logarithm to base 10.
    Log10 { float: |x| I::log10(x); complex: |x| x.log10(); }
    /// `log(1 + x)`, exact near 0.
    Log1p {
        float: |x| I::log1p(x);
        // |1 + z|² is 1 + 2x + x² + y².
        complex: |x| if x.norm_sqr() < 0.25 {
            let re = 0.5 * (x.re * (2.0 + x.re) + x.im * x.im).ln_1p();
            num_complex::Complex::new(re, x.im.atan2(1.0 + x.re))
        } else {
            (x + 1.0).ln()
        };
    }
    /// The sine.
    Sin {
        float: |x| x.sin();
        complex: |x| Input::new(
            times!(x.re.sin(), x.im.cosh()),
            times!(x.re.cos(), x.im.sinh()),
        );
    }
    /// The cosine.
    Cos {
        float: |x| x.cos();
        complex: |x| Input::new(
            times!(x.re.cos(), x.im.cosh()),
            -times!(x.re.sin(), x.im.sinh()),
        );
    }
    /// The tangent.
    Tan { float: |x| x.tan(); complex: |x| wide(x, complex::tan); }
    /// The inverse sine.
    Asin { float: |x| I::asin(x); complex: |x| wide(x, complex::asin); }
    /// The inverse cosine.
    Acos { float: |x| I::acos(x); complex: |x| wide(x, complex::acos); }
    /// The inverse tangent.
    Atan { float: |x| I::atan(x); complex: |x| wide(x, complex::atan); }
    /// The hyperbolic sine.
    Sinh {
        float: |x| I::sinh(x);
        complex: |x| Input::new(
            times!(x.re.sinh(), x.im.cos()),
            times!(x.re.cosh(), x.im.sin()),
        );
    }
    /// The hyperbolic cosine.
    Cosh {
        float: |x| I::cosh(x);
        complex: |x| Input::new(
            times!(x.re.cosh(), x.im.cos()),
            times!(x.re.sinh(), x.im.sin()),
        );
    }
    /// The hyperbolic tangent.
    Tanh { float: |x| I::tanh(x); complex: |x| wide(x, complex::tanh); }
    /// The inverse hyperbolic sine.
    Asinh { float: |x| I::asinh(x); complex: |x| wide(x, complex::asinh); }
    /// The inverse hyperbolic cosine.
    Acosh { float: |x| I::acosh(x); complex: |x| wide(x, complex::acosh); }
    /// The inverse hyperbolic tangent.
    Atanh { float: |x| I::atanh(x); complex: |x| wide(x, complex::atanh); }
    /// `1 / (1 + e^-x)`.
    Sigmoid { float: |x| I::sigmoid(x); complex: |x| quotient!(Input::from(1.0), (-x).exp() + 1.0); }
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
        float -> Bool: |x| x.is_infinite();
        complex -> Bool: |x| x.re.is_infinite() || x.im.is_infinite();
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
    /// Whether it is `∞`.
    IsPosInf {
        bool int -> Bool: |_x| false;
        float -> Bool: |x| x == Real::INFINITY;
    }
    /// Whether it is `-∞`.
    IsNegInf {
        bool int -> Bool: |_x| false;
        float -> Bool: |x| x == Real::NEG_INFINITY;
    }
    /// Whether its imaginary part is zero.
    IsReal {
        bool int float -> Bool: |_x| true;
        complex -> Bool: |x| x.im == 0.0;
    }
    /// Every bit the other way; `not` for `bool`.
    BitwiseNot { bool int: |x| !x; }
    /// The nearest multiple of a power of ten: with the numbers `10^|decimals|`, and 1 where `decimals` is
    /// negative.
    RoundDecimals {
        float: |x; p| if p[1] == 0.0 {
            (x * p[0]).round_ties_even() / p[0]
        } else {
            (x / p[0]).round_ties_even() * p[0]
        };
    }
    /// With finite numbers for NaN, `∞` and `-∞`.
    NanToNum {
        bool int: |x| x;
        float: |x; p| finite!(x, p[0], p[1], p[2]);
        complex: |x; p| Input::new(
            finite!(x.re, p[0].re, p[1].re, p[2].re),
            finite!(x.im, p[0].re, p[1].re, p[2].re),
        );
    }
    /// From degrees to radians.
    Deg2Rad { float: |x| x * (std::f64::consts::PI / 180.0) as Real; }
    /// From radians to degrees.
    Rad2Deg { float: |x| x * (180.0 / std::f64::consts::PI) as Real; }
    /// `sin(πx) / πx`.
    Sinc {
        float: |x| {
            let t = x * std::f64::consts::PI as Real;
            if t == 0.0 { 1.0 } else { t.sin() / t }
        };
        complex: |x| {
            let t = x * std::f64::consts::PI as Real;
            if t.re == 0.0 && t.im == 0.0 { Input::from(1.0) } else { quotient!(t.sin(), t) }
        };
    }
    /// The error function.
    Erf { float: |x| I::erf(x); }
    /// What the error function leaves of 1.
    Erfc { float: |x| I::erfc(x); }
    /// The inverse of the error function.
    Erfinv { float: |x| I::erfinv(x); }
    /// The logarithm of the magnitude of the gamma function.
    Lgamma { float: |x| Float::lgamma(x); }
    /// The derivative of that logarithm.
    Digamma { float: |x| Float::digamma(x); }
    /// The derivative of that, so many times as the number says.
    Polygamma { float: |x; p| Float::polygamma(x, p[0]); }
    /// `log(x / (1 - x))`, with `x` held between two numbers.
    Logit {
        float: |x; p| {
            let x = if x < p[0] { p[0] } else if x > p[1] { p[1] } else { x };
            I::ln(x / (1.0 - x))
        };
    }
    /// `x` held between two numbers of its dtype.
    Hardtanh { int: |x; p| x.max(p[0]).min(p[1]); float: |x; p| hold!(x, p[0], p[1]); }
    /// `x · min(max(x + 3, 0), 6) / 6`.
    Hardswish { float: |x| x * hold!(x + 3.0, 0.0, 6.0) / 6.0; }
    /// `min(max(x + 3, 0), 6) / 6`.
    Hardsigmoid { float: |x| hold!(x + 3.0, 0.0, 6.0) / 6.0; }
    /// 0 between `-lambda` and `lambda`, with the number `lambda`.
    Hardshrink { float: |x; p| if x >= -p[0] && x <= p[0] { 0.0 } else { x }; }
    /// `x` less far from 0 by the number `lambda`.
    Softshrink { float: |x; p| if x > p[0] { x - p[0] } else if x < -p[0] { x + p[0] } else { x * 0.0 }; }
    /// `x`, or the second number where it is not above the first.
    Threshold { int float: |x; p| if x <= p[0] { p[1] } else { x }; }
    /// `x`, or `slope · x` where it is negative.
    LeakyRelu { float: |x; p| if x > 0.0 { x } else { x * p[0] }; }
    /// `scale·x`, or `alpha·(e^(rate·x) - 1)` where `x` is negative, with the numbers `scale`, `alpha`, `rate`.
    Elu { float: |x; p| if x < 0.0 { I::expm1(x * p[2]) * p[1] } else { x * p[0] }; }
    /// `x · Φ(x)`, with the distribution function of the normal distribution.
    Gelu { float: |x| I::gelu(x); }
    /// [`Gelu`](UnaryOp::Gelu) by way of `tanh`.
    GeluTanh {
        // (1 + tanh y) / 2 is sigmoid(2y).
        float: |x| I::gated(x, tanh_argument!(x));
    }
    /// `x · sigmoid(x)`.
    Silu { float: |x| I::gated(x, x); complex: |x| quotient!(x, (-x).exp() + 1.0); }
    /// `x · tanh(softplus(x))`.
    Mish { float: |x| x * I::mish_factor(x).0; }
    /// `log(1 + e^(beta·x)) / beta`, and `x` where `beta·x` is above the second number.
    Softplus { float: |x; p| if x * p[0] > p[1] { x } else { I::softplus(x * p[0]) / p[0] }; }
    /// `log(sigmoid(x))`.
    LogSigmoid { float: |x| hold!(x, Real::NEG_INFINITY, 0.0) - I::log1p_of_fraction(I::exp(-x.abs())); }
}

/// The kernel of an operation on inputs of this dtype; none where it is not defined. An
/// operation on floats takes integers by way of the float that they promote to: look up that
/// dtype, and pass the integers. Half precision is computed in `float32` and rounded once.
pub fn unary(op: UnaryOp, dtype: DType) -> Option<Kernel<2>> {
    /// The loop of a function that is `math`'s up to [`FAR`], the standard library's beyond.
    macro_rules! near {
        ($function:ident) => {
            with_element!(float: computed_in(dtype), T => simd_loop!(2, |p, len, _params| {
                map1_but::<T>(
                    p,
                    len,
                    #[inline(always)]
                    |x| I::$function(x),
                    |x| x.abs() > FAR as T,
                    T::$function,
                )
            }))
        };
    }
    let near = match op {
        UnaryOp::Sin => near!(sin),
        UnaryOp::Cos => near!(cos),
        UnaryOp::Tan => near!(tan),
        _ => None,
    };
    match near {
        None => tabulated(op, dtype),
        Some(body) if computed_in(dtype) == dtype => Some(Kernel::new([dtype; 2], body)),
        Some(body) => Some(Kernel::new([computed_in(dtype); 2], body).rounded_to(dtype)),
    }
}

/// The product of two reals, but 0 for 0 and anything: parts of complex functions where the other part is real.
macro_rules! times {
    ($x:expr, $y:expr) => {{
        let (x, y) = ($x, $y);
        let product = x * y;
        if product.is_nan() && (x == 0.0 || y == 0.0) {
            if x.is_sign_negative() != y.is_sign_negative() {
                -0.0
            } else {
                0.0
            }
        } else {
            product
        }
    }};
}
use times;

/// Twice the argument of `tanh` in [`GeluTanh`](UnaryOp::GeluTanh).
macro_rules! tanh_argument {
    ($x:expr) => {{
        let scale = (8.0 / std::f64::consts::PI).sqrt() as Real;
        scale * ($x + 0.044715 * $x * $x * $x)
    }};
}
pub(crate) use tanh_argument;

/// `x` between two bounds; NaN passes.
macro_rules! hold {
    ($x:expr, $low:expr, $high:expr) => {{
        let x = $x;
        if x < $low {
            $low
        } else if x > $high {
            $high
        } else {
            x
        }
    }};
}
use hold;

/// `x`, or the number that stands for NaN, `∞` or `-∞`.
macro_rules! finite {
    ($x:expr, $nan:expr, $high:expr, $low:expr) => {
        if $x.is_nan() {
            $nan
        } else if $x == Real::INFINITY {
            $high
        } else if $x == Real::NEG_INFINITY {
            $low
        } else {
            $x
        }
    };
}
use finite;
