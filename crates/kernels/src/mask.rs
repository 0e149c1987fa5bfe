//! Elements that are true: counting them, where they are, and moving them.

use crate::operand::{BLOCK, Block, Operand, Staging};
use crate::par::par_for;
use crate::simd::vectorized;
use osteon_spec::{DType, Plan};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Parts of a walk that threads share: how many elements are true before each of them says where its own go.
const PARTS: usize = 64;

/// Elements of a part, at least.
const GRAIN: usize = 1 << 13;

/// Calls `f(position, truth)` for blocks of this range of an operand in the order of its plan; a byte is 1 where
/// the element is true (not zero), else 0.
///
/// # Safety
/// The walk contract.
unsafe fn for_each_block(
    plan: &Plan<1>,
    ptr: *const u8,
    dtype: DType,
    range: Range<usize>,
    mut f: impl FnMut(usize, &[u8]),
) {
    // A `bool`'s bytes may be anything; as `uint8` numbers, they turn into true and false.
    let own = if dtype == DType::Bool {
        DType::U8
    } else {
        dtype
    };
    let operand = Operand::input(ptr, plan.clone(), own, DType::Bool);
    let mut block = Block::NEW;
    let mut staging = Staging::new(&mut block);
    let mut scratch = Block::NEW;
    for start in range.clone().step_by(BLOCK) {
        let part = start..range.end.min(start + BLOCK);
        // SAFETY: the caller's contract; `load` gives a byte for each element of the part.
        unsafe {
            let truth = operand.load(&part, &mut staging, &mut scratch);
            f(start, std::slice::from_raw_parts(truth, part.len()));
        }
    }
}

/// Calls `f` with the places of the bytes that are not zero, in order, of at most [`BLOCK`].
#[inline(always)]
fn for_each_set(truth: impl Iterator<Item = bool>, mut f: impl FnMut(usize)) {
    // A list first: whether a byte is set cannot be foreseen, how long the list is can.
    let mut places = [0u16; BLOCK];
    let mut n = 0;
    for (i, t) in truth.enumerate() {
        // At most as many as bytes before this one.
        places[n % BLOCK] = i as u16;
        n += t as usize;
    }
    places[..n].iter().for_each(|&i| f(i as usize));
}

/// How many elements of this range are true.
///
/// # Safety
/// The walk contract.
unsafe fn count_true(plan: &Plan<1>, ptr: *const u8, dtype: DType, range: Range<usize>) -> usize {
    let mut count = 0;
    if dtype.size() > 1 || dtype.is_float() {
        // SAFETY: the caller's contract.
        unsafe {
            for_each_block(plan, ptr, dtype, range, |_, truth| {
                count += nonzero_bytes(truth)
            });
        }
        return count;
    }
    plan.for_each_run_in(range, |[at], len, [step]| {
        // SAFETY: a run of the plan.
        let first = unsafe { ptr.offset(at) };
        count += match step {
            // SAFETY: the same: its bytes are neighbours.
            1 => nonzero_bytes(unsafe { std::slice::from_raw_parts(first, len) }),
            // SAFETY: the same.
            0 => len * usize::from(unsafe { *first } != 0),
            _ => (0..len as isize)
                // SAFETY: the same.
                .filter(|i| unsafe { *first.offset(i * step) } != 0)
                .count(),
        };
    });
    count
}

/// The number of bytes that are not zero.
fn nonzero_bytes(bytes: &[u8]) -> usize {
    vectorized(
        #[inline(always)]
        || {
            // A block's sum fits 16 bits, which keeps the loop in vectors.
            let count = |block: &[u8]| block.iter().map(|&b| u16::from(b != 0)).sum::<u16>();
            bytes
                .chunks(BLOCK)
                .map(|block| usize::from(count(block)))
                .sum()
        },
    )
}

/// How many elements of an operand are true, in all and before each part of its walk.
struct Counts {
    /// Before each part, and at last in all.
    before: [usize; PARTS + 1],
    part: usize,
}

/// What is counted and moved through pointers, by several threads.
struct Shared<T>(T);

// SAFETY: threads write disjoint elements, and nobody writes what is read.
unsafe impl<T> Sync for Shared<T> {}

impl Counts {
    /// # Safety
    /// The walk contract.
    unsafe fn new(plan: &Plan<1>, ptr: *const u8, dtype: DType) -> Counts {
        let part = plan.numel().div_ceil(PARTS).max(GRAIN);
        let counts = [const { AtomicUsize::new(0) }; PARTS];
        let ptr = Shared(ptr);
        par_for(plan.numel().div_ceil(part), 1, |parts| {
            let ptr = &ptr;
            for p in parts {
                let range = p * part..plan.numel().min((p + 1) * part);
                // SAFETY: the caller's contract.
                let count = unsafe { count_true(plan, ptr.0, dtype, range) };
                counts[p].store(count, Ordering::Relaxed);
            }
        });
        let mut before = [0; PARTS + 1];
        for (p, count) in counts.into_iter().enumerate() {
            before[p + 1] = before[p] + count.into_inner();
        }
        Counts { before, part }
    }

    fn total(&self) -> usize {
        self.before[PARTS]
    }

    /// Calls `f` with each part of a walk in which any element is true, and how many are before it.
    fn for_each_part(&self, numel: usize, f: impl Fn(Range<usize>, usize) + Sync) {
        if self.total() == 0 {
            return;
        }
        par_for(numel.div_ceil(self.part), 1, |parts| {
            for p in parts.filter(|&p| self.before[p + 1] > self.before[p]) {
                f(
                    p * self.part..numel.min((p + 1) * self.part),
                    self.before[p],
                );
            }
        });
    }
}

/// The number of elements that are not zero.
///
/// # Safety
/// The walk contract (see the [crate] documentation).
pub unsafe fn count_nonzero(plan: &Plan<1>, ptr: *const u8, dtype: DType) -> usize {
    // SAFETY: the caller's contract.
    unsafe { Counts::new(plan, ptr, dtype) }.total()
}

/// Writes the coordinates of every element that is not zero, in row-major order of `shape`:
/// coordinate `d` of the `n`th at `out + n·strides[0] + d·strides[1]` (in bytes), as `int64`. The
/// plan is in row-major order ([`Plan::row_major`]). Writes nothing where there are not `rows` of them, and says so.
///
/// # Safety
/// The walk contract; `out` has room for so many rows of `shape.len()` coordinates.
pub unsafe fn nonzero(
    shape: &[usize],
    plan: &Plan<1>,
    ptr: *const u8,
    dtype: DType,
    rows: usize,
    out: *mut u8,
    strides: [isize; 2],
) -> bool {
    // SAFETY: the caller's contract.
    let counts = unsafe { Counts::new(plan, ptr, dtype) };
    if counts.total() != rows {
        return false;
    }
    let ptrs = Shared((ptr, out));
    counts.for_each_part(plan.numel(), |range, before| {
        let &Shared((ptr, out)) = &ptrs;
        let mut row = out.wrapping_offset(before as isize * strides[0]);
        let Some((&width, outer)) = shape.split_last() else {
            return;
        };
        // The coordinates of the row that holds the element before, but for the last, and where that row begins.
        let (mut line, mut begin) = (usize::MAX, 0);
        let mut coordinates: SmallVec<[i64; 8]> = SmallVec::from_elem(0, outer.len());
        // SAFETY: the caller's contract: a row for every element that is true.
        unsafe {
            for_each_block(plan, ptr, dtype, range, |start, truth| {
                for_each_set(truth.iter().map(|&t| t != 0), |i| {
                    let at = start + i;
                    if line == usize::MAX || at - begin >= width {
                        line = at / width;
                        begin = line * width;
                        let mut rest = line;
                        for (c, &size) in coordinates.iter_mut().zip(outer).rev() {
                            *c = (rest % size) as i64;
                            rest /= size;
                        }
                    }
                    let mut to = row;
                    for &c in &coordinates {
                        to.cast::<i64>().write_unaligned(c);
                        to = to.wrapping_offset(strides[1]);
                    }
                    to.cast::<i64>().write_unaligned((at - begin) as i64);
                    row = row.wrapping_offset(strides[0]);
                });
            });
        }
    });
    true
}

/// Copies the elements of operand 0 at which the mask, operand 1 (`bool` or `uint8`), is true to
/// `dst`, dense, in row-major order: `masked_select`. The plan is in that order
/// ([`Plan::row_major`]). Copies nothing where there are not `count` of them, and says so.
///
/// # Safety
/// The walk contract; `dst` has room for `count` elements of `width` bytes.
pub unsafe fn masked_select(
    plan: &Plan<2>,
    dst: *mut u8,
    src: *const u8,
    mask: *const u8,
    width: usize,
    count: usize,
) -> bool {
    let moved = Masked {
        plan,
        masked: src.cast_mut(),
        mask,
        dense: dst,
    };
    // SAFETY: the caller's contract.
    unsafe { moved.run(width, |n| n == count, true) }
}

/// Copies elements from `src`, dense, to the elements of operand 0 at which the mask, operand 1
/// (`bool` or `uint8`), is true, in row-major order: `masked_scatter`. The plan is in that order
/// ([`Plan::row_major`]). Copies nothing where there are more than `count` of them, and says so.
///
/// # Safety
/// The walk contract; `src` has `count` elements of `width` bytes.
pub unsafe fn masked_scatter(
    plan: &Plan<2>,
    dst: *mut u8,
    mask: *const u8,
    src: *const u8,
    width: usize,
    count: usize,
) -> bool {
    let moved = Masked {
        plan,
        masked: dst,
        mask,
        dense: src.cast_mut(),
    };
    // SAFETY: the caller's contract.
    unsafe { moved.run(width, |n| n <= count, false) }
}

/// A move between the elements that a mask picks and as many dense ones.
struct Masked<'a> {
    plan: &'a Plan<2>,
    masked: *mut u8,
    mask: *const u8,
    dense: *mut u8,
}

impl Masked<'_> {
    /// # Safety
    /// The contract of [`masked_select`], or of [`masked_scatter`].
    unsafe fn run(self, width: usize, fits: impl Fn(usize) -> bool, select: bool) -> bool {
        // SAFETY: the caller's contract.
        let counts = unsafe { Counts::new(&self.plan.select([1]), self.mask, DType::Bool) };
        if !fits(counts.total()) {
            return false;
        }
        let me = Shared(self);
        // SAFETY: the caller's contract.
        counts.for_each_part(me.0.plan.numel(), |range, before| unsafe {
            let me = &me;
            match width {
                1 => me.0.part::<u8>(range, before, select),
                2 => me.0.part::<u16>(range, before, select),
                4 => me.0.part::<u32>(range, before, select),
                8 => me.0.part::<u64>(range, before, select),
                16 => me.0.part::<u128>(range, before, select),
                _ => panic!("no element has {width} bytes"),
            }
        });
        true
    }

    /// Moves the elements of a part of the walk, before which so many are true.
    ///
    /// # Safety
    /// As [`Masked::run`], of elements of `T`'s size.
    unsafe fn part<T: Copy>(&self, range: Range<usize>, before: usize, select: bool) {
        let mut dense = self.dense.cast::<T>().wrapping_add(before);
        self.plan
            .for_each_run_in(range, |[at, m], len, [step, mask_step]| {
                for start in (0..len).step_by(BLOCK) {
                    let positions = start as isize..len.min(start + BLOCK) as isize;
                    // SAFETY: positions of the plan, and as many dense elements.
                    let truth =
                        positions.map(|i| unsafe { *self.mask.offset(m + i * mask_step) } != 0);
                    // SAFETY: the same.
                    for_each_set(truth, |i| unsafe {
                        let at = self
                            .masked
                            .offset(at + (start + i) as isize * step)
                            .cast::<T>();
                        if select {
                            dense.write_unaligned(at.read_unaligned());
                        } else {
                            at.write_unaligned(dense.read_unaligned());
                        }
                        dense = dense.wrapping_add(1);
                    });
                }
            });
    }
}
