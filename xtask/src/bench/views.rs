//! Group A: the cost of one view, made and dropped, the registry on.

use osteon::{DType, Result};

use super::sink::{Sink, case, uniform};

pub fn run(sink: &mut Sink) -> Result<()> {
    let x = uniform(&[8, 16, 32, 64], DType::F32)?;
    let y = uniform(&[8, 1, 32, 64], DType::F32)?;
    // The parameters are those of the peers' script.
    let at = |name| case(name, "py", 0.0, 0.0);
    sink.op(at("narrow"), &[&x], |t| t[0].narrow(2, 3, 8));
    sink.op(at("transpose"), &[&x], |t| t[0].transpose(1, 2));
    sink.op(at("permute"), &[&x], |t| t[0].permute([0, 2, 3, 1]));
    sink.op(at("reshape"), &[&x], |t| t[0].view([128, 2048]));
    sink.op(at("unsqueeze+squeeze"), &[&x], |t| {
        t[0].unsqueeze(0)?.squeeze_dims([0])
    });
    sink.op(at("expand"), &[&y], |t| t[0].expand([8, 16, 32, 64]));
    sink.op(at("select"), &[&x], |t| t[0].select(1, 5));
    sink.op(at("slice x[:,:,3:11]"), &[&x], |t| t[0].slice(2, 3..11));
    Ok(())
}
