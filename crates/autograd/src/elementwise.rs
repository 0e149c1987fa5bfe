//! Operations element by element, their forms in place (`_`) and into an output (`_out`).
//!
//! Shapes broadcast, dtypes promote, and results are laid out as in PyTorch; any strides are read as they are.

use crate::{Operand, Tensor};
use osteon_spec::Result;
use osteon_tensor::{Arg, BinaryOp, Call, CompareOp, Compute, Op, UnaryOp};

/// `method in-place-method out-method => operation, what it computes in;` for operations of one tensor.
macro_rules! unary {
    ($($(#[doc = $doc:literal])+ $name:ident $in_place:ident $out:ident => $op:ident, $compute:ident;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// A dtype for which it is not defined; a guard in the way; out of memory.
            #[track_caller]
            #[inline]
            pub fn $name(&self) -> Result<Tensor> {
                let args = [Arg::View(self.as_view())];
                unary(stringify!($name), UnaryOp::$op, Compute::$compute, &args).fresh().map(Tensor::from_view)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// A result that this dtype cannot hold; overlap; a guard in the way.
            #[track_caller]
            pub fn $in_place(&self) -> Result<()> {
                let args = [Arg::View(self.as_view())];
                unary(stringify!($in_place), UnaryOp::$op, Compute::$compute, &args).in_place(self.as_view())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// Another shape; a result that `out` cannot hold; overlap; a guard in the way.
            #[track_caller]
            pub fn $out(&self, out: &Tensor) -> Result<()> {
                let args = [Arg::View(self.as_view())];
                unary(stringify!($out), UnaryOp::$op, Compute::$compute, &args).out(out.as_view())
            }
        )* }
    };
}

pub(crate) fn unary<'a>(
    name: &'static str,
    op: UnaryOp,
    compute: Compute,
    args: &'a [Arg<'a>; 1],
) -> Call<'a> {
    Call {
        name,
        op: Op::Unary(op),
        compute,
        args,
        numbers: &[],
    }
}

/// The same for operations of two tensors, or (`Operand`) of a tensor and another or a number.
macro_rules! binary {
    ($kind:ident with Operand: $($rows:tt)*) => {
        binary! { @ $kind (impl Into<Operand<'a>>): $($rows)* }
    };
    ($kind:ident with Tensor: $($rows:tt)*) => {
        binary! { @ $kind (&'a Tensor): $($rows)* }
    };
    (@ $kind:ident ($other:ty): $($(#[doc = $doc:literal])+ $name:ident $in_place:ident $out:ident => $op:expr, $compute:ident;)*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result.
            ///
            /// # Errors
            /// Shapes that do not broadcast; dtypes that do not promote or for which it is not defined; a guard
            /// in the way; out of memory.
            #[track_caller]
            #[inline]
            pub fn $name<'a>(&self, other: $other) -> Result<Tensor> {
                let other: Operand<'a> = other.into();
                let args = [Arg::View(self.as_view()), other.arg()];
                binary(stringify!($name), Op::$kind($op), Compute::$compute, &args).fresh().map(Tensor::from_view)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// Another shape than this tensor's; a result that its dtype cannot hold; overlap; a guard in the
            /// way.
            #[track_caller]
            pub fn $in_place<'a>(&self, other: $other) -> Result<()> {
                let other: Operand<'a> = other.into();
                let args = [Arg::View(self.as_view()), other.arg()];
                binary(stringify!($in_place), Op::$kind($op), Compute::$compute, &args).in_place(self.as_view())
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] into `out`, which has the result's shape.")]
            ///
            /// # Errors
            /// Another shape; a result that `out` cannot hold; overlap; a guard in the way.
            #[track_caller]
            pub fn $out<'a>(&self, other: $other, out: &Tensor) -> Result<()> {
                let other: Operand<'a> = other.into();
                let args = [Arg::View(self.as_view()), other.arg()];
                binary(stringify!($out), Op::$kind($op), Compute::$compute, &args).out(out.as_view())
            }
        )* }
    };
}

pub(crate) fn binary<'a>(
    name: &'static str,
    op: Op,
    compute: Compute,
    args: &'a [Arg<'a>; 2],
) -> Call<'a> {
    Call {
        name,
        op,
        compute,
        args,
        numbers: &[],
    }
}

unary! {
    /// `-x`; integers wrap. Not for `bool`.
    neg neg_ neg_out => Neg, Promoted;
    /// The magnitude; that of a complex number is real.
    abs abs_ abs_out => Abs, Promoted;
    /// `x · x`.
    square square_ square_out => Square, Number;
    /// −1, 0 or 1; 0 for NaN.
    sign sign_ sign_out => Sign, Promoted;
    /// [`Tensor::sign`], and `x / |x|` for complex numbers.
    sgn sgn_ sgn_out => Sgn, Promoted;
    /// `x`, or 0 where it is negative.
    relu relu_ relu_out => Relu, Promoted;
    /// The square root.
    sqrt sqrt_ sqrt_out => Sqrt, Float;
    /// `1 / sqrt(x)`.
    rsqrt rsqrt_ rsqrt_out => Rsqrt, Float;
    /// `1 / x`.
    reciprocal reciprocal_ reciprocal_out => Reciprocal, Float;
    /// `e^x`.
    exp exp_ exp_out => Exp, Float;
    /// `2^x`.
    exp2 exp2_ exp2_out => Exp2, Float;
    /// `e^x - 1`, exact near 0.
    expm1 expm1_ expm1_out => Expm1, Float;
    /// The natural logarithm.
    log log_ log_out => Log, Float;
    /// The logarithm to base 2.
    log2 log2_ log2_out => Log2, Float;
    /// The logarithm to base 10.
    log10 log10_ log10_out => Log10, Float;
    /// `log(1 + x)`, exact near 0.
    log1p log1p_ log1p_out => Log1p, Float;
    /// The sine.
    sin sin_ sin_out => Sin, Float;
    /// The cosine.
    cos cos_ cos_out => Cos, Float;
    /// The tangent.
    tan tan_ tan_out => Tan, Float;
    /// The inverse sine.
    asin asin_ asin_out => Asin, Float;
    /// The inverse cosine.
    acos acos_ acos_out => Acos, Float;
    /// The inverse tangent.
    atan atan_ atan_out => Atan, Float;
    /// The hyperbolic sine.
    sinh sinh_ sinh_out => Sinh, Float;
    /// The hyperbolic cosine.
    cosh cosh_ cosh_out => Cosh, Float;
    /// The hyperbolic tangent.
    tanh tanh_ tanh_out => Tanh, Float;
    /// The inverse hyperbolic sine.
    asinh asinh_ asinh_out => Asinh, Float;
    /// The inverse hyperbolic cosine.
    acosh acosh_ acosh_out => Acosh, Float;
    /// The inverse hyperbolic tangent.
    atanh atanh_ atanh_out => Atanh, Float;
    /// `1 / (1 + e^-x)`.
    sigmoid sigmoid_ sigmoid_out => Sigmoid, Float;
    /// The largest integer not above.
    floor floor_ floor_out => Floor, Promoted;
    /// The smallest integer not below.
    ceil ceil_ ceil_out => Ceil, Promoted;
    /// The nearest integer, halves to even.
    round round_ round_out => Round, Promoted;
    /// The integer part.
    trunc trunc_ trunc_out => Trunc, Promoted;
    /// What [`Tensor::trunc`] takes away.
    frac frac_ frac_out => Frac, Promoted;
    /// Whether it is not a number, as `bool`.
    isnan isnan_ isnan_out => IsNan, Promoted;
    /// Whether it is infinite, as `bool`.
    isinf isinf_ isinf_out => IsInf, Promoted;
    /// Whether it is neither infinite nor NaN, as `bool`.
    isfinite isfinite_ isfinite_out => IsFinite, Promoted;
    /// Whether the sign bit is set, as `bool`.
    signbit signbit_ signbit_out => SignBit, Promoted;
    /// Whether it is zero, as `bool`.
    logical_not logical_not_ logical_not_out => LogicalNot, Promoted;
    /// Whether it is `∞`, as `bool`.
    isposinf isposinf_ isposinf_out => IsPosInf, Promoted;
    /// Whether it is `-∞`, as `bool`.
    isneginf isneginf_ isneginf_out => IsNegInf, Promoted;
    /// Whether its imaginary part is zero, as `bool`.
    isreal isreal_ isreal_out => IsReal, Promoted;
    /// From degrees to radians.
    deg2rad deg2rad_ deg2rad_out => Deg2Rad, Float;
    /// From radians to degrees.
    rad2deg rad2deg_ rad2deg_out => Rad2Deg, Float;
    /// `sin(πx) / πx`, 1 at 0.
    sinc sinc_ sinc_out => Sinc, Float;
    /// The error function.
    erf erf_ erf_out => Erf, Float;
    /// What the error function leaves of 1.
    erfc erfc_ erfc_out => Erfc, Float;
    /// The inverse of the error function.
    erfinv erfinv_ erfinv_out => Erfinv, Float;
    /// The logarithm of the magnitude of the gamma function.
    lgamma lgamma_ lgamma_out => Lgamma, Float;
    /// The derivative of [`Tensor::lgamma`].
    digamma digamma_ digamma_out => Digamma, Float;
    /// The argument of a complex number; 0 or π for a real one.
    angle angle_ angle_out => Angle, Float;
    /// Every bit the other way; `not` for `bool`.
    bitwise_not bitwise_not_ bitwise_not_out => BitwiseNot, Promoted;
}

binary! { Binary with Operand:
    /// The sum; `or` for `bool`.
    add add_ add_out => BinaryOp::Add, Promoted;
    /// The difference. Not for `bool`.
    sub sub_ sub_out => BinaryOp::Sub, Promoted;
    /// The product; `and` for `bool`.
    mul mul_ mul_out => BinaryOp::Mul, Promoted;
    /// The quotient, a float also of integers.
    div div_ div_out => BinaryOp::Div, Float;
    /// The quotient rounded down. Integers are not divided by zero: that is an error.
    floor_divide floor_divide_ floor_divide_out => BinaryOp::FloorDivide, Promoted;
    /// What [`Tensor::floor_divide`] leaves, with the divisor's sign: Python's `%`.
    remainder remainder_ remainder_out => BinaryOp::Remainder, Promoted;
    /// What a quotient rounded towards zero leaves, with the dividend's sign.
    fmod fmod_ fmod_out => BinaryOp::Fmod, Promoted;
    /// The power in `float64` (`complex128`), whatever the dtypes.
    float_power float_power_ float_power_out => BinaryOp::Pow, Double;
    /// The bits that both have; `and` for `bool`.
    bitwise_and bitwise_and_ bitwise_and_out => BinaryOp::BitwiseAnd, Promoted;
    /// The bits that either has; `or` for `bool`.
    bitwise_or bitwise_or_ bitwise_or_out => BinaryOp::BitwiseOr, Promoted;
    /// The bits that differ; unequal for `bool`.
    bitwise_xor bitwise_xor_ bitwise_xor_out => BinaryOp::BitwiseXor, Promoted;
    /// The bits moved up; 0 where they move out.
    bitwise_left_shift bitwise_left_shift_ bitwise_left_shift_out => BinaryOp::ShiftLeft, Promoted;
    /// The bits moved down, the sign kept.
    bitwise_right_shift bitwise_right_shift_ bitwise_right_shift_out => BinaryOp::ShiftRight, Promoted;
    /// `x` with the sign of `y`.
    copysign copysign_ copysign_out => BinaryOp::Copysign, Float;
    /// `x · log(y)`; 0 where `x` is 0, but NaN where `y` is NaN.
    xlogy xlogy_ xlogy_out => BinaryOp::Xlogy, Float;
}

binary! { Binary with Tensor:
    /// The larger one; NaN where either is.
    maximum maximum_ maximum_out => BinaryOp::Maximum, Promoted;
    /// The smaller one; NaN where either is.
    minimum minimum_ minimum_out => BinaryOp::Minimum, Promoted;
    /// The larger one; the other where one is NaN.
    fmax fmax_ fmax_out => BinaryOp::Fmax, Promoted;
    /// The smaller one; the other where one is NaN.
    fmin fmin_ fmin_out => BinaryOp::Fmin, Promoted;
    /// The angle of the point (other, self).
    atan2 atan2_ atan2_out => BinaryOp::Atan2, Float;
    /// `sqrt(x² + y²)`.
    hypot hypot_ hypot_out => BinaryOp::Hypot, Promoted;
    /// The neighbour of `x` towards `y`.
    nextafter nextafter_ nextafter_out => BinaryOp::NextAfter, Promoted;
    /// 0 for negative numbers and NaN, 1 for positive ones, and `y` at 0. Both have one dtype.
    heaviside heaviside_ heaviside_out => BinaryOp::Heaviside, Same;
    /// `log(e^x + e^y)`, without overflow on the way.
    logaddexp logaddexp_ logaddexp_out => BinaryOp::LogAddExp, Promoted;
    /// `log2(2^x + 2^y)`, without overflow on the way.
    logaddexp2 logaddexp2_ logaddexp2_out => BinaryOp::LogAddExp2, Promoted;
}

binary! { Compare with Operand:
    /// Whether they are equal, as `bool`.
    eq eq_ eq_out => CompareOp::Eq, Promoted;
    /// Whether they differ, as `bool`.
    ne ne_ ne_out => CompareOp::Ne, Promoted;
    /// Whether the first is smaller, as `bool`.
    lt lt_ lt_out => CompareOp::Lt, Promoted;
    /// Whether the first is not larger, as `bool`.
    le le_ le_out => CompareOp::Le, Promoted;
    /// Whether the first is larger, as `bool`.
    gt gt_ gt_out => CompareOp::Gt, Promoted;
    /// Whether the first is not smaller, as `bool`.
    ge ge_ ge_out => CompareOp::Ge, Promoted;
}

binary! { Compare with Tensor:
    /// Whether both are true, as `bool`.
    logical_and logical_and_ logical_and_out => CompareOp::LogicalAnd, Promoted;
    /// Whether either is true, as `bool`.
    logical_or logical_or_ logical_or_out => CompareOp::LogicalOr, Promoted;
    /// Whether just one is true, as `bool`.
    logical_xor logical_xor_ logical_xor_out => CompareOp::LogicalXor, Promoted;
}
