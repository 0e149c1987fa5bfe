//! Convolutions: what users say of them, checked.

use crate::backend::Arg;
use crate::matmul::check_factors;
use crate::windows::Windows;
use crate::{BinaryOp, Call, Compute, Op, View};
use osteon_memory::{attribute, here};
use osteon_spec::{DType, Error, Kind, MemoryFormat, Result};

/// What is put around each of `N` dims of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding<const N: usize> {
    /// Nothing.
    Valid,
    /// As much as gives the result the size of the input, for steps of 1.
    Same,
    /// As many zeros on either side.
    Zeros([isize; N]),
}

/// How a kernel moves over `N` dims.
#[derive(Clone, Copy, Debug)]
pub struct Conv<const N: usize> {
    /// Steps of the kernel.
    pub stride: [isize; N],
    /// What is put around the input.
    pub padding: Padding<N>,
    /// Steps between the elements that one kernel reads.
    pub dilation: [isize; N],
    /// Groups of channels, each with kernels of its own.
    pub groups: isize,
}

impl<const N: usize> Default for Conv<N> {
    fn default() -> Conv<N> {
        Conv {
            stride: [1; N],
            padding: Padding::Valid,
            dilation: [1; N],
            groups: 1,
        }
    }
}

/// How a kernel of a transposed convolution moves over `N` dims.
#[derive(Clone, Copy, Debug)]
pub struct ConvTranspose<const N: usize> {
    /// Steps of the kernel over the result.
    pub stride: [isize; N],
    /// How much of the result is cut off on either side.
    pub padding: [isize; N],
    /// How much of the result is kept beyond that on the far side.
    pub output_padding: [isize; N],
    /// Steps between the elements that one kernel writes.
    pub dilation: [isize; N],
    /// Groups of channels, each with kernels of its own.
    pub groups: isize,
}

impl<const N: usize> Default for ConvTranspose<N> {
    fn default() -> ConvTranspose<N> {
        ConvTranspose {
            stride: [1; N],
            padding: [0; N],
            output_padding: [0; N],
            dilation: [1; N],
            groups: 1,
        }
    }
}

fn invalid(message: String) -> Error {
    Error::new(Kind::Value, message)
}

/// `N` numbers, none below `least`.
pub(crate) fn at_least<const N: usize>(
    what: &str,
    numbers: [isize; N],
    least: isize,
) -> Result<[usize; N]> {
    match numbers.iter().find(|&&n| n < least) {
        Some(n) => Err(invalid(format!("{what} must be at least {least}, got {n}"))),
        None => Ok(numbers.map(|n| n as usize)),
    }
}

/// Steps of which some are taken; 1 for one that is not, however large.
fn taken<const N: usize>(steps: [usize; N], counts: [usize; N]) -> [usize; N] {
    std::array::from_fn(|d| if counts[d] > 1 { steps[d] } else { 1 })
}

/// The last `N` sizes.
fn last<const N: usize>(shape: &[usize]) -> [usize; N] {
    std::array::from_fn(|d| shape[shape.len() - N + d])
}

impl<const N: usize> Conv<N> {
    /// The windows over an input and a kernel of these shapes, which have `N` dims at least.
    ///
    /// # Errors
    /// Numbers that make no sense; a window larger than the padded input.
    pub fn windows(&self, input: &[usize], weight: &[usize]) -> Result<Windows<N>> {
        let [groups] = at_least("groups", [self.groups], 1)?;
        let stride = at_least("stride", self.stride, 1)?;
        let dilation = at_least("dilation", self.dilation, 1)?;
        let (input, kernel) = (last::<N>(input), last::<N>(weight));
        let reach: [usize; N] = std::array::from_fn(|d| dilation[d].saturating_mul(kernel[d] - 1));
        // Zeros before and after.
        let pads = match self.padding {
            Padding::Valid => [(0, 0); N],
            Padding::Zeros(padding) => at_least("padding", padding, 0)?.map(|p| (p, p)),
            Padding::Same if stride == [1; N] => reach.map(|r| (r / 2, r - r / 2)),
            Padding::Same => {
                return Err(invalid(format!(
                    "padding as for the same size needs steps of 1, got {stride:?}"
                )));
            }
        };
        let mut output = [0; N];
        for d in 0..N {
            let (before, after) = pads[d];
            let window = reach[d].saturating_add(1);
            let size = input[d].saturating_add(before).saturating_add(after);
            if window > size {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "a kernel that reaches over {window} is larger than the padded input, {size}, in dim {d}"
                    ),
                ));
            }
            output[d] = (size - window) / stride[d] + 1;
        }
        Ok(Windows {
            stride: taken(stride, output),
            dilation: taken(dilation, kernel),
            border: pads.map(|(before, _)| before),
            groups,
            input,
            kernel,
            output,
        })
    }
}

impl<const N: usize> ConvTranspose<N> {
    /// The windows in which the input is the result of a convolution over what this one makes.
    ///
    /// # Errors
    /// Numbers that make no sense; a result without elements.
    pub fn windows(&self, input: &[usize], weight: &[usize]) -> Result<Windows<N>> {
        let [groups] = at_least("groups", [self.groups], 1)?;
        let stride = at_least("stride", self.stride, 1)?;
        let dilation = at_least("dilation", self.dilation, 1)?;
        let border = at_least("padding", self.padding, 0)?;
        let more = at_least("output_padding", self.output_padding, 0)?;
        let (output, kernel) = (last::<N>(input), last::<N>(weight));
        let mut made = [0; N];
        for d in 0..N {
            if more[d] >= stride[d] && more[d] >= dilation[d] {
                return Err(invalid(format!(
                    "output_padding must be smaller than stride or dilation, got {} for {} and {}",
                    more[d], stride[d], dilation[d]
                )));
            }
            let n = output[d];
            let reach = dilation[d].saturating_mul(kernel[d] - 1);
            let full = n
                .saturating_sub(1)
                .saturating_mul(stride[d])
                .saturating_add(reach)
                .saturating_add(more[d] + 1);
            made[d] = full.saturating_sub(border[d].saturating_mul(2));
            if n == 0 || made[d] == 0 || full > isize::MAX as usize {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "the result would have no elements in dim {d}, or more than there is memory for: input size {n}, padding {}",
                        border[d]
                    ),
                ));
            }
        }
        Ok(Windows {
            stride: taken(stride, output),
            dilation: taken(dilation, kernel),
            border,
            groups,
            input: made,
            kernel,
            output,
        })
    }
}

/// Everything of a convolution but the elements, checked.
struct Checked<'a> {
    bias: Option<&'a View>,
    /// Without a batch before: the result loses it.
    single: bool,
    /// With a batch.
    input: View,
    format: MemoryFormat,
}

#[track_caller]
fn check<'a, const N: usize>(
    input: &View,
    weight: &View,
    bias: Option<&'a View>,
    groups: isize,
    transposed: bool,
) -> Result<Checked<'a>> {
    check_factors(input, weight, "")?;
    let [groups] = at_least("groups", [groups], 1)?;
    let shape = |message: String| Err(Error::new(Kind::Shape, message));
    if weight.dim() != N + 2 || weight.numel() == 0 {
        return shape(format!(
            "expected a weight of {} dims without empty ones, got shape {:?}",
            N + 2,
            weight.shape()
        ));
    }
    if input.dim() != N + 2 && input.dim() != N + 1 {
        return shape(format!(
            "expected an input of {} or {} dims, got shape {:?}",
            N + 1,
            N + 2,
            input.shape()
        ));
    }
    let single = input.dim() == N + 1;
    let format = match (N, single) {
        (2, false) if is_channels_last(input) || is_channels_last(weight) => {
            MemoryFormat::ChannelsLast
        }
        (2, true) if is_channels_last(weight) => MemoryFormat::ChannelsLast,
        _ => MemoryFormat::Contiguous,
    };
    let input = if single {
        input.unsqueeze(0)?
    } else {
        input.clone()
    };
    let channels = input.shape()[1];
    let (wanted, many) = match transposed {
        true => (weight.shape()[0], weight.shape()[0]),
        false => (weight.shape()[1] * groups, weight.shape()[0]),
    };
    if channels != wanted || many % groups != 0 {
        return shape(format!(
            "{groups} groups and a weight of shape {:?} do not fit an input of {channels} channels, shape {:?}",
            weight.shape(),
            input.shape()
        ));
    }
    let made = if transposed {
        weight.shape()[1] * groups
    } else {
        weight.shape()[0]
    };
    if let Some(bias) = bias {
        check_factors(&input, bias, "")?;
        if bias.shape() != [made] {
            return shape(format!(
                "expected a bias of {made} elements, got shape {:?}",
                bias.shape()
            ));
        }
    }
    Ok(Checked {
        bias,
        single,
        input,
        format,
    })
}

fn is_channels_last(view: &View) -> bool {
    view.layout().suggest_memory_format() == MemoryFormat::ChannelsLast
}

impl Checked<'_> {
    /// The result with the bias, and without the batch that the input does not have.
    #[track_caller]
    fn finish(&self, out: View, op: &'static str) -> Result<View> {
        if let Some(bias) = self.bias {
            let mut sizes = vec![1; out.dim() - 1];
            sizes[0] = bias.numel() as isize;
            let bias = bias.unflatten(0, &sizes)?;
            let args = [Arg::View(&out), Arg::View(&bias)];
            Call {
                name: op,
                op: Op::Binary(BinaryOp::Add),
                compute: Compute::Promoted,
                args: &args,
                numbers: &[],
            }
            .overwrite(&out)?;
        }
        if self.single {
            out.select(0, 0)
        } else {
            Ok(out)
        }
    }
}

impl View {
    /// Products of windows of the input with kernels, summed: `conv1d`, `conv2d`, `conv3d`, by the number of dims.
    ///
    /// # Errors
    /// Shapes, groups or dtypes that do not fit; a window larger than the padded input; padding where copies are
    /// forbidden; guards; out of memory.
    #[track_caller]
    pub fn conv<const N: usize>(
        &self,
        weight: &View,
        bias: Option<&View>,
        how: &Conv<N>,
        op: &'static str,
    ) -> Result<View> {
        let run = || {
            let checked = check::<N>(self, weight, bias, how.groups, false)?;
            let windows = how.windows(self.shape(), weight.shape())?;
            let out = windows.output(&checked.input, weight, checked.format, op)?;
            checked.finish(out, op)
        };
        attribute(here(), run).map_err(|e| e.op(op))
    }

    /// The convolution whose windows are those of the result: `conv_transpose2d`.
    ///
    /// # Errors
    /// As [`View::conv`].
    #[track_caller]
    pub fn conv_transpose<const N: usize>(
        &self,
        weight: &View,
        bias: Option<&View>,
        how: &ConvTranspose<N>,
        op: &'static str,
    ) -> Result<View> {
        let run = || {
            let checked = check::<N>(self, weight, bias, how.groups, true)?;
            let dtype = self.dtype();
            if dtype.is_integer() && dtype != DType::I64 {
                return Err(Error::new(
                    Kind::DType,
                    format!("not defined for {dtype}; cast with to() first"),
                ));
            }
            let windows = how.windows(self.shape(), weight.shape())?;
            let out = windows.input(weight, &checked.input, checked.format, op)?;
            checked.finish(out, op)
        };
        attribute(here(), run).map_err(|e| e.op(op))
    }
}
