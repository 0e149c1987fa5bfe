//! Tensors that a node keeps for its derivative.

use super::{Edge, Node};
use crate::Tensor;
use osteon_memory::Site;
use osteon_spec::{DType, Error, Kind, Result};
use osteon_tensor::View;
use std::sync::Arc;

/// Bytes that a node keeps: an entry in the registry that says so, and the history that the tensor had, for
/// derivatives of derivatives. The entry's version at birth is the one that the derivative stands for.
pub(crate) enum Saved {
    /// An input, with the edge along which its gradients flow.
    Input(View, Option<Edge>),
    /// The node's own output of this number.
    Output(View, usize),
    /// Nothing but the fact: a number that PyTorch keeps as a tensor, so that a second backward is an error.
    Number,
}

impl Saved {
    pub fn input(
        tensor: &Tensor,
        edge: Option<Edge>,
        op: &'static str,
        site: Site,
    ) -> Result<Saved> {
        check_inference(tensor, op)?;
        Ok(Saved::Input(tensor.as_view().saved(op, site)?, edge))
    }

    pub fn output(view: &View, output: usize, op: &'static str, site: Site) -> Result<Saved> {
        Ok(Saved::Output(view.saved(op, site)?, output))
    }

    pub fn view(&self) -> Option<&View> {
        match self {
            Saved::Input(view, _) | Saved::Output(view, _) => Some(view),
            Saved::Number => None,
        }
    }

    /// Checks that nobody wrote the bytes since.
    pub fn check(&self, node: &Node) -> Result<()> {
        match self.view() {
            Some(view) if view.version() != view.viewer().born() => {
                Err(overwritten(self, view, node))
            }
            _ => Ok(()),
        }
    }

    /// The tensor, with its history where derivatives of derivatives are wanted.
    pub fn unpack(&self, node: &Arc<Node>, with_history: bool) -> Result<Tensor> {
        let (view, edge) = match self {
            Saved::Input(view, edge) => (view, edge.clone()),
            Saved::Output(view, k) => (view, Some(Edge::Node(node.clone(), *k))),
            Saved::Number => return Err(Error::new(Kind::Autograd, "nothing was saved here")),
        };
        if !with_history || edge.is_none() {
            return Ok(Tensor::from_view(view.clone()));
        }
        let tensor = Tensor::from_view(view.alias()?);
        tensor.meta_or_new().set_edge(edge, None);
        Ok(tensor)
    }
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
fn overwritten(saved: &Saved, view: &View, node: &Node) -> Error {
    let what = match saved {
        Saved::Output(_, k) => format!("output {k} of {}", node.op),
        Saved::Input(_, Some(Edge::Node(maker, k))) => format!("output {k} of {}", maker.op),
        Saved::Input(..) | Saved::Number => "a leaf".into(),
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
