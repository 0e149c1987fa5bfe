//! Group I: many tiny operations one after another.

use osteon::{DType, Result, Tensor};

use super::sink::{Sink, case, uniform};

const LINKS: usize = 1000;

fn chain(x: &Tensor, summand: &Tensor) -> Result<Tensor> {
    (0..LINKS).try_fold(x.clone(), |x, _| x.add(summand))
}

pub fn run(sink: &mut Sink) -> Result<()> {
    let (leaf, summand, plain) = (
        uniform(&[16], DType::F32)?,
        uniform(&[16], DType::F32)?,
        uniform(&[16], DType::F32)?,
    );
    leaf.requires_grad_(true)?;
    let at = |name| case(name, "1000x[16]", 0.0, LINKS as f64);
    sink.run(at("chain add fwd (grad)"), || {
        chain(&leaf, &summand).map(drop)
    });
    sink.run(at("chain add fwd+bwd"), || {
        leaf.set_grad(None)?;
        chain(&leaf, &summand)?.sum()?.backward()
    });
    sink.run(at("chain add fwd (nograd)"), || {
        chain(&plain, &summand).map(drop)
    });
    Ok(())
}
