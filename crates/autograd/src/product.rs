//! Products of two tensors whose dims have names: dims of one name are multiplied, names that the result lacks are summed.
//! The derivative of such a product is another one, so that no factor is copied, expanded or transposed for it.

use crate::Tensor;
use crate::graph::{Back, Recorder, Rule, record, rule, two};
use osteon_spec::{Result, Scalar};
use osteon_tensor::View;
use smallvec::SmallVec;

/// A name for each dim.
pub(crate) type Names = SmallVec<[u8; 8]>;

/// Names of the last dims of matrices, which no batch reaches.
const ROW: u8 = 253;
const SUMMED: u8 = 254;
const COLUMN: u8 = 255;

/// The names of the dims of two factors and of their product.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub lhs: Names,
    pub rhs: Names,
    pub out: Names,
}

impl Product {
    /// Names of one letter each, as `einsum` has them.
    pub fn named(lhs: &str, rhs: &str, out: &str) -> Product {
        let [lhs, rhs, out] = [lhs, rhs, out].map(|s| Names::from_slice(s.as_bytes()));
        Product { lhs, rhs, out }
    }

    /// Of the products of vectors, matrices and batches of them, whose batches broadcast.
    pub fn matmul(lhs: usize, rhs: usize) -> Product {
        let names = |rank: usize, own: &[u8]| -> Names {
            let batch = (0..rank.saturating_sub(2)).rev().map(|d| d as u8);
            batch.chain(own.iter().copied()).collect()
        };
        let (row, column) = (
            &[ROW][..usize::from(lhs > 1)],
            &[COLUMN][..usize::from(rhs > 1)],
        );
        Product {
            lhs: names(lhs, &[row, &[SUMMED]].concat()),
            rhs: names(rhs, &[&[SUMMED], column].concat()),
            out: names(lhs.max(rhs), &[row, column].concat()),
        }
    }

    /// The same with the right matrices transposed.
    pub fn matmul_transposed(lhs: usize, rhs: usize) -> Product {
        let mut product = Product::matmul(lhs, rhs);
        if let [.., a, b] = &mut product.rhs[..] {
            std::mem::swap(a, b);
        }
        product
    }

    /// Of an input's last dim with the last dim of a matrix or a vector.
    pub fn linear(input: usize, weight: usize) -> Product {
        let outer = (0..input - 1).map(|d| d as u8);
        let made = &[COLUMN][..weight - 1];
        Product {
            lhs: outer.clone().chain([SUMMED]).collect(),
            rhs: made.iter().copied().chain([SUMMED]).collect(),
            out: outer.chain(made.iter().copied()).collect(),
        }
    }

    /// Of the dims of two factors, given by rank, of which some are summed in pairs.
    pub fn contracted((m, summed): (usize, &[usize]), (n, with): (usize, &[usize])) -> Product {
        let lhs: Names = (0..m).map(|d| d as u8).collect();
        let own = |d: usize| match with.iter().position(|&w| w == d) {
            Some(k) => summed[k] as u8,
            None => (m + d) as u8,
        };
        let rhs: Names = (0..n).map(own).collect();
        let left = (0..m).filter(|d| !summed.contains(d)).map(|d| d as u8);
        let right = (0..n).filter(|d| !with.contains(d)).map(own);
        Product {
            out: left.chain(right).collect(),
            lhs,
            rhs,
        }
    }

    /// Of dims that broadcast, of which one is summed.
    pub fn broadcast(m: usize, n: usize, summed: usize) -> Product {
        let rank = m.max(n);
        let names = |own: usize| (rank - own..rank).map(|d| d as u8);
        Product {
            lhs: names(m).collect(),
            rhs: names(n).collect(),
            out: names(rank).filter(|&d| d != summed as u8).collect(),
        }
    }

    /// Of dims of one rank that broadcast.
    pub fn aligned(rank: usize) -> Product {
        let all: Names = (0..rank).map(|d| d as u8).collect();
        Product {
            lhs: all.clone(),
            rhs: all.clone(),
            out: all,
        }
    }

    /// Saves what the derivative needs of two factors, of which the first is input `at` of the operation.
    pub fn save(&self, r: &mut Recorder, lhs: &Tensor, rhs: &Tensor, at: usize) -> Result<()> {
        let (of_lhs, of_rhs) = (r.needs(at), r.needs(at + 1));
        if !of_lhs && !of_rhs {
            return Ok(());
        }
        r.save_if(of_rhs, lhs)?;
        r.save_if(of_lhs, rhs)
    }

    /// The gradients of two factors that were saved, from that of their product.
    pub fn gradients(&self, b: &Back<'_>, g: &Tensor, at: usize) -> Result<[Option<Tensor>; 2]> {
        Ok([
            b.want(at, || self.of_lhs(g, &b.saved(1)?.conj()?, b.sizes(at)))?,
            b.want(at + 1, || {
                self.of_rhs(g, &b.saved(0)?.conj()?, b.sizes(at + 1))
            })?,
        ])
    }

    /// The product of a gradient and the right factor, summed to the left one's sizes.
    pub fn of_lhs(&self, g: &Tensor, rhs: &Tensor, sizes: &[usize]) -> Result<Tensor> {
        let names = Product {
            lhs: self.out.clone(),
            rhs: self.rhs.clone(),
            out: self.lhs.clone(),
        };
        names.multiply(g, rhs, sizes)
    }

    /// The product of a gradient and the left factor, summed to the right one's sizes.
    pub fn of_rhs(&self, g: &Tensor, lhs: &Tensor, sizes: &[usize]) -> Result<Tensor> {
        let names = Product {
            lhs: self.lhs.clone(),
            rhs: self.out.clone(),
            out: self.rhs.clone(),
        };
        names.multiply(lhs, g, sizes)
    }

    /// The product, of these sizes: dims of size 1 broadcast, or are summed where the factors' are larger.
    fn multiply(self, lhs: &Tensor, rhs: &Tensor, sizes: &[usize]) -> Result<Tensor> {
        let dtype = lhs.dtype().promote(rhs.dtype())?;
        let (lhs, rhs) = (lhs.to(dtype)?, rhs.to(dtype)?);
        let factors = [(lhs.as_view(), &self.lhs[..]), (rhs.as_view(), &self.rhs)];
        let out = View::contract(factors, (sizes, &self.out))?;
        product(out, &lhs, &rhs, || self)
    }

    pub fn rule(self) -> impl Rule {
        rule(move |b| {
            let [lhs, rhs] = self.gradients(b, &b.grad()?, 0)?;
            two(lhs, rhs)
        })
    }
}

/// The product of two factors, which an operation has made, as a tensor.
pub(crate) fn product(
    out: View,
    lhs: &Tensor,
    rhs: &Tensor,
    names: impl FnOnce() -> Product,
) -> Result<Tensor> {
    record(out, &[lhs, rhs], |r, _| {
        let names = names();
        names.save(r, lhs, rhs, 0)?;
        Ok(names.rule())
    })
}

/// The same of a product whose left factor is conjugated.
pub(crate) fn conjugated(
    out: View,
    lhs: &Tensor,
    rhs: &Tensor,
    names: impl FnOnce() -> Product,
) -> Result<Tensor> {
    record(out, &[lhs, rhs], |r, _| {
        let names = names();
        names.save(r, lhs, rhs, 0)?;
        Ok(rule(move |b| {
            let g = b.grad()?;
            two(
                b.want(0, || names.of_lhs(&g.conj()?, &b.saved(1)?, b.sizes(0)))?,
                b.want(1, || names.of_rhs(&g, &b.saved(0)?, b.sizes(1)))?,
            )
        }))
    })
}

/// A gradient times a number; itself where that is 1.
pub(crate) fn times(g: &Tensor, number: Scalar) -> Result<Tensor> {
    match number {
        Scalar::Int(1) | Scalar::UInt(1) | Scalar::Bool(true) => Ok(g.clone()),
        Scalar::Float(x) | Scalar::Complex(x, 0.0) if x == 1.0 => Ok(g.clone()),
        number => g.mul(number),
    }
}

pub(crate) fn conjugate(number: Scalar) -> Scalar {
    match number {
        Scalar::Complex(re, im) => Scalar::Complex(re, -im),
        real => real,
    }
}
