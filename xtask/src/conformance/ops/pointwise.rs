//! Element by element.

use super::super::args::Call;
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
        abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh exp exp2 expm1 floor frac isfinite isinf
        isnan log log10 log1p log2 logical_not neg reciprocal round rsqrt sgn sigmoid sign signbit sin sinh sqrt
        square tan tanh trunc
    }
}

/// A tensor and another or a number in, one out.
pub fn binary(op: &str, c: &Call<'_>) -> Made {
    macro_rules! by_name {
        ($($name:ident)*) => {
            match op {
                $(stringify!($name) => one(c.tensor(0, "input")?.$name(c.operand(1, "other")?)?),)*
                _ => Err(Stop::Missing),
            }
        };
    }
    by_name! {
        atan2 bitwise_and bitwise_or bitwise_xor copysign eq fmax fmin ge gt hypot le logical_and logical_or
        logical_xor lt maximum minimum mul ne
    }
}

/// Python's reflected operators: `other op self`.
pub fn reflected(op: &str, c: &Call<'_>) -> Made {
    let (this, other) = (|| c.tensor(0, "self"), || c.tensor(1, "other"));
    match op {
        "__radd__" => one((other()? + this()?)?),
        "__rdiv__" => one((other()? / this()?)?),
        "__rmul__" => one((other()? * this()?)?),
        "__rsub__" => one((other()? - this()?)?),
        _ => Err(Stop::Missing),
    }
}

/// Element by element, with more to say or under another name.
pub fn other(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    match op {
        "add" => one(match c.named("alpha") {
            None => x()?.add(c.tensor(1, "other")?)?,
            Some(_) => x()?.add_scaled(c.tensor(1, "other")?, c.scalar(usize::MAX, "alpha")?)?,
        }),
        "sub" => match c.named("alpha") {
            None => one(x()?.sub(c.tensor(1, "other")?)?),
            Some(_) => Err(Stop::Missing),
        },
        "rsub" => match c.named("alpha") {
            None => one(c.tensor(1, "other")?.sub(x()?)?),
            Some(_) => Err(Stop::Missing),
        },
        "div" | "true_divide" => match c.named("rounding_mode") {
            None => one(x()?.div(c.tensor(1, "other")?)?),
            Some(_) => Err(Stop::Missing),
        },
        "nn.functional.relu" => one(x()?.relu()?),
        "equal" => Ok(vec![Output::Scalar(Number::Int(
            x()?.equal(c.tensor(1, "other")?)?.into(),
        ))]),
        "item" => Ok(vec![Output::Scalar(item(x()?)?)]),
        _ => Err(Stop::Missing),
    }
}
