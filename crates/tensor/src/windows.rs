//! The sums of a convolution. Windows of the input are read where they lie, as dims of a contraction; only a border
//! needs a copy of the input, with zeros around it.

use crate::View;
use crate::backend::backend;
use crate::copy::transfer;
use crate::create::reserved;
use crate::matmul::Contract;
use crate::pooling::{Images, span};
use crate::target::Target;
use osteon_memory::copies::{self, CopyReason};
use osteon_memory::here;
use osteon_spec::{Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar};

/// Which elements of an input, a kernel and a result meet in a convolution: of each dim, place `i` of the input, `k` of
/// the kernel and `o` of the result where `i + border = o·stride + k·dilation`. Sums of products of two of the three
/// give the third: the result, and the derivatives of it, are all made here.
#[derive(Clone, Copy, Debug)]
pub struct Windows<const N: usize> {
    pub(crate) stride: [usize; N],
    pub(crate) dilation: [usize; N],
    /// Zeros that are thought before the input.
    pub(crate) border: [usize; N],
    pub(crate) groups: usize,
    pub(crate) input: [usize; N],
    pub(crate) kernel: [usize; N],
    pub(crate) output: [usize; N],
}

/// Channels that are few beside the rows of a tile: those of all classes of elements are done together.
const FEW: usize = 12;
/// How many times larger zeros may make a kernel for that.
const MORE: f64 = 2.0;

/// One of the three tensors of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// (batch, channels, …)
    Input,
    /// (channels of the result, channels of the input in a group, …)
    Weight,
    /// (batch, channels, …)
    Output,
}

/// A new tensor of these dims, in this memory format.
#[track_caller]
fn alloc(
    like: &View,
    outer: [usize; 2],
    sizes: &[usize],
    format: MemoryFormat,
    op: &'static str,
) -> Result<View> {
    let shape: Dims = outer.iter().chain(sizes).copied().collect();
    View::alloc(
        Layout::dense(&shape, format)?,
        like.dtype(),
        &like.device(),
        op,
    )
}

impl<const N: usize> Windows<N> {
    /// The part that is missing: the sums of the products of the two others wherever they meet. Batches are there,
    /// and shapes and dtypes fit.
    ///
    /// # Errors
    /// A dtype without products; padding where copies are forbidden; guards; out of memory.
    #[track_caller]
    pub fn part(&self, a: (Part, &View), b: (Part, &View)) -> Result<View> {
        let find = |part| [a, b].into_iter().find(|f| f.0 == part).map(|f| f.1);
        let dense = MemoryFormat::Contiguous;
        match (find(Part::Input), find(Part::Weight), find(Part::Output)) {
            (Some(x), Some(w), _) => self.output(x, w, dense, "conv"),
            (Some(x), _, Some(y)) => self.weight(x, y, "conv"),
            (_, Some(w), Some(y)) => self.input(w, y, dense, "conv"),
            _ => {
                let message = "two parts of a convolution give the third";
                Err(Error::new(Kind::Value, message).op("conv"))
            }
        }
    }

    /// The input with zeros wherever a window reaches beyond it.
    #[track_caller]
    fn bordered(&self, x: &View, format: MemoryFormat, op: &'static str) -> Result<View> {
        let border: [(usize, usize); N] = std::array::from_fn(|d| {
            let last = (self.output[d] - 1) * self.stride[d];
            let end = last + self.dilation[d] * (self.kernel[d] - 1) + 1;
            (
                self.border[d],
                end.saturating_sub(self.border[d] + x.shape()[d + 2]),
            )
        });
        padded(x, &border, format, op)
    }

    /// `y[o] = Σ w[k]·x[i]`
    #[track_caller]
    pub(crate) fn output(
        &self,
        x: &View,
        w: &View,
        format: MemoryFormat,
        op: &'static str,
    ) -> Result<View> {
        let made = w.shape()[0];
        let out = alloc(x, [x.shape()[0], made], &self.output, format, op)?;
        if self.separate(x, made, w.shape()[1], self.stride) {
            let border = self.border.map(|border| border as isize);
            self.each_channel(&out, x, w, self.stride, border, false)?;
            return Ok(out);
        }
        let x = self.bordered(x, format, op)?;
        let (groups, each, depth) = (self.groups, made / self.groups, w.shape()[1]);
        let (ws, xs) = (w.stride(), x.stride());
        let mut contract = Contract::new(Target::fresh(op), w, &x);
        contract.keep(x.shape()[0], 0, xs[0]);
        contract.keep(groups, ws[0] * each, xs[1] * depth);
        contract.keep(each, ws[0], 0);
        for d in 0..N {
            contract.keep(self.output[d], 0, xs[d + 2] * self.stride[d]);
        }
        contract.sum(depth, ws[1], xs[1]);
        for d in 0..N {
            contract.sum(self.kernel[d], ws[d + 2], xs[d + 2] * self.dilation[d]);
        }
        contract.write_to(&out.unflatten(1, &[groups as isize, each as isize])?)?;
        Ok(out)
    }

    /// Whether each channel of the result is made of one channel, over two dims at most, and is better weighted where it
    /// lies, without a border around the input: where channels are vectors, and where lines are not read as such.
    fn separate(&self, x: &View, made: usize, depth: usize, stride: [usize; N]) -> bool {
        let vectors = x.stride()[1] == 1 || stride[N - 1] != 1;
        self.groups == made && depth == 1 && N <= 2 && vectors
    }

    /// `y[o] = Σ w[k]·x[i]` of each channel by itself, where `i + border = o·stride + k·dilation`.
    #[track_caller]
    fn each_channel(
        &self,
        y: &View,
        x: &View,
        w: &View,
        stride: [usize; N],
        border: [isize; N],
        backwards: bool,
    ) -> Result<()> {
        // Of one dim as of two, the first of size 1.
        let plane = |v: &View| {
            if N == 1 {
                v.unsqueeze(2)
            } else {
                Ok(v.clone())
            }
        };
        let [y, x, w] = [plane(y)?, plane(x)?, plane(w)?];
        let mut spans = [Vec::new(), Vec::new()];
        let mut step = [1; 2];
        for (k, spans) in spans.iter_mut().enumerate() {
            let (count, size, kernel) = (y.shape()[k + 2], x.shape()[k + 2], w.shape()[k + 2]);
            let (stride, border) = match (k + N).checked_sub(2) {
                Some(d) => {
                    step[k] = self.dilation[d];
                    (stride[d], border[d])
                }
                None => (1, 0),
            };
            *spans = reserved(count, "windows")?;
            spans.extend((0..count).map(|i| {
                let begin = i as i128 * stride as i128 - border as i128;
                span(begin, size, kernel, step[k], kernel)
            }));
        }
        let images = Images {
            view: x,
            single: false,
            format: MemoryFormat::Contiguous,
        };
        let how = images.pooling(&spans, step, &y, None);
        backend(y.device()).weighted(&y, &images.view, &w.select(1, 0)?, &how, backwards)
    }

    /// `w[k] = Σ y[o]·x[i]`
    #[track_caller]
    fn weight(&self, x: &View, y: &View, op: &'static str) -> Result<View> {
        let (groups, made) = (self.groups, y.shape()[1]);
        let (each, depth) = (made / groups, x.shape()[1] / groups);
        let format = MemoryFormat::Contiguous;
        let out = alloc(x, [made, depth], &self.kernel, format, op)?;
        let x = self.bordered(x, format, op)?;
        let (ys, xs) = (y.stride(), x.stride());
        let mut contract = Contract::new(Target::fresh(op), y, &x);
        contract.keep(groups, ys[1] * each, xs[1] * depth);
        contract.keep(each, ys[1], 0);
        contract.keep(depth, 0, xs[1]);
        for d in 0..N {
            contract.keep(self.kernel[d], 0, xs[d + 2] * self.dilation[d]);
        }
        contract.sum(x.shape()[0], ys[0], xs[0]);
        for d in 0..N {
            contract.sum(self.output[d], ys[d + 2], xs[d + 2] * self.stride[d]);
        }
        contract.write_to(&out.unflatten(0, &[groups as isize, each as isize])?)?;
        Ok(out)
    }

    /// `x[i] = Σ w[k]·y[o]`
    #[track_caller]
    pub(crate) fn input(
        &self,
        w: &View,
        y: &View,
        format: MemoryFormat,
        op: &'static str,
    ) -> Result<View> {
        let (stride, dilation, groups) = (self.stride, self.dilation, self.groups);
        let (each, depth) = (w.shape()[1], w.shape()[0] / groups);
        if stride == [1; N] && self.separate(y, w.shape()[0], each, stride) {
            // Windows over `y` in which the kernel walks back.
            let out = alloc(y, [y.shape()[0], groups], &self.input, format, op)?;
            let border = std::array::from_fn(|d| {
                (dilation[d] * (self.kernel[d] - 1)) as isize - self.border[d] as isize
            });
            self.each_channel(&out, y, w, [1; N], border, true)?;
            return Ok(out);
        }
        if let Some(out) = self.all_classes(w, y, format, op)? {
            return Ok(out);
        }
        let mut border = [(0, 0); N];
        for d in 0..N {
            // So far do windows of the result reach beyond `y`.
            let reach = dilation[d] * (self.kernel[d] - 1);
            let last = (self.input[d].saturating_sub(1) + self.border[d]) / stride[d];
            border[d] = (
                reach.saturating_sub(self.border[d]).div_ceil(stride[d]),
                last.saturating_sub(self.output[d] - 1),
            );
        }
        let out = alloc(y, [y.shape()[0], each * groups], &self.input, format, op)?;
        let y = padded(y, &border, format, op)?;
        let grouped = out.unflatten(1, &[groups as isize, each as isize])?;
        let (ws, ys) = (w.stride(), y.stride());
        // Elements of the result that are a stride apart are sums over the same elements of the kernel, so each such
        // class is a contraction. The kernel walks forward while `y` walks back.
        for class in 0..stride.iter().product() {
            let (mut rest, mut part, mut from, mut kernel) =
                (class, grouped.clone(), y.clone(), w.clone());
            let mut taps = [(0, 0, 0); N];
            for d in 0..N {
                let (phase, step) = (rest % stride[d], stride[d]);
                rest /= step;
                part = part.slice(d as isize + 3, Some(phase as isize), None, step as isize)?;
                let meets = |k: &usize| (phase + self.border[d]) % step == k * dilation[d] % step;
                let mut hits = (0..self.kernel[d]).filter(meets);
                let first = hits.next();
                let second = hits.next();
                let apart = second.zip(first).map_or(0, |(b, a)| b - a);
                let count =
                    usize::from(first.is_some()) + usize::from(second.is_some()) + hits.count();
                taps[d] = (count, apart, apart * dilation[d] / step);
                if let Some(k) = first {
                    let at = phase + self.border[d] + border[d].0 * step - k * dilation[d];
                    from = from.slice(d as isize + 2, Some((at / step) as isize), None, 1)?;
                    kernel = kernel.slice(d as isize + 2, Some(k as isize), None, 1)?;
                }
            }
            if part.numel() == 0 {
                continue;
            }
            let mut contract = Contract::new(Target::fresh(op), &kernel, &from);
            contract.keep(y.shape()[0], 0, ys[0]);
            contract.keep(groups, ws[0] * depth, ys[1] * depth);
            contract.keep(each, ws[1], 0);
            for d in 0..N {
                contract.keep(part.shape()[d + 3], 0, ys[d + 2]);
            }
            contract.sum(depth, ws[0], ys[1]);
            for (d, (count, apart, back)) in taps.into_iter().enumerate() {
                contract.sum(count, ws[d + 2] * apart, (ys[d + 2] * back).wrapping_neg());
            }
            contract.write_to(&part)?;
        }
        Ok(out)
    }
}

impl<const N: usize> Windows<N> {
    /// `x[i] = Σ w[k]·y[o]` in one contraction, in which elements of the kernel that are a stride apart are summed and those
    /// within a stride are rows: where these classes are of one size, or are made so by zeros around a kernel whose classes
    /// alone would be too few rows.
    #[track_caller]
    fn all_classes(
        &self,
        w: &View,
        y: &View,
        format: MemoryFormat,
        op: &'static str,
    ) -> Result<Option<View>> {
        let (stride, groups) = (self.stride, self.groups);
        let (each, depth) = (w.shape()[1], w.shape()[0] / groups);
        let fits = |d: usize| self.dilation[d] == 1 && self.input[d].is_multiple_of(stride[d]);
        if stride == [1; N] || !(0..N).all(fits) {
            return Ok(None);
        }
        // With these the kernel begins and ends with a whole stride.
        let zeros: [(usize, usize); N] = std::array::from_fn(|d| {
            let before = (stride[d] - self.border[d] % stride[d]) % stride[d];
            let end = (before + self.kernel[d]) % stride[d];
            (before, (stride[d] - end) % stride[d])
        });
        if zeros != [(0, 0); N] {
            let more = |d: usize| (zeros[d].0 + self.kernel[d] + zeros[d].1) as f64;
            let times: f64 = (0..N).map(|d| more(d) / self.kernel[d] as f64).product();
            if each > FEW || times > MORE {
                return Ok(None);
            }
        }
        let w = padded(w, &zeros, MemoryFormat::Contiguous, op)?;
        let count: [usize; N] = std::array::from_fn(|d| w.shape()[d + 2] / stride[d]);
        let skipped: [usize; N] =
            std::array::from_fn(|d| (self.border[d] + zeros[d].0) / stride[d]);
        let sizes: [usize; N] = std::array::from_fn(|d| self.input[d] / stride[d]);
        let border: [(usize, usize); N] = std::array::from_fn(|d| {
            let end = sizes[d] + skipped[d];
            (
                (count[d] - 1).saturating_sub(skipped[d]),
                end.saturating_sub(self.output[d]),
            )
        });
        let out = alloc(y, [y.shape()[0], each * groups], &self.input, format, op)?;
        let mut from = padded(y, &border, format, op)?;
        let (ws, ys) = (w.stride(), Dims::from_slice(from.stride()));
        let mut part = out.unflatten(1, &[groups as isize, each as isize])?;
        for d in 0..N {
            let start = (skipped[d] + border[d].0) as isize;
            from = from.slice(d as isize + 2, Some(start), None, 1)?;
            part = part.unflatten(2 * d as isize + 3, &[sizes[d] as isize, stride[d] as isize])?;
        }
        let mut contract = Contract::new(Target::fresh(op), &w, &from);
        contract.keep(y.shape()[0], 0, ys[0]);
        contract.keep(groups, ws[0] * depth, ys[1] * depth);
        contract.keep(each, ws[1], 0);
        for d in 0..N {
            contract.keep(sizes[d], 0, ys[d + 2]);
            contract.keep(stride[d], ws[d + 2], 0);
        }
        contract.sum(depth, ws[0], ys[1]);
        for d in 0..N {
            contract.sum(count[d], ws[d + 2] * stride[d], ys[d + 2].wrapping_neg());
        }
        contract.write_to(&part)?;
        Ok(Some(out))
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
    let mut inside = out.clone();
    for (i, &(before, after)) in border.iter().enumerate() {
        let (d, size) = ((first + i) as isize, input.shape()[first + i]);
        for (start, count) in [(0, before), (before + size, after)] {
            let edge = inside.narrow(d, start as isize, count as isize)?;
            backend(out.device()).fill(&edge, Scalar::Bool(false))?;
        }
        inside = inside.narrow(d, before as isize, size as isize)?;
    }
    transfer(&inside, input, CopyReason::Materialized, op, here())?;
    Ok(out)
}
