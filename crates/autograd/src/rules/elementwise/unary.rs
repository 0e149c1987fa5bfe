//! Derivatives of operations of one element.

use super::{NOTHING, OUT, Part, Seen, X, part, refused, zero};
use crate::Tensor;
use crate::pointwise::{Pointwise, pairwise};
use num_complex::Complex;
use osteon_spec::{Result, Scalar};
use osteon_tensor::{BinaryOp as B, Compute, Op, UnaryOp as U};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};

/// The derivative of an operation with these numbers. In place, a few are made of the result instead of the operand,
/// as in PyTorch, which saves a copy.
pub(crate) fn unary(op: U, numbers: &[Scalar], in_place: bool) -> Part {
    let x_or_out = if in_place { OUT } else { X };
    match op {
        U::Neg => part(NOTHING, |s| s.g.neg()),
        U::Conj => part(NOTHING, |s| s.g.conj()),
        U::Frac => part(NOTHING, |s| Ok(s.g.clone())),
        U::Deg2Rad => part(NOTHING, |s| s.g.deg2rad()),
        U::Rad2Deg => part(NOTHING, |s| s.g.rad2deg()),
        U::Abs => part(X, |s| real_gradient(s)?.mul(&s.x()?.sgn()?)),
        U::Cube => part(X, |s| s.g.mul(&s.x()?.square()?.mul(3)?.conj()?)),
        U::Square => part(X, |s| s.g.mul(&s.x()?.mul(2)?.conj()?)),
        U::Sgn => part(X | OUT, sgn),
        U::Angle => part(X, angle),
        U::Sqrt => part(OUT, |s| s.g.div(&s.out()?.mul(2)?.conj()?)),
        U::Rsqrt => part(OUT, |s| s.g.mul(&s.out()?.pow(3)?.mul(-0.5)?.conj()?)),
        U::Reciprocal => part(OUT, |s| s.g.mul(&s.out()?.square()?.neg()?.conj()?)),
        U::Exp => part(OUT, |s| s.g.mul(&s.out()?.conj()?)),
        U::Exp2 => part(OUT, |s| s.g.mul(&s.out()?.mul(LN_2)?.conj()?)),
        U::Expm1 => part(OUT, |s| s.g.mul(&s.out()?.add(1)?.conj()?)),
        U::Log => part(X, |s| s.g.div(&s.x()?.conj()?)),
        U::Log2 => part(X, |s| s.g.div(&s.x()?.mul(LN_2)?.conj()?)),
        U::Log10 => part(X, |s| s.g.div(&s.x()?.mul(LN_10)?.conj()?)),
        U::Log1p => part(X, |s| s.g.div(&s.x()?.add(1)?.conj()?)),
        U::Sin => part(X, |s| s.g.mul(&s.x()?.cos()?.conj()?)),
        U::Cos => part(X, |s| s.g.mul(&s.x()?.sin()?.neg()?.conj()?)),
        U::Tan => part(OUT, |s| s.g.mul(&s.out()?.square()?.add(1)?.conj()?)),
        U::Asin => part(X, |s| s.g.mul(&one_minus_square(s)?.rsqrt()?.conj()?)),
        U::Acos => part(X, |s| {
            s.g.mul(&one_minus_square(s)?.rsqrt()?.neg()?.conj()?)
        }),
        U::Atan => part(X, |s| s.g.div(&s.x()?.square()?.add(1)?.conj()?)),
        U::Sinh => part(X, |s| s.g.mul(&s.x()?.cosh()?.conj()?)),
        U::Cosh => part(X, |s| s.g.mul(&s.x()?.sinh()?.conj()?)),
        U::Tanh => part(OUT, |s| s.fused("tanh_backward", B::TanhGrad, &s.out()?)),
        U::Asinh => part(X, |s| s.g.mul(&s.x()?.square()?.add(1)?.rsqrt()?.conj()?)),
        U::Acosh => part(X, acosh),
        U::Atanh => part(X, |s| s.g.div(&one_minus_square(s)?.conj()?)),
        U::Sinc => part(X, sinc),
        U::Erf => part(X, |s| erf_slope(s, FRAC_2_SQRT_PI)),
        U::Erfc => part(X, |s| erf_slope(s, -FRAC_2_SQRT_PI)),
        U::Erfinv => part(X, |s| {
            let slope = s.x()?.erfinv()?.square()?.exp()?;
            s.g.mul(&slope.mul(1.0 / FRAC_2_SQRT_PI)?)
        }),
        U::Lgamma => part(X, |s| s.g.mul(&s.x()?.digamma()?)),
        U::Digamma => part(X, |s| s.g.mul(&polygamma(&s.x()?, 1.0)?)),
        U::Polygamma => part(X, |s| s.g.mul(&polygamma(&s.x()?, s.real(0) + 1.0)?)),
        U::Logit => part(X, logit),
        U::NanToNum => part(X, |s| s.g.r#where(&s.x()?.isfinite()?, 0)),
        U::Relu => part(OUT, |s| {
            let y = s.out()?;
            pairwise(
                "threshold_backward",
                B::ThresholdGrad,
                &s.g,
                &y,
                &[0.0.into()],
            )
        }),
        U::Sigmoid => part(OUT, |s| {
            s.fused("sigmoid_backward", B::SigmoidGrad, &s.out()?)
        }),
        U::Hardtanh => part(x_or_out, |s| {
            s.fused("hardtanh_backward", B::HardtanhGrad, &s.x_or_out()?)
        }),
        U::Hardsigmoid => part(X, |s| {
            let (x, inside) = (s.x()?, [(-3.0).into(), 3.0.into()]);
            pairwise("hardsigmoid_backward", B::Within, &s.g, &x, &inside)?.mul(1.0 / 6.0)
        }),
        U::Hardswish => part(X, |s| {
            s.fused("hardswish_backward", B::HardswishGrad, &s.x()?)
        }),
        U::Hardshrink => part(X, |s| {
            s.fused("hardshrink_backward", B::HardshrinkGrad, &s.x()?)
        }),
        U::Softshrink => part(X, |s| {
            s.fused("softshrink_backward", B::HardshrinkGrad, &s.x()?)
        }),
        U::Threshold => part(X, |s| {
            s.fused("threshold_backward", B::ThresholdGrad, &s.x()?)
        }),
        // A negative slope does not keep signs, so that the result does not tell them.
        U::LeakyRelu if matches!(numbers, [Scalar::Float(slope)] if *slope < 0.0) => {
            part(X, leaky_relu)
        }
        U::LeakyRelu => part(x_or_out, leaky_relu),
        U::Elu if in_place => part(OUT, |s| {
            s.fused("elu_backward", B::EluGradOfResult, &s.out()?)
        }),
        U::Elu => part(X, |s| s.fused("elu_backward", B::EluGrad, &s.x()?)),
        U::Gelu => part(X, |s| s.fused("gelu_backward", B::GeluGrad, &s.x()?)),
        U::GeluTanh => part(X, |s| {
            s.fused("gelu_tanh_backward", B::GeluTanhGrad, &s.x()?)
        }),
        U::Silu => part(X, |s| s.fused("silu_backward", B::SiluGrad, &s.x()?)),
        U::Mish => part(X, |s| s.fused("mish_backward", B::MishGrad, &s.x()?)),
        U::Softplus => part(X, |s| {
            s.fused("softplus_backward", B::SoftplusGrad, &s.x()?)
        }),
        U::LogSigmoid => part(X, |s| {
            s.fused("log_sigmoid_backward", B::Gate, &s.x()?.neg()?)
        }),
        U::Sign | U::Floor | U::Ceil | U::Round | U::RoundDecimals | U::Trunc => zero(NOTHING),
        // Of truth values: in place, what was there before is lost.
        U::IsNan
        | U::IsInf
        | U::IsFinite
        | U::SignBit
        | U::LogicalNot
        | U::IsPosInf
        | U::IsNegInf
        | U::IsReal => zero(NOTHING),
        // Of integers.
        U::BitwiseNot => refused(),
    }
}

/// `1 - x²`.
fn one_minus_square(s: &Seen<'_>) -> Result<Tensor> {
    s.x()?.square()?.rsub(1, 1)
}

/// Along the circle of complex numbers of one magnitude, as far as the gradient is; none of real numbers.
fn sgn(s: &Seen<'_>) -> Result<Tensor> {
    let (x, sgn) = (s.x()?, s.out()?);
    if !x.dtype().is_complex() {
        return s.g.zeros_like(None);
    }
    let radial = s.g.mul(&sgn.conj()?)?.real()?;
    let along = s.g.sub(&sgn.mul(&radial)?)?.div(&x.abs()?)?;
    along.masked_fill(&x.eq(0)?, 0)
}

fn angle(s: &Seen<'_>) -> Result<Tensor> {
    let x = s.x()?;
    if !x.dtype().is_complex() {
        return s.g.zeros_like(None);
    }
    // i·x / |x|².
    let slope = x.mul(Complex::new(0.0, 1.0))?.div(&x.abs()?.square()?)?;
    real_gradient(s)?.mul(&slope.masked_fill(&x.eq(0)?, 0)?)
}

/// The gradient of a real result, which in place lies in a complex tensor.
fn real_gradient(s: &Seen<'_>) -> Result<Tensor> {
    if s.g.dtype().is_complex() {
        s.g.real()
    } else {
        Ok(s.g.clone())
    }
}

fn acosh(s: &Seen<'_>) -> Result<Tensor> {
    let x = s.x()?;
    let slope = if x.dtype().is_complex() {
        // In two roots, whose branches are those of acosh.
        x.sub(1)?.rsqrt()?.mul(&x.add(1)?.rsqrt()?)?
    } else {
        x.square()?.sub(1)?.rsqrt()?
    };
    s.g.mul(&slope.conj()?)
}

/// `(cos(πx) - sinc(x)) / x`, and 0 at 0.
fn sinc(s: &Seen<'_>) -> Result<Tensor> {
    let x = s.x()?;
    let scaled = x.mul(PI)?;
    let rise = scaled.mul(&scaled.cos()?)?.sub(&scaled.sin()?)?;
    let slope = rise.div(&x.square()?.mul(PI)?)?;
    s.g.mul(&slope.masked_fill(&x.eq(0)?, 0)?.conj()?)
}

fn erf_slope(s: &Seen<'_>, scale: f64) -> Result<Tensor> {
    s.g.mul(&s.x()?.square()?.neg()?.exp()?.mul(scale)?)
}

#[track_caller]
fn polygamma(x: &Tensor, order: f64) -> Result<Tensor> {
    Pointwise {
        name: "polygamma",
        op: Op::Unary(U::Polygamma),
        compute: Compute::Float,
        operands: [x.into()],
        numbers: &[order.into()],
    }
    .fresh()
}

/// `1 / (x·(1 - x))`; beyond the bounds 0 or, where there are none, NaN beyond 0 and 1.
fn logit(s: &Seen<'_>) -> Result<Tensor> {
    let x = s.x()?;
    let (low, high, beyond) = match (s.real(0), s.real(1)) {
        (f64::NEG_INFINITY, _) => (0.0, 1.0, f64::NAN),
        (low, high) => (low, high, 0.0),
    };
    let inside = x.ge(low)?.logical_and(&x.le(high)?)?;
    let slope = s.g.div(&x.mul(&x.rsub(1, 1)?)?)?;
    slope.r#where(&inside, beyond)
}

fn leaky_relu(s: &Seen<'_>) -> Result<Tensor> {
    s.fused("leaky_relu_backward", B::LeakyReluGrad, &s.x_or_out()?)
}
