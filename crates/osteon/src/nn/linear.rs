//! Products with a matrix, and rows of one.

use super::module::built;
use super::{Info, Layer, Module, Parts, functional, init, parameter};
use crate::{Result, Tensor};

/// `x · weightᵀ + bias` over the last dim: PyTorch's `nn.Linear`, with its initial values.
///
/// ```
/// use osteon::{Tensor, nn::{Layer, Linear}};
/// let layer = Linear::new(3, 2)?;
/// assert_eq!((layer.weight.shape(), layer.bias.as_ref().unwrap().shape()), (&[2, 3][..], &[2][..]));
/// assert_eq!(layer.forward(&Tensor::new([[1f32, 2.0, 3.0]; 4])?)?.shape(), [4, 2]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct Linear {
    /// `(outputs, inputs)`.
    pub weight: Tensor,
    /// `(outputs)`.
    pub bias: Option<Tensor>,
    info: Info,
}

impl Linear {
    /// A layer with so many inputs and outputs. Weight and bias are uniform within `±1/√inputs`.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// use osteon::nn::Linear;
    /// let bound = Linear::new(100, 2)?.weight.abs()?.max()?.item::<f32>()?;
    /// assert!(bound > 0.08 && bound <= 0.1);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = init::empty([outputs, inputs])?;
        init::kaiming_uniform_(&weight, 5f64.sqrt())?;
        let bias = init::bias(outputs, inputs)?;
        Ok(built(Linear {
            weight: parameter(weight)?,
            bias: Some(parameter(bias)?),
            info: Info::default(),
        }))
    }

    /// The layer without its bias.
    ///
    /// ```
    /// use osteon::nn::{Linear, Module};
    /// assert_eq!(Linear::new(3, 2)?.without_bias().num_parameters(), 6);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[must_use]
    pub fn without_bias(self) -> Linear {
        Linear { bias: None, ..self }
    }
}

impl Module for Linear {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("weight", &self.weight);
        parts.add("bias", &self.bias);
    }
}

impl Layer for Linear {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        functional::linear(input, &self.weight, self.bias.as_ref())
    }
}

/// The rows of a matrix that integers name: PyTorch's `nn.Embedding`.
///
/// ```
/// use osteon::{Tensor, nn::{Embedding, Layer}};
/// let words = Embedding::new(10, 4)?;
/// assert_eq!(words.forward(&Tensor::new([[1i64, 2, 9]])?)?.shape(), [1, 3, 4]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct Embedding {
    /// `(rows, width)`.
    pub weight: Tensor,
    info: Info,
}

impl Embedding {
    /// So many rows of this width, of normal numbers.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// use osteon::nn::Embedding;
    /// assert_eq!(Embedding::new(10, 4)?.weight.shape(), [10, 4]);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    #[track_caller]
    pub fn new(rows: usize, width: usize) -> Result<Embedding> {
        let weight = init::empty([rows, width])?;
        init::normal_(&weight, 0.0, 1.0)?;
        Ok(built(Embedding {
            weight: parameter(weight)?,
            info: Info::default(),
        }))
    }
}

impl Module for Embedding {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        parts.add("weight", &self.weight);
    }
}

impl Layer for Embedding {
    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        functional::embedding(input, &self.weight)
    }
}
