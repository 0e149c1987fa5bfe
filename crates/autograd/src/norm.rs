//! Norms, and what is scaled by them.

use crate::rules::norm::vector_norm;
use crate::views::signed;
use crate::{Tensor, no_grad};
use osteon_memory::{attribute, here};
use osteon_spec::{Category, DType, Error, Kind, Result, broadcast_shapes, wrap_dim};

/// A norm of matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MatrixNorm {
    /// The root of the sum of squares.
    Fro,
    /// The sum of singular values.
    Nuc,
    /// Of order 1 or −1: the largest or smallest sum of a column's magnitudes; ±infinity: of a row's; 2 or −2: the
    /// largest or smallest singular value.
    Order(f64),
}

impl Tensor {
    /// The norm of an order over dims: the root of that order of the sum of powers of magnitudes; for ±infinity the largest or
    /// smallest magnitude, for 0 the number of elements that are not zero.
    ///
    /// # Errors
    /// Integers; a dim out of range or named twice, or without elements where the order is negative or infinite; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[3.0f64, -4.0], [0.0, 1.0]])?;
    /// assert_eq!(x.vector_norm(2.0, [1], false)?.to_vec::<f64>()?, [5.0, 1.0]);
    /// assert_eq!(x.vector_norm(f64::INFINITY, [], false)?.item::<f64>()?, 4.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn vector_norm(
        &self,
        order: f64,
        dims: impl AsRef<[isize]>,
        keepdim: bool,
    ) -> Result<Tensor> {
        self.norm_over(order, dims.as_ref(), keepdim, None)
    }

    /// [`Tensor::vector_norm`] of elements converted to a dtype first, on the way.
    ///
    /// # Errors
    /// As [`Tensor::vector_norm`]; a dtype without fractions.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([3.0f32, 4.0])?;
    /// assert_eq!(x.vector_norm_in(2.0, [0], false, DType::F64)?.item::<f64>()?, 5.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn vector_norm_in(
        &self,
        order: f64,
        dims: impl AsRef<[isize]>,
        keepdim: bool,
        dtype: DType,
    ) -> Result<Tensor> {
        self.norm_over(order, dims.as_ref(), keepdim, Some(dtype))
    }

    #[track_caller]
    fn norm_over(
        &self,
        order: f64,
        dims: &[isize],
        keepdim: bool,
        dtype: Option<DType>,
    ) -> Result<Tensor> {
        let out = self.as_view().vector_norm(order, dims, keepdim, dtype)?;
        self.reduced(out, vector_norm(order, dims, keepdim))
    }

    /// The norm of an order of all elements, whatever the shape: `vector_norm` over all dims.
    ///
    /// # Errors
    /// As [`Tensor::vector_norm`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([3.0f64, 4.0])?.norm(2.0)?.item::<f64>()?, 5.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn norm(&self, order: f64) -> Result<Tensor> {
        self.norm_over(order, &[], false, None)
    }

    /// A norm of the matrices that two dims make.
    ///
    /// # Errors
    /// Fewer than two dims; dims that are one; integers; an order other than ±1, ±2 and ±∞; matrices without elements
    /// where the norm is a largest or smallest number; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// use osteon_autograd::MatrixNorm;
    /// let x = Tensor::new([[1.0f64, -2.0], [3.0, 4.0]])?;
    /// assert_eq!(x.matrix_norm(MatrixNorm::Order(1.0), [0, 1], false)?.item::<f64>()?, 6.0);
    /// assert_eq!(x.matrix_norm(MatrixNorm::Order(f64::INFINITY), [0, 1], false)?.item::<f64>()?, 7.0);
    /// let diagonal = Tensor::new([[3.0f64, 0.0], [0.0, -2.0]])?;
    /// let nuclear = diagonal.matrix_norm(MatrixNorm::Nuc, [0, 1], false)?;
    /// assert!((nuclear.item::<f64>()? - 5.0).abs() < 1e-12);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_norm(&self, norm: MatrixNorm, dims: [isize; 2], keepdim: bool) -> Result<Tensor> {
        let name = "matrix_norm";
        if self.dim() < 2 {
            return Err(Error::new(
                Kind::Shape,
                format!("expected at least two dims, got shape {:?}", self.shape()),
            )
            .op(name));
        }
        let [rows, columns] = dims.map(|d| wrap_dim(d, self.dim()).map_err(|e| e.op(name)));
        let (rows, columns) = (rows?, columns?);
        if rows == columns {
            return Err(Error::new(Kind::Value, format!("dims {dims:?} are one dim")).op(name));
        }
        // Sums along one dim, then the extreme of those along the other.
        let (along, across, order) = match norm {
            MatrixNorm::Fro => return self.vector_norm(2.0, dims, keepdim),
            MatrixNorm::Order(p) if p.abs() == 1.0 => (rows, columns, p),
            MatrixNorm::Order(p) if p.is_infinite() => (columns, rows, p),
            MatrixNorm::Nuc | MatrixNorm::Order(_) => {
                return self.norm_of_singular_values(norm, [rows, columns], keepdim);
            }
        };
        let sums = self.vector_norm(1.0, [along as isize], keepdim)?;
        let across = across - usize::from(!keepdim && across > along);
        match order > 0.0 {
            // The largest of no sums is 0.
            true if sums.shape()[across] == 0 => sums.sum_dims([across as isize], keepdim),
            true => sums.amax([across as isize], keepdim),
            false => sums.amin([across as isize], keepdim),
        }
    }

    /// The norms that are a sum, the largest or the smallest of a matrix's singular values.
    #[track_caller]
    fn norm_of_singular_values(
        &self,
        norm: MatrixNorm,
        dims: [usize; 2],
        keepdim: bool,
    ) -> Result<Tensor> {
        let name = "matrix_norm";
        let matrices = self.movedim(dims.map(|d| d as isize), [-2, -1])?;
        let values = matrices.singular_values().map_err(|e| e.op(name))?;
        let out = match norm {
            MatrixNorm::Nuc => values.sum_dims([-1], keepdim)?,
            // The largest of no values is 0.
            MatrixNorm::Order(2.0) if values.size(-1)? == 0 => values.sum_dims([-1], keepdim)?,
            MatrixNorm::Order(2.0) => values.amax([-1], keepdim)?,
            MatrixNorm::Order(-2.0) => values.amin([-1], keepdim)?,
            _ => {
                return Err(Error::new(
                    Kind::Value,
                    format!("{norm:?} is no norm of a matrix; the orders are ±1, ±2 and ±inf"),
                )
                .op(name));
            }
        };
        if !keepdim {
            return Ok(out);
        }
        out.unsqueeze(-1)?
            .movedim([-2, -1], dims.map(|d| d as isize))
    }

    /// The norm of an order of the difference of two tensors.
    ///
    /// # Errors
    /// Integers; shapes that do not broadcast; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([1.0f64, 2.0])?, Tensor::new([4.0f64, 6.0])?);
    /// assert_eq!(x.dist(&y, 2.0)?.item::<f64>()?, 5.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn dist(&self, other: &Tensor, order: f64) -> Result<Tensor> {
        let apart = self.sub(other).map_err(|e| e.op("dist"))?;
        apart.norm(order).map_err(|e| e.op("dist"))
    }

    /// Elements divided by the norm of an order of a dim, or by `eps` where that is larger.
    ///
    /// # Errors
    /// Integers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([3.0f64, 4.0])?;
    /// assert_eq!(x.normalize(2.0, 0, 1e-12)?.to_vec::<f64>()?, [0.6, 0.8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn normalize(&self, order: f64, dim: isize, eps: f64) -> Result<Tensor> {
        let norm = self.vector_norm(order, [dim], true);
        let norm = norm.map_err(|e| e.op("normalize"))?;
        self.div(&norm.clamp_min(eps)?)
    }

    /// The cosine of the angle between two along a dim; norms below `eps` count as `eps`.
    ///
    /// # Errors
    /// Integers; shapes that do not broadcast; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([3.0f64, 4.0])?, Tensor::new([-3.0f64, -4.0])?);
    /// assert!((x.cosine_similarity(&y, 0, 1e-8)?.item::<f64>()? + 1.0).abs() < 1e-15);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cosine_similarity(&self, other: &Tensor, dim: isize, eps: f64) -> Result<Tensor> {
        let op = "cosine_similarity";
        let shape = broadcast_shapes(&[self.shape(), other.shape()]).map_err(|e| e.op(op))?;
        let dtype = self.dtype().promote(other.dtype()).map_err(|e| e.op(op))?;
        if dtype.category() < Category::Float {
            let message = format!("needs floats or complex numbers, got {dtype}");
            return Err(Error::new(Kind::DType, message).op(op));
        }
        let (x, y) = (self.promoted(dtype, op)?, other.promoted(dtype, op)?);
        let (x, y) = (x.expand(signed(&shape))?, y.expand(signed(&shape))?);
        let products = x.direction(dim, eps)?.mul(&y.direction(dim, eps)?)?;
        products.sum_dims([dim], false)
    }

    /// Elements divided by the norm of a dim, or by `eps`, which counts as no bound for the derivative, as in PyTorch.
    #[track_caller]
    fn direction(&self, dim: isize, eps: f64) -> Result<Tensor> {
        let norm = self.vector_norm(2.0, [dim], true)?.copy()?;
        attribute(here(), || no_grad(|| norm.clamp_min_(eps)))?;
        self.div(&norm)
    }
}
