//! States of optimisers by names, to be saved and loaded.

use super::optimizer::{Algorithm, Optimizer, Slot};
use crate::nn::StateDict;
use crate::{DType, Device, Error, Kind, Result, Tensor, no_grad};

/// A number as a tensor.
fn number(x: f64) -> Result<Tensor> {
    Tensor::full([], x, DType::F64, &Device::cpu())
}

/// More steps than anybody makes.
const MAX_COUNT: f64 = (1u64 << 53) as f64;

/// The states to put in place of a slot's.
type Loaded = (u64, Option<Vec<Tensor>>);

impl<A: Algorithm> Optimizer<A> {
    fn slots(&mut self) -> impl Iterator<Item = (usize, &mut Slot, &A)> {
        let slots = self.groups.iter_mut().flat_map(|g| {
            let algorithm = &g.algorithm;
            g.slots.iter_mut().map(move |slot| (slot, algorithm))
        });
        slots
            .enumerate()
            .map(|(i, (slot, algorithm))| (i, slot, algorithm))
    }

    /// All states by name, as PyTorch names them: `state.0.exp_avg` for the first parameter, `state.0.step`,
    /// `param_groups.0.lr`; to be saved with [`osteon::save`](crate::save). States are handles, not copies.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{Adam, Optimizer}};
    /// let w = parameter(Tensor::new([1f32])?)?;
    /// let mut optimizer = Optimizer::new([&w], Adam::default())?;
    /// w.set_grad(Some(&Tensor::new([1f32])?))?;
    /// optimizer.step()?;
    /// let state = optimizer.state_dict()?;
    /// assert_eq!(state["state.0.step"].item::<f32>()?, 1.0);
    /// assert_eq!(state["param_groups.0.lr"].item::<f64>()?, 1e-3);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn state_dict(&mut self) -> Result<StateDict> {
        let mut found = StateDict::new();
        for (i, slot, algorithm) in self.slots() {
            let Some(states) = &slot.states else { continue };
            for (name, state) in algorithm.states().into_iter().zip(states) {
                found.insert(format!("state.{i}.{name}"), state.clone());
            }
            let count = Tensor::full([], slot.count as f64, DType::F32, &Device::cpu())?;
            found.insert(format!("state.{i}.step"), count);
        }
        for (g, group) in self.groups.iter_mut().enumerate() {
            for (name, x) in group.algorithm.numbers() {
                found.insert(format!("param_groups.{g}.{name}"), number(*x)?);
            }
            if let Some(lr) = group.initial_lr {
                found.insert(format!("param_groups.{g}.initial_lr"), number(lr)?);
            }
        }
        Ok(found)
    }

    /// Takes over a state: of [`Optimizer::state_dict`], or what a checkpoint of PyTorch's has of it (states and counts; the
    /// numbers of its groups are not tensors, and stay as they are here).
    ///
    /// # Errors
    /// States of parameters that are not here, that the algorithm does not have, or of another shape; some states of a
    /// parameter without the others; a count or numbers that make no sense; out of memory. Nothing has been changed then.
    ///
    /// ```
    /// use osteon::{Tensor, nn::parameter, optim::{Optimizer, SGD}};
    /// let w = parameter(Tensor::new([1f32])?)?;
    /// let how = SGD { lr: 0.1, momentum: 0.9, ..SGD::default() };
    /// let mut first = Optimizer::new([&w], how.clone())?;
    /// w.set_grad(Some(&Tensor::new([1f32])?))?;
    /// first.step()?;
    /// let mut second = Optimizer::new([&w], SGD { lr: 1.0, ..how })?;
    /// second.load_state_dict(&first.state_dict()?)?;
    /// assert_eq!(second.groups()[0].algorithm.lr, 0.1);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn load_state_dict(&mut self, state: &StateDict) -> Result<()> {
        let wrong = |message: String| Err(Error::new(Kind::Value, message).op("load_state_dict"));
        let mut known = 0;
        let mut loaded: Vec<Loaded> = Vec::new();
        for (i, slot, algorithm) in self.slots() {
            let names = algorithm.states();
            let given = names.iter().map(|name| {
                let name = format!("state.{i}.{name}");
                state.get(&name).map(|tensor| (name, tensor))
            });
            let given: Vec<_> = given.flatten().collect();
            let count = state.get(&format!("state.{i}.step"));
            known += given.len() + usize::from(count.is_some());
            if given.len() != names.len() && (!given.is_empty() || count.is_some()) {
                return wrong(format!(
                    "of parameter {i} not all states are there: {}",
                    names.join(", ")
                ));
            }
            let mut states = Vec::new();
            for (name, tensor) in &given {
                if tensor.shape() != slot.parameter.shape() {
                    let shapes = (slot.parameter.shape(), tensor.shape());
                    return wrong(format!(
                        "{name} has shape {:?} here and {:?} there",
                        shapes.0, shapes.1
                    ));
                }
                let own = no_grad(|| slot.parameter.detach()?.empty_like())?;
                no_grad(|| own.copy_(tensor))?;
                if let (Some(label), Some(state)) = (slot.parameter.name(), name.rsplit('.').next())
                {
                    own.named(&format!("{label}.{state}"));
                }
                states.push(own);
            }
            // SGD of PyTorch counts no steps.
            let has_states = !given.is_empty() || count.is_some();
            let count = count.map_or(Ok(f64::from(u8::from(has_states))), |t| t.item::<f64>())?;
            // Up to where each whole number is one of them.
            if !(0.0..=MAX_COUNT).contains(&count) || count.fract() != 0.0 {
                return wrong(format!("state.{i}.step is no number of steps: {count}"));
            }
            let count = count as u64;
            loaded.push((count, has_states.then_some(states)));
        }
        let mut numbers = Vec::new();
        for (g, group) in self.groups.iter_mut().enumerate() {
            let mut names: Vec<_> = group
                .algorithm
                .numbers()
                .into_iter()
                .map(|(n, _)| n)
                .collect();
            names.push("initial_lr");
            for name in names {
                if let Some(tensor) = state.get(&format!("param_groups.{g}.{name}")) {
                    known += 1;
                    numbers.push((g, name, tensor.item::<f64>()?));
                }
            }
        }
        for (g, group) in self.groups.iter().enumerate() {
            let mut algorithm = group.algorithm.clone();
            for (name, own) in algorithm.numbers() {
                if let Some((_, _, x)) = numbers.iter().find(|(at, n, _)| (*at, *n) == (g, name)) {
                    *own = *x;
                }
            }
            algorithm.check().map_err(|e| e.op("load_state_dict"))?;
        }
        if known != state.len() {
            return wrong(format!(
                "the state has {} entries, of which {known} belong to this optimiser's {} parameters and their algorithm",
                state.len(),
                loaded.len()
            ));
        }
        for ((_, slot, _), (count, states)) in self.slots().zip(loaded) {
            (slot.count, slot.states) = (count, states);
        }
        for (g, name, x) in numbers {
            let group = &mut self.groups[g];
            match group.number(name) {
                Some(own) => *own = x,
                None => group.initial_lr = Some(x),
            }
        }
        Ok(())
    }
}
