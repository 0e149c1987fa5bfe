//! Derivatives of operations of three elements.

use super::{NOTHING, Part, Seen, Value, X, Y, Z, part};
use crate::Tensor;
use crate::pointwise::Pointwise;
use osteon_spec::Result;
use osteon_tensor::{BinaryOp, Compute, Op, TernaryOp as T};

/// The derivatives of an operation by its operands.
pub(crate) fn ternary(op: T) -> [Part; 3] {
    let same = part(NOTHING, |s| Ok(s.g.clone()));
    match op {
        T::Addcmul => [
            same,
            part(Z, |s| s.g.mul(&s.z()?.mul(s.number(0))?.conj()?)),
            part(Y, |s| s.g.mul(&s.y()?.mul(s.number(0))?.conj()?)),
        ],
        T::Addcdiv => [
            same,
            part(Z, |s| {
                s.g.mul(&s.z()?.reciprocal()?.mul(s.number(0))?.conj()?)
            }),
            part(Y | Z, |s| {
                let slope = s.y()?.mul(s.number(0))?.div(&s.z()?.square()?)?;
                s.g.mul(&slope.neg()?.conj()?)
            }),
        ],
        T::Lerp => [
            part(Z, |s| s.g.mul(&s.z()?.rsub(1, 1)?.conj()?)),
            part(Z, |s| s.g.mul(&s.operand(Z)?.conj()?)),
            part(X | Y, |s| s.g.mul(&s.y()?.sub(&s.x()?)?.conj()?)),
        ],
        T::Clamp => [
            part(X | Y | Z, clamped),
            part(X | Y | Z, |s| {
                let (x, low, high) = (s.x()?, s.y()?, s.z()?);
                let all = x.lt(&low)?.logical_and(&low.le(&high)?)?;
                shared(s, &all, &x.eq(&low)?, &low.lt(&high)?)
            }),
            part(X | Y | Z, |s| {
                let (x, low, high) = (s.x()?, s.y()?, s.z()?);
                let above = x.gt(&high)?.logical_and(&low.le(&high)?)?;
                shared(
                    s,
                    &above.logical_or(&low.gt(&high)?)?,
                    &x.eq(&high)?,
                    &low.lt(&high)?,
                )
            }),
        ],
    }
}

/// What a clamp gives to the element: between numbers `g` strictly inside, as in PyTorch; between tensors `g` inside,
/// and half of it at a bound, which gets the other half.
fn clamped(s: &Seen<'_>) -> Result<Tensor> {
    let x = s.x()?;
    let (low, high) = match (s.operand(Y)?, s.operand(Z)?) {
        (Value::Number(low), Value::Number(high)) => {
            return Pointwise {
                name: "clamp_backward",
                op: Op::Binary(BinaryOp::Within),
                compute: Compute::Promoted,
                operands: [(&s.g).into(), (&x).into()],
                numbers: &[low, high],
            }
            .fresh();
        }
        _ => (s.y()?, s.z()?),
    };
    let beyond = x.lt(&low)?.logical_or(&x.gt(&high)?)?;
    let bound = x.eq(&low)?.logical_or(&x.eq(&high)?)?;
    let tie = bound.logical_and(&low.lt(&high)?)?;
    s.g.div(2)?.r#where(&tie, &s.g)?.masked_fill(&beyond, 0)
}

/// `g` where a bound has `all` of it, and half of it where the element is `equal` to the bound and the bounds are
/// `apart`.
fn shared(s: &Seen<'_>, all: &Tensor, equal: &Tensor, apart: &Tensor) -> Result<Tensor> {
    let half = s.g.div(2)?.r#where(&equal.logical_and(apart)?, 0)?;
    s.g.r#where(all, &half)
}
