//! Lower rates where nothing gets better.

use super::optimizer::{Algorithm, Optimizer};

/// Which values of a metric are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// Low ones, as of a loss.
    #[default]
    Min,
    /// High ones, as of an accuracy.
    Max,
}

/// The rate times a factor where a metric did not get better for some time: PyTorch's `ReduceLROnPlateau`.
///
/// ```
/// use osteon::{Tensor, optim::{Optimizer, ReduceLROnPlateau, SGD}};
/// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD { lr: 1.0, ..SGD::default() })?;
/// let mut schedule = ReduceLROnPlateau { patience: 1, ..ReduceLROnPlateau::default() };
/// for loss in [5.0, 4.0, 4.0, 4.0] {
///     schedule.step(&mut optimizer, loss);
/// }
/// assert_eq!(optimizer.groups_mut()[0].lr(), 0.1);
/// # Ok::<(), osteon::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReduceLROnPlateau {
    /// Which values are good.
    pub metric: Metric,
    /// The factor.
    pub factor: f64,
    /// How many steps without anything better are borne.
    pub patience: u64,
    /// By how much better counts: a share of the best value, or a difference where `absolute` says so.
    pub threshold: f64,
    /// Whether the threshold is a difference.
    pub absolute: bool,
    /// Steps after a change in which nothing counts.
    pub cooldown: u64,
    /// The lowest rate.
    pub min_lr: f64,
    /// A change of the rate by no more than this is not made.
    pub eps: f64,
    /// What it has seen.
    pub seen: Seen,
}

/// What [`ReduceLROnPlateau`] has seen so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The best value.
    pub best: Option<f64>,
    /// Steps since then.
    pub bad: u64,
    /// Steps in which nothing counts.
    pub cooling: u64,
}

impl Default for ReduceLROnPlateau {
    /// PyTorch's: a tenth after more than 10 steps in which a loss did not fall by 0.01 %.
    fn default() -> ReduceLROnPlateau {
        ReduceLROnPlateau {
            metric: Metric::Min,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            absolute: false,
            cooldown: 0,
            min_lr: 0.0,
            eps: 1e-8,
            seen: Seen::default(),
        }
    }
}

impl ReduceLROnPlateau {
    fn is_better(&self, value: f64) -> bool {
        let Some(best) = self.seen.best else {
            return !value.is_nan();
        };
        let margin = if self.absolute {
            self.threshold
        } else {
            best * self.threshold
        };
        match self.metric {
            Metric::Min => value < best - margin,
            Metric::Max => value > best + margin,
        }
    }

    /// Takes the metric of another step, and lowers the optimiser's rates if it is time.
    ///
    /// ```
    /// use osteon::{Tensor, optim::{Metric, Optimizer, ReduceLROnPlateau, SGD}};
    /// let mut optimizer = Optimizer::new([Tensor::new([1f32])?], SGD { lr: 1.0, ..SGD::default() })?;
    /// let mut schedule = ReduceLROnPlateau { metric: Metric::Max, patience: 0, ..Default::default() };
    /// schedule.step(&mut optimizer, 0.5);
    /// schedule.step(&mut optimizer, 0.4);
    /// assert_eq!(optimizer.groups_mut()[0].lr(), 0.1);
    /// # Ok::<(), osteon::Error>(())
    /// ```
    pub fn step<A: Algorithm>(&mut self, optimizer: &mut Optimizer<A>, metric: f64) {
        if self.is_better(metric) {
            self.seen.best = Some(metric);
            self.seen.bad = 0;
        } else {
            self.seen.bad += 1;
        }
        if self.seen.cooling > 0 {
            self.seen.cooling -= 1;
            self.seen.bad = 0;
        }
        if self.seen.bad <= self.patience {
            return;
        }
        for group in optimizer.groups_mut() {
            let old = group.lr();
            let new = (old * self.factor).max(self.min_lr);
            if old - new > self.eps {
                group.set_lr(new);
            }
        }
        self.seen.cooling = self.cooldown;
        self.seen.bad = 0;
    }
}
