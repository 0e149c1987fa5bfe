//! The backward pass: node by node, from the highest number down, each when all its gradients are there.

use super::hooks::pass;
use super::mode::{enable_grad, no_grad};
use super::{Back, Edge, Input, Meta, Node};
use crate::Tensor;
use osteon_memory::{attribute, unattributed};
use osteon_spec::Result;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What a backward pass is to do.
pub(crate) struct Sweep<'a> {
    /// Where gradients begin, and the gradients.
    pub roots: Vec<(Edge, Tensor)>,
    /// The edges whose gradients are wanted, instead of those of all leaves.
    pub wanted: Option<&'a [Edge]>,
    /// Whether gradients of `wanted` are added to the leaves (`backward` with inputs) or returned (`grad`).
    pub accumulate: bool,
    /// Whether what nodes saved stays for another pass.
    pub retain_graph: bool,
    /// Whether the pass is recorded.
    pub create_graph: bool,
}

/// Gradients on their way to a node, by output.
type Buffer = SmallVec<[Option<Tensor>; 1]>;

/// Runs a backward pass on this thread, with a stack that does not depend on the graph.
///
/// # Errors
/// Before any gradient is touched: saved tensors that were overwritten or freed. Those of derivatives and hooks, out of
/// memory; gradients of leaves that came before are there then.
pub(crate) fn sweep(work: Sweep<'_>) -> Result<Vec<Option<Tensor>>> {
    if work.create_graph {
        enable_grad(|| Pass::new(work)?.run())
    } else {
        no_grad(|| Pass::new(work)?.run())
    }
}

/// An edge as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Output(*const Node, usize),
    Leaf(*const Meta),
}

fn place(edge: &Edge) -> Place {
    match edge {
        Edge::Node(node, k) => Place::Output(Arc::as_ptr(node), *k),
        Edge::Leaf(meta) => Place::Leaf(Arc::as_ptr(meta)),
    }
}

struct Pass<'a> {
    work: Sweep<'a>,
    /// The nodes that gradients reach, highest number first.
    order: Vec<Arc<Node>>,
    at: HashMap<*const Node, usize>,
    buffers: Vec<Buffer>,
    /// The nodes on a way to a wanted edge; `None` where all are.
    useful: Option<HashSet<*const Node>>,
    captured: HashMap<Place, Option<Tensor>>,
}

impl<'a> Pass<'a> {
    fn new(work: Sweep<'a>) -> Result<Pass<'a>> {
        let mut order = reachable(&work.roots);
        order.sort_unstable_by_key(|node| std::cmp::Reverse(node.number));
        let captured = work
            .wanted
            .into_iter()
            .flatten()
            .map(|e| (place(e), None))
            .collect();
        let useful = work.wanted.map(|wanted| useful(&order, wanted));
        for node in &order {
            if useful
                .as_ref()
                .is_none_or(|u| u.contains(&Arc::as_ptr(node)))
            {
                node.check()?;
            }
        }
        let at = order
            .iter()
            .enumerate()
            .map(|(i, n)| (Arc::as_ptr(n), i))
            .collect();
        let buffers = order.iter().map(|_| Buffer::new()).collect();
        Ok(Pass {
            work,
            order,
            at,
            buffers,
            useful,
            captured,
        })
    }

    fn run(mut self) -> Result<Vec<Option<Tensor>>> {
        for (edge, gradient) in std::mem::take(&mut self.work.roots) {
            self.add(&edge, gradient)?;
        }
        for i in 0..self.order.len() {
            let node = self.order[i].clone();
            let buffer = std::mem::take(&mut self.buffers[i]);
            if buffer.iter().any(Option::is_some) {
                self.step(&node, buffer)?;
            }
        }
        let wanted = self.work.wanted.unwrap_or_default();
        Ok(wanted
            .iter()
            .map(|e| self.captured.get(&place(e)).cloned().flatten())
            .collect())
    }

    fn step(&mut self, node: &Arc<Node>, mut grads: Buffer) -> Result<()> {
        let (hooks, retained) = {
            let kept = node.kept();
            (kept.hooks.clone(), kept.retained.clone())
        };
        for (k, hook) in &hooks {
            if let Some(slot) = grads.get_mut(*k) {
                *slot = slot
                    .take()
                    .map(|g| pass(std::slice::from_ref(hook), g))
                    .transpose()?;
            }
        }
        for (k, meta) in &retained {
            if let (Some(meta), Some(g)) = (meta.upgrade(), grads.get(*k).and_then(Option::as_ref))
            {
                meta.state().grad = Some(g.clone());
            }
        }
        for (k, g) in grads.iter().enumerate() {
            if let Some(slot) = self.captured.get_mut(&Place::Output(Arc::as_ptr(node), k)) {
                *slot = g.clone();
            }
        }
        if !self.is_useful(node) {
            return Ok(());
        }
        let needs: SmallVec<[bool; 2]> = node
            .inputs
            .iter()
            .map(|input| input.as_ref().is_some_and(|i| self.leads_on(&i.edge)))
            .collect();
        let create_graph = self.work.create_graph;
        let back = Back {
            node,
            grads: &grads,
            needs: &needs,
            create_graph,
        };
        // Gradients belong to the line whose operation they are of.
        let results = attribute(node.site, || node.rule.backward(&back))
            .map_err(|e| e.context(whence(node)))?;
        drop(grads);
        if !self.work.retain_graph {
            node.free();
        }
        for ((input, gradient), needed) in node.inputs.iter().zip(results).zip(needs) {
            if let (Some(input), Some(gradient), true) = (input, gradient, needed) {
                attribute(node.site, || self.add(&input.edge, fit(gradient, input)?))
                    .map_err(|e| e.context(whence(node)))?;
            }
        }
        Ok(())
    }

    fn is_useful(&self, node: &Arc<Node>) -> bool {
        self.useful
            .as_ref()
            .is_none_or(|u| u.contains(&Arc::as_ptr(node)))
    }

    fn leads_on(&self, edge: &Edge) -> bool {
        match edge {
            Edge::Node(node, _) => self.is_useful(node) || self.captured.contains_key(&place(edge)),
            Edge::Leaf(_) => self.work.wanted.is_none() || self.captured.contains_key(&place(edge)),
        }
    }

    /// Adds a gradient to what an edge has got so far.
    fn add(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        let create_graph = self.work.create_graph;
        match edge {
            Edge::Node(node, k) => {
                let Some(buffer) = self
                    .at
                    .get(&Arc::as_ptr(node))
                    .map(|&i| &mut self.buffers[i])
                else {
                    return Ok(());
                };
                if buffer.len() <= *k {
                    buffer.resize(k + 1, None);
                }
                let sum = sum(buffer[*k].take(), gradient, create_graph)?;
                buffer[*k] = Some(sum);
            }
            Edge::Leaf(meta) => {
                let wanted = self.captured.get_mut(&place(edge));
                let hooks = meta.state().hooks.clone();
                let gradient = pass(&hooks, gradient)?;
                match wanted {
                    Some(slot) if !self.work.accumulate => {
                        let sum = sum(slot.take(), gradient, create_graph)?;
                        *slot = Some(sum);
                    }
                    None if self.work.wanted.is_some() => {}
                    _ => accumulate(meta, gradient, create_graph)?,
                }
            }
        }
        Ok(())
    }
}

fn whence(node: &Node) -> String {
    format!("in the derivative of {} called at {}", node.op, node.site)
}

/// All nodes that gradients can reach.
fn reachable(roots: &[(Edge, Tensor)]) -> Vec<Arc<Node>> {
    let mut seen = HashSet::new();
    let mut order: Vec<Arc<Node>> = Vec::new();
    let mut next = 0;
    let visit = |edge: &Edge, order: &mut Vec<Arc<Node>>, seen: &mut HashSet<*const Node>| {
        if let Edge::Node(node, _) = edge
            && seen.insert(Arc::as_ptr(node))
        {
            order.push(node.clone());
        }
    };
    for (edge, _) in roots {
        visit(edge, &mut order, &mut seen);
    }
    while let Some(node) = order.get(next).cloned() {
        next += 1;
        for input in node.inputs.iter().flatten() {
            visit(&input.edge, &mut order, &mut seen);
        }
    }
    order
}

/// The nodes from which gradients flow on to a wanted edge. Numbers fall along edges, so that inputs are settled
/// when the list is walked from its end.
fn useful(order: &[Arc<Node>], wanted: &[Edge]) -> HashSet<*const Node> {
    let wanted: HashSet<Place> = wanted.iter().map(place).collect();
    let mut useful = HashSet::new();
    for node in order.iter().rev() {
        let leads_on = node.inputs.iter().flatten().any(|input| {
            wanted.contains(&place(&input.edge))
                || matches!(input.edge, Edge::Node(ref n, _) if useful.contains(&Arc::as_ptr(n)))
        });
        if leads_on {
            useful.insert(Arc::as_ptr(node));
        }
    }
    useful
}

/// A gradient as the input has it: summed over dims that were broadcast, real where the input is, in its dtype.
fn fit(gradient: Tensor, input: &Input) -> Result<Tensor> {
    let mut g = gradient;
    if g.shape() != &input.sizes[..] {
        g = g.sum_to_size(&input.sizes)?;
    }
    if g.dtype().is_complex() && !input.dtype.is_complex() {
        g = g.real()?;
    }
    if g.dtype() == input.dtype {
        Ok(g)
    } else {
        g.to(input.dtype)
    }
}

/// The sum of two gradients, in place where nobody else looks at the first.
fn sum(sofar: Option<Tensor>, gradient: Tensor, create_graph: bool) -> Result<Tensor> {
    match sofar {
        None => Ok(gradient),
        Some(sofar) if !create_graph && sofar.is_own() && sofar.dtype() == gradient.dtype() => {
            sofar.add_(&gradient)?;
            Ok(sofar)
        }
        Some(sofar) => sofar.add(&gradient),
    }
}

/// Adds a gradient to a leaf's.
fn accumulate(meta: &Arc<Meta>, gradient: Tensor, create_graph: bool) -> Result<()> {
    let old = meta.state().grad.clone();
    let new = match old {
        Some(old) if create_graph => old.add(&gradient)?,
        Some(old) => {
            old.add_(&gradient)?;
            old
        }
        // Taken as it is where nobody else looks at it and it lies as a gradient should.
        None if create_graph => gradient,
        None if gradient.is_own() => gradient,
        None => {
            let layout = &meta.geometry.layout;
            let g = &meta.geometry;
            let out = if layout.is_non_overlapping_and_dense() {
                let layout = layout.with_offset(0)?;
                Tensor::from_view(osteon_tensor::View::alloc(
                    layout, g.dtype, &g.device, "grad",
                )?)
            } else {
                Tensor::empty(g.layout.sizes(), g.dtype, &g.device)?
            };
            out.copy_(&gradient)?;
            out
        }
    };
    meta.state().grad = Some(new);
    let hooks = meta.state().post_hooks.clone();
    match hooks {
        Some((storage, hooks)) => {
            let leaf = meta.leaf(storage)?;
            unattributed(|| hooks.iter().try_for_each(|hook| hook(&leaf)))
        }
        None => Ok(()),
    }
}
