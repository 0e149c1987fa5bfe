//! Adam, and with weight decay apart from the gradient.

use super::optimizer::{Algorithm, Step};
use super::sgd::check_numbers;
use crate::{Error, Kind, Result};

macro_rules! adam {
    ($(#[doc = $doc:literal])+ $name:ident, $weight_decay:literal, $decoupled:literal, $default:literal) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name {
            /// The learning rate.
            pub lr: f64,
            /// How much of the mean of gradients, and of their squares, stays in a step.
            pub betas: (f64, f64),
            /// What is added to the root of the mean square.
            pub eps: f64,
            /// How much parameters shrink.
            pub weight_decay: f64,
            /// Whether the largest mean square so far is taken.
            pub amsgrad: bool,
            /// Whether it climbs.
            pub maximize: bool,
        }

        impl Default for $name {
            #[doc = $default]
            fn default() -> $name {
                $name {
                    lr: 1e-3,
                    betas: (0.9, 0.999),
                    eps: 1e-8,
                    weight_decay: $weight_decay,
                    amsgrad: false,
                    maximize: false,
                }
            }
        }

        impl Algorithm for $name {
            fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
                vec![
                    ("lr", &mut self.lr),
                    ("betas.0", &mut self.betas.0),
                    ("betas.1", &mut self.betas.1),
                    ("eps", &mut self.eps),
                    ("weight_decay", &mut self.weight_decay),
                ]
            }

            fn states(&self) -> Vec<&'static str> {
                let mut names = vec!["exp_avg", "exp_avg_sq"];
                if self.amsgrad {
                    names.push("max_exp_avg_sq");
                }
                names
            }

            fn check(&self) -> Result<()> {
                check_numbers(&[("lr", self.lr), ("eps", self.eps), ("weight_decay", self.weight_decay)])?;
                let (a, b) = self.betas;
                if (0.0..1.0).contains(&a) && (0.0..1.0).contains(&b) {
                    return Ok(());
                }
                let message = format!("betas must be from 0 to below 1, got {:?}", self.betas);
                Err(Error::new(Kind::Value, message))
            }

            fn step(&self, at: &Step<'_>) -> Result<()> {
                let [mean, square, rest @ ..] = at.states else {
                    return Err(Error::new(Kind::Value, "amsgrad was switched after the first step"));
                };
                let root = at.scratch(0)?;
                let gradient = if $decoupled {
                    if self.weight_decay != 0.0 {
                        at.parameter.mul_(1.0 - self.lr * self.weight_decay)?;
                    }
                    at.decayed(self.maximize, 0.0, 0)?
                } else {
                    at.decayed(self.maximize, self.weight_decay, 0)?
                };
                let (beta1, beta2) = self.betas;
                mean.lerp_(&gradient, 1.0 - beta1)?;
                square.mul_(beta2)?;
                square.addcmul_(&gradient, &gradient, 1.0 - beta2)?;
                let largest = match rest.first().filter(|_| self.amsgrad) {
                    Some(largest) => {
                        largest.maximum_(square)?;
                        largest
                    }
                    None => square,
                };
                // The gradient is not needed any more, so that its room serves.
                let count = at.count as f64;
                largest.sqrt_out(&root)?;
                root.div_((1.0 - beta2.powf(count)).sqrt())?;
                root.add_(self.eps)?;
                at.parameter.addcdiv_(mean, &root, -self.lr / (1.0 - beta1.powf(count)))
            }
        }
    };
}

adam! {
    /// Adam: steps by the running mean of gradients over the root of that of their squares. PyTorch's `optim.Adam`; weight
    /// decay is added to the gradient.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{Adam, Optimizer}};
    /// let w = parameter(Tensor::new([1f64])?)?;
    /// let mut optimizer = Optimizer::new([&w], Adam { lr: 0.1, ..Adam::default() })?;
    /// w.set_grad(Some(&Tensor::new([1e-3f64])?))?;
    /// optimizer.step()?; // of the length lr, however small the gradient
    /// assert!((w.item::<f64>()? - 0.9).abs() < 1e-5);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    Adam, 0.0, false, "PyTorch's: 0.001, betas of 0.9 and 0.999, 1e-8, no weight decay."
}

adam! {
    /// [`Adam`] with weight decay apart from the gradient: PyTorch's `optim.AdamW`.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{AdamW, Optimizer}};
    /// let w = parameter(Tensor::new([1f64])?)?;
    /// let how = AdamW { lr: 0.1, weight_decay: 0.5, ..AdamW::default() };
    /// let mut optimizer = Optimizer::new([&w], how)?;
    /// w.set_grad(Some(&Tensor::new([0f64])?))?;
    /// optimizer.step()?; // shrinks though the gradient is 0
    /// assert!((w.item::<f64>()? - 0.95).abs() < 1e-12);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    AdamW, 1e-2, true, "PyTorch's: 0.001, betas of 0.9 and 0.999, 1e-8, a weight decay of 0.01."
}
