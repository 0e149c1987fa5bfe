//! Group G: one training step of a small network.

use osteon::nn::{CrossEntropyLoss, Layer, Linear, Module, ReLU};
use osteon::optim::{Optimizer, SGD};
use osteon::{DType, Result, Tensor, nn};

use super::sink::{Sink, case, uniform};

nn::module! {
    struct Mlp() {
        first: Linear = Linear::new(784, 512)?,
        second: Linear = Linear::new(512, 512)?,
        last: Linear = Linear::new(512, 10)?,
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = ReLU.forward(&self.first.forward(x)?)?;
        let x = ReLU.forward(&self.second.forward(&x)?)?;
        self.last.forward(&x)
    }
}

pub fn run(sink: &mut Sink) -> Result<()> {
    const BATCH: usize = 128;
    let model = Mlp::new()?;
    let mut optimizer = Optimizer::new(
        model.parameters(),
        SGD {
            lr: 0.01,
            ..SGD::default()
        },
    )?;
    let x = uniform(&[BATCH, 784], DType::F32)?;
    let y = Tensor::arange(0, BATCH as i64, 1)?.remainder(10)?;
    let flops = 6.0 * BATCH as f64 * (784.0 * 512.0 + 512.0 * 512.0 + 5120.0);
    sink.run(case("mlp step", "784-512-512-10 b128", 0.0, flops), || {
        optimizer.zero_grad()?;
        CrossEntropyLoss::default()
            .forward(&model.forward(&x)?, &y)?
            .backward()?;
        optimizer.step()
    });
    Ok(())
}
