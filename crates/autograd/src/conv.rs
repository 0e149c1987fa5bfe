//! Convolutions, and windows as columns.

use crate::Tensor;
use crate::functional::view;
use crate::graph::{one, record, rule, two};
use crate::views::signed;
use osteon_spec::Result;
use osteon_tensor::{Conv, ConvTranspose, Part, View, Windows};
use smallvec::smallvec;

/// Products of windows along the last dim with kernels, summed. The input is `(batch, channels, length)`, the batch may
/// be absent; the weight is `(made, channels / groups, length)`.
///
/// Allocates the result, and a copy of the input where it is padded.
///
/// # Errors
/// Shapes, groups or dtypes that do not fit; a kernel larger than the padded input; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Conv}};
/// let (x, w) = (Tensor::new([[1f32, 2.0, 4.0]])?, Tensor::new([[[1f32, 10.0]]])?);
/// let y = functional::conv1d(&x, &w, None, &Conv::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [21.0, 42.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn conv1d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    how: &Conv<1>,
) -> Result<Tensor> {
    let out = input
        .as_view()
        .conv(weight.as_view(), view(bias), how, "conv1d")?;
    convolved(out, Part::Output, [input, weight], bias, || {
        how.windows(input.shape(), weight.shape())
    })
}

/// [`conv1d`] over two dims: images. Windows are read where they lie; the result is channels-last where the input or
/// the weight is.
///
/// # Errors
/// As [`conv1d`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Conv, Padding}};
/// # use osteon_spec::{DType, Device};
/// let x = Tensor::ones([1, 1, 3, 3], DType::F32, &Device::cpu())?;
/// let how = Conv { padding: Padding::Same, ..Conv::default() };
/// let y = functional::conv2d(&x, &x, None, &how)?;
/// assert_eq!(y.to_vec::<f32>()?, [4.0, 6.0, 4.0, 6.0, 9.0, 6.0, 4.0, 6.0, 4.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn conv2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    how: &Conv<2>,
) -> Result<Tensor> {
    let out = input
        .as_view()
        .conv(weight.as_view(), view(bias), how, "conv2d")?;
    convolved(out, Part::Output, [input, weight], bias, || {
        how.windows(input.shape(), weight.shape())
    })
}

/// The convolution whose windows are those of the result: what [`conv2d`] does to gradients.
///
/// # Errors
/// As [`conv1d`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, ConvTranspose}};
/// let (x, w) = (Tensor::new([[[[1f32, 2.0]]]])?, Tensor::new([[[[1f32, 10.0]]]])?);
/// let y = functional::conv_transpose2d(&x, &w, None, &ConvTranspose::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 12.0, 20.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn conv_transpose2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    how: &ConvTranspose<2>,
) -> Result<Tensor> {
    let name = "conv_transpose2d";
    let out = input
        .as_view()
        .conv_transpose(weight.as_view(), view(bias), how, name)?;
    convolved(out, Part::Input, [input, weight], bias, || {
        how.windows(input.shape(), weight.shape())
    })
}

/// The elements of each window over the last two dims as a column. Allocates a result in which every element is as
/// often as windows hold it; [`conv2d`] needs no such thing.
///
/// # Errors
/// Other ranks than 3 and 4; windows that do not fit; integers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([[[1f32, 2.0, 3.0]]])?;
/// let columns = functional::unfold(&x, [1, 2], [1, 1], [0, 0], [1, 1])?;
/// assert_eq!(columns.to_vec::<f32>()?, [1.0, 2.0, 2.0, 3.0]); // windows (1, 2) and (2, 3)
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn unfold(
    input: &Tensor,
    kernel: [isize; 2],
    dilation: [isize; 2],
    padding: [isize; 2],
    stride: [isize; 2],
) -> Result<Tensor> {
    let out = input
        .as_view()
        .unfold_windows(kernel, dilation, padding, stride)?;
    record(out, &[input], |_, _| {
        Ok(rule(move |b| {
            let (sizes, g) = (signed(b.sizes(0)), b.grad()?);
            let [outer @ .., height, width] = &sizes[..] else {
                return one(g);
            };
            // The windows of one kernel's place are apart, and lie on a lattice.
            let bordered = [height + 2 * padding[0], width + 2 * padding[1]];
            let reach: [isize; 2] = std::array::from_fn(|d| dilation[d] * (kernel[d] - 1) + 1);
            let counts: [isize; 2] =
                std::array::from_fn(|d| (bordered[d] - reach[d]) / stride[d] + 1);
            let columns = g.reshape([outer, &kernel, &counts].concat())?;
            let shape = [outer, &bordered].concat();
            let whole = g.new_zeros(shape.iter().map(|&n| n as usize).collect::<Vec<_>>())?;
            for (i, j) in (0..kernel[0]).flat_map(|i| (0..kernel[1]).map(move |j| (i, j))) {
                let lattice = |t: &Tensor, d: usize, k: isize| {
                    let start = k * dilation[d];
                    let end = start + (counts[d] - 1) * stride[d] + 1;
                    t.slice_step(d as isize - 2, start..end, stride[d])
                };
                let column = columns.select(-4, i)?.select(-3, j)?;
                lattice(&lattice(&whole, 0, i)?, 1, j)?.add_(&column)?;
            }
            let rows = whole.narrow(-2, padding[0], *height)?;
            one(rows.narrow(-1, padding[1], *width)?)
        }))
    })
}

/// A convolution that has been made as one part of it, from an input (the part that is neither it nor the weight) and a
/// weight, as a tensor.
fn convolved<const N: usize>(
    out: View,
    made: Part,
    [input, weight]: [&Tensor; 2],
    bias: Option<&Tensor>,
    windows: impl FnOnce() -> Result<Windows<N>>,
) -> Result<Tensor> {
    let inputs: Vec<&Tensor> = [input, weight].into_iter().chain(bias).collect();
    record(out, &inputs, |r, _| {
        let (of_input, of_weight) = (r.needs(0), r.needs(1));
        r.save_if(of_weight, input)?;
        r.save_if(of_input, weight)?;
        let windows = windows()?;
        let given = if made == Part::Output {
            Part::Input
        } else {
            Part::Output
        };
        let single = input.dim() == N + 1;
        let batched = move |t: Tensor| if single { t.unsqueeze(0) } else { Ok(t) };
        Ok(rule(move |b| {
            let g = batched(b.grad()?)?;
            let of_input = b.want(0, || {
                let weight = b.saved(1)?.conj()?;
                let whole = part(windows, given, [(made, &g), (Part::Weight, &weight)])?;
                if single {
                    whole.select(0, 0)
                } else {
                    Ok(whole)
                }
            })?;
            let of_weight = b.want(1, || {
                let input = batched(b.saved(0)?.conj()?)?;
                part(windows, Part::Weight, [(made, &g), (given, &input)])
            })?;
            let of_bias = b.want(2, || {
                let but_channels: Vec<isize> = (0..N as isize + 2).filter(|&d| d != 1).collect();
                g.sum_dims(&but_channels, false)
            })?;
            Ok(smallvec![of_input, of_weight, of_bias])
        }))
    })
}

/// One part of a convolution from the two others: what its derivative is, again and again.
fn part<const N: usize>(
    windows: Windows<N>,
    wanted: Part,
    [a, b]: [(Part, &Tensor); 2],
) -> Result<Tensor> {
    let out = windows.part((a.0, a.1.as_view()), (b.0, b.1.as_view()))?;
    record(out, &[a.1, b.1], |r, _| {
        let (of_a, of_b) = (r.needs(0), r.needs(1));
        r.save_if(of_b, a.1)?;
        r.save_if(of_a, b.1)?;
        let (a, b) = (a.0, b.0);
        Ok(rule(move |back| {
            let g = back.grad()?;
            let of = |part_of: Part, other: Part, k: usize| {
                let other = (other, &back.saved(k)?.conj()?);
                part(windows, part_of, [(wanted, &g), other])
            };
            two(back.want(0, || of(a, b, 1))?, back.want(1, || of(b, a, 0))?)
        }))
    })
}
