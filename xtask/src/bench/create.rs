//! Group F: new tensors, made and dropped.

use osteon::{DType, Device, Result, Tensor};

use super::sink::{Sink, case};

pub fn run(sink: &mut Sink) -> Result<()> {
    let cpu = Device::cpu();
    for (numel, params) in [(256usize, "1KiB"), (262_144, "1MiB"), (1 << 24, "64MiB")] {
        let n = sink.size(numel);
        let at = |name| case(name, params, 4.0 * numel as f64, 0.0);
        sink.run(at("empty"), || {
            Tensor::empty([n], DType::F32, &cpu).map(drop)
        });
        sink.op(at("zeros"), &[], |_| Tensor::zeros([n], DType::F32, &cpu));
        sink.op(at("ones"), &[], |_| Tensor::ones([n], DType::F32, &cpu));
        let there = Tensor::ones([n], DType::F32, &cpu)?;
        sink.into(at("fill_ reuse"), &[], &there, |_, out| out.fill_(1.0));
    }
    Ok(())
}
