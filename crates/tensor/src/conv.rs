//! Convolutions. Windows of the input are read where they lie, as dims of a contraction; only padding needs a copy of
//! the input, with a border of zeros.

use crate::backend::{Arg, backend};
use crate::copy::transfer;
use crate::matmul::{Contract, check_factors};
use crate::target::Target;
use crate::{BinaryOp, Call, Compute, Op, View};
use osteon_memory::copies::{self, CopyReason};
use osteon_memory::here;
use osteon_spec::{DType, Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar};

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

/// Everything of a convolution but the elements, checked.
struct Checked<'a> {
    bias: Option<&'a View>,
    groups: usize,
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
        groups,
        single,
        input,
        format,
    })
}

fn is_channels_last(view: &View) -> bool {
    view.layout().suggest_memory_format() == MemoryFormat::ChannelsLast
}

impl Checked<'_> {
    /// A new storage for the result.
    #[track_caller]
    fn alloc(&self, channels: usize, sizes: &[usize], op: &'static str) -> Result<View> {
        let mut shape = Dims::from_slice(&[self.input.shape()[0], channels]);
        shape.extend_from_slice(sizes);
        let layout = Layout::dense(&shape, self.format)?;
        View::alloc(layout, self.input.dtype(), &self.input.device(), op)
    }

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

/// The input with a border of zeros before and after its last dims; itself where there is none.
#[track_caller]
pub(crate) fn padded(
    input: &View,
    border: &[(usize, usize)],
    format: MemoryFormat,
    op: &'static str,
) -> Result<View> {
    if border.iter().all(|&pair| pair == (0, 0)) {
        return Ok(input.clone());
    }
    let mut shape = Dims::from_slice(input.shape());
    let first = shape.len() - border.len();
    for (size, (before, after)) in shape[first..].iter_mut().zip(border) {
        *size = size.saturating_add(before.saturating_add(*after));
    }
    let layout = Layout::dense(&shape, format)?;
    copies::check(
        CopyReason::Materialized,
        op,
        format_args!("{} with a border of zeros", input.layout()),
    )?;
    let out = View::alloc(layout, input.dtype(), &input.device(), op)?;
    backend(out.device()).fill(&out, Scalar::Bool(false))?;
    let mut inside = out.clone();
    for (i, (before, _)) in border.iter().enumerate() {
        inside = inside.narrow(
            (first + i) as isize,
            *before as isize,
            input.shape()[first + i] as isize,
        )?;
    }
    transfer(&inside, input, CopyReason::Materialized, op, here())?;
    Ok(out)
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
        conv(self, weight, bias, how, op).map_err(|e| e.op(op))
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
        conv_transpose(self, weight, bias, how, op).map_err(|e| e.op(op))
    }
}

#[track_caller]
fn conv<const N: usize>(
    input: &View,
    weight: &View,
    bias: Option<&View>,
    how: &Conv<N>,
    op: &'static str,
) -> Result<View> {
    let checked = check::<N>(input, weight, bias, how.groups, false)?;
    let stride = at_least("stride", how.stride, 1)?;
    let dilation = at_least("dilation", how.dilation, 1)?;
    let mut border = [(0, 0); N];
    match how.padding {
        Padding::Valid => {}
        Padding::Zeros(padding) => border = at_least("padding", padding, 0)?.map(|p| (p, p)),
        Padding::Same => {
            if stride != [1; N] {
                return Err(invalid(format!(
                    "padding as for the same size needs steps of 1, got {stride:?}"
                )));
            }
            for d in 0..N {
                let total = dilation[d].saturating_mul(weight.shape()[d + 2] - 1);
                border[d] = (total / 2, total - total / 2);
            }
        }
    }
    let mut sizes = [0; N];
    for d in 0..N {
        let window = dilation[d]
            .saturating_mul(weight.shape()[d + 2] - 1)
            .saturating_add(1);
        let (before, after) = border[d];
        let size = checked.input.shape()[d + 2]
            .saturating_add(before)
            .saturating_add(after);
        if window > size {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "a kernel that reaches over {window} is larger than the padded input, {size}, in dim {d}"
                ),
            ));
        }
        sizes[d] = (size - window) / stride[d] + 1;
    }
    let x = padded(&checked.input, &border, checked.format, op)?;
    let (groups, made) = (checked.groups, weight.shape()[0]);
    let out = checked.alloc(made, &sizes, op)?;
    let (w, s) = (weight.stride(), x.stride());
    let mut contract = Contract::new(Target::fresh(op), weight, &x);
    let (each, depth) = (made / groups, weight.shape()[1]);
    contract.keep(x.shape()[0], 0, s[0]);
    contract.keep(groups, w[0] * each, s[1] * depth);
    contract.keep(each, w[0], 0);
    for d in 0..N {
        contract.keep(sizes[d], 0, s[d + 2] * stride[d]);
    }
    contract.sum(depth, w[1], s[1]);
    for d in 0..N {
        contract.sum(weight.shape()[d + 2], w[d + 2], s[d + 2] * dilation[d]);
    }
    contract.write_to(&out.unflatten(1, &[groups as isize, each as isize])?)?;
    checked.finish(out, op)
}

#[track_caller]
fn conv_transpose<const N: usize>(
    input: &View,
    weight: &View,
    bias: Option<&View>,
    how: &ConvTranspose<N>,
    op: &'static str,
) -> Result<View> {
    let checked = check::<N>(input, weight, bias, how.groups, true)?;
    let dtype = input.dtype();
    if dtype.is_integer() && dtype != DType::I64 {
        return Err(Error::new(
            Kind::DType,
            format!("not defined for {dtype}; cast with to() first"),
        ));
    }
    let stride = at_least("stride", how.stride, 1)?;
    let dilation = at_least("dilation", how.dilation, 1)?;
    let padding = at_least("padding", how.padding, 0)?;
    let more = at_least("output_padding", how.output_padding, 0)?;
    let (mut sizes, mut border) = ([0; N], [(0, 0); N]);
    for d in 0..N {
        if more[d] >= stride[d] && more[d] >= dilation[d] {
            return Err(invalid(format!(
                "output_padding must be smaller than stride or dilation, got {} for {} and {}",
                more[d], stride[d], dilation[d]
            )));
        }
        let n = checked.input.shape()[d + 2];
        let reach = dilation[d].saturating_mul(weight.shape()[d + 2] - 1);
        let full = n
            .saturating_sub(1)
            .saturating_mul(stride[d])
            .saturating_add(reach)
            .saturating_add(more[d] + 1);
        let size = full.saturating_sub(padding[d].saturating_mul(2));
        if n == 0 || size == 0 {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "the result would have no elements in dim {d}: input size {n}, padding {}",
                    padding[d]
                ),
            ));
        }
        sizes[d] = size;
        // So far do windows of the result reach beyond the input.
        let last = (size - 1 + padding[d]) / stride[d];
        border[d] = (
            reach.saturating_sub(padding[d]).div_ceil(stride[d]),
            last.saturating_sub(n - 1),
        );
    }
    let x = padded(&checked.input, &border, checked.format, op)?;
    let groups = checked.groups;
    let (each, depth) = (weight.shape()[1], weight.shape()[0] / groups);
    let out = checked.alloc(each * groups, &sizes, op)?;
    let grouped = out.unflatten(1, &[groups as isize, each as isize])?;
    let (w, s) = (weight.stride(), x.stride());
    // Elements of the result that are a stride apart are sums over the same elements of the kernel, so each such
    // class is a contraction. The kernel walks forward while the input walks back.
    for class in 0..stride.iter().product() {
        let (mut rest, mut part, mut from, mut kernel) =
            (class, grouped.clone(), x.clone(), weight.clone());
        let mut taps = [(0, 0, 0); N];
        for d in 0..N {
            let (phase, step) = (rest % stride[d], stride[d]);
            rest /= step;
            part = part.slice(d as isize + 3, Some(phase as isize), None, step as isize)?;
            let meets = |k: &usize| (phase + padding[d]) % step == k * dilation[d] % step;
            let mut hits = (0..weight.shape()[d + 2]).filter(meets);
            let first = hits.next();
            let second = hits.next();
            let apart = second.zip(first).map_or(0, |(b, a)| b - a);
            let count = usize::from(first.is_some()) + usize::from(second.is_some()) + hits.count();
            taps[d] = (count, apart, apart * dilation[d] / step);
            if let Some(k) = first {
                let at = phase + padding[d] + border[d].0 * step - k * dilation[d];
                from = from.slice(d as isize + 2, Some((at / step) as isize), None, 1)?;
                kernel = kernel.slice(d as isize + 2, Some(k as isize), None, 1)?;
            }
        }
        if part.numel() == 0 {
            continue;
        }
        let mut contract = Contract::new(Target::fresh(op), &kernel, &from);
        contract.keep(x.shape()[0], 0, s[0]);
        contract.keep(groups, w[0] * depth, s[1] * depth);
        contract.keep(each, w[1], 0);
        for d in 0..N {
            contract.keep(part.shape()[d + 3], 0, s[d + 2]);
        }
        contract.sum(depth, w[0], s[1]);
        for (d, (count, apart, back)) in taps.into_iter().enumerate() {
            contract.sum(count, w[d + 2] * apart, (s[d + 2] * back).wrapping_neg());
        }
        contract.write_to(&part)?;
    }
    checked.finish(out, op)
}
