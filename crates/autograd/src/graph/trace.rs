//! What the graph keeps, told to the reports of memory.

use super::{Edge, Meta, Node};
use osteon_memory::{Attachment, Graph, Link, Site};

/// The graph of derivatives, as reports see it: objects are [`Meta`]s and [`Node`]s.
struct Derivatives;

/// Makes the graph known to reports.
#[inline]
pub(super) fn tell() {
    osteon_memory::set_graph(&Derivatives);
}

fn object(edge: &Edge) -> Attachment {
    match edge {
        Edge::Node(node, _) => node.clone(),
        Edge::Leaf(meta) => meta.clone(),
    }
}

impl Graph for Derivatives {
    fn links(&self, from: &Attachment, link: &mut dyn FnMut(Link<'_>)) {
        if let Some(meta) = from.downcast_ref::<Meta>() {
            let Some(state) = meta.try_state() else {
                return;
            };
            if let Some(edge) = &state.edge {
                link(Link::Object(object(edge)));
            }
            if let Some(grad) = &state.grad {
                link(Link::Tensor(grad.as_view().viewer()));
            }
        } else if let Some(node) = from.downcast_ref::<Node>() {
            for edge in node.inputs.iter().flatten() {
                link(Link::Object(object(edge)));
            }
            let Some(kept) = node.try_kept() else {
                return;
            };
            for saved in &kept.saved {
                saved.each_view(&mut |view| link(Link::Tensor(view.viewer())));
            }
        }
    }

    fn place(&self, object: &Attachment) -> Option<(&'static str, Site)> {
        object.downcast_ref::<Node>().map(|n| (n.op, n.site))
    }
}
