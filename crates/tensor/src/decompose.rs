//! What needs a matrix taken apart: singular values and inverses, by nalgebra, in float64.

use crate::create::reserved;
use crate::target::with_out;
use crate::{Number, View};
use nalgebra::{ComplexField, DMatrix, SVD};
use num_complex::Complex;
use osteon_spec::{DType, Dims, Error, Kind, Result};

/// Steps after which singular values count as not found; matrices of finite numbers take a few for each.
const MOST_STEPS: usize = 100_000;

/// The matrices in the last two dims of a view.
struct Batch {
    count: usize,
    rows: usize,
    columns: usize,
}

impl Batch {
    /// The matrices of floats or complex numbers of full precision.
    fn of(view: &View, op: &'static str) -> Result<Batch> {
        let [batch @ .., rows, columns] = view.shape() else {
            return Err(Error::new(
                Kind::Shape,
                format!("expected matrices, got shape {:?}", view.shape()),
            )
            .op(op));
        };
        if !matches!(
            view.dtype(),
            DType::F32 | DType::F64 | DType::C64 | DType::C128
        ) {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "not defined for {}; cast to float32 or float64 first",
                    view.dtype()
                ),
            )
            .op(op));
        }
        // Matrices without elements may be more than can be counted, and have no values either.
        let count = if view.numel() == 0 {
            0
        } else {
            batch.iter().product()
        };
        Ok(Batch {
            count,
            rows: *rows,
            columns: *columns,
        })
    }

    /// Each matrix, copied out of the view, in the wide type of its dtype.
    #[track_caller]
    fn matrices<T>(&self, view: &View, op: &'static str) -> Result<Vec<DMatrix<T>>>
    where
        T: Number + ComplexField,
    {
        let elements = view
            .to_dtype(T::DTYPE)?
            .to_vec::<T>()
            .map_err(|e| e.op(op))?;
        // The library's own memory is not fallible: it needs about twice this much.
        drop(reserved::<[T; 3]>(elements.len(), op)?);
        let size = self.rows * self.columns;
        let one =
            |i| DMatrix::from_row_slice(self.rows, self.columns, &elements[i * size..][..size]);
        Ok((0..self.count).map(one).collect())
    }
}

impl View {
    /// The singular values of each matrix of a batch, largest first, in a new real tensor. Copies the
    /// matrices into float64 to take them apart.
    ///
    /// # Errors
    /// Fewer than two dims; integers and half precision; numbers that are not finite; out of memory.
    #[track_caller]
    pub fn singular_values(&self) -> Result<View> {
        let op = "linalg.svdvals";
        let [values, _, _] = if self.dtype().is_complex() {
            self.taken_apart::<Complex<f64>>(false, op)?
        } else {
            self.taken_apart::<f64>(false, op)?
        };
        Ok(values)
    }

    /// The singular values of each matrix `A` of a batch, and the vectors `U` and `Vᴴ`, as many of each, such that
    /// `A = U · diag(values) · Vᴴ`.
    ///
    /// # Errors
    /// As [`View::singular_values`].
    #[track_caller]
    pub fn svd(&self) -> Result<[View; 3]> {
        let op = "linalg.svd";
        if self.dtype().is_complex() {
            self.taken_apart::<Complex<f64>>(true, op)
        } else {
            self.taken_apart::<f64>(true, op)
        }
    }

    /// Singular values, and vectors where they are asked for, else views without elements.
    #[track_caller]
    fn taken_apart<T>(&self, vectors: bool, op: &'static str) -> Result<[View; 3]>
    where
        T: Number + ComplexField<RealField = f64>,
    {
        let batch = Batch::of(self, op)?;
        let rank = batch.rows.min(batch.columns);
        let room = if vectors { batch.count * rank } else { 0 };
        let mut values: Vec<f64> = reserved(batch.count * rank, op)?;
        let mut left: Vec<T> = reserved(room * batch.rows, op)?;
        let mut right: Vec<T> = reserved(room * batch.columns, op)?;
        let matrices = batch.matrices::<T>(self, op)?;
        for m in matrices.into_iter().filter(|m| !m.is_empty()) {
            let svd = m
                .iter()
                .all(ComplexField::is_finite)
                .then(|| SVD::try_new(m, vectors, vectors, f64::EPSILON, MOST_STEPS))
                .flatten();
            let svd = svd.ok_or_else(|| {
                let what = "singular values were not found: are all numbers finite?";
                Error::new(Kind::Value, what).op(op)
            })?;
            values.extend(svd.singular_values.iter());
            left.extend(svd.u.iter().flat_map(in_rows));
            right.extend(svd.v_t.iter().flat_map(in_rows));
        }
        let of_shape = |dims: &[usize]| {
            let mut shape = Dims::from_slice(&self.shape()[..self.dim() - 2]);
            shape.extend_from_slice(dims);
            shape
        };
        let device = self.device();
        let [u, v] = match vectors {
            true => [[batch.rows, rank], [rank, batch.columns]],
            false => [[0, 0]; 2],
        };
        Ok([
            View::from_slice(&values, &of_shape(&[rank]), &device)?
                .to_dtype(self.dtype().to_real())?,
            View::from_slice(&left, &of_shape(&u), &device)?.to_dtype(self.dtype())?,
            View::from_slice(&right, &of_shape(&v), &device)?.to_dtype(self.dtype())?,
        ])
    }
}

with_out! { to;
    /// The inverse of each matrix of a batch, in a new tensor, column after column as PyTorch lays it
    /// out. Copies the matrices into float64 to take them apart.
    ///
    /// # Errors
    /// Matrices that are not square, or singular; integers and half precision; out of memory.
    inverse inverse_out(&self) -> View {
        let to = to.named(["linalg.inv", "inverse_out"]);
        let op = to.op;
        let batch = Batch::of(self, op)?;
        if batch.rows != batch.columns {
            return Err(Error::new(
                Kind::Shape,
                format!("expected square matrices, got shape {:?}", self.shape()),
            )
            .op(op));
        }
        let columns = if self.dtype().is_complex() {
            let elements = inverses(batch.matrices::<Complex<f64>>(self, op)?, op)?;
            View::from_slice(&elements, self.shape(), &self.device())?
        } else {
            let elements = inverses(batch.matrices::<f64>(self, op)?, op)?;
            View::from_slice(&elements, self.shape(), &self.device())?
        };
        let dense = columns.to_dtype(self.dtype())?;
        let layout = dense.layout().mt()?;
        to.put(View::new(dense.storage().clone(), layout, dense.dtype(), op)?)
    }
}

/// The elements row after row.
fn in_rows<T: ComplexField>(m: &DMatrix<T>) -> impl Iterator<Item = T> + '_ {
    (0..m.nrows()).flat_map(move |i| (0..m.ncols()).map(move |j| m[(i, j)].clone()))
}

/// The elements of the inverses, column after column.
#[track_caller]
fn inverses<T: ComplexField>(matrices: Vec<DMatrix<T>>, op: &'static str) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    for (i, m) in matrices.into_iter().enumerate() {
        let inverse = m.lu().try_inverse().ok_or_else(|| {
            let what = format!("matrix {i} of the batch is singular: it has no inverse");
            Error::new(Kind::Value, what).op(op)
        })?;
        elements.extend(inverse.iter().cloned());
    }
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use osteon_spec::Device;

    #[test]
    fn parts_multiply_to_the_matrix() {
        let elements = [3.0, 1.0, -2.0, 0.5, 4.0, 1.5];
        let a = View::from_slice(&elements, &[2, 3], &Device::cpu()).unwrap();
        let [s, u, vh] = a.svd().unwrap();
        let [s, u, vh] = [s, u, vh].map(|v| v.to_vec::<f64>().unwrap());
        for i in 0..2 {
            for j in 0..3 {
                let product: f64 = (0..2).map(|k| u[i * 2 + k] * s[k] * vh[k * 3 + j]).sum();
                assert!((product - elements[i * 3 + j]).abs() < 1e-12);
            }
        }
        let alone = a.singular_values().unwrap().to_vec::<f64>().unwrap();
        assert!(s[0] > s[1] && s.iter().zip(alone).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    #[test]
    fn no_matter_how_many_matrices_are_empty() {
        let none = View::zeros(&[1 << 40, 0, 3], DType::F64, &Device::cpu()).unwrap();
        assert_eq!(none.singular_values().unwrap().shape(), [1 << 40, 0]);
        assert_eq!(none.svd().unwrap()[2].shape(), [1 << 40, 0, 3]);
    }
}
