//! Derivatives of norms.

use super::reduce::restored;
use crate::Tensor;
use crate::graph::{Grads, Rule, one, rule};
use osteon_spec::Result;

/// Of a norm of an order over dims, all if none are named, with the input and the norm saved. Where the norm is 0, or
/// an element for an order below 1, the gradient is 0, one of those that are possible.
pub(crate) fn vector_norm(order: f64, dims: &[isize], keepdim: bool) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| {
        let x = b.saved(0)?;
        let restored = |t: &Tensor| restored(t, &dims, keepdim, x.dim());
        let (g, norm) = (restored(&b.grad()?)?, restored(&b.saved(1)?)?);
        let nonzero = |t: Tensor| -> Result<Tensor> { t.masked_fill(&norm.eq(0)?, 0) };
        one(match order {
            0.0 => return Ok(Grads::new()),
            1.0 => x.sgn()?.mul(&g)?,
            2.0 => x.mul(&nonzero(g.div(&norm)?)?)?,
            _ if order.is_infinite() => {
                // All elements of the extreme magnitude share the gradient.
                let size = x.abs()?;
                let extreme = size.eq(&norm)?.logical_or(&size.isnan()?)?;
                let share = g.div(&extreme.sum_dims(&dims, true)?)?;
                x.sgn()?.mul(&share.mul(&extreme)?)?
            }
            _ if order < 1.0 => {
                let power = x.abs()?.pow(order - 1.0)?.masked_fill(&x.eq(0)?, 0)?;
                x.sgn()?
                    .mul(&power)?
                    .mul(&g)?
                    .mul(&norm.pow(1.0 - order)?)?
            }
            _ => {
                let scale = nonzero(g.div(&norm.pow(order - 1.0)?)?)?;
                let power = if order < 2.0 {
                    x.sgn()?.mul(&x.abs()?.pow(order - 1.0)?)?
                } else {
                    x.mul(&x.abs()?.pow(order - 2.0)?)?
                };
                power.mul(&scale)?
            }
        })
    })
}
