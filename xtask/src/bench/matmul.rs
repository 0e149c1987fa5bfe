//! Group E: matrix products.

use osteon::{DType, Result, Tensor};

use super::sink::{Case, Sink, case, uniform};

fn product(sink: &mut Sink, at: Case<'_>, a: &Tensor, b: &Tensor) {
    sink.op(at, &[a, b], |t| t[0].matmul(t[1]));
}

fn floats(shape: &[usize]) -> Result<Tensor> {
    uniform(shape, DType::F32)
}

pub fn run(sink: &mut Sink) -> Result<()> {
    for side in [64usize, 256, 512, 1024, 2048] {
        let n = sink.size(side);
        let (x, y) = (floats(&[n, n])?, floats(&[n, n])?);
        let params = side.to_string();
        let at = |name| case(name, &params, 0.0, 2.0 * (side as f64).powi(3));
        product(sink, at("matmul"), &x, &y);
        if side == 512 || side == 1024 {
            product(sink, at("matmul A^T"), &x.t()?, &y);
            product(sink, at("matmul B^T"), &x, &y.t()?);
            product(sink, at("matmul A^T B^T"), &x.t()?, &y.t()?);
        }
    }
    let n = sink.size(4096);
    let (x, y) = (floats(&[n, 64])?, floats(&[64, n])?);
    product(
        sink,
        case(
            "tall-skinny",
            "4096x64x4096",
            0.0,
            2.0 * 4096.0 * 64.0 * 4096.0,
        ),
        &x,
        &y,
    );
    let (v, m) = (floats(&[1, n])?, floats(&[n, n])?);
    let (bytes, flops) = (64.0 * 1048576.0, 2.0 * (1u64 << 24) as f64);
    product(sink, case("vec-mat", "1x4096x4096", bytes, flops), &v, &m);
    product(
        sink,
        case("vec-mat^T", "1x4096x4096", bytes, flops),
        &v,
        &m.t()?,
    );
    let flops = 2.0 * 96.0 * 128.0 * 64.0 * 128.0;
    let (x, y) = (floats(&[96, 128, 64])?, floats(&[96, 64, 128])?);
    product(sink, case("batched", "96x128x64x128", 0.0, flops), &x, &y);
    let n = sink.size(1024);
    let (w, y) = (floats(&[n, 2 * n])?.slice_step(1, .., 2)?, floats(&[n, n])?);
    product(
        sink,
        case("A[:,::2]", "1024", 0.0, 2.0 * 1024f64.powi(3)),
        &w,
        &y,
    );
    let q = floats(&[8, 128, 12, 64])?.permute([0, 2, 1, 3])?;
    let k = floats(&[8, 128, 12, 64])?.permute([0, 2, 3, 1])?;
    product(
        sink,
        case("batched strided qk^T", "[8,12,128,64] views", 0.0, flops),
        &q,
        &k,
    );
    for (dtype, side, params) in [
        (DType::F64, 1024usize, "f64 1024"),
        (DType::BF16, 1024, "bf16 1024"),
        (DType::F16, 1024, "f16 1024"),
        (DType::F64, 2048, "f64 2048"),
        (DType::BF16, 2048, "bf16 2048"),
    ] {
        let n = sink.size(side);
        let (x, y) = (uniform(&[n, n], dtype)?, uniform(&[n, n], dtype)?);
        product(
            sink,
            case("matmul", params, 0.0, 2.0 * (side as f64).powi(3)),
            &x,
            &y,
        );
    }
    Ok(())
}
