//! Whether operations are recorded, thread by thread.

use std::cell::Cell;

/// What a thread records.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mode {
    grad: bool,
    inference: bool,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false }) };
}

/// Puts the thread's mode back, also when the code inside panics.
struct Restore(Mode);

impl Drop for Restore {
    fn drop(&mut self) {
        MODE.set(self.0);
    }
}

fn with<R>(change: impl FnOnce(Mode) -> Mode, f: impl FnOnce() -> R) -> R {
    let _restore = Restore(MODE.get());
    MODE.set(change(MODE.get()));
    f()
}

/// Runs `f` without recording what it does, on this thread: its results require no gradients and keep nothing.
///
/// ```
/// # use osteon_autograd::{Tensor, no_grad};
/// let w = Tensor::new([1f32, 2.0])?;
/// w.requires_grad_(true)?;
/// let y = no_grad(|| w.mul(2))?;
/// assert!(!y.requires_grad());
/// no_grad(|| w.sub_(&Tensor::new([0.5f32, 0.5])?))?; // a leaf may be written here
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn no_grad<R>(f: impl FnOnce() -> R) -> R {
    with(|m| Mode { grad: false, ..m }, f)
}

/// Runs `f` recording what it does, also inside [`no_grad`].
///
/// ```
/// # use osteon_autograd::{Tensor, enable_grad, no_grad};
/// let w = Tensor::new([1f32])?;
/// w.requires_grad_(true)?;
/// assert!(no_grad(|| enable_grad(|| w.mul(2)))?.requires_grad());
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn enable_grad<R>(f: impl FnOnce() -> R) -> R {
    with(|m| Mode { grad: true, ..m }, f)
}

/// Runs `f` without recording, and makes tensors that can never be recorded: cheaper than [`no_grad`] by what views
/// and writes in place would note for later.
///
/// ```
/// # use osteon_autograd::{Tensor, inference_mode};
/// let x = inference_mode(|| Tensor::new([1f32]))?;
/// assert!(x.is_inference() && x.requires_grad_(true).is_err());
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn inference_mode<R>(f: impl FnOnce() -> R) -> R {
    with(
        |_| Mode {
            grad: false,
            inference: true,
        },
        f,
    )
}

/// Whether this thread records: not inside [`no_grad`] or [`inference_mode`].
///
/// ```
/// # use osteon_autograd::{is_grad_enabled, no_grad};
/// assert!(is_grad_enabled() && !no_grad(is_grad_enabled));
/// ```
#[inline]
pub fn is_grad_enabled() -> bool {
    let mode = MODE.get();
    mode.grad && !mode.inference
}

/// Whether this thread is inside [`inference_mode`].
///
/// ```
/// # use osteon_autograd::{inference_mode, is_inference_mode_enabled};
/// assert!(!is_inference_mode_enabled() && inference_mode(is_inference_mode_enabled));
/// ```
#[inline]
pub fn is_inference_mode_enabled() -> bool {
    MODE.get().inference
}
