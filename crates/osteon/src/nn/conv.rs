//! Convolutions.

use super::functional::{self, Conv};
use super::module::built;
use super::{Info, Layer, Module, Parts, init, parameter};
use crate::{Error, Kind, Result, Tensor};

macro_rules! convolutions {
    ($($(#[doc = $doc:literal])+ $name:ident<$n:literal> by $function:ident;)*) => { $(
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $name {
            /// `(outputs, inputs / groups, kernel…)`.
            pub weight: Tensor,
            /// `(outputs)`.
            pub bias: Option<Tensor>,
            /// Stride, padding, dilation and groups.
            pub how: Conv<$n>,
            info: Info,
        }

        impl $name {
            /// A layer with so many channels in and out and a kernel of this size. Weight and bias are uniform
            /// within `±1/√n`, with `n` the elements of the input that a result sees.
            ///
            /// # Errors
            /// Groups that do not divide the channels; out of memory.
            ///
            /// ```
            #[doc = concat!("use osteon::nn::{functional::Conv, ", stringify!($name), "};")]
            #[doc = concat!("let layer = ", stringify!($name), "::new(4, 6, [3; ", stringify!($n), "], Conv { groups: 2, ..Conv::default() })?;")]
            /// assert_eq!(layer.weight.shape()[..3], [6, 2, 3]);
            /// # Ok::<(), osteon::Error>(())
            /// ```
            #[track_caller]
            pub fn new(inputs: usize, outputs: usize, kernel: [usize; $n], how: Conv<$n>) -> Result<$name> {
                let weight = weight(inputs, outputs, &kernel, how.groups).map_err(|e| e.op(stringify!($function)))?;
                let bias = init::bias(outputs, weight.numel() / outputs.max(1))?;
                Ok(built($name {
                    weight: parameter(weight)?,
                    bias: Some(parameter(bias)?),
                    how,
                    info: Info::default(),
                }))
            }

            /// The layer without its bias.
            ///
            /// ```
            #[doc = concat!("use osteon::nn::{functional::Conv, ", stringify!($name), "};")]
            #[doc = concat!("let layer = ", stringify!($name), "::new(1, 2, [3; ", stringify!($n), "], Conv::default())?.without_bias();")]
            /// assert!(layer.bias.is_none());
            /// # Ok::<(), osteon::Error>(())
            /// ```
            #[must_use]
            pub fn without_bias(self) -> $name {
                $name { bias: None, ..self }
            }
        }

        impl Module for $name {
            fn visit(&self, parts: &mut Parts<'_>) {
                parts.info(&self.info);
                parts.add("weight", &self.weight);
                parts.add("bias", &self.bias);
            }
        }

        impl Layer for $name {
            #[track_caller]
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                let _running = self.info.enter();
                functional::$function(input, &self.weight, self.bias.as_ref(), &self.how)
            }
        }
    )* };
}

convolutions! {
    /// A convolution along the last dim of `(batch, channels, length)`: PyTorch's `nn.Conv1d`.
    ///
    /// ```
    /// use osteon::{DType, Device, Tensor, nn::{Conv1d, Layer, functional::Conv}};
    /// let x = Tensor::ones([2, 3, 8], DType::F32, &Device::cpu())?;
    /// assert_eq!(Conv1d::new(3, 4, [3], Conv::default())?.forward(&x)?.shape(), [2, 4, 6]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    Conv1d<1> by conv1d;
    /// A convolution over images `(batch, channels, height, width)`: PyTorch's `nn.Conv2d`.
    ///
    /// ```
    /// use osteon::{DType, Device, Tensor, nn::{Conv2d, Layer, functional::{Conv, Padding}}};
    /// let x = Tensor::ones([2, 3, 8, 8], DType::F32, &Device::cpu())?;
    /// let how = Conv { padding: Padding::Zeros([1, 1]), stride: [2, 2], ..Conv::default() };
    /// assert_eq!(Conv2d::new(3, 4, [3, 3], how)?.forward(&x)?.shape(), [2, 4, 4, 4]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    Conv2d<2> by conv2d;
}

#[track_caller]
fn weight(inputs: usize, outputs: usize, kernel: &[usize], groups: isize) -> Result<Tensor> {
    let divides = |n: usize| usize::try_from(groups).is_ok_and(|g| g > 0 && n.is_multiple_of(g));
    if !divides(inputs) || !divides(outputs) {
        let message =
            format!("{groups} groups do not divide {inputs} channels in and {outputs} out");
        return Err(Error::new(Kind::Value, message));
    }
    let mut shape = vec![outputs, inputs / groups.unsigned_abs()];
    shape.extend(kernel);
    let weight = init::empty(shape)?;
    init::kaiming_uniform_(&weight, 5f64.sqrt())?;
    Ok(weight)
}
