//! The graph of derivatives, to look at.

use crate::Tensor;
use crate::graph::{Edge, Node};
use osteon_memory::Site;
use osteon_tensor::View;
use std::fmt;
use std::sync::Arc;

/// A step of the backward pass: the derivative of one operation (PyTorch's `grad_fn`). Cheap to clone.
///
/// ```
/// # use osteon_autograd::Tensor;
/// let w = Tensor::new([1f32, 2.0])?;
/// w.requires_grad_(true)?;
/// let y = w.exp()?.sum()?;
/// let sum = y.grad_fn().unwrap();
/// assert_eq!((sum.name(), sum.saved_nbytes()), ("SumBackward0".to_string(), 0));
/// let exp = sum.next_functions()[0].clone().unwrap();
/// assert_eq!((exp.op(), exp.saved_nbytes()), ("exp", 8)); // its result
/// assert!(exp.next_functions()[0].is_none()); // a leaf
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[derive(Clone)]
pub struct GradFn(Arc<Node>);

/// PyTorch's names that do not follow from the operation's.
const NAMES: [(&str, &str); 37] = [
    ("contiguous", "CloneBackward0"),
    ("copy", "CloneBackward0"),
    ("to", "ToCopyBackward0"),
    ("copy_", "CopyBackwards"),
    ("fill_", "FillBackward2"),
    ("rsub", "RsubBackward1"),
    ("rpow", "PowBackward2"),
    ("square", "PowBackward0"),
    ("square_", "PowBackward0"),
    ("log1p", "Log1PBackward0"),
    ("narrow", "SliceBackward0"),
    ("flatten", "ViewBackward0"),
    ("reshape", "ViewBackward0"),
    ("ravel", "ViewBackward0"),
    ("unflatten", "ViewBackward0"),
    ("movedim", "PermuteBackward0"),
    ("mt", "TransposeBackward0"),
    ("real", "SelectBackward0"),
    ("imag", "SelectBackward0"),
    ("squeeze_dims", "SqueezeBackward1"),
    ("chunk", "SplitBackward0"),
    ("split_with_sizes", "SplitWithSizesBackward0"),
    ("max_dim", "MaxBackward0"),
    ("max", "MaxBackward1"),
    ("min_dim", "MinBackward0"),
    ("min", "MinBackward1"),
    ("vector_norm", "LinalgVectorNormBackward0"),
    ("clamp", "ClampBackward1"),
    ("layer_norm", "NativeLayerNormBackward0"),
    ("group_norm", "NativeGroupNormBackward0"),
    ("batch_norm", "NativeBatchNormBackward0"),
    ("conv1d", "ConvolutionBackward0"),
    ("conv2d", "ConvolutionBackward0"),
    ("max_pool2d", "MaxPool2DWithIndicesBackward0"),
    ("avg_pool2d", "AvgPool2DBackward0"),
    ("cross_entropy", "NllLossBackward0"),
    ("dropout", "MulBackward0"),
];

impl GradFn {
    /// PyTorch's name of the step: that of the operation, in its spelling.
    pub fn name(&self) -> String {
        let op = self.0.op;
        if self.0.inputs.len() > 1 && op == "pow" {
            return "PowBackward1".into();
        }
        if matches!(op, "sum" | "mean" | "prod") && self.0.outputs[0].layout.rank() > 0 {
            return format!("{}Backward1", camel(op));
        }
        match NAMES.iter().find(|(ours, _)| *ours == op) {
            Some((_, name)) => (*name).into(),
            None => format!("{}Backward0", camel(op.trim_end_matches('_'))),
        }
    }

    /// The operation, by the name that a user calls.
    pub fn op(&self) -> &'static str {
        self.0.op
    }

    /// The line that called it.
    pub fn site(&self) -> Site {
        self.0.site
    }

    /// The steps that its gradients go on to, input by input: `None` for a leaf and for an input without gradients.
    pub fn next_functions(&self) -> Vec<Option<GradFn>> {
        let next = |edge: &Edge| match edge {
            Edge::Node(node, _) => Some(GradFn(node.clone())),
            Edge::Leaf(_) => None,
        };
        let inputs = self.0.inputs.iter();
        inputs.map(|edge| edge.as_ref().and_then(next)).collect()
    }

    /// What it keeps for the backward pass, without history: inputs, results, masks, indices. Copies nothing. Empty
    /// after a backward pass that freed it.
    pub fn saved_tensors(&self) -> Vec<Tensor> {
        let kept = self.0.kept();
        let views = kept.saved.iter().filter_map(|s| s.view());
        views.map(|view| Tensor::from_view(view.clone())).collect()
    }

    /// The bytes of these tensors, each as if it were alone on its storage.
    pub fn saved_nbytes(&self) -> usize {
        let kept = self.0.kept();
        let views = kept.saved.iter().filter_map(|s| s.view());
        views.map(View::nbytes).sum()
    }
}

/// `log_softmax` as `LogSoftmax`.
fn camel(op: &str) -> String {
    let word = |w: &str| {
        let mut letters = w.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    op.split('_').map(word).collect()
}

impl fmt::Debug for GradFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.name(), self.site())
    }
}

impl Tensor {
    /// The step of the backward pass that this tensor's gradients go through first; `None` for a leaf, and for a view whose
    /// history became ambiguous.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let w = Tensor::new([1f32, 2.0])?;
    /// w.requires_grad_(true)?;
    /// assert!(w.grad_fn().is_none());
    /// assert_eq!(w.slice(0, 1..)?.to_string(), "tensor([2.], grad_fn=<SliceBackward0>)");
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    pub fn grad_fn(&self) -> Option<GradFn> {
        match self.edge() {
            Ok(Some(Edge::Node(node, _))) => Some(GradFn(node)),
            _ => None,
        }
    }
}
