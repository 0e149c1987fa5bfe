//! Element by element.

use osteon::{Rounding, Tensor};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
use super::super::tensors::item;
use super::super::value::Number;
use super::{Made, one};

/// One tensor in, one out, nothing else to say. All of them have PyTorch's name.
pub fn unary(op: &str, c: &Call<'_>) -> Made {
    macro_rules! by_name {
        ($($name:ident)*) => {
            match op {
                $(stringify!($name) => one(c.tensor(0, "input")?.$name()?),)*
                _ => Err(Stop::Missing),
            }
        };
    }
    if c.args.len() + c.kwargs.len() > 1 {
        return Err(Stop::Missing);
    }
    by_name! {
        abs acos acosh angle asin asinh atan atanh bitwise_not ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2
        expm1 floor frac isfinite isinf isnan isneginf isposinf isreal lgamma log log10 log1p log2 logical_not neg
        positive rad2deg reciprocal round rsqrt sgn sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
    }
}

/// A tensor and another or a number in, one out.
pub fn binary(op: &str, c: &Call<'_>) -> Made {
    macro_rules! by_name {
        (operands: $($any:ident)*; tensors: $($both:ident)*) => {
            match op {
                $(stringify!($any) => one(c.tensor(0, "input")?.$any(c.operand(1, "other")?)?),)*
                $(stringify!($both) => one(c.tensor(0, "input")?.$both(c.tensor(1, "other")?)?),)*
                _ => Err(Stop::Missing),
            }
        };
    }
    by_name! {
        operands: bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp_max clamp_min
        copysign eq float_power floor_divide fmod ge gt le lt mul ne pow remainder xlogy;
        tensors: atan2 fmax fmin heaviside hypot logaddexp logaddexp2 logical_and logical_or logical_xor maximum
        minimum nextafter
    }
}

/// Python's reflected operators, `other op self`, computed as PyTorch's methods do.
pub fn reflected(op: &str, c: &Call<'_>) -> Made {
    let (this, other) = (|| c.tensor(0, "self"), || c.tensor(1, "other"));
    match op {
        "__radd__" => one(this()?.add(c.operand(1, "other")?)?),
        "__rdiv__" => one(this()?.reciprocal()?.mul(c.operand(1, "other")?)?),
        "__rmod__" => one((other()? % this()?)?),
        "__rmul__" => one(this()?.mul(c.operand(1, "other")?)?),
        "__rpow__" => one(other()?.pow(this()?)?),
        "__rsub__" => one(this()?.rsub(c.operand(1, "other")?, 1)?),
        "rsub" => one(this()?.rsub(c.operand(1, "other")?, c.scalar_or(2, "alpha", 1)?)?),
        _ => Err(Stop::Missing),
    }
}

/// Activations, as `nn.functional` names them.
pub fn activation(op: &str, c: &Call<'_>) -> Made {
    let Some(name) = op.strip_prefix("nn.functional.") else {
        return Err(Stop::Missing);
    };
    let x = || c.tensor(0, "input");
    let number = |place, name, absent| c.float_or(place, name, absent);
    one(match name {
        "celu" => x()?.celu(number(1, "alpha", 1.0)?)?,
        "elu" => x()?.elu(number(1, "alpha", 1.0)?)?,
        "gelu" => match c.text(1, "approximate")?.unwrap_or("none") {
            "none" => x()?.gelu()?,
            "tanh" => x()?.gelu_tanh()?,
            other => return Err(Stop::Unwritable(format!("there is no gelu_{other}"))),
        },
        "hardshrink" => x()?.hardshrink(number(1, "lambd", 0.5)?)?,
        "hardsigmoid" => x()?.hardsigmoid()?,
        "hardswish" => x()?.hardswish()?,
        "hardtanh" => x()?.hardtanh(number(1, "min_val", -1.0)?, number(2, "max_val", 1.0)?)?,
        "leaky_relu" => x()?.leaky_relu(number(1, "negative_slope", 0.01)?)?,
        "logsigmoid" => x()?.logsigmoid()?,
        "mish" => x()?.mish()?,
        "relu" => x()?.relu()?,
        "relu6" => x()?.relu6()?,
        "selu" => x()?.selu()?,
        "silu" => x()?.silu()?,
        "softplus" => x()?.softplus(number(1, "beta", 1.0)?, number(2, "threshold", 20.0)?)?,
        "softshrink" => x()?.softshrink(number(1, "lambd", 0.5)?)?,
        "softsign" => x()?.softsign()?,
        "tanhshrink" => x()?.tanhshrink()?,
        "threshold" => x()?.threshold(c.scalar(1, "threshold")?, c.scalar(2, "value")?)?,
        _ => return Err(Stop::Missing),
    })
}

/// Element by element, with more to say or under another name.
pub fn other(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let alpha = || c.scalar(usize::MAX, "alpha");
    let scaled = c.named("alpha").is_some();
    match op {
        "add" if scaled => one(x()?.add_scaled(c.operand(1, "other")?, alpha()?)?),
        "add" => one(x()?.add(c.operand(1, "other")?)?),
        "sub" if scaled => one(x()?.sub_scaled(c.operand(1, "other")?, alpha()?)?),
        "sub" => one(x()?.sub(c.operand(1, "other")?)?),
        "div" | "true_divide" => one(divided(x()?, c)?),
        "addcmul" | "addcdiv" => {
            let (a, b) = (c.tensor(1, "tensor1")?, c.tensor(2, "tensor2")?);
            let value = c.scalar_or(usize::MAX, "value", 1)?;
            one(if op == "addcmul" {
                x()?.addcmul(a, b, value)?
            } else {
                x()?.addcdiv(a, b, value)?
            })
        }
        "clamp" => one(match (c.get(1, "min"), c.get(2, "max")) {
            (Some(_), Some(_)) => x()?.clamp(c.operand(1, "min")?, c.operand(2, "max")?)?,
            (Some(_), None) => x()?.clamp_min(c.operand(1, "min")?)?,
            (None, Some(_)) => x()?.clamp_max(c.operand(2, "max")?)?,
            (None, None) => return Err(Stop::Unwritable("a clamp without bounds".to_owned())),
        }),
        "complex" if c.named("out").is_some() => {
            let out = c.tensor(usize::MAX, "out")?;
            Tensor::complex_out(x()?, c.tensor(1, "imag")?, out)?;
            one(out.clone())
        }
        "complex" => one(Tensor::complex(x()?, c.tensor(1, "imag")?)?),
        "polar" => one(Tensor::polar(x()?, c.tensor(1, "angle")?)?),
        "equal" => Ok(vec![Output::Scalar(Number::Int(
            x()?.equal(c.tensor(1, "other")?)?.into(),
        ))]),
        "fill" => one(x()?.fill(c.operand(1, "value")?)?),
        "isclose" => {
            let (rtol, atol) = (c.float_or(2, "rtol", 1e-5)?, c.float_or(3, "atol", 1e-8)?);
            one(x()?.isclose(c.tensor(1, "other")?, rtol, atol, c.flag(4, "equal_nan")?)?)
        }
        "item" => Ok(vec![Output::Scalar(item(x()?)?)]),
        "lerp" => one(x()?.lerp(c.tensor(1, "end")?, c.operand(2, "weight")?)?),
        "logit" => {
            let eps = c.get(1, "eps").map(|_| c.float(1, "eps")).transpose()?;
            one(x()?.logit(eps)?)
        }
        "masked_fill" => one(x()?.masked_fill(c.tensor(1, "mask")?, c.operand(2, "value")?)?),
        "nan_to_num" => {
            let number = |place, name: &'static str| {
                c.get(place, name).map(|_| c.float(place, name)).transpose()
            };
            one(x()?.nan_to_num(
                number(1, "nan")?,
                number(2, "posinf")?,
                number(3, "neginf")?,
            )?)
        }
        "round" => {
            let decimals = i32::try_from(c.int(usize::MAX, "decimals")?);
            one(x()?.round_decimals(decimals.map_err(|e| Stop::Unwritable(e.to_string()))?)?)
        }
        "where" => one(match c.args {
            [Arg::Tensor(_), ..] => {
                x()?.r#where(c.tensor(1, "condition")?, c.operand(2, "other")?)?
            }
            _ => {
                let (a, b) = (c.operand(0, "input")?, c.operand(2, "other")?);
                Tensor::where_numbers(c.tensor(1, "condition")?, a, b)?
            }
        }),
        _ => Err(Stop::Missing),
    }
}

fn divided(x: &Tensor, c: &Call<'_>) -> Result<Tensor, Stop> {
    let other = c.operand(1, "other")?;
    Ok(match c.text(usize::MAX, "rounding_mode")? {
        None => x.div(other)?,
        Some("trunc") => x.div_rounding(other, Rounding::Trunc)?,
        Some("floor") => x.div_rounding(other, Rounding::Floor)?,
        Some(mode) => return Err(Stop::Unwritable(format!("there is no rounding {mode}"))),
    })
}
