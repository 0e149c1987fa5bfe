//! RMSprop.

use super::optimizer::{Algorithm, Step};
use super::sgd::check_numbers;
use crate::{Error, Kind, Result};

/// Steps by gradients over the root of the running mean of their squares: PyTorch's `optim.RMSprop`.
///
/// ```
/// use osteon::{Tensor, nn::parameter, optim::{Optimizer, RMSprop}};
/// let w = parameter(Tensor::new([1f64])?)?;
/// let how = RMSprop { lr: 0.1, alpha: 0.75, ..RMSprop::default() };
/// let mut optimizer = Optimizer::new([&w], how)?;
/// w.set_grad(Some(&Tensor::new([2f64])?))?;
/// optimizer.step()?; // the mean square is 0.25 · 4
/// assert!((w.item::<f64>()? - 0.8).abs() < 1e-6);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RMSprop {
    /// The learning rate.
    pub lr: f64,
    /// How much of the mean square stays in a step.
    pub alpha: f64,
    /// What is added to the root.
    pub eps: f64,
    /// How much of the parameter is added to its gradient.
    pub weight_decay: f64,
    /// How much of a step goes on in the next one.
    pub momentum: f64,
    /// Whether the square of the mean is taken off: the root is then the deviation.
    pub centered: bool,
    /// Whether it climbs.
    pub maximize: bool,
}

impl Default for RMSprop {
    /// PyTorch's: 0.01, 0.99, 1e-8, and nothing else.
    fn default() -> RMSprop {
        RMSprop {
            lr: 1e-2,
            alpha: 0.99,
            eps: 1e-8,
            weight_decay: 0.0,
            momentum: 0.0,
            centered: false,
            maximize: false,
        }
    }
}

impl Algorithm for RMSprop {
    fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![
            ("lr", &mut self.lr),
            ("alpha", &mut self.alpha),
            ("eps", &mut self.eps),
            ("weight_decay", &mut self.weight_decay),
            ("momentum", &mut self.momentum),
        ]
    }

    fn states(&self) -> Vec<&'static str> {
        let mut names = vec!["square_avg"];
        if self.momentum > 0.0 {
            names.push("momentum_buffer");
        }
        if self.centered {
            names.push("grad_avg");
        }
        names
    }

    fn check(&self) -> Result<()> {
        check_numbers(&[
            ("lr", self.lr),
            ("alpha", self.alpha),
            ("eps", self.eps),
            ("weight_decay", self.weight_decay),
            ("momentum", self.momentum),
        ])
    }

    fn step(&self, at: &Step<'_>) -> Result<()> {
        let expected = 1 + usize::from(self.momentum > 0.0) + usize::from(self.centered);
        if at.states.len() != expected {
            let message = "momentum or centered was switched after the first step";
            return Err(Error::new(Kind::Value, message));
        }
        let root = at.scratch(1)?;
        let gradient = at.decayed(self.maximize, self.weight_decay, 0)?;
        let square = &at.states[0];
        square.mul_(self.alpha)?;
        square.addcmul_(&gradient, &gradient, 1.0 - self.alpha)?;
        match at.states.last().filter(|_| self.centered) {
            Some(mean) => {
                mean.lerp_(&gradient, 1.0 - self.alpha)?;
                root.copy_(square)?;
                root.addcmul_(mean, mean, -1.0)?;
                root.sqrt_()?;
            }
            None => square.sqrt_out(&root)?,
        }
        root.add_(self.eps)?;
        if self.momentum > 0.0 {
            let buffer = &at.states[1];
            buffer.mul_(self.momentum)?;
            buffer.addcdiv_(&gradient, &root, 1.0)?;
            at.parameter.add_scaled_(buffer, -self.lr)
        } else {
            at.parameter.addcdiv_(&gradient, &root, -self.lr)
        }
    }
}
