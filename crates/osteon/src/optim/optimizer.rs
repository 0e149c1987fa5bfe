//! What all optimisers have in common: groups of parameters, their states, steps.

use super::clip::check_all;
use super::piece::{PIECE, Scratch, pieces};
use crate::{Error, Kind, Result, Tensor, no_grad};
use osteon_autograd::check_writable;
use osteon_memory::Mode;
use std::borrow::Borrow;

/// How gradients change parameters: the numbers of an optimiser, and its step.
///
/// Those of this module are complete; another one is an implementation of this trait.
///
/// ```
/// use osteon::{Result, Tensor, nn::parameter, optim::{Algorithm, Optimizer, Step}};
///
/// /// Steps of one length, whatever the gradient.
/// #[derive(Clone, Debug)]
/// struct SignSGD {
///     lr: f64,
/// }
///
/// impl Algorithm for SignSGD {
///     fn numbers(&mut self) -> Vec<(&'static str, &mut f64)> {
///         vec![("lr", &mut self.lr)]
///     }
///
///     fn step(&self, at: &Step<'_>) -> Result<()> {
///         let sign = at.scratch(0)?;
///         at.gradient.sign_out(&sign)?;
///         at.parameter.add_scaled_(&sign, -self.lr)
///     }
/// }
///
/// # fn main() -> Result<()> {
/// let w = parameter(Tensor::new([5f32, -3.0])?)?;
/// let mut optimizer = Optimizer::new([&w], SignSGD { lr: 0.5 })?;
/// w.set_grad(Some(&Tensor::new([0.1f32, -7.0])?))?;
/// optimizer.step()?;
/// assert_eq!(w.to_vec::<f32>()?, [4.5, -2.5]);
/// # Ok(())
/// # }
/// ```
pub trait Algorithm: Clone {
    /// Its numbers by PyTorch's names, the first of them `lr`: what schedules change and states of optimisers keep.
    fn numbers(&mut self) -> Vec<(&'static str, &mut f64)>;

    /// What it keeps for each parameter, by PyTorch's names: tensors like the parameter, zeros at first.
    fn states(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Whether these numbers make sense.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Changes a piece of a parameter, and of its states, in place.
    ///
    /// # Errors
    /// Those of the operations. What takes memory comes first (see [`Step::scratch`]): without it nothing has been changed then.
    fn step(&self, at: &Step<'_>) -> Result<()>;
}

/// A piece of a parameter in a step: a run of its elements, and the same run of its gradient and states.
#[derive(Debug)]
pub struct Step<'a> {
    /// The elements to change.
    pub parameter: &'a Tensor,
    /// Their gradient.
    pub gradient: &'a Tensor,
    /// Their states, in the order of [`Algorithm::states`].
    pub states: &'a [Tensor],
    /// How many steps there were for this parameter, this one included.
    pub count: u64,
    /// Whether the states are still zeros, as at the first step.
    pub is_first: bool,
    pub(super) scratch: &'a Scratch,
}

impl Step<'_> {
    /// Room for numbers on the way, as large as the piece; another one for each `k`.
    ///
    /// # Errors
    /// Out of memory.
    pub fn scratch(&self, k: usize) -> Result<Tensor> {
        self.scratch.like(self.parameter, k)
    }

    /// The gradient as most optimisers take it: its negative if what is sought is a maximum, plus `weight_decay` times the
    /// parameter. In scratch `k` where it is not the gradient itself.
    ///
    /// # Errors
    /// Out of memory.
    pub fn decayed(&self, maximize: bool, weight_decay: f64, k: usize) -> Result<Tensor> {
        if !maximize && weight_decay == 0.0 {
            return Ok(self.gradient.clone());
        }
        let out = self.scratch(k)?;
        if maximize {
            self.gradient.neg_out(&out)?;
        } else {
            out.copy_(self.gradient)?;
        }
        if weight_decay != 0.0 {
            out.add_scaled_(self.parameter, weight_decay)?;
        }
        Ok(out)
    }
}

/// Parameters with numbers of their own.
#[derive(Debug)]
pub struct Group<A> {
    /// The algorithm with this group's numbers.
    pub algorithm: A,
    /// The learning rate that a schedule began with.
    pub(super) initial_lr: Option<f64>,
    pub(super) slots: Vec<Slot>,
}

/// A parameter and what is kept for it.
#[derive(Debug)]
pub(super) struct Slot {
    pub parameter: Tensor,
    pub count: u64,
    /// None before the first step.
    pub states: Option<Vec<Tensor>>,
}

impl<A: Algorithm> Group<A> {
    /// Its parameters.
    ///
    /// ```
    /// use osteon::{nn::{Linear, Module}, optim::{Optimizer, SGD}};
    /// let layer = Linear::new(3, 2)?;
    /// let optimizer = Optimizer::new(layer.parameters(), SGD::default())?;
    /// assert!(optimizer.groups()[0].parameters().next().unwrap().is(&layer.weight));
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn parameters(&self) -> impl Iterator<Item = &Tensor> {
        self.slots.iter().map(|slot| &slot.parameter)
    }

    /// Its learning rate.
    ///
    /// ```
    /// use osteon::optim::{Optimizer, SGD};
    /// let w = osteon::Tensor::new([1f32])?;
    /// let mut optimizer = Optimizer::new([w], SGD { lr: 0.5, ..SGD::default() })?;
    /// assert_eq!(optimizer.groups_mut()[0].lr(), 0.5);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn lr(&mut self) -> f64 {
        self.number("lr").map_or(f64::NAN, |lr| *lr)
    }

    /// Another learning rate.
    ///
    /// ```
    /// use osteon::optim::{Optimizer, SGD};
    /// let w = osteon::Tensor::new([1f32])?;
    /// let mut optimizer = Optimizer::new([w], SGD::default())?;
    /// optimizer.groups_mut()[0].set_lr(0.1);
    /// assert_eq!(optimizer.groups()[0].algorithm.lr, 0.1);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn set_lr(&mut self, lr: f64) {
        if let Some(own) = self.number("lr") {
            *own = lr;
        }
    }

    /// A number of the algorithm by its name.
    pub(super) fn number(&mut self, name: &str) -> Option<&mut f64> {
        let numbers = self.algorithm.numbers();
        numbers
            .into_iter()
            .find(|(n, _)| *n == name)
            .map(|(_, x)| x)
    }
}

/// Parameters, and the algorithm that steps along their gradients.
///
/// ```
/// use osteon::{Tensor, nn::parameter, optim::{Optimizer, SGD}};
/// let w = parameter(Tensor::new([1f32])?)?;
/// let mut optimizer = Optimizer::new([&w], SGD { lr: 0.25, ..SGD::default() })?;
/// w.set_grad(Some(&Tensor::new([2f32])?))?;
/// optimizer.step()?;
/// assert_eq!(w.item::<f32>()?, 0.5);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct Optimizer<A> {
    pub(super) groups: Vec<Group<A>>,
    scratch: Scratch,
}

impl<A: Algorithm> Optimizer<A> {
    /// An optimiser of these parameters.
    ///
    /// # Errors
    /// A parameter that comes twice or has no derivatives (integers); numbers that make no sense.
    ///
    /// ```
    /// use osteon::{nn::{Linear, Module}, optim::{Adam, Optimizer}};
    /// let optimizer = Optimizer::new(Linear::new(3, 2)?.parameters(), Adam::default())?;
    /// assert!(Optimizer::new([osteon::Tensor::new([1i64])?], Adam::default()).is_err());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn new<T: Borrow<Tensor>>(
        parameters: impl IntoIterator<Item = T>,
        algorithm: A,
    ) -> Result<Optimizer<A>> {
        let mut optimizer = Optimizer {
            groups: Vec::new(),
            scratch: Scratch::default(),
        };
        optimizer.add_group(parameters, algorithm)?;
        Ok(optimizer)
    }

    /// Takes more parameters, with numbers of their own.
    ///
    /// # Errors
    /// As [`Optimizer::new`]; nothing has been added then.
    ///
    /// ```
    /// use osteon::{nn::Linear, optim::{Optimizer, SGD}};
    /// let layer = Linear::new(3, 2)?;
    /// let slow = SGD { lr: 0.01, ..SGD::default() };
    /// let mut optimizer = Optimizer::new([&layer.weight], slow.clone())?;
    /// optimizer.add_group(&layer.bias, SGD { lr: 0.1, ..slow.clone() })?;
    /// assert!(optimizer.add_group([&layer.weight], slow).is_err());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn add_group<T: Borrow<Tensor>>(
        &mut self,
        parameters: impl IntoIterator<Item = T>,
        algorithm: A,
    ) -> Result<()> {
        let named = |e: Error| e.op("Optimizer");
        algorithm.check().map_err(named)?;
        let mut slots: Vec<Slot> = Vec::new();
        for parameter in parameters {
            let parameter = parameter.borrow();
            let name = parameter
                .name()
                .map(|n| format!("{n:?} "))
                .unwrap_or_default();
            let wrong = |what: &str| {
                let message = format!(
                    "the parameter {name}of shape {:?} {what}",
                    parameter.shape()
                );
                Err(named(Error::new(Kind::Value, message)))
            };
            if !(parameter.dtype().is_float() || parameter.dtype().is_complex()) {
                return wrong(&format!("has no gradients: it is {}", parameter.dtype()));
            }
            let known = self.groups.iter().flat_map(Group::parameters);
            if known
                .chain(slots.iter().map(|s| &s.parameter))
                .any(|p| p.is(parameter))
            {
                return wrong("comes twice");
            }
            slots.push(Slot {
                parameter: parameter.clone(),
                count: 0,
                states: None,
            });
        }
        self.groups.push(Group {
            algorithm,
            initial_lr: None,
            slots,
        });
        Ok(())
    }

    /// The groups, in the order in which they were added.
    ///
    /// ```
    /// use osteon::optim::{Optimizer, SGD};
    /// let optimizer = Optimizer::new([osteon::Tensor::new([1f32])?], SGD::default())?;
    /// assert_eq!(optimizer.groups().len(), 1);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn groups(&self) -> &[Group<A>] {
        &self.groups
    }

    /// The groups, to change their numbers.
    ///
    /// ```
    /// use osteon::optim::{Optimizer, SGD};
    /// let mut optimizer = Optimizer::new([osteon::Tensor::new([1f32])?], SGD::default())?;
    /// optimizer.groups_mut()[0].algorithm.momentum = 0.9;
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn groups_mut(&mut self) -> &mut [Group<A>] {
        &mut self.groups
    }

    /// Lets go of all gradients: PyTorch's `zero_grad()`. The next backward pass makes new ones, and until then they take no
    /// memory.
    ///
    /// # Errors
    /// None; it returns what [`Tensor::set_grad`] does.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{Optimizer, SGD}};
    /// let w = parameter(Tensor::new([1f32])?)?;
    /// w.set_grad(Some(&w.detach()?))?;
    /// Optimizer::new([&w], SGD::default())?.zero_grad()?;
    /// assert!(w.grad().is_none());
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn zero_grad(&self) -> Result<()> {
        let mut all = self.groups.iter().flat_map(Group::parameters);
        all.try_for_each(|p| p.set_grad(None))
    }

    /// Fills all gradients with zeros and keeps their memory: PyTorch's `zero_grad(set_to_none=False)`.
    ///
    /// # Errors
    /// A guard in the way.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{Optimizer, SGD}};
    /// let w = parameter(Tensor::new([1f32])?)?;
    /// w.set_grad(Some(&Tensor::new([2f32])?))?;
    /// Optimizer::new([&w], SGD::default())?.fill_grad_with_zeros()?;
    /// assert_eq!(w.grad().unwrap().item::<f32>()?, 0.0);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn fill_grad_with_zeros(&self) -> Result<()> {
        let all = self.groups.iter().flat_map(Group::parameters);
        let gradients: Vec<Tensor> = all.filter_map(Tensor::grad).collect();
        check_all(&gradients, "fill_grad_with_zeros")?;
        no_grad(|| gradients.iter().try_for_each(Tensor::zero_))
    }

    /// One step along the gradients; parameters without one stay. States are made at a parameter's first step.
    ///
    /// # Errors
    /// Numbers that make no sense; out of memory, a guard in the way: the parameters before that one have been stepped then.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{Adam, Optimizer}};
    /// let (w, idle) = (parameter(Tensor::new([1f64])?)?, parameter(Tensor::new([1f64])?)?);
    /// let mut optimizer = Optimizer::new([&w, &idle], Adam { lr: 0.1, ..Adam::default() })?;
    /// w.set_grad(Some(&Tensor::new([7f64])?))?;
    /// optimizer.step()?; // the first step is of the length lr
    /// assert!((w.item::<f64>()? - 0.9).abs() < 1e-6 && idle.item::<f64>()? == 1.0);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn step(&mut self) -> Result<()> {
        let scratch = &mut self.scratch;
        no_grad(|| {
            for group in &mut self.groups {
                group.algorithm.check()?;
                for slot in &mut group.slots {
                    if let Some(gradient) = slot.parameter.grad() {
                        slot.step(&group.algorithm, &gradient, scratch)?;
                    }
                }
            }
            Ok(())
        })
        .map_err(|e: Error| e.op("step"))
    }
}

impl Slot {
    fn step<A: Algorithm>(
        &mut self,
        algorithm: &A,
        gradient: &Tensor,
        scratch: &Scratch,
    ) -> Result<()> {
        // None of a step without states, as long as the algorithm had none.
        let has_states = self.states.as_ref().is_some_and(|s| !s.is_empty());
        let is_first = self.count == 0 || !has_states;
        if !has_states {
            self.make_states(algorithm)?;
        }
        // Here and not at the first operation that it stops: those before have changed something then.
        gradient.storage().check_access(Mode::Read)?;
        for written in self.states.iter().flatten().chain([&self.parameter]) {
            check_writable(written, "step")?;
        }
        let states = self.states.as_deref().unwrap_or_default();
        let count = self.count + 1;
        let all: Vec<&Tensor> = [&self.parameter, gradient]
            .into_iter()
            .chain(states)
            .collect();
        for piece in pieces(&all, PIECE)? {
            let piece = piece?;
            let [parameter, gradient, states @ ..] = &*piece else {
                continue;
            };
            algorithm.step(&Step {
                parameter,
                gradient,
                states,
                count,
                is_first,
                scratch,
            })?;
        }
        self.count = count;
        Ok(())
    }

    pub(super) fn make_states<A: Algorithm>(&mut self, algorithm: &A) -> Result<()> {
        let name = self.parameter.name();
        let make = |state: &'static str| {
            let tensor = self.parameter.detach()?.zeros_like(None)?;
            if let Some(name) = &name {
                tensor.named(&format!("{name}.{state}"));
            }
            Ok(tensor)
        };
        self.states = Some(
            algorithm
                .states()
                .into_iter()
                .map(make)
                .collect::<Result<_>>()?,
        );
        Ok(())
    }
}
