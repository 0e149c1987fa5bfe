//! Random tensors. Numbers come from a counter (Philox), so that a seed gives the same ones whatever the number of
//! threads; they are other numbers than PyTorch's.

use crate::Tensor;
use crate::graph::{Recorder, erased};
use osteon_spec::{DType, Device, Error, Kind, MemoryFormat, Result};
use osteon_tensor::{Distribution, Number, View};

pub use osteon_tensor::{RngState, get_rng_state, manual_seed, set_rng_state};

impl Tensor {
    /// Uniform random numbers from 0 (included) to 1 (excluded), of complex numbers both parts.
    ///
    /// # Errors
    /// Integers and `bool`; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, manual_seed};
    /// # use osteon_spec::{DType, Device};
    /// manual_seed(7);
    /// let a = Tensor::rand([2, 3], DType::F32, &Device::cpu())?;
    /// assert!(a.to_vec::<f32>()?.iter().all(|x| (0.0..1.0).contains(x)));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rand(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Result<Tensor> {
        View::random(
            shape.as_ref(),
            Distribution::Uniform(0.0, 1.0),
            dtype,
            device,
            "rand",
        )
        .map(Tensor::from_view)
    }

    /// Normal random numbers of mean 0 and variance 1, of which the two parts of complex numbers have half each.
    ///
    /// # Errors
    /// As [`Tensor::rand`].
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, manual_seed};
    /// # use osteon_spec::{DType, Device};
    /// manual_seed(7);
    /// let x = Tensor::randn([10_000], DType::F64, &Device::cpu())?.to_vec::<f64>()?;
    /// assert!((x.iter().sum::<f64>() / 1e4).abs() < 0.1);
    /// assert!((x.iter().map(|v| v * v).sum::<f64>() / 1e4 - 1.0).abs() < 0.1);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn randn(shape: impl AsRef<[usize]>, dtype: DType, device: &Device) -> Result<Tensor> {
        View::random(
            shape.as_ref(),
            Distribution::Normal(0.0, 1.0),
            dtype,
            device,
            "randn",
        )
        .map(Tensor::from_view)
    }

    /// Random integers from `low` (included) to `high` (excluded), in any dtype.
    ///
    /// # Errors
    /// An empty range; integers that the dtype cannot hold; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, manual_seed};
    /// # use osteon_spec::{DType, Device};
    /// manual_seed(7);
    /// let x = Tensor::randint(-2, 3, [100], DType::I64, &Device::cpu())?;
    /// assert!(x.to_vec::<i64>()?.iter().all(|n| (-2..3).contains(n)));
    /// assert!(Tensor::randint(3, 3, [1], DType::I64, &Device::cpu()).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn randint(
        low: i64,
        high: i64,
        shape: impl AsRef<[usize]>,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let span = i128::from(high) - i128::from(low);
        let range = Distribution::Integers(low, u64::try_from(span).unwrap_or(0));
        let ends = [low, high.saturating_sub(1)].map(osteon_spec::Scalar::Int);
        if let Some(end) = ends.iter().find(|n| n.saturate(dtype) != **n) {
            let message = format!("{dtype} cannot hold {end}");
            return Err(Error::new(Kind::Value, message).op("randint"));
        }
        View::random(shape.as_ref(), range, dtype, device, "randint").map(Tensor::from_view)
    }

    /// The integers below `n` in random order, as `int64`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, manual_seed};
    /// # use osteon_spec::Device;
    /// manual_seed(7);
    /// let mut x = Tensor::randperm(5, &Device::cpu())?.to_vec::<i64>()?;
    /// x.sort();
    /// assert_eq!(x, [0, 1, 2, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn randperm(n: usize, device: &Device) -> Result<Tensor> {
        View::randperm(n, device).map(Tensor::from_view)
    }

    /// [`Tensor::rand`] of this shape, dtype and layout.
    ///
    /// # Errors
    /// As [`Tensor::rand`].
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, manual_seed};
    /// manual_seed(7);
    /// let x = Tensor::new([[0f32, 0.0, 0.0], [0.0, 0.0, 0.0]])?.t()?.rand_like()?;
    /// assert_eq!(x.stride(), [1, 3]);
    /// assert!(x.to_vec::<f32>()?.iter().all(|v| (0.0..1.0).contains(v)));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rand_like(&self) -> Result<Tensor> {
        self.like(Distribution::Uniform(0.0, 1.0), "rand_like")
    }

    /// [`Tensor::randn`] of this shape, dtype and layout.
    ///
    /// # Errors
    /// As [`Tensor::rand`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[0f32, 0.0, 0.0], [0.0, 0.0, 0.0]])?.t()?.randn_like()?;
    /// assert_eq!((x.shape(), x.stride()), (&[3, 2][..], &[1, 3][..]));
    /// assert!(Tensor::new([0i64])?.randn_like().is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn randn_like(&self) -> Result<Tensor> {
        self.like(Distribution::Normal(0.0, 1.0), "randn_like")
    }

    #[track_caller]
    fn like(&self, distribution: Distribution, op: &'static str) -> Result<Tensor> {
        let layout = self
            .layout()
            .like(MemoryFormat::Preserve)
            .map_err(|e| e.op(op))?;
        View::random_laid_out(layout, distribution, self.dtype(), &self.device(), op)
            .map(Tensor::from_view)
    }

    /// 1 with the probability that each element says, else 0.
    ///
    /// # Errors
    /// A dtype that is not one of floats; a probability outside of 0 to 1, or NaN; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let p = Tensor::new([0f32, 1.0, 0.0])?;
    /// assert_eq!(p.bernoulli()?.to_vec::<f32>()?, [0.0, 1.0, 0.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli(&self) -> Result<Tensor> {
        let op = "bernoulli";
        if !self.dtype().is_float() {
            let message = format!("needs floats, got {}; cast with to() first", self.dtype());
            return Err(Error::new(Kind::DType, message).op(op));
        }
        if self.numel() > 0 {
            let (least, most) = self.as_view().aminmax(&[], false)?;
            let (least, most) = (
                f64::from_scalar(least.item()?),
                f64::from_scalar(most.item()?),
            );
            // A NaN is both, and neither is in the range.
            if !(least >= 0.0 && most <= 1.0) {
                let message = format!("probabilities must be from 0 to 1, got {least} to {most}");
                return Err(Error::new(Kind::Value, message).op(op));
            }
        }
        self.rand_like()?.lt(self)?.to(self.dtype())
    }

    /// 1 with probability `p`, else 0, into every element.
    ///
    /// # Errors
    /// A probability outside of 0 to 1; overlap; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([5i64, 6])?;
    /// x.bernoulli_(1.0)?;
    /// assert_eq!(x.to_vec::<i64>()?, [1, 1]);
    /// assert!(x.bernoulli_(1.5).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn bernoulli_(&self, p: f64) -> Result<()> {
        self.drawn(Distribution::Bernoulli(p), "bernoulli_")
    }

    /// Uniform random numbers from `from` (included) to `to` (excluded) into every element, of complex ones into both parts.
    ///
    /// # Errors
    /// Integers and `bool`; an empty range; overlap; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::{Tensor, manual_seed};
    /// manual_seed(7);
    /// let x = Tensor::new([0f64; 100])?;
    /// x.uniform_(-2.0, 3.0)?;
    /// assert!(x.to_vec::<f64>()?.iter().all(|v| (-2.0..3.0).contains(v)));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn uniform_(&self, from: f64, to: f64) -> Result<()> {
        self.drawn(Distribution::Uniform(from, to), "uniform_")
    }

    /// Normal random numbers of this mean and standard deviation into every element; each part of complex ones has this mean
    /// and half of the variance, as in PyTorch.
    ///
    /// # Errors
    /// Integers and `bool`; a negative deviation; overlap; a guard in the way.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([0f64, 0.0])?;
    /// x.normal_(3.0, 0.0)?;
    /// assert_eq!(x.to_vec::<f64>()?, [3.0, 3.0]);
    /// assert!(x.normal_(0.0, -1.0).is_err());
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn normal_(&self, mean: f64, std: f64) -> Result<()> {
        self.drawn(Distribution::Normal(mean, std), "normal_")
    }

    /// Overwrites all elements: none has a gradient then.
    #[track_caller]
    fn drawn(&self, from: Distribution, op: &'static str) -> Result<()> {
        let run = || self.as_view().random_(from, op);
        Recorder::in_place(op, &[self], |_| Ok(()), run, |_| Ok(erased()))
    }
}
