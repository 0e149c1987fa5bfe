//! Tensors that a node keeps for its derivative.

use super::mode::checks_bytes;
use super::region::{Instead, Slot, instead};
use super::{Edge, Geometry, Node, Strided};
use crate::Tensor;
use osteon_memory::Site;
use osteon_spec::{DType, Error, Kind, Result};
use osteon_tensor::View;
use smallvec::{SmallVec, smallvec};
use std::sync::{Arc, PoisonError};

/// What a node keeps for its derivative. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Saved {
    Tensor(SavedTensor),
    /// A tensor that is not kept, but computed again.
    Again(Arc<SavedAgain>),
    /// Nothing but the fact: a number that PyTorch keeps as a tensor, so that a second backward is an error.
    Number,
}

/// Bytes that a node keeps: an entry in the registry that says so, and the history that the tensor had, for derivatives of
/// derivatives. The entry's version at birth is the one that the derivative stands for.
#[derive(Clone)]
pub(crate) struct SavedTensor {
    pub view: View,
    source: Source,
    /// Of the elements as they were, where these and not the version are to be checked.
    fingerprint: Option<u64>,
}

/// A tensor that is computed again when it is needed, and what it was.
pub(crate) struct SavedAgain {
    slot: Slot,
    source: Source,
    sizes: SmallVec<[usize; 4]>,
    dtype: DType,
}

#[derive(Clone)]
enum Source {
    /// An input, with the edge along which its gradients flow.
    Input(Option<Edge>),
    /// The node's own output of this number.
    Output(usize),
}

impl Saved {
    pub fn input(
        tensor: &Tensor,
        edge: Option<Edge>,
        op: &'static str,
        site: Site,
    ) -> Result<Saved> {
        check_inference(tensor, op)?;
        Saved::of(tensor.as_view(), Source::Input(edge), op, site)
    }

    pub fn output(view: &View, output: usize, op: &'static str, site: Site) -> Result<Saved> {
        Saved::of(view, Source::Output(output), op, site)
    }

    fn of(view: &View, source: Source, op: &'static str, site: Site) -> Result<Saved> {
        match instead() {
            Instead::Keep => Saved::keep(view, source, op, site),
            Instead::Again(slot) => Ok(Saved::Again(Arc::new(SavedAgain {
                slot,
                source,
                sizes: SmallVec::from_slice(view.shape()),
                dtype: view.dtype(),
            }))),
            Instead::Collect(list) => {
                let view = view.saved(op, site)?;
                list.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(view);
                Ok(Saved::Number)
            }
        }
    }

    fn keep(view: &View, source: Source, op: &'static str, site: Site) -> Result<Saved> {
        let fingerprint = checks_bytes().then(|| view.fingerprint()).transpose()?;
        Ok(Saved::Tensor(SavedTensor {
            view: view.saved(op, site)?,
            source,
            fingerprint,
        }))
    }

    /// The bytes that it keeps for itself.
    pub fn view(&self) -> Option<&View> {
        match self {
            Saved::Tensor(saved) => Some(&saved.view),
            Saved::Again(_) | Saved::Number => None,
        }
    }

    /// The bytes that are alive for it: also those that it is computed from.
    pub fn each_view(&self, see: &mut dyn FnMut(&View)) {
        match self {
            Saved::Tensor(saved) => see(&saved.view),
            Saved::Again(again) => again
                .slot
                .region
                .inputs
                .iter()
                .for_each(|i| i.each_view(see)),
            Saved::Number => {}
        }
    }

    /// The tensor, with its history where derivatives of derivatives are wanted; none where it is but a number.
    pub fn unpack(&self, node: &Arc<Node>, with_history: bool) -> Result<Option<Tensor>> {
        let (view, source) = match self {
            Saved::Tensor(saved) => (saved.view.clone(), &saved.source),
            Saved::Again(again) => (again.view()?, &again.source),
            Saved::Number => return Ok(None),
        };
        let edge = match source {
            _ if !with_history => None,
            Source::Input(edge) => edge.clone(),
            Source::Output(k) => Some(output(node, *k, &view)),
        };
        tensor_of(view, edge).map(Some)
    }

    /// An input as it was, with its history, to compute something from it again.
    pub fn input_again(&self) -> Result<Tensor> {
        let (view, source) = match self {
            Saved::Tensor(saved) => (saved.view.clone(), &saved.source),
            Saved::Again(again) => (again.view()?, &again.source),
            Saved::Number => return Err(Error::new(Kind::Autograd, "an input that is not there")),
        };
        match source {
            Source::Input(edge) => tensor_of(view, edge.clone()),
            Source::Output(_) => tensor_of(view, None),
        }
    }

    /// Checks that nobody wrote the bytes since.
    pub fn check(&self, node: &Node) -> Result<()> {
        match self {
            Saved::Tensor(saved) => saved.check(node),
            Saved::Again(again) => {
                let inputs = &again.slot.region.inputs;
                inputs.iter().try_for_each(|input| input.check(node))
            }
            Saved::Number => Ok(()),
        }
    }
}

impl SavedTensor {
    fn check(&self, node: &Node) -> Result<()> {
        let view = &self.view;
        if view.version() == view.viewer().born() {
            return Ok(());
        }
        match self.fingerprint {
            Some(before) if view.fingerprint()? == before => Ok(()),
            _ => Err(overwritten(self, node)),
        }
    }
}

impl SavedAgain {
    fn view(&self) -> Result<View> {
        let view = self.slot.view()?;
        if (view.shape(), view.dtype()) == (&self.sizes[..], self.dtype) {
            return Ok(view);
        }
        Err(Error::new(
            Kind::Autograd,
            format!(
                "the function saved a {} tensor of shape {:?} at first and a {} one of {:?} when it ran again; it must do the same each time",
                self.dtype, self.sizes, view.dtype(), view.shape()
            ),
        )
        .op("checkpoint"))
    }
}

/// A view as a tensor that an edge leads from.
fn tensor_of(view: View, edge: Option<Edge>) -> Result<Tensor> {
    if edge.is_none() {
        return Ok(Tensor::from_view(view));
    }
    let tensor = Tensor::from_view(view.alias()?);
    tensor.meta_or_new().set_edge(edge, None);
    Ok(tensor)
}

/// The edge to this output of the node. What was written through a view is a part of it, as the node's output then is
/// the base.
fn output(node: &Arc<Node>, k: usize, view: &View) -> Edge {
    let edge = Edge::Node(node.clone(), k as u32);
    let (layout, dtype) = (view.layout(), view.dtype());
    let is_part = |whole: &&Geometry| whole.layout != *layout || whole.dtype != dtype;
    let Some(whole) = node.outputs.get(k).filter(is_part) else {
        return edge;
    };
    let part = Geometry {
        layout: layout.clone(),
        dtype,
        device: view.device(),
    };
    let look = Node::new(
        "as_strided",
        view.site(),
        smallvec![Some(edge)],
        smallvec![part.clone()],
        Vec::new(),
        Box::new(Strided::new(whole, part)),
    );
    Edge::Node(look, 0)
}

fn check_inference(tensor: &Tensor, op: &'static str) -> Result<()> {
    if !tensor.is_inference() {
        return Ok(());
    }
    Err(Error::new(
        Kind::Autograd,
        "a tensor made in inference_mode cannot be saved for backward; copy() it outside, or use no_grad() there",
    )
    .op(op))
}

/// PyTorch's name of a tensor type, which its message names.
fn type_name(dtype: DType) -> String {
    match dtype.name() {
        "float32" => "FloatTensor".into(),
        "float64" => "DoubleTensor".into(),
        "float16" => "HalfTensor".into(),
        "bfloat16" => "BFloat16Tensor".into(),
        "int64" => "LongTensor".into(),
        "int32" => "IntTensor".into(),
        "bool" => "BoolTensor".into(),
        other => other.into(),
    }
}

#[cold]
fn overwritten(saved: &SavedTensor, node: &Node) -> Error {
    let view = &saved.view;
    let what = match &saved.source {
        Source::Output(k) => format!("output {k} of {}", node.op),
        Source::Input(Some(Edge::Node(maker, k))) => format!("output {k} of {}", maker.op),
        Source::Input(_) => "a leaf".into(),
    };
    let writer = match view.storage().last_write() {
        Some((op, site)) => format!("{op} at {site} wrote it last"),
        None => "it was written last through a guard".into(),
    };
    Error::new(
        Kind::Autograd,
        format!(
            "one of the variables needed for gradient computation has been modified by an in-place operation: [{} {:?}], \
             which is {what}, was saved by {} at {} at version {} of storage {}, and is at version {} now: {writer}; \
             write into a copy() instead, or run backward() before the write",
            type_name(view.dtype()),
            view.shape(),
            node.op,
            node.site,
            view.viewer().born(),
            view.storage().id(),
            view.version(),
        ),
    )
    .op(node.op)
}
