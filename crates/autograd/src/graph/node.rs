//! Nodes: operations that were recorded; and what a derivative sees of them.

use super::accumulate::accumulate;
use super::hooks::pass;
use super::saved::Saved;
use super::{Geometry, Hook, Meta};
use crate::Tensor;
use crate::views::signed;
use osteon_memory::Site;
use osteon_spec::{Error, Kind, Result};
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Where a gradient flows: to a node, as the gradient of this output of it, or to a leaf. Two words, which stay in
/// registers: edges are passed on more often than anything else here.
#[derive(Clone)]
pub(crate) enum Edge {
    Node(Arc<Node>, u32),
    Leaf(Arc<Meta>),
}

impl Edge {
    /// The tensor that it leads to.
    pub fn geometry(&self) -> &Geometry {
        match self {
            Edge::Node(node, k) => &node.outputs[*k as usize],
            Edge::Leaf(meta) => &meta.geometry,
        }
    }
}

/// Gradients of a node's inputs, `None` where none flows.
pub(crate) type Grads = SmallVec<[Option<Tensor>; 2]>;

/// The gradient of the only input.
pub(crate) fn one(gradient: Tensor) -> Result<Grads> {
    Ok(smallvec![Some(gradient)])
}

/// The gradients of two inputs.
pub(crate) fn two(a: Option<Tensor>, b: Option<Tensor>) -> Result<Grads> {
    Ok(smallvec![a, b])
}

/// The derivative of an operation.
///
/// The sweep sums a gradient over dims that were broadcast, casts it to the input's dtype and takes its real part
/// where the input is real, so that no rule does.
pub(crate) trait Rule: Send + Sync {
    /// The gradients of the inputs from those of the outputs. Written with operations on tensors, which are
    /// recorded where derivatives of derivatives are wanted.
    ///
    /// # Errors
    /// Those of these operations; a saved tensor that was overwritten or freed.
    fn backward(&self, back: &Back<'_>) -> Result<Grads>;

    /// Whether it may own tensors, whose history is let go of with care.
    fn owns(&self) -> bool {
        std::mem::needs_drop::<Self>()
    }
}

impl<F: Fn(&Back<'_>) -> Result<Grads> + Send + Sync> Rule for F {
    fn backward(&self, back: &Back<'_>) -> Result<Grads> {
        self(back)
    }
}

/// A function as a rule.
pub(crate) fn rule<F: Fn(&Back<'_>) -> Result<Grads> + Send + Sync + 'static>(f: F) -> F {
    f
}

/// The rule of an operation of one input that is linear in it: gradients go the way back by another such operation.
pub(crate) fn linear(
    back: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> impl Rule {
    rule(move |b| one(back(&b.grad()?)?))
}

/// The rule of an operation of one input whose gradient is that of the output, but for what the sweep does.
pub(crate) fn same() -> impl Rule {
    rule(|b| one(b.grad()?))
}

/// The rule of an operation that overwrites its only input: no gradient gets through.
pub(crate) fn erased() -> impl Rule {
    rule(|b| one(b.grad()?.zeros_like(None)?))
}

/// The rule of an operation of one input that only changes the shape.
pub(crate) fn reshaped() -> impl Rule {
    rule(|b| one(b.grad()?.reshape(signed(b.sizes(0)))?))
}

/// An operation that was recorded.
pub(crate) struct Node {
    /// Rises from node to node, so that every edge leads to a smaller number.
    pub number: u64,
    pub op: &'static str,
    pub site: Site,
    /// For each input that takes a gradient, where it flows.
    pub inputs: SmallVec<[Option<Edge>; 2]>,
    pub outputs: SmallVec<[Geometry; 1]>,
    pub rule: Box<dyn Rule>,
    state: Mutex<Kept>,
}

/// What of a node changes.
#[derive(Default)]
pub(crate) struct Kept {
    pub saved: Vec<Saved>,
    /// Whether a sweep has freed what was saved.
    pub freed: bool,
    /// Hooks on outputs.
    pub hooks: Vec<(usize, Hook)>,
    /// Outputs whose gradient is kept on the tensor.
    pub retained: Vec<(usize, Weak<Meta>)>,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Node {
    #[inline]
    pub fn new(
        op: &'static str,
        site: Site,
        inputs: SmallVec<[Option<Edge>; 2]>,
        outputs: SmallVec<[Geometry; 1]>,
        saved: Vec<Saved>,
        rule: Box<dyn Rule>,
    ) -> Arc<Node> {
        Arc::new(Node {
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            op,
            site,
            inputs,
            outputs,
            rule,
            state: Mutex::new(Kept {
                saved,
                ..Kept::default()
            }),
        })
    }

    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it keeps, where nobody has it.
    pub fn try_kept(&self) -> Option<MutexGuard<'_, Kept>> {
        self.state.try_lock().ok()
    }

    /// Checks that what it saved is there and as it was.
    pub fn check(&self) -> Result<()> {
        let kept = self.kept();
        if kept.freed {
            return Err(freed(self));
        }
        kept.saved.iter().try_for_each(|saved| saved.check(self))
    }

    /// Shows the gradients of its outputs to their hooks, which may change them, and to the tensors that keep them.
    pub fn show(&self, grads: &mut Grads, create_graph: bool) -> Result<()> {
        let (hooks, retained) = {
            let kept = self.kept();
            (kept.hooks.clone(), kept.retained.clone())
        };
        for (k, hook) in hooks {
            if let Some(slot) = grads.get_mut(k)
                && let Some(gradient) = slot.take()
            {
                *slot = Some(pass(&[hook], gradient)?);
            }
        }
        for (k, meta) in retained {
            if let (Some(meta), Some(Some(gradient))) = (meta.upgrade(), grads.get(k)) {
                accumulate(&meta, gradient.clone(), create_graph)?;
            }
        }
        Ok(())
    }

    /// Frees what it saved; a later sweep that needs it is an error.
    pub fn free(&self) {
        let mut kept = self.kept();
        kept.freed = !kept.saved.is_empty() || kept.freed;
        let saved = std::mem::take(&mut kept.saved);
        drop(kept);
        drop(saved);
    }
}

#[cold]
fn freed(node: &Node) -> Error {
    Error::new(
        Kind::Autograd,
        format!(
            "trying to backward through the graph a second time: what {} at {} saved was freed by the first; \
             pass retain_graph there, or run the forward pass again",
            node.op, node.site
        ),
    )
    .op("backward")
}

/// What is dropped that may own other nodes or tensors with gradients.
#[expect(dead_code, reason = "held to be dropped")]
pub(super) enum Content {
    Edge(Edge),
    Saved(Saved),
    Rule(Box<dyn Rule>),
    Hooks(Vec<(usize, Hook)>),
    Tensor(Box<super::meta::State>),
}

/// Contents that wait to be dropped while another one of the same graph is.
struct Waiting {
    list: Vec<Content>,
    /// Whether something is being dropped further out on the stack.
    busy: bool,
}

thread_local! {
    static WAITING: RefCell<Waiting> = const { RefCell::new(Waiting { list: Vec::new(), busy: false }) };
}

/// How many waiting contents a thread keeps room for.
const ROOM: usize = 256;

/// Stands in for a rule that was taken out.
struct Gone;

impl Rule for Gone {
    fn backward(&self, _: &Back<'_>) -> Result<Grads> {
        Ok(Grads::new())
    }
}

/// Ends the waiting, also when a drop inside panics.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let _ = WAITING.try_with(|w| {
            let mut w = w.borrow_mut();
            w.busy = false;
            let is_small = w.list.is_empty() && w.list.capacity() <= ROOM;
            // What a panic left goes when the list is no longer borrowed.
            (!is_small).then(|| std::mem::take(&mut w.list))
        });
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let kept = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let_go(|list| {
            for edge in self.inputs.drain(..).flatten() {
                list.push(Content::Edge(edge));
            }
            for saved in kept.saved.drain(..) {
                list.push(Content::Saved(saved));
            }
            if self.rule.owns() {
                let rule = std::mem::replace(&mut self.rule, Box::new(Gone));
                list.push(Content::Rule(rule));
            }
            if !kept.hooks.is_empty() {
                list.push(Content::Hooks(std::mem::take(&mut kept.hooks)));
            }
        });
    }
}

/// Drops what `give` puts on the list, and what only that held, one after the other, so that a graph of any depth needs
/// no more stack than one node.
pub(super) fn let_go(give: impl FnOnce(&mut Vec<Content>)) {
    let outermost = WAITING.try_with(|w| {
        let mut w = w.borrow_mut();
        give(&mut w.list);
        !std::mem::replace(&mut w.busy, true)
    });
    if outermost != Ok(true) {
        return;
    }
    let _end = End;
    // The list is borrowed only between drops, never during one.
    while let Ok(Some(content)) = WAITING.try_with(|w| w.borrow_mut().list.pop()) {
        drop(content);
    }
}

/// A node during its backward pass: the gradients of its outputs, what it saved, which inputs want a gradient.
pub(crate) struct Back<'a> {
    pub node: &'a Arc<Node>,
    pub grads: &'a [Option<Tensor>],
    pub needs: &'a [bool],
    /// Whether derivatives of derivatives are wanted.
    pub create_graph: bool,
}

impl Back<'_> {
    /// The gradient of the first output; zeros where none flowed.
    pub fn grad(&self) -> Result<Tensor> {
        self.grad_or_zeros(0)
    }

    /// The gradient of the only output, and zeros of its dtype in the shape of an input, to write it into.
    pub fn zeros(&self, input: usize) -> Result<(Tensor, Tensor)> {
        let grad = self.grad()?;
        let zeros = grad.new_zeros(self.sizes(input))?;
        Ok((grad, zeros))
    }

    /// The gradient of an output, if one flowed.
    pub fn grad_of(&self, output: usize) -> Option<&Tensor> {
        self.grads.get(output)?.as_ref()
    }

    /// The gradient of an output, zeros where none flowed.
    pub fn grad_or_zeros(&self, output: usize) -> Result<Tensor> {
        match (self.grad_of(output), self.node.outputs.get(output)) {
            (Some(grad), _) => Ok(grad.clone()),
            (None, Some(g)) => Tensor::zeros(g.layout.sizes(), g.dtype, &g.device),
            (None, None) => Err(Error::new(Kind::Autograd, "an output that is not there")),
        }
    }

    /// Whether an input wants a gradient.
    pub fn needs(&self, input: usize) -> bool {
        self.needs.get(input).copied().unwrap_or(false)
    }

    /// `gradient()` where an input wants it.
    pub fn want(
        &self,
        input: usize,
        gradient: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Option<Tensor>> {
        self.needs(input).then(gradient).transpose()
    }

    /// The saved tensor of this number.
    pub fn saved(&self, k: usize) -> Result<Tensor> {
        let kept = self.node.kept();
        if kept.freed {
            return Err(freed(self.node));
        }
        let saved = kept.saved.get(k).cloned();
        // Without the lock: what is computed again may be anything.
        drop(kept);
        let tensor = saved.map(|saved| {
            // Once more: a hook may have written it since the pass began.
            saved.check(self.node)?;
            saved.unpack(self.node, self.create_graph)
        });
        tensor.transpose()?.flatten().ok_or_else(|| {
            let message = format!("{} saved no tensor {k}", self.node.op);
            Error::new(Kind::Autograd, message)
        })
    }

    /// The sizes of an input that wants a gradient.
    pub fn sizes(&self, input: usize) -> &[usize] {
        self.node
            .inputs
            .get(input)
            .and_then(Option::as_ref)
            .map_or(&[], |edge| edge.geometry().layout.sizes())
    }
}
