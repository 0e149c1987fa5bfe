//! Group C: element by element.

use osteon::{DType, Result};

use super::sink::{Sink, case, uniform};

pub fn run(sink: &mut Sink) -> Result<()> {
    for (numel, params) in [(1usize << 24, "16M"), (1 << 20, "1M"), (1 << 14, "16K")] {
        let side = sink.size(1 << (numel.ilog2() / 2));
        let tensor = |rows, columns| uniform(&[rows, columns], DType::F32);
        let (x, y, z) = (
            tensor(side, side)?,
            tensor(side, side)?,
            tensor(side, side)?,
        );
        let (row, column) = (tensor(1, side)?, tensor(side, 1)?);
        let (mask, xt, out) = (x.gt(0)?, x.t()?, x.zeros_like(None)?);
        let (n, b) = (numel as f64, 4.0 * numel as f64);
        let at = |name, bytes| case(name, params, bytes, n);
        sink.op(at("add", 3.0 * b), &[&x, &y], |t| t[0].add(t[1]));
        sink.op(at("add row-bcast", 2.0 * b), &[&x, &row], |t| {
            t[0].add(t[1])
        });
        sink.op(at("add col-bcast", 2.0 * b), &[&x, &column], |t| {
            t[0].add(t[1])
        });
        sink.op(at("add transposed+contig", 3.0 * b), &[&xt, &y], |t| {
            t[0].add(t[1])
        });
        let fused = |name| case(name, params, 4.0 * b, 2.0 * n);
        sink.op(fused("a*b+c"), &[&x, &y, &z], |t| t[0].mul(t[1])?.add(t[2]));
        sink.op(fused("addcmul (fused a*b+c)"), &[&x, &y, &z], |t| {
            t[2].addcmul(t[0], t[1], 1)
        });
        sink.op(at("exp", 2.0 * b), &[&x], |t| t[0].exp());
        sink.op(at("gelu_erf", 2.0 * b), &[&x], |t| t[0].gelu());
        sink.op(at("gelu_tanh", 2.0 * b), &[&x], |t| t[0].gelu_tanh());
        sink.op(at("sigmoid", 2.0 * b), &[&x], |t| t[0].sigmoid());
        sink.op(at("where", 3.0 * b + n), &[&mask, &x, &y], |t| {
            t[1].r#where(t[0], t[2])
        });
        sink.op(at("cast f32->bf16", 1.5 * b), &[&x], |t| {
            t[0].to(DType::BF16)
        });
        sink.op(at("scalar mul", 2.0 * b), &[&x], |t| t[0].mul(1.5));
        sink.into(at("add into", 3.0 * b), &[&x, &y], &out, |t, out| {
            t[0].add_out(t[1], out)
        });
        sink.into(at("exp into", 2.0 * b), &[&x], &out, |t, out| {
            t[0].exp_out(out)
        });
        sink.into(
            at("add transposed+contig into", 3.0 * b),
            &[&xt, &y],
            &out,
            |t, out| t[0].add_out(t[1], out),
        );
        sink.into(at("gelu_erf into", 2.0 * b), &[&x], &out, |t, out| {
            t[0].gelu_out(out)
        });
        sink.into(at("sigmoid into", 2.0 * b), &[&x], &out, |t, out| {
            t[0].sigmoid_out(out)
        });
        let written = x.copy()?;
        sink.into(at("add inplace", 3.0 * b), &[&y], &written, |t, out| {
            out.add_(t[0])
        });
    }
    Ok(())
}
