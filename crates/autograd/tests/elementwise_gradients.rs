//! Gradients of operations element by element against PyTorch's, at ordinary numbers, ties, zeros, infinities and NaN:
//! first and second ones, what is saved for them, and those of the forms in place.

use num_complex::Complex;
use osteon_autograd::functional::{self as f, Reduction};
use osteon_autograd::{Grad, Rounding, Tensor, grad};
use osteon_spec::{DType, Result};

type Fresh = fn(&[Tensor]) -> Result<Tensor>;
type InPlace = fn(&[Tensor]) -> Result<()>;

/// Fresh and in place, where there are both.
struct Operation {
    name: &'static str,
    fresh: Fresh,
    in_place: Option<InPlace>,
}

/// `name = |x| fresh, in place;`.
macro_rules! operations {
    ($($name:literal = |$x:ident| $fresh:expr $(, $in_place:expr)?;)*) => {
        &[$(Operation {
            name: $name,
            fresh: |$x| $fresh,
            in_place: operations!(@some $x $($in_place)?),
        }),*]
    };
    (@some $x:ident) => { None };
    (@some $x:ident $in_place:expr) => { Some(|$x| $in_place) };
}

/// The same, `name name_`, for methods without arguments.
macro_rules! methods {
    ($($name:ident $in_place:ident)*) => {
        &[$(Operation {
            name: stringify!($name),
            fresh: |x| x[0].$name(),
            in_place: Some(|x| x[0].$in_place()),
        }),*]
    };
}

const METHODS: &[Operation] = methods! {
    neg neg_ abs abs_ square square_ sgn sgn_ sign sign_ sqrt sqrt_ rsqrt rsqrt_ reciprocal reciprocal_ exp exp_
    exp2 exp2_ expm1 expm1_ log log_ log2 log2_ log10 log10_ log1p log1p_ sin sin_ cos cos_ tan tan_ asin asin_
    acos acos_ atan atan_ sinh sinh_ cosh cosh_ tanh tanh_ asinh asinh_ acosh acosh_ atanh atanh_ sigmoid sigmoid_
    sinc sinc_ relu relu_ floor floor_ ceil ceil_ round round_ trunc trunc_ frac frac_ deg2rad deg2rad_
    rad2deg rad2deg_ erf erf_ erfc erfc_ erfinv erfinv_ lgamma lgamma_ digamma digamma_ relu6 relu6_ gelu gelu_
    mish mish_ selu selu_ hardswish hardswish_ hardsigmoid hardsigmoid_ logsigmoid logsigmoid_ silu silu_
    gelu_tanh gelu_tanh_
};

const OF_ONE: &[Operation] = operations! {
    "angle" = |x| x[0].angle();
    "conj" = |x| x[0].conj();
    "softsign" = |x| x[0].softsign();
    "tanhshrink" = |x| x[0].tanhshrink();
    "logit" = |x| x[0].logit(None), x[0].logit_(None);
    "logit_eps" = |x| x[0].logit(Some(0.3)), x[0].logit_(Some(0.3));
    "nan_to_num" = |x| x[0].nan_to_num(None, None, None), x[0].nan_to_num_(None, None, None);
    "elu" = |x| x[0].elu(2.0), x[0].elu_(2.0);
    "celu" = |x| x[0].celu(2.0), x[0].celu_(2.0);
    "leaky_relu" = |x| x[0].leaky_relu(0.1), x[0].leaky_relu_(0.1);
    "leaky_relu_negative" = |x| x[0].leaky_relu(-0.5), x[0].leaky_relu_(-0.5);
    "hardshrink" = |x| x[0].hardshrink(0.5), x[0].hardshrink_(0.5);
    "softshrink" = |x| x[0].softshrink(0.5), x[0].softshrink_(0.5);
    "hardtanh" = |x| x[0].hardtanh(-1.0, 0.5), x[0].hardtanh_(-1.0, 0.5);
    "softplus" = |x| x[0].softplus(2.0, 3.0), x[0].softplus_(2.0, 3.0);
    "threshold" = |x| x[0].threshold(0.5, 7.0), x[0].threshold_(0.5, 7.0);
    "round_decimals" = |x| x[0].round_decimals(1), x[0].round_decimals_(1);
    "add_number" = |x| &x[0] + 2, x[0].add_(2);
    "sub_number" = |x| &x[0] - 2, x[0].sub_(2);
    "rsub" = |x| x[0].rsub(2, 3);
    "mul_number" = |x| &x[0] * 2.5, x[0].mul_(2.5);
    "mul_complex" = |x| x[0].mul(Complex::new(1.0, -2.0));
    "div_number" = |x| &x[0] / 4, x[0].div_(4);
    "number_div" = |x| 2.0 / &x[0];
    "number_sub" = |x| 2.0 - &x[0];
    "pow_0" = |x| x[0].pow(0), x[0].pow_(0);
    "pow_1" = |x| x[0].pow(1), x[0].pow_(1);
    "pow_2" = |x| x[0].pow(2), x[0].pow_(2);
    "pow_3" = |x| x[0].pow(3), x[0].pow_(3);
    "pow_half" = |x| x[0].pow(0.5), x[0].pow_(0.5);
    "pow_neg" = |x| x[0].pow(-1), x[0].pow_(-1);
    "pow_minus_half" = |x| x[0].pow(-0.5), x[0].pow_(-0.5);
    "pow_2.5" = |x| x[0].pow(2.5), x[0].pow_(2.5);
    "pow_complex" = |x| x[0].pow(Complex::new(1.0, 2.0));
    "rpow_2" = |x| x[0].rpow(2.0);
    "rpow_0" = |x| x[0].rpow(0.0);
    "float_power" = |x| match x {
        [x] => x.float_power(3),
        _ => x[0].float_power(&x[1]),
    };
    "clamp" = |x| x[0].clamp(-1, 0.5), x[0].clamp_(-1, 0.5);
    "clamp_min" = |x| match x {
        [x] => x.clamp_min(0.5),
        _ => x[0].clamp_min(&x[1]),
    }, match x {
        [x] => x.clamp_min_(0.5),
        _ => x[0].clamp_min_(&x[1]),
    };
    "clamp_max" = |x| match x {
        [x] => x.clamp_max(0.5),
        _ => x[0].clamp_max(&x[1]),
    }, match x {
        [x] => x.clamp_max_(0.5),
        _ => x[0].clamp_max_(&x[1]),
    };
    "remainder_number" = |x| &x[0] % 1.5, x[0].remainder_(1.5);
    "fmod_number" = |x| x[0].fmod(1.5), x[0].fmod_(1.5);
    "div_floor_number" = |x| x[0].div_rounding(2, Rounding::Floor), x[0].div_rounding_(2, Rounding::Floor);
    "xlogy_number" = |x| x[0].xlogy(2.0), x[0].xlogy_(2.0);
    "copysign_number" = |x| x[0].copysign(-1.0), x[0].copysign_(-1.0);
    "add_scaled_self" = |x| x[0].add_scaled(1, 2), x[0].add_scaled_(1, 2);
    "masked_fill" = |x| x[0].masked_fill(&x[0].gt(0.4)?, 7.0), x[0].masked_fill_(&x[0].gt(0.4)?, 7.0);
    "fill" = |x| x[0].fill(2.0), x[0].fill_(2.0);
    "to_complex" = |x| x[0].to(DType::C128);
    "to_float" = |x| x[0].float()?.double();
    "real_of_square" = |x| x[0].mul(&x[0])?.real();
};

const OF_MORE: &[Operation] = operations! {
    "add" = |x| x[0].add(&x[1]), x[0].add_(&x[1]);
    "sub" = |x| x[0].sub(&x[1]), x[0].sub_(&x[1]);
    "mul" = |x| x[0].mul(&x[1]), x[0].mul_(&x[1]);
    "div" = |x| x[0].div(&x[1]), x[0].div_(&x[1]);
    "pow" = |x| x[0].pow(&x[1]), x[0].pow_(&x[1]);
    "remainder" = |x| x[0].remainder(&x[1]), x[0].remainder_(&x[1]);
    "fmod" = |x| x[0].fmod(&x[1]), x[0].fmod_(&x[1]);
    "maximum" = |x| x[0].maximum(&x[1]), x[0].maximum_(&x[1]);
    "minimum" = |x| x[0].minimum(&x[1]), x[0].minimum_(&x[1]);
    "fmax" = |x| x[0].fmax(&x[1]), x[0].fmax_(&x[1]);
    "fmin" = |x| x[0].fmin(&x[1]), x[0].fmin_(&x[1]);
    "atan2" = |x| x[0].atan2(&x[1]), x[0].atan2_(&x[1]);
    "hypot" = |x| x[0].hypot(&x[1]), x[0].hypot_(&x[1]);
    "copysign" = |x| x[0].copysign(&x[1]), x[0].copysign_(&x[1]);
    "logaddexp" = |x| x[0].logaddexp(&x[1]), x[0].logaddexp_(&x[1]);
    "logaddexp2" = |x| x[0].logaddexp2(&x[1]), x[0].logaddexp2_(&x[1]);
    "xlogy" = |x| x[0].xlogy(&x[1]), x[0].xlogy_(&x[1]);
    "nextafter" = |x| x[0].nextafter(&x[1]), x[0].nextafter_(&x[1]);
    "complex" = |x| Tensor::complex(&x[0], &x[1]);
    "polar" = |x| Tensor::polar(&x[0], &x[1]);
    "add_scaled" = |x| x[0].add_scaled(&x[1], 2.5), x[0].add_scaled_(&x[1], 2.5);
    "sub_scaled" = |x| x[0].sub_scaled(&x[1], 2.5), x[0].sub_scaled_(&x[1], 2.5);
    "add_scaled_complex" = |x| x[0].add_scaled(&x[1], Complex::new(1.0, 2.0));
    "div_floor" = |x| x[0].div_rounding(&x[1], Rounding::Floor), x[0].div_rounding_(&x[1], Rounding::Floor);
    "div_trunc" = |x| x[0].div_rounding(&x[1], Rounding::Trunc), x[0].div_rounding_(&x[1], Rounding::Trunc);
    "lerp_number" = |x| x[0].lerp(&x[1], 0.3), x[0].lerp_(&x[1], 0.3);
    "where" = |x| match x[0].dtype() {
        DType::F64 => x[0].r#where(&x[0].gt(&x[1])?, &x[1]),
        _ => x[0].r#where(&x[0].real()?.gt(&x[1].real()?)?, &x[1]),
    };
    "prelu" = |x| f::prelu(&x[0], &x[1].slice(0, ..1)?);
    "mse" = |x| f::mse_loss(&x[0], &x[1], Reduction::None);
    "smooth_l1" = |x| f::smooth_l1_loss(&x[0], &x[1], 1.0, Reduction::None);
    "smooth_l1_0" = |x| f::smooth_l1_loss(&x[0], &x[1], 0.0, Reduction::None);
    "huber" = |x| f::huber_loss(&x[0], &x[1], 0.5, Reduction::None);
    "l1" = |x| f::l1_loss(&x[0], &x[1], Reduction::None);
    "kl_div" = |x| f::kl_div(&x[0], &x[1], false, Reduction::None);
    "kl_div_log" = |x| f::kl_div(&x[0], &x[1], true, Reduction::None);
    "bce" = |x| f::binary_cross_entropy(&x[0], &x[1], None, Reduction::None);
    "glu" = |x| f::glu(&Tensor::cat(&[&x[0], &x[1]], 0)?, 0);
    "mul_self" = |x| x[0].mul(&x[0])?.mul(&x[1]);
    "addcmul_1" = |x| x[0].addcmul(&x[0], &x[1], 2);
    "addcdiv_1" = |x| x[0].addcdiv(&x[0], &x[1], 2);
    "addcmul" = |x| x[0].addcmul(&x[1], &x[2], 2.5), x[0].addcmul_(&x[1], &x[2], 2.5);
    "addcdiv" = |x| x[0].addcdiv(&x[1], &x[2], 2.5), x[0].addcdiv_(&x[1], &x[2], 2.5);
    "lerp" = |x| x[0].lerp(&x[1], &x[2]), x[0].lerp_(&x[1], &x[2]);
    "clamp_tensors" = |x| x[0].clamp(&x[1], &x[2]), x[0].clamp_(&x[1], &x[2]);
};

/// PyTorch's 1/6 in hardsigmoid's derivative is one of float32.
const TOLERANCE: f64 = 1e-8;

/// A line of the record.
struct Recorded {
    operation: &'static Operation,
    dtype: DType,
    saved: String,
    inputs: Vec<Tensor>,
    first: Vec<Option<Vec<f64>>>,
    second: Vec<Option<Vec<f64>>>,
}

fn recorded() -> Vec<Recorded> {
    let lines = include_str!("data/elementwise_gradients.txt").lines();
    lines.filter(|l| !l.starts_with('#')).map(read).collect()
}

fn read(line: &str) -> Recorded {
    let fields: Vec<&str> = line.split(" | ").collect();
    let (kind, saved) = fields[1].split_at(1);
    let numbers = |field: &&str| -> Option<Vec<f64>> {
        let numbers = field.split([' ', ',']).map(|n| n.parse().ok());
        numbers.collect()
    };
    let n = (fields.len() - 2) / 3;
    let dtype = if kind == "c" { DType::C128 } else { DType::F64 };
    let tensor = |field| {
        let numbers = numbers(field).expect("inputs");
        match dtype {
            DType::F64 => Tensor::new(numbers),
            _ => Tensor::from_vec(numbers.clone(), [numbers.len() / 2, 2])
                .and_then(|t| t.view_as_complex()),
        }
    };
    let all = METHODS.iter().chain(OF_ONE).chain(OF_MORE);
    let mut named = all.filter(|o| o.name == fields[0]);
    Recorded {
        operation: named.next().unwrap_or_else(|| panic!("no {}", fields[0])),
        dtype,
        saved: saved.to_owned(),
        inputs: fields[2..2 + n]
            .iter()
            .map(|f| tensor(f).expect("memory"))
            .collect(),
        first: fields[2 + n..2 + 2 * n].iter().map(numbers).collect(),
        second: fields[2 + 2 * n..].iter().map(numbers).collect(),
    }
}

fn leaves(of: &[Tensor]) -> Result<Vec<Tensor>> {
    let leaf = |t: &Tensor| {
        let leaf = t.copy()?;
        leaf.requires_grad_(true)?;
        Ok(leaf)
    };
    of.iter().map(leaf).collect()
}

/// A weight for each element, of which complex ones have an imaginary part.
fn weights(of: &Tensor, imaginary: f64) -> Result<Tensor> {
    if of.dtype().is_complex() {
        of.full_like(Complex::new(1.0, imaginary), None)
    } else {
        of.ones_like(None)
    }
}

fn gradients(out: &Tensor, inputs: &[Tensor], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
    let how = Grad {
        gradients: Some(&[&weights(out, -0.5)?]),
        create_graph,
        allow_unused: true,
        ..Grad::default()
    };
    grad(&[out], &inputs.iter().collect::<Vec<_>>(), &how)
}

fn numbers(t: &Tensor) -> Result<Vec<f64>> {
    let t = t.detach()?;
    if t.dtype().is_complex() {
        t.view_as_real()?.to_vec()
    } else {
        t.to_vec()
    }
}

/// Where a gradient differs from the record, if anywhere.
fn difference(got: Option<&Tensor>, want: Option<&Vec<f64>>) -> Result<Option<String>> {
    let Some(want) = want else {
        return Ok(None);
    };
    let got = match got {
        Some(got) => numbers(got)?,
        None => vec![0.0; want.len()],
    };
    let close = |(got, want): (f64, f64)| {
        got == want
            || got.is_nan() && want.is_nan()
            || (got - want).abs() <= TOLERANCE * (1.0 + want.abs())
    };
    let far = (0..want.len()).find(|&i| got.len() != want.len() || !close((got[i], want[i])));
    Ok(far.map(|i| format!("number {i} is {}, want {}", got[i], want[i])))
}

#[test]
fn first_and_second_gradients_are_pytorchs() -> Result<()> {
    let mut wrong = Vec::new();
    for case in recorded() {
        let name = format!("{} of {}", case.operation.name, case.dtype);
        let leaves = leaves(&case.inputs)?;
        let out = (case.operation.fresh)(&leaves).map_err(|e| e.context(name.clone()))?;
        let first = gradients(&out, &leaves, true)?;
        for (k, (got, want)) in first.iter().zip(&case.first).enumerate() {
            if let Some(far) = difference(got.as_ref(), want.as_ref())? {
                wrong.push(format!("{name}: gradient {k}: {far}"));
            }
        }
        let outs: Vec<&Tensor> = first
            .iter()
            .flatten()
            .filter(|g| g.requires_grad())
            .collect();
        if outs.is_empty() {
            continue;
        }
        let weights: Vec<Tensor> = outs
            .iter()
            .map(|g| weights(g, 0.5))
            .collect::<Result<_>>()?;
        let how = Grad {
            gradients: Some(&weights.iter().collect::<Vec<_>>()),
            allow_unused: true,
            ..Grad::default()
        };
        let second = grad(&outs, &leaves.iter().collect::<Vec<_>>(), &how)?;
        for (k, (got, want)) in second.iter().zip(&case.second).enumerate() {
            // PyTorch's 0 · log(0); and prelu() counts 0 as positive there.
            let known = matches!(
                case.operation.name,
                "rpow_0" | "pow" | "float_power" | "prelu"
            );
            let far = difference(got.as_ref(), want.as_ref())?;
            if let Some(far) = far.filter(|_| !known) {
                wrong.push(format!("{name}: second gradient {k}: {far}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn forms_in_place_have_the_gradients_of_fresh_ones() -> Result<()> {
    let mut wrong = Vec::new();
    for case in recorded() {
        let Some(in_place) = case.operation.in_place else {
            continue;
        };
        let leaves = leaves(&case.inputs)?;
        // The leaf itself may not be written.
        let mut inputs = leaves.clone();
        inputs[0] = leaves[0].copy()?;
        let name = case.operation.name;
        let found = in_place(&inputs)
            .and_then(|()| gradients(&inputs[0], &leaves, false))
            .map_err(|e| e.context(format!("{name}_")));
        match found {
            Ok(found) => {
                for (k, (got, want)) in found.iter().zip(&case.first).enumerate() {
                    if let Some(far) = difference(got.as_ref(), want.as_ref())? {
                        wrong.push(format!("{name}_ of {}: gradient {k}: {far}", case.dtype));
                    }
                }
            }
            Err(e) => wrong.push(e.to_string()),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn what_pytorch_saves_is_saved() -> Result<()> {
    // PyTorch composes these of several operations, or saves more than it needs.
    let others = ["number_div", "kl_div_log", "smooth_l1_0", "glu", "complex"];
    let mut wrong = Vec::new();
    for case in recorded() {
        let name = case.operation.name;
        if case.dtype.is_complex() || others.contains(&name) {
            continue;
        }
        let mut saved = String::new();
        let run = |write: Option<usize>| -> Result<bool> {
            let leaves = leaves(&case.inputs)?;
            let inputs: Vec<Tensor> = leaves.iter().map(Tensor::copy).collect::<Result<_>>()?;
            let out = (case.operation.fresh)(&inputs)?;
            match write {
                Some(k) if k == inputs.len() => out.add_(0)?,
                Some(k) => inputs[k].add_(0)?,
                None => {
                    gradients(&out, &leaves, false)?;
                }
            }
            Ok(gradients(&out, &leaves, false).is_err())
        };
        for k in 0..case.inputs.len() {
            if run(Some(k))? {
                saved.push(['x', 'y', 'z'][k]);
            }
        }
        if run(Some(case.inputs.len()))? {
            saved.push('o');
        }
        if run(None)? {
            saved.push('2');
        }
        if saved != case.saved {
            wrong.push(format!("{name}: saves {saved:?}, PyTorch {:?}", case.saved));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The gradient of the sum of `of(x)`.
fn slope(x: &Tensor, of: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let x = x.copy()?;
    x.requires_grad_(true)?;
    of(&x)?.sum()?.backward()?;
    Ok(x.grad().expect("a gradient"))
}

#[test]
fn where_pytorch_has_other_gradients_or_none() -> Result<()> {
    let x = Tensor::new([2.5, -1.0])?;
    assert_eq!(slope(&x, |x| x.floor_divide(2))?.to_vec::<f64>()?, [0.0; 2]);
    let lost = slope(&x, |x| {
        let y = x.mul(2)?;
        y.logical_and_(&y.detach()?)?;
        Ok(y)
    })?;
    assert_eq!(lost.to_vec::<f64>()?, [0.0; 2]);
    let (zero, one) = (
        Tensor::new([0.0])?.cdouble()?,
        Tensor::new([1.0])?.cdouble()?,
    );
    let rise = slope(&zero, |x| x.pow(&one)?.real())?;
    assert_eq!(numbers(&rise)?, [1.0, 0.0]);
    let refused = slope(&x, |x| x.heaviside(x)).unwrap_err().to_string();
    assert!(refused.contains("heaviside has no derivative"), "{refused}");
    Ok(())
}

#[test]
fn gradients_have_the_dtype_and_shape_of_what_they_are_of() -> Result<()> {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::C64] {
        let x = Tensor::new([[0.5, 2.0], [1.0, -1.5]])?.to(dtype)?;
        let wide = Tensor::new([3.0, 4.0])?;
        let scale = Tensor::new(0.25)?;
        for t in [&x, &wide, &scale] {
            t.requires_grad_(true)?;
        }
        let y = x.mul(&wide)?.add_scaled(&scale, 2)?.div(&x)?.mul(1.5)?;
        y.abs()?.sum()?.backward()?;
        for t in [&x, &wide, &scale] {
            let g = t.grad().expect("a gradient");
            assert_eq!((g.dtype(), g.shape()), (t.dtype(), t.shape()));
        }
        // |(3 x + 0.5) / x · 1.5|' by 0.25 is 3 / |x|, with a sign.
        let signs = [1.0, 1.0, 1.0, -1.0];
        let by_hand: f64 = [0.5, 2.0, 1.0, 1.5]
            .iter()
            .zip(signs)
            .map(|(x, s)| s * 3.0 / x)
            .sum();
        assert!((scale.grad().expect("a gradient").item::<f64>()? - by_hand).abs() < 0.1);
    }
    Ok(())
}
