//! Products that add to something or contract chosen dims.

use crate::View;
use crate::backend::Arg;
use crate::elementwise::check_broadcasts_to;
use crate::matmul::{Contract, check_factors, multiplied};
use crate::target::{Reads, Target, with_out};
use crate::write;
use crate::{Call, Compute, Op};
use osteon_kernels::{BinaryOp, UnaryOp};
use osteon_memory::{here, hold};
use osteon_spec::{
    Category, DType, Dims, Error, Kind, Layout, Result, Scalar, broadcast_shapes, wrap_dim,
};

/// The factors of `input` and of the product in a sum of both.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// Of the input; 0 leaves it unread.
    pub beta: Scalar,
    /// Of the product.
    pub alpha: Scalar,
}

impl Default for Weights {
    fn default() -> Weights {
        Weights {
            beta: Scalar::Int(1),
            alpha: Scalar::Int(1),
        }
    }
}

impl Weights {
    /// As numbers of a dtype's kind: of integers the whole part counts, as in PyTorch.
    fn of(self, dtype: DType) -> Weights {
        let whole = |s: Scalar| match s {
            Scalar::Float(x) | Scalar::Complex(x, _) if dtype.is_integer() => Scalar::Int(x as i64),
            other => other,
        };
        Weights {
            beta: whole(self.beta),
            alpha: whole(self.alpha),
        }
    }
}

fn is(scalar: Scalar, value: i64) -> bool {
    match scalar {
        Scalar::Bool(b) => i64::from(b) == value,
        Scalar::Int(i) => i == value,
        Scalar::UInt(u) => i128::from(u) == i128::from(value),
        Scalar::Float(x) | Scalar::Complex(x, 0.0) => x == value as f64,
        Scalar::Complex(..) => false,
    }
}

/// A product that is added to an input, by the names that PyTorch has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// Of two matrices.
    Mm,
    /// Of a matrix and a vector.
    Mv,
    /// Of a batch of matrices, each for itself.
    Bmm,
    /// Of a batch of matrices, summed.
    SumBmm,
}

impl Added {
    /// Of the new sum, of that in a given tensor, and in place.
    fn names(self) -> [&'static str; 3] {
        match self {
            Added::Mm => ["addmm", "addmm_out", "addmm_"],
            Added::Mv => ["addmv", "addmv_out", "addmv_"],
            Added::Bmm => ["baddbmm", "baddbmm_out", "baddbmm_"],
            Added::SumBmm => ["addbmm", "addbmm_out", "addbmm_"],
        }
    }
}

fn arithmetic<'a>(
    name: &'static str,
    op: BinaryOp,
    args: &'a [Arg<'a>; 2],
    numbers: &'a [Scalar],
) -> Call<'a> {
    Call {
        name,
        op: Op::Binary(op),
        compute: Compute::Promoted,
        args,
        numbers,
    }
}

#[cold]
pub(crate) fn misfit(a: &View, b: &View) -> Error {
    Error::new(
        Kind::Shape,
        format!(
            "shapes {:?} and {:?} cannot be multiplied",
            a.shape(),
            b.shape()
        ),
    )
}

with_out! { to;
    /// `beta·self + alpha·(a · b)`; `self` broadcasts to the product. An `out` that is `self` costs a temporary for the
    /// product, and any other holds it on the way.
    ///
    /// # Errors
    /// Shapes that do not fit; different dtypes; guards; out of memory.
    plus_product plus_product_out(&self, kind: Added, a: &View, b: &View, weights: Weights) -> View {
        let [fresh, given, _] = kind.names();
        let to = to.named([fresh, given]);
        self.check_addends(a, weights, to.op)?;
        let Some(out) = to.out() else {
            let product = multiplied(kind, a, b, to)?;
            check_broadcasts_to(self, &product, to.op)?;
            self.blend(&product, weights, &product, to.op)?;
            return Ok(product);
        };
        if write::check_apart(out, self, to.op).is_err() {
            let product = multiplied(kind, a, b, Target::fresh(to.op))?;
            check_broadcasts_to(self, &product, to.op)?;
            let kind = (product.dtype(), product.device());
            return to.write(product.layout().clone(), kind, Reads::Each(&[self]), |out| {
                self.blend(&product, weights, out, to.op)
            });
        }
        // Whatever stands in the way of reading this view must show before the product is written.
        check_broadcasts_to(self, out, to.op)?;
        drop(hold(&[self.storage()], &[]).map_err(|e| e.op(to.op))?);
        let product = multiplied(kind, a, b, to)?;
        self.blend(&product, weights, &product, to.op)?;
        Ok(product)
    }

    /// The products of all pairs of elements of two vectors; dtypes promote.
    ///
    /// # Errors
    /// Anything but two vectors; guards; out of memory.
    outer outer_out(&self, other: &View) -> View {
        if self.dim() != 1 || other.dim() != 1 {
            let (a, b) = (self.shape(), other.shape());
            let message = format!("expected two vectors, got shapes {a:?} and {b:?}");
            return Err(Error::new(Kind::Shape, message).op(to.op));
        }
        let column = self.unsqueeze(1)?;
        arithmetic(to.op, BinaryOp::Mul, &[(&column).into(), other.into()], &[]).to(to)
    }

    /// `beta·self + alpha·outer(a, b)`; dtypes promote.
    ///
    /// # Errors
    /// Anything but two vectors; a float factor of integers; as [`View::outer`].
    addr addr_out(&self, a: &View, b: &View, weights: Weights) -> View {
        let op = to.op;
        let outer = a.outer(b).map_err(|e| e.op(op))?;
        check_broadcasts_to(self, &outer, op)?;
        let result = self.dtype().promote(outer.dtype()).map_err(|e| e.op(op))?;
        for factor in [weights.beta, weights.alpha] {
            check_factor(factor, result, op)?;
        }
        let own = |s: Scalar| if result == DType::Bool { Scalar::Bool(!is(s, 0)) } else { s };
        let (beta, alpha) = (own(weights.beta), own(weights.alpha));
        let expanded = self.with_layout(self.layout().expand_to(outer.shape())?, op)?;
        if is(beta, 0) {
            return arithmetic(op, BinaryOp::Mul, &[(&outer).into(), alpha.into()], &[]).to(to);
        }
        let scaled =
            arithmetic(op, BinaryOp::Mul, &[(&expanded).into(), beta.into()], &[]).fresh()?;
        arithmetic(op, BinaryOp::AddScaled, &[(&scaled).into(), (&outer).into()], &[alpha]).to(to)
    }

    /// [`View::dot`] with the conjugate of this vector.
    ///
    /// # Errors
    /// As [`View::dot`].
    vdot vdot_out(&self, other: &View) -> View {
        self.conjugated(to.op)?.dotted(other, to)
    }

    /// Sums of products over the last dims of both, for all pairs of what is before; with a 0-dim factor the product.
    ///
    /// # Errors
    /// Last dims that differ; as [`View::matmul`].
    inner inner_out(&self, other: &View) -> View {
        if self.dim() == 0 || other.dim() == 0 {
            return arithmetic(to.op, BinaryOp::Mul, &[self.into(), other.into()], &[]).to(to);
        }
        self.contracted(other, &[-1], &[-1], to, false)
    }

    /// Sums of products over dims of this view and as many of another; the other dims of both are kept, in order.
    ///
    /// # Errors
    /// Lists of different length; a dim twice; sizes that differ and are not 1; as [`View::matmul`].
    tensordot tensordot_out(&self, other: &View, dims: &[isize], other_dims: &[isize]) -> View {
        self.contracted(other, dims, other_dims, to, true)
    }

    /// Sums of products along one dim of two views that broadcast, of the conjugate of this one.
    ///
    /// # Errors
    /// Integers; different sizes of the dim; as [`View::matmul`].
    vecdot vecdot_out(&self, other: &View, dim: isize) -> View {
        let to = to.named(["linalg.vecdot", "vecdot_out"]);
        check_factors(self, other, to.op)?;
        if self.dtype().category() < Category::Float {
            let message = format!("expected floats or complex numbers, got {}", self.dtype());
            return Err(Error::new(Kind::DType, message).op(to.op));
        }
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(to.op))?;
        let dim = wrap_dim(dim, shape.len()).map_err(|e| e.op(to.op))?;
        if shape.is_empty() {
            return Err(Error::new(Kind::Shape, "expected vectors, got 0-dim tensors").op(to.op));
        }
        let left = self.conjugated(to.op)?;
        let (a, b) = (left.layout().expand_to(&shape)?, other.layout().expand_to(&shape)?);
        let mut contract = Contract::new(to, &left, other);
        for d in 0..shape.len() {
            if d == dim {
                contract.sum(shape[d], a.strides()[d], b.strides()[d]);
            } else {
                contract.keep(shape[d], a.strides()[d], b.strides()[d]);
            }
        }
        contract.run()
    }

    /// The cross products of vectors of three along a dim; other dims broadcast.
    ///
    /// # Errors
    /// Ranks that differ; a dim of another size than 3; different dtypes; `bool`; guards; out of memory.
    cross cross_out(&self, other: &View, dim: isize) -> View {
        let op = to.op;
        check_factors(self, other, op)?;
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        let three = |v: &View| v.shape().get(d) == Some(&3);
        if self.dim() != other.dim() || !three(self) || !three(other) {
            let (a, b) = (self.shape(), other.shape());
            let message = format!(
                "expected tensors of one rank with size 3 in dim {dim}, got shapes {a:?} and {b:?}"
            );
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(op))?;
        let part = |v: &View, i: isize| v.select(dim, i % 3);
        let product = |i: isize, j: isize| {
            let (a, b) = (part(self, i)?, part(other, j)?);
            arithmetic(op, BinaryOp::Mul, &[(&a).into(), (&b).into()], &[]).fresh()
        };
        let minus = [product(2, 1)?, product(0, 2)?, product(1, 0)?];
        let kind = (self.dtype(), self.device());
        to.write(Layout::contiguous(&shape)?, kind, Reads::Apart(&[self, other]), |out| {
            for (i, minus) in (0..).zip(&minus) {
                let (a, b, to) = (part(self, i + 1)?, part(other, i + 2)?, part(out, i)?);
                arithmetic(op, BinaryOp::Mul, &[(&a).into(), (&b).into()], &[]).overwrite(&to)?;
                arithmetic(op, BinaryOp::Sub, &[(&to).into(), minus.into()], &[]).overwrite(&to)?;
            }
            Ok(())
        })
    }
}

/// Checks that a factor is of a kind that a dtype holds.
fn check_factor(factor: Scalar, dtype: DType, op: &'static str) -> Result<()> {
    if factor.category() <= dtype.category().max(Category::Integer) {
        return Ok(());
    }
    let message = format!(
        "for {dtype} tensors the factors must not be {:?}",
        factor.category()
    );
    Err(Error::new(Kind::DType, message).op(op))
}

impl View {
    /// Checks what a product and this view must have in common for their sum.
    fn check_addends(&self, a: &View, weights: Weights, op: &'static str) -> Result<()> {
        check_factors(self, a, op)?;
        let Weights { beta, alpha } = weights.of(self.dtype());
        check_factor(beta, self.dtype(), op)?;
        check_factor(alpha, self.dtype(), op)
    }

    /// Writes `beta·self + alpha·product`, where `product` is fresh and may be changed, to `dst`: `product` or `self`.
    #[track_caller]
    fn blend(&self, product: &View, weights: Weights, dst: &View, op: &'static str) -> Result<()> {
        let Weights { beta, alpha } = weights.of(product.dtype());
        if !is(alpha, 1) {
            arithmetic(op, BinaryOp::Mul, &[product.into(), alpha.into()], &[])
                .overwrite(product)?;
        }
        let args = [product.into(), self.into()];
        match beta {
            beta if is(beta, 1) => arithmetic(op, BinaryOp::Add, &args, &[]).overwrite(dst),
            // Not even a NaN of the input counts then.
            beta if is(beta, 0) => {
                arithmetic(op, BinaryOp::Mul, &[product.into(), 1i64.into()], &[]).overwrite(dst)
            }
            beta => arithmetic(op, BinaryOp::AddScaled, &args, &[beta]).overwrite(dst),
        }
    }

    /// [`View::plus_product`] in place.
    ///
    /// # Errors
    /// A product of another shape; overlap; as [`View::plus_product`]. Nothing is written then.
    #[track_caller]
    pub fn add_product_(&self, kind: Added, a: &View, b: &View, weights: Weights) -> Result<()> {
        let [_, _, op] = kind.names();
        self.check_addends(a, weights, op)?;
        let product = multiplied(kind, a, b, Target::fresh(op))?;
        check_broadcasts_to(&product, self, op)?;
        write::check(self, &[], op)?;
        if product.shape() != self.shape() {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "shape {:?} must be the product's, {:?}",
                    self.shape(),
                    product.shape()
                ),
            )
            .op(op));
        }
        self.blend(&product, weights, self, op)?;
        self.storage().record_write(op, here());
        Ok(())
    }

    /// `self · weightᵀ + bias` over the last dim.
    ///
    /// # Errors
    /// As [`View::matmul`].
    #[track_caller]
    pub fn linear(&self, weight: &View, bias: Option<&View>) -> Result<View> {
        let op = "linear";
        let transposed = weight.t().map_err(|e| e.op(op))?;
        if let Some(bias) = bias {
            check_factors(self, bias, op)?;
            if weight.dim() != 2 {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "the weight must be a matrix where there is a bias, got shape {:?}",
                        weight.shape()
                    ),
                )
                .op(op));
            }
        }
        let product = self.matmul(&transposed).map_err(|e| e.op(op))?;
        if let Some(bias) = bias {
            check_broadcasts_to(bias, &product, op)?;
            bias.blend(&product, Weights::default(), &product, op)?;
        }
        Ok(product)
    }

    /// The complex conjugate in a new storage; a real view itself.
    #[track_caller]
    fn conjugated(&self, op: &'static str) -> Result<View> {
        if !self.dtype().is_complex() {
            return Ok(self.clone());
        }
        let args = [self.into()];
        Call {
            name: op,
            op: Op::Unary(UnaryOp::Conj),
            compute: Compute::Promoted,
            args: &args,
            numbers: &[],
        }
        .fresh()
    }

    #[track_caller]
    fn contracted(
        &self,
        other: &View,
        dims: &[isize],
        other_dims: &[isize],
        to: Target<'_>,
        broadcasts: bool,
    ) -> Result<View> {
        let op = to.op;
        if dims.len() != other_dims.len() {
            return Err(Error::new(
                Kind::Value,
                format!("both lists of dims must be as long, got {dims:?} and {other_dims:?}"),
            )
            .op(op));
        }
        let wrapped = |view: &View, dims: &[isize]| -> Result<Dims> {
            let mut list = Dims::new();
            for &d in dims {
                let d = wrap_dim(d, view.dim()).map_err(|e| e.op(op))?;
                if view.dim() == 0 || list.contains(&d) {
                    return Err(Error::new(
                        Kind::Index,
                        format!("dim {d} cannot be contracted here, or twice"),
                    )
                    .op(op));
                }
                list.push(d);
            }
            Ok(list)
        };
        let (left, right) = (wrapped(self, dims)?, wrapped(other, other_dims)?);
        let mut contract = Contract::new(to, self, other);
        for d in (0..self.dim()).filter(|d| !left.contains(d)) {
            contract.keep(self.shape()[d], self.stride()[d], 0);
        }
        for d in (0..other.dim()).filter(|d| !right.contains(d)) {
            contract.keep(other.shape()[d], 0, other.stride()[d]);
        }
        for (&l, &r) in left.iter().zip(&right) {
            let (a, b) = (self.shape()[l], other.shape()[r]);
            if a != b && !(broadcasts && (a == 1 || b == 1)) {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "dim {l} of shape {:?} and dim {r} of shape {:?} are contracted and differ: {a} and {b}",
                        self.shape(),
                        other.shape()
                    ),
                )
                .op(op));
            }
            let stride = |n: usize, s: usize| if n == 1 { 0 } else { s };
            let size = if a == 1 { b } else { a };
            contract.sum(
                size,
                stride(a, self.stride()[l]),
                stride(b, other.stride()[r]),
            );
        }
        contract.run()
    }
}
