//! Norms, and what is scaled by them or by other statistics: softmax and the normalisations of neural networks.

use crate::Tensor;
use osteon_spec::{DType, Error, Kind, Result, wrap_dim};
use osteon_tensor::{Affine, Running};

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

/// What [`Tensor::batch_norm`] takes beside the elements.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// The running mean and variance of each channel, which training updates in place.
    pub running: Option<(&'a Tensor, &'a Tensor)>,
    /// A factor for each channel.
    pub weight: Option<&'a Tensor>,
    /// A summand for each channel.
    pub bias: Option<&'a Tensor>,
    /// Whether to normalise by the elements' own statistics.
    pub training: bool,
    /// The weight of new statistics in the running ones.
    pub momentum: f64,
    /// What is added to variances.
    pub eps: f64,
}

impl Default for BatchNorm<'_> {
    /// PyTorch's: no weight and bias, not in training, a momentum of 0.1, `eps` of 1e-5.
    fn default() -> Self {
        BatchNorm {
            running: None,
            weight: None,
            bias: None,
            training: false,
            momentum: 0.1,
            eps: 1e-5,
        }
    }
}

fn affine<'a>(weight: Option<&'a Tensor>, bias: Option<&'a Tensor>) -> Affine<'a> {
    Affine {
        weight: weight.map(Tensor::as_view),
        bias: bias.map(Tensor::as_view),
    }
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
        self.as_view()
            .vector_norm(order, dims.as_ref(), keepdim, None)
            .map(Tensor::from_view)
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
        self.as_view()
            .vector_norm(order, dims.as_ref(), keepdim, Some(dtype))
            .map(Tensor::from_view)
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
        self.as_view()
            .vector_norm(order, &[], false, None)
            .map(Tensor::from_view)
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
        let values = |t: &Tensor| {
            t.as_view()
                .singular_values()
                .map(Tensor::from_view)
                .map_err(|e| e.op(name))
        };
        let values = values(&matrices)?;
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
        self.as_view()
            .dist(other.as_view(), order)
            .map(Tensor::from_view)
    }

    /// `e^x / Σ e^x` along a dim, without overflow on the way.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1000.0f64, 1000.0])?;
    /// assert_eq!(x.softmax(0)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax(&self, dim: isize) -> Result<Tensor> {
        self.as_view().softmax(dim, None).map(Tensor::from_view)
    }

    /// [`Tensor::softmax`] of the elements in a dtype: a copy, which is logged, where that is another.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([7.0f32, 7.0])?;
    /// assert_eq!(x.softmax_in(0, DType::F64)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmax_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.as_view()
            .softmax(dim, Some(dtype))
            .map(Tensor::from_view)
    }

    /// The logarithm of [`Tensor::softmax`], also where that is too small to be told from 0.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.0f64, 1000.0])?;
    /// assert_eq!(x.log_softmax(0)?.to_vec::<f64>()?, [-1000.0, 0.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax(&self, dim: isize) -> Result<Tensor> {
        self.as_view().log_softmax(dim, None).map(Tensor::from_view)
    }

    /// [`Tensor::log_softmax`] of the elements in a dtype: a copy, which is logged, where that is another.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let y = Tensor::new([7.0f32, 7.0])?.log_softmax_in(0, DType::F64)?;
    /// assert!(y.allclose(&Tensor::new([-0.6931471805599453, -0.6931471805599453])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn log_softmax_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.as_view()
            .log_softmax(dim, Some(dtype))
            .map(Tensor::from_view)
    }

    /// [`Tensor::softmax`] of `-x`.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0.0f64, 1.0986122886681098])?; // e^-x is 1 and 1/3
    /// assert!(x.softmin(0)?.allclose(&Tensor::new([0.75, 0.25])?, 1e-12, 0.0)?);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmin(&self, dim: isize) -> Result<Tensor> {
        self.as_view().softmin(dim, None).map(Tensor::from_view)
    }

    /// [`Tensor::softmin`] of the elements in a dtype: a copy, which is logged, where that is another.
    ///
    /// # Errors
    /// Integers and complex numbers; a dim out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::DType;
    /// let x = Tensor::new([7.0f32, 7.0])?;
    /// assert_eq!(x.softmin_in(0, DType::F64)?.to_vec::<f64>()?, [0.5, 0.5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn softmin_in(&self, dim: isize, dtype: DType) -> Result<Tensor> {
        self.as_view()
            .softmin(dim, Some(dtype))
            .map(Tensor::from_view)
    }

    /// Elements less the mean of the last dims, whose sizes are `shape`, divided by the root of their variance and `eps`; then times
    /// `weight` plus `bias`, of that shape. The result is contiguous.
    ///
    /// # Errors
    /// A shape that is not that of the last dims; a weight or bias of another shape or dtype; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 3.0], [5.0, 5.0]])?;
    /// assert_eq!(x.layer_norm([2], None, None, 0.0)?.i([0.into()])?.to_vec::<f64>()?, [-1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn layer_norm(
        &self,
        shape: impl AsRef<[usize]>,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.as_view()
            .layer_norm(shape.as_ref(), affine(weight, bias), eps)
            .map(Tensor::from_view)
    }

    /// Elements divided by the root of the mean square of the last dims, whose sizes are `shape`, and `eps`; then times `weight`.
    /// Without `eps`, it is the step from 1 to the next number (of `float32` for half precision).
    ///
    /// # Errors
    /// As [`Tensor::layer_norm`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([3.0f64, 3.0])?;
    /// assert_eq!(x.rms_norm([2], None, Some(0.0))?.to_vec::<f64>()?, [1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rms_norm(
        &self,
        shape: impl AsRef<[usize]>,
        weight: Option<&Tensor>,
        eps: Option<f64>,
    ) -> Result<Tensor> {
        self.as_view()
            .rms_norm(shape.as_ref(), weight.map(Tensor::as_view), eps)
            .map(Tensor::from_view)
    }

    /// Elements less the mean of their channel (dim 1), divided by the root of its variance and `eps`; then times `weight` plus
    /// `bias`. In training the statistics are those of these elements, and go into the running ones; else they are the running ones.
    /// Channels last stay so; else the result is contiguous.
    ///
    /// # Errors
    /// Fewer than two dims; no running statistics outside training; statistics, a weight or bias that are not one number for each
    /// channel; one element for each channel in training; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// use osteon_autograd::BatchNorm;
    /// let x = Tensor::new([[1.0f64, 4.0], [3.0, 8.0]])?;
    /// let how = BatchNorm { training: true, eps: 0.0, ..BatchNorm::default() };
    /// assert_eq!(x.batch_norm(&how)?.to_vec::<f64>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn batch_norm(&self, how: &BatchNorm<'_>) -> Result<Tensor> {
        let running = how.running.map(|(mean, var)| Running {
            mean: mean.as_view(),
            var: var.as_view(),
        });
        self.as_view()
            .batch_norm(
                running,
                affine(how.weight, how.bias),
                how.training,
                how.momentum,
                how.eps,
            )
            .map(Tensor::from_view)
    }

    /// [`Tensor::layer_norm`] of each of `groups` groups of channels (dim 1), with a weight and bias for each channel.
    ///
    /// # Errors
    /// Fewer than two dims; channels that the groups do not divide; a weight or bias that is not one number for each channel;
    /// one element for each group; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1.0f64, 3.0, 10.0, 20.0]])?;
    /// assert_eq!(x.group_norm(2, None, None, 0.0)?.to_vec::<f64>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn group_norm(
        &self,
        groups: usize,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.as_view()
            .group_norm(groups, affine(weight, bias), eps)
            .map(Tensor::from_view)
    }

    /// [`Tensor::batch_norm`] of each first index on its own, by its own statistics. The result is contiguous.
    ///
    /// # Errors
    /// One element for each channel; a weight or bias that is not one number for each; integers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[[1.0f64, 3.0], [10.0, 20.0]]])?;
    /// assert_eq!(x.instance_norm(None, None, 0.0)?.to_vec::<f64>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn instance_norm(
        &self,
        weight: Option<&Tensor>,
        bias: Option<&Tensor>,
        eps: f64,
    ) -> Result<Tensor> {
        self.as_view()
            .instance_norm(affine(weight, bias), eps)
            .map(Tensor::from_view)
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
        self.as_view()
            .normalize(order, dim, eps)
            .map(Tensor::from_view)
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
        self.as_view()
            .cosine_similarity(other.as_view(), dim, eps)
            .map(Tensor::from_view)
    }
}
