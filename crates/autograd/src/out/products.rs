//! Products, and softmax.

use super::outs;
use crate::Tensor;
use crate::join::views;
use crate::matmul::Kron;
use osteon_spec::{Error, Kind, Result, Scalar};
use osteon_tensor::{Added, View, Weights};

fn weights(beta: impl Into<Scalar>, alpha: impl Into<Scalar>) -> Weights {
    Weights {
        beta: beta.into(),
        alpha: alpha.into(),
    }
}

outs! { out: One;
    matmul_out of matmul(&self, other: &Tensor) reads [self, other]
        => self.as_view().matmul_out(other.as_view(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], y = [1.0, 10.0]; x.matmul_out(&y, &out); [21.0, 43.0];

    mm_out of mm(&self, other: &Tensor) reads [self, other] => self.as_view().mm_out(other.as_view(), out);
    x = [[1.0, 2.0]], y = [[3.0], [4.0]]; x.mm_out(&y, &out); [[11.0]];

    bmm_out of bmm(&self, other: &Tensor) reads [self, other] => self.as_view().bmm_out(other.as_view(), out);
    x = [[[1.0, 2.0]]], y = [[[3.0], [4.0]]]; x.bmm_out(&y, &out); [[[11.0]]];

    mv_out of mv(&self, vector: &Tensor) reads [self, vector] => self.as_view().mv_out(vector.as_view(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], y = [1.0, 10.0]; x.mv_out(&y, &out); [21.0, 43.0];

    dot_out of dot(&self, other: &Tensor) reads [self, other] => self.as_view().dot_out(other.as_view(), out);
    x = [1.0, 2.0], y = [3.0, 4.0]; x.dot_out(&y, &out); 11.0;

    vdot_out of vdot(&self, other: &Tensor) reads [self, other] => self.as_view().vdot_out(other.as_view(), out);
    x = [1.0, 2.0], y = [3.0, 4.0]; x.vdot_out(&y, &out); 11.0;

    inner_out of inner(&self, other: &Tensor) reads [self, other] => self.as_view().inner_out(other.as_view(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], y = [1.0, 10.0]; x.inner_out(&y, &out); [21.0, 43.0];

    /// It may hold another dtype of the same category or a higher one.
    outer_out of outer(&self, other: &Tensor) reads [self, other] => self.as_view().outer_out(other.as_view(), out);
    x = [1.0, 2.0], y = [3.0, 4.0]; x.outer_out(&y, &out); [[3.0, 4.0], [6.0, 8.0]];

    tensordot_out of tensordot(&self, other: &Tensor, dims: impl AsRef<[isize]>, other_dims: impl AsRef<[isize]>)
        reads [self, other]
        => self.as_view().tensordot_out(other.as_view(), dims.as_ref(), other_dims.as_ref(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], y = [1.0, 10.0]; x.tensordot_out(&y, [0], [0], &out); [31.0, 42.0];

    vecdot_out of vecdot(&self, other: &Tensor, dim: isize) reads [self, other]
        => self.as_view().vecdot_out(other.as_view(), dim, out);
    x = [[1.0, 2.0], [3.0, 4.0]], y = [1.0, 10.0]; x.vecdot_out(&y, -1, &out); [21.0, 43.0];

    /// It may hold another dtype of the same category or a higher one.
    kron_out of kron(&self, other: &Tensor) reads [self, other] => kron(self, other, out);
    x = [1.0, 10.0], y = [[1.0, 2.0], [3.0, 4.0]]; x.kron_out(&y, &out); [[1.0, 2.0, 10.0, 20.0], [3.0, 4.0, 30.0, 40.0]];

    cross_out of cross(&self, other: &Tensor, dim: isize) reads [self, other]
        => self.as_view().cross_out(other.as_view(), dim, out);
    x = [1.0, 0.0, 0.0], y = [0.0, 1.0, 0.0]; x.cross_out(&y, 0, &out); [0.0, 0.0, 1.0];

    /// Through a temporary of the result's size where the first or the last is a vector.
    multi_dot_out of multi_dot(factors: &[&Tensor]) reads factors.iter().copied() => View::multi_dot_out(&views(factors), out);
    x = [[1.0, 2.0]], y = [[3.0], [4.0]]; Tensor::multi_dot_out(&[&x, &y, &x], &out); [[11.0, 22.0]];

    /// Through a temporary of the result's size.
    matrix_power_out of matrix_power(&self, n: i64) reads [self] => self.as_view().matrix_power_out(n, out);
    x = [[1.0, 1.0], [0.0, 1.0]]; x.matrix_power_out(3, &out); [[1.0, 3.0], [0.0, 1.0]];

    /// Through a temporary of the result's size.
    inverse_out of inverse(&self) reads [self] => self.as_view().inverse_out(out);
    x = [[2.0, 0.0], [0.0, 4.0]]; x.inverse_out(&out); [[0.5, 0.0], [0.0, 0.25]];

    /// It may be `self`.
    addmm_out of addmm_scaled(&self, a: &Tensor, b: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>)
        reads [self, a, b]
        => self.as_view().plus_product_out(Added::Mm, a.as_view(), b.as_view(), weights(beta, alpha), out);
    x = [[1.0, 2.0]], a = [[3.0, 4.0]], b = [[1.0, 1.0], [0.0, 1.0]];
    x.addmm_out(&a, &b, 10.0, 2.0, &out); [[16.0, 34.0]];

    /// It may be `self`.
    addmv_out of addmv_scaled(&self, a: &Tensor, b: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>)
        reads [self, a, b]
        => self.as_view().plus_product_out(Added::Mv, a.as_view(), b.as_view(), weights(beta, alpha), out);
    x = [1.0, 2.0], a = [[1.0, 2.0], [3.0, 4.0]], b = [1.0, 1.0];
    x.addmv_out(&a, &b, 10.0, 2.0, &out); [16.0, 34.0];

    /// It may be `self`.
    baddbmm_out of baddbmm_scaled(&self, a: &Tensor, b: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>)
        reads [self, a, b]
        => self.as_view().plus_product_out(Added::Bmm, a.as_view(), b.as_view(), weights(beta, alpha), out);
    x = [[[1.0]]], a = [[[1.0, 2.0]]], b = [[[3.0], [4.0]]];
    x.baddbmm_out(&a, &b, 10.0, 2.0, &out); [[[32.0]]];

    /// It may be `self`.
    addbmm_out of addbmm_scaled(&self, a: &Tensor, b: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>)
        reads [self, a, b]
        => self.as_view().plus_product_out(Added::SumBmm, a.as_view(), b.as_view(), weights(beta, alpha), out);
    x = [[1.0]], a = [[[1.0, 2.0]], [[0.0, 1.0]]], b = [[[3.0], [4.0]], [[5.0], [6.0]]];
    x.addbmm_out(&a, &b, 10.0, 2.0, &out); [[44.0]];

    /// It may be `self`, and hold another dtype of the same category or a higher one.
    addr_out of addr(&self, a: &Tensor, b: &Tensor, beta: impl Into<Scalar>, alpha: impl Into<Scalar>)
        reads [self, a, b]
        => self.as_view().addr_out(a.as_view(), b.as_view(), weights(beta, alpha), out);
    x = [[1.0]], a = [1.0, 2.0], b = [3.0, 4.0];
    x.addr_out(&a, &b, 10.0, 2.0, &out); [[16.0, 18.0], [22.0, 26.0]];

    /// It may be `self`.
    softmax_out of softmax(&self, dim: isize) reads [self] => self.as_view().softmax_out(dim, out);
    x = [0.0, 0.6931471805599453, 0.0]; x.softmax_out(0, &out); [0.25, 0.5, 0.25];

    /// It may be `self`.
    log_softmax_out of log_softmax(&self, dim: isize) reads [self] => self.as_view().log_softmax_out(dim, out);
    x = [1.0, 1.0]; x.log_softmax_out(0, &out); [-0.6931471805599453, -0.6931471805599453];
}

#[track_caller]
fn kron(a: &Tensor, b: &Tensor, out: &View) -> Result<View> {
    let op = "kron_out";
    let Kron { a, b, shape, sizes } = Kron::new(a, b).map_err(|e| e.op(op))?;
    let wanted: Vec<usize> = shape.iter().map(|&n| n as usize).collect();
    if out.shape() != wanted {
        let message = format!(
            "the result has shape {wanted:?}, but out has {:?}",
            out.shape()
        );
        return Err(Error::new(Kind::Shape, message).op(op));
    }
    // Each dim as two, the last first so that the others stay where they are.
    let mut pairs = out.clone();
    for (d, sizes) in sizes.iter().enumerate().rev() {
        pairs = pairs.unflatten(d as isize, sizes)?;
    }
    a.mul_out(&b, &Tensor::from_view(pairs))
        .map_err(|e| e.op(op))?;
    Ok(out.clone())
}
