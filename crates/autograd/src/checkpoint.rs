//! Computing again instead of keeping.

use crate::graph::{Region, Saved};
use crate::{Tensor, get_rng_state, is_grad_enabled};
use osteon_memory::here;
use osteon_spec::Result;
use osteon_tensor::with_rng_state;

/// Runs `f` on the inputs without keeping what its operations save for their derivatives: the backward pass runs `f` once
/// more when it comes to them. Less memory, for one more forward pass: PyTorch's `checkpoint(use_reentrant=False)`.
///
/// `f` must do the same each time; random numbers are drawn the same ones, unless other threads drew some while it ran first. It keeps alive what it captures, until the
/// backward pass; what it captures should not be written meanwhile (of the inputs this is checked). Hooks,
/// gradients of gradients, [`grad`](crate::grad()) and checkpoints inside checkpoints work as without.
///
/// # Errors
/// Those of `f`; in the backward pass also an `f` that does something else the second time.
///
/// ```
/// # use osteon_autograd::{Tensor, checkpoint};
/// let x = Tensor::new([1f64, 2.0])?;
/// x.requires_grad_(true)?;
/// let y = checkpoint(|x| x[0].exp()?.exp(), &[&x])?; // keeps x alone
/// y.sum()?.backward()?;
/// assert!(x.grad().unwrap().allclose(&x.exp()?.exp()?.mul(&x.exp()?)?, 1e-12, 0.0)?);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn checkpoint<R>(
    f: impl Fn(&[Tensor]) -> Result<R> + Send + Sync + 'static,
    inputs: &[&Tensor],
) -> Result<R> {
    let given: Vec<Tensor> = inputs.iter().map(|&t| t.clone()).collect();
    if !is_grad_enabled() {
        return f(&given);
    }
    let site = here();
    let save = |t: &Tensor| Saved::input(t, t.edge()?, "checkpoint", site);
    let saved = given.iter().map(save).collect::<Result<Vec<_>>>()?;
    let at = get_rng_state();
    let f = std::sync::Arc::new(f);
    let again = f.clone();
    let region = Region::new(saved, move |region| {
        let inputs = region.inputs.iter().map(Saved::input_again);
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        with_rng_state(at, || again(&inputs).map(drop))
    });
    region.run(|| f(&given))
}
