//! Addresses by index tensors: what gathers and scatters share.

use crate::operand::{BLOCK, Block, Operand, Staging};
use crate::par::{num_threads, par_for};
use crate::simd::vectorized;
use osteon_spec::{DType, Layout, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 13;

/// Elements of slices that threads share, at least.
const MANY: usize = 64;

/// An index tensor: which element of one dim each position takes.
#[derive(Debug)]
pub struct Index {
    ptr: *const u8,
    dtype: DType,
    plan: Plan<1>,
    size: usize,
    stride: isize,
}

// SAFETY: the pointer is only read through, by functions whose callers see to it that nobody writes meanwhile.
unsafe impl Sync for Index {}

impl Index {
    /// The indices at `ptr`, `int64` or `int32`, broadcast to the shape of all positions, for a dim
    /// of `size` elements that are `stride` bytes apart.
    ///
    /// # Panics
    /// When the layout does not broadcast to the shape.
    pub fn new(
        shape: &[usize],
        layout: &Layout,
        ptr: *const u8,
        dtype: DType,
        size: usize,
        stride: isize,
    ) -> Index {
        let plan = Plan::row_major(shape, [(layout, dtype.size())]);
        Index {
            ptr,
            dtype,
            plan,
            size,
            stride,
        }
    }

    /// The first index that is out of range, by its position in row-major order, and its value: the
    /// test before anything is written. With `wrap`, negative indices count from the end.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation), of the indices.
    pub unsafe fn first_out_of_range(&self, wrap: bool) -> Option<(usize, i64)> {
        if self.plan.numel() == 0 {
            return None;
        }
        let size = self.size as i64;
        let low = if wrap { -size } else { 0 };
        // Each index once: dims that repeat them need not be looked at.
        let moving = self.plan.dims().iter().filter(|d| d.strides != [0]);
        let distinct = Plan::from_dims(self.plan.offsets(), moving.copied());
        let any = AtomicBool::new(false);
        par_for(distinct.numel(), GRAIN, |range| {
            let any = &any;
            distinct.for_each_run_in(range, |[at], len, [step]| {
                // SAFETY: the caller's contract.
                let outside = unsafe {
                    let from = self.ptr.offset(at);
                    match self.dtype {
                        DType::I32 => any_outside::<i32>(from, len, step, low..size),
                        _ => any_outside::<i64>(from, len, step, low..size),
                    }
                };
                if outside {
                    any.store(true, Ordering::Relaxed);
                }
            });
        });
        if !any.into_inner() {
            return None;
        }
        let mut found = None;
        // SAFETY: the caller's contract.
        unsafe {
            self.for_each_block(0..self.plan.numel(), |start, block| {
                let first = || block.iter().position(|v| !(low..size).contains(v));
                if found.is_none() {
                    found = first().map(|i| (start + i, block[i]));
                }
            });
        }
        found
    }

    /// Calls `f` with the indices of this range, block by block, and the position of each block.
    ///
    /// # Safety
    /// The indices may be read.
    unsafe fn for_each_block(&self, range: Range<usize>, mut f: impl FnMut(usize, &[i64])) {
        let operand = Operand::input(self.ptr, self.plan.clone(), self.dtype, DType::I64);
        let mut block = Block::NEW;
        let mut staging = Staging::new(&mut block);
        let mut scratch = Block::NEW;
        let mut values = [0i64; BLOCK];
        for start in range.clone().step_by(BLOCK) {
            let part = start..range.end.min(start + BLOCK);
            // SAFETY: the caller's contract; `load` gives as many `i64` as the part has.
            unsafe {
                let from = operand.load(&part, &mut staging, &mut scratch);
                let to = values.as_mut_ptr().cast();
                std::ptr::copy_nonoverlapping(from, to, part.len() * size_of::<i64>());
            }
            f(start, &values[..part.len()]);
        }
    }
}

/// A move in which one side is addressed through index tensors.
///
/// There is a shape of *positions*, to which the indices broadcast; at each position a *slice* of
/// elements moves, whose shape may have no dims. In `index_select(dim, index)` the positions are
/// the index and a slice is everything but `dim`; in `gather` every element is a position of its
/// own.
#[derive(Debug)]
pub struct Indexed<'a> {
    /// Where each position's slice begins in destination and source, without the indices: in
    /// row-major order ([`Plan::row_major`], [`Plan::from_strides`]).
    pub positions: Plan<2>,
    /// The elements of one slice, from its beginning, in any order.
    pub slice: Plan<2>,
    /// The indices; each moves the indexed side by its value times its stride.
    pub indices: &'a [Index],
}

/// Which side of a move the indices belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Destination = 0,
    Source = 1,
}

/// Positions in a row: on both sides in equal steps but for the indices, which move the indexed side.
pub(crate) struct Run {
    /// Byte offsets of the first position, of the side without indices and of the indexed one.
    at: [isize; 2],
    steps: [isize; 2],
    len: usize,
    /// `int64`, so many bytes apart.
    indices: *const u8,
    index_step: isize,
    /// What is added to negative ones, and the bytes that each index is worth.
    size: i64,
    stride: isize,
}

impl Run {
    /// Calls `f` with the byte offsets of each position, of the side without indices and of the indexed one.
    ///
    /// # Safety
    /// The indices may be read, and are in range.
    #[inline(always)]
    pub(crate) unsafe fn for_each(&self, f: impl FnMut(isize, isize)) {
        const DENSE: isize = size_of::<i64>() as isize;
        // SAFETY: the caller's contract.
        unsafe {
            match self.index_step {
                DENSE => self.in_steps(DENSE, f),
                step => self.in_steps(step, f),
            }
        }
    }

    /// # Safety
    /// As [`Run::for_each`].
    #[inline(always)]
    unsafe fn in_steps(&self, index_step: isize, mut f: impl FnMut(isize, isize)) {
        let &Run {
            at,
            steps,
            len,
            indices,
            size,
            stride,
            ..
        } = self;
        for i in 0..len as isize {
            // SAFETY: the caller's contract.
            let v = unsafe {
                indices
                    .offset(i * index_step)
                    .cast::<i64>()
                    .read_unaligned()
            };
            let v = v + (v >> 63 & size);
            debug_assert!(size == 0 || (0..size).contains(&v));
            f(
                at[0] + i * steps[0],
                at[1] + i * steps[1] + v as isize * stride,
            );
        }
    }
}

impl Indexed<'_> {
    /// Whether the elements of a slice are neighbours in the destination, and in the source neighbours or one number:
    /// worth moving together. Otherwise those of neighbouring positions often are.
    pub(crate) fn has_rows(&self, width: usize, of_number: bool) -> bool {
        let [dst, src] = self.slice.inner().strides;
        let width = width as isize;
        self.slice.numel() > 1 && dst == width && (src == width || (of_number && src == 0))
    }

    /// Calls `f` with runs of positions, in order, and the elements of each slice to do, in rows or one by one. Threads share positions where
    /// their order does not matter: those that are read, and of those that are written to the indices along a dim that no
    /// index moves along. Otherwise they share the elements of a slice.
    ///
    /// # Safety
    /// The indices may be read, and are in range.
    pub(crate) unsafe fn for_each_run(
        &self,
        side: Side,
        rows: bool,
        f: impl Fn(&Run, Range<usize>) + Sync,
    ) {
        let (positions, elements) = (self.positions.numel(), self.slice.numel());
        if positions == 0 || elements == 0 {
            return;
        }
        // Positions that are one thread's: with the same element of the outermost dim nothing else meets.
        let outer = self.positions.dims().last();
        let together = match outer {
            _ if side == Side::Source => 1,
            Some(dim) if dim.strides[0] != 0 => positions / dim.size,
            _ => positions,
        };
        let units = positions / together;
        let many = if rows { units } else { MANY };
        if units > 1 && elements <= many {
            par_for(units, (GRAIN / elements / together).max(1), |range| {
                let range = range.start * together..range.end * together;
                // SAFETY: the caller's contract.
                unsafe { self.runs(side, range, |run| f(run, 0..elements)) };
            });
        } else {
            // Of rows, pieces as long as may be: each is an access of its own.
            let share = if rows {
                elements.div_ceil(num_threads())
            } else {
                MANY
            };
            par_for(
                elements,
                (GRAIN / positions).max(MANY).max(share),
                |range| {
                    // SAFETY: the caller's contract.
                    unsafe { self.runs(side, 0..positions, |run| f(run, range.clone())) };
                },
            );
        }
    }

    /// # Safety
    /// The indices may be read, and are in range.
    unsafe fn runs(&self, side: Side, range: Range<usize>, f: impl Fn(&Run)) {
        let sides = |of: [isize; 2]| match side {
            Side::Destination => [of[1], of[0]],
            Side::Source => of,
        };
        if let [index] = self.indices
            && index.dtype == DType::I64
        {
            let mut start = range.start;
            self.positions.for_each_run_in(range, |at, len, steps| {
                let (mut at, steps) = (sides(at), sides(steps));
                let part = start..start + len;
                index.plan.for_each_run_in(part, |[offset], len, [step]| {
                    f(&Run {
                        at,
                        steps,
                        len,
                        indices: index.ptr.wrapping_offset(offset),
                        index_step: step,
                        size: index.size as i64,
                        stride: index.stride,
                    });
                    at = std::array::from_fn(|k| at[k] + len as isize * steps[k]);
                });
                start += len;
            });
            return;
        }
        // Several indices, or narrow ones, become one of bytes.
        let mut moves = [0i64; BLOCK];
        for start in range.clone().step_by(BLOCK) {
            let part = start..range.end.min(start + BLOCK);
            moves.fill(0);
            for index in self.indices {
                // SAFETY: the caller's contract.
                unsafe {
                    index.for_each_block(part.clone(), |_, values| {
                        vectorized(
                            #[inline(always)]
                            || {
                                for (by, &v) in moves.iter_mut().zip(values) {
                                    let v = if v < 0 { v + index.size as i64 } else { v };
                                    debug_assert!((0..index.size as i64).contains(&v));
                                    *by += v * index.stride as i64;
                                }
                            },
                        );
                    });
                }
            }
            let mut done = 0;
            self.positions.for_each_run_in(part, |at, len, steps| {
                f(&Run {
                    at: sides(at),
                    steps: sides(steps),
                    len,
                    indices: moves[done..].as_ptr().cast(),
                    index_step: size_of::<i64>() as isize,
                    size: 0,
                    stride: 1,
                });
                done += len;
            });
        }
    }
}

/// Whether any index is outside of a range.
///
/// # Safety
/// `len` indices may be read from `ptr` on, `step` bytes apart.
unsafe fn any_outside<T: Copy + Into<i64>>(
    ptr: *const u8,
    len: usize,
    step: isize,
    range: Range<i64>,
) -> bool {
    let span = range.end.wrapping_sub(range.start) as u64;
    let outside = |v: T| v.into().wrapping_sub(range.start) as u64 >= span;
    // SAFETY: the caller's contract.
    let at = |i: usize, step| unsafe { ptr.offset(i as isize * step).cast::<T>().read_unaligned() };
    vectorized(
        #[inline(always)]
        || {
            let dense = size_of::<T>() as isize;
            if step == dense {
                (0..len).fold(false, |any, i| any | outside(at(i, dense)))
            } else {
                (0..len).fold(false, |any, i| any | outside(at(i, step)))
            }
        },
    )
}
