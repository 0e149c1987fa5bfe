//! Schedules of learning rates. Each says the rate at a step by a formula, so that training can go on from any step.

use super::optimizer::{Algorithm, Group, Optimizer};
use crate::{Error, Kind, Result};
use std::f64::consts::PI;

/// The learning rate over steps.
///
/// ```
/// use osteon::optim::{ExponentialLR, Schedule};
/// assert_eq!(ExponentialLR { gamma: 0.5 }.lr(8.0, 3), 1.0);
/// ```
pub trait Schedule {
    /// The rate after so many steps, where `base` is the optimiser's own.
    fn lr(&self, base: f64, step: u64) -> f64;

    /// The momentum (of Adam: the first beta) after so many steps, if the schedule has one.
    fn momentum(&self, _step: u64) -> Option<f64> {
        None
    }

    /// Whether its numbers make sense at this step.
    ///
    /// # Errors
    /// What is wrong with them.
    fn check(&self, _step: u64) -> Result<()> {
        Ok(())
    }
}

/// A schedule at work: counts steps and sets the rates of an optimiser's groups.
///
/// ```
/// use osteon::{Tensor, optim::{Optimizer, SGD, Scheduler, StepLR}};
/// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD { lr: 1.0, ..SGD::default() })?;
/// let mut schedule = Scheduler::new(&mut optimizer, StepLR { step_size: 2, gamma: 0.5 })?;
/// let mut rates = Vec::new();
/// for _ in 0..5 {
///     rates.push(optimizer.groups_mut()[0].lr());
///     optimizer.step()?;
///     schedule.step(&mut optimizer)?;
/// }
/// assert_eq!(rates, [1.0, 1.0, 0.5, 0.5, 0.25]);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Debug)]
pub struct Scheduler<S> {
    schedule: S,
    steps: u64,
}

impl<S: Schedule> Scheduler<S> {
    /// Sets the rates of the first step. The rates that the optimiser has are the schedule's base, and stay it in
    /// the optimiser's state.
    ///
    /// # Errors
    /// Numbers that make no sense; a rate that is no number. The optimiser is as it was then.
    ///
    /// ```
    /// use osteon::{Tensor, optim::{LinearLR, Optimizer, SGD, Scheduler}};
    /// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD { lr: 1.0, ..SGD::default() })?;
    /// Scheduler::new(&mut optimizer, LinearLR { start_factor: 0.25, ..LinearLR::default() })?;
    /// assert_eq!(optimizer.groups_mut()[0].lr(), 0.25);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn new<A: Algorithm>(optimizer: &mut Optimizer<A>, schedule: S) -> Result<Scheduler<S>> {
        Scheduler::resume(optimizer, schedule, 0)
    }

    /// Goes on after so many steps; the optimiser has its loaded state.
    ///
    /// # Errors
    /// As [`Scheduler::new`].
    ///
    /// ```
    /// use osteon::{Tensor, optim::{ExponentialLR, Optimizer, SGD, Scheduler}};
    /// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD { lr: 1.0, ..SGD::default() })?;
    /// let schedule = Scheduler::resume(&mut optimizer, ExponentialLR { gamma: 0.5 }, 3)?;
    /// assert_eq!((optimizer.groups_mut()[0].lr(), schedule.steps()), (0.125, 3));
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn resume<A: Algorithm>(
        optimizer: &mut Optimizer<A>,
        schedule: S,
        steps: u64,
    ) -> Result<Scheduler<S>> {
        let scheduler = Scheduler { schedule, steps };
        scheduler.apply(optimizer, steps)?;
        Ok(scheduler)
    }

    /// Sets the rates of the next step; to be called after the optimiser's.
    ///
    /// # Errors
    /// A schedule that has ended; a rate that is no number. All is as it was then.
    ///
    /// ```
    /// use osteon::{Tensor, optim::{LambdaLR, Optimizer, SGD, Scheduler}};
    /// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD { lr: 6.0, ..SGD::default() })?;
    /// let mut schedule = Scheduler::new(&mut optimizer, LambdaLR(|step| 1.0 / (step + 1) as f64))?;
    /// schedule.step(&mut optimizer)?;
    /// assert_eq!(optimizer.groups_mut()[0].lr(), 3.0);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn step<A: Algorithm>(&mut self, optimizer: &mut Optimizer<A>) -> Result<()> {
        let next = self.steps.saturating_add(1);
        self.apply(optimizer, next)?;
        self.steps = next;
        Ok(())
    }

    /// How many steps there were.
    ///
    /// ```
    /// # use osteon::{Tensor, optim::{ExponentialLR, Optimizer, SGD, Scheduler}};
    /// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD::default())?;
    /// assert_eq!(Scheduler::new(&mut optimizer, ExponentialLR { gamma: 0.9 })?.steps(), 0);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn apply<A: Algorithm>(&self, optimizer: &mut Optimizer<A>, step: u64) -> Result<()> {
        let named = |e: Error| e.op("Scheduler");
        self.schedule.check(step).map_err(named)?;
        let momentum = self.schedule.momentum(step);
        let base = |group: &mut Group<A>| group.initial_lr.unwrap_or_else(|| group.lr());
        let rate = |group| self.schedule.lr(base(group), step);
        let rates: Vec<f64> = optimizer.groups.iter_mut().map(rate).collect();
        if momentum.iter().chain(&rates).any(|x| x.is_nan()) {
            return refuse(format!("the rate or momentum of step {step} is no number"))
                .map_err(named);
        }
        for (group, rate) in optimizer.groups.iter_mut().zip(rates) {
            group.initial_lr = Some(base(group));
            group.set_lr(rate);
            let Some(momentum) = momentum else { continue };
            let name = if group.number("momentum").is_some() {
                "momentum"
            } else {
                "betas.0"
            };
            if let Some(own) = group.number(name) {
                *own = momentum;
            }
        }
        Ok(())
    }
}

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(Kind::Value, message))
}

fn positive(name: &str, n: u64) -> Result<()> {
    if n == 0 {
        refuse(format!("{name} must be above 0"))
    } else {
        Ok(())
    }
}

/// The rate times `gamma`, every so many steps.
///
/// ```
/// use osteon::optim::{Schedule, StepLR};
/// let schedule = StepLR { step_size: 10, gamma: 0.1 };
/// assert_eq!([schedule.lr(1.0, 9), schedule.lr(1.0, 10)], [1.0, 0.1]);
/// ```
#[derive(Clone, Debug)]
pub struct StepLR {
    /// Every so many steps.
    pub step_size: u64,
    /// The factor.
    pub gamma: f64,
}

impl Schedule for StepLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * self
            .gamma
            .powf((step as f64 / self.step_size as f64).floor())
    }

    fn check(&self, _: u64) -> Result<()> {
        positive("step_size", self.step_size)
    }
}

/// The rate times `gamma` at each of these steps.
///
/// ```
/// use osteon::optim::{MultiStepLR, Schedule};
/// let schedule = MultiStepLR { milestones: vec![3, 5], gamma: 0.5 };
/// assert_eq!([schedule.lr(1.0, 2), schedule.lr(1.0, 3), schedule.lr(1.0, 5)], [1.0, 0.5, 0.25]);
/// ```
#[derive(Clone, Debug)]
pub struct MultiStepLR {
    /// The steps.
    pub milestones: Vec<u64>,
    /// The factor.
    pub gamma: f64,
}

impl Schedule for MultiStepLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        let passed = self.milestones.iter().filter(|&&m| m <= step).count();
        base * self.gamma.powf(passed as f64)
    }
}

/// The rate times `gamma` at every step.
///
/// ```
/// use osteon::optim::{ExponentialLR, Schedule};
/// assert_eq!(ExponentialLR { gamma: 0.5 }.lr(1.0, 2), 0.25);
/// ```
#[derive(Clone, Debug)]
pub struct ExponentialLR {
    /// The factor.
    pub gamma: f64,
}

impl Schedule for ExponentialLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * self.gamma.powf(step as f64)
    }
}

/// Half a wave of a cosine from the rate down to `eta_min` in `t_max` steps, and up again.
///
/// ```
/// use osteon::optim::{CosineAnnealingLR, Schedule};
/// let schedule = CosineAnnealingLR { t_max: 10, eta_min: 0.0 };
/// assert_eq!([schedule.lr(1.0, 0), schedule.lr(1.0, 10)], [1.0, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct CosineAnnealingLR {
    /// Steps to the lowest rate.
    pub t_max: u64,
    /// The lowest rate.
    pub eta_min: f64,
}

impl Schedule for CosineAnnealingLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        let share = step as f64 / self.t_max as f64;
        self.eta_min + (base - self.eta_min) * (1.0 + (PI * share).cos()) / 2.0
    }

    fn check(&self, _: u64) -> Result<()> {
        positive("t_max", self.t_max)
    }
}

/// The rate times a factor that goes from one number to another in so many steps: warming up.
///
/// ```
/// use osteon::optim::{LinearLR, Schedule};
/// let warmup = LinearLR { start_factor: 0.5, end_factor: 1.0, total_iters: 4 };
/// assert_eq!([0, 2, 4, 9].map(|step| warmup.lr(1.0, step)), [0.5, 0.75, 1.0, 1.0]);
/// ```
#[derive(Clone, Debug)]
pub struct LinearLR {
    /// The factor at first.
    pub start_factor: f64,
    /// The factor at last.
    pub end_factor: f64,
    /// The steps between.
    pub total_iters: u64,
}

impl Default for LinearLR {
    /// PyTorch's: from a third to one in five steps.
    fn default() -> LinearLR {
        LinearLR {
            start_factor: 1.0 / 3.0,
            end_factor: 1.0,
            total_iters: 5,
        }
    }
}

impl Schedule for LinearLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        let share = step.min(self.total_iters) as f64 / self.total_iters as f64;
        base * (self.start_factor + (self.end_factor - self.start_factor) * share)
    }

    fn check(&self, _: u64) -> Result<()> {
        positive("total_iters", self.total_iters)
    }
}

/// The rate times a factor for so many steps.
///
/// ```
/// use osteon::optim::{ConstantLR, Schedule};
/// let schedule = ConstantLR { factor: 0.5, total_iters: 2 };
/// assert_eq!([schedule.lr(1.0, 1), schedule.lr(1.0, 2)], [0.5, 1.0]);
/// ```
#[derive(Clone, Debug)]
pub struct ConstantLR {
    /// The factor.
    pub factor: f64,
    /// For so many steps.
    pub total_iters: u64,
}

impl Schedule for ConstantLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        if step < self.total_iters {
            base * self.factor
        } else {
            base
        }
    }
}

/// The rate down to 0 in so many steps, along a power of what is left of them.
///
/// ```
/// use osteon::optim::{PolynomialLR, Schedule};
/// let schedule = PolynomialLR { total_iters: 4, power: 2.0 };
/// assert_eq!([0, 2, 4].map(|step| schedule.lr(1.0, step)), [1.0, 0.25, 0.0]);
/// ```
#[derive(Clone, Debug)]
pub struct PolynomialLR {
    /// Steps to 0.
    pub total_iters: u64,
    /// The power.
    pub power: f64,
}

impl Schedule for PolynomialLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        let share = step.min(self.total_iters) as f64 / self.total_iters as f64;
        base * (1.0 - share).powf(self.power)
    }

    fn check(&self, _: u64) -> Result<()> {
        positive("total_iters", self.total_iters)
    }
}

/// The rate times what a function says of the number of steps.
///
/// ```
/// use osteon::optim::{LambdaLR, Schedule};
/// assert_eq!(LambdaLR(|step| 0.5 * step as f64).lr(2.0, 3), 3.0);
/// ```
#[derive(Clone, Debug)]
pub struct LambdaLR<F: Fn(u64) -> f64>(pub F);

impl<F: Fn(u64) -> f64> Schedule for LambdaLR<F> {
    fn lr(&self, base: f64, step: u64) -> f64 {
        base * (self.0)(step)
    }
}

/// How [`OneCycleLR`] goes from one rate to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Anneal {
    /// Along half a wave of a cosine.
    #[default]
    Cosine,
    /// In a straight line.
    Linear,
}

impl Anneal {
    fn between(self, from: f64, to: f64, share: f64) -> f64 {
        match self {
            Anneal::Cosine => to + (from - to) / 2.0 * ((PI * share).cos() + 1.0),
            Anneal::Linear => (to - from) * share + from,
        }
    }
}

/// One cycle: from a low rate up to the highest, down to a much lower one, while the momentum goes the other way.
/// The optimiser's own rate does not matter.
///
/// ```
/// use osteon::optim::{OneCycleLR, Schedule};
/// let schedule = OneCycleLR { max_lr: 1.0, total_steps: 10, ..OneCycleLR::default() };
/// assert!((schedule.lr(0.0, 0) - 1.0 / 25.0).abs() < 1e-12);
/// assert_eq!(schedule.lr(0.0, 2), 1.0); // 30 % of the steps, counted from 0
/// assert!(schedule.lr(0.0, 9) < 1e-5);
/// ```
#[derive(Clone, Debug)]
pub struct OneCycleLR {
    /// The highest rate.
    pub max_lr: f64,
    /// The steps of the cycle.
    pub total_steps: u64,
    /// The share of them that goes up.
    pub pct_start: f64,
    /// The way from rate to rate.
    pub anneal: Anneal,
    /// The lowest and the highest momentum; `None` leaves it alone.
    pub momentum: Option<(f64, f64)>,
    /// The highest rate over the first.
    pub div_factor: f64,
    /// The first rate over the last.
    pub final_div_factor: f64,
    /// Whether it goes down to the first rate as long as it went up, and only then to the last.
    pub three_phase: bool,
}

impl Default for OneCycleLR {
    /// PyTorch's, with a highest rate of 0.1 in 1000 steps: 30 % of the steps up, cosines, momentum between 0.85 and 0.95,
    /// 25, 10⁴, two phases.
    fn default() -> OneCycleLR {
        OneCycleLR {
            max_lr: 0.1,
            total_steps: 1000,
            pct_start: 0.3,
            anneal: Anneal::Cosine,
            momentum: Some((0.85, 0.95)),
            div_factor: 25.0,
            final_div_factor: 1e4,
            three_phase: false,
        }
    }
}

impl OneCycleLR {
    /// The value at a step that is `low` at first, then `high`, and `last` in the end.
    fn at(&self, step: u64, low: f64, high: f64, last: f64) -> f64 {
        let top = self.pct_start * self.total_steps as f64 - 1.0;
        let end = self.total_steps as f64 - 1.0;
        let phases: &[(f64, f64, f64)] = if self.three_phase {
            let middle = 2.0 * self.pct_start * self.total_steps as f64 - 2.0;
            &[(top, low, high), (middle, high, low), (end, low, last)]
        } else {
            &[(top, low, high), (end, high, last)]
        };
        let (step, mut start) = (step as f64, 0.0);
        for (i, &(until, from, to)) in phases.iter().enumerate() {
            if step <= until || i == phases.len() - 1 {
                return self
                    .anneal
                    .between(from, to, (step - start) / (until - start));
            }
            start = until;
        }
        last
    }
}

impl Schedule for OneCycleLR {
    fn lr(&self, _: f64, step: u64) -> f64 {
        let low = self.max_lr / self.div_factor;
        self.at(step, low, self.max_lr, low / self.final_div_factor)
    }

    fn momentum(&self, step: u64) -> Option<f64> {
        let (low, high) = self.momentum?;
        Some(self.at(step, high, low, high))
    }

    fn check(&self, step: u64) -> Result<()> {
        positive("total_steps", self.total_steps)?;
        if !(0.0..=1.0).contains(&self.pct_start) {
            return refuse(format!(
                "pct_start must be from 0 to 1, got {}",
                self.pct_start
            ));
        }
        if step > self.total_steps {
            return refuse(format!("the cycle has {} steps only", self.total_steps));
        }
        Ok(())
    }
}

/// Schedules one after the other: each begins at its milestone, and counts from there.
///
/// ```
/// use osteon::optim::{ExponentialLR, LinearLR, Schedule, SequentialLR};
/// let warm = LinearLR { start_factor: 0.5, end_factor: 1.0, total_iters: 2 };
/// let schedule = SequentialLR::new(warm).then(2, ExponentialLR { gamma: 0.5 });
/// assert_eq!([0, 1, 2, 3, 4].map(|step| schedule.lr(1.0, step)), [0.5, 0.75, 1.0, 0.5, 0.25]);
/// ```
pub struct SequentialLR {
    parts: Vec<(u64, Box<dyn Schedule>)>,
}

impl std::fmt::Debug for SequentialLR {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let milestones: Vec<u64> = self.parts.iter().map(|(m, _)| *m).collect();
        f.debug_struct("SequentialLR")
            .field("milestones", &milestones)
            .finish()
    }
}

impl SequentialLR {
    /// Begins with this schedule.
    ///
    /// ```
    /// use osteon::optim::{ExponentialLR, Schedule, SequentialLR};
    /// assert_eq!(SequentialLR::new(ExponentialLR { gamma: 0.5 }).lr(1.0, 1), 0.5);
    /// ```
    pub fn new(first: impl Schedule + 'static) -> SequentialLR {
        SequentialLR {
            parts: vec![(0, Box::new(first))],
        }
    }

    /// Goes on with another one at a step, which should be later than those before.
    ///
    /// ```
    /// use osteon::optim::{ConstantLR, ExponentialLR, Schedule, SequentialLR};
    /// let schedule = SequentialLR::new(ConstantLR { factor: 1.0, total_iters: 0 }).then(5, ExponentialLR { gamma: 0.5 });
    /// assert_eq!(schedule.lr(1.0, 6), 0.5);
    /// ```
    #[must_use]
    pub fn then(mut self, milestone: u64, next: impl Schedule + 'static) -> SequentialLR {
        self.parts.push((milestone, Box::new(next)));
        self
    }

    fn at(&self, step: u64) -> (u64, &dyn Schedule) {
        let part = self
            .parts
            .iter()
            .rev()
            .find(|(milestone, _)| *milestone <= step);
        // The first one begins at 0, and there always is one.
        let (milestone, schedule) = part.unwrap_or(&self.parts[0]);
        (step - milestone, schedule.as_ref())
    }
}

impl Schedule for SequentialLR {
    fn lr(&self, base: f64, step: u64) -> f64 {
        let (step, schedule) = self.at(step);
        schedule.lr(base, step)
    }

    fn momentum(&self, step: u64) -> Option<f64> {
        let (step, schedule) = self.at(step);
        schedule.momentum(step)
    }

    fn check(&self, step: u64) -> Result<()> {
        if !self.parts.is_sorted_by(|a, b| a.0 < b.0) {
            return refuse("milestones must rise");
        }
        let (step, schedule) = self.at(step);
        schedule.check(step)
    }
}
