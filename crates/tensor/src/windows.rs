//! The sums of a convolution. Windows of the input are read where they lie, as dims of a contraction; only a border
//! needs a copy of the input, with zeros around it.

use crate::View;
use crate::backend::backend;
use crate::copy::transfer;
use crate::matmul::Contract;
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
