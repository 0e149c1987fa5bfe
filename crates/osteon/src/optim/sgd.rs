//! Stochastic gradient descent.

use super::optimizer::{Algorithm, Step};
use crate::{Error, Kind, Result};

/// Stochastic gradient descent, with momentum: PyTorch's `optim.SGD`.
///
/// ```
/// use osteon::{Tensor, nn::parameter, optim::{Optimizer, SGD}};
/// let w = parameter(Tensor::new([1f64])?)?;
/// let how = SGD { lr: 0.1, momentum: 0.5, ..SGD::default() };
/// let mut optimizer = Optimizer::new([&w], how)?;
/// w.set_grad(Some(&Tensor::new([1f64])?))?;
/// optimizer.step()?; // by 0.1
/// optimizer.step()?; // by 0.1 · (1 + 0.5)
/// assert!((w.item::<f64>()? - 0.75).abs() < 1e-12);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SGD {
    /// The learning rate.
    pub lr: f64,
    /// How much of a step goes on in the next one.
    pub momentum: f64,
    /// How much less of a gradient goes into the momentum.
    pub dampening: f64,
    /// How much of the parameter is added to its gradient.
    pub weight_decay: f64,
    /// Whether the step looks ahead: Nesterov's momentum.
    pub nesterov: bool,
    /// Whether it climbs.
    pub maximize: bool,
}

impl Default for SGD {
    /// PyTorch's: a learning rate of 0.001, and nothing else.
    fn default() -> SGD {
        SGD {
            lr: 1e-3,
            momentum: 0.0,
            dampening: 0.0,
            weight_decay: 0.0,
            nesterov: false,
            maximize: false,
        }
    }
}

/// Refuses numbers that are negative or none.
pub(super) fn check_numbers(numbers: &[(&str, f64)]) -> Result<()> {
    match numbers.iter().find(|(_, x)| x.is_nan() || *x < 0.0) {
        Some((name, x)) => Err(Error::new(
            Kind::Value,
            format!("{name} must not be negative, got {x}"),
        )),
        None => Ok(()),
    }
}

impl Algorithm for SGD {
    fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
        vec![
            ("lr", &mut self.lr),
            ("momentum", &mut self.momentum),
            ("dampening", &mut self.dampening),
            ("weight_decay", &mut self.weight_decay),
        ]
    }

    fn states(&self) -> Vec<&'static str> {
        if self.momentum == 0.0 {
            Vec::new()
        } else {
            vec!["momentum_buffer"]
        }
    }

    fn check(&self) -> Result<()> {
        check_numbers(&[
            ("lr", self.lr),
            ("momentum", self.momentum),
            ("weight_decay", self.weight_decay),
        ])?;
        if self.nesterov && (self.momentum == 0.0 || self.dampening != 0.0) {
            let message = "nesterov needs a momentum, and no dampening";
            return Err(Error::new(Kind::Value, message));
        }
        Ok(())
    }

    fn step(&self, at: &Step<'_>) -> Result<()> {
        let gradient = at.decayed(self.maximize, self.weight_decay, 0)?;
        let Some(buffer) = at.states.first().filter(|_| self.momentum != 0.0) else {
            return at.parameter.add_scaled_(&gradient, -self.lr);
        };
        let ahead = self.nesterov.then(|| at.scratch(0)).transpose()?;
        if at.is_first {
            buffer.copy_(&gradient)?;
        } else {
            buffer.mul_(self.momentum)?;
            buffer.add_scaled_(&gradient, 1.0 - self.dampening)?;
        }
        let Some(ahead) = ahead else {
            return at.parameter.add_scaled_(buffer, -self.lr);
        };
        if !ahead.shares_storage(&gradient) {
            ahead.copy_(&gradient)?;
        }
        ahead.add_scaled_(buffer, self.momentum)?;
        at.parameter.add_scaled_(&ahead, -self.lr)
    }
}
