//! Operations element by element, their forms in place (`_`) and into an output (`_out`).
//!
//! Shapes broadcast, dtypes promote, and results are laid out as in PyTorch; any strides are read as they are.

use crate::pointwise::Pointwise;
use crate::{Operand, Tensor};
use osteon_spec::Result;
use osteon_tensor::{BinaryOp, CompareOp, Compute, Op, UnaryOp};

/// An example: tensors of these values, lines with them, and what these then give.
macro_rules! example {
    ($($x:ident = $values:tt),+; $($line:expr),*; $($result:expr),+; $expected:tt) => {
        concat!(
            "```\n# use osteon_autograd::Tensor;\n",
            $("let ", stringify!($x), " = Tensor::new(", stringify!($values), ")?;\n",)+
            $($line,)*
            "let expected = Tensor::new(", stringify!($expected), ")?;\n",
            "assert!(", $($result,)+ ".allclose(&expected, 1e-9, 0.0)?);\n",
            "# Ok::<(), osteon_spec::Error>(())\n```"
        )
    };
}
pub(crate) use example;

/// `[values] => [results]; method in-place-method out-method => operation, what it computes in;` for operations of one
/// tensor; the values are the examples.
macro_rules! unary {
    ($(
        $(#[doc = $doc:literal])+
        [$($x:tt)*] => [$($y:tt)*];
        $name:ident $in_place:ident $out:ident => $op:ident, $compute:ident;
    )*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// A dtype for which it is not defined; a guard in the way; out of memory.
            ///
            #[doc = example!(x = [$($x)*]; ; "x.", stringify!($name), "()?"; [$($y)*])]
            #[track_caller]
            #[inline]
            pub fn $name(&self) -> Result<Tensor> {
                unary(stringify!($name), UnaryOp::$op, Compute::$compute, self).fresh()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// A result that this dtype cannot hold; overlap; a guard in the way.
            ///
            #[doc = example!(x = [$($x)*]; "x.", stringify!($in_place), "()?;\n"; "x"; [$($y)*])]
            #[track_caller]
            pub fn $in_place(&self) -> Result<()> {
                unary(stringify!($in_place), UnaryOp::$op, Compute::$compute, self).in_place()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// Another shape; a result that `out` cannot hold; overlap; a guard in the way.
            ///
            #[doc = example!(
                x = [$($x)*];
                "let out = x.empty_like()?;\n", "x.", stringify!($out), "(&out)?;\n";
                "out";
                [$($y)*]
            )]
            #[track_caller]
            pub fn $out(&self, out: &Tensor) -> Result<()> {
                unary(stringify!($out), UnaryOp::$op, Compute::$compute, self).out(out)
            }
        )* }
    };
}

pub(crate) fn unary<'a>(
    name: &'static str,
    op: UnaryOp,
    compute: Compute,
    x: &'a Tensor,
) -> Pointwise<'a, 1> {
    Pointwise {
        name,
        op: Op::Unary(op),
        compute,
        operands: [x.into()],
        numbers: &[],
    }
}

/// The same, `[values], [values] => [results];`, for operations of two tensors, or (`Operand`) of a tensor and another or a number.
macro_rules! binary {
    ($kind:ident with Operand: $($rows:tt)*) => {
        binary! { @ $kind (impl Into<Operand<'a>>): $($rows)* }
    };
    ($kind:ident with Tensor: $($rows:tt)*) => {
        binary! { @ $kind (&'a Tensor): $($rows)* }
    };
    (@ $kind:ident ($other:ty): $(
        $(#[doc = $doc:literal])+
        [$($x:tt)*], [$($y:tt)*] => [$($z:tt)*];
        $name:ident $in_place:ident $out:ident => $op:expr, $compute:ident;
    )*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// Shapes that do not broadcast; dtypes that do not promote or for which it is not defined; a guard
            /// in the way; out of memory.
            ///
            #[doc = example!(x = [$($x)*], y = [$($y)*]; ; "x.", stringify!($name), "(&y)?"; [$($z)*])]
            #[track_caller]
            #[inline]
            pub fn $name<'a>(&self, other: $other) -> Result<Tensor> {
                let other: Operand<'a> = other.into();
                let operands = [self.into(), other];
                binary(stringify!($name), Op::$kind($op), Compute::$compute, operands).fresh()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// Another shape than this tensor's; a result that its dtype cannot hold; overlap; a guard in the
            /// way.
            ///
            #[doc = example!(x = [$($x)*], y = [$($y)*]; "x.", stringify!($in_place), "(&y)?;\n"; "x"; [$($z)*])]
            #[track_caller]
            pub fn $in_place<'a>(&self, other: $other) -> Result<()> {
                let other: Operand<'a> = other.into();
                let operands = [self.into(), other];
                binary(stringify!($in_place), Op::$kind($op), Compute::$compute, operands).in_place()
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// Another shape; a result that `out` cannot hold; overlap; a guard in the way.
            ///
            #[doc = example!(
                x = [$($x)*], y = [$($y)*];
                "let out = x.empty_like()?;\n", "x.", stringify!($out), "(&y, &out)?;\n";
                "out";
                [$($z)*]
            )]
            #[track_caller]
            pub fn $out<'a>(&self, other: $other, out: &Tensor) -> Result<()> {
                let other: Operand<'a> = other.into();
                let operands = [self.into(), other];
                binary(stringify!($out), Op::$kind($op), Compute::$compute, operands).out(out)
            }
        )* }
    };
}

pub(crate) fn binary<'a>(
    name: &'static str,
    op: Op,
    compute: Compute,
    operands: [Operand<'a>; 2],
) -> Pointwise<'a, 2> {
    Pointwise {
        name,
        op,
        compute,
        operands,
        numbers: &[],
    }
}

unary! {
    /// `-x`; integers wrap. Not for `bool`.
    [1.0, -2.0] => [-1.0, 2.0];
    neg neg_ neg_out => Neg, Promoted;
    /// The magnitude; that of a complex number is real.
    [-3.0, 2.0] => [3.0, 2.0];
    abs abs_ abs_out => Abs, Promoted;
    /// `x · x`.
    [3.0, -4.0] => [9.0, 16.0];
    square square_ square_out => Square, Number;
    /// −1, 0 or 1; 0 for NaN.
    [-5.0, 0.0, 2.0] => [-1.0, 0.0, 1.0];
    sign sign_ sign_out => Sign, Promoted;
    /// [`Tensor::sign`], and `x / |x|` for complex numbers.
    [-0.5, 0.0, 7.0] => [-1.0, 0.0, 1.0];
    sgn sgn_ sgn_out => Sgn, Promoted;
    /// `x`, or 0 where it is negative.
    [-1.0, 2.0] => [0.0, 2.0];
    relu relu_ relu_out => Relu, Promoted;
    /// The square root.
    [4.0, 9.0] => [2.0, 3.0];
    sqrt sqrt_ sqrt_out => Sqrt, Float;
    /// `1 / sqrt(x)`.
    [4.0, 0.25] => [0.5, 2.0];
    rsqrt rsqrt_ rsqrt_out => Rsqrt, Float;
    /// `1 / x`.
    [4.0, -0.5] => [0.25, -2.0];
    reciprocal reciprocal_ reciprocal_out => Reciprocal, Float;
    /// `e^x`.
    [0.0, 1.0] => [1.0, 2.718281828459045];
    exp exp_ exp_out => Exp, Float;
    /// `2^x`.
    [3.0, -1.0] => [8.0, 0.5];
    exp2 exp2_ exp2_out => Exp2, Float;
    /// `e^x - 1`, exact near 0.
    [0.0, 1e-12] => [0.0, 1e-12];
    expm1 expm1_ expm1_out => Expm1, Float;
    /// The natural logarithm.
    [1.0, 2.718281828459045] => [0.0, 1.0];
    log log_ log_out => Log, Float;
    /// The logarithm to base 2.
    [8.0, 0.5] => [3.0, -1.0];
    log2 log2_ log2_out => Log2, Float;
    /// The logarithm to base 10.
    [100.0, 0.1] => [2.0, -1.0];
    log10 log10_ log10_out => Log10, Float;
    /// `log(1 + x)`, exact near 0.
    [0.0, 1e-12] => [0.0, 1e-12];
    log1p log1p_ log1p_out => Log1p, Float;
    /// The sine.
    [0.0, 0.5235987755982988] => [0.0, 0.5];
    sin sin_ sin_out => Sin, Float;
    /// The cosine.
    [0.0, 1.0471975511965976] => [1.0, 0.5];
    cos cos_ cos_out => Cos, Float;
    /// The tangent.
    [0.0, 0.7853981633974483] => [0.0, 1.0];
    tan tan_ tan_out => Tan, Float;
    /// The inverse sine.
    [0.0, 0.5] => [0.0, 0.5235987755982988];
    asin asin_ asin_out => Asin, Float;
    /// The inverse cosine.
    [1.0, 0.5] => [0.0, 1.0471975511965976];
    acos acos_ acos_out => Acos, Float;
    /// The inverse tangent.
    [0.0, 1.0] => [0.0, 0.7853981633974483];
    atan atan_ atan_out => Atan, Float;
    /// The hyperbolic sine.
    [0.0, 0.6931471805599453] => [0.0, 0.75];
    sinh sinh_ sinh_out => Sinh, Float;
    /// The hyperbolic cosine.
    [0.0, 0.6931471805599453] => [1.0, 1.25];
    cosh cosh_ cosh_out => Cosh, Float;
    /// The hyperbolic tangent.
    [0.0, 0.6931471805599453] => [0.0, 0.6];
    tanh tanh_ tanh_out => Tanh, Float;
    /// The inverse hyperbolic sine.
    [0.0, 0.75] => [0.0, 0.6931471805599453];
    asinh asinh_ asinh_out => Asinh, Float;
    /// The inverse hyperbolic cosine.
    [1.0, 1.25] => [0.0, 0.6931471805599453];
    acosh acosh_ acosh_out => Acosh, Float;
    /// The inverse hyperbolic tangent.
    [0.0, 0.6] => [0.0, 0.6931471805599453];
    atanh atanh_ atanh_out => Atanh, Float;
    /// `1 / (1 + e^-x)`.
    [0.0, 1.0986122886681098] => [0.5, 0.75];
    sigmoid sigmoid_ sigmoid_out => Sigmoid, Float;
    /// The largest integer not above.
    [1.7, -1.2] => [1.0, -2.0];
    floor floor_ floor_out => Floor, Promoted;
    /// The smallest integer not below.
    [1.2, -1.7] => [2.0, -1.0];
    ceil ceil_ ceil_out => Ceil, Promoted;
    /// The nearest integer, halves to even.
    [0.5, 1.5, -2.6] => [0.0, 2.0, -3.0];
    round round_ round_out => Round, Promoted;
    /// The integer part.
    [1.7, -1.7] => [1.0, -1.0];
    trunc trunc_ trunc_out => Trunc, Promoted;
    /// What [`Tensor::trunc`] takes away.
    [1.25, -1.25] => [0.25, -0.25];
    frac frac_ frac_out => Frac, Promoted;
    /// Whether it is not a number, as `bool`.
    [1.0, f64::NAN] => [false, true];
    isnan isnan_ isnan_out => IsNan, Promoted;
    /// Whether it is infinite, as `bool`.
    [1.0, f64::NEG_INFINITY] => [false, true];
    isinf isinf_ isinf_out => IsInf, Promoted;
    /// Whether it is neither infinite nor NaN, as `bool`.
    [1.0, f64::NAN] => [true, false];
    isfinite isfinite_ isfinite_out => IsFinite, Promoted;
    /// Whether the sign bit is set, as `bool`.
    [2.0, -0.0] => [false, true];
    signbit signbit_ signbit_out => SignBit, Promoted;
    /// Whether it is zero, as `bool`.
    [0.0, 3.0] => [true, false];
    logical_not logical_not_ logical_not_out => LogicalNot, Promoted;
    /// Whether it is `∞`, as `bool`.
    [f64::INFINITY, f64::NEG_INFINITY] => [true, false];
    isposinf isposinf_ isposinf_out => IsPosInf, Promoted;
    /// Whether it is `-∞`, as `bool`.
    [f64::INFINITY, f64::NEG_INFINITY] => [false, true];
    isneginf isneginf_ isneginf_out => IsNegInf, Promoted;
    /// Whether its imaginary part is zero, as `bool`.
    [1.0, f64::NAN] => [true, true];
    isreal isreal_ isreal_out => IsReal, Promoted;
    /// From degrees to radians.
    [180.0, 90.0] => [3.141592653589793, 1.5707963267948966];
    deg2rad deg2rad_ deg2rad_out => Deg2Rad, Float;
    /// From radians to degrees.
    [3.141592653589793, 1.5707963267948966] => [180.0, 90.0];
    rad2deg rad2deg_ rad2deg_out => Rad2Deg, Float;
    /// `sin(πx) / πx`, 1 at 0.
    [0.0, 0.5] => [1.0, 0.6366197723675814];
    sinc sinc_ sinc_out => Sinc, Float;
    /// The error function.
    [0.0, 1.0] => [0.0, 0.8427007929497149];
    erf erf_ erf_out => Erf, Float;
    /// What the error function leaves of 1.
    [0.0, 1.0] => [1.0, 0.15729920705028513];
    erfc erfc_ erfc_out => Erfc, Float;
    /// The inverse of the error function.
    [0.0, 0.8427007929497149] => [0.0, 1.0];
    erfinv erfinv_ erfinv_out => Erfinv, Float;
    /// The logarithm of the magnitude of the gamma function.
    [4.0, 0.5] => [1.791759469228055, 0.5723649429247001];
    lgamma lgamma_ lgamma_out => Lgamma, Float;
    /// The derivative of [`Tensor::lgamma`].
    [1.0, 2.0] => [-0.5772156649015329, 0.4227843350984671];
    digamma digamma_ digamma_out => Digamma, Float;
    /// The argument of a complex number; 0 or π for a real one.
    [2.0, -2.0] => [0.0, 3.141592653589793];
    angle angle_ angle_out => Angle, Float;
    /// Every bit the other way; `not` for `bool`.
    [0, 5] => [-1, -6];
    bitwise_not bitwise_not_ bitwise_not_out => BitwiseNot, Promoted;
}

binary! { Binary with Operand:
    /// The sum; `or` for `bool`.
    [1.0, 2.0], [3.0, 4.0] => [4.0, 6.0];
    add add_ add_out => BinaryOp::Add, Promoted;
    /// The difference. Not for `bool`.
    [5.0, 2.0], [3.0, 4.0] => [2.0, -2.0];
    sub sub_ sub_out => BinaryOp::Sub, Promoted;
    /// The product; `and` for `bool`.
    [2.0, 3.0], [4.0, -5.0] => [8.0, -15.0];
    mul mul_ mul_out => BinaryOp::Mul, Promoted;
    /// The quotient, a float also of integers.
    [1.0, 6.0], [4.0, -2.0] => [0.25, -3.0];
    div div_ div_out => BinaryOp::Div, Float;
    /// The quotient rounded down. Integers are not divided by zero: that is an error.
    [7.0, -7.0], [2.0, 2.0] => [3.0, -4.0];
    floor_divide floor_divide_ floor_divide_out => BinaryOp::FloorDivide, Promoted;
    /// What [`Tensor::floor_divide`] leaves, with the divisor's sign: Python's `%`.
    [7.0, -7.0], [3.0, 3.0] => [1.0, 2.0];
    remainder remainder_ remainder_out => BinaryOp::Remainder, Promoted;
    /// What a quotient rounded towards zero leaves, with the dividend's sign.
    [7.0, -7.0], [3.0, 3.0] => [1.0, -1.0];
    fmod fmod_ fmod_out => BinaryOp::Fmod, Promoted;
    /// The power in `float64` (`complex128`), whatever the dtypes.
    [2.0, 9.0], [3.0, 0.5] => [8.0, 3.0];
    float_power float_power_ float_power_out => BinaryOp::Pow, Double;
    /// The bits that both have; `and` for `bool`.
    [6, 5], [3, 4] => [2, 4];
    bitwise_and bitwise_and_ bitwise_and_out => BinaryOp::BitwiseAnd, Promoted;
    /// The bits that either has; `or` for `bool`.
    [6, 5], [3, 4] => [7, 5];
    bitwise_or bitwise_or_ bitwise_or_out => BinaryOp::BitwiseOr, Promoted;
    /// The bits that differ; unequal for `bool`.
    [6, 5], [3, 4] => [5, 1];
    bitwise_xor bitwise_xor_ bitwise_xor_out => BinaryOp::BitwiseXor, Promoted;
    /// The bits moved up; 0 where they move out.
    [1, 3], [4, 1] => [16, 6];
    bitwise_left_shift bitwise_left_shift_ bitwise_left_shift_out => BinaryOp::ShiftLeft, Promoted;
    /// The bits moved down, the sign kept.
    [16, -8], [4, 1] => [1, -4];
    bitwise_right_shift bitwise_right_shift_ bitwise_right_shift_out => BinaryOp::ShiftRight, Promoted;
    /// `x` with the sign of `y`.
    [1.0, -2.0], [-3.0, 4.0] => [-1.0, 2.0];
    copysign copysign_ copysign_out => BinaryOp::Copysign, Float;
    /// `x · log(y)`; 0 where `x` is 0, but NaN where `y` is NaN.
    [0.0, 2.0], [0.0, 2.718281828459045] => [0.0, 2.0];
    xlogy xlogy_ xlogy_out => BinaryOp::Xlogy, Float;
}

binary! { Binary with Tensor:
    /// The larger one; NaN where either is.
    [1.0, 5.0], [3.0, 2.0] => [3.0, 5.0];
    maximum maximum_ maximum_out => BinaryOp::Maximum, Promoted;
    /// The smaller one; NaN where either is.
    [1.0, 5.0], [3.0, 2.0] => [1.0, 2.0];
    minimum minimum_ minimum_out => BinaryOp::Minimum, Promoted;
    /// The larger one; the other where one is NaN.
    [1.0, f64::NAN], [3.0, 2.0] => [3.0, 2.0];
    fmax fmax_ fmax_out => BinaryOp::Fmax, Promoted;
    /// The smaller one; the other where one is NaN.
    [1.0, f64::NAN], [3.0, 2.0] => [1.0, 2.0];
    fmin fmin_ fmin_out => BinaryOp::Fmin, Promoted;
    /// The angle of the point (other, self).
    [1.0, 1.0], [1.0, -1.0] => [0.7853981633974483, 2.356194490192345];
    atan2 atan2_ atan2_out => BinaryOp::Atan2, Float;
    /// `sqrt(x² + y²)`.
    [3.0, 5.0], [4.0, 12.0] => [5.0, 13.0];
    hypot hypot_ hypot_out => BinaryOp::Hypot, Promoted;
    /// The neighbour of `x` towards `y`.
    [0.0, 1.0], [1.0, 1.0] => [5e-324, 1.0];
    nextafter nextafter_ nextafter_out => BinaryOp::NextAfter, Promoted;
    /// 0 for negative numbers and NaN, 1 for positive ones, and `y` at 0. Both have one dtype.
    [-2.0, 0.0, 3.0], [0.5, 0.5, 0.5] => [0.0, 0.5, 1.0];
    heaviside heaviside_ heaviside_out => BinaryOp::Heaviside, Same;
    /// `log(e^x + e^y)`, without overflow on the way.
    [0.0, 1000.0], [0.0, 1000.0] => [0.6931471805599453, 1000.6931471805599];
    logaddexp logaddexp_ logaddexp_out => BinaryOp::LogAddExp, Promoted;
    /// `log2(2^x + 2^y)`, without overflow on the way.
    [0.0, 3.0], [0.0, 3.0] => [1.0, 4.0];
    logaddexp2 logaddexp2_ logaddexp2_out => BinaryOp::LogAddExp2, Promoted;
}

binary! { Compare with Operand:
    /// Whether they are equal, as `bool`.
    [1.0, 2.0, 3.0], [2.0, 2.0, 2.0] => [false, true, false];
    eq eq_ eq_out => CompareOp::Eq, Promoted;
    /// Whether they differ, as `bool`.
    [1.0, 2.0, 3.0], [2.0, 2.0, 2.0] => [true, false, true];
    ne ne_ ne_out => CompareOp::Ne, Promoted;
    /// Whether the first is smaller, as `bool`.
    [1.0, 2.0, 3.0], [2.0, 2.0, 2.0] => [true, false, false];
    lt lt_ lt_out => CompareOp::Lt, Promoted;
    /// Whether the first is not larger, as `bool`.
    [1.0, 2.0, 3.0], [2.0, 2.0, 2.0] => [true, true, false];
    le le_ le_out => CompareOp::Le, Promoted;
    /// Whether the first is larger, as `bool`.
    [1.0, 2.0, 3.0], [2.0, 2.0, 2.0] => [false, false, true];
    gt gt_ gt_out => CompareOp::Gt, Promoted;
    /// Whether the first is not smaller, as `bool`.
    [1.0, 2.0, 3.0], [2.0, 2.0, 2.0] => [false, true, true];
    ge ge_ ge_out => CompareOp::Ge, Promoted;
}

binary! { Compare with Tensor:
    /// Whether both are true, as `bool`.
    [0.0, 0.0, 1.0], [0.0, 2.0, 3.0] => [false, false, true];
    logical_and logical_and_ logical_and_out => CompareOp::LogicalAnd, Promoted;
    /// Whether either is true, as `bool`.
    [0.0, 0.0, 1.0], [0.0, 2.0, 3.0] => [false, true, true];
    logical_or logical_or_ logical_or_out => CompareOp::LogicalOr, Promoted;
    /// Whether just one is true, as `bool`.
    [0.0, 0.0, 1.0], [0.0, 2.0, 3.0] => [false, true, false];
    logical_xor logical_xor_ logical_xor_out => CompareOp::LogicalXor, Promoted;
}
