//! Maxima, averages and columns of windows over the last dims of images.

use crate::View;
use crate::backend::backend;
use crate::conv::at_least;
use crate::copy::transfer;
use crate::create::reserved;
use crate::windows::padded;
use osteon_kernels::{Pooling, Span};
use osteon_memory::copies::CopyReason;
use osteon_memory::{attribute, here};
use osteon_spec::{DType, Dims, Error, Kind, Layout, MemoryFormat, Result};

/// How windows move over `N` dims.
#[derive(Clone, Copy, Debug)]
pub struct Pool<const N: usize> {
    /// The sizes of a window.
    pub kernel: [isize; N],
    /// Its steps; those of its size in their absence.
    pub stride: Option<[isize; N]>,
    /// Half a window at most, on either side of the input, that counts for nothing.
    pub padding: [isize; N],
    /// Steps between the elements of a window.
    pub dilation: [isize; N],
    /// Whether a last window may reach beyond the padded input.
    pub ceil_mode: bool,
}

impl<const N: usize> Pool<N> {
    /// Windows of these sizes, side by side.
    pub fn new(kernel: [isize; N]) -> Pool<N> {
        Pool {
            kernel,
            stride: None,
            padding: [0; N],
            dilation: [1; N],
            ceil_mode: false,
        }
    }
}

/// The part of a window that lies within an input of `size`: of `kernel` elements, the first of which is at `begin`.
pub(crate) fn span(begin: i128, size: usize, kernel: usize, step: usize, full: usize) -> Span {
    let [n, k, step] = [size, kernel, step].map(|x| x as i128);
    let skipped = if begin < 0 {
        (-begin + step - 1) / step
    } else {
        0
    };
    let start = begin + skipped * step;
    let inside = if start >= n {
        0
    } else {
        ((n - 1 - start) / step + 1).min(k - skipped)
    };
    Span {
        start: start as usize,
        count: inside.max(0) as usize,
        skipped: skipped as usize,
        full,
    }
}

/// The windows along one dim of `size`.
fn spans(
    size: usize,
    d: usize,
    kernel: usize,
    stride: usize,
    pad: usize,
    dilation: usize,
    ceil: bool,
) -> Result<Vec<Span>> {
    // Numbers of users: their products may be beyond 64 bits.
    let [n, k, s, p, step] = [size, kernel, stride, pad, dilation].map(|x| x as i128);
    let reach = step * (k - 1) + 1;
    if p > reach / 2 {
        return Err(Error::new(
            Kind::Value,
            format!(
                "padding must be at most half of a window that reaches over {reach}, got {pad} in dim {d}"
            ),
        ));
    }
    let beyond = n + 2 * p - reach + if ceil { s - 1 } else { 0 };
    let mut count = beyond.div_euclid(s) + 1;
    if ceil && (count - 1) * s >= n + p {
        // A window begins within the input or its left padding.
        count -= 1;
    }
    if count < 1 {
        return Err(Error::new(
            Kind::Shape,
            format!(
                "a window that reaches over {reach} does not fit size {size} with padding {pad} in dim {d}"
            ),
        ));
    }
    let mut list = reserved(count as usize, "pooling")?;
    for i in 0..count {
        let begin = i * s - p;
        let full = (begin + reach).min(n + p) - begin;
        list.push(span(begin, size, kernel, dilation, full as usize));
    }
    Ok(list)
}

/// An input as a batch of images, and what its results look like.
pub(crate) struct Images {
    pub(crate) view: View,
    pub(crate) single: bool,
    pub(crate) format: MemoryFormat,
}

#[track_caller]
pub(crate) fn images(input: &View) -> Result<Images> {
    let shape = input.shape();
    let single = shape.len() == 3;
    if !(single || shape.len() == 4) || shape[shape.len() - 3..].contains(&0) {
        return Err(Error::new(
            Kind::Shape,
            format!(
                "expected 3 dims, or 4 of which only the first may be empty, got shape {shape:?}"
            ),
        ));
    }
    Images::of(input)
}

impl Images {
    /// Of three or four dims.
    #[track_caller]
    pub(crate) fn of(input: &View) -> Result<Images> {
        let single = input.dim() == 3;
        let format = if single {
            MemoryFormat::Contiguous
        } else {
            input.layout().suggest_memory_format()
        };
        Ok(Images {
            view: if single {
                input.unsqueeze(0)?
            } else {
                input.clone()
            },
            single,
            format,
        })
    }

    #[track_caller]
    pub(crate) fn alloc(&self, sizes: [usize; 2], dtype: DType, op: &'static str) -> Result<View> {
        let shape = [
            self.view.shape()[0],
            self.view.shape()[1],
            sizes[0],
            sizes[1],
        ];
        View::alloc(
            Layout::dense(&shape, self.format)?,
            dtype,
            &self.view.device(),
            op,
        )
    }

    #[track_caller]
    pub(crate) fn pooling<'a>(
        &self,
        spans: &'a [Vec<Span>; 2],
        step: [usize; 2],
        dst: &View,
        positions: Option<&View>,
    ) -> Pooling<'a> {
        let strides = |v: &View| -> [isize; 4] {
            std::array::from_fn(|d| v.stride()[d].wrapping_mul(v.element_size()) as isize)
        };
        Pooling {
            batch: self.view.shape()[0],
            channels: self.view.shape()[1],
            spans: [&spans[0], &spans[1]],
            step,
            width: self.view.shape()[3],
            strides: [
                strides(dst),
                positions.map_or([0; 4], strides),
                strides(&self.view),
            ],
        }
    }

    #[track_caller]
    pub(crate) fn finish(&self, out: View) -> Result<View> {
        if self.single {
            out.select(0, 0)
        } else {
            Ok(out)
        }
    }
}

/// The checked windows of a pool over images.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    pub(crate) spans: [Vec<Span>; 2],
    pub(crate) step: [usize; 2],
}

#[track_caller]
pub(crate) fn windows(images: &Images, how: &Pool<2>) -> Result<Windows> {
    let kernel = at_least("kernel_size", how.kernel, 1)?;
    let stride = at_least("stride", how.stride.unwrap_or(how.kernel), 1)?;
    let padding = at_least("padding", how.padding, 0)?;
    let step = at_least("dilation", how.dilation, 1)?;
    let along = |d: usize| {
        spans(
            images.view.shape()[d + 2],
            d,
            kernel[d],
            stride[d],
            padding[d],
            step[d],
            how.ceil_mode,
        )
    };
    Ok(Windows {
        spans: [along(0)?, along(1)?],
        step,
    })
}

#[track_caller]
fn max_pool(
    input: &View,
    how: &Pool<2>,
    positions: bool,
    op: &'static str,
) -> Result<(View, Option<View>)> {
    let images = images(input)?;
    let Windows { spans, step } = windows(&images, how)?;
    let sizes = [spans[0].len(), spans[1].len()];
    let out = images.alloc(sizes, input.dtype(), op)?;
    let at = if positions {
        Some(images.alloc(sizes, DType::I64, op)?)
    } else {
        None
    };
    let pooling = images.pooling(&spans, step, &out, at.as_ref());
    backend(input.device()).max_pool(&out, at.as_ref(), &images.view, &pooling)?;
    Ok((
        images.finish(out)?,
        at.map(|at| images.finish(at)).transpose()?,
    ))
}

impl From<&Pool<1>> for Pool<2> {
    /// A pool over one dim as one over two, the first of size 1.
    fn from(how: &Pool<1>) -> Pool<2> {
        Pool {
            kernel: [1, how.kernel[0]],
            stride: Some([1, how.stride.unwrap_or(how.kernel)[0]]),
            padding: [0, how.padding[0]],
            dilation: [1, how.dilation[0]],
            ceil_mode: how.ceil_mode,
        }
    }
}

impl View {
    /// The maxima of windows over the last two dims; their positions, in elements of an image, where asked.
    ///
    /// # Errors
    /// Other ranks than 3 and 4; windows that do not fit; `bool` or complex numbers; guards; out of memory.
    #[track_caller]
    pub fn max_pool2d(&self, how: &Pool<2>, positions: bool) -> Result<(View, Option<View>)> {
        max_pool(self, how, positions, "max_pool2d").map_err(|e| e.op("max_pool2d"))
    }

    /// The same over the last dim.
    ///
    /// # Errors
    /// As [`View::max_pool2d`], of ranks 2 and 3; integers without positions, as in PyTorch.
    #[track_caller]
    pub fn max_pool1d(&self, how: &Pool<1>, positions: bool) -> Result<(View, Option<View>)> {
        let op = "max_pool1d";
        if !positions && !self.dtype().is_float() {
            return Err(Error::new(
                Kind::DType,
                format!("not defined for {}; cast with to() first", self.dtype()),
            )
            .op(op));
        }
        let run = || {
            let (out, at) = max_pool(&self.unsqueeze(-2)?, &how.into(), positions, op)?;
            Ok((
                out.squeeze_dims(&[-2])?,
                at.map(|at| at.squeeze_dims(&[-2])).transpose()?,
            ))
        };
        attribute(here(), run).map_err(|e: Error| e.op(op))
    }

    /// The elements of windows over the last two dims as columns: `nn.functional.unfold`. Copies each element as often as
    /// windows hold it.
    ///
    /// # Errors
    /// Other ranks than 3 and 4; windows that do not fit; integers; guards; out of memory.
    #[track_caller]
    pub fn unfold_windows(
        &self,
        kernel: [isize; 2],
        dilation: [isize; 2],
        padding: [isize; 2],
        stride: [isize; 2],
    ) -> Result<View> {
        unfold(self, kernel, dilation, padding, stride).map_err(|e| e.op("unfold"))
    }
}

#[track_caller]
fn unfold(
    input: &View,
    kernel: [isize; 2],
    dilation: [isize; 2],
    padding: [isize; 2],
    stride: [isize; 2],
) -> Result<View> {
    let op = "unfold";
    let images = images(input)?;
    if input.dtype().is_integer() {
        return Err(Error::new(
            Kind::DType,
            format!("not defined for {}; cast with to() first", input.dtype()),
        ));
    }
    let kernel = at_least("kernel_size", kernel, 1)?;
    let dilation = at_least("dilation", dilation, 1)?;
    let padding = at_least("padding", padding, 0)?;
    let stride = at_least("stride", stride, 1)?;
    let mut counts = [0; 2];
    for d in 0..2 {
        let size = images.view.shape()[d + 2].saturating_add(padding[d].saturating_mul(2));
        let reach = dilation[d].saturating_mul(kernel[d] - 1).saturating_add(1);
        if reach > size {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "a window that reaches over {reach} does not fit the padded size {size} in dim {d}"
                ),
            ));
        }
        counts[d] = (size - reach) / stride[d] + 1;
    }
    let x = padded(
        &images.view,
        &padding.map(|p| (p, p)),
        MemoryFormat::Contiguous,
        op,
    )?;
    let (n, c, s) = (x.shape()[0], x.shape()[1], x.stride());
    let sizes = [n, c, kernel[0], kernel[1], counts[0], counts[1]];
    let strides = [
        s[0],
        s[1],
        s[2] * dilation[0],
        s[3] * dilation[1],
        s[2] * stride[0],
        s[3] * stride[1],
    ];
    let layout = Layout::new(
        Dims::from_slice(&sizes),
        Dims::from_slice(&strides),
        x.storage_offset(),
    )?;
    let windows = x.with_layout(layout, op)?;
    let out = View::alloc(
        Layout::contiguous(&sizes)?,
        input.dtype(),
        &input.device(),
        op,
    )?;
    transfer(&out, &windows, CopyReason::Requested, op, here())?;
    let shape = [n, c * kernel[0] * kernel[1], counts[0] * counts[1]].map(|n| n as isize);
    images.finish(out.view(&shape)?)
}
