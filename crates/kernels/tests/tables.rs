//! Every conversion and operation against PyTorch's recorded answers (`data/record.py`).

use osteon_kernels::{
    BinaryOp, CompareOp, Kernel, TernaryOp, UnaryOp, Value, binary, cast, compare, ternary, unary,
};
use osteon_spec::{DType, Layout, Plan, Scalar};

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap())
        .collect()
}

fn dtype(name: &str) -> DType {
    DType::from_name(name).unwrap_or_else(|| panic!("no dtype {name}"))
}

fn load(bytes: &[u8], dtype: DType) -> Scalar {
    assert_eq!(bytes.len(), dtype.size());
    // SAFETY: as many bytes as an element has.
    unsafe { Value::load(bytes.as_ptr(), dtype) }.read(dtype)
}

/// Runs a kernel on dense operands; all but the first are given.
fn run<const N: usize>(kernel: &Kernel<N>, result: DType, inputs: &[(&[u8], DType)]) -> Vec<u8> {
    let len = inputs[0].0.len() / inputs[0].1.size();
    let layout = Layout::contiguous(&[len]).unwrap();
    let mut out = vec![0u8; len * result.size()];
    let dtypes: [DType; N] = std::array::from_fn(|k| if k == 0 { result } else { inputs[k - 1].1 });
    let ptrs = std::array::from_fn(|k| match k {
        0 => out.as_mut_ptr(),
        _ => inputs[k - 1].0.as_ptr().cast_mut(),
    });
    let plan = Plan::new(&[len], dtypes.map(|d| (&layout, d.size())));
    // SAFETY: every operand has `len` elements; inputs are not written.
    unsafe { kernel.run(&plan, ptrs, dtypes) };
    out
}

/// Bits of the significand: what a last place is worth.
fn epsilon(dtype: DType) -> f64 {
    match dtype.to_real().name() {
        "float16" => 2f64.powi(-10),
        "bfloat16" => 2f64.powi(-7),
        "float32" => f32::EPSILON as f64,
        "float64" => f64::EPSILON,
        _ => 0.0,
    }
}

/// Equal, or within `ulps` units in the last place (for a complex number, of its larger part).
fn close(got: Scalar, want: Scalar, ulps: f64, dtype: DType) -> bool {
    let part = |a: f64, b: f64, scale: f64| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= ulps * epsilon(dtype) * scale
    };
    match (got, want) {
        (Scalar::Float(a), Scalar::Float(b)) => part(a, b, b.abs()),
        (Scalar::Complex(a, b), Scalar::Complex(c, d)) => {
            let scale = if c.is_finite() && d.is_finite() {
                c.abs().max(d.abs())
            } else {
                0.0
            };
            part(a, c, scale) && part(b, d, scale)
        }
        (a, b) => a == b,
    }
}

#[test]
fn casts() {
    let mut checked = 0;
    let mut from = (DType::Bool, String::new());
    for line in include_str!("data/cast.txt").lines() {
        let mut words = line.split_whitespace();
        let d = dtype(words.next().unwrap());
        let words: Vec<&str> = words.collect();
        if !line.starts_with(' ') {
            from = (d, words.concat());
            continue;
        }
        let input = bytes(&from.1);
        let got = run(&cast(from.0, d), d, &[(&input, from.0)]);
        for ((got, want), x) in got
            .chunks(d.size())
            .zip(words)
            .zip(input.chunks(from.0.size()))
            .filter(|((_, w), _)| *w != "-")
        {
            let (got, want) = (load(got, d), load(&bytes(want), d));
            assert!(
                close(got, want, 0.0, d),
                "{:?} {} to {d}: {got:?}, not {want:?}",
                load(x, from.0),
                from.0
            );
            checked += 1;
        }
    }
    assert!(checked > 9000, "{checked}");
}

/// How far from PyTorch's an answer may lie: 0 where both round exactly, a few last places for
/// functions that neither rounds exactly.
fn tolerance(op: &str, dtype: DType) -> f64 {
    let complex = dtype.is_complex();
    match op {
        "Neg" | "Abs" | "Relu" | "Sign" | "Conj" | "Floor" | "Ceil" | "Round" | "Trunc"
        | "Frac" | "Add" | "Sub" | "Maximum" | "Minimum" | "Fmax" | "Fmin" | "Fmod"
        | "Remainder" | "FloorDivide" | "DivTrunc" | "Copysign" | "Clamp"
            if !complex =>
        {
            0.0
        }
        "Square" | "Sqrt" | "Mul" | "Div" | "Reciprocal" if !complex => 0.0,
        "Pow" if complex => 64.0,
        _ if complex => 16.0,
        _ => 4.0,
    }
}

fn answer(op: &str, d: DType, inputs: &[(&[u8], DType)], result: DType) -> Option<Vec<u8>> {
    let name = |v: &dyn std::fmt::Debug| format!("{v:?}") == op;
    if let Some(&op) = UnaryOp::ALL.iter().find(|o| name(o)) {
        return Some(run(&unary(op, d)?, result, inputs));
    }
    if let Some(&op) = BinaryOp::ALL.iter().find(|o| name(o)) {
        return Some(run(&binary(op, d)?.with(&[Scalar::Int(3)]), result, inputs));
    }
    if let Some(&op) = CompareOp::ALL.iter().find(|o| name(o)) {
        return Some(run(&compare(op, d)?, result, inputs));
    }
    let op = *TernaryOp::ALL
        .iter()
        .find(|o| name(o))
        .unwrap_or_else(|| panic!("no operation {op}"));
    Some(run(
        &ternary(op, d)?.with(&[Scalar::Int(2)]),
        result,
        inputs,
    ))
}

#[test]
fn operations() {
    let mut values = vec![];
    let mut wrong = vec![];
    let mut checked = 0;
    for line in include_str!("data/ops.txt").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let d = dtype(words[1]);
        if words[0] == "values" {
            values.push((d, words[2..].iter().map(|w| bytes(w)).collect::<Vec<_>>()));
            continue;
        }
        let (op, result, want) = (words[0], dtype(words[2]), &words[3..]);
        let x = &values.iter().find(|v| v.0 == d).unwrap().1;
        let n = x.len();
        let mut inputs: Vec<Vec<Vec<u8>>> = if want.len() == n * n {
            vec![
                (0..n * n).map(|i| x[i / n].clone()).collect(),
                (0..n * n).map(|i| x[i % n].clone()).collect(),
            ]
        } else if TernaryOp::ALL.iter().any(|o| format!("{o:?}") == op) {
            [0, 1, 3]
                .map(|by| (0..n).map(|i| x[(i + n - by % n) % n].clone()).collect())
                .into()
        } else {
            vec![x.clone()]
        };
        if d.is_integer() && ["DivTrunc", "FloorDivide", "Remainder", "Fmod"].contains(&op) {
            for y in &mut inputs[1] {
                if [Scalar::Int(0), Scalar::Int(-1), Scalar::UInt(0)].contains(&load(y, d)) {
                    let three = Value::new(Scalar::Int(3), d);
                    // SAFETY: an element's bytes.
                    *y = unsafe { std::slice::from_raw_parts(three.as_ptr(), d.size()) }.to_vec();
                }
            }
        }
        let flat: Vec<Vec<u8>> = inputs.iter().map(|i| i.concat()).collect();
        let operands: Vec<(&[u8], DType)> = flat.iter().map(|f| (&f[..], d)).collect();
        let Some(got) = answer(op, d, &operands, result) else {
            wrong.push(format!("{op} is not defined for {d}"));
            continue;
        };
        for (i, (got, want)) in got.chunks(result.size()).zip(want).enumerate() {
            if *want == "-" {
                continue;
            }
            let (got, want) = (load(got, result), load(&bytes(want), result));
            let args: Vec<Scalar> = inputs.iter().map(|x| load(&x[i], d)).collect();
            // What becomes of infinities and NaNs in complex arithmetic is an accident of formulas.
            let finite = |v: &Scalar| match v {
                Scalar::Complex(re, im) => re.is_finite() && im.is_finite(),
                _ => true,
            };
            if !args.iter().chain([&want]).all(finite) {
                continue;
            }
            if !close(got, want, tolerance(op, d), result) {
                wrong.push(format!("{op} {d} {args:?}: {got:?}, not {want:?}"));
            }
            checked += 1;
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong of {checked}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(checked > 15_000, "{checked}");
}
