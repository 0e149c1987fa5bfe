//! Attention: a block of queries at a time, whose scores stay in the caches, so that no matrix of all scores is ever made.

use crate::contract::{Axis, Contraction};
use crate::element::Bool;
use crate::math::{Exponentials, Float};
use crate::par::{alone, num_threads, par_for};
use crate::simd::{Isa, Task, vectorized_task};
use osteon_spec::{DType, Plan};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the scores of a block: they stay in the second-level cache.
const SCORES: usize = 256 << 10;
/// Queries of a block: fewer would not pay for packing the keys, more gain nothing.
const QUERIES: [usize; 2] = [16, 128];
/// Multiplications that are worth a thread.
const GRAIN: usize = 1 << 17;
/// Partial maxima and sums.
const LANES: usize = 16;
/// Bytes to which scratch is aligned.
const ALIGN: usize = 64;

/// `softmax(query · keyᵀ · scale + mask) · value` of `float32` or `float64`, heads beside each other.
#[derive(Debug)]
pub struct Attention {
    /// Where each head's result, query, key, value and mask begin.
    pub heads: Plan<5>,
    /// Queries, keys, elements of a key, elements of a value.
    pub sizes: [usize; 4],
    /// Bytes between rows, and between the elements of a row, of result, query, key, value and mask.
    pub strides: [[isize; 2]; 5],
    /// The factor of scores.
    pub scale: f64,
    /// What the mask is: `bool`, where a query may look, or what is added to its scores; none at all.
    pub mask: Option<DType>,
    /// Whether a query looks at no key after it.
    pub is_causal: bool,
    /// The dtype of all but the mask.
    pub dtype: DType,
}

impl Attention {
    /// The queries of a block.
    fn block(&self) -> usize {
        let [queries, keys, ..] = self.sizes;
        let rows = SCORES / (keys * self.dtype.size()).max(1);
        rows.clamp(QUERIES[0], QUERIES[1]).min(queries)
    }

    /// The two products of a block of so many queries, the scores being a dense matrix.
    fn products(&self, rows: usize) -> [Contraction; 2] {
        let [_, keys, width, made] = self.sizes;
        let [out, query, key, value, _] = self.strides;
        let size = self.dtype.size() as isize;
        let line = keys as isize * size;
        let axis = |size, strides| Axis { size, strides };
        let product = |axes: [Axis; 2], summed| {
            // One head is one thread's.
            alone(|| Contraction::new(self.dtype, &axes, &[summed])).expect("floats have products")
        };
        [
            product(
                [
                    axis(rows, [line, query[0], 0]),
                    axis(keys, [size, 0, key[0]]),
                ],
                axis(width.max(1), [0, query[1], key[1]]),
            ),
            product(
                [
                    axis(rows, [out[0], line, 0]),
                    axis(made, [out[1], 0, value[1]]),
                ],
                axis(keys, [0, size, value[0]]),
            ),
        ]
    }

    fn blocks(&self) -> usize {
        self.sizes[0].div_ceil(self.block().max(1))
    }

    fn workers(&self) -> usize {
        let [queries, keys, width, made] = self.sizes;
        let tasks = self.heads.numel() * self.blocks();
        let work = [self.heads.numel(), queries, keys, width + made];
        let work = work.into_iter().fold(1, usize::saturating_mul);
        num_threads().min(work.div_ceil(GRAIN)).min(tasks).max(1)
    }

    /// Bytes of a worker's scratch: scores, and what the products need.
    fn parts(&self) -> [usize; 2] {
        let scores = self.block() * self.sizes[1] * self.dtype.size();
        let last = self.sizes[0] % self.block().max(1);
        let products = [self.block(), last].into_iter().filter(|&rows| rows > 0);
        let most = products
            .flat_map(|rows| self.products(rows))
            .map(|p| p.scratch())
            .max();
        [scores, most.unwrap_or(0)].map(|bytes| bytes.next_multiple_of(ALIGN))
    }

    /// The bytes of scratch that [`Attention::run`] needs.
    pub fn scratch(&self) -> usize {
        self.workers() * self.parts().iter().sum::<usize>() + ALIGN
    }

    /// Writes the results.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation) of all positions of heads, rows and their elements; the result
    /// overlaps no operand. A mask's pointer is not used where there is none.
    ///
    /// # Panics
    /// When there is less scratch than [`Attention::scratch`] says.
    pub unsafe fn run(&self, ptrs: [*mut u8; 5], scratch: &mut [MaybeUninit<u8>]) {
        let workers = self.workers();
        let parts = self.parts();
        let share: usize = parts.iter().sum();
        assert!(
            scratch.len() >= workers * share + ALIGN,
            "too little scratch"
        );
        let tasks = self.heads.numel() * self.blocks();
        let base = scratch.as_mut_ptr().cast::<u8>();
        let base = base.wrapping_add(base.align_offset(ALIGN));
        let shared = Shared { ptrs, base };
        let next = AtomicUsize::new(0);
        par_for(workers, 1, |numbers| {
            let shared = &shared;
            for number in numbers {
                let own = shared.base.wrapping_add(number * share);
                let whole = self.products(self.block());
                loop {
                    let task = next.fetch_add(1, Ordering::Relaxed);
                    if task >= tasks {
                        break;
                    }
                    // SAFETY: the caller's contract; blocks are disjoint, and each worker has its own scratch.
                    unsafe { self.task(task, shared.ptrs, own, parts, &whole) };
                }
            }
        });
    }

    /// One block of one head.
    ///
    /// # Safety
    /// The contract of [`Attention::run`]; nobody else does this block or uses this scratch.
    unsafe fn task(
        &self,
        task: usize,
        mut ptrs: [*mut u8; 5],
        scratch: *mut u8,
        parts: [usize; 2],
        whole: &[Contraction; 2],
    ) {
        let (head, block) = (task / self.blocks(), task % self.blocks());
        self.heads.for_each_run_in(head..head + 1, |offsets, _, _| {
            for (ptr, offset) in ptrs.iter_mut().zip(offsets) {
                *ptr = ptr.wrapping_offset(offset);
            }
        });
        let first = block * self.block();
        let rows = self.block().min(self.sizes[0] - first);
        for k in [0, 1, 4] {
            ptrs[k] = ptrs[k].wrapping_offset(self.strides[k][0] * first as isize);
        }
        let rest;
        let [scored, mixed] = if rows == self.block() {
            whole
        } else {
            rest = self.products(rows);
            &rest
        };
        let [out, query, key, value, mask] = ptrs;
        let scores = scratch;
        // SAFETY: the caller's contract; the scratch has both parts, the first of them room for these scores.
        unsafe {
            let more = scratch.wrapping_add(parts[0]).cast::<MaybeUninit<u8>>();
            let more = std::slice::from_raw_parts_mut(more, parts[1]);
            if self.sizes[2] == 0 {
                scores.write_bytes(0, parts[0]);
            } else {
                scored.run([scores, query, key], more);
            }
            for i in 0..rows {
                let mask = mask.wrapping_offset(self.strides[4][0] * i as isize);
                match self.dtype {
                    DType::F32 => self.weights::<f32>(scores, mask, i, first + i),
                    _ => self.weights::<f64>(scores, mask, i, first + i),
                }
            }
            mixed.run([out, scores, value], more);
        }
    }

    /// The scores of row `i` become weights; its mask begins at `mask`, and it is query number `query`.
    ///
    /// # Safety
    /// As [`Attention::task`].
    unsafe fn weights<T: Float>(&self, scores: *mut u8, mask: *const u8, i: usize, query: usize) {
        let keys = self.sizes[1];
        // SAFETY: the row lies in the scores.
        let row = unsafe { std::slice::from_raw_parts_mut(scores.cast::<T>().add(i * keys), keys) };
        vectorized_task(Weights {
            all: self,
            row,
            mask,
            query,
        });
    }
}

/// The scores of a query, which become weights; the mask has an element for each, if there is one.
struct Weights<'a, T> {
    all: &'a Attention,
    row: &'a mut [T],
    mask: *const u8,
    query: usize,
}

impl<T: Float> Task for Weights<'_, T> {
    type Result = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Weights {
            all,
            row,
            mask,
            query,
        } = self;
        let (least, scale) = (-T::INFINITY, T::of(all.scale));
        for x in &mut *row {
            *x = *x * scale;
        }
        let step = all.strides[4][1];
        let at = |j: usize| mask.wrapping_offset(step * j as isize);
        match all.mask {
            Some(DType::Bool) => {
                for (j, x) in row.iter_mut().enumerate() {
                    // SAFETY: the mask has an element for each key.
                    let seen = unsafe { at(j).cast::<Bool>().read() }.get();
                    *x = if seen { *x } else { least };
                }
            }
            Some(_) if step == size_of::<T>() as isize => {
                for (j, x) in row.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *x = *x + unsafe { mask.cast::<T>().add(j).read_unaligned() };
                }
            }
            Some(_) => {
                for (j, x) in row.iter_mut().enumerate() {
                    // SAFETY: as above.
                    *x = *x + unsafe { at(j).cast::<T>().read_unaligned() };
                }
            }
            None => {}
        }
        if all.is_causal && query + 1 < row.len() {
            row[query + 1..].fill(least);
        }
        let max = folded(row, least, |a, b| if b > a { b } else { a });
        if all.mask.is_some() && max == least {
            // No key may be looked at: a softmax of nothing is none.
            row.fill(T::of(0.0));
            return;
        }
        for x in &mut *row {
            *x = I::lifted_exp(*x - max);
        }
        let share = T::of(1.0) / folded(row, T::of(0.0), |a, b| a + b);
        for x in &mut *row {
            *x = *x * share;
        }
    }
}

struct Shared {
    ptrs: [*mut u8; 5],
    base: *mut u8,
}

// SAFETY: threads read the operands and write disjoint results, each with scratch of its own.
unsafe impl Sync for Shared {}

/// All elements folded into one, lane by lane.
#[inline(always)]
fn folded<T: Copy>(row: &[T], start: T, f: impl Fn(T, T) -> T) -> T {
    let mut lanes = [start; LANES];
    let (whole, rest) = row.as_chunks::<LANES>();
    for chunk in whole {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = f(*lane, x);
        }
    }
    let all = lanes.into_iter().chain(rest.iter().copied());
    all.fold(start, f)
}
