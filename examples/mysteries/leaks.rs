//! A model is evaluated on ten batches. Its memory grows with each of them.
//!
//! `cargo run -p osteon --example leaks`

use osteon::{DType, Device, Result, Tensor, functional, memory};

/// Two layers, a batch at a time.
struct Model {
    hidden: Tensor,
    output: Tensor,
}

impl Model {
    fn new() -> Result<Model> {
        let layer = |rows: usize, columns: usize, name: &str| -> Result<Tensor> {
            let weight = Tensor::randn([rows, columns], DType::F32, &Device::cpu())?;
            weight.mul_(0.05)?;
            weight.requires_grad_(true)?;
            Ok(weight.named(name))
        };
        Ok(Model {
            hidden: layer(128, 512, "hidden.weight")?,
            output: layer(512, 10, "output.weight")?,
        })
    }

    fn forward(&self, batch: &Tensor) -> Result<Tensor> {
        let hidden = batch.mm(&self.hidden)?.tanh()?;
        hidden.mm(&self.output)
    }
}

fn main() -> Result<()> {
    osteon::manual_seed(0);
    let device = Device::cpu();
    let model = Model::new()?;
    let mut total = Tensor::new(0f32)?;
    let mut worst = f32::NEG_INFINITY;
    let mut growth = None;

    for _ in 0..10 {
        let batch = Tensor::randn([128, 128], DType::F32, &device)?;
        let labels = Tensor::randint(0, 10, [128], DType::I64, &device)?;
        let scores = model.forward(&batch)?;
        let loss = functional::cross_entropy(&scores, &labels, &Default::default())?;
        worst = worst.max(loss.item()?);
        total = total.add(&loss)?;
        growth = Some(memory::step());
    }

    println!(
        "mean loss {:.3}, worst {worst:.3}\n",
        total.item::<f32>()? / 10.0
    );
    if let Some(growth) = growth {
        print!("{growth}");
    }
    Ok(())
}
