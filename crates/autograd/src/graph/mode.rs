//! Whether operations are recorded, thread by thread.

use std::cell::Cell;

/// What a thread records.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mode {
    grad: bool,
    inference: bool,
    bytes: bool,
}

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode { grad: true, inference: false, bytes: false }) };
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
        |m| Mode {
            grad: false,
            inference: true,
            ..m
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

/// Runs `f` so that what its operations save for their derivatives is checked by its bytes: a write that leaves these
/// as they were is no error in the backward pass. Without it the version of the whole storage is checked, as in PyTorch,
/// and a write to other elements of it is an error too.
///
/// Costs a reading of every tensor that is saved. For finding out what a version error is about.
///
/// ```
/// # use osteon_autograd::{Tensor, check_saved_bytes, no_grad};
/// let x = Tensor::new([1f32, 2.0, 3.0])?;
/// let part = x.slice(0, ..2)?;
/// let w = Tensor::new([5f32, 7.0])?;
/// w.requires_grad_(true)?;
/// let y = check_saved_bytes(|| w.mul(&part))?;
/// x.slice(0, 2..)?.zero_()?; // beside what was saved
/// y.sum()?.backward()?;
/// assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
pub fn check_saved_bytes<R>(f: impl FnOnce() -> R) -> R {
    with(|m| Mode { bytes: true, ..m }, f)
}

#[inline]
pub(crate) fn checks_bytes() -> bool {
    MODE.get().bytes
}
