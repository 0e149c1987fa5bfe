//! Calls of operations element by element on tensors and numbers, recorded.

use crate::graph::{Recorder, record};
use crate::out::into;
use crate::rules::elementwise::{self as rules, Elementwise, NOTHING, Part, save_operands, zero};
use crate::{Operand, Tensor};
use osteon_spec::{Result, Scalar};
use osteon_tensor::{Arg, BinaryOp, Call, Compute, Op, View};

/// One call of an operation element by element of `N` operands.
pub(crate) struct Pointwise<'a, const N: usize> {
    pub name: &'static str,
    pub op: Op,
    pub compute: Compute,
    pub operands: [Operand<'a>; N],
    /// The numbers that it takes beside its operands.
    pub numbers: &'a [Scalar],
}

/// An operation of two tensors in the dtype that they promote to, with its numbers.
#[track_caller]
pub(crate) fn pairwise(
    name: &'static str,
    op: BinaryOp,
    a: &Tensor,
    b: &Tensor,
    numbers: &[Scalar],
) -> Result<Tensor> {
    Pointwise {
        name,
        op: Op::Binary(op),
        compute: Compute::Promoted,
        operands: [a.into(), b.into()],
        numbers,
    }
    .fresh()
}

impl<const N: usize> Pointwise<'_, N> {
    /// The result in a new tensor.
    ///
    /// # Errors
    /// As [`Call::fresh`].
    #[track_caller]
    #[inline]
    pub fn fresh(&self) -> Result<Tensor> {
        let args = self.operands.map(Operand::arg);
        self.record(self.call(&args).fresh()?)
    }

    /// The result written into the first operand.
    ///
    /// # Errors
    /// As [`Call::in_place`], and those of writes under the graph.
    #[track_caller]
    pub fn in_place(&self) -> Result<()> {
        let args = self.operands.map(Operand::arg);
        self.write(|target| self.call(&args).in_place(target))
    }

    /// The result written into `out`, never recorded.
    ///
    /// # Errors
    /// As [`Call::out`]; an argument that requires a gradient.
    #[track_caller]
    pub fn out(&self, out: &Tensor) -> Result<()> {
        let args = self.operands.map(Operand::arg);
        self.call(&args).out(into(out, self.operands, self.name)?)
    }

    fn call<'b>(&'b self, args: &'b [Arg<'b>; N]) -> Call<'b> {
        Call {
            name: self.name,
            op: self.op,
            compute: self.compute,
            args,
            numbers: self.numbers,
        }
    }

    /// A result of this operation as a tensor, with its history.
    #[inline]
    pub fn record(&self, out: View) -> Result<Tensor> {
        match self.op {
            // The result is `bool`.
            Op::Compare(_) => Ok(Tensor::from_view(out)),
            Op::Unary(op) => self.recorded(out, || [rules::unary(op, self.numbers, false)]),
            Op::Binary(op) => self.recorded(out, || rules::binary(op)),
            Op::Ternary(op) => self.recorded(out, || rules::ternary(op)),
        }
    }

    #[inline]
    fn recorded<const M: usize>(
        &self,
        out: View,
        parts: impl FnOnce() -> [Part; M],
    ) -> Result<Tensor> {
        record(out, &self.operands, |r, out| {
            let parts = parts();
            save_operands(r, &parts, &self.operands, false)?;
            Elementwise::new(r, parts, &self.operands, self.numbers, out)
        })
    }

    /// Runs `run`, which writes this operation's result into the view that it is given: the first operand.
    ///
    /// # Errors
    /// Those of `run`, and of writes under the graph.
    #[track_caller]
    pub fn write(&self, run: impl FnOnce(&View) -> Result<()>) -> Result<()> {
        match self.op {
            // What was there before is lost.
            Op::Compare(_) => self.written([zero(NOTHING); 2], run),
            Op::Unary(op) => self.written([rules::unary(op, self.numbers, true)], run),
            Op::Binary(op) => self.written(rules::binary(op), run),
            Op::Ternary(op) => self.written(rules::ternary(op), run),
        }
    }

    #[track_caller]
    fn written<const M: usize>(
        &self,
        parts: [Part; M],
        run: impl FnOnce(&View) -> Result<()>,
    ) -> Result<()> {
        let Some(Operand::Tensor(target)) = self.operands.first() else {
            return Ok(());
        };
        let target = target.as_view();
        Recorder::in_place(
            self.name,
            &self.operands,
            |r| save_operands(r, &parts, &self.operands, true),
            || run(target),
            |r| Elementwise::new(r, parts, &self.operands, self.numbers, target),
        )
    }
}
