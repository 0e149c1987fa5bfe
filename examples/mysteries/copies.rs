//! An attention block mixes four heads, over and over. Nobody asked for a copy, and yet most of what it does is copying.
//!
//! `cargo run -p osteon --example copies`

use osteon::{DType, Device, Result, Tensor, copies};

const TOKENS: usize = 128;
const HEADS: isize = 4;
const WIDTH: isize = 64;

/// Weights the values of each head, and puts the heads side by side again.
fn mix(weights: &Tensor, values: &Tensor) -> Result<Tensor> {
    let heads = values.unflatten(1, [HEADS, WIDTH])?.transpose(0, 1)?;
    let mixed = weights.matmul(&heads)?;
    mixed.transpose(0, 1)?.flatten(1, 2)
}

fn main() -> Result<()> {
    osteon::manual_seed(0);
    let device = Device::cpu();
    let weights = Tensor::rand([4, TOKENS, TOKENS], DType::F32, &device)?.softmax(-1)?;
    let mut values = Tensor::randn([TOKENS, 4 * 64], DType::F32, &device)?;

    for _ in 0..5 {
        values = mix(&weights, &values)?;
    }

    println!("{:.4}\n", values.mean()?.item::<f32>()?);
    print!("{}", copies::summary());
    Ok(())
}
