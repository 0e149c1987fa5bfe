//! The derivatives of operations element by element, as tables: what each saves, and its formula.

mod binary;
mod ternary;
mod unary;

pub(crate) use binary::binary;
pub(crate) use ternary::ternary;
pub(crate) use unary::unary;

use crate::graph::{Back, Grads, Recorder, Rule};
use crate::pointwise::pairwise;
use crate::{Operand, Tensor};
use osteon_spec::{Category, DType, Error, Kind, Result, Scalar};
use osteon_tensor::{BinaryOp, View};

/// What a derivative looks at beside the gradient: a set of operands and the result.
pub(crate) type Sees = u8;

/// Nothing.
pub(crate) const NOTHING: Sees = 0;
/// The first operand.
pub(crate) const X: Sees = 1;
/// The second operand.
pub(crate) const Y: Sees = 2;
/// The third operand.
pub(crate) const Z: Sees = 4;
/// The result.
pub(crate) const OUT: Sees = 8;
/// That an operand may be a number, which PyTorch saves as a tensor: a second backward is an error.
pub(crate) const NUMBER: Sees = 16;

/// The derivative of an operation by one of its operands.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    sees: Sees,
    formula: fn(&Seen<'_>) -> Result<Tensor>,
}

/// A derivative that looks at these.
pub(crate) fn part(sees: Sees, formula: fn(&Seen<'_>) -> Result<Tensor>) -> Part {
    Part { sees, formula }
}

/// The derivative of what is constant piece by piece.
pub(crate) fn zero(sees: Sees) -> Part {
    part(sees, |s| s.g.zeros_like(None))
}

/// The derivative of an operation that is not differentiable, and of which PyTorch too refuses one.
pub(crate) fn refused() -> Part {
    part(NOTHING, |s| {
        Err(Error::new(
            Kind::Autograd,
            format!("{} has no derivative; detach() its input", s.name()),
        ))
    })
}

/// What a formula sees.
pub(crate) struct Seen<'a> {
    /// The gradient of the result.
    pub g: Tensor,
    back: &'a Back<'a>,
    saved: Sees,
    operands: &'a [Option<Scalar>],
    numbers: &'a [Scalar],
}

/// An operand as it was: a tensor, or a number.
pub(crate) enum Value {
    Tensor(Tensor),
    Number(Scalar),
}

impl Value {
    pub fn conj(&self) -> Result<Value> {
        Ok(match self {
            Value::Tensor(t) => Value::Tensor(t.conj()?),
            Value::Number(Scalar::Complex(re, im)) => Value::Number(Scalar::Complex(*re, -im)),
            Value::Number(n) => Value::Number(*n),
        })
    }
}

impl<'a> From<&'a Value> for Operand<'a> {
    fn from(value: &'a Value) -> Operand<'a> {
        match value {
            Value::Tensor(t) => Operand::Tensor(t),
            Value::Number(n) => Operand::Number(*n),
        }
    }
}

impl Seen<'_> {
    /// An operand that the part says it sees.
    pub fn operand(&self, which: Sees) -> Result<Value> {
        match self.operands[which.trailing_zeros() as usize] {
            Some(number) => Ok(Value::Number(number)),
            None => self.kept(which).map(Value::Tensor),
        }
    }

    fn kept(&self, which: Sees) -> Result<Tensor> {
        let before = (self.saved & (which - 1)).count_ones();
        self.back.saved(before as usize)
    }

    /// An operand as a tensor; a number as one without dims.
    fn tensor(&self, which: Sees) -> Result<Tensor> {
        match self.operand(which)? {
            Value::Tensor(t) => Ok(t),
            Value::Number(n) => {
                let dtype = match n.category() {
                    Category::Bool => DType::Bool,
                    Category::Integer => DType::I64,
                    Category::Float => DType::F64,
                    Category::Complex => DType::C128,
                };
                Tensor::scalar_tensor(n, dtype, &self.g.device())
            }
        }
    }

    pub fn x(&self) -> Result<Tensor> {
        self.tensor(X)
    }

    pub fn y(&self) -> Result<Tensor> {
        self.tensor(Y)
    }

    pub fn z(&self) -> Result<Tensor> {
        self.tensor(Z)
    }

    pub fn out(&self) -> Result<Tensor> {
        self.kept(OUT)
    }

    /// A derivative that one pass computes from the gradient and `at`, with the operation's numbers.
    pub fn fused(&self, name: &'static str, op: BinaryOp, at: &Tensor) -> Result<Tensor> {
        pairwise(name, op, &self.g, at, self.numbers)
    }

    /// The first operand or the result, whichever was saved.
    pub fn x_or_out(&self) -> Result<Tensor> {
        if self.saved & OUT == 0 {
            self.x()
        } else {
            self.out()
        }
    }

    /// The name of the operation.
    pub fn name(&self) -> &'static str {
        self.back.node.op
    }

    /// Number `k` of those that the operation takes beside its operands.
    pub fn number(&self, k: usize) -> Scalar {
        self.numbers[k]
    }

    /// That number of an operation that takes real ones.
    pub fn real(&self, k: usize) -> f64 {
        match self.numbers[k] {
            Scalar::Bool(b) => f64::from(u8::from(b)),
            Scalar::Int(i) => i as f64,
            Scalar::UInt(u) => u as f64,
            Scalar::Float(x) | Scalar::Complex(x, _) => x,
        }
    }
}

/// The rule of an operation element by element of `N` operands.
pub(crate) struct Elementwise<const N: usize> {
    parts: [Part; N],
    saved: Sees,
    /// The operands that are numbers.
    operands: [Option<Scalar>; N],
    numbers: Box<[Scalar]>,
}

impl<const N: usize> Elementwise<N> {
    /// Saves the result where that is needed, and gives the rule; operands were saved before.
    pub fn new(
        recorder: &mut Recorder,
        parts: [Part; N],
        operands: &[Operand<'_>],
        numbers: &[Scalar],
        out: &View,
    ) -> Result<Elementwise<N>> {
        let mut saved = sees(recorder, &parts);
        for (k, operand) in operands.iter().enumerate() {
            if let Operand::Number(_) = operand {
                saved &= !(1 << k);
            }
        }
        if saved & OUT != 0 {
            recorder.save_output(out)?;
        }
        if saved == NUMBER {
            recorder.save_number();
        }
        Ok(Elementwise {
            parts,
            saved,
            operands: std::array::from_fn(|k| match operands[k] {
                Operand::Tensor(_) => None,
                Operand::Number(n) => Some(n),
            }),
            numbers: numbers.into(),
        })
    }
}

/// What the derivatives that are needed see.
fn sees(recorder: &Recorder, parts: &[Part]) -> Sees {
    let needed = parts.iter().enumerate().filter(|&(k, _)| recorder.needs(k));
    needed.fold(NOTHING, |all, (_, part)| all | part.sees)
}

/// Saves the operands that the derivatives need; the first as a copy where it is about to be `overwritten`.
pub(crate) fn save_operands(
    recorder: &mut Recorder,
    parts: &[Part],
    operands: &[Operand<'_>],
    overwritten: bool,
) -> Result<()> {
    let sees = sees(recorder, parts);
    for (k, operand) in operands.iter().enumerate() {
        if sees & (1 << k) == 0 {
            continue;
        }
        match operand {
            Operand::Tensor(t) if overwritten && k == 0 => recorder.save(&t.copy()?)?,
            Operand::Tensor(t) => recorder.save(t)?,
            Operand::Number(_) => {}
        }
    }
    Ok(())
}

impl<const N: usize> Rule for Elementwise<N> {
    fn owns(&self) -> bool {
        false
    }

    fn backward(&self, back: &Back<'_>) -> Result<Grads> {
        let seen = Seen {
            g: back.grad()?,
            back,
            saved: self.saved,
            operands: &self.operands,
            numbers: &self.numbers,
        };
        let gradient = |(k, part): (usize, &Part)| back.want(k, || (part.formula)(&seen));
        self.parts.iter().enumerate().map(gradient).collect()
    }
}
