//! The memory that derivatives of wide operations take: the gradient, and no more than is said here.

use osteon::autograd::{Grad, grad};
use osteon::functional::{self, Classes};
use osteon::{DType, Device, Result, Tensor, memory};

const WIDE: u64 = 1 << 20;
/// Statistics, gradients of weights and other small things.
const SMALL: u64 = 64 << 10;

/// A matrix of a MiB that requires a gradient.
fn matrix() -> Result<Tensor> {
    let x = Tensor::linspace(-1.0, 1.0, 256 * 1024, DType::F32, &Device::cpu())?;
    let x = x.view([256, 1024])?.detach()?;
    x.requires_grad_(true)?;
    Ok(x)
}

/// What an operation keeps and what its derivative takes at most beside that, in bytes.
fn cost(x: &Tensor, op: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<(u64, u64)> {
    let device = Device::cpu();
    let before = memory::allocated(&device);
    let y = op(x)?;
    let gradients = y.ones_like(None)?;
    let kept = memory::allocated(&device) - before;
    memory::reset_peak(&device);
    let mark = memory::allocated(&device);
    let how = Grad {
        gradients: Some(&[&gradients]),
        ..Grad::default()
    };
    grad(&[&y], &[x], &how)?;
    Ok((kept, memory::max_allocated(&device) - mark))
}

// One test: the statistics are those of the whole process.
#[test]
fn gradients_are_made_where_they_will_lie() -> Result<()> {
    let x = matrix()?;
    let (kept, taken) = cost(&x, |x| x.softmax(1))?;
    assert!(
        kept < 2 * WIDE + SMALL && taken < WIDE + SMALL,
        "softmax: {kept}, {taken}"
    );
    let (kept, taken) = cost(&x, |x| x.log_softmax(0))?;
    assert!(
        kept < 2 * WIDE + SMALL && taken < WIDE + SMALL,
        "log_softmax: {kept}, {taken}"
    );
    // The logarithms are kept, beside one cost for each row.
    let target = Tensor::zeros([256], DType::I64, &Device::cpu())?;
    let (kept, taken) = cost(&x, |x| {
        functional::cross_entropy(x, &target, &Classes::default())
    })?;
    assert!(
        kept < WIDE + SMALL && taken < WIDE + SMALL,
        "cross_entropy: {kept}, {taken}"
    );
    // The products that gradients of weights are sums of take as much again.
    let weight = Tensor::ones([1024], DType::F32, &Device::cpu())?;
    weight.requires_grad_(true)?;
    let (kept, taken) = cost(&x, |x| x.layer_norm([1024], Some(&weight), None, 1e-5))?;
    assert!(
        kept < 2 * WIDE + SMALL && taken < 2 * WIDE + SMALL,
        "layer_norm: {kept}, {taken}"
    );
    let (kept, taken) = cost(&x, |x| x.rms_norm([1024], Some(&weight), None))?;
    assert!(
        kept < 2 * WIDE + SMALL && taken < 2 * WIDE + SMALL,
        "rms_norm: {kept}, {taken}"
    );
    Ok(())
}
