//! Derivatives of reductions. A rule that saves tensors says which, in order.

use crate::Tensor;
use crate::graph::{Back, Grads, Rule, one, rule};
use crate::views::signed;
use osteon_spec::{Result, wrap_dim};

/// Of a sum over dims, all if none are named: each summand has the gradient of its sum.
pub(crate) fn spread(dims: &[isize], keepdim: bool) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| one(spread_over(b, &b.grad()?, &dims, keepdim)?))
}

/// Of a mean of `count` elements each.
pub(crate) fn shared(dims: &[isize], keepdim: bool, count: usize) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| {
        let each = b.grad()?.div(count as f64)?;
        one(spread_over(b, &each, &dims, keepdim)?)
    })
}

fn spread_over(b: &Back<'_>, g: &Tensor, dims: &[isize], keepdim: bool) -> Result<Tensor> {
    restored(g, dims, keepdim, b.sizes(0).len())?.expand(signed(b.sizes(0)))
}

/// A reduced tensor with the dims that the reduction took away, as dims of size 1.
pub(crate) fn restored(
    reduced: &Tensor,
    dims: &[isize],
    keepdim: bool,
    rank: usize,
) -> Result<Tensor> {
    if keepdim || dims.is_empty() || rank == 0 {
        return Ok(reduced.clone());
    }
    let mut dims = dims
        .iter()
        .map(|&d| wrap_dim(d, rank))
        .collect::<Result<Vec<_>>>()?;
    dims.sort_unstable();
    dims.iter()
        .try_fold(reduced.clone(), |t, &d| t.unsqueeze(d as isize))
}

/// Of a sum or mean of what is not NaN, with the input saved.
pub(crate) fn of_numbers(dims: &[isize], keepdim: bool, mean: bool) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| {
        let x = b.saved(0)?;
        let counted = x.isnan()?.logical_not()?;
        let mut g = restored(&b.grad()?, &dims, keepdim, x.dim())?;
        if mean {
            g = g.div(&counted.sum_dims(&dims, true)?)?;
        }
        one(g.mul(&counted)?)
    })
}

/// Of a product over one dim or all, with the input and the product saved.
pub(crate) fn product(dims: &[isize], keepdim: bool) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| {
        let g = b.grad()?;
        let (x, y) = (b.saved(0)?.to(g.dtype())?, b.saved(1)?);
        if x.dim() == 0 {
            return one(g);
        }
        let others = if has_zeros(&x)? {
            match dims[..] {
                [dim] => product_of_others(&x, dim)?,
                _ => product_of_others(&x.reshape([-1])?, 0)?.reshape(signed(x.shape()))?,
            }
        } else {
            restored(&y, &dims, keepdim, x.dim())?.div(&x)?
        };
        one(restored(&g, &dims, keepdim, x.dim())?.mul(&others.conj()?)?)
    })
}

fn has_zeros(x: &Tensor) -> Result<bool> {
    Ok(!x.device().is_meta() && x.eq(0)?.any()?.item::<bool>()?)
}

/// For each element along a dim the product of all others: of those before and of those behind.
fn product_of_others(x: &Tensor, dim: isize) -> Result<Tensor> {
    let behind = products_before(&x.flip([dim])?, dim)?.flip([dim])?;
    products_before(x, dim)?.mul(&behind)
}

/// For each element along a dim, which is not empty, the product of those before it.
pub(crate) fn products_before(x: &Tensor, dim: isize) -> Result<Tensor> {
    let first = x.narrow(dim, 0, 1)?.ones_like(None)?;
    let rest = x.narrow(dim, 0, x.size(dim)? as isize - 1)?;
    Tensor::cat(&[&first, &rest], dim)?.cumprod(dim)
}

/// Of an extreme over dims, with the input and the extreme saved: all elements that are equal to it share the
/// gradient.
pub(crate) fn extreme(dims: &[isize], keepdim: bool) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| {
        let (x, y) = (b.saved(0)?, b.saved(1)?);
        let g = restored(&b.grad()?, &dims, keepdim, x.dim())?;
        let equal = x.eq(&restored(&y, &dims, keepdim, x.dim())?)?;
        one(g.mul(&equal)?.div(&equal.sum_dims(&dims, true)?)?)
    })
}

/// The same of one element of all, where NaN counts as equal to NaN.
pub(crate) fn extreme_of_all() -> impl Rule {
    rule(|b| {
        let (x, y) = (b.saved(0)?, b.saved(1)?);
        let is_nan = !y.device().is_meta() && y.isnan()?.item::<bool>()?;
        let equal = if is_nan { x.isnan()? } else { x.eq(&y)? };
        let each = b.grad()?.div(&equal.sum()?)?;
        one(each.r#where(&equal, 0)?)
    })
}

/// Of an operation that picks elements along a dim, with their indices saved: they have the gradients, which add up
/// where an element may be picked more than once.
pub(crate) fn picked(dim: isize, keepdim: bool, repeated: bool) -> impl Rule {
    rule(move |b| {
        let (g, rank) = (b.grad()?, b.sizes(0).len());
        let zeros = Tensor::zeros(b.sizes(0), g.dtype(), &g.device())?;
        let g = restored(&g, &[dim], keepdim, rank)?;
        let index = restored(&b.saved(0)?, &[dim], keepdim, rank)?;
        one(if repeated {
            zeros.scatter_add(dim, &index, &g)?
        } else {
            zeros.scatter(dim, &index, &g)?
        })
    })
}

/// What a variance is of, and how its results look.
#[derive(Clone)]
pub(crate) struct Spread {
    pub dims: Vec<isize>,
    pub keepdim: bool,
    /// What the number of elements is lessened by.
    pub correction: f64,
    /// Whether the first result is the root of the variance, and saved after the input.
    pub is_root: bool,
}

impl Rule for Spread {
    /// With the input saved. The second result, if any, is the mean.
    fn backward(&self, b: &Back<'_>) -> Result<Grads> {
        let x = b.saved(0)?;
        let restored = |t: &Tensor| restored(t, &self.dims, self.keepdim, x.dim());
        let mut sum = None;
        if let Some(g) = b.grad_of(0) {
            let mut g = restored(g)?;
            if self.is_root {
                let std = restored(&b.saved(1)?)?;
                g = g.div(&std.mul(2.0)?)?.masked_fill(&std.eq(0)?, 0)?;
            }
            sum = Some(self.variance(&g, &x)?);
        }
        if let Some(g) = b.grad_of(1) {
            let count = count(&x, &self.dims)?;
            let g = restored(g)?.div(count)?.expand(signed(x.shape()))?;
            sum = Some(match sum {
                Some(sum) => sum.add(&g)?,
                None => g,
            });
        }
        Ok(sum.map(|g| Grads::from_iter([Some(g)])).unwrap_or_default())
    }
}

impl Spread {
    /// The gradient of `x` from that of its variance.
    fn variance(&self, g: &Tensor, x: &Tensor) -> Result<Tensor> {
        let freedom = count(x, &self.dims)? - self.correction;
        let mean = x.mean_dims(&self.dims, true)?;
        if (self.dims.is_empty() || x.dim() == 0) && freedom <= 0.0 {
            // As PyTorch has it: without a sign.
            let at_mean = x.eq(&mean)?;
            let limit = x.full_like(f64::INFINITY, None)?;
            return g.mul(&limit.masked_fill(&at_mean, f64::NAN)?);
        }
        x.sub(&mean)?.mul(&g.mul(2.0 / freedom)?)
    }
}

/// The number of elements that one result comes from.
fn count(x: &Tensor, dims: &[isize]) -> Result<f64> {
    Ok(x.as_view().count(dims)? as f64)
}

/// Of `log Σ e^x`, with the input and the result saved.
pub(crate) fn log_sum_exp(dims: &[isize], keepdim: bool) -> impl Rule + use<> {
    let dims = dims.to_vec();
    rule(move |b| {
        let (x, y) = (b.saved(0)?, b.saved(1)?);
        let restored = |t: &Tensor| restored(t, &dims, keepdim, x.dim());
        let share = x.sub(&restored(&y)?)?.exp()?.conj()?;
        one(restored(&b.grad()?)?.mul(&share)?)
    })
}
