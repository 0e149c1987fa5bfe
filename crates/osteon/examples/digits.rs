//! Trains a perceptron to read handwritten digits: `cargo run --release -p osteon --example digits`

mod common;

use common::{Picture, Progress};
use osteon::nn::functional::{Classes, cross_entropy};
use osteon::nn::{self, Layer, Linear, Module};
use osteon::optim::{AdamW, CosineAnnealingLR, Optimizer, Scheduler};
use osteon::{Device, Result, Tensor, no_grad};
use std::path::Path;

nn::module! {
    /// A perceptron with one hidden layer.
    pub struct Mlp(inputs: usize, width: usize, classes: usize) {
        hidden: Linear = Linear::new(inputs, width)?,
        output: Linear = Linear::new(width, classes)?,
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.output.forward(&self.hidden.forward(x)?.relu()?)
    }
}

/// 1,797 images of 64 pixels from 0 to 1, and the digits that they show.
pub fn digits() -> Result<(Tensor, Tensor)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/digits.npz");
    let data = osteon::load(file)?;
    let images = data["images"].float()?.div(16)?.flatten(1, -1)?;
    Ok((images, data["labels"].long()?))
}

/// The share of images that the model reads right.
fn accuracy(model: &Mlp, images: &Tensor, labels: &Tensor) -> Result<f64> {
    let read = no_grad(|| model.forward(images))?.argmax_dim(-1, false)?;
    read.eq(labels)?.float()?.mean()?.item()
}

#[allow(dead_code)] // the tests train the model by themselves
fn main() -> Result<()> {
    const EPOCHS: usize = 40;
    const BATCH: usize = 64;
    osteon::manual_seed(0);
    let (images, labels) = digits()?;
    let order = Tensor::randperm(images.size(0)?, &Device::cpu())?;
    let (held_out, training) = (order.slice(0, ..360)?, order.slice(0, 360..)?);
    let pick = |rows: &Tensor| -> Result<(Tensor, Tensor)> {
        Ok((images.index_select(0, rows)?, labels.index_select(0, rows)?))
    };
    let batches = training.numel().div_ceil(BATCH);

    let model = Mlp::new(64, 128, 10)?;
    print!("{}", model.summary());
    let mut optimizer = Optimizer::new(
        model.parameters(),
        AdamW {
            lr: 3e-3,
            ..AdamW::default()
        },
    )?;
    let steps = (EPOCHS * batches) as u64;
    let mut schedule = Scheduler::new(
        &mut optimizer,
        CosineAnnealingLR {
            t_max: steps,
            eta_min: 0.0,
        },
    )?;
    let how = Classes {
        label_smoothing: 0.1,
        ..Classes::default()
    };
    let progress = Progress::new(steps);
    let mut picture = None;
    for _ in 0..EPOCHS {
        let shuffled =
            training.index_select(0, &Tensor::randperm(training.numel(), &Device::cpu())?)?;
        for rows in shuffled.split(BATCH as isize, 0)? {
            let (x, y) = pick(&rows)?;
            let loss = cross_entropy(&model.forward(&x)?, &y, &how)?;
            picture.get_or_insert_with(Picture::take);
            optimizer.zero_grad()?;
            loss.backward()?;
            optimizer.step()?;
            schedule.step(&mut optimizer)?;
            progress.step(loss.item()?);
        }
    }
    progress.finish();

    let (x, y) = pick(&held_out)?;
    println!(
        "read right of {} held-out digits: {:.1} %",
        y.numel(),
        100.0 * accuracy(&model, &x, &y)?
    );
    picture.map_or(Ok(()), |picture| picture.report("digits-memory.html"))
}
