//! Combining through indices: `index_add`, `scatter_add`, `scatter_reduce`,
//! `index_put(accumulate=True)`.

use crate::Kernel;
use crate::cast::cast_loop;
use crate::index::{Indexed, Side};
use crate::kernel::{Loop, Params};
use crate::operand::{BLOCK, Block};
use crate::runs::move_run;
use osteon_spec::DType;

impl Indexed<'_> {
    /// `dst = kernel(dst, src)` at the elements of the destination that the indices address,
    /// position after position: where positions meet, all of them count. Both sides are of `dtype`.
    ///
    /// The kernel is a binary operation: [`Add`](crate::BinaryOp::Add) makes `index_add` and
    /// `scatter_add`, [`AddScaled`](crate::BinaryOp::AddScaled) `index_add` with an `alpha`; `Mul`,
    /// `Maximum` and `Minimum` are the other reductions. Half precision is rounded at each step, as
    /// PyTorch does.
    ///
    /// # Safety
    /// As [`Indexed::set`].
    pub unsafe fn reduce(&self, kernel: &Kernel<3>, dst: *mut u8, src: *const u8, dtype: DType) {
        let [result, wanted, _] = kernel.dtypes();
        let combine = Combine {
            dst,
            src: src.cast_mut(),
            width: dtype.size(),
            kernel,
            load: (wanted != dtype).then(|| cast_loop(dtype, wanted)),
            store: (result != dtype).then(|| cast_loop(result, dtype)),
        };
        let slice = &self.slice;
        // SAFETY: the caller's contract.
        unsafe {
            self.for_each_block(Side::Destination, |starts, range| {
                let combine = &combine;
                let mut blocks = [const { Block::NEW }; 5];
                for (&d, &s) in starts.dst.iter().zip(starts.src) {
                    slice.for_each_run_in(range.clone(), |[rd, rs], len, strides| {
                        combine.run([d + rd, s + rs], strides, len, &mut blocks);
                    });
                }
            });
        }
    }
}

struct Combine<'a> {
    dst: *mut u8,
    src: *mut u8,
    width: usize,
    kernel: &'a Kernel<3>,
    load: Option<Loop<2>>,
    store: Option<Loop<2>>,
}

// SAFETY: threads combine disjoint elements of the destination, and nobody writes the source.
unsafe impl Sync for Combine<'_> {}

impl Combine<'_> {
    /// Combines a run.
    ///
    /// # Safety
    /// Its positions lie in destination and source.
    unsafe fn run(
        &self,
        [d, s]: [isize; 2],
        [ds, ss]: [isize; 2],
        len: usize,
        blocks: &mut [Block; 5],
    ) {
        let [result, x, y, gathered, converted] = blocks;
        if len == 1 && self.load.is_none() && self.store.is_none() {
            // `scatter_add` consists of these: what a block costs would be all of its time.
            // SAFETY: positions of the run.
            unsafe {
                let (to, from) = (self.dst.offset(d), self.src.offset(s));
                self.kernel.call([result.ptr(), to, from], 1);
                move_run(to, 0, result.ptr(), 0, 1, self.width);
            }
            return;
        }
        for start in (0..len).step_by(BLOCK) {
            let len = BLOCK.min(len - start);
            let i = start as isize;
            // SAFETY: positions of the run; a block holds as many elements of any dtype.
            unsafe {
                let to = self.dst.offset(d + i * ds);
                let a = self.load(to, ds, len, x, gathered);
                let b = self.load(self.src.offset(s + i * ss), ss, len, y, converted);
                // Into a block first: a loop's destination is no input.
                self.kernel.call([result.ptr(), a, b], len);
                let mut from = result.ptr();
                if let Some(store) = self.store {
                    store([converted.ptr(), from], len, &Params::NONE);
                    from = converted.ptr();
                }
                move_run(to, ds, from, self.width as isize, len, self.width);
            }
        }
    }

    /// `len` elements as the loop wants them: dense, and of its dtype.
    ///
    /// # Safety
    /// They may be read, and fit a block.
    unsafe fn load(
        &self,
        from: *mut u8,
        stride: isize,
        len: usize,
        block: &mut Block,
        scratch: &mut Block,
    ) -> *mut u8 {
        let mut from = from;
        // SAFETY: the caller's contract.
        unsafe {
            if stride != self.width as isize && len > 1 {
                move_run(
                    scratch.ptr(),
                    self.width as isize,
                    from,
                    stride,
                    len,
                    self.width,
                );
                from = scratch.ptr();
            }
            if let Some(load) = self.load {
                load([block.ptr(), from], len, &Params::NONE);
                from = block.ptr();
            }
        }
        from
    }
}
