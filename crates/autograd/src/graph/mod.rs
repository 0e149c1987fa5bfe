//! The graph of derivatives: which operation made a tensor, from what, and what it keeps for its derivative.
//!
//! ```text
//! Tensor ── Viewer ── attachment ─→ Meta { leaf's gradient, Edge to the node that made it }
//!                  └─ base ───────→ Meta of the tensor that a view looks into
//! Node { rule, Edge for each input, Saved tensors }      Edge = Node's output, or a leaf
//! ```
//!
//! An edge always leads to a node that was made earlier, so that the graph has no cycles: what a node keeps of
//! its own output is bytes without history.

mod accumulate;
mod hooks;
mod inplace;
mod meta;
pub(crate) mod mode;
mod node;
mod record;
mod region;
mod saved;
mod strided;
mod sweep;
mod trace;
mod view;

pub(crate) use accumulate::accumulate;
pub(crate) use hooks::{Hook, PostHook};
pub(crate) use inplace::check_inference;
pub use inplace::check_writable;
pub(crate) use meta::{Geometry, Meta};
pub(crate) use node::{
    Back, Edge, Grads, Node, Rule, erased, linear, one, reshaped, rule, same, two,
};
pub(crate) use record::{Recorder, record, wanted};
pub(crate) use region::Region;
pub(crate) use saved::Saved;
pub(crate) use strided::{Parts, Strided};
pub(crate) use sweep::{Sweep, sweep};
pub(crate) use view::{CUSTOM, INFERENCE, many_views, viewed};
