//! Derivatives of scans.

use super::accurate;
use super::reduce::products_before;
use crate::Tensor;
use crate::graph::{Rule, one, record, rule, two};
use osteon_spec::Result;

/// The sums of the elements from each along a dim to its end.
fn sums_behind(x: &Tensor, dim: isize) -> Result<Tensor> {
    x.flip([dim])?.cumsum(dim)?.flip([dim])
}

/// Of running sums.
pub(crate) fn sums(dim: isize) -> impl Rule {
    rule(move |b| one(sums_behind(&b.grad()?, dim)?))
}

/// `y[i] = x[i] + factor[i] · y[i - 1]` along a dim, or backwards `y[i] = x[i] + factor[i + 1] · y[i + 1]`.
///
/// This is what running products and running sums of exponentials have in common: element `i` counts in each later
/// result, with all factors in between, none of which is divided by.
fn recurrence(x: &Tensor, factor: &Tensor, dim: isize, backwards: bool) -> Result<Tensor> {
    let out = x.as_view().recurrence(factor.as_view(), dim, backwards)?;
    record(out, &[x, factor], |r, out| {
        r.save(factor)?;
        r.save_output(out)?;
        Ok(rule(move |b| {
            let (factor, y) = (b.saved(0)?, b.saved(1)?);
            let g = recurrence(&b.grad()?, &factor.conj()?, dim, !backwards)?;
            let factors = b.want(1, || {
                let n = y.size(dim)? as isize;
                let (before, behind) = ((0, n - 1), (1, n - 1));
                let part = |t: &Tensor, (start, len)| t.narrow(dim, start, len);
                let (sum, by) = if backwards {
                    (before, behind)
                } else {
                    (behind, before)
                };
                let rest = part(&g, sum)?.mul(&part(&y, by)?.conj()?)?;
                Tensor::cat(&[&y.narrow(dim, 0, 1)?.zeros_like(None)?, &rest], dim)
            })?;
            two(Some(g), factors)
        }))
    })
}

/// Of running products, with the input saved.
pub(crate) fn products(dim: isize) -> impl Rule {
    rule(move |b| {
        let g = accurate(&b.grad()?)?;
        let x = b.saved(0)?.to(g.dtype())?;
        if x.dim() == 0 || x.numel() == 0 {
            return one(g);
        }
        let sums = recurrence(&g, &x.conj()?, dim, true)?;
        one(products_before(&x, dim)?.conj()?.mul(&sums)?)
    })
}

/// Of running `log Σ e^x`, with the input and the result saved. No exponential on the way is more than 1.
pub(crate) fn log_sums(dim: isize) -> impl Rule {
    rule(move |b| {
        let g = accurate(&b.grad()?)?;
        if g.dim() == 0 || g.numel() == 0 {
            return one(g);
        }
        let (x, y) = (accurate(&b.saved(0)?)?, accurate(&b.saved(1)?)?);
        let n = x.size(dim)? as isize;
        let (before, behind) = (y.narrow(dim, 0, n - 1)?, y.narrow(dim, 1, n - 1)?);
        // From infinity to infinity is no step.
        let stays = before.eq(&behind)?.logical_and(&before.isinf()?)?;
        let step = before.sub(&behind)?.masked_fill(&stays, 0)?;
        let first = y.narrow(dim, 0, 1)?.zeros_like(None)?;
        let factor = Tensor::cat(&[&first, &step.exp()?.conj()?], dim)?;
        let sums = recurrence(&g, &factor, dim, true)?;
        one(sums.mul(&x.sub(&y)?.exp()?.conj()?)?)
    })
}
