//! The dtype of a result: PyTorch's promotion among tensors, 0-dim tensors and plain numbers.

use crate::{Category, DType, Result, Scalar};

/// What one operand says about the dtype of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A tensor with dimensions.
    Tensor(DType),
    /// A tensor without dimensions: its category counts, its width only among its equals.
    ZeroDim(DType),
    /// A plain number: only its category counts.
    Number(Category),
}

impl Operand {
    /// A tensor of this dtype and rank.
    #[inline]
    pub fn new(dtype: DType, rank: usize) -> Operand {
        if rank == 0 {
            Operand::ZeroDim(dtype)
        } else {
            Operand::Tensor(dtype)
        }
    }

    /// Its kind of number.
    pub fn category(&self) -> Category {
        match *self {
            Operand::Tensor(d) | Operand::ZeroDim(d) => d.category(),
            Operand::Number(c) => c,
        }
    }

    /// Whether it is `bool`, or the number `true` or `false`.
    pub fn is_bool(&self) -> bool {
        self.category() == Category::Bool
    }
}

impl From<Scalar> for Operand {
    fn from(s: Scalar) -> Operand {
        Operand::Number(s.category())
    }
}

/// The dtype that PyTorch's `result_type` gives these operands: the promotion of the highest rank of
/// operand that has the highest category, where tensors with dimensions outrank 0-dim tensors, and
/// those outrank plain numbers.
///
/// # Errors
/// Where two dtypes do not promote; see [`DType::promote`].
///
/// ```
/// use osteon_spec::{Category, DType, Operand, result_type};
/// let number = Operand::Number(Category::Float);
/// assert_eq!(result_type(&[Operand::Tensor(DType::F16), number]).unwrap(), DType::F16);
/// assert_eq!(result_type(&[Operand::Tensor(DType::I64), number]).unwrap(), DType::F32);
/// ```
pub fn result_type(operands: &[Operand]) -> Result<DType> {
    // The common case: equal dtypes, or a number that changes nothing.
    if let [Operand::Tensor(a), rest @ ..] = operands
        && rest.iter().all(|o| match *o {
            Operand::Tensor(b) => *a == b,
            Operand::ZeroDim(b) => *a == b,
            Operand::Number(c) => c <= a.category() && !a.is_float8(),
        })
    {
        return Ok(*a);
    }
    let (mut dims, mut zero, mut number) = (None, None, None);
    for operand in operands {
        match *operand {
            Operand::Tensor(d) => join(&mut dims, d)?,
            Operand::ZeroDim(d) => join(&mut zero, d)?,
            Operand::Number(c) => join(&mut number, default_of(c))?,
        }
    }
    let lower = combine(zero, number)?;
    // No operands: nobody calls with none; a float is as good as anything.
    Ok(combine(dims, lower)?.unwrap_or(DType::F32))
}

/// The dtype of a plain number where nothing else decides.
fn default_of(category: Category) -> DType {
    match category {
        Category::Bool => DType::Bool,
        Category::Integer => DType::I64,
        Category::Float => DType::F32,
        Category::Complex => DType::C64,
    }
}

fn join(so_far: &mut Option<DType>, d: DType) -> Result<()> {
    *so_far = Some(match *so_far {
        None => d,
        Some(s) => s.promote(d)?,
    });
    Ok(())
}

/// The higher rank decides unless the lower has the higher category.
fn combine(higher: Option<DType>, lower: Option<DType>) -> Result<Option<DType>> {
    let (Some(high), Some(low)) = (higher, lower) else {
        return Ok(higher.or(lower));
    };
    Ok(Some(match (high.category(), low.category()) {
        (Category::Complex, _) => high,
        // 8-bit floats have no complex of their precision; `promote` says so.
        (Category::Float, Category::Complex) if high.is_float8() => high.promote(low)?,
        // A complex of the same precision as the higher operand's float.
        (Category::Float, Category::Complex) => high.to_complex(),
        (Category::Float, _) => high,
        (_, Category::Complex) => low,
        (h, l) if h == Category::Bool || l > Category::Integer => high.promote(low)?,
        _ => high,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.result_type` of PyTorch 2.15: every dtype, with and without dimensions, with every
    /// other and with numbers.
    const ANSWERS: &str = include_str!("../tests/data/result_type.txt");

    fn operand(text: &str) -> Operand {
        match text.split_once(':') {
            Some((d, rank)) => Operand::new(DType::from_name(d).unwrap(), rank.parse().unwrap()),
            None => Operand::Number(match text {
                "b" => Category::Bool,
                "i" => Category::Integer,
                "f" => Category::Float,
                _ => Category::Complex,
            }),
        }
    }

    #[test]
    fn result_types_are_pytorchs() {
        let mut wrong = vec![];
        for line in ANSWERS.lines() {
            let [a, b, want] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let got = result_type(&[operand(a), operand(b)]).ok();
            // There is no complex of two halves here: their complex is complex64.
            let want = if want.ends_with("complex32") {
                "complex64"
            } else {
                want
            };
            if got != DType::from_name(want) {
                wrong.push(format!("{line}: got {got:?}"));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} wrong:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}
