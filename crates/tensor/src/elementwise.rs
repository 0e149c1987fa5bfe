//! Operations element by element: the dtype, shape and layout of the result, then one kernel.

use crate::backend::{Arg, Body, To, backend};
use crate::target::Target;
use crate::write;
use crate::{Number, View};
use osteon_kernels::{self as kernels, BinaryOp, CompareOp, TernaryOp, UnaryOp};
use osteon_memory::here;
use osteon_spec::{
    Category, DType, Device, Error, Kind, Layout, MemoryFormat, Operand, Result, Scalar,
    broadcast_shapes, elementwise_output, result_type,
};
use smallvec::SmallVec;
use std::mem;

/// An operation element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Of one operand.
    Unary(UnaryOp),
    /// Of two.
    Binary(BinaryOp),
    /// Of three.
    Ternary(TernaryOp),
    /// Of two, with a `bool` result.
    Compare(CompareOp),
}

/// How the dtype that an operation computes in follows from its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute {
    /// In what the operands promote to.
    Promoted,
    /// The same, but in `float32` where that is an integer or `bool`.
    Float,
    /// The same, but in `int64` where that is `bool`.
    Number,
    /// In `float64`, or `complex128` where the operands promote to a complex number.
    Double,
    /// In the one dtype that all operands have.
    Same,
}

/// One call of an operation element by element: it may give a fresh result, or write in place or into a given
/// output.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The name that users know.
    pub name: &'static str,
    /// The operation.
    pub op: Op,
    /// What it computes in.
    pub compute: Compute,
    /// Its operands, as many as the operation has.
    pub args: &'a [Arg<'a>],
    /// The numbers that it takes beside them.
    pub numbers: &'a [Scalar],
}

impl Call<'_> {
    /// The result in a new storage, laid out as PyTorch lays it out.
    ///
    /// # Errors
    /// Shapes that do not broadcast, dtypes that do not promote or for which the operation is not
    /// defined, guards in the way, out of memory.
    #[track_caller]
    pub fn fresh(&self) -> Result<View> {
        let device = self.device()?;
        let compute = self.computed_in()?;
        let body = self.body(compute)?;
        let layout = self.layout(compute)?;
        let out = View::alloc(layout, body.result(), &device, self.name)?;
        self.run(compute, &body, To::New(&out))?;
        Ok(out)
    }

    /// The result written into `dst`, which is one of the operands.
    ///
    /// # Errors
    /// As [`Call::fresh`]; a result of a higher category than `dst`, another shape, overlap. Nothing
    /// is written then.
    #[track_caller]
    pub fn in_place(&self, dst: &View) -> Result<()> {
        self.device()?;
        let compute = self.computed_in()?;
        let body = self.body(compute)?;
        self.check_category(body.result(), dst)?;
        if self.compute == Compute::Double && dst.dtype() != body.result() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the result is {}, but the tensor holds {}",
                    body.result(),
                    dst.dtype()
                ),
            )
            .op(self.name));
        }
        for src in self.views() {
            check_broadcasts_to(src, dst, self.name)?;
        }
        write::check(dst, self.args, self.name)?;
        self.run(compute, &body, dst.into())?;
        dst.storage().record_write(self.name, here());
        Ok(())
    }

    /// The result written into `out`, which has its shape.
    ///
    /// # Errors
    /// As [`Call::in_place`].
    #[track_caller]
    pub fn out(&self, out: &View) -> Result<()> {
        let device = self.device()?;
        if out.device() != device {
            return Err(other_device(device, out.device()).op(self.name));
        }
        let compute = self.computed_in()?;
        let body = self.body(compute)?;
        self.check_category(body.result(), out)?;
        let layout = self.layout(compute)?;
        if layout.sizes() != out.shape() {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "the result has shape {:?}, but out has {:?}; resize_() it first",
                    layout.sizes(),
                    out.shape()
                ),
            )
            .op(self.name));
        }
        write::check(out, self.args, self.name)?;
        self.run(compute, &body, out.into())?;
        out.storage().record_write(self.name, here());
        Ok(())
    }

    /// The result in a new storage, or in the tensor that is given.
    #[track_caller]
    pub(crate) fn to(&self, to: Target<'_>) -> Result<View> {
        match to.out() {
            None => self.fresh(),
            Some(out) => self.out(out).map(|()| out.clone()),
        }
    }

    /// The result written into `dst`, a fresh view of its shape that nobody else has seen, which may be an operand
    /// too: counts as no write.
    pub(crate) fn overwrite(&self, dst: &View) -> Result<()> {
        let compute = self.computed_in()?;
        let body = self.body(compute)?;
        self.check_category(body.result(), dst)?;
        self.run(compute, &body, dst.into())
    }

    fn views(&self) -> impl Iterator<Item = &View> {
        self.args.iter().filter_map(|a| match a {
            Arg::View(v) => Some(*v),
            Arg::Number(_) => None,
        })
    }

    /// The device of all views.
    fn device(&self) -> Result<Device> {
        let mut views = self.views();
        let first = views.next().map_or(Device::cpu(), View::device);
        match views.find(|v| v.device() != first) {
            None => Ok(first),
            Some(other) => Err(other_device(first, other.device()).op(self.name)),
        }
    }

    /// The dtype that the operation computes in.
    fn computed_in(&self) -> Result<DType> {
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        for arg in self.args {
            operands.push(arg.operand());
        }
        if matches!(self.op, Op::Binary(BinaryOp::Sub | BinaryOp::SubScaled))
            && operands.iter().any(Operand::is_bool)
        {
            return Err(Error::new(
                Kind::DType,
                "subtraction with bool is not supported; use bitwise_xor() or logical_not()",
            )
            .op(self.name));
        }
        if self.op == Op::Ternary(TernaryOp::Addcdiv)
            && operands[1..].iter().all(|o| o.category() < Category::Float)
        {
            return Err(Error::new(
                Kind::DType,
                "integers are not divided here; use div_rounding() and add(), or cast with to() first",
            )
            .op(self.name));
        }
        let promoted = result_type(&operands).map_err(|e| e.op(self.name))?;
        let compute = match self.compute {
            Compute::Float if promoted.category() < Category::Float => DType::F32,
            Compute::Number if promoted == DType::Bool => DType::I64,
            Compute::Double if promoted.is_complex() => DType::C128,
            Compute::Double => DType::F64,
            Compute::Same => self.one_dtype()?,
            _ => promoted,
        };
        self.check_factor(compute)?;
        self.check_bounds(compute)?;
        // Compared exactly also with a number that the integers cannot hold.
        let beyond = |arg: &Arg<'_>| matches!(*arg, Arg::Number(n) if compute.is_integer() && n.saturate(compute) != n);
        let compute = match self.op {
            Op::Compare(_) if self.args.iter().any(beyond) => DType::I64,
            _ => compute,
        };
        Ok(compute)
    }

    /// The loop that computes in this dtype.
    fn body(&self, compute: DType) -> Result<Body> {
        let numbers = self.numbers;
        let body = match (self.op, self.args) {
            (Op::Unary(op), _) => kernels::unary(op, compute).map(|k| Body::Unary(k.with(numbers))),
            (Op::Binary(op), [_, b]) if is_one_number(b) => {
                kernels::binary_by_number(op, compute).map(|k| Body::Binary(k.with(numbers)))
            }
            (Op::Binary(op), _) => {
                kernels::binary(op, compute).map(|k| Body::Binary(k.with(numbers)))
            }
            (Op::Ternary(op), _) => {
                kernels::ternary(op, compute).map(|k| Body::Ternary(k.with(numbers)))
            }
            (Op::Compare(op), _) => {
                kernels::compare(op, compute).map(|k| Body::Binary(k.with(numbers)))
            }
        };
        let Some(body) = body else {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {compute}; cast with to() first"),
            )
            .op(self.name));
        };
        let half = compute.is_float() && compute.size() < 4;
        if half && body.result().is_complex() {
            return Err(Error::new(
                Kind::DType,
                format!("no complex dtype has parts of {compute}; cast to float32 with to() first"),
            )
            .op(self.name));
        }
        Ok(body)
    }

    /// The dtype that all operands have; numbers take it.
    fn one_dtype(&self) -> Result<DType> {
        let mut views = self.views();
        let first = views.next().map_or(DType::F32, View::dtype);
        match views.find(|v| v.dtype() != first) {
            None => Ok(first),
            Some(other) => Err(Error::new(
                Kind::DType,
                format!(
                    "all tensors must have one dtype, found {first} and {}; cast one with to()",
                    other.dtype()
                ),
            )
            .op(self.name)),
        }
    }

    /// Checks that a bound which integers cannot hold is none that they would have to.
    fn check_bounds(&self, compute: DType) -> Result<()> {
        let (lower, upper) = match (self.op, self.args) {
            (Op::Ternary(TernaryOp::Clamp), &[_, lower, upper]) => (Some(lower), Some(upper)),
            (Op::Binary(BinaryOp::Maximum), &[_, lower]) => (Some(lower), None),
            (Op::Binary(BinaryOp::Minimum), &[_, upper]) => (None, Some(upper)),
            _ => return Ok(()),
        };
        let beyond = |bound: Option<Arg<'_>>, above: bool| match bound {
            Some(Arg::Number(n))
                if n.saturate(compute) != n && (f64::from_scalar(n) > 0.0) == above =>
            {
                let message =
                    format!("no element of {compute} keeps the bound {n}; cast with to() first");
                Err(Error::new(Kind::Value, message).op(self.name))
            }
            _ => Ok(()),
        };
        beyond(lower, true)?;
        beyond(upper, false)
    }

    /// Checks that a factor (`alpha`, `value`) is one that the dtype can hold.
    fn check_factor(&self, compute: DType) -> Result<()> {
        let Some(&factor) = self.numbers.first() else {
            return Ok(());
        };
        match self.op {
            Op::Ternary(TernaryOp::Addcmul | TernaryOp::Addcdiv) => {
                factor.check_fits(compute).map_err(|e| e.op(self.name))
            }
            Op::Binary(BinaryOp::AddScaled | BinaryOp::SubScaled)
                if factor.category() > compute.category().max(Category::Integer) =>
            {
                Err(Error::new(
                    Kind::DType,
                    format!("the factor {factor} does not fit {compute}; cast with to() first"),
                )
                .op(self.name))
            }
            _ => Ok(()),
        }
    }

    /// The layout of a fresh result.
    fn layout(&self, compute: DType) -> Result<Layout> {
        if let ([Arg::View(x)], true) = (self.args, self.is_laid_out_like()) {
            return x
                .layout()
                .like(MemoryFormat::Preserve)
                .map_err(|e| e.op(self.name));
        }
        if let ([Arg::View(x)], Op::Unary(UnaryOp::LogSigmoid)) = (self.args, self.op) {
            return Layout::contiguous(x.shape()).map_err(|e| e.op(self.name));
        }
        if let Some(layout) = self.layout_alike(compute) {
            return Ok(layout);
        }
        // A number is a 0-dim input, without a say in the order of dims, but for the operations that PyTorch has
        // twice, once for numbers.
        let skips_numbers = match self.op {
            Op::Binary(BinaryOp::Pow | BinaryOp::Maximum | BinaryOp::Minimum) => {
                matches!(self.args, [Arg::View(_), ..])
            }
            Op::Ternary(_) => true,
            _ => false,
        };
        // PyTorch casts first, and its casts are dense.
        let is_cast = |v: &View| v.dtype() != compute;
        let mut casts = Vec::new();
        for view in self.views().filter(|v| is_cast(v)) {
            let cast = view.layout().like(MemoryFormat::Preserve);
            casts.push(cast.map_err(|e| e.op(self.name))?);
        }
        let (mut casts, scalar) = (casts.iter(), Layout::scalar());
        let mut inputs: SmallVec<[&Layout; 4]> = SmallVec::new();
        for arg in self.args {
            match arg {
                Arg::View(v) if is_cast(v) => inputs.extend(casts.next()),
                Arg::View(v) => inputs.push(v.layout()),
                Arg::Number(_) if skips_numbers => {}
                Arg::Number(_) => inputs.push(&scalar),
            }
        }
        let shape = inputs.first().map_or(&[][..], |first| first.sizes());
        let layout = if inputs.iter().all(|l| l.sizes() == shape) {
            elementwise_output(&inputs, shape)
        } else {
            let shapes: SmallVec<[&[usize]; 4]> = inputs.iter().map(|l| l.sizes()).collect();
            broadcast_shapes(&shapes).and_then(|shape| elementwise_output(&inputs, &shape))
        };
        layout.map_err(|e| e.op(self.name))
    }

    /// The layout where the views are all alike and dense, row after row, as most are.
    #[inline]
    fn layout_alike(&self, compute: DType) -> Option<Layout> {
        let shape = self.views().next()?.shape();
        // Not `==`, which calls a function for the few bytes.
        let is_alike = |v: &View| {
            let mut step = 1;
            let mut dims = v.shape().iter().zip(v.stride()).rev();
            v.dtype() == compute
                && v.shape().iter().eq(shape)
                // Without elements PyTorch's answer depends on the order of the operands.
                && dims.all(|(&n, &s)| n > 0 && s == mem::replace(&mut step, s.wrapping_mul(n)))
        };
        let is_dense = self.views().all(is_alike);
        is_dense.then(|| Layout::contiguous(shape).ok()).flatten()
    }

    /// Whether the result is laid out as a copy would be: PyTorch makes it with `empty_like` there, which keeps
    /// also the strides of dims of size 1.
    fn is_laid_out_like(&self) -> bool {
        let category = self.views().next().map(|v| v.dtype().category());
        let like = [
            UnaryOp::Deg2Rad,
            UnaryOp::Rad2Deg,
            UnaryOp::Hardtanh,
            UnaryOp::NanToNum,
        ];
        match self.op {
            Op::Unary(op) if like.contains(&op) => true,
            Op::Unary(UnaryOp::Abs) => category == Some(Category::Complex),
            Op::Unary(UnaryOp::IsFinite | UnaryOp::IsInf) => category < Some(Category::Float),
            Op::Unary(UnaryOp::IsReal) => category < Some(Category::Complex),
            _ => false,
        }
    }

    fn check_category(&self, result: DType, dst: &View) -> Result<()> {
        if result.can_cast(dst.dtype()) {
            return Ok(());
        }
        Err(Error::new(
            Kind::DType,
            format!(
                "result type {} can't be cast to the desired output type {}; use the form that gives a new tensor",
                result,
                dst.dtype()
            ),
        )
        .op(self.name))
    }

    fn run(&self, compute: DType, body: &Body, dst: To<'_>) -> Result<()> {
        let backend = backend(dst.view().device());
        let done = match (self.op, self.args) {
            // A bound that the integers cannot hold is none.
            (Op::Binary(BinaryOp::Maximum | BinaryOp::Minimum), &[a, b]) => {
                let args = [a, b].map(|arg| saturated(arg, compute));
                backend.elementwise(body, dst, &args)
            }
            (Op::Ternary(TernaryOp::Clamp), &[a, b, c]) => {
                let args = [a, b, c].map(|arg| saturated(arg, compute));
                backend.elementwise(body, dst, &args)
            }
            (Op::Binary(op), &[_, b])
                if op.divides() && compute.is_integer() && dst.view().numel() > 0 =>
            {
                backend.any_zero(b).and_then(|zero| match zero {
                    true => Err(Error::new(
                        Kind::Value,
                        "integer division by zero; nothing was written",
                    )),
                    false => backend.elementwise(body, dst, self.args),
                })
            }
            _ => backend.elementwise(body, dst, self.args),
        };
        done.map_err(|e| e.op(self.name))
    }
}

/// A number as the dtype holds it, or what it holds next to it.
fn saturated(arg: Arg<'_>, dtype: DType) -> Arg<'_> {
    match arg {
        Arg::Number(n) => Arg::Number(n.saturate(dtype)),
        other => other,
    }
}

/// Whether an operand is one element, read again and again where the others have more.
fn is_one_number(arg: &Arg<'_>) -> bool {
    match arg {
        Arg::Number(_) => true,
        Arg::View(v) => v
            .shape()
            .iter()
            .zip(v.stride())
            .all(|(&n, &step)| n == 1 || step == 0),
    }
}

#[cold]
pub(crate) fn other_device(a: Device, b: Device) -> Error {
    Error::new(
        Kind::Device,
        format!("all tensors must be on one device, found {a} and {b}; move one with to()"),
    )
}

/// Checks that `src` broadcasts to the shape of `dst`, which a write in place never changes.
pub(crate) fn check_broadcasts_to(src: &View, dst: &View, op: &'static str) -> Result<()> {
    let fits = src.dim() <= dst.dim()
        && src
            .shape()
            .iter()
            .rev()
            .zip(dst.shape().iter().rev())
            .all(|(&s, &d)| s == d || s == 1);
    if fits {
        return Ok(());
    }
    Err(Error::new(
        Kind::Shape,
        format!(
            "shape {:?} of the input does not broadcast to shape {:?} of the output, which stays as it is",
            src.shape(),
            dst.shape()
        ),
    )
    .op(op))
}
