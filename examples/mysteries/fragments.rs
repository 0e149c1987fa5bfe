//! A pipeline works through a hundred images, keeps a little of each, and then needs one large buffer. Not half of
//! the memory that it may use is in use, and yet there is no room.
//!
//! `cargo run -p osteon --example fragments`

use osteon::{DType, Device, Result, Tensor, memory};

const MIB: usize = 1 << 20;

/// A filter bank's answer to an image: large, and only needed for a moment.
fn filtered(image: usize) -> Result<Tensor> {
    let bank = Tensor::full([6, 256, 256], image as f32, DType::F32, &Device::cpu())?;
    Ok(bank)
}

/// What is kept of it.
fn summary(bank: &Tensor) -> Result<Tensor> {
    bank.slice(0, 0..2)?.copy()
}

fn main() -> Result<()> {
    let device = Device::cpu();
    memory::set_limit(&device, Some(256 * MIB));

    let mut summaries = Vec::new();
    let mut banks = Vec::new();
    for image in 0..100 {
        let bank = filtered(image)?;
        summaries.push(summary(&bank)?);
        banks.push(bank);
    }
    banks.clear();

    match Tensor::zeros([128, MIB], DType::U8, &device) {
        Ok(panorama) => println!("a panorama of {} bytes", panorama.nbytes()),
        Err(error) => println!("{error}"),
    }
    Ok(())
}
