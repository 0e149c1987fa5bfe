//! Addresses by index tensors: what gathers and scatters share.

use crate::operand::{BLOCK, Block, Operand, Staging};
use crate::par::par_for;
use crate::simd::vectorized;
use osteon_spec::{DType, Layout, Plan};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 14;

/// An index tensor: which element of one dim each position takes.
#[derive(Debug)]
pub struct Index {
    ptr: *const u8,
    dtype: DType,
    plan: Plan<1>,
    size: usize,
    stride: isize,
}

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
        let size = self.size as i64;
        let low = if wrap { -size } else { 0 };
        let first = AtomicUsize::new(usize::MAX);
        let me = Threads(self);
        par_for(self.plan.numel(), GRAIN, |range| {
            let (me, first) = (&me, &first);
            // SAFETY: the caller's contract.
            unsafe {
                me.0.for_each_block(range, |start, block| {
                    let bad = |v: i64| v < low || v >= size;
                    let any = vectorized(
                        #[inline(always)]
                        || block.iter().fold(false, |any, &v| any | bad(v)),
                    );
                    if any {
                        let i = block.iter().position(|&v| bad(v)).unwrap_or(0);
                        first.fetch_min(start + i, Ordering::Relaxed);
                    }
                });
            }
        });
        let first = first.into_inner();
        let mut found = None;
        if first < self.plan.numel() {
            // SAFETY: the caller's contract.
            unsafe {
                self.for_each_block(first..first + 1, |_, block| found = Some((first, block[0])));
            }
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

/// The slices of a block of positions: byte offsets in destination and source.
pub(crate) struct Starts<'a> {
    pub(crate) dst: &'a [isize],
    pub(crate) src: &'a [isize],
}

impl Indexed<'_> {
    /// Calls `f` with blocks of positions, in order, and the elements of each slice to do. Threads
    /// share positions where their order does not matter: those that are read, and of those that are written to the
    /// indices along a dim that no index moves along. Otherwise they share the elements of a slice.
    ///
    /// # Safety
    /// The indices may be read, and are in range.
    pub(crate) unsafe fn for_each_block(
        &self,
        side: Side,
        f: impl Fn(&Starts<'_>, Range<usize>) + Sync,
    ) {
        let (positions, elements) = (self.positions.numel(), self.slice.numel());
        if positions == 0 || elements == 0 {
            return;
        }
        let me = Threads(self);
        // Positions that are one thread's: with the same element of the outermost dim nothing else meets.
        let outer = self.positions.dims().last();
        let together = match outer {
            _ if side == Side::Source => 1,
            Some(dim) if dim.strides[0] != 0 => positions / dim.size,
            _ => positions,
        };
        let units = positions / together;
        if units >= elements {
            par_for(units, (GRAIN / elements / together).max(1), |range| {
                let me = &me;
                let range = range.start * together..range.end * together;
                // SAFETY: the caller's contract.
                unsafe { me.0.blocks(side, range, |starts| f(starts, 0..elements)) };
            });
        } else {
            par_for(elements, (GRAIN / positions).max(64), |range| {
                let me = &me;
                // SAFETY: the caller's contract.
                unsafe {
                    me.0.blocks(side, 0..positions, |starts| f(starts, range.clone()))
                };
            });
        }
    }

    /// # Safety
    /// The indices may be read, and are in range.
    unsafe fn blocks(&self, side: Side, range: Range<usize>, f: impl Fn(&Starts<'_>)) {
        let mut offsets = [[0isize; BLOCK]; 2];
        for start in range.clone().step_by(BLOCK) {
            let part = start..range.end.min(start + BLOCK);
            let len = part.len();
            let mut i = 0;
            self.positions
                .for_each_run_in(part.clone(), |at, run, strides| {
                    for j in 0..run as isize {
                        offsets[0][i] = at[0] + j * strides[0];
                        offsets[1][i] = at[1] + j * strides[1];
                        i += 1;
                    }
                });
            for index in self.indices {
                // SAFETY: the caller's contract.
                unsafe {
                    index.for_each_block(part.clone(), |_, values| {
                        let offsets = &mut offsets[side as usize];
                        vectorized(
                            #[inline(always)]
                            || {
                                for (offset, &v) in offsets.iter_mut().zip(values) {
                                    let v = if v < 0 { v + index.size as i64 } else { v };
                                    debug_assert!((0..index.size as i64).contains(&v));
                                    *offset += v as isize * index.stride;
                                }
                            },
                        );
                    });
                }
            }
            f(&Starts {
                dst: &offsets[0][..len],
                src: &offsets[1][..len],
            });
        }
    }
}

/// What several threads look at.
struct Threads<T>(T);

// SAFETY: the pointers within are only read through, and nobody writes the indices meanwhile.
unsafe impl<T> Sync for Threads<T> {}
