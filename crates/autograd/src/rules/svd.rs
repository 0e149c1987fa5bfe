//! The derivative of singular values, and of the vectors that they come with.

use crate::Tensor;
use crate::graph::{Back, Grads, one};
use osteon_spec::Result;

/// With all results (values, `U`, `Vᴴ`) saved; only derivatives of derivatives have gradients of the vectors.
///
/// Where values are equal, vectors have no derivative: it is infinite or NaN then.
pub(crate) fn svd(b: &Back<'_>) -> Result<Grads> {
    let (s, u, vh) = (b.saved(0)?, b.saved(1)?, b.saved(2)?);
    let (column, row) = (s.unsqueeze(-1)?, s.unsqueeze(-2)?);
    let mut inner = b.grad()?.diag_embed(0, -2, -1)?.to(u.dtype())?;
    if b.grad_of(1).is_none() && b.grad_of(2).is_none() {
        return one(u.mul(&b.grad()?.unsqueeze(-2)?)?.matmul(&vh)?);
    }
    let (gu, gvh) = (b.grad_or_zeros(1)?, b.grad_or_zeros(2)?);
    let skew = |m: Tensor| m.sub(&m.mH()?);
    let gap = row.square()?.sub(&column.square()?)?;
    let gap = gap.add(&s.ones_like(None)?.diag_embed(0, -2, -1)?)?;
    let of_u = skew(u.mH()?.matmul(&gu)?)?;
    let of_v = skew(vh.matmul(&gvh.mH()?)?)?;
    inner = inner.add(&of_u.div(&gap)?.mul(&row)?)?;
    inner = inner.add(&of_v.div(&gap)?.mul(&column)?)?;
    if u.dtype().is_complex() {
        // The phases of vectors, which cancel in all that does not depend on them.
        let phases = of_u.diagonal(0, -2, -1)?.div(&s.mul(2)?)?;
        inner = inner.add(&phases.diag_embed(0, -2, -1)?)?;
    }
    // What lies outside of the spaces that the vectors span.
    let gu = gu.div(&row)?;
    let outside = gu.sub(&u.matmul(&u.mH()?.matmul(&gu)?)?)?;
    let gvh = gvh.div(&column)?;
    let beside = gvh.sub(&gvh.matmul(&vh.mH()?)?.matmul(&vh)?)?;
    let whole = u.matmul(&inner)?.add(&outside)?.matmul(&vh)?;
    one(whole.add(&u.matmul(&beside)?)?)
}
