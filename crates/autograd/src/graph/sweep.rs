//! The backward pass: node by node, from the highest number down, each when all its gradients are there.

use super::accumulate::{accumulate, fit, sum};
use super::hooks::pass;
use super::mode::{enable_grad, no_grad};
use super::{Back, Edge, Grads, Meta, Node};
use crate::Tensor;
use osteon_memory::attribute;
use osteon_spec::{Error, Kind, Result};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Addresses>>;
type Set<K> = HashSet<K, BuildHasherDefault<Addresses>>;

/// A hash of addresses, which nobody chooses so that they collide: the default one takes longer than the derivative of
/// a small sum.
#[derive(Default)]
struct Addresses(u64);

impl Hasher for Addresses {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(b.into()));
    }

    fn write_usize(&mut self, n: usize) {
        // Fibonacci hashing; tables look at the lowest bits, which the product of an aligned address has not mixed.
        let mixed = (self.0 ^ n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

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

/// A node on the way, and the gradients of its outputs that have come so far.
struct Step {
    node: Arc<Node>,
    grads: Grads,
    /// Whether gradients flow on from it to where they are wanted.
    useful: bool,
}

/// A leaf on the way: its gradient is complete when as many edges as lead to it have been walked.
struct Leaf {
    meta: Arc<Meta>,
    sum: Option<Tensor>,
    edges: usize,
}

/// An edge as a key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Output(*const Node, usize),
    Leaf(*const Meta),
}

fn place(edge: &Edge) -> Place {
    match edge {
        Edge::Node(node, k) => Place::Output(Arc::as_ptr(node), *k as usize),
        Edge::Leaf(meta) => Place::Leaf(Arc::as_ptr(meta)),
    }
}

struct Pass<'a> {
    work: Sweep<'a>,
    /// Highest number first.
    steps: Vec<Step>,
    at: Map<*const Node, usize>,
    leaves: Map<*const Meta, Leaf>,
    /// The wanted edges, and the gradients found for them.
    found: Map<Place, Option<Tensor>>,
}

impl<'a> Pass<'a> {
    fn new(work: Sweep<'a>) -> Result<Pass<'a>> {
        let mut order = reachable(&work.roots);
        order.sort_unstable_by_key(|node| std::cmp::Reverse(node.number));
        let mut leaves: Map<_, Leaf> = Map::default();
        let edges = order.iter().flat_map(|node| node.inputs.iter().flatten());
        let edges = edges.chain(work.roots.iter().map(|(e, _)| e));
        for edge in edges {
            if let Edge::Leaf(meta) = edge {
                let new = || Leaf {
                    meta: meta.clone(),
                    sum: None,
                    edges: 0,
                };
                leaves.entry(Arc::as_ptr(meta)).or_insert_with(new).edges += 1;
            }
        }
        if let Some(leaf) = leaves.values().find(|leaf| leaf.meta.is_overtaken()) {
            return Err(overtaken(&leaf.meta));
        }
        let useful = work.wanted.map(|wanted| useful(&order, wanted));
        let mut steps = Vec::with_capacity(order.len());
        for node in order {
            let useful = useful
                .as_ref()
                .is_none_or(|u| u.contains(&Arc::as_ptr(&node)));
            if useful {
                node.check()?;
            }
            steps.push(Step {
                node,
                grads: Grads::new(),
                useful,
            });
        }
        let at = steps
            .iter()
            .enumerate()
            .map(|(i, s)| (Arc::as_ptr(&s.node), i))
            .collect();
        let found = work
            .wanted
            .into_iter()
            .flatten()
            .map(|e| (place(e), None))
            .collect();
        Ok(Pass {
            work,
            steps,
            at,
            leaves,
            found,
        })
    }

    fn run(mut self) -> Result<Vec<Option<Tensor>>> {
        for (edge, gradient) in std::mem::take(&mut self.work.roots) {
            self.add(&edge, gradient)?;
            self.walked(&edge)?;
        }
        for i in 0..self.steps.len() {
            let Step { node, grads, .. } = &mut self.steps[i];
            let (node, grads) = (node.clone(), std::mem::take(grads));
            // What comes to pass here belongs to the line whose operation it is the derivative of.
            attribute(node.site, || {
                if grads.iter().any(Option::is_some) {
                    self.step(i, &node, grads)?;
                }
                node.inputs
                    .iter()
                    .flatten()
                    .try_for_each(|edge| self.walked(edge))
            })
            .map_err(|e| {
                e.context(format_args!(
                    "in the derivative of {} called at {}",
                    node.op, node.site
                ))
            })?;
        }
        // What is added to tensors is added once, however often they are named.
        let accumulate = self.work.accumulate;
        let found = |edge| match self.found.get_mut(&place(edge)) {
            Some(slot) if accumulate => slot.take(),
            slot => slot.cloned().flatten(),
        };
        Ok(self
            .work
            .wanted
            .unwrap_or_default()
            .iter()
            .map(found)
            .collect())
    }

    fn step(&mut self, i: usize, node: &Arc<Node>, mut grads: Grads) -> Result<()> {
        node.show(&mut grads, self.work.create_graph)?;
        for (k, g) in grads.iter().enumerate() {
            if let Some(slot) = self.found.get_mut(&Place::Output(Arc::as_ptr(node), k)) {
                *slot = g.clone();
            }
        }
        if !self.steps[i].useful {
            return Ok(());
        }
        let leads_on = |edge: &Edge| match edge {
            _ if self.work.wanted.is_none() => true,
            edge if self.found.contains_key(&place(edge)) => true,
            Edge::Node(node, _) => self
                .at
                .get(&Arc::as_ptr(node))
                .is_some_and(|&i| self.steps[i].useful),
            Edge::Leaf(_) => false,
        };
        let inputs = node.inputs.iter();
        let needs: SmallVec<[bool; 2]> = inputs.map(|i| i.as_ref().is_some_and(leads_on)).collect();
        let create_graph = self.work.create_graph;
        let back = Back {
            node,
            grads: &grads,
            needs: &needs,
            create_graph,
        };
        let results = node.rule.backward(&back)?;
        drop(grads);
        if !self.work.retain_graph {
            node.free();
        }
        for ((edge, gradient), needed) in node.inputs.iter().zip(results).zip(needs) {
            if let (Some(edge), Some(gradient), true) = (edge, gradient, needed) {
                self.add(edge, fit(gradient, edge)?)?;
            }
        }
        Ok(())
    }

    /// Adds a gradient to what has come along other edges to the same place.
    fn add(&mut self, edge: &Edge, gradient: Tensor) -> Result<()> {
        let slot = match edge {
            Edge::Node(node, k) => {
                let Some(&i) = self.at.get(&Arc::as_ptr(node)) else {
                    return Ok(());
                };
                let grads = &mut self.steps[i].grads;
                let k = *k as usize;
                if grads.len() <= k {
                    grads.resize(k + 1, None);
                }
                &mut grads[k]
            }
            Edge::Leaf(meta) => match self.leaves.get_mut(&Arc::as_ptr(meta)) {
                Some(leaf) => &mut leaf.sum,
                None => return Ok(()),
            },
        };
        *slot = Some(sum(slot.take(), gradient, self.work.create_graph)?);
        Ok(())
    }

    /// Notes that nothing more comes along an edge. A leaf to which no other leads has its gradient then.
    fn walked(&mut self, edge: &Edge) -> Result<()> {
        let Edge::Leaf(meta) = edge else {
            return Ok(());
        };
        let Some(leaf) = self.leaves.get_mut(&Arc::as_ptr(meta)) else {
            return Ok(());
        };
        leaf.edges -= 1;
        let Some(gradient) = (if leaf.edges == 0 {
            leaf.sum.take()
        } else {
            None
        }) else {
            return Ok(());
        };
        let meta = leaf.meta.clone();
        let hooks = meta.state().hooks.clone();
        let gradient = pass(&hooks, gradient)?;
        match self.found.get_mut(&place(edge)) {
            Some(slot) if !self.work.accumulate => *slot = Some(gradient),
            None if self.work.wanted.is_some() => {}
            _ => accumulate(&meta, gradient, self.work.create_graph)?,
        }
        Ok(())
    }
}

#[cold]
fn overtaken(meta: &Meta) -> Error {
    let g = &meta.geometry;
    Error::new(
        Kind::Autograd,
        format!(
            "a leaf, the {} {:?}, is a view of a tensor that was written in place since, and has become a result of that write; \
             copy() it before requires_grad_()",
            g.dtype,
            g.layout.sizes()
        ),
    )
}

/// All nodes that gradients can reach.
fn reachable(roots: &[(Edge, Tensor)]) -> Vec<Arc<Node>> {
    let (mut seen, mut order) = (Set::default(), Vec::new());
    let mut visit = |edge: &Edge, order: &mut Vec<Arc<Node>>| {
        if let Edge::Node(node, _) = edge
            && seen.insert(Arc::as_ptr(node))
        {
            order.push(node.clone());
        }
    };
    roots.iter().for_each(|(edge, _)| visit(edge, &mut order));
    let mut next = 0;
    while let Some(node) = order.get(next).cloned() {
        next += 1;
        node.inputs
            .iter()
            .flatten()
            .for_each(|edge| visit(edge, &mut order));
    }
    order
}

/// The nodes from which gradients flow on to a wanted edge. Numbers fall along edges, so that inputs are settled
/// when the list is walked from its end.
fn useful(order: &[Arc<Node>], wanted: &[Edge]) -> Set<*const Node> {
    let wanted: Set<Place> = wanted.iter().map(place).collect();
    let mut useful = Set::default();
    for node in order.iter().rev() {
        let leads_on = node.inputs.iter().flatten().any(|edge| {
            wanted.contains(&place(edge))
                || matches!(edge, Edge::Node(n, _) if useful.contains(&Arc::as_ptr(n)))
        });
        if leads_on {
            useful.insert(Arc::as_ptr(node));
        }
    }
    useful
}
