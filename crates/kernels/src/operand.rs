//! Operands in the form that a loop wants: dense and of its dtype, block by block.

use crate::cast::cast_loop;
use crate::kernel::{Loop, Params};
use crate::runs::move_run;
use crate::transpose::transpose_matrix;
use osteon_spec::{DType, Plan};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements in a block: enough to hide the cost of setting one up, and few enough that the blocks
/// of all operands stay in the first-level cache.
pub(crate) const BLOCK: usize = 1024;

/// A block on the stack: room for [`BLOCK`] elements of any dtype.
#[repr(C, align(64))]
pub(crate) struct Block(MaybeUninit<[u8; BLOCK * 16]>);

impl Block {
    pub(crate) const NEW: Block = Block(MaybeUninit::uninit());

    pub(crate) fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// An operand's block, and the one element that fills it, so that the next part need not fill it
/// again.
pub(crate) struct Staging<'a> {
    /// Elsewhere, because something that is uninitialised only in part may be made as zeros, all of it.
    block: &'a mut Block,
    constant: Option<(*mut u8, usize)>,
}

impl Staging<'_> {
    pub(crate) fn new(block: &mut Block) -> Staging<'_> {
        Staging {
            block,
            constant: None,
        }
    }

    /// The block, for other uses.
    pub(crate) fn block(&mut self) -> &mut Block {
        self.constant = None;
        self.block
    }
}

/// An operand, walked on its own: in the same order of elements as the others, but in runs as long
/// as its own strides allow.
pub(crate) struct Operand {
    pub(crate) ptr: *mut u8,
    plan: Plan<1>,
    width: usize,
    /// Bytes of an element of the loop's.
    loop_width: usize,
    /// The conversion between the operand and the loop, in the direction that it is used.
    convert: Option<Loop<2>>,
    /// A conversion before that one.
    first: Option<Loop<2>>,
}

impl Operand {
    /// An operand of dtype `own` that is converted `from` one dtype `to` another, one of which is
    /// its own and the other the loop's, by way of a third if one is given.
    pub(crate) fn new(
        ptr: *mut u8,
        plan: Plan<1>,
        own: DType,
        from: DType,
        via: Option<DType>,
        to: DType,
    ) -> Operand {
        let last = via.unwrap_or(from);
        Operand {
            ptr,
            plan,
            width: own.size(),
            loop_width: if own == from { to.size() } else { from.size() },
            convert: (last != to).then(|| cast_loop(last, to)),
            first: via.map(|via| cast_loop(from, via)),
        }
    }

    /// An input of dtype `own` for a loop that takes `wanted`.
    pub(crate) fn input(ptr: *const u8, plan: Plan<1>, own: DType, wanted: DType) -> Operand {
        Operand::new(ptr.cast_mut(), plan, own, own, None, wanted)
    }

    /// The elements of this part of the walk in memory, where they are as the loop wants them.
    pub(crate) fn in_loop_form(&self, part: &Range<usize>) -> Option<*mut u8> {
        if self.convert.is_some() {
            None
        } else {
            self.dense(part)
        }
    }

    /// The elements of this part, where they are one dense run.
    fn dense(&self, part: &Range<usize>) -> Option<*mut u8> {
        let inner = self.plan.inner();
        let one_run = part.len() <= inner.size - part.start % inner.size;
        let dense = inner.strides[0] == self.width as isize || part.len() == 1;
        (one_run && dense).then(|| self.at(part.start))
    }

    /// Element `i` of the walk.
    fn at(&self, i: usize) -> *mut u8 {
        let mut at = self.ptr;
        self.plan.for_each_run_in(i..i + 1, |[offset], _, _| {
            // A position of the plan, so within the operand.
            at = self.ptr.wrapping_offset(offset);
        });
        at
    }

    /// The elements of this part as the loop wants them: in memory, or in the block.
    ///
    /// # Safety
    /// The part's positions may be read; its length is at most `BLOCK`.
    pub(crate) unsafe fn load(
        &self,
        part: &Range<usize>,
        staging: &mut Staging<'_>,
        scratch: &mut Block,
    ) -> *mut u8 {
        let len = part.len();
        // SAFETY: for the whole body: the caller's contract, and `len` elements of any dtype fit a
        // block.
        unsafe {
            if let Some(ptr) = self.dense(part) {
                return if self.convert.is_some() {
                    self.converted(ptr, len, staging.block(), scratch)
                } else {
                    ptr
                };
            }
            let inner = self.plan.inner();
            if inner.strides[0] == 0 && part.start / inner.size == (part.end - 1) / inner.size {
                // One element along the whole part: a number, or a column that is broadcast.
                let at = self.at(part.start);
                if staging
                    .constant
                    .is_none_or(|(filled, with)| filled != at || with < len)
                {
                    staging.constant = Some((at, len));
                    let mut second = Block::NEW;
                    let one = self.converted(at, 1, scratch, &mut second);
                    let width = self.loop_width;
                    move_run(staging.block.ptr(), width as isize, one, 0, len, width);
                }
                return staging.block.ptr();
            }
            if self.convert.is_none() {
                self.gather(part, staging.block().ptr());
                staging.block.ptr()
            } else {
                self.gather(part, scratch.ptr());
                let mut second = Block::NEW;
                self.converted(scratch.ptr(), len, staging.block(), &mut second)
            }
        }
    }

    /// `len` dense elements as the loop wants them: where they are if that is so, else in `block`.
    ///
    /// # Safety
    /// `len` elements lie at `from`, which is in neither block.
    unsafe fn converted(
        &self,
        from: *mut u8,
        len: usize,
        block: &mut Block,
        scratch: &mut Block,
    ) -> *mut u8 {
        let mut from = from;
        // SAFETY: the caller's contract; `len` elements of any dtype fit a block.
        unsafe {
            if let Some(first) = self.first {
                first([scratch.ptr(), from], len, &Params::NONE);
                from = scratch.ptr();
            }
            if let Some(convert) = self.convert {
                convert([block.ptr(), from], len, &Params::NONE);
                from = block.ptr();
            }
        }
        from
    }

    /// Collects the elements of this part at `to`, dense.
    ///
    /// # Safety
    /// The part's positions may be read, and `to` has room.
    unsafe fn gather(&self, part: &Range<usize>, to: *mut u8) {
        let (mut to, width) = (to, self.width);
        if let [inner, outer, ..] = self.plan.dims()
            && outer.strides[0] == width as isize
            && part.start.is_multiple_of(inner.size)
            && part.len().is_multiple_of(inner.size)
            && part.start / inner.size % outer.size + part.len() / inner.size <= outer.size
        {
            // Whole rows of an operand that lies across.
            let (rows, cols) = (part.len() / inner.size, inner.size);
            let row = (cols * width) as isize;
            // SAFETY: the part's positions; `to` has room for it.
            unsafe {
                let from = self.at(part.start);
                transpose_matrix((to, row), (from, inner.strides[0]), rows, cols, width);
            }
            return;
        }
        self.plan
            .for_each_run_in(part.clone(), |[offset], len, [stride]| {
                // SAFETY: the run's positions; `to` has room for the rest of the part.
                unsafe {
                    move_run(
                        to,
                        width as isize,
                        self.ptr.offset(offset),
                        stride,
                        len,
                        width,
                    );
                    to = to.add(len * width);
                }
            });
    }

    /// Writes a block of results to this part.
    ///
    /// # Safety
    /// The block holds the part's results, and its positions may be written.
    pub(crate) unsafe fn store(&self, part: &Range<usize>, block: &mut Block, scratch: &mut Block) {
        let (mut from, mut to, width) = (block.ptr(), scratch.ptr(), self.width);
        for step in [self.first, self.convert].into_iter().flatten() {
            // SAFETY: one block holds the results; as many elements fit the other.
            unsafe { step([to, from], part.len(), &Params::NONE) };
            (from, to) = (to, from);
        }
        self.plan
            .for_each_run_in(part.clone(), |[offset], len, [stride]| {
                // SAFETY: the run's positions; the block holds the rest of the part.
                unsafe {
                    move_run(
                        self.ptr.offset(offset),
                        stride,
                        from,
                        width as isize,
                        len,
                        width,
                    );
                    from = from.add(len * width);
                }
            });
    }
}
