//! Loops over whole rows: what each element becomes depends on all of its row, which stays in a cache from one pass over it
//! to the next.

use crate::accumulator::Accumulator;
use crate::arithmetic::Float;
use crate::exponentials::Exponentials;
use crate::kernel::{Loop, Params};
use crate::lane::computed_in;
use crate::math::Exponentials as _;
use crate::operand::{BLOCK, Block, Form, Operand, Staging};
use crate::par::par_for;
use crate::simd::{Isa, simd_loop};
use crate::spread::Spread;
use crate::stream;
use crate::summaries::{Norm, Order2};
use crate::sums::{sum_of, sums_of};
use crate::with_element;
use osteon_spec::{DType, Plan};
use std::mem::MaybeUninit;

/// What is made of rows. Of the operands, the first are rows, the rest one number a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOp {
    /// `y = e^x / Σ e^x`, of `[y, x]`.
    Softmax,
    /// Its logarithm.
    LogSoftmax,
    /// `(g - Σ g·y) · y`, of `[result, g, y]`: the gradient of a softmax.
    SoftmaxGradient,
    /// `g - e^y · Σ g`, likewise of its logarithm.
    LogSoftmaxGradient,
    /// `(x - mean) · scale · weight + bias`, of `[y, x, weight, bias]`, where the mean and `scale = 1 / sqrt(variance + number)`
    /// are written to the last two, one a row.
    LayerNorm,
    /// The same without the mean: the variance is that from 0.
    RmsNorm,
    /// `(x - mean) · scale · weight + bias`, of `[y, x]` and of mean, scale, weight and bias.
    Affine,
    /// `scale · (ĝ - mean(ĝ) - x̂ · mean(ĝ · x̂))`, of `[result, g, x, weight]` and of mean and scale, where `ĝ = g · weight` and
    /// `x̂ = (x - mean) · scale`.
    LayerNormGradient,
    /// The same without `mean(ĝ)`.
    RmsNormGradient,
    /// `Σ g` and `Σ g · x̂`, of `[g, x]`, written to the last two; mean and scale are before them.
    NormSums,
    /// `a·g + b·(x - mean) + c`, of `[result, g, x]` and of `a`, `b`, `mean` and `c`.
    NormCombine,
}

/// How many operands a loop over rows is given; those that it does not use may be anything.
pub const ROW_OPERANDS: usize = 7;

/// A loop over rows, looked up for an operation and a dtype.
#[derive(Clone, Copy, Debug)]
pub struct RowKernel {
    dtype: DType,
    body: Loop<ROW_OPERANDS>,
    /// How many operands are rows.
    rows: usize,
    /// Whether the first is written.
    writes: bool,
    /// Whether it asks for the next row of its input, which it is given as the last operand, in step with its own work.
    paces: bool,
    params: Params,
}

/// The loop over rows of an operation on floats of this dtype, with the number that it takes; none for other dtypes.
pub fn row_kernel(op: RowOp, dtype: DType, number: f64) -> Option<RowKernel> {
    let dtype = computed_in(dtype);
    macro_rules! body {
        ($T:ty, $f:expr) => {
            // SAFETY: the contract of `Loop`.
            simd_loop!(7, |p, len, params| $f(p, len, params))
        };
    }
    let body = with_element!(float: dtype, T => match op {
        RowOp::Softmax => body!(T, softmax::<I, T>),
        RowOp::LogSoftmax => body!(T, log_softmax::<I, T>),
        RowOp::SoftmaxGradient => body!(T, softmax_gradient::<T>),
        RowOp::LogSoftmaxGradient => body!(T, log_softmax_gradient::<I, T>),
        RowOp::LayerNorm => body!(T, normalize::<I, T, true>),
        RowOp::RmsNorm => body!(T, normalize::<I, T, false>),
        RowOp::Affine => body!(T, affine::<T>),
        RowOp::LayerNormGradient => body!(T, normalize_gradient::<T, true>),
        RowOp::RmsNormGradient => body!(T, normalize_gradient::<T, false>),
        RowOp::NormSums => body!(T, norm_sums::<T>),
        RowOp::NormCombine => body!(T, norm_combine::<T>),
    })?;
    Some(RowKernel {
        dtype,
        body,
        rows: op.rows(),
        writes: op.written()[0] == 0,
        paces: matches!(op, RowOp::Softmax | RowOp::LogSoftmax),
        params: Params::one(number),
    })
}

impl RowOp {
    /// How many operands are rows.
    pub fn rows(self) -> usize {
        match self {
            RowOp::Softmax | RowOp::LogSoftmax | RowOp::Affine | RowOp::NormSums => 2,
            RowOp::SoftmaxGradient | RowOp::LogSoftmaxGradient | RowOp::NormCombine => 3,
            RowOp::LayerNorm
            | RowOp::RmsNorm
            | RowOp::LayerNormGradient
            | RowOp::RmsNormGradient => 4,
        }
    }

    /// Which operands are written.
    pub fn written(self) -> &'static [usize] {
        match self {
            RowOp::LayerNorm => &[0, 4, 5],
            RowOp::RmsNorm => &[0, 5],
            RowOp::NormSums => &[4, 5],
            _ => &[0],
        }
    }
}

/// Bytes of a row that is collected or converted, at most.
const STAGED: usize = 32 << 10;

/// Bytes of any row, at most: beyond, the second-level cache does not hold it, and threads do better to share it.
const LONGEST: usize = 512 << 10;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// A row that is not as loops want it.
#[repr(C, align(64))]
struct Stage(MaybeUninit<[u8; STAGED]>);

/// The most operands that are rows.
const MOST_ROWS: usize = 4;

/// Operands at work.
struct Work<'a> {
    kernel: &'a RowKernel,
    line: &'a Plan<ROW_OPERANDS>,
    ptrs: [*mut u8; ROW_OPERANDS],
    dtypes: [DType; ROW_OPERANDS],
    /// Which rows are used where they lie.
    direct: [bool; MOST_ROWS],
    /// Results go past the caches, from where they were collected.
    streams: bool,
    /// The elements come from memory, not from a cache.
    is_far: bool,
}

// SAFETY: threads read all operands and write disjoint rows and numbers.
unsafe impl Sync for Work<'_> {}

impl RowKernel {
    /// The dtype in which numbers of rows are read and written.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Runs the loop on the row `line` from each element of `starts`; false, and nothing is written, where rows are so long, or lie so,
    /// that passes over all elements serve better. The numbers of rows must be of [`RowKernel::dtype`].
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation), of all positions of `starts` and `line` together; what is written overlaps
    /// no other operand, but that the first may be an input itself.
    pub unsafe fn run(
        &self,
        starts: &Plan<ROW_OPERANDS>,
        line: &Plan<ROW_OPERANDS>,
        ptrs: [*mut u8; ROW_OPERANDS],
        dtypes: [DType; ROW_OPERANDS],
    ) -> bool {
        let (len, width) = (line.numel(), self.dtype.size());
        let first_input = self.writes as usize;
        let (inner, next) = (line.inner(), starts.inner());
        let lies_across = |k: usize| {
            let [along, across] = [inner, next].map(|dim| dim.strides[k].unsigned_abs());
            next.size >= 4 && 0 < across && across < along
        };
        if len == 0 || len * width > LONGEST || (first_input..self.rows).any(lies_across) {
            return false;
        }
        let is_dense = |k: usize| {
            let dense = inner.strides[k] == dtypes[k].size() as isize && line.dims().len() <= 1;
            dtypes[k] == self.dtype && (dense || len == 1)
        };
        let is_far = stream::pays(starts.numel() * len * width);
        let in_place = (1..self.rows).any(|k| ptrs[k] == ptrs[0]);
        let streams = self.writes && is_far && is_dense(0) && len * width <= STAGED;
        let may_stage = len * width <= STAGED;
        let mut direct = [true; MOST_ROWS];
        for (k, direct) in direct[..self.rows].iter_mut().enumerate() {
            *direct = is_dense(k) && !(k == 0 && self.writes && (in_place || streams));
        }
        if !may_stage && direct.contains(&false) {
            return false;
        }
        let work = Work {
            kernel: self,
            line,
            ptrs,
            dtypes,
            direct,
            streams,
            is_far,
        };
        par_for(starts.numel(), (GRAIN / len).max(1), |range| {
            // SAFETY: the caller's contract; threads have rows of their own.
            unsafe { work.run(starts, range) }
        });
        true
    }
}

impl Work<'_> {
    /// Does the rows of this range.
    ///
    /// # Safety
    /// The contract of [`RowKernel::run`].
    unsafe fn run(&self, starts: &Plan<ROW_OPERANDS>, range: std::ops::Range<usize>) {
        let (kernel, len) = (self.kernel, self.line.numel());
        let bytes = len * kernel.dtype.size();
        let mut stages = [const { Stage(MaybeUninit::uninit()) }; MOST_ROWS];
        // Where the row began that each stage holds.
        let mut held: [Option<isize>; MOST_ROWS] = [None; MOST_ROWS];
        let mut operands: [Operand; MOST_ROWS] = std::array::from_fn(|k| {
            let (own, plan) = (self.dtypes[k], self.line.select([k]));
            let [from, to] = match k == 0 && kernel.writes {
                true => [kernel.dtype, own],
                false => [own, kernel.dtype],
            };
            Operand::new(self.ptrs[k], plan, Form::new(own, from, None, to))
        });
        let input = |k: usize| k < kernel.rows && !(k == 0 && kernel.writes);
        let is_staged = !self.direct[0] && kernel.writes;
        starts.for_each_run_in(range, |offsets, count, strides| {
            for i in 0..count as isize {
                let at: [isize; ROW_OPERANDS] =
                    std::array::from_fn(|k| offsets[k] + i * strides[k]);
                let mut p: [*mut u8; ROW_OPERANDS] =
                    std::array::from_fn(|k| self.ptrs[k].wrapping_offset(at[k]));
                for k in 0..kernel.rows {
                    if self.direct[k] {
                        // The next row comes from memory while this one is computed.
                        if self.is_far && input(k) && strides[k] != 0 {
                            let next = p[k].wrapping_offset(strides[k]);
                            if kernel.paces {
                                p[ROW_OPERANDS - 1] = next;
                                continue;
                            }
                            for line in (0..bytes.min(STAGED)).step_by(stream::LINE) {
                                stream::prefetch(next.wrapping_add(line));
                            }
                        }
                        continue;
                    }
                    let stage = stages[k].0.as_mut_ptr().cast::<u8>();
                    if input(k) && held[k] != Some(at[k]) {
                        operands[k].ptr = p[k];
                        // SAFETY: the caller's contract; the stage has room for a row.
                        unsafe { collect(&operands[k], len, kernel.dtype.size(), stage) };
                        held[k] = Some(at[k]);
                    }
                    p[k] = stage;
                }
                // SAFETY: the caller's contract: each row is dense now.
                unsafe { (kernel.body)(p, len, &kernel.params) };
                if !is_staged {
                    continue;
                }
                let to = self.ptrs[0].wrapping_offset(at[0]);
                // SAFETY: the caller's contract; the stage holds the results.
                unsafe {
                    if self.streams {
                        stream::store(to, p[0], bytes);
                    } else {
                        operands[0].ptr = to;
                        spread_out(&operands[0], len, kernel.dtype.size(), p[0]);
                    }
                }
            }
        });
        if self.streams {
            stream::fence();
        }
    }
}

/// Puts a row down as the loop wants it.
///
/// # Safety
/// It may be read, and `to` has room for it.
unsafe fn collect(row: &Operand, len: usize, width: usize, to: *mut u8) {
    let (mut block, mut scratch) = (Block::NEW, Block::NEW);
    let mut staging = Staging::new(&mut block);
    for start in (0..len).step_by(BLOCK) {
        let part = start..len.min(start + BLOCK);
        // SAFETY: the caller's contract.
        unsafe {
            let from = row.load(&part, &mut staging, &mut scratch);
            to.add(start * width)
                .copy_from_nonoverlapping(from, part.len() * width);
        }
    }
}

/// Writes a row of results to where it belongs.
///
/// # Safety
/// The row may be written, and `from` holds it.
unsafe fn spread_out(row: &Operand, len: usize, width: usize, from: *const u8) {
    let (mut block, mut scratch) = (Block::NEW, Block::NEW);
    for start in (0..len).step_by(BLOCK) {
        let part = start..len.min(start + BLOCK);
        // SAFETY: the caller's contract.
        unsafe {
            block
                .ptr()
                .copy_from_nonoverlapping(from.add(start * width), part.len() * width);
            row.store(&part, &mut block, &mut scratch);
        }
    }
}

/// A row in memory.
#[derive(Clone, Copy)]
struct Row<T>(*mut T);

impl<T: Float> Row<T> {
    /// # Safety
    /// The element may be read.
    #[inline(always)]
    unsafe fn get(self, i: usize) -> T {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(i).read_unaligned() }
    }

    /// # Safety
    /// The element may be written.
    #[inline(always)]
    unsafe fn set(self, i: usize, value: T) {
        // SAFETY: the caller's contract.
        unsafe { self.0.add(i).write_unaligned(value) }
    }
}

type Pointers = [*mut u8; ROW_OPERANDS];

fn rows<T>(p: Pointers) -> [Row<T>; ROW_OPERANDS] {
    p.map(|p| Row(p.cast()))
}

/// # Safety
/// The contract of [`Loop`], as for all that follow.
#[inline(always)]
unsafe fn softmax<I: Isa, T: Float>(p: Pointers, len: usize, _: &Params) {
    let [y, x, .., next] = rows::<T>(p);
    // SAFETY: the contract of `Loop`, `i < len`, for the whole body.
    unsafe {
        let share = Exponentials::<T>::of_row::<I>(x.0, len, next.0, Some(y.0)).share();
        for i in 0..len {
            y.set(i, y.get(i) * share);
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn log_softmax<I: Isa, T: Float>(p: Pointers, len: usize, _: &Params) {
    let [y, x, .., next] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let all = Exponentials::<T>::of_row::<I>(x.0, len, next.0, None);
        let (max, log) = (all.max, T::narrow(all.sum.ln()));
        for i in 0..len {
            y.set(i, x.get(i) - max - log);
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn softmax_gradient<T: Float>(p: Pointers, len: usize, _: &Params) {
    let [result, g, y, ..] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let sum = T::narrow(sum_of(len, |i| g.get(i) * y.get(i)));
        for i in 0..len {
            result.set(i, (g.get(i) - sum) * y.get(i));
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn log_softmax_gradient<I: Isa, T: Float>(p: Pointers, len: usize, _: &Params) {
    let [result, g, y, ..] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let sum = T::narrow(sum_of(len, |i| g.get(i)));
        for i in 0..len {
            result.set(i, g.get(i) - I::exp(y.get(i)) * sum);
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn normalize<I: Isa, T: Float, const CENTERED: bool>(
    p: Pointers,
    len: usize,
    params: &Params,
) {
    let [y, x, weight, bias, to_mean, to_scale, _] = rows::<T>(p);
    let eps = params.get::<f64>(0);
    // SAFETY: as in `softmax`.
    unsafe {
        let (mean, square) = if CENTERED {
            let spread = Spread::<T>::of_run::<I>(x.0, len, 0.0);
            (spread.mean(), spread.variance(0.0))
        } else {
            let squares = Order2::sum::<T>(len, 2.0, |i| x.get(i));
            (T::narrow(0.0), squares / len as f64)
        };
        let scale = T::narrow(1.0 / (square + eps).sqrt());
        if CENTERED {
            to_mean.set(0, mean);
        }
        to_scale.set(0, scale);
        for i in 0..len {
            y.set(i, (x.get(i) - mean) * scale * weight.get(i) + bias.get(i));
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn affine<T: Float>(p: Pointers, len: usize, _: &Params) {
    let [y, x, mean, scale, weight, bias, _] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let [mean, scale, weight, bias] = [mean, scale, weight, bias].map(|number| number.get(0));
        for i in 0..len {
            y.set(i, (x.get(i) - mean) * scale * weight + bias);
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn normalize_gradient<T: Float, const CENTERED: bool>(p: Pointers, len: usize, _: &Params) {
    let [result, g, x, weight, mean, scale, _] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let (mean, scale) = (mean.get(0), scale.get(0));
        let inner = |i: usize| g.get(i) * weight.get(i);
        let normal = |i: usize| (x.get(i) - mean) * scale;
        let count = len as f64;
        let (sum, slope) = sums_of(len, inner, |i| inner(i) * normal(i));
        let slope = T::narrow(slope / count);
        let shift = T::narrow(if CENTERED { sum / count } else { 0.0 });
        for i in 0..len {
            result.set(i, (inner(i) - shift - normal(i) * slope) * scale);
        }
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn norm_sums<T: Float>(p: Pointers, len: usize, _: &Params) {
    let [g, x, mean, scale, sum, slope, _] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let (mean, scale) = (mean.get(0), scale.get(0));
        let normal = |i: usize| (x.get(i) - mean) * scale;
        let (all, sloped) = sums_of(len, |i| g.get(i), |i| g.get(i) * normal(i));
        sum.set(0, T::narrow(all));
        slope.set(0, T::narrow(sloped));
    }
}

/// # Safety
/// See [`softmax`].
#[inline(always)]
unsafe fn norm_combine<T: Float>(p: Pointers, len: usize, _: &Params) {
    let [result, g, x, a, b, mean, c] = rows::<T>(p);
    // SAFETY: as in `softmax`.
    unsafe {
        let [a, b, mean, c] = [a, b, mean, c].map(|number| number.get(0));
        for i in 0..len {
            result.set(i, a * g.get(i) + b * (x.get(i) - mean) + c);
        }
    }
}
