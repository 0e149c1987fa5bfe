//! Products that add to something, contract chosen dims, or chain.

use crate::Tensor;
use crate::elementwise::example;
use osteon_spec::{Result, Scalar};
use osteon_tensor::{Added, View, Weights};

/// `[this], [a], [b] => [sum], [scaled]; method method_scaled method_ => kind;` for products that are added; the values are
/// their examples, scaled by a `beta` of 10 and an `alpha` of 2.
macro_rules! added {
    ($(
        $(#[doc = $doc:literal])+
        [$($x:tt)*], [$($a:tt)*], [$($b:tt)*] => [$($sum:tt)*], [$($mix:tt)*];
        $name:ident $scaled:ident $in_place:ident => $kind:ident;
    )*) => {
        impl Tensor { $(
            $(#[doc = $doc])+
            ///
            /// Allocates the result, row-major.
            ///
            /// # Errors
            /// Shapes that do not fit; different dtypes; `bool`; a guard in the way; out of memory.
            ///
            #[doc = example!(
                x = [$($x)*], a = [$($a)*], b = [$($b)*]; ;
                "x.", stringify!($name), "(&a, &b)?";
                [$($sum)*]
            )]
            #[track_caller]
            pub fn $name(&self, a: &Tensor, b: &Tensor) -> Result<Tensor> {
                let weights = Weights::default();
                self.as_view()
                    .plus_product(Added::$kind, a.as_view(), b.as_view(), weights)
                    .map(Tensor::from_view)
            }

            #[doc = concat!("[`Tensor::", stringify!($name), "`] with this tensor times `beta` and the product times `alpha`.")]
            /// A `beta` of 0 leaves this tensor unread; of integers' factors the whole part counts.
            ///
            /// # Errors
            #[doc = concat!("As [`Tensor::", stringify!($name), "`].")]
            ///
            #[doc = example!(
                x = [$($x)*], a = [$($a)*], b = [$($b)*]; ;
                "x.", stringify!($scaled), "(&a, &b, 10.0, 2.0)?";
                [$($mix)*]
            )]
            #[track_caller]
            pub fn $scaled(
                &self,
                a: &Tensor,
                b: &Tensor,
                beta: impl Into<Scalar>,
                alpha: impl Into<Scalar>,
            ) -> Result<Tensor> {
                let weights = Weights { beta: beta.into(), alpha: alpha.into() };
                self.as_view()
                    .plus_product(Added::$kind, a.as_view(), b.as_view(), weights)
                    .map(Tensor::from_view)
            }

            #[doc = concat!("[`Tensor::", stringify!($scaled), "`] in place, seen by every tensor on the storage.")]
            ///
            /// # Errors
            /// Another shape than the product's; overlap; as for a new tensor.
            ///
            #[doc = example!(
                x = [$($x)*], a = [$($a)*], b = [$($b)*];
                "x.", stringify!($in_place), "(&a, &b, 10.0, 2.0)?;\n";
                "x";
                [$($mix)*]
            )]
            #[track_caller]
            pub fn $in_place(
                &self,
                a: &Tensor,
                b: &Tensor,
                beta: impl Into<Scalar>,
                alpha: impl Into<Scalar>,
            ) -> Result<()> {
                let weights = Weights { beta: beta.into(), alpha: alpha.into() };
                self.as_view().add_product_(Added::$kind, a.as_view(), b.as_view(), weights)
            }
        )* }
    };
}

added! {
    /// This tensor, broadcast, plus the product of two matrices.
    [[1.0, 2.0]], [[3.0, 4.0]], [[1.0, 1.0], [0.0, 1.0]] => [[4.0, 9.0]], [[16.0, 34.0]];
    addmm addmm_scaled addmm_ => Mm;
    /// This tensor, broadcast, plus the product of a matrix and a vector.
    [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0] => [4.0, 9.0], [16.0, 34.0];
    addmv addmv_scaled addmv_ => Mv;
    /// This tensor, broadcast, plus the products of matrices in two batches.
    [[[1.0]], [[2.0]]], [[[1.0, 2.0]], [[0.0, 1.0]]], [[[3.0], [4.0]], [[5.0], [6.0]]] => [[[12.0]], [[8.0]]], [[[32.0]], [[32.0]]];
    baddbmm baddbmm_scaled baddbmm_ => Bmm;
    /// This tensor, broadcast, plus the sum of the products of matrices in two batches.
    [[1.0]], [[[1.0, 2.0]], [[0.0, 1.0]]], [[[3.0], [4.0]], [[5.0], [6.0]]] => [[18.0]], [[44.0]];
    addbmm addbmm_scaled addbmm_ => SumBmm;
}

impl Tensor {
    /// The products of all pairs of elements of two vectors. Dtypes promote.
    ///
    /// Allocates the result.
    ///
    /// # Errors
    /// Anything but two vectors; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.outer(&x)?.to_vec::<i64>()?, [1, 2, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Result<Tensor> {
        self.as_view().outer(other.as_view()).map(Tensor::from_view)
    }

    /// `beta·self + alpha·outer(a, b)`. Dtypes promote.
    ///
    /// # Errors
    /// Float factors of integers; as [`Tensor::outer`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 1], [1, 1]])?;
    /// let v = Tensor::new([1i64, 2])?;
    /// assert_eq!(x.addr(&v, &v, 10, 1)?.to_vec::<i64>()?, [11, 12, 12, 14]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn addr(
        &self,
        a: &Tensor,
        b: &Tensor,
        beta: impl Into<Scalar>,
        alpha: impl Into<Scalar>,
    ) -> Result<Tensor> {
        let weights = Weights {
            beta: beta.into(),
            alpha: alpha.into(),
        };
        self.as_view()
            .addr(a.as_view(), b.as_view(), weights)
            .map(Tensor::from_view)
    }

    /// [`Tensor::dot`] with the conjugate of this vector.
    ///
    /// # Errors
    /// As [`Tensor::dot`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use num_complex::Complex;
    /// let i = Tensor::new([Complex::new(0.0f64, 1.0)])?;
    /// assert_eq!(i.vdot(&i)?.item::<Complex<f64>>()?, Complex::new(1.0, 0.0)); // -i · i
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn vdot(&self, other: &Tensor) -> Result<Tensor> {
        self.as_view().vdot(other.as_view()).map(Tensor::from_view)
    }

    /// Sums of products over the last dims of both, for all pairs of what is before.
    ///
    /// # Errors
    /// Last dims that differ; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([[1i64, 2], [3, 4]])?, Tensor::new([1i64, 10])?);
    /// assert_eq!(x.inner(&y)?.to_vec::<i64>()?, [21, 43]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn inner(&self, other: &Tensor) -> Result<Tensor> {
        self.as_view().inner(other.as_view()).map(Tensor::from_view)
    }

    /// Sums of products over dims of this tensor and as many of another; the other dims are kept, in order. No
    /// operand is copied, wherever the dims are.
    ///
    /// # Errors
    /// Lists that differ in length or repeat a dim; sizes that differ; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(a.tensordot(&a, [0, 1], [0, 1])?.item::<i64>()?, 30);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tensordot(
        &self,
        other: &Tensor,
        dims: impl AsRef<[isize]>,
        other_dims: impl AsRef<[isize]>,
    ) -> Result<Tensor> {
        self.as_view()
            .tensordot(other.as_view(), dims.as_ref(), other_dims.as_ref())
            .map(Tensor::from_view)
    }

    /// Sums of products of tensors whose dims are named by letters. Dims that the result lacks are summed, a name twice in
    /// one operand is its diagonal, `...` stands for dims that broadcast; without `->` the result has the names that
    /// occur once, in alphabetical order. No operand is copied, whatever its strides; three or more are multiplied
    /// from the left.
    ///
    /// # Errors
    /// An equation that makes no sense or does not fit; sizes that do not broadcast; dtypes that differ where dims are
    /// summed; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let a = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(Tensor::einsum("ij,kj->ik", &[&a, &a])?.to_vec::<i64>()?, [5, 11, 11, 25]);
    /// assert_eq!(Tensor::einsum("ii", &[&a])?.item::<i64>()?, 5);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Result<Tensor> {
        let views: Vec<&View> = operands.iter().map(|t| t.as_view()).collect();
        View::einsum(equation, &views).map(Tensor::from_view)
    }

    /// Sums of products along a dim, of the conjugate of this tensor: `linalg.vecdot`.
    ///
    /// # Errors
    /// Integers; shapes that do not broadcast; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?, Tensor::new([1.0f64, 10.0])?);
    /// assert_eq!(x.vecdot(&y, -1)?.to_vec::<f64>()?, [21.0, 43.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn vecdot(&self, other: &Tensor, dim: isize) -> Result<Tensor> {
        self.as_view()
            .vecdot(other.as_view(), dim)
            .map(Tensor::from_view)
    }

    /// The cross products of vectors of three along a dim; other dims broadcast.
    ///
    /// # Errors
    /// A dim of another size than 3; different ranks or dtypes; a guard in the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([1i64, 0, 0])?, Tensor::new([0i64, 1, 0])?);
    /// assert_eq!(x.cross(&y, 0)?.to_vec::<i64>()?, [0, 0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cross(&self, other: &Tensor, dim: isize) -> Result<Tensor> {
        self.as_view()
            .cross(other.as_view(), dim)
            .map(Tensor::from_view)
    }

    /// The product of two or more matrices in the order that takes the fewest multiplications: `linalg.multi_dot`. The
    /// first and the last may be vectors.
    ///
    /// # Errors
    /// Fewer than two; other ranks; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, v) = (Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?, Tensor::new([1.0f64, 1.0])?);
    /// assert_eq!(Tensor::multi_dot(&[&v, &a, &v])?.item::<f64>()?, 10.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn multi_dot(factors: &[&Tensor]) -> Result<Tensor> {
        let views: Vec<&View> = factors.iter().map(|t| t.as_view()).collect();
        View::multi_dot(&views).map(Tensor::from_view)
    }

    /// The `n`th power of square matrices, of their inverses for a negative `n`: `linalg.matrix_power`.
    ///
    /// # Errors
    /// Matrices that are not square, or have no inverse where they need one; as [`Tensor::matmul`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 1.0], [0.0, 1.0]])?;
    /// assert_eq!(x.matrix_power(5)?.to_vec::<f64>()?, [1.0, 5.0, 0.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn matrix_power(&self, n: i64) -> Result<Tensor> {
        self.as_view().matrix_power(n).map(Tensor::from_view)
    }

    /// The inverses of square matrices: `linalg.inv`.
    ///
    /// # Errors
    /// Matrices that are not square, or are singular; anything but `float32`, `float64` and complex numbers; a guard in
    /// the way; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 2.0], [3.0, 4.0]])?; // its determinant is -2
    /// assert!(x.inverse()?.allclose(&Tensor::new([[-2.0, 1.0], [1.5, -0.5]])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn inverse(&self) -> Result<Tensor> {
        self.as_view().inverse().map(Tensor::from_view)
    }

    /// The singular values of matrices, the largest first: `linalg.svdvals`.
    ///
    /// # Errors
    /// Fewer than two dims; as [`Tensor::inverse`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[0.0f64, -3.0], [4.0, 0.0]])?;
    /// assert!(x.singular_values()?.allclose(&Tensor::new([4.0, 3.0])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn singular_values(&self) -> Result<Tensor> {
        self.as_view().singular_values().map(Tensor::from_view)
    }
}
