//! Derivatives of operations of two elements.

use super::{NOTHING, NUMBER, OUT, Part, Seen, Value, X, Y, part, refused, zero};
use crate::pointwise::pairwise;
use crate::{Rounding, Tensor};
use num_complex::Complex;
use osteon_spec::{Result, Scalar};
use osteon_tensor::BinaryOp as B;
use std::f64::consts::PI;

/// The derivative of an operation that is linear in its first operand: itself. In complex numbers it holds conjugates.
macro_rules! again {
    ($op:ident) => {
        part(Y, |s| s.fused(s.name(), B::$op, &s.y()?.conj()?))
    };
}

/// The derivatives of an operation by its operands.
pub(crate) fn binary(op: B) -> [Part; 2] {
    let same = part(NOTHING, |s| Ok(s.g.clone()));
    match op {
        B::Add => [same; 2],
        B::AddScaled => [same, part(NOTHING, |s| scaled(s, 1))],
        B::Sub => [same, part(NOTHING, |s| s.g.neg())],
        B::SubScaled => [same, part(NOTHING, |s| scaled(s, -1))],
        B::Mul => [
            part(Y | NUMBER, |s| s.g.mul(&s.operand(Y)?.conj()?)),
            part(X | NUMBER, |s| s.g.mul(&s.operand(X)?.conj()?)),
        ],
        B::Div => [
            part(Y | NUMBER, |s| s.g.div(&s.operand(Y)?.conj()?)),
            part(X | Y, |s| {
                let y = s.y()?;
                s.g.mul(&s.x()?.div(&y)?.div(&y)?.neg()?.conj()?)
            }),
        ],
        B::DivTrunc | B::FloorDivide => [zero(Y | NUMBER), zero(X | Y)],
        B::Remainder => [same, part(X | Y, |s| quotient(s, Rounding::Floor))],
        B::Fmod => [same, part(X | Y, |s| quotient(s, Rounding::Trunc))],
        B::Pow => [
            part(X | Y, power_of_base),
            part(X | Y | OUT, power_of_exponent),
        ],
        B::Maximum => [
            part(X | Y, |s| match s.operand(Y)? {
                Value::Number(n) => s.g.r#where(&s.x()?.gt(n)?, 0),
                Value::Tensor(y) => won(s, &s.x()?, &y),
            }),
            part(X | Y, |s| won(s, &s.y()?, &s.x()?)),
        ],
        B::Minimum => [
            part(X | Y, |s| match s.operand(Y)? {
                Value::Number(n) => s.g.r#where(&s.x()?.lt(n)?, 0),
                Value::Tensor(y) => lost(s, &s.x()?, &y),
            }),
            part(X | Y, |s| lost(s, &s.y()?, &s.x()?)),
        ],
        B::Fmax => [
            part(X | Y, |s| {
                half_of_ties(s)?.r#where(&first_is(s, |x, y| x.ge(y))?, 0)
            }),
            part(X | Y, |s| {
                let first = first_is(s, |x, y| x.gt(y))?;
                half_of_ties(s)?.masked_fill(&first, 0)
            }),
        ],
        B::Fmin => [
            part(X | Y, |s| {
                half_of_ties(s)?.r#where(&first_is(s, |x, y| x.le(y))?, 0)
            }),
            part(X | Y, |s| {
                let first = first_is(s, |x, y| x.lt(y))?;
                half_of_ties(s)?.masked_fill(&first, 0)
            }),
        ],
        B::Atan2 => [
            part(X | Y, |s| s.g.mul(&s.y()?.mul(&inverse_square(s)?)?)),
            part(X | Y, |s| s.g.mul(&s.x()?.mul(&inverse_square(s)?)?.neg()?)),
        ],
        B::Hypot => [
            part(X | OUT, |s| s.g.mul(&s.x()?.div(&s.out()?)?)),
            part(Y | OUT, |s| s.g.mul(&s.y()?.div(&s.out()?)?)),
        ],
        B::Copysign => [
            part(X | OUT, |s| {
                let x = s.x()?;
                s.g.mul(&s.out()?.div(&x)?.masked_fill(&x.eq(0)?, 0)?)
            }),
            zero(NOTHING),
        ],
        B::LogAddExp => [
            part(X | Y, |s| {
                s.g.div(&s.y()?.sub(&s.x()?)?.exp()?.add(1)?.conj()?)
            }),
            part(X | Y, |s| {
                s.g.div(&s.x()?.sub(&s.y()?)?.exp()?.add(1)?.conj()?)
            }),
        ],
        B::LogAddExp2 => [
            part(X | Y, |s| s.g.div(&s.y()?.sub(&s.x()?)?.exp2()?.add(1)?)),
            part(X | Y, |s| s.g.div(&s.x()?.sub(&s.y()?)?.exp2()?.add(1)?)),
        ],
        B::Xlogy => [
            part(X | Y, |s| {
                let (x, y) = (s.x()?, s.y()?);
                let nothing = x.eq(0)?.logical_and(&y.le(0)?)?;
                s.g.xlogy(&y)?.masked_fill(&nothing, 0)
            }),
            part(X | Y, |s| s.g.mul(&s.x()?)?.div(&s.y()?)),
        ],
        B::NextAfter => [
            part(X | Y, |s| s.g.r#where(&s.x()?.ne(&s.y()?)?, 0)),
            zero(X | Y),
        ],
        // The sweep takes the real part.
        B::Complex => [same, part(NOTHING, |s| s.g.mul(Complex::new(0.0, -1.0)))],
        B::Polar => [
            part(OUT, |s| s.g.mul(&s.out()?.sgn()?.conj()?)),
            part(OUT, |s| {
                s.g.mul(&s.out()?.mul(Complex::new(0.0, 1.0))?.conj()?)
            }),
        ],
        B::Heaviside => [refused(); 2],
        // Of integers.
        B::BitwiseAnd | B::BitwiseOr | B::BitwiseXor | B::ShiftLeft | B::ShiftRight => {
            [refused(); 2]
        }
        B::Prelu => [
            part(X | Y, |s| {
                let x = s.x()?;
                s.g.r#where(&x.gt(0)?, &s.g.mul(&s.y()?)?)
            }),
            part(X, |s| {
                let x = s.x()?;
                s.g.mul(&x)?.masked_fill(&x.gt(0)?, 0)
            }),
        ],
        B::Gate => [
            part(Y, |s| s.fused("glu_backward", B::Gate, &s.y()?)),
            part(X | Y, |s| {
                pairwise(
                    "glu_backward",
                    B::SigmoidGrad,
                    &s.g.mul(&s.x()?)?,
                    &s.y()?.sigmoid()?,
                    &[],
                )
            }),
        ],
        B::SquaredError => [
            part(X | Y, |s| s.g.mul(&difference(s)?.mul(2)?)),
            part(X | Y, |s| s.g.mul(&difference(s)?.mul(-2)?)),
        ],
        B::SmoothL1 => [
            part(X | Y, |s| s.g.mul(&bounded(s)?)),
            part(X | Y, |s| s.g.mul(&bounded(s)?.neg()?)),
        ],
        B::Huber => [
            part(X | Y, |s| s.g.mul(&bounded(s)?.mul(s.number(0))?)),
            part(X | Y, |s| s.g.mul(&bounded(s)?.mul(s.number(0))?.neg()?)),
        ],
        B::BinaryCrossEntropy => [
            part(X | Y, |s| {
                let x = s.x()?;
                let least = x.rsub(1, 1)?.mul(&x)?.clamp_min(1e-12)?;
                s.g.mul(&x.sub(&s.y()?)?)?.div(&least)
            }),
            part(X, |s| {
                let x = s.x()?;
                s.g.mul(&x.neg()?.log1p()?.sub(&x.log()?)?)
            }),
        ],
        B::KlDiv => [
            part(Y, |s| s.g.mul(&s.y()?.neg()?)),
            part(X | Y, |s| {
                let y = s.y()?;
                // y / y is 1, but as in PyTorch NaN where y is 0.
                s.g.mul(&y.log()?.add(&y.div(&y)?)?.sub(&s.x()?)?)
            }),
        ],
        B::KlDivLog => [
            part(Y, |s| s.g.mul(&s.y()?.exp()?.neg()?)),
            part(X | Y, |s| {
                let y = s.y()?;
                s.g.mul(&y.exp()?.mul(&y.sub(&s.x()?)?.add(1)?)?)
            }),
        ],
        // Derivatives times a gradient, in which they are linear.
        B::ThresholdGrad => [again!(ThresholdGrad), zero(NOTHING)],
        B::HardtanhGrad => [again!(HardtanhGrad), zero(NOTHING)],
        B::Within => [again!(Within), zero(NOTHING)],
        B::HardshrinkGrad => [again!(HardshrinkGrad), zero(NOTHING)],
        B::LeakyReluGrad => [again!(LeakyReluGrad), zero(NOTHING)],
        B::EluGrad => [again!(EluGrad), part(X | Y, |s| bend(s, elu_bend))],
        B::EluGradOfResult => [
            again!(EluGradOfResult),
            part(X | Y, |s| {
                let bend = s.g.mul(&s.x()?)?.mul(s.number(2))?;
                bend.masked_fill(&s.y()?.gt(0)?, 0)
            }),
        ],
        B::SigmoidGrad => [
            again!(SigmoidGrad),
            part(X | Y, |s| bend(s, |_, y| y.rsub(1, 2))),
        ],
        B::TanhGrad => [again!(TanhGrad), part(X | Y, |s| bend(s, |_, y| y.mul(-2)))],
        B::GeluGrad => [again!(GeluGrad), part(X | Y, |s| bend(s, gelu_bend))],
        B::GeluTanhGrad => [
            again!(GeluTanhGrad),
            part(X | Y, |s| bend(s, gelu_tanh_bend)),
        ],
        B::SiluGrad => [again!(SiluGrad), part(X | Y, |s| bend(s, silu_bend))],
        B::MishGrad => [again!(MishGrad), part(X | Y, |s| bend(s, mish_bend))],
        B::SoftplusGrad => [
            again!(SoftplusGrad),
            part(X | Y, |s| bend(s, softplus_bend)),
        ],
        B::HardswishGrad => [
            again!(HardswishGrad),
            part(X | Y, |s| {
                let inside = [(-3.0).into(), 3.0.into()];
                pairwise("hardswish_backward", B::Within, &s.g, &s.y()?, &inside)?
                    .mul(&s.x()?.div(3)?)
            }),
        ],
    }
}

/// `alpha · g`, or its negative, with the operation's first number.
fn scaled(s: &Seen<'_>, sign: i64) -> Result<Tensor> {
    s.g.mul(&Value::Number(s.number(0)).conj()?)?.mul(sign)
}

/// `-g` times the quotient that a remainder leaves something of.
fn quotient(s: &Seen<'_>, rounding: Rounding) -> Result<Tensor> {
    s.g.mul(&s.x()?.div_rounding(&s.y()?, rounding)?.neg()?)
}

/// `y · x^(y-1)`; 0 where `y` is, also where `x` is.
fn power_of_base(s: &Seen<'_>) -> Result<Tensor> {
    // The power of float_power() is wider than its operands.
    let x = s.x()?.to(s.g.dtype())?;
    match s.operand(Y)? {
        Value::Number(n) => match one_less(n) {
            None => s.g.zeros_like(None),
            Some(less) => s.g.mul(&x.pow(less)?.mul(n)?.conj()?),
        },
        Value::Tensor(y) => {
            let slope = x.pow(&y.sub(1)?)?.mul(&y)?;
            s.g.mul(&slope.conj()?)?.masked_fill(&y.eq(0)?, 0)
        }
    }
}

/// `n - 1`, unless `n` is 0.
fn one_less(n: Scalar) -> Option<Scalar> {
    Some(match n {
        Scalar::Bool(false) | Scalar::Int(0) | Scalar::UInt(0) => return None,
        Scalar::Bool(true) => Scalar::Int(0),
        Scalar::Int(i) => Scalar::Int(i.saturating_sub(1)),
        Scalar::UInt(u) => Scalar::UInt(u - 1),
        Scalar::Float(x) | Scalar::Complex(x, 0.0) if x == 0.0 => return None,
        Scalar::Float(x) => Scalar::Float(x - 1.0),
        Scalar::Complex(re, im) => Scalar::Complex(re - 1.0, im),
    })
}

/// `x^y · log(x)`; 0 where `x` is, but for negative and complex powers.
fn power_of_exponent(s: &Seen<'_>) -> Result<Tensor> {
    let (x, y) = (s.x()?.to(s.g.dtype())?, s.y()?);
    let slope = s.out()?.mul(&x.log()?)?;
    let positive = if y.dtype().is_complex() {
        y.real()?.ge(0)?.logical_and(&y.imag()?.eq(0)?)?
    } else {
        y.ge(0)?
    };
    let nothing = x.eq(0)?.logical_and(&positive)?;
    s.g.mul(&slope.conj()?)?.masked_fill(&nothing, 0)
}

/// `g` where the operands differ, and half of it where they are equal.
fn half_of_ties(s: &Seen<'_>) -> Result<Tensor> {
    s.g.div(2)?.r#where(&s.x()?.eq(&s.y()?)?, &s.g)
}

/// What a maximum gives to the operand `a`. NaN gives to both.
fn won(s: &Seen<'_>, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    half_of_ties(s)?.masked_fill(&a.lt(b)?, 0)
}

/// What a minimum gives to the operand `a`. NaN gives to both.
fn lost(s: &Seen<'_>, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    half_of_ties(s)?.masked_fill(&a.gt(b)?, 0)
}

/// Whether the first operand is the result, by a comparison, and because the second is NaN.
fn first_is(s: &Seen<'_>, by: fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let y = s.y()?;
    by(&s.x()?, &y)?.logical_or(&y.isnan()?)
}

/// `1 / (x² + y²)`, and 0 at 0.
fn inverse_square(s: &Seen<'_>) -> Result<Tensor> {
    // Squares of integers may not fit.
    let dtype = s.g.dtype();
    let square = s
        .x()?
        .to(dtype)?
        .square()?
        .add(&s.y()?.to(dtype)?.square()?)?;
    square.reciprocal()?.masked_fill(&square.eq(0)?, 0)
}

/// `x - y`.
fn difference(s: &Seen<'_>) -> Result<Tensor> {
    s.x()?.sub(&s.y()?)
}

/// `(x - y) / beta`, between -1 and 1; a `beta` of 0 leaves the sign.
fn bounded(s: &Seen<'_>) -> Result<Tensor> {
    match s.real(0) {
        0.0 => difference(s)?.sgn(),
        beta => difference(s)?.div(beta)?.clamp(-1, 1),
    }
}

/// `g · x` times the second derivative at `y` of the operation whose derivative this is.
fn bend(s: &Seen<'_>, second: fn(&Seen<'_>, &Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let y = s.y()?.conj()?;
    s.g.conj()?.mul(&s.x()?)?.mul(&second(s, &y)?)
}

fn elu_bend(s: &Seen<'_>, x: &Tensor) -> Result<Tensor> {
    let (alpha, rate) = (s.real(1), s.real(2));
    let bend = x.mul(rate)?.exp()?.mul(alpha * rate * rate)?;
    bend.r#where(&x.lt(0)?, 0)
}

/// `φ(x) · (2 - x²)`, with the density of the normal distribution.
fn gelu_bend(_: &Seen<'_>, x: &Tensor) -> Result<Tensor> {
    let square = x.square()?;
    let density = square.mul(-0.5)?.exp()?.mul(1.0 / (2.0 * PI).sqrt())?;
    density.mul(&square.rsub(2, 1)?)
}

fn gelu_tanh_bend(_: &Seen<'_>, x: &Tensor) -> Result<Tensor> {
    let (scale, cubic) = ((2.0 / PI).sqrt(), 0.044715);
    let square = x.square()?;
    let t = x.mul(&square.mul(cubic)?.add(1)?)?.mul(scale)?.tanh()?;
    // Derivatives of what tanh takes, and of tanh.
    let inner = square.mul(3.0 * cubic)?.add(1)?.mul(scale)?;
    let slope = t.square()?.rsub(1, 1)?;
    // x · (½·inner' - t·inner²).
    let turn = x
        .mul(6.0 * cubic * scale)?
        .div(2)?
        .sub(&t.mul(&inner.square()?)?)?;
    slope.mul(&inner.add(&x.mul(&turn)?)?)
}

/// `σ(1-σ) · (2 + x(1-2σ))`.
fn silu_bend(_: &Seen<'_>, x: &Tensor) -> Result<Tensor> {
    let sigmoid = x.sigmoid()?;
    let slope = sigmoid.mul(&sigmoid.rsub(1, 1)?)?;
    slope.mul(&x.mul(&sigmoid.rsub(1, 2)?)?.add(2)?)
}

/// Of `x·t`, where `t` is `tanh(softplus(x))`: `2t' + x·t''`.
fn mish_bend(_: &Seen<'_>, x: &Tensor) -> Result<Tensor> {
    let (sigmoid, t) = (x.sigmoid()?, x.softplus(1.0, 20.0)?.tanh()?);
    let slope = t.square()?.rsub(1, 1)?.mul(&sigmoid)?;
    // t'' is t' · (1 - σ - 2tσ).
    let turn = sigmoid.mul(&t.mul(2)?.add(1)?)?.rsub(1, 1)?;
    slope.mul(&x.mul(&turn)?.add(2)?)
}

fn softplus_bend(s: &Seen<'_>, x: &Tensor) -> Result<Tensor> {
    let (beta, threshold) = (s.real(0), s.real(1));
    let scaled = x.mul(beta)?;
    let sigmoid = scaled.sigmoid()?;
    let bend = sigmoid.mul(&sigmoid.rsub(1, 1)?)?.mul(beta)?;
    bend.masked_fill(&scaled.ge(threshold)?, 0)
}
