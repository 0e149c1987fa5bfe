//! What needs a matrix taken apart: singular values and inverses, by faer, in float64.

use crate::View;
use crate::create::reserved;
use faer::linalg::solvers::DenseSolveCore;
use faer::{Mat, MatRef, c64};
use num_complex::Complex;
use osteon_spec::{DType, Dims, Error, Kind, Result};

/// The matrices of a batch: how many, and their rows and columns.
struct Batch {
    count: usize,
    rows: usize,
    columns: usize,
}

impl View {
    /// Rows and columns of the last two dims, for floats and complex numbers of full precision.
    fn as_matrices(&self, op: &'static str) -> Result<Batch> {
        let [batch @ .., rows, columns] = self.shape() else {
            return Err(Error::new(
                Kind::Shape,
                format!("expected matrices, got shape {:?}", self.shape()),
            )
            .op(op));
        };
        if !matches!(self.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128) {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast to float32 or float64 first", self.dtype()),
            )
            .op(op));
        }
        Ok(Batch { count: batch.iter().product(), rows: *rows, columns: *columns })
    }

    /// The singular values of each matrix of a batch, largest first, in a new real tensor. Copies the matrices into
    /// float64 to take them apart.
    ///
    /// # Errors
    /// Fewer than two dims; integers and half precision; numbers that are not finite; out of memory.
    #[track_caller]
    pub fn singular_values(&self) -> Result<View> {
        let op = "linalg.svdvals";
        let batch = self.as_matrices(op)?;
        let n = batch.rows.min(batch.columns);
        let mut values: Vec<f64> = reserved(batch.count * n, op)?;
        let failed = |_| {
            let what = "the singular values of numbers that are not finite do not exist";
            Error::new(Kind::Value, what).op(op)
        };
        if n > 0 {
            let size = batch.rows * batch.columns;
            if self.dtype().is_complex() {
                for m in self.complex_elements(op)?.chunks_exact(size) {
                    let m = MatRef::from_row_major_slice(m, batch.rows, batch.columns);
                    values.extend(m.singular_values().map_err(failed)?);
                }
            } else {
                for m in self.real_elements(op)?.chunks_exact(size) {
                    let m = MatRef::from_row_major_slice(m, batch.rows, batch.columns);
                    values.extend(m.singular_values().map_err(failed)?);
                }
            }
        }
        let mut shape = Dims::from_slice(&self.shape()[..self.dim() - 2]);
        shape.push(n);
        View::from_slice(&values, &shape, &self.device())?.to_dtype(self.dtype().to_real())
    }

    /// The inverse of each matrix of a batch, in a new tensor, column after column as PyTorch lays it out. Copies the matrices into float64 to take them
    /// apart.
    ///
    /// # Errors
    /// Matrices that are not square, or singular; integers and half precision; out of memory.
    #[track_caller]
    pub fn inverse(&self) -> Result<View> {
        let op = "linalg.inv";
        let batch = self.as_matrices(op)?;
        if batch.rows != batch.columns {
            return Err(Error::new(
                Kind::Shape,
                format!("expected square matrices, got shape {:?}", self.shape()),
            )
            .op(op));
        }
        let (n, size) = (batch.rows, batch.rows * batch.rows);
        let singular = |i: usize| {
            let what = format!("matrix {i} of the batch is singular: it has no inverse");
            Error::new(Kind::Value, what).op(op)
        };
        let inverted = if self.dtype().is_complex() {
            let mut out: Vec<Complex<f64>> = reserved(batch.count * size, op)?;
            for (i, m) in self.complex_elements(op)?.chunks_exact(size.max(1)).enumerate() {
                let inverse = MatRef::from_row_major_slice(m, n, n).partial_piv_lu().inverse();
                append_columns(&inverse, &mut out);
                if !out[i * size..].iter().all(|x| x.is_finite()) {
                    return Err(singular(i));
                }
            }
            View::from_slice(&out, self.shape(), &self.device())?
        } else {
            let mut out: Vec<f64> = reserved(batch.count * size, op)?;
            for (i, m) in self.real_elements(op)?.chunks_exact(size.max(1)).enumerate() {
                let inverse = MatRef::from_row_major_slice(m, n, n).partial_piv_lu().inverse();
                append_columns(&inverse, &mut out);
                if !out[i * size..].iter().all(|x| x.is_finite()) {
                    return Err(singular(i));
                }
            }
            View::from_slice(&out, self.shape(), &self.device())?
        };
        let dense = inverted.to_dtype(self.dtype())?;
        View::new(dense.storage().clone(), dense.layout().mt()?, dense.dtype(), op)
    }

    fn real_elements(&self, op: &'static str) -> Result<Vec<f64>> {
        self.to_dtype(DType::F64)?.to_vec().map_err(|e| e.op(op))
    }

    fn complex_elements(&self, op: &'static str) -> Result<Vec<c64>> {
        self.to_dtype(DType::C128)?.to_vec().map_err(|e| e.op(op))
    }
}

fn append_columns<T: Copy>(m: &Mat<T>, out: &mut Vec<T>) {
    for j in 0..m.ncols() {
        out.extend((0..m.nrows()).map(|i| m[(i, j)]));
    }
}
