//! `einsum`: sums of products, written by the names of dims.

use crate::Tensor;
use crate::graph::{Strided, viewed};
use crate::product::{Product, product};
use osteon_spec::{Dims, Error, Kind, Layout, Result};
use std::collections::BTreeMap;

const NAME: &str = "einsum";

fn invalid(message: String) -> Error {
    Error::new(Kind::Value, message).op(NAME)
}

/// The name of a dim: a letter, or a place within the ellipsis, counted from its last dim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Ellipsis(usize),
    Letter(char),
}

/// One operand's names, as they are written: `None` is the ellipsis.
type Term = Vec<Option<char>>;

fn term(text: &str) -> Result<Term> {
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if names.contains(&None) {
                return Err(invalid(format!("two ellipses in {text:?}")));
            }
            names.push(None);
            rest = after;
            continue;
        }
        match c {
            ' ' => {}
            c if c.is_ascii_alphabetic() => names.push(Some(c)),
            c => {
                return Err(invalid(format!(
                    "{c:?} in {text:?} is no name of a dim: letters are"
                )));
            }
        }
        rest = &rest[c.len_utf8()..];
    }
    Ok(names)
}

/// Names with the ellipsis standing for so many dims.
fn named(term: &Term, ellipsis: usize) -> Vec<Name> {
    term.iter()
        .flat_map(|name| match name {
            Some(c) => vec![Name::Letter(*c)],
            None => (0..ellipsis).rev().map(Name::Ellipsis).collect(),
        })
        .collect()
}

/// An equation over operands: the names of each, and of the result.
struct Equation {
    operands: Vec<Vec<Name>>,
    result: Vec<Name>,
}

fn parse(equation: &str, operands: &[&Tensor]) -> Result<Equation> {
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(term(right)?)),
        None => (equation, None),
    };
    let terms = left.split(',').map(term).collect::<Result<Vec<Term>>>()?;
    if terms.len() != operands.len() {
        return Err(invalid(format!(
            "{equation:?} has {} operands, but {} are given",
            terms.len(),
            operands.len()
        )));
    }
    let mut names = Vec::new();
    let mut ellipsis = 0;
    for (term, view) in terms.iter().zip(operands) {
        let letters = term.iter().flatten().count();
        let hidden = view
            .dim()
            .checked_sub(letters)
            .filter(|&n| n == 0 || term.contains(&None));
        let Some(hidden) = hidden else {
            return Err(invalid(format!(
                "{equation:?} names {letters} dims of an operand of shape {:?}",
                view.shape()
            )));
        };
        ellipsis = ellipsis.max(hidden);
        names.push(named(term, hidden));
    }
    let result = match right {
        Some(right) => named(&right, ellipsis),
        None => {
            // What occurs once, in the order of the alphabet, after the ellipsis.
            let mut counts = BTreeMap::new();
            for name in names.iter().flatten() {
                *counts.entry(*name).or_insert(0) += 1;
            }
            let letters = counts
                .iter()
                .filter(|(name, n)| matches!(name, Name::Letter(_)) && **n == 1);
            let hidden = (0..ellipsis).rev().map(Name::Ellipsis);
            hidden.chain(letters.map(|(name, _)| *name)).collect()
        }
    };
    for (i, name) in result.iter().enumerate() {
        if result[..i].contains(name) {
            return Err(invalid(format!(
                "{equation:?} names a dim of the result twice"
            )));
        }
        if !names.iter().flatten().any(|n| n == name) && matches!(name, Name::Letter(_)) {
            return Err(invalid(format!(
                "{equation:?} names a dim of the result that no operand has"
            )));
        }
    }
    Ok(Equation {
        operands: names,
        result,
    })
}

impl Tensor {
    /// Sums of products of tensors whose dims are named by letters. Dims that the result lacks are summed, a name twice in
    /// one operand is its diagonal, `...` stands for dims that broadcast; without `->` the result has the names that
    /// occur once, in alphabetical order. No operand is copied, whatever its strides; three or more are multiplied
    /// from the left.
    ///
    /// # Errors
    /// An equation that makes no sense or does not fit; sizes that do not broadcast; dtypes that differ where dims are
    /// summed; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(Tensor::einsum("ij,kj->ik", &[&a, &a])?.to_vec::<i64>()?, [5, 11, 11, 25]);
    /// assert_eq!(Tensor::einsum("ii", &[&a])?.item::<i64>()?, 5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let Equation {
            operands: names,
            result,
        } = parse(equation, operands)?;
        // All dims in one order: those of the result, then those that are summed.
        let mut order = result.clone();
        let mut summed: Vec<Name> = names
            .iter()
            .flatten()
            .copied()
            .filter(|n| !result.contains(n))
            .collect();
        summed.sort();
        summed.dedup();
        order.extend(summed);
        let mut aligned = Vec::with_capacity(operands.len());
        for (tensor, names) in operands.iter().zip(&names) {
            aligned.push(align(tensor, names, &order)?);
        }
        check_sizes(&aligned, equation)?;
        let kept = result.len();
        let mut rest = aligned.into_iter();
        let Some(mut product) = rest.next() else {
            return Err(invalid("no operands are given".to_owned()));
        };
        let later: Vec<Tensor> = rest.collect();
        for (i, next) in later.iter().enumerate() {
            // A dim is summed with the last operand that has it.
            let done: Vec<usize> = (kept..order.len())
                .filter(|&d| later[i + 1..].iter().all(|v| v.shape()[d] == 1))
                .collect();
            product = pair(&product, next, &done)?;
        }
        let sums: Vec<isize> = (kept..order.len()).map(|d| d as isize).collect();
        match (sums.is_empty(), operands.len()) {
            (true, _) => Ok(product),
            (false, 1) => product.sum_dims(&sums, false),
            (false, _) => product.squeeze_dims(&sums),
        }
    }
}

/// A view with the dims of this order: diagonals of names that repeat, dims of size 1 for those that it lacks.
#[track_caller]
fn align(tensor: &Tensor, names: &[Name], order: &[Name]) -> Result<Tensor> {
    let view = tensor.as_view();
    let view = view.with_layout(aligned(view.layout(), names, order)?, NAME)?;
    viewed(tensor, view, || {
        Strided::over(tensor, |layout| aligned(layout, names, order))
    })
}

fn aligned(layout: &Layout, names: &[Name], order: &[Name]) -> Result<Layout> {
    let (mut sizes, mut strides) = (Dims::new(), Dims::new());
    for name in order {
        let (mut size, mut stride) = (1, 0);
        for (d, _) in names.iter().enumerate().filter(|(_, n)| *n == name) {
            let own = layout.sizes()[d];
            if own != size && size != 1 && own != 1 {
                return Err(invalid(format!(
                    "one name for dims of sizes {size} and {own} of an operand of shape {:?}",
                    layout.sizes()
                )));
            }
            if own != 1 {
                stride += layout.strides()[d];
            }
            size = if size == 1 { own } else { size };
        }
        sizes.push(size);
        strides.push(if size == 1 { 0 } else { stride });
    }
    Layout::new(sizes, strides, layout.offset())
}

fn check_sizes(operands: &[Tensor], equation: &str) -> Result<()> {
    for d in 0..operands.first().map_or(0, Tensor::dim) {
        let mut sizes = operands.iter().map(|v| v.shape()[d]).filter(|&n| n != 1);
        let first = sizes.next();
        if let Some(other) = sizes.find(|&n| Some(n) != first) {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "{equation:?} gives one name to dims of sizes {} and {other}",
                    first.unwrap_or(1)
                ),
            )
            .op(NAME));
        }
    }
    Ok(())
}

/// The product of two aligned tensors, of which some dims are summed and stay with size 1.
#[track_caller]
fn pair(a: &Tensor, b: &Tensor, done: &[usize]) -> Result<Tensor> {
    let both = |d: usize| a.shape()[d] != 1 && b.shape()[d] != 1;
    let together: Vec<usize> = done.iter().copied().filter(|&d| both(d)).collect();
    let alone = |t: &Tensor| -> Result<Tensor> {
        let dims: Vec<isize> = done
            .iter()
            .filter(|&&d| !both(d) && t.shape()[d] != 1)
            .map(|&d| d as isize)
            .collect();
        if dims.is_empty() {
            Ok(t.clone())
        } else {
            t.sum_dims(&dims, true)
        }
    };
    let (a, b) = (alone(a)?, alone(b)?);
    if together.is_empty() {
        return a.mul(&b).map_err(|e| e.op(NAME));
    }
    let out = a.as_view().aligned_product(b.as_view(), &together)?;
    product(out, &a, &b, || Product::aligned(a.dim()))
}
