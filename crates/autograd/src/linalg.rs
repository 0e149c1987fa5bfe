//! Products that add to something, contract chosen dims, or chain.

use crate::Tensor;
use crate::elementwise::example;
use crate::graph::{Back, Grads, Recorder, Rule, one, record, rule, same, two, wanted};
use crate::product::{Product, conjugate, conjugated, product, times};
use crate::rules::svd::svd;
use crate::views::signed;
use osteon_spec::{Result, Scalar};
use osteon_tensor::{Added, View, Weights};
use smallvec::smallvec;

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
                plus_product(self, Added::$kind, a, b, Weights::default())
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
                plus_product(self, Added::$kind, a, b, weights)
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
                let kind = Added::$kind;
                let run = || self.as_view().add_product_(kind, a.as_view(), b.as_view(), weights);
                let save = |r: &mut Recorder| names(kind).save(r, a, b, 1);
                Recorder::in_place(stringify!($in_place), &[self, a, b], save, run, |_| {
                    Ok(sum_rule(names(kind), weights))
                })
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

/// The dims of a product that is added.
fn names(kind: Added) -> Product {
    match kind {
        Added::Mm => Product::named("mk", "kn", "mn"),
        Added::Mv => Product::named("mk", "k", "m"),
        Added::Bmm => Product::named("bmk", "bkn", "bmn"),
        Added::SumBmm => Product::named("bmk", "bkn", "mn"),
    }
}

#[track_caller]
fn plus_product(
    to: &Tensor,
    kind: Added,
    a: &Tensor,
    b: &Tensor,
    weights: Weights,
) -> Result<Tensor> {
    let out = to
        .as_view()
        .plus_product(kind, a.as_view(), b.as_view(), weights)?;
    record(out, &[to, a, b], |r, _| {
        names(kind).save(r, a, b, 1)?;
        Ok(sum_rule(names(kind), weights))
    })
}

/// The derivative of `beta·x + alpha·product`.
fn sum_rule(names: Product, weights: Weights) -> impl Rule {
    rule(move |back| {
        let g = back.grad()?;
        let x = back.want(0, || times(&g, conjugate(weights.beta)))?;
        let [a, b] = names.gradients(back, &times(&g, conjugate(weights.alpha))?, 1)?;
        Ok(smallvec![x, a, b])
    })
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
        let out = self.as_view().outer(other.as_view())?;
        product(out, self, other, || Product::named("m", "n", "mn"))
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
        let out = self.as_view().addr(a.as_view(), b.as_view(), weights)?;
        record(out, &[self, a, b], |r, _| {
            let names = Product::named("m", "n", "mn");
            names.save(r, a, b, 1)?;
            Ok(sum_rule(names, weights))
        })
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
        let out = self.as_view().vdot(other.as_view())?;
        conjugated(out, self, other, || Product::named("k", "k", ""))
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
        let out = self.as_view().inner(other.as_view())?;
        product(out, self, other, || match (self.dim(), other.dim()) {
            (0, rank) => Product::contracted((0, &[]), (rank, &[])),
            (rank, 0) => Product::contracted((rank, &[]), (0, &[])),
            (m, n) => Product::contracted((m, &[m - 1]), (n, &[n - 1])),
        })
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
        let (dims, other_dims) = (dims.as_ref(), other_dims.as_ref());
        let out = self
            .as_view()
            .tensordot(other.as_view(), dims, other_dims)?;
        product(out, self, other, || {
            // They have been checked.
            let wrapped = |dims: &[isize], rank: usize| -> Vec<usize> {
                let wrap = |d: &isize| d.rem_euclid(rank.max(1) as isize) as usize;
                dims.iter().map(wrap).collect()
            };
            let (m, n) = (self.dim(), other.dim());
            Product::contracted((m, &wrapped(dims, m)), (n, &wrapped(other_dims, n)))
        })
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
        let out = self.as_view().vecdot(other.as_view(), dim)?;
        conjugated(out, self, other, || {
            let rank = self.dim().max(other.dim());
            Product::broadcast(
                self.dim(),
                other.dim(),
                dim.rem_euclid(rank.max(1) as isize) as usize,
            )
        })
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
        let out = self.as_view().cross(other.as_view(), dim)?;
        record(out, &[self, other], |r, _| {
            let (of_self, of_other) = (r.needs(0), r.needs(1));
            r.save_if(of_other, self)?;
            r.save_if(of_self, other)?;
            Ok(rule(move |b| {
                let g = b.grad()?;
                two(
                    b.want(0, || b.saved(1)?.conj()?.cross(&g, dim))?,
                    b.want(1, || g.cross(&b.saved(0)?.conj()?, dim))?,
                )
            }))
        })
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
        record(View::multi_dot(&views)?, factors, |r, _| {
            factors.iter().try_for_each(|f| r.save(f))?;
            let n = factors.len();
            Ok(rule(move |b| chain_gradients(b, n)))
        })
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
        let out = self.as_view().matrix_power(n)?;
        if n == 1 {
            return record(out, &[self], |_, _| Ok(same()));
        }
        record(out, &[self], |r, _| {
            r.save(self)?;
            Ok(rule(move |b| {
                // The power of a block triangle holds the derivative: (X G; 0 X)ⁿ has Σ Xⁱ·G·Xⁿ⁻¹⁻ⁱ above its diagonal.
                let (x, g) = (b.saved(0)?.mH()?, b.grad()?);
                let upper = Tensor::cat(&[&x, &g], -1)?;
                let lower = Tensor::cat(&[&x.zeros_like(None)?, &x], -1)?;
                let power = Tensor::cat(&[&upper, &lower], -2)?.matrix_power(n)?;
                let size = b.sizes(0)[b.sizes(0).len() - 1] as isize;
                one(power.slice(-2, ..size)?.slice(-1, size..)?)
            }))
        })
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
        record(self.as_view().inverse()?, &[self], |r, out| {
            r.save_output(out)?;
            Ok(rule(|b| {
                let inverse = b.saved(0)?.mH()?;
                one(inverse.matmul(&b.grad()?)?.matmul(&inverse)?.neg()?)
            }))
        })
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
        if !wanted(&[self]) {
            return self.as_view().singular_values().map(Tensor::from_view);
        }
        let parts = self.as_view().svd()?;
        let mut recorder = Recorder::new("linalg.svdvals", parts[0].site(), &[self])?;
        for (k, part) in parts.iter().enumerate() {
            recorder.save_output_of(part, k)?;
        }
        let mut results = recorder.finish_many(parts.into(), svd)?;
        Ok(results.swap_remove(0))
    }
}

/// The gradients of factors of a chain: each is a chain itself, of the other factors and the gradient in its place.
fn chain_gradients(b: &Back<'_>, n: usize) -> Result<Grads> {
    let mut factors = Vec::with_capacity(n);
    for k in 0..n {
        let factor = b.saved(k)?;
        factors.push(match factor.dim() {
            1 if k == 0 => factor.unsqueeze(0)?,
            1 => factor.unsqueeze(1)?,
            _ => factor,
        });
    }
    let rows = factors[0].shape()[0] as isize;
    let g = b
        .grad()?
        .reshape([rows, factors[n - 1].shape()[1] as isize])?;
    let adjoint = factors.iter().map(Tensor::mH).collect::<Result<Vec<_>>>()?;
    let gradient = |k: usize| {
        let (before, after) = (adjoint[..k].iter().rev(), adjoint[k + 1..].iter().rev());
        let chain: Vec<&Tensor> = before.chain([&g]).chain(after).collect();
        Tensor::multi_dot(&chain)?.reshape(signed(b.sizes(k)))
    };
    (0..n).map(|k| b.want(k, || gradient(k))).collect()
}
