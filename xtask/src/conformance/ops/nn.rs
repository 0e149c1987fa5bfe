//! `nn.functional`.

use osteon::functional::{self as f, Average, Conv, ConvTranspose, Padding, Pool};

use super::super::args::{Arg, Call};
use super::super::call::Stop;
use super::super::case::Output;
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

/// Pools.
pub fn pools(op: &str, c: &Call<'_>) -> Made {
    let x = || c.tensor(0, "input");
    let average = |place: usize| -> Result<Average, Stop> {
        Ok(Average {
            count_include_pad: c.flag_or(place, "count_include_pad", true)?,
            divisor: c
                .int_or_none(place + 1, "divisor_override")?
                .map(|n| n as i64),
        })
    };
    let wants_indices = || c.flag(usize::MAX, "return_indices");
    match op {
        "nn.functional.max_pool1d" if wants_indices()? => {
            both(f::max_pool1d_with_indices(x()?, &max_pool(c)?)?)
        }
        "nn.functional.max_pool1d" => one(f::max_pool1d(x()?, &max_pool(c)?)?),
        "nn.functional.max_pool2d" if wants_indices()? => {
            both(f::max_pool2d_with_indices(x()?, &max_pool(c)?)?)
        }
        "nn.functional.max_pool2d" => one(f::max_pool2d(x()?, &max_pool(c)?)?),
        "nn.functional.avg_pool1d" => one(f::avg_pool1d(x()?, &avg_pool(c)?, average(5)?)?),
        "nn.functional.avg_pool2d" => one(f::avg_pool2d(x()?, &avg_pool(c)?, average(5)?)?),
        "nn.functional.adaptive_avg_pool2d" => {
            let sizes = match c.get(1, "output_size") {
                Some(Arg::List(list)) => match &list[..] {
                    [rows, cols] => [size(rows)?, size(cols)?],
                    _ => return Err(Stop::Unwritable("two sizes are needed".to_owned())),
                },
                Some(single) => [size(single)?; 2],
                None => return Err(Stop::Unwritable("a size is needed".to_owned())),
            };
            one(f::adaptive_avg_pool2d(x()?, sizes)?)
        }
        "nn.functional.unfold" => one(f::unfold(
            x()?,
            c.each_or(1, "kernel_size", [1; 2])?,
            c.each_or(2, "dilation", [1; 2])?,
            c.each_or(3, "padding", [0; 2])?,
            c.each_or(4, "stride", [1; 2])?,
        )?),
        "nn.functional.embedding" => one(f::embedding_with(
            c.tensor(1, "indices")?,
            x()?,
            &f::Embedding {
                padding_idx: c.int_or_none(2, "padding_idx")?,
                max_norm: c
                    .get(3, "max_norm")
                    .map(|_| c.float(3, "max_norm"))
                    .transpose()?,
                norm_type: c.float_or(4, "norm_type", 2.0)?,
                scale_grad_by_freq: c.flag(5, "scale_grad_by_freq")?,
            },
        )?),
        _ => Err(Stop::Missing),
    }
}

fn both((values, indices): (osteon::Tensor, osteon::Tensor)) -> Made {
    Ok(vec![Output::Tensor(values), Output::Tensor(indices)])
}

/// A size, or none to keep the input's.
fn size(arg: &Arg) -> Result<Option<isize>, Stop> {
    match arg {
        Arg::None => Ok(None),
        Arg::Int(n) => Ok(Some(*n)),
        _ => Err(Stop::Unwritable("a size is no integer".to_owned())),
    }
}

/// The windows that maxima and averages have in common.
fn windows<const N: usize>(c: &Call<'_>) -> Result<Pool<N>, Stop> {
    let kernel = c.each_or(1, "kernel_size", [1; N])?;
    let stride = c.each_or(2, "stride", kernel)?;
    let padding = c.each_or(3, "padding", [0; N])?;
    Ok(Pool {
        stride: Some(stride),
        padding,
        ..Pool::new(kernel)
    })
}

fn max_pool<const N: usize>(c: &Call<'_>) -> Result<Pool<N>, Stop> {
    Ok(Pool {
        dilation: c.each_or(4, "dilation", [1; N])?,
        ceil_mode: c.flag(5, "ceil_mode")?,
        ..windows(c)?
    })
}

fn avg_pool<const N: usize>(c: &Call<'_>) -> Result<Pool<N>, Stop> {
    Ok(Pool {
        ceil_mode: c.flag(4, "ceil_mode")?,
        ..windows(c)?
    })
}
