//! Functions of users that see gradients on their way.

use crate::Tensor;
use osteon_memory::unattributed;
use osteon_spec::{Error, Kind, Result};
use std::sync::Arc;

/// Sees a gradient, and may give another one in its place.
pub(crate) type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// Sees a leaf whose gradient has just been added to.
pub(crate) type PostHook = Arc<dyn Fn(&Tensor) -> Result<()> + Send + Sync>;

/// A gradient after the hooks, in the order in which they were registered.
///
/// # Errors
/// Those of the hooks; a gradient of another shape, dtype or device.
pub(crate) fn pass(hooks: &[Hook], gradient: Tensor) -> Result<Tensor> {
    let next = |g: Tensor, hook: &Hook| {
        match hook(&g)? {
        Some(new) if is_alike(&new, &g) => Ok(new),
        Some(new) => Err(Error::new(
            Kind::Autograd,
            format!(
                "a hook got a gradient {} {:?} on {} and returned {} {:?} on {}; it may change the values alone",
                g.dtype(), g.shape(), g.device(), new.dtype(), new.shape(), new.device()
            ),
        )
        .op("register_hook")),
        None => Ok(g),
    }
    };
    unattributed(|| hooks.iter().try_fold(gradient, next))
}

fn is_alike(a: &Tensor, b: &Tensor) -> bool {
    (a.shape(), a.dtype(), a.device()) == (b.shape(), b.dtype(), b.device())
}
