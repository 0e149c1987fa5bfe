//! Products of matrices and vectors. Any strides and broadcast batches are read as they are; results are row-major.

use crate::View;
use crate::backend::backend;
use crate::elementwise::other_device;
use crate::linalg::{Added, misfit};
use crate::target::{Reads, Target, with_out};
use osteon_kernels::Axis;
use osteon_memory::{attribute, here};
use osteon_spec::{Dims, Error, Kind, Layout, Result, Scalar, broadcast_shapes};
use smallvec::SmallVec;

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
    to: Target<'a>,
    lhs: &'a View,
    rhs: &'a View,
    shape: Dims,
    /// Strides of both factors along the dims of the result.
    strides: SmallVec<[[usize; 2]; 6]>,
    /// Sizes of the dims that are summed, and both strides.
    summed: SmallVec<[(usize, [usize; 2]); 4]>,
}

impl<'a> Contract<'a> {
    pub(crate) fn new(to: Target<'a>, lhs: &'a View, rhs: &'a View) -> Contract<'a> {
        Contract {
            to,
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

    /// The result; a new one is row-major. A sum of nothing is zero for every dtype, as in PyTorch.
    #[track_caller]
    pub(crate) fn run(&self) -> Result<View> {
        let layout = Layout::contiguous(&self.shape).map_err(|e| e.op(self.to.op))?;
        self.laid_out(layout)
    }

    /// The result; a new one has this layout, which has its shape.
    #[track_caller]
    pub(crate) fn laid_out(&self, layout: Layout) -> Result<View> {
        check_factors(self.lhs, self.rhs, self.to.op)?;
        let kind = (self.lhs.dtype(), self.lhs.device());
        let reads = Reads::Apart(&[self.lhs, self.rhs]);
        self.to.write(layout, kind, reads, |out| self.write_to(out))
    }

    /// The result into a view of its shape and dtype that shares no byte with the factors.
    #[track_caller]
    pub(crate) fn write_to(&self, out: &View) -> Result<()> {
        let backend = backend(out.device());
        if self.summed.iter().any(|(size, _)| *size == 0) || out.numel() == 0 {
            return backend
                .fill(out, Scalar::Bool(false))
                .map_err(|e| e.op(self.to.op));
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
        let run = || backend.contract(out, self.lhs, self.rhs, &axes, &summed);
        attribute(here(), run).map_err(|e| e.op(self.to.op))
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

/// The product of two views with a dim at least; a new one is laid out as said, else row-major.
#[track_caller]
pub(crate) fn product(to: Target<'_>, a: &View, b: &View, layout: Option<Layout>) -> Result<View> {
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
        .op(to.op));
    }
    let batch = broadcast_shapes(&[lhs.batch.0, rhs.batch.0]).map_err(|e| e.op(to.op))?;
    let mut contract = Contract::new(to, a, b);
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
        None => contract.run(),
        Some(layout) => contract.laid_out(layout),
    }
}

impl View {
    /// The sum of the products of two factors whose dims have names, of these sizes and row-major: dims of one name are
    /// multiplied, dims that the result lacks, or has with size 1, are summed, and dims of size 1 broadcast. Neither
    /// factor is copied.
    ///
    /// # Errors
    /// Different dtypes, or one without products; guards; out of memory. Names of dims must occur once in a factor and
    /// agree in size: an error or a result without meaning otherwise, never one out of bounds.
    #[track_caller]
    pub fn contract(
        factors: [(&View, &[u8]); 2],
        (sizes, names): (&[usize], &[u8]),
    ) -> Result<View> {
        let [(lhs, in_lhs), (rhs, in_rhs)] = factors;
        // Size and stride along a name.
        let along = |(view, names): (&View, &[u8]), name: u8| {
            let found = names.iter().position(|&n| n == name);
            let dim = found.map(|d| (view.shape()[d], view.stride()[d]));
            dim.filter(|&(size, _)| size != 1).unwrap_or((1, 0))
        };
        let mut contract = Contract::new(Target::fresh("product"), lhs, rhs);
        let summed = in_lhs
            .iter()
            .chain(in_rhs.iter().filter(|n| !in_lhs.contains(n)));
        let summed = summed.filter(|n| !names.contains(n)).map(|&n| (n, None));
        let kept = names.iter().zip(sizes).map(|(&n, &size)| (n, Some(size)));
        for (name, kept) in kept.chain(summed) {
            let [(m, left), (n, right)] = factors.map(|f| along(f, name));
            let size = if m == 1 { n } else { m };
            if size != n && n != 1 || kept.is_some_and(|k| k != size && k != 1 && size != 1) {
                let message = format!("sizes {m} and {n} of one dim do not fit {kept:?}");
                return Err(Error::new(Kind::Shape, message).op("product"));
            }
            match kept {
                Some(kept) if kept == size || size == 1 => contract.keep(kept, left, right),
                Some(_) => {
                    contract.keep(1, 0, 0);
                    contract.sum(size, left, right);
                }
                None => contract.sum(size, left, right),
            }
        }
        contract.run()
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

/// The product of two views of the ranks that this kind of product has.
#[track_caller]
pub(crate) fn multiplied(kind: Added, a: &View, b: &View, to: Target<'_>) -> Result<View> {
    let (wanted, ranks) = match kind {
        Added::Mm => ("two matrices", (2, 2)),
        Added::Mv => ("a matrix and a vector", (2, 1)),
        Added::Bmm | Added::SumBmm => ("two batches of matrices of one size", (3, 3)),
    };
    if (a.dim(), b.dim()) != ranks || (ranks == (3, 3) && a.shape()[0] != b.shape()[0]) {
        return Err(wrong_ranks(to.op, wanted, a, b));
    }
    if kind != Added::SumBmm {
        return product(to, a, b, None);
    }
    let ([batch, m, k], [_, inner, n]) = (a.shape(), b.shape()) else {
        return Err(misfit(a, b).op(to.op));
    };
    if k != inner {
        return Err(misfit(a, b).op(to.op));
    }
    let (sa, sb) = (a.stride(), b.stride());
    let mut contract = Contract::new(to, a, b);
    contract.keep(*m, sa[1], 0);
    contract.keep(*n, 0, sb[2]);
    contract.sum(*batch, sa[0], sb[0]);
    contract.sum(*k, sa[2], sb[1]);
    contract.run()
}

with_out! { to;
    /// The matrix product: vectors count as a row on the left and a column on the right, dims before the last two are
    /// a batch and broadcast.
    ///
    /// # Errors
    /// A 0-dim factor; shapes that do not fit; different dtypes, or one without products; guards; out of memory.
    matmul matmul_out(&self, other: &View) -> View {
        if self.dim() == 0 || other.dim() == 0 {
            return Err(wrong_ranks(to.op, "at least one dim on both sides", self, other));
        }
        if self.dim() == 1 && other.dim() == 1 {
            return self.dotted(other, to);
        }
        let out = product(to, self, other, None)?;
        if self.dim() == 1 && other.dim() == 2 && !to.is_given() {
            // PyTorch's result has been squeezed in place by then.
            out.storage().record_write(to.op, here());
        }
        Ok(out)
    }

    /// The product of two matrices.
    ///
    /// # Errors
    /// Anything but two matrices; as [`View::matmul`].
    mm mm_out(&self, other: &View) -> View {
        multiplied(Added::Mm, self, other, to)
    }

    /// The products of matrices in two batches of one size; nothing broadcasts.
    ///
    /// # Errors
    /// Anything but two batches of one size; as [`View::matmul`].
    bmm bmm_out(&self, other: &View) -> View {
        multiplied(Added::Bmm, self, other, to)
    }

    /// The product of a matrix and a vector.
    ///
    /// # Errors
    /// Anything else; as [`View::matmul`].
    mv mv_out(&self, vector: &View) -> View {
        multiplied(Added::Mv, self, vector, to)
    }

    /// The sum of the products of two vectors' elements.
    ///
    /// # Errors
    /// Anything but two vectors of one length; as [`View::matmul`], also for vectors without elements.
    dot dot_out(&self, other: &View) -> View {
        self.dotted(other, to)
    }
}

impl View {
    #[track_caller]
    pub(crate) fn dotted(&self, other: &View, to: Target<'_>) -> Result<View> {
        if self.dim() != 1 || other.dim() != 1 {
            return Err(wrong_ranks(to.op, "two vectors", self, other));
        }
        check_factors(self, other, to.op)?;
        if osteon_kernels::Contraction::new(self.dtype(), &[], &[]).is_none() {
            let message = format!("not defined for {}; cast with to() first", self.dtype());
            return Err(Error::new(Kind::DType, message).op(to.op));
        }
        product(to, self, other, None)
    }
}
