//! Products. Strides, transposes and broadcast batches are read as they are: nothing is copied before.
//! Dtypes must agree, as in PyTorch; results are row-major.

use crate::Tensor;
use crate::product::{Product, product};
use osteon_spec::{Layout, Result};
use osteon_tensor::View;

impl Tensor {
    /// The matrix product. A vector counts as a row on the left and as a column on the right; dims before the last two
    /// are a batch, and broadcast without being copied.
    ///
    /// Allocates the result. Half precision is summed in `float32`; integers wrap.
    ///
    /// # Errors
    /// A 0-dim factor; shapes that do not fit; different dtypes; `bool`; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(a.matmul(&a.t()?)?.to_vec::<i64>()?, [5, 11, 11, 25]);
    /// let batch = a.expand([1000, 2, 2])?; // no memory of its own
    /// assert_eq!(batch.matmul(&Tensor::new([1i64, 1])?)?.shape(), [1000, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        let mut out = self.as_view().matmul(other.as_view())?;
        if self.dim() == 2 && other.dim() > 2 && self.requires_grad() {
            // PyTorch computes the transposed product here, and makes it contiguous unless it is: strides of dims of
            // size 1 show it.
            let transposed = Layout::contiguous(Layout::mt(out.layout())?.sizes())?.mt()?;
            if transposed.is_contiguous() {
                out = View::new(out.storage().clone(), transposed, out.dtype(), out.op())?;
            }
        }
        product(out, self, other, || {
            Product::matmul(self.dim(), other.dim())
        })
    }

    /// The product of two matrices.
    ///
    /// # Errors
    /// Anything but two matrices; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([[1i64, 2]])?, Tensor::new([[3i64, 4], [5, 6]])?);
    /// assert_eq!(a.mm(&b)?.to_vec::<i64>()?, [13, 16]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn mm(&self, other: &Tensor) -> Result<Tensor> {
        let out = self.as_view().mm(other.as_view())?;
        product(out, self, other, || Product::named("mk", "kn", "mn"))
    }

    /// The products of the matrices in two batches of one size.
    ///
    /// # Errors
    /// Anything but two batches of one size; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([[[1i64, 2]], [[3, 4]]])?, Tensor::new([[[1i64], [1]], [[0], [2]]])?);
    /// assert_eq!(a.bmm(&b)?.to_vec::<i64>()?, [3, 8]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn bmm(&self, other: &Tensor) -> Result<Tensor> {
        let out = self.as_view().bmm(other.as_view())?;
        product(out, self, other, || Product::named("bmk", "bkn", "bmn"))
    }

    /// The product of a matrix and a vector.
    ///
    /// # Errors
    /// Anything else; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, v) = (Tensor::new([[1i64, 2], [3, 4]])?, Tensor::new([1i64, 10])?);
    /// assert_eq!(a.mv(&v)?.to_vec::<i64>()?, [21, 43]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn mv(&self, vector: &Tensor) -> Result<Tensor> {
        let out = self.as_view().mv(vector.as_view())?;
        product(out, self, vector, || Product::named("mk", "k", "m"))
    }

    /// The sum of the products of two vectors' elements.
    ///
    /// # Errors
    /// Anything but two vectors of one length; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([1i64, 2, 3])?, Tensor::new([4i64, 5, 6])?);
    /// assert_eq!(x.dot(&y)?.item::<i64>()?, 32);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Result<Tensor> {
        let out = self.as_view().dot(other.as_view())?;
        product(out, self, other, || Product::named("k", "k", ""))
    }

    /// The Kronecker product: a copy of the other tensor for each element of this one, times it. Dtypes promote; the tensor of
    /// fewer dims gets new ones in front. The result is contiguous; a factor that is not is copied first.
    ///
    /// # Errors
    /// Dtypes without products; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([1i64, 10])?, Tensor::new([[1i64, 2], [3, 4]])?);
    /// let product = x.kron(&y)?;
    /// assert_eq!(product.shape(), [2, 4]);
    /// assert_eq!(product.to_vec::<i64>()?, [1, 2, 10, 20, 3, 4, 30, 40]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn kron(&self, other: &Tensor) -> Result<Tensor> {
        let Kron { a, b, shape, .. } = Kron::new(self, other).map_err(|e| e.op("kron"))?;
        // In the order of dims that the result has, whatever the factors' is.
        let (a, b) = (a.contiguous()?, b.contiguous()?);
        a.mul(&b)?.view(shape).map_err(|e| e.op("kron"))
    }
}

/// The factors of a Kronecker product as ones that broadcast.
pub(crate) struct Kron {
    pub(crate) a: Tensor,
    pub(crate) b: Tensor,
    /// Of the result.
    pub(crate) shape: Vec<isize>,
    /// The two sizes of the factors that make each of those.
    pub(crate) sizes: Vec<[isize; 2]>,
}

impl Kron {
    pub(crate) fn new(a: &Tensor, b: &Tensor) -> Result<Kron> {
        let rank = a.dim().max(b.dim());
        let padded = |t: &Tensor| {
            let mut shape = vec![1; rank - t.dim()];
            shape.extend(t.shape().iter().map(|&n| n as isize));
            shape
        };
        let sizes: Vec<[isize; 2]> = padded(a)
            .into_iter()
            .zip(padded(b))
            .map(|(m, n)| [m, n])
            .collect();
        // Dims of size 1 between those of each, which any strides allow.
        let spread = |t: &Tensor, place: usize| {
            let shape: Vec<isize> = sizes
                .iter()
                .flat_map(|pair| {
                    let mut each = [1, 1];
                    each[place] = pair[place];
                    each
                })
                .collect();
            t.view(shape)
        };
        Ok(Kron {
            a: spread(a, 0)?,
            b: spread(b, 1)?,
            shape: sizes.iter().map(|[m, n]| m.saturating_mul(*n)).collect(),
            sizes,
        })
    }
}
