//! `einsum`: sums of products, written by the names of dims.

use crate::View;
use crate::backend::Arg;
use crate::create::reserved;
use crate::matmul::Contract;
use crate::target::Target;
use crate::{BinaryOp, Call, Compute, Op};
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

fn parse(equation: &str, operands: &[&View]) -> Result<Equation> {
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

impl View {
    /// Sums of products of operands whose dims are named: `"ij,jk->ik"`. Dims that the result lacks are summed, a name
    /// twice in one operand is its diagonal, `...` stands for dims that broadcast. Operands are read as they are;
    /// three or more are multiplied from the left.
    ///
    /// # Errors
    /// An equation that makes no sense or does not fit; sizes that do not broadcast; dtypes that differ where dims are
    /// summed; guards; out of memory.
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[&View]) -> Result<View> {
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
        let mut aligned = reserved(operands.len(), NAME)?;
        for (view, names) in operands.iter().zip(&names) {
            aligned.push(align(view, names, &order)?);
        }
        check_sizes(&aligned, equation)?;
        let kept = result.len();
        let mut rest = aligned.into_iter();
        let Some(mut product) = rest.next() else {
            return Err(invalid("no operands are given".to_owned()));
        };
        let later: Vec<View> = rest.collect();
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
            (false, 1) => product.sum(&sums, false, None),
            (false, _) => product.squeeze_dims(&sums),
        }
    }
}

/// A view with the dims of this order: diagonals of names that repeat, dims of size 1 for those that it lacks.
fn align(view: &View, names: &[Name], order: &[Name]) -> Result<View> {
    let (mut sizes, mut strides) = (Dims::new(), Dims::new());
    for name in order {
        let (mut size, mut stride) = (1, 0);
        for (d, _) in names.iter().enumerate().filter(|(_, n)| *n == name) {
            let own = view.shape()[d];
            if own != size && size != 1 && own != 1 {
                return Err(invalid(format!(
                    "one name for dims of sizes {size} and {own} of an operand of shape {:?}",
                    view.shape()
                )));
            }
            if own != 1 {
                stride += view.stride()[d];
            }
            size = if size == 1 { own } else { size };
        }
        sizes.push(size);
        strides.push(if size == 1 { 0 } else { stride });
    }
    view.with_layout(Layout::new(sizes, strides, view.storage_offset())?, NAME)
}

fn check_sizes(operands: &[View], equation: &str) -> Result<()> {
    for d in 0..operands.first().map_or(0, View::dim) {
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

/// The product of two aligned views, of which some dims are summed and stay with size 1. What dims of the result lie next
/// to each other is as in PyTorch, whose kernel multiplies batches of matrices.
#[track_caller]
fn pair(a: &View, b: &View, done: &[usize]) -> Result<View> {
    let rank = a.dim();
    let both = |d: usize| a.shape()[d] != 1 && b.shape()[d] != 1;
    let together: Vec<usize> = done.iter().copied().filter(|&d| both(d)).collect();
    let alone = |v: &View| -> Result<View> {
        let dims: Vec<isize> = done
            .iter()
            .filter(|&&d| !both(d) && v.shape()[d] != 1)
            .map(|&d| d as isize)
            .collect();
        if dims.is_empty() {
            Ok(v.clone())
        } else {
            v.sum(&dims, true, None)
        }
    };
    let (a, b) = (alone(a)?, alone(b)?);
    let size = |d: usize| {
        if a.shape()[d] == 1 {
            b.shape()[d]
        } else {
            a.shape()[d]
        }
    };
    if together.is_empty() {
        let args = [Arg::View(&a), Arg::View(&b)];
        return Call {
            name: NAME,
            op: Op::Binary(BinaryOp::Mul),
            compute: Compute::Promoted,
            args: &args,
            numbers: &[],
        }
        .fresh();
    }
    let (mut batch, mut left, mut right) = (vec![], vec![], vec![]);
    for d in (0..rank).filter(|d| !together.contains(d)) {
        match (a.shape()[d] != 1, b.shape()[d] != 1) {
            (true, true) => batch.push(d),
            (true, false) => left.push(d),
            (false, true) => right.push(d),
            (false, false) => {}
        }
    }
    if let (Some(&first), Some(&last)) = (left.first(), right.last())
        && last < first
    {
        (left, right) = (right, left);
    }
    let memory: Vec<usize> = [batch, left, together.clone(), right].concat();
    let result: Dims = (0..rank)
        .map(|d| if together.contains(&d) { 1 } else { size(d) })
        .collect();
    let (mut strides, mut step) = (Dims::from_elem(0, rank), 1usize);
    for &d in memory.iter().rev() {
        strides[d] = step;
        step = step.saturating_mul(result[d].max(1));
    }
    // A dim of size 1 in both is put in afterwards, as `unsqueeze` would.
    for d in (0..rank).rev().filter(|d| !memory.contains(d)) {
        strides[d] = if d + 1 < rank {
            result[d + 1].saturating_mul(strides[d + 1])
        } else {
            1
        };
    }
    let layout = Layout::new(result, strides, 0).map_err(|e| e.op(NAME))?;
    let stride = |v: &View, d: usize| if v.shape()[d] == 1 { 0 } else { v.stride()[d] };
    let mut contract = Contract::new(Target::fresh(NAME), &a, &b);
    for d in 0..rank {
        if together.contains(&d) {
            contract.keep(1, 0, 0);
            contract.sum(size(d), stride(&a, d), stride(&b, d));
        } else {
            contract.keep(size(d), stride(&a, d), stride(&b, d));
        }
    }
    contract.laid_out(layout)
}
