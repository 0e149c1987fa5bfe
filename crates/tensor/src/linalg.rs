//! Products that add to something or contract chosen dims.

use crate::View;
use crate::backend::Arg;
use crate::elementwise::check_broadcasts_to;
use crate::matmul::{Contract, check_factors};
use crate::write;
use crate::{Call, Compute, Op};
use osteon_kernels::{BinaryOp, UnaryOp};
use osteon_spec::{
    Category, DType, Dims, Error, Kind, Layout, Result, Scalar, broadcast_shapes, wrap_dim,
};
use std::panic::Location;

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
    fn name(self, in_place: bool) -> &'static str {
        match (self, in_place) {
            (Added::Mm, false) => "addmm",
            (Added::Mm, true) => "addmm_",
            (Added::Mv, false) => "addmv",
            (Added::Mv, true) => "addmv_",
            (Added::Bmm, false) => "baddbmm",
            (Added::Bmm, true) => "baddbmm_",
            (Added::SumBmm, false) => "addbmm",
            (Added::SumBmm, true) => "addbmm_",
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

/// The sum of the products of matrices in a batch.
#[track_caller]
fn sum_of_products(a: &View, b: &View, op: &'static str) -> Result<View> {
    let ([batch, m, k], [other, inner, n]) = (a.shape(), b.shape()) else {
        return Err(misfit(a, b).op(op));
    };
    if batch != other || k != inner {
        return Err(misfit(a, b).op(op));
    }
    let (sa, sb) = (a.stride(), b.stride());
    let mut contract = Contract::new(op, a, b);
    contract.keep(*m, sa[1], 0);
    contract.keep(*n, 0, sb[2]);
    contract.sum(*batch, sa[0], sb[0]);
    contract.sum(*k, sa[2], sb[1]);
    contract.fresh()
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

impl View {
    /// The product that is to be added to this view, checked against it.
    #[track_caller]
    fn product_to_add(&self, kind: Added, a: &View, b: &View, op: &'static str) -> Result<View> {
        check_factors(self, a, op)?;
        let product = match kind {
            Added::Mm => a.mm(b),
            Added::Mv => a.mv(b),
            Added::Bmm => a.bmm(b),
            Added::SumBmm => sum_of_products(a, b, op),
        };
        product.map_err(|e| e.op(op))
    }

    /// `beta·self + alpha·(a · b)`; `self` broadcasts to the product.
    ///
    /// # Errors
    /// Shapes that do not fit; different dtypes; guards; out of memory.
    #[track_caller]
    pub fn plus_product(&self, kind: Added, a: &View, b: &View, weights: Weights) -> Result<View> {
        let op = kind.name(false);
        let product = self.product_to_add(kind, a, b, op)?;
        check_broadcasts_to(self, &product, op)?;
        self.blend(&product, weights, &product, op)?;
        Ok(product)
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
        let op = kind.name(true);
        let product = self.product_to_add(kind, a, b, op)?;
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
        self.storage().record_write(op, Location::caller());
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

    /// The products of all pairs of elements of two vectors; dtypes promote.
    ///
    /// # Errors
    /// Anything but two vectors; guards; out of memory.
    #[track_caller]
    pub fn outer(&self, other: &View) -> Result<View> {
        if self.dim() != 1 || other.dim() != 1 {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "expected two vectors, got shapes {:?} and {:?}",
                    self.shape(),
                    other.shape()
                ),
            )
            .op("outer"));
        }
        let column = self.unsqueeze(1)?;
        arithmetic(
            "outer",
            BinaryOp::Mul,
            &[(&column).into(), other.into()],
            &[],
        )
        .fresh()
    }

    /// `beta·self + alpha·outer(a, b)`; dtypes promote.
    ///
    /// # Errors
    /// Anything but two vectors; a float factor of integers; as [`View::outer`].
    #[track_caller]
    pub fn addr(&self, a: &View, b: &View, weights: Weights) -> Result<View> {
        let op = "addr";
        let outer = a.outer(b).map_err(|e| e.op(op))?;
        check_broadcasts_to(self, &outer, op)?;
        let result = self.dtype().promote(outer.dtype()).map_err(|e| e.op(op))?;
        for factor in [weights.beta, weights.alpha] {
            if factor.category() > result.category().max(Category::Integer) {
                return Err(Error::new(
                    Kind::DType,
                    format!(
                        "for {result} tensors the factors must not be {:?}",
                        factor.category()
                    ),
                )
                .op(op));
            }
        }
        let own = |s: Scalar| {
            if result == DType::Bool {
                Scalar::Bool(!is(s, 0))
            } else {
                s
            }
        };
        let (beta, alpha) = (own(weights.beta), own(weights.alpha));
        let expanded = self.with_layout(self.layout().expand_to(outer.shape())?, op)?;
        if is(beta, 0) {
            return arithmetic(op, BinaryOp::Mul, &[(&outer).into(), alpha.into()], &[]).fresh();
        }
        let scaled =
            arithmetic(op, BinaryOp::Mul, &[(&expanded).into(), beta.into()], &[]).fresh()?;
        arithmetic(
            op,
            BinaryOp::AddScaled,
            &[(&scaled).into(), (&outer).into()],
            &[alpha],
        )
        .fresh()
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

    /// [`View::dot`] with the conjugate of this vector.
    ///
    /// # Errors
    /// As [`View::dot`].
    #[track_caller]
    pub fn vdot(&self, other: &View) -> Result<View> {
        self.conjugated("vdot")?
            .dot(other)
            .map_err(|e| e.op("vdot"))
    }

    /// Sums of products over the last dims of both, for all pairs of what is before; with a 0-dim factor the product.
    ///
    /// # Errors
    /// Last dims that differ; as [`View::matmul`].
    #[track_caller]
    pub fn inner(&self, other: &View) -> Result<View> {
        if self.dim() == 0 || other.dim() == 0 {
            return arithmetic("inner", BinaryOp::Mul, &[self.into(), other.into()], &[]).fresh();
        }
        self.contracted(other, &[-1], &[-1], "inner", false)
    }

    /// Sums of products over dims of this view and as many of another; the other dims of both are kept, in order.
    ///
    /// # Errors
    /// Lists of different length; a dim twice; sizes that differ and are not 1; as [`View::matmul`].
    #[track_caller]
    pub fn tensordot(&self, other: &View, dims: &[isize], other_dims: &[isize]) -> Result<View> {
        self.contracted(other, dims, other_dims, "tensordot", true)
    }

    #[track_caller]
    fn contracted(
        &self,
        other: &View,
        dims: &[isize],
        other_dims: &[isize],
        op: &'static str,
        broadcasts: bool,
    ) -> Result<View> {
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
        let mut contract = Contract::new(op, self, other);
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
        contract.fresh()
    }

    /// Sums of products along one dim of two views that broadcast, of the conjugate of this one.
    ///
    /// # Errors
    /// Integers; different sizes of the dim; as [`View::matmul`].
    #[track_caller]
    pub fn vecdot(&self, other: &View, dim: isize) -> Result<View> {
        let op = "linalg.vecdot";
        check_factors(self, other, op)?;
        if self.dtype().category() < Category::Float {
            return Err(Error::new(
                Kind::DType,
                format!("expected floats or complex numbers, got {}", self.dtype()),
            )
            .op(op));
        }
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(op))?;
        let dim = wrap_dim(dim, shape.len()).map_err(|e| e.op(op))?;
        if shape.is_empty() {
            return Err(Error::new(Kind::Shape, "expected vectors, got 0-dim tensors").op(op));
        }
        let left = self.conjugated(op)?;
        let (a, b) = (
            left.layout().expand_to(&shape)?,
            other.layout().expand_to(&shape)?,
        );
        let mut contract = Contract::new(op, &left, other);
        for d in 0..shape.len() {
            if d == dim {
                contract.sum(shape[d], a.strides()[d], b.strides()[d]);
            } else {
                contract.keep(shape[d], a.strides()[d], b.strides()[d]);
            }
        }
        contract.fresh()
    }

    /// The cross products of vectors of three along a dim; other dims broadcast.
    ///
    /// # Errors
    /// Ranks that differ; a dim of another size than 3; different dtypes; `bool`; guards; out of memory.
    #[track_caller]
    pub fn cross(&self, other: &View, dim: isize) -> Result<View> {
        let op = "cross";
        check_factors(self, other, op)?;
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        let three = |v: &View| v.shape().get(d) == Some(&3);
        if self.dim() != other.dim() || !three(self) || !three(other) {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "expected tensors of one rank with size 3 in dim {dim}, got shapes {:?} and {:?}",
                    self.shape(),
                    other.shape()
                ),
            )
            .op(op));
        }
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(op))?;
        let out = View::alloc(
            Layout::contiguous(&shape)?,
            self.dtype(),
            &self.device(),
            op,
        )?;
        let part = |v: &View, i: isize| v.select(dim, i % 3);
        for i in 0..3 {
            let (a, b) = (part(self, i + 1)?, part(other, i + 2)?);
            let (c, d) = (part(self, i + 2)?, part(other, i + 1)?);
            let minus = arithmetic(op, BinaryOp::Mul, &[(&c).into(), (&d).into()], &[]).fresh()?;
            let to = part(&out, i)?;
            arithmetic(op, BinaryOp::Mul, &[(&a).into(), (&b).into()], &[]).overwrite(&to)?;
            arithmetic(op, BinaryOp::Sub, &[(&to).into(), (&minus).into()], &[]).overwrite(&to)?;
        }
        Ok(out)
    }
}
