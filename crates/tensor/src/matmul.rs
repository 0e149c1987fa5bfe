//! Products of matrices and vectors. Any strides and broadcast batches are read as they are; results are row-major.

use crate::View;
use crate::backend::backend;
use crate::elementwise::other_device;
use osteon_kernels::Axis;
use osteon_spec::{Dims, Error, Kind, Layout, Result, Scalar, broadcast_shapes};
use smallvec::SmallVec;
use std::panic::Location;

/// Checks that two factors agree in device and dtype: products promote nothing.
pub(crate) fn check_factors(a: &View, b: &View, op: &'static str) -> Result<()> {
    if a.device() != b.device() {
        return Err(other_device(a.device(), b.device()).op(op));
    }
    if a.dtype() != b.dtype() {
        return Err(Error::new(
            Kind::DType,
            format!(
                "expected one dtype, but got {} and {}; cast one with to()",
                a.dtype(),
                b.dtype()
            ),
        )
        .op(op));
    }
    Ok(())
}

/// The dims of a contraction as it is put together: sizes, and strides in elements.
#[derive(Debug)]
pub(crate) struct Contract<'a> {
    op: &'static str,
    lhs: &'a View,
    rhs: &'a View,
    shape: Dims,
    /// Strides of both factors along the dims of the result.
    strides: SmallVec<[[usize; 2]; 6]>,
    /// Sizes of the dims that are summed, and both strides.
    summed: SmallVec<[(usize, [usize; 2]); 4]>,
}

impl<'a> Contract<'a> {
    pub(crate) fn new(op: &'static str, lhs: &'a View, rhs: &'a View) -> Contract<'a> {
        Contract {
            op,
            lhs,
            rhs,
            shape: Dims::new(),
            strides: SmallVec::new(),
            summed: SmallVec::new(),
        }
    }

    /// A next dim of the result, with the strides of the factors, 0 for one that lacks it.
    pub(crate) fn keep(&mut self, size: usize, lhs: usize, rhs: usize) {
        self.shape.push(size);
        self.strides.push([lhs, rhs]);
    }

    /// A dim to sum over.
    pub(crate) fn sum(&mut self, size: usize, lhs: usize, rhs: usize) {
        self.summed.push((size, [lhs, rhs]));
    }

    /// The result, row-major in a new storage. A sum of nothing is zero for every dtype, as in PyTorch.
    #[track_caller]
    pub(crate) fn fresh(&self) -> Result<View> {
        let layout = Layout::contiguous(&self.shape).map_err(|e| e.op(self.op))?;
        self.laid_out(layout)
    }

    /// The result in a new storage of this layout, which has its shape.
    #[track_caller]
    pub(crate) fn laid_out(&self, layout: Layout) -> Result<View> {
        check_factors(self.lhs, self.rhs, self.op)?;
        let (dtype, device) = (self.lhs.dtype(), self.lhs.device());
        let out = View::alloc(layout, dtype, &device, self.op)?;
        self.write_to(&out)?;
        Ok(out)
    }

    /// The result into a view of its shape and dtype that shares no byte with the factors.
    #[track_caller]
    pub(crate) fn write_to(&self, out: &View) -> Result<()> {
        let backend = backend(out.device());
        if self.summed.iter().any(|(size, _)| *size == 0) || out.numel() == 0 {
            return backend
                .fill(out, Scalar::Bool(false))
                .map_err(|e| e.op(self.op));
        }
        let bytes = |stride: usize| stride.wrapping_mul(out.element_size()) as isize;
        let axes: SmallVec<[Axis; 6]> = self
            .shape
            .iter()
            .zip(out.stride())
            .zip(&self.strides)
            .map(|((&size, &dst), &[l, r])| Axis {
                size,
                strides: [dst, l, r].map(bytes),
            })
            .collect();
        let summed: SmallVec<[Axis; 4]> = self
            .summed
            .iter()
            .map(|&(size, [l, r])| Axis {
                size,
                strides: [0, l, r].map(bytes),
            })
            .collect();
        backend
            .contract(out, self.lhs, self.rhs, &axes, &summed)
            .map_err(|e| e.op(self.op))
    }
}

/// Sizes and strides of a factor: the batch, and the matrix's two dims, of which a vector has one.
struct Matrix<'a> {
    batch: (&'a [usize], &'a [usize]),
    /// Of a left factor its rows, of a right one its columns; none of a vector.
    kept: Option<(usize, usize)>,
    /// The dim that is summed.
    summed: (usize, usize),
}

impl Matrix<'_> {
    fn new(view: &View, left: bool) -> Matrix<'_> {
        let (sizes, strides) = (view.shape(), view.stride());
        let dim = |d: usize| (sizes[d], strides[d]);
        match sizes.len() {
            1 => Matrix {
                batch: (&[], &[]),
                kept: None,
                summed: dim(0),
            },
            n => {
                let (kept, summed) = if left { (n - 2, n - 1) } else { (n - 1, n - 2) };
                Matrix {
                    batch: (&sizes[..n - 2], &strides[..n - 2]),
                    kept: Some(dim(kept)),
                    summed: dim(summed),
                }
            }
        }
    }

    /// The stride along dim `d` of a batch of rank `rank`, to which this batch is broadcast.
    fn batch_stride(&self, d: usize, rank: usize) -> usize {
        let (sizes, strides) = self.batch;
        match (d + sizes.len()).checked_sub(rank) {
            Some(own) if sizes[own] != 1 => strides[own],
            _ => 0,
        }
    }
}

#[track_caller]
fn product(op: &'static str, a: &View, b: &View) -> Result<View> {
    product_as(op, a, b, None)
}

/// The product of two views with a dim at least, laid out as said, else row-major.
#[track_caller]
pub(crate) fn product_as(
    op: &'static str,
    a: &View,
    b: &View,
    layout: Option<Layout>,
) -> Result<View> {
    let (lhs, rhs) = (Matrix::new(a, true), Matrix::new(b, false));
    if lhs.summed.0 != rhs.summed.0 {
        return Err(Error::new(
            Kind::Shape,
            format!(
                "shapes {:?} and {:?} cannot be multiplied: {} columns against {} rows",
                a.shape(),
                b.shape(),
                lhs.summed.0,
                rhs.summed.0
            ),
        )
        .op(op));
    }
    let batch = broadcast_shapes(&[lhs.batch.0, rhs.batch.0]).map_err(|e| e.op(op))?;
    let mut contract = Contract::new(op, a, b);
    for (d, &size) in batch.iter().enumerate() {
        contract.keep(
            size,
            lhs.batch_stride(d, batch.len()),
            rhs.batch_stride(d, batch.len()),
        );
    }
    if let Some((size, stride)) = lhs.kept {
        contract.keep(size, stride, 0);
    }
    if let Some((size, stride)) = rhs.kept {
        contract.keep(size, 0, stride);
    }
    contract.sum(lhs.summed.0, lhs.summed.1, rhs.summed.1);
    match layout {
        None => contract.fresh(),
        Some(layout) => contract.laid_out(layout),
    }
}

#[cold]
fn wrong_ranks(op: &'static str, wanted: &str, a: &View, b: &View) -> Error {
    Error::new(
        Kind::Shape,
        format!(
            "expected {wanted}, got shapes {:?} and {:?}",
            a.shape(),
            b.shape()
        ),
    )
    .op(op)
}

impl View {
    /// The matrix product: vectors count as a row on the left and a column on the right, dims before the last two are
    /// a batch and broadcast.
    ///
    /// # Errors
    /// A 0-dim factor; shapes that do not fit; different dtypes, or one without products; guards; out of memory.
    #[track_caller]
    pub fn matmul(&self, other: &View) -> Result<View> {
        let op = "matmul";
        if self.dim() == 0 || other.dim() == 0 {
            return Err(wrong_ranks(
                op,
                "at least one dim on both sides",
                self,
                other,
            ));
        }
        if self.dim() == 1 && other.dim() == 1 {
            return self.dot(other).map_err(|e| e.op(op));
        }
        let out = product(op, self, other)?;
        if self.dim() == 1 && other.dim() == 2 {
            // PyTorch's result has been squeezed in place by then.
            out.storage().record_write(op, Location::caller());
        }
        Ok(out)
    }

    /// The product of two matrices.
    ///
    /// # Errors
    /// Anything but two matrices; as [`View::matmul`].
    #[track_caller]
    pub fn mm(&self, other: &View) -> Result<View> {
        if self.dim() != 2 || other.dim() != 2 {
            return Err(wrong_ranks("mm", "two matrices", self, other));
        }
        product("mm", self, other)
    }

    /// The products of matrices in two batches of one size; nothing broadcasts.
    ///
    /// # Errors
    /// Anything but two batches of one size; as [`View::matmul`].
    #[track_caller]
    pub fn bmm(&self, other: &View) -> Result<View> {
        if self.dim() != 3 || other.dim() != 3 || self.shape()[0] != other.shape()[0] {
            return Err(wrong_ranks(
                "bmm",
                "two batches of matrices of one size",
                self,
                other,
            ));
        }
        product("bmm", self, other)
    }

    /// The product of a matrix and a vector.
    ///
    /// # Errors
    /// Anything else; as [`View::matmul`].
    #[track_caller]
    pub fn mv(&self, vector: &View) -> Result<View> {
        if self.dim() != 2 || vector.dim() != 1 {
            return Err(wrong_ranks("mv", "a matrix and a vector", self, vector));
        }
        product("mv", self, vector)
    }

    /// The sum of the products of two vectors' elements.
    ///
    /// # Errors
    /// Anything but two vectors of one length; as [`View::matmul`], also for vectors without elements.
    #[track_caller]
    pub fn dot(&self, other: &View) -> Result<View> {
        let op = "dot";
        if self.dim() != 1 || other.dim() != 1 {
            return Err(wrong_ranks(op, "two vectors", self, other));
        }
        check_factors(self, other, op)?;
        if osteon_kernels::Contraction::new(self.dtype(), &[], &[]).is_none() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", self.dtype()),
            )
            .op(op));
        }
        product(op, self, other)
    }
}
