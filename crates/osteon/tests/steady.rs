//! Training takes no more memory from step to step. The only test of this binary, since it looks at the whole process.

use osteon::nn::{CrossEntropyLoss, Layer, Linear, Module, ReLU, Sequential};
use osteon::optim::{Adam, Optimizer, clip_grad_norm_};
use osteon::{DType, Device, Result, Tensor, memory};

#[test]
fn steps_reuse_what_earlier_ones_used() -> Result<()> {
    let cpu = Device::cpu();
    let model = Sequential::new()
        .then(Linear::new(128, 256)?)
        .then(ReLU)
        .then(Linear::new(256, 10)?);
    let parameters = model.parameters();
    let mut optimizer = Optimizer::new(&parameters, Adam::default())?;
    let x = Tensor::randn([64, 128], DType::F32, &cpu)?;
    let y = Tensor::randint(0, 10, [64], DType::I64, &cpu)?;
    let mut after = Vec::new();
    for _ in 0..8 {
        let loss = CrossEntropyLoss::default().forward(&model.forward(&x)?, &y)?;
        optimizer.zero_grad()?;
        loss.backward()?;
        clip_grad_norm_(&parameters, 1.0, 2.0)?;
        optimizer.step()?;
        drop(loss);
        // Live and reserved bytes, and how often the pool asked the system for more.
        let asked = memory::stats(&cpu).segment.all.allocated;
        after.push((memory::allocated(&cpu), memory::reserved(&cpu), asked));
    }
    assert!(after[2..].iter().all(|a| *a == after[2]), "{after:?}");
    // Parameters, gradients, two states each; input and target; the optimiser's scratch.
    let parameter = (model.num_parameters() * 4) as u64;
    let expected = 4 * parameter + 64 * 128 * 4 + 64 * 8 + (32 << 10) * 4;
    assert!(
        after[7].0 <= expected + (16 << 10),
        "{} of {expected}",
        after[7].0
    );
    Ok(())
}
