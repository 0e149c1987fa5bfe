//! Group B: strided copies to contiguous.

use osteon::{DType, Device, Result, Tensor};

use super::sink::{Sink, case};

const SHAPES: [(&str, &[usize], &[isize]); 8] = [
    ("T 4096x4096", &[4096, 4096], &[1, 0]),
    ("T 8192x2048", &[8192, 2048], &[1, 0]),
    ("T 1000x1000", &[1000, 1000], &[1, 0]),
    (
        "heads 0213 [32,128,12,64]",
        &[32, 128, 12, 64],
        &[0, 2, 1, 3],
    ),
    ("NCHW->NHWC [32,64,56,56]", &[32, 64, 56, 56], &[0, 2, 3, 1]),
    ("NHWC->NCHW [32,56,56,64]", &[32, 56, 56, 64], &[0, 3, 1, 2]),
    ("perm 210 [256,256,256]", &[256, 256, 256], &[2, 1, 0]),
    ("perm 3102 [64,48,32,40]", &[64, 48, 32, 40], &[3, 1, 0, 2]),
];

const DTYPES: [(DType, &str); 4] = [
    (DType::F32, "f32"),
    (DType::U8, "u8"),
    (DType::F64, "f64"),
    (DType::BF16, "bf16"),
];

pub fn run(sink: &mut Sink) -> Result<()> {
    for (dtype, short) in DTYPES {
        for (name, sizes, order) in SHAPES {
            let sizes: Vec<usize> = sizes.iter().map(|&n| sink.size(n)).collect();
            pair(sink, name, short, &counted(&sizes, dtype)?.permute(order)?)?;
        }
        let n = sink.size(4096);
        let m = counted(&[n, n], dtype)?;
        let (from, to) = ((n * 100 / 4096) as isize, (n * 200 / 4096) as isize);
        pair(sink, "cols [4096,100:200]", short, &m.slice(1, from..to)?)?;
        pair(sink, "step2 [4096,::2]", short, &m.slice_step(1, .., 2)?)?;
        let row = counted(&[1, n], dtype)?.expand([n as isize, n as isize])?;
        pair(sink, "expand [1,4096]->[4096,4096]", short, &row)?;
        pair(sink, "clone contiguous 4096x4096", short, &m)?;
    }
    Ok(())
}

/// Small numbers that differ from their neighbours, so that a misplaced element is seen.
fn counted(sizes: &[usize], dtype: DType) -> Result<Tensor> {
    let n: usize = sizes.iter().product();
    let numbers = Tensor::arange(0, n as i64, 1)?.remainder(251)?.to(dtype)?;
    numbers.view(sizes.iter().map(|&n| n as isize).collect::<Vec<_>>())
}

fn pair(sink: &mut Sink, name: &str, short: &str, view: &Tensor) -> Result<()> {
    let bytes = (2 * view.nbytes()) as f64;
    let fresh = format!("{short} fresh");
    sink.op(case(name, &fresh, bytes, 0.0), &[view], |t| {
        if t[0].is_contiguous() {
            t[0].copy()
        } else {
            t[0].contiguous()
        }
    });
    let out = Tensor::ones(view.shape(), view.dtype(), &Device::cpu())?;
    let into = format!("{short} into");
    sink.into(case(name, &into, bytes, 0.0), &[view], &out, |t, out| {
        out.copy_(t[0])
    });
    Ok(())
}
