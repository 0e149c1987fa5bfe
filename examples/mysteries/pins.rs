//! A monitor keeps a few samples of each batch for a chart. They are some kilobytes; the process holds a hundred megabytes.
//!
//! `cargo run -p osteon --example pins`

use osteon::{DType, Device, Result, Tensor, memory, s};

/// A batch as a loader makes it.
fn load(number: usize) -> Result<Tensor> {
    Tensor::full([1024, 4096], number as f32, DType::F32, &Device::cpu())
}

/// The loss of each sample, as far as this story needs one.
fn losses(batch: &Tensor) -> Result<Tensor> {
    batch.mean_dims([1], false)
}

fn main() -> Result<()> {
    let mut chart = Vec::new();
    let mut history = Vec::new();

    for number in 0..6 {
        let batch = load(number)?;
        let losses = losses(&batch)?;
        history.push(losses.mean()?.item::<f32>()?);
        chart.push(batch.i(s![..4, ..32])?);
    }

    println!("{} batches, last loss {:.1}\n", history.len(), history[5]);
    print!("{}", memory::pins()?);
    Ok(())
}
