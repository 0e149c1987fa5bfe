//! Layers without parameters. Any function from tensor to tensor is one by [`func`](super::func); these are those
//! that are used often, by PyTorch's names.

use super::functional::{self, Average, Pool};
use super::{Info, Layer, Module, Parts};
use crate::{Result, Tensor};

macro_rules! layers {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident $(($($ty:ty),+))?: |$this:ident, $x:ident| $call:expr, like $example:expr;
    )*) => { $(
        $(#[doc = $doc])+
        ///
        /// ```
        /// # use osteon::{Tensor, nn::{*, functional::{Average, Pool}}};
        /// # let x = Tensor::arange(0.0, 16.0, 1.0)?.view([1, 1, 4, 4])?;
        #[doc = concat!("let y = ", stringify!($example), ".forward(&x)?;")]
        /// # assert!(y.isfinite()?.all()?.item::<bool>()?);
        /// # Ok::<(), osteon::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug)]
        pub struct $name $(($(pub $ty),+))?;

        impl Module for $name {
            fn visit(&self, _: &mut Parts<'_>) {}
        }

        impl Layer for $name {
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                let $this = self;
                $call
            }
        }
    )* };
}

layers! {
    /// [`Tensor::relu`] as a layer.
    ReLU: |_this, x| x.relu(), like ReLU;
    /// [`Tensor::relu6`] as a layer.
    ReLU6: |_this, x| x.relu6(), like ReLU6;
    /// [`Tensor::leaky_relu`] with this slope as a layer.
    LeakyReLU(f64): |this, x| x.leaky_relu(this.0), like LeakyReLU(0.01);
    /// [`Tensor::elu`] with this `alpha` as a layer.
    ELU(f64): |this, x| x.elu(this.0), like ELU(1.0);
    /// [`Tensor::selu`] as a layer.
    SELU: |_this, x| x.selu(), like SELU;
    /// [`Tensor::gelu`] as a layer.
    GELU: |_this, x| x.gelu(), like GELU;
    /// [`Tensor::silu`] as a layer.
    SiLU: |_this, x| x.silu(), like SiLU;
    /// [`Tensor::mish`] as a layer.
    Mish: |_this, x| x.mish(), like Mish;
    /// [`Tensor::hardswish`] as a layer.
    Hardswish: |_this, x| x.hardswish(), like Hardswish;
    /// [`Tensor::sigmoid`] as a layer.
    Sigmoid: |_this, x| x.sigmoid(), like Sigmoid;
    /// [`Tensor::logsigmoid`] as a layer.
    LogSigmoid: |_this, x| x.logsigmoid(), like LogSigmoid;
    /// [`Tensor::tanh`] as a layer.
    Tanh: |_this, x| x.tanh(), like Tanh;
    /// [`Tensor::softplus`] with this `beta` and threshold as a layer.
    Softplus(f64, f64): |this, x| x.softplus(this.0, this.1), like Softplus(1.0, 20.0);
    /// [`Tensor::softmax`] along this dim as a layer.
    Softmax(isize): |this, x| x.softmax(this.0), like Softmax(-1);
    /// [`Tensor::log_softmax`] along this dim as a layer.
    LogSoftmax(isize): |this, x| x.log_softmax(this.0), like LogSoftmax(-1);
    /// [`Tensor::flatten`] of all dims but the first as a layer.
    Flatten: |_this, x| x.flatten(1, -1), like Flatten;
    /// What comes in, goes out.
    Identity: |_this, x| Ok(x.clone()), like Identity;
    /// [`functional::max_pool2d`] as a layer.
    MaxPool2d(Pool<2>): |this, x| functional::max_pool2d(x, &this.0), like MaxPool2d(Pool::new([2, 2]));
    /// [`functional::avg_pool2d`] as a layer.
    AvgPool2d(Pool<2>): |this, x| functional::avg_pool2d(x, &this.0, Average::default()), like AvgPool2d(Pool::new([2, 2]));
    /// [`functional::adaptive_avg_pool2d`] as a layer.
    AdaptiveAvgPool2d([Option<isize>; 2]): |this, x| functional::adaptive_avg_pool2d(x, this.0), like AdaptiveAvgPool2d([Some(1), Some(1)]);
}

/// While it trains, zeros in random places, the others scaled so that the mean stays: PyTorch's `nn.Dropout`.
///
/// ```
/// use osteon::{DType, Device, Tensor, nn::{Dropout, Layer}};
/// let y = Dropout::new(0.5).forward(&Tensor::ones([1000], DType::F32, &Device::cpu())?)?;
/// assert!((y.mean()?.item::<f32>()? - 1.0).abs() < 0.2); // zeros and twos
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct Dropout {
    /// The share of zeros.
    pub p: f64,
    info: Info,
}

impl Dropout {
    /// Drops this share, from 0 to 1; another one is an error when the layer runs.
    ///
    /// ```
    /// use osteon::nn::Dropout;
    /// assert_eq!(Dropout::new(0.1).p, 0.1);
    /// ```
    pub fn new(p: f64) -> Dropout {
        let info = Info::default();
        Dropout { p, info }
    }
}

impl Module for Dropout {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
    }
}

impl Layer for Dropout {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        functional::dropout(input, self.p, self.info.is_training())
    }
}
