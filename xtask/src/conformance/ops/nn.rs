//! `nn.functional`.

use osteon::functional::{self as f, Conv, ConvTranspose, Padding};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::{Made, one};

/// Linear layers and convolutions.
pub fn convolutions(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let weight = || c.tensor(1, "weight");
    let bias = || c.tensor_or_none(2, "bias");
    match op {
        "nn.functional.linear" => one(f::linear(x()?, weight()?, bias()?)?),
        "nn.functional.conv1d" => one(f::conv1d(x()?, weight()?, bias()?, &conv(c)?)?),
        "nn.functional.conv2d" => one(f::conv2d(x()?, weight()?, bias()?, &conv(c)?)?),
        "nn.functional.conv_transpose2d" => {
            let how = ConvTranspose {
                stride: c.each_or(3, "stride", [1; 2])?,
                padding: c.each_or(4, "padding", [0; 2])?,
                output_padding: c.each_or(5, "output_padding", [0; 2])?,
                groups: c.int_or(6, "groups", 1)?,
                dilation: c.each_or(7, "dilation", [1; 2])?,
            };
            one(f::conv_transpose2d(x()?, weight()?, bias()?, &how)?)
        }
        _ => Err(Stop::Missing),
    }
}

fn conv<const N: usize>(c: &Call<'_>) -> Result<Conv<N>, Stop> {
    Ok(Conv {
        stride: c.each_or(3, "stride", [1; N])?,
        padding: match c.get(4, "padding") {
            Some(Arg::Text(text)) if text == "same" => Padding::Same,
            Some(Arg::Text(_)) => Padding::Valid,
            _ => Padding::Zeros(c.each_or(4, "padding", [0; N])?),
        },
        dilation: c.each_or(5, "dilation", [1; N])?,
        groups: c.int_or(6, "groups", 1)?,
    })
}
