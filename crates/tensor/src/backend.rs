//! What a device must be able to do: one method for each class of operation. Everything else is written
//! once, above.
//!
//! Shapes, dtypes, layouts and overlaps have been checked when a method is called: it holds the storages,
//! runs one kernel, and lets them go. It fails only where a guard is in the way, a storage is read-only, or the
//! data themselves are bad (an index out of range), and has written nothing then.

use crate::View;
use crate::attention::Attention;
use crate::cpu::Cpu;
use crate::index::{Indexed, Move};
use crate::meta::Meta;
use crate::reduce::Reduction;
use osteon_kernels::{
    Axis, Divisor, Kernel, Pick, Pooling, Random, RowOp, Sequence, SoftmaxOp, Triangle,
};
use osteon_spec::{DType, Device, Operand, Result, Scalar};

/// An operand that is only read: a view, or a plain number.
#[derive(Clone, Copy, Debug)]
pub enum Arg<'a> {
    /// Elements, broadcast to the shape of the result.
    View(&'a View),
    /// The same number everywhere.
    Number(Scalar),
}

impl Arg<'_> {
    /// What it says about the dtype of a result.
    pub(crate) fn operand(&self) -> Operand {
        match *self {
            Arg::View(v) => Operand::new(v.dtype(), v.dim()),
            Arg::Number(n) => n.into(),
        }
    }
}

impl<'a> From<&'a View> for Arg<'a> {
    fn from(view: &'a View) -> Arg<'a> {
        Arg::View(view)
    }
}

impl<T: Into<Scalar>> From<T> for Arg<'_> {
    fn from(number: T) -> Self {
        Arg::Number(number.into())
    }
}

/// Where results go.
#[derive(Clone, Copy)]
pub(crate) enum To<'a> {
    /// To a view that the caller has just made of a new storage: nobody else can touch it yet.
    New(&'a View),
    /// To any other.
    Given(&'a View),
}

impl<'a> To<'a> {
    pub(crate) fn view(self) -> &'a View {
        let (To::New(view) | To::Given(view)) = self;
        view
    }
}

impl<'a> From<&'a View> for To<'a> {
    fn from(view: &'a View) -> To<'a> {
        To::Given(view)
    }
}

/// The loop of an operation element by element, with the numbers that the operation takes.
pub(crate) enum Body {
    Unary(Kernel<2>),
    Binary(Kernel<3>),
    Ternary(Kernel<4>),
}

impl Body {
    /// The dtype of the result.
    pub(crate) fn result(&self) -> DType {
        match self {
            Body::Unary(kernel) => kernel.result(),
            Body::Binary(kernel) => kernel.result(),
            Body::Ternary(kernel) => kernel.result(),
        }
    }
}

/// A function that gives the element at an index of a view.
pub(crate) type Peek<'a> = dyn Fn(&[usize]) -> Scalar + 'a;

pub(crate) trait Backend: Sync {
    /// Every element of `src`, broadcast and cast, into `dst`.
    fn copy(&self, dst: &View, src: &View) -> Result<()>;
    /// One number, cast, into every element.
    fn fill(&self, dst: &View, value: Scalar) -> Result<()>;
    /// The bytes of elements in row-major order into all of `dst`, which is contiguous.
    fn upload(&self, dst: &View, bytes: &[u8]) -> Result<()>;
    /// `item(i)` into element `i` of `dst`, which is a vector.
    fn generate(&self, dst: &View, item: &dyn Fn(usize) -> Scalar) -> Result<()>;
    /// Numbers in equal steps into `dst`, which is a vector.
    fn sequence(&self, dst: &View, how: Sequence) -> Result<()>;
    /// All elements of `src`, which is contiguous, as bytes in row-major order.
    fn download(&self, src: &View, bytes: &mut [u8]) -> Result<()>;
    /// Calls `look` with a way to read single elements, all from one moment.
    fn peek(&self, src: &View, look: &mut dyn FnMut(&Peek<'_>)) -> Result<()>;
    /// What a loop makes of `args`, as many as it takes, into every element of `dst`.
    fn elementwise(&self, body: &Body, dst: To<'_>, args: &[Arg<'_>]) -> Result<()>;
    /// Whether an element of integers or `bool` is zero.
    fn any_zero(&self, src: Arg<'_>) -> Result<bool>;
    /// Random numbers into every element.
    fn random(&self, dst: &View, how: &Random) -> Result<()>;
    /// The numbers from 0 on in random order into `dst`, a dense vector of int64.
    fn shuffled(&self, dst: &View, how: &Random) -> Result<()>;
    /// Moves elements between `dst` and `src` where index tensors say. Every index is checked before anything
    /// is written.
    fn indexed(&self, what: Move<'_>, dst: &View, src: Arg<'_>, how: &Indexed<'_>) -> Result<()>;
    /// `a` where `condition` is true, else `b`.
    fn select(&self, dst: &View, condition: &View, a: Arg<'_>, b: Arg<'_>) -> Result<()>;
    /// The maxima of windows of `src`, and their positions where asked.
    fn max_pool(
        &self,
        dst: &View,
        positions: Option<&View>,
        src: &View,
        how: &Pooling<'_>,
    ) -> Result<()>;
    /// The averages of windows of `src`.
    fn avg_pool(&self, dst: &View, src: &View, how: &Pooling<'_>, divisor: Divisor) -> Result<()>;
    /// The transpose of `avg_pool`: each element of `src` is added, divided, to the elements of its window in `dst`.
    fn avg_spread(&self, dst: &View, src: &View, how: &Pooling<'_>, divisor: Divisor)
    -> Result<()>;
    /// The sums of windows of `src`, each element times the weight of its channel and place, of three dims; the last
    /// place's weight first if `backwards`.
    fn weighted(
        &self,
        dst: &View,
        src: &View,
        weight: &View,
        how: &Pooling<'_>,
        backwards: bool,
    ) -> Result<()>;
    /// `dst = Σ lhs · rhs`: `axes` are the dims of `dst`, `summed` those that it lacks, with the strides of all three
    /// views in bytes. All have one dtype.
    fn contract(
        &self,
        dst: &View,
        lhs: &View,
        rhs: &View,
        axes: &[Axis],
        summed: &[Axis],
    ) -> Result<()>;
    /// `softmax(query · keyᵀ · scale + mask) · value`, all of one dtype, `float32` or `float64`, but a mask of `bool`; all
    /// of the rank of `dst`, with its sizes of outer dims, and a mask with those of the scores.
    fn attention(&self, dst: &View, of: [&View; 3], how: &Attention<'_>) -> Result<()>;
    /// Every element of `src` into `dst`, of the same shape and dtype and apart, these dims from the last index on.
    fn flip(&self, dst: &View, src: &View, dims: &[usize]) -> Result<()>;
    /// One triangle of the matrices of `src`, and zeros, into `dst`, which is `src` or apart from it.
    fn triangle(&self, keep: Triangle, dst: &View, src: &View) -> Result<()>;
    /// What is asked for of each lane of `src` along a dim, as values and as indices, both fresh.
    fn sort(&self, pick: &Pick, out: [&View; 2], src: &View, dim: usize) -> Result<()>;
    /// An integer for each element, in row-major order, that compares as the elements do.
    fn keys(&self, src: &View, out: &mut [u64]) -> Result<()>;
    /// The classes of equal elements, in order or, where they are `consecutive`, of neighbours in row-major order: the places of
    /// their first elements, the class of each element, how many each has. Fresh int64 tensors; NaN are all different.
    fn classes(&self, src: &View, consecutive: bool) -> Result<[View; 3]>;
    /// The number of elements that are not zero.
    fn count_true(&self, src: &View) -> Result<usize>;
    /// The coordinates of the elements that are not zero as the rows of `dst`; false, and nothing is written, where there are
    /// not as many.
    fn nonzero(&self, dst: &View, src: &View) -> Result<bool>;
    /// The elements of `src` at which `mask`, of the same shape, is true into `dst`, a dense vector; false, and nothing
    /// is written, where there are not as many.
    fn masked_select(&self, dst: &View, src: &View, mask: &View) -> Result<bool>;
    /// The elements of `src`, which is contiguous, in turn to those of `dst` at which `mask`, of the same shape,
    /// is true.
    fn masked_scatter(&self, dst: &View, mask: &View, src: &View) -> Result<()>;
    /// Reduces dims of `src`; a destination has the other dims, or all with those of size 1.
    fn reduce(&self, how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> Result<()>;
    /// What the reduction of one dim gives for each beginning of it; destinations have the shape of `src`.
    fn scan(&self, how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> Result<()>;
    /// `y[i] = x[i] + factor[i] · y[i - 1]` along a dim, or `y[i] = x[i] + factor[i + 1] · y[i + 1]` backwards, of views of one
    /// shape and dtype, a float or complex one of full precision, into `dst`, which is fresh.
    fn recurrence(&self, dst: &View, from: [&View; 2], dim: usize, backwards: bool) -> Result<()>;
    /// Runs a loop over the rows along these dims of the first operand, to whose shape the others broadcast, for a dtype and with the
    /// number that it takes; false, and nothing is written, where other ways are better or the only ones.
    fn rows(&self, op: RowOp, how: (DType, f64), args: &[Arg<'_>], dims: &[usize]) -> Result<bool>;
    /// A softmax of the first operand, by the two results of its reduction.
    fn softmax(&self, op: SoftmaxOp, dtype: DType, dst: &View, args: [Arg<'_>; 3]) -> Result<()>;
    /// `(x - mean) · scale · weight + bias`, of operands in this order.
    fn normalize(&self, dtype: DType, dst: &View, args: [Arg<'_>; 5]) -> Result<()>;
}

/// The backend of a device.
#[inline]
pub(crate) fn backend(device: Device) -> &'static dyn Backend {
    if device.is_meta() { &Meta } else { &Cpu }
}
