//! Layers one after the other.

use super::module::built;
use super::{Info, Layer, Module, Parts};
use crate::{Result, Tensor};
use std::fmt;

/// Layers of which each takes what the one before made; their names are their numbers.
///
/// ```
/// use osteon::{Tensor, nn::{Layer, Linear, Module, ReLU, Sequential}};
/// let model = Sequential::new()
///     .then(Linear::new(64, 32)?)
///     .then(ReLU)
///     .then(Linear::new(32, 10)?);
/// assert_eq!(model.forward(&Tensor::new([[0f32; 64]; 5])?)?.shape(), [5, 10]);
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<Box<dyn Layer>>,
    info: Info,
}

impl Sequential {
    /// No layers: what comes in goes out.
    ///
    /// ```
    /// use osteon::nn::Sequential;
    /// assert!(Sequential::new().is_empty());
    /// ```
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// With one more layer behind the others.
    ///
    /// ```
    /// use osteon::nn::{Sequential, Tanh};
    /// assert_eq!(Sequential::new().then(Tanh).then(Tanh).len(), 2);
    /// ```
    #[must_use]
    pub fn then(mut self, layer: impl Layer + 'static) -> Sequential {
        self.layers.push(Box::new(layer));
        built(self)
    }

    /// The number of layers.
    ///
    /// ```
    /// use osteon::nn::Sequential;
    /// assert_eq!(Sequential::new().len(), 0);
    /// ```
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are no layers.
    ///
    /// ```
    /// use osteon::nn::{Sequential, Tanh};
    /// assert!(!Sequential::new().then(Tanh).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())
    }
}

impl Module for Sequential {
    fn visit(&self, parts: &mut Parts<'_>) {
        parts.info(&self.info);
        self.layers.visit(parts);
    }
}

impl Layer for Sequential {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let _running = self.info.enter();
        let first = input.clone();
        self.layers
            .iter()
            .try_fold(first, |x, layer| layer.forward(&x))
    }
}
