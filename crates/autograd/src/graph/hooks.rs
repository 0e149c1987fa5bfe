//! Functions of users that see gradients on their way.

use crate::Tensor;
use osteon_memory::unattributed;
use osteon_spec::Result;
use std::sync::Arc;

/// Sees a gradient, and may give another one in its place.
pub(crate) type Hook = Arc<dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync>;

/// Sees a leaf whose gradient has just been added to.
pub(crate) type PostHook = Arc<dyn Fn(&Tensor) -> Result<()> + Send + Sync>;

/// A gradient after the hooks, in the order in which they were registered.
pub(crate) fn pass(hooks: &[Hook], gradient: Tensor) -> Result<Tensor> {
    let next = |g: Tensor, hook: &Hook| Ok(hook(&g)?.unwrap_or(g));
    unattributed(|| hooks.iter().try_fold(gradient, next))
}
