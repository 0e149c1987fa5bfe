//! Derivatives of softmax and its logarithm, with the result saved: fused, but where derivatives of derivatives are wanted.

use crate::Tensor;
use crate::graph::{Back, Grads, Rule, one, rule};
use osteon_spec::Result;

/// Of a softmax along a dim.
pub(crate) fn softmax(dim: isize) -> impl Rule {
    rule(move |b| {
        let (g, y) = (b.grad()?, b.saved(0)?);
        if !b.create_graph {
            let gradient = g.as_view().softmax_gradient(y.as_view(), dim, false)?;
            return one(Tensor::from_view(gradient));
        }
        let sum = g.mul(&y)?.sum_dims([dim], true)?;
        one(g.sub(&sum)?.mul(&y)?)
    })
}

/// Of the logarithm of a softmax along a dim.
pub(crate) fn log_softmax(dim: isize) -> impl Rule {
    rule(move |b| one(of_logarithms(b, &b.grad()?, &b.saved(0)?, dim)?))
}

fn of_logarithms(b: &Back<'_>, g: &Tensor, y: &Tensor, dim: isize) -> Result<Tensor> {
    if b.create_graph {
        return g.sub(&y.exp()?.mul(&g.sum_dims([dim], true)?)?);
    }
    let gradient = g.as_view().softmax_gradient(y.as_view(), dim, true)?;
    Ok(Tensor::from_view(gradient))
}

/// Of minus one element along a dim of the logarithm of a softmax, with all of that, which is the second result, and the
/// places of these elements saved.
pub(crate) fn cross_entropy(dim: isize) -> impl Rule {
    rule(move |b| {
        let (logs, places) = (b.saved(0)?, b.saved(1)?);
        let mut sum = None;
        if let Some(g) = b.grad_of(0) {
            let minus = g.neg()?.unsqueeze(dim)?;
            sum = Some(if b.create_graph {
                let all = logs.exp()?.mul(&g.unsqueeze(dim)?)?;
                all.scatter_add(dim, &places, &minus)?
            } else {
                let all = logs
                    .as_view()
                    .log_softmax_gradient_of_one(minus.as_view())?;
                let all = Tensor::from_view(all);
                all.scatter_add_(dim, &places, &minus)?;
                all
            });
        }
        // Only derivatives of derivatives come this way.
        if let Some(g) = b.grad_of(1) {
            let all = of_logarithms(b, g, &logs, dim)?;
            sum = Some(match sum {
                None => all,
                Some(sum) => sum.add(&all)?,
            });
        }
        Ok(Grads::from_iter([sum]))
    })
}
