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

/// Bytes of a block: [`BLOCK`] elements of any dtype.
pub(crate) const BLOCK_BYTES: usize = BLOCK * 16;

/// A block on the stack: room for [`BLOCK`] elements of any dtype.
#[repr(C, align(64))]
pub(crate) struct Block(MaybeUninit<[u8; BLOCK_BYTES]>);

impl Block {
    pub(crate) const NEW: Block = Block(MaybeUninit::uninit());

    pub(crate) fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// An operand's block, and the element with which it begins where others repeat it, so that the
/// next part that would be the same need not fill it again.
pub(crate) struct Staging<'a> {
    /// Elsewhere, because something that is uninitialised only in part may be made as zeros, all of it.
    block: &'a mut Block,
    repeated: Option<(*mut u8, usize)>,
}

impl Staging<'_> {
    pub(crate) fn new(block: &mut Block) -> Staging<'_> {
        Staging {
            block,
            repeated: None,
        }
    }

    /// The block, for other uses.
    pub(crate) fn block(&mut self) -> &mut Block {
        self.repeated = None;
        self.block
    }

    /// Whether the block still holds `len` elements that repeat what begins at `at`; it is taken
    /// that it does from now on.
    fn keeps(&mut self, at: *mut u8, len: usize) -> bool {
        let kept = self.repeated.is_some_and(|r| r.0 == at && r.1 >= len);
        if !kept {
            self.repeated = Some((at, len));
        }
        kept
    }
}

/// What lies between an operand's elements in memory and those of a loop.
#[derive(Clone)]
pub(crate) struct Form {
    pub(crate) width: usize,
    /// Bytes of an element of the loop's.
    loop_width: usize,
    /// The conversion between the operand and the loop, in the direction that it is used.
    convert: Option<Loop<2>>,
    /// A conversion before that one.
    first: Option<Loop<2>>,
}

impl Form {
    /// An operand of dtype `own` that is converted `from` one dtype `to` another, one of which is
    /// its own and the other the loop's, by way of a third if one is given.
    pub(crate) fn new(own: DType, from: DType, via: Option<DType>, to: DType) -> Form {
        let last = via.unwrap_or(from);
        Form {
            width: own.size(),
            loop_width: if own == from { to.size() } else { from.size() },
            convert: (last != to).then(|| cast_loop(last, to)),
            first: via.map(|via| cast_loop(from, via)),
        }
    }

    /// Whether the elements are the loop's as they lie in memory.
    pub(crate) fn is_loops(&self) -> bool {
        self.convert.is_none()
    }

    /// `len` elements of an input that are `step` bytes apart, as the loop wants them: where they
    /// are, or in the block.
    ///
    /// # Safety
    /// They may be read; their number is at most [`BLOCK`].
    #[inline]
    pub(crate) unsafe fn load(
        &self,
        from: *mut u8,
        step: isize,
        len: usize,
        staging: &mut Staging<'_>,
        scratch: &mut Block,
    ) -> *mut u8 {
        let width = self.width as isize;
        // SAFETY: for the whole body: the caller's contract, and `len` elements of any dtype fit a
        // block.
        unsafe {
            if step == width || len == 1 {
                if self.is_loops() {
                    return from;
                }
                return self.converted(from, len, staging.block(), scratch);
            }
            if step == 0 {
                if !staging.keeps(from, len) {
                    let mut second = Block::NEW;
                    let one = self.converted(from, 1, scratch, &mut second);
                    let width = self.loop_width;
                    move_run(staging.block.ptr(), width as isize, one, 0, len, width);
                }
                return staging.block.ptr();
            }
            if self.is_loops() {
                let block = staging.block().ptr();
                move_run(block, width, from, step, len, self.width);
                return block;
            }
            let mut second = Block::NEW;
            move_run(scratch.ptr(), width, from, step, len, self.width);
            self.converted(scratch.ptr(), len, staging.block(), &mut second)
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

    /// A block of results of the loop as elements of the destination: at `to`, where they are
    /// converted and it is given, else in one of the two blocks.
    ///
    /// # Safety
    /// The block holds `len` results; as many elements may be written at `to`.
    pub(crate) unsafe fn finish(
        &self,
        len: usize,
        block: &mut Block,
        scratch: &mut Block,
        to: Option<*mut u8>,
    ) -> *mut u8 {
        let (mut from, mut free) = (block.ptr(), scratch.ptr());
        // SAFETY: one block holds the results; as many elements fit the other, and `to`.
        unsafe {
            if let Some(first) = self.first {
                first([free, from], len, &Params::NONE);
                (from, free) = (free, from);
            }
            if let Some(convert) = self.convert {
                let to = to.unwrap_or(free);
                convert([to, from], len, &Params::NONE);
                from = to;
            }
        }
        from
    }

    /// Writes `len` finished results to positions that are `step` bytes apart.
    ///
    /// # Safety
    /// The positions may be written.
    pub(crate) unsafe fn store(&self, to: *mut u8, step: isize, from: *const u8, len: usize) {
        // SAFETY: the caller's contract.
        unsafe { move_run(to, step, from, self.width as isize, len, self.width) };
    }
}

/// An operand, walked on its own: in the same order of elements as the others, but in runs as long
/// as its own strides allow.
pub(crate) struct Operand {
    pub(crate) ptr: *mut u8,
    plan: Plan<1>,
    form: Form,
}

impl Operand {
    pub(crate) fn new(ptr: *mut u8, plan: Plan<1>, form: Form) -> Operand {
        Operand { ptr, plan, form }
    }

    /// An input of dtype `own` for a loop that takes `wanted`.
    pub(crate) fn input(ptr: *const u8, plan: Plan<1>, own: DType, wanted: DType) -> Operand {
        Operand::new(ptr.cast_mut(), plan, Form::new(own, own, None, wanted))
    }

    /// The elements of this part of the walk in memory, where they are as the loop wants them.
    pub(crate) fn in_loop_form(&self, part: &Range<usize>) -> Option<*mut u8> {
        if self.form.is_loops() {
            self.dense(part)
        } else {
            None
        }
    }

    /// The elements of this part, where they are one dense run.
    fn dense(&self, part: &Range<usize>) -> Option<*mut u8> {
        let inner = self.plan.inner();
        let dense = inner.strides[0] == self.form.width as isize || part.len() == 1;
        (dense && self.is_one_run(part)).then(|| self.at(part.start))
    }

    fn is_one_run(&self, part: &Range<usize>) -> bool {
        self.plan.dims().len() <= 1 || {
            let run = self.plan.inner().size;
            part.len() <= run - part.start % run
        }
    }

    /// What lies between its elements and those of the loop.
    pub(crate) fn form(&self) -> &Form {
        &self.form
    }

    /// Element `i` of the walk.
    pub(crate) fn at(&self, i: usize) -> *mut u8 {
        let mut at = self.plan.offsets()[0];
        let mut rest = i;
        if let Some((last, dims)) = self.plan.dims().split_last() {
            for dim in dims {
                at += (rest % dim.size) as isize * dim.strides[0];
                rest /= dim.size;
            }
            at += rest as isize * last.strides[0];
        }
        // A position of the plan, so within the operand.
        self.ptr.wrapping_offset(at)
    }

    /// Whether the elements of this part are those from the one on with which it begins, and these
    /// over again: a row that is broadcast.
    fn repeats(&self, part: &Range<usize>) -> bool {
        let [inner, outer, ..] = self.plan.dims() else {
            return false;
        };
        let span = inner.size * outer.size;
        outer.strides[0] == 0 && part.start / span == (part.end - 1) / span
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
        // SAFETY: for the whole body: the caller's contract, and as many elements of any dtype fit
        // a block.
        unsafe {
            if self.is_one_run(part) {
                let (from, step) = (self.at(part.start), self.plan.inner().strides[0]);
                return self.form.load(from, step, part.len(), staging, scratch);
            }
            if !self.repeats(part) {
                staging.repeated = None;
            } else if staging.keeps(self.at(part.start), part.len()) {
                return staging.block.ptr();
            }
            let block = &mut *staging.block;
            if self.form.is_loops() {
                self.gather(part, block.ptr());
                return block.ptr();
            }
            self.gather(part, scratch.ptr());
            let mut second = Block::NEW;
            self.form
                .converted(scratch.ptr(), part.len(), block, &mut second)
        }
    }

    /// Collects the elements of this part at `to`, dense.
    ///
    /// # Safety
    /// The part's positions may be read, and `to` has room.
    unsafe fn gather(&self, part: &Range<usize>, to: *mut u8) {
        let (mut to, width) = (to, self.form.width);
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
        // SAFETY: the caller's contract.
        let mut from = unsafe { self.form.finish(part.len(), block, scratch, None) };
        self.plan
            .for_each_run_in(part.clone(), |[offset], len, [stride]| {
                // SAFETY: the run's positions; the block holds the rest of the part.
                unsafe {
                    self.form.store(self.ptr.offset(offset), stride, from, len);
                    from = from.add(len * self.form.width);
                }
            });
    }
}
