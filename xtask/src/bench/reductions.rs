//! Group D: reductions, softmax, normalisation.

use osteon::{DType, Result};

use super::sink::{Sink, case, uniform};

pub fn run(sink: &mut Sink) -> Result<()> {
    let n = sink.size(4096);
    let x = uniform(&[n, n], DType::F32)?;
    let (xt, out) = (x.t()?, x.zeros_like(None)?);
    let flops = (1 << 24) as f64;
    let bytes = 4.0 * flops;
    let all = |name| case(name, "16M", bytes, flops);
    let at = |name| case(name, "4096x4096", bytes, flops);
    let both = |name| case(name, "4096x4096", 2.0 * bytes, flops);
    sink.op(all("sum all"), &[&x], |t| t[0].sum());
    sink.op(at("sum dim0"), &[&x], |t| t[0].sum_dims([0], false));
    sink.op(at("sum dim1"), &[&x], |t| t[0].sum_dims([1], false));
    sink.op(at("mean dim1"), &[&x], |t| t[0].mean_dims([1], false));
    sink.op(at("var dim1"), &[&x], |t| t[0].var([1], 1.0, false));
    sink.op(at("var dim0"), &[&x], |t| t[0].var([0], 1.0, false));
    sink.op(at("max dim1"), &[&x], |t| {
        t[0].max_dim(1, false).map(|(values, _)| values)
    });
    sink.op(at("amax dim1"), &[&x], |t| t[0].amax([1], false));
    sink.op(at("argmax dim1"), &[&x], |t| t[0].argmax_dim(1, false));
    sink.op(at("argmax dim0"), &[&x], |t| t[0].argmax_dim(0, false));
    sink.op(at("sum dim0 of transposed"), &[&xt], |t| {
        t[0].sum_dims([0], false)
    });
    sink.op(all("max all"), &[&x], |t| t[0].max());
    sink.op(all("argmax all"), &[&x], |t| t[0].argmax());
    sink.op(both("softmax last"), &[&x], |t| t[0].softmax(1));
    sink.op(both("softmax dim0"), &[&x], |t| t[0].softmax(0));
    sink.into(both("softmax last into"), &[&x], &out, |t, out| {
        t[0].softmax_out(1, out)
    });
    sink.into(both("softmax dim0 into"), &[&x], &out, |t, out| {
        t[0].softmax_out(0, out)
    });
    layer_norm(sink, 8192, "8192x768")?;

    let n = sink.size(1024);
    let z = uniform(&[n, n], DType::F32)?;
    let flops = (1 << 20) as f64;
    let small = |name, params, times: f64| case(name, params, times * 4.0 * flops, flops);
    sink.op(small("sum all", "1M", 1.0), &[&z], |t| t[0].sum());
    sink.op(small("sum dim0", "1024x1024", 1.0), &[&z], |t| {
        t[0].sum_dims([0], false)
    });
    sink.op(small("softmax last", "1024x1024", 2.0), &[&z], |t| {
        t[0].softmax(1)
    });
    sink.op(small("softmax dim0", "1024x1024", 2.0), &[&z], |t| {
        t[0].softmax(0)
    });
    sink.op(small("argmax dim1", "1024x1024", 1.0), &[&z], |t| {
        t[0].argmax_dim(1, false)
    });
    sink.op(small("var dim1", "1024x1024", 1.0), &[&z], |t| {
        t[0].var([1], 1.0, false)
    });
    layer_norm(sink, 1024, "1024x768")
}

fn layer_norm(sink: &mut Sink, rows: usize, params: &str) -> Result<()> {
    let width = 768;
    let x = uniform(&[sink.size(rows), width], DType::F32)?;
    let (weight, bias) = (
        uniform(&[width], DType::F32)?,
        uniform(&[width], DType::F32)?,
    );
    let numel = (rows * width) as f64;
    let at = case("layer_norm", params, 8.0 * numel, numel);
    sink.op(at, &[&x, &weight, &bias], |t| {
        t[0].layer_norm([768], Some(t[1]), Some(t[2]), 1e-5)
    });
    Ok(())
}
