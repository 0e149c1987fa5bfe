//! Random tensors: one stream of numbers for a seed, of which each draw takes the next part.

use crate::View;
use crate::backend::backend;
use crate::create::reserved;
use crate::target::{Reads, with_out};
use crate::write;
use osteon_kernels::{Distribution, Random, shuffled};
use osteon_memory::here;
use osteon_spec::{DType, Device, Error, Kind, Layout, Result, Scalar};
use std::cell::Cell;
use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::{Mutex, PoisonError};

/// A place in the stream of random numbers; see [`get_rng_state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RngState {
    seed: u64,
    /// How many numbers have been drawn since the seed was set.
    drawn: u64,
}

static STREAM: Mutex<RngState> = Mutex::new(RngState { seed: 0, drawn: 0 });

thread_local! {
    /// A stream that this thread alone draws from.
    static OWN: Cell<Option<RngState>> = const { Cell::new(None) };
}

/// Runs `f` so that this thread draws numbers from this place on; the stream that all threads share stays where it is.
///
/// ```
/// # use osteon_spec::Device;
/// use osteon_tensor::{View, get_rng_state, with_rng_state};
/// let state = get_rng_state();
/// let first = View::randperm(100, &Device::cpu())?;
/// let again = with_rng_state(state, || View::randperm(100, &Device::cpu()))?;
/// assert!(first.equal(&again)?);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn with_rng_state<R>(state: RngState, f: impl FnOnce() -> R) -> R {
    /// Goes back, also when the code inside panics.
    struct Restore(Option<RngState>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OWN.set(self.0);
        }
    }
    let _restore = Restore(OWN.replace(Some(state)));
    f()
}

/// Looks at the stream that this thread draws from, or changes it.
fn stream<R>(f: impl FnOnce(&mut RngState) -> R) -> R {
    match OWN.get() {
        Some(mut own) => {
            let result = f(&mut own);
            OWN.set(Some(own));
            result
        }
        None => f(&mut STREAM.lock().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Begins a stream of random numbers anew: after the same seed the same draws give the same numbers, whatever the
/// number of threads. They are other numbers than PyTorch's.
pub fn manual_seed(seed: u64) {
    set_rng_state(RngState { seed, drawn: 0 });
}

/// Where the stream of random numbers is, to draw the same ones again: PyTorch's `get_rng_state`.
///
/// ```
/// # use osteon_spec::Device;
/// use osteon_tensor::{View, get_rng_state, set_rng_state};
/// let state = get_rng_state();
/// let first = View::randperm(100, &Device::cpu())?;
/// set_rng_state(state);
/// assert!(first.equal(&View::randperm(100, &Device::cpu())?)?);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn get_rng_state() -> RngState {
    stream(|s| *s)
}

/// Goes to a place of the stream of random numbers; see [`get_rng_state`].
pub fn set_rng_state(state: RngState) {
    stream(|s| *s = state);
}

/// The next draw of so many numbers.
fn draw(n: usize, distribution: Distribution) -> Random {
    stream(|stream| {
        let RngState { seed, drawn: start } = *stream;
        stream.drawn = start.wrapping_add(n as u64);
        Random {
            seed,
            start,
            distribution,
        }
    })
}

impl View {
    /// A new tensor of random numbers.
    ///
    /// # Errors
    /// Bounds or a dtype that the distribution does not have; out of memory.
    #[track_caller]
    pub fn random(
        shape: &[usize],
        distribution: Distribution,
        dtype: DType,
        device: &Device,
        op: &'static str,
    ) -> Result<View> {
        let layout = Layout::contiguous(shape).map_err(|e| e.op(op))?;
        View::random_laid_out(layout, distribution, dtype, device, op)
    }

    /// [`View::random`] with this layout.
    ///
    /// # Errors
    /// As [`View::random`].
    #[track_caller]
    pub fn random_laid_out(
        layout: Layout,
        distribution: Distribution,
        dtype: DType,
        device: &Device,
        op: &'static str,
    ) -> Result<View> {
        check(distribution, dtype).map_err(|e| e.op(op))?;
        let view = View::alloc(layout, dtype, device, op)?;
        view.drawn(distribution, op)?;
        Ok(view)
    }

    /// Random numbers into every element.
    ///
    /// # Errors
    /// As [`View::random`]; a tensor that overlaps itself; a guard in the way.
    #[track_caller]
    pub fn random_(&self, distribution: Distribution, op: &'static str) -> Result<()> {
        check(distribution, self.dtype()).map_err(|e| e.op(op))?;
        write::check(self, &[], op)?;
        self.drawn(distribution, op)?;
        self.storage().record_write(op, here());
        Ok(())
    }
}

impl View {
    /// Writes random numbers, of complex ones both parts: normal ones share the variance.
    fn drawn(&self, distribution: Distribution, op: &'static str) -> Result<()> {
        if !self.dtype().is_complex() || matches!(distribution, Distribution::Integers(..)) {
            let how = draw(self.numel(), distribution);
            return backend(self.device())
                .random(self, &how)
                .map_err(|e| e.op(op));
        }
        let each = match distribution {
            Distribution::Normal(mean, std) => Distribution::Normal(mean, std * FRAC_1_SQRT_2),
            other => other,
        };
        let parts = self.view_as_real()?;
        let how = draw(parts.numel(), each);
        backend(self.device())
            .random(&parts, &how)
            .map_err(|e| e.op(op))
    }
}

with_out! { to;
    /// The numbers below `n` in random order, as int64, or in whatever a given `out` holds.
    ///
    /// # Errors
    /// More than its dtype can count; out of memory.
    randperm randperm_out(n: usize, device: &Device) -> View {
        let dtype = to.dtype().unwrap_or(DType::I64);
        if dtype == DType::Bool || dtype.is_complex() {
            let message = format!("{dtype} does not count; give another out");
            return Err(Error::new(Kind::DType, message).op(to.op));
        }
        if n > 0 {
            Scalar::Int(n as i64 - 1).check_fits(dtype).map_err(|e| e.op(to.op))?;
        }
        let random = draw(n, Distribution::Uniform(0.0, 1.0));
        to.write(Layout::contiguous(&[n])?, (dtype, *device), Reads::Each(&[]), |out| {
            if dtype == DType::I64 && out.layout().is_contiguous() {
                return backend(*device).shuffled(out, &random);
            }
            let mut order: Vec<i64> = reserved(n, to.op)?;
            order.resize(n, 0);
            shuffled(&mut order, &random);
            backend(*device).generate(out, &|i| Scalar::Int(order[i]))
        })
    }
}

/// Checks that a dtype holds the numbers of a distribution, and that the distribution exists.
fn check(distribution: Distribution, dtype: DType) -> Result<()> {
    let value = |message: String| Err(Error::new(Kind::Value, message));
    match distribution {
        Distribution::Uniform(from, to) if !(from <= to && (to - from).is_finite()) => {
            value(format!("no uniform number from {from} to {to}"))
        }
        Distribution::Normal(mean, std) if std.is_nan() || std < 0.0 || mean.is_nan() => value(
            format!("no normal numbers of mean {mean} and standard deviation {std}"),
        ),
        Distribution::Bernoulli(p) if !(0.0..=1.0).contains(&p) => {
            value(format!("the probability must be from 0 to 1, got {p}"))
        }
        Distribution::Bernoulli(_) if dtype.is_complex() => {
            let message = "not defined for complex numbers; draw floats and cast with to()";
            Err(Error::new(Kind::DType, message))
        }
        Distribution::Integers(_, 0) => value("the range of integers is empty".to_owned()),
        Distribution::Uniform(..) | Distribution::Normal(..)
            if !dtype.is_float() && !dtype.is_complex() =>
        {
            Err(Error::new(
                Kind::DType,
                format!("not defined for {dtype}; draw floats and cast with to()"),
            ))
        }
        _ => Ok(()),
    }
}
