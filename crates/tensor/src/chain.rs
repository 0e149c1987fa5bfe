//! Products of many matrices: chains and powers.

use crate::View;
use crate::linalg::{Added, misfit};
use crate::matmul::{check_factors, multiplied};
use crate::target::{Target, with_out};
use osteon_spec::{Error, Kind, MemoryFormat, Result, Scalar};

with_out! { to;
    /// The product of two or more matrices, in the order that takes the fewest multiplications. The first and the last
    /// may be vectors.
    ///
    /// # Errors
    /// Fewer than two; other ranks; as [`View::matmul`].
    multi_dot multi_dot_out(factors: &[&View]) -> View {
        let to = to.named(["linalg.multi_dot", "multi_dot_out"]);
        let op = to.op;
        let ([first, .., last], n) = (factors, factors.len()) else {
            return Err(Error::new(
                Kind::Value,
                format!("expected at least 2 tensors, got {}", factors.len()),
            )
            .op(op));
        };
        let mut matrices = crate::create::reserved(n, op)?;
        for (i, factor) in factors.iter().enumerate() {
            let vector = factor.dim() == 1 && (i == 0 || i == n - 1);
            if !vector && factor.dim() != 2 {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "tensor {i} must be a matrix, got shape {:?}",
                        factor.shape()
                    ),
                )
                .op(op));
            }
            matrices.push(match vector {
                true => factor.unsqueeze(if i == 0 { 0 } else { 1 })?,
                false => (*factor).clone(),
            });
        }
        for pair in matrices.windows(2) {
            check_factors(&pair[0], &pair[1], op)?;
            if pair[0].shape()[1] != pair[1].shape()[0] {
                return Err(misfit(&pair[0], &pair[1]).op(op));
            }
        }
        let shape: &[isize] = match (first.dim(), last.dim()) {
            (2, 2) => return chain(&matrices, to),
            (1, 1) => &[],
            _ => &[-1],
        };
        to.put(chain(&matrices, Target::fresh(op))?.view(shape)?)
    }

    /// The `n`th power of square matrices; of a negative `n` that of their inverses.
    ///
    /// # Errors
    /// Matrices that are not square, or have no inverse where they need one; as [`View::matmul`].
    matrix_power matrix_power_out(&self, n: i64) -> View {
        let to = to.named(["linalg.matrix_power", "matrix_power_out"]);
        to.put(self.power(n, to.op)?)
    }
}

impl View {
    #[track_caller]
    fn power(&self, n: i64, op: &'static str) -> Result<View> {
        match self.shape() {
            [.., rows, cols] if rows == cols => {}
            shape => {
                return Err(Error::new(
                    Kind::Shape,
                    format!("expected square matrices, got shape {shape:?}"),
                )
                .op(op));
            }
        }
        if n < 0 {
            let inverse = self.inverse().map_err(|e| e.op(op))?;
            return match n.checked_neg() {
                Some(1) => Ok(inverse),
                Some(n) => inverse.power(n, op),
                None => Err(Error::new(Kind::Value, format!("the power {n} is too low")).op(op)),
            };
        }
        let mut n = n.unsigned_abs();
        if n == 0 {
            let out = View::zeros(self.shape(), self.dtype(), &self.device())?;
            let diagonal = out.diagonal(0, -2, -1)?;
            crate::backend::backend(out.device()).fill(&diagonal, Scalar::Bool(true))?;
            return Ok(out);
        }
        if n == 1 {
            return self.copy(MemoryFormat::Contiguous).map_err(|e| e.op(op));
        }
        let (mut square, mut power) = (self.clone(), None::<View>);
        loop {
            if n & 1 == 1 {
                power = Some(match power {
                    None => square.clone(),
                    Some(p) => p.matmul(&square).map_err(|e| e.op(op))?,
                });
            }
            n >>= 1;
            match power {
                Some(p) if n == 0 => return Ok(p),
                _ => square = square.matmul(&square).map_err(|e| e.op(op))?,
            }
        }
    }
}

/// The product of two or more matrices that fit, in the cheapest order.
#[track_caller]
fn chain(factors: &[View], to: Target<'_>) -> Result<View> {
    let n = factors.len();
    if let [a, b] = factors {
        return multiplied(Added::Mm, a, b, to);
    }
    // best[i][j]: the cost of factors i..=j, and the last factor of its left half.
    let size = |i: usize| {
        factors
            .get(i)
            .map_or_else(|| factors[n - 1].shape()[1], |f| f.shape()[0]) as f64
    };
    let mut best = vec![vec![(0.0, 0); n]; n];
    for len in 1..n {
        for i in 0..n - len {
            let j = i + len;
            best[i][j] = (i..j)
                .map(|s| {
                    (
                        best[i][s].0 + best[s + 1][j].0 + size(i) * size(s + 1) * size(j + 1),
                        s,
                    )
                })
                .fold((f64::INFINITY, i), |a, b| if b.0 < a.0 { b } else { a });
        }
    }
    let split = best[0][n - 1].1 + 1;
    let part = |factors: &[View]| match factors {
        [only] => Ok(only.clone()),
        _ => chain(factors, Target::fresh(to.op)),
    };
    let (left, right) = (part(&factors[..split])?, part(&factors[split..])?);
    multiplied(Added::Mm, &left, &right, to)
}
