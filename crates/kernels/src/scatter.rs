//! Combining through indices: `index_add`, `scatter_add`, `scatter_reduce`,
//! `index_put(accumulate=True)`.

use crate::Kernel;
use crate::cast::cast_loop;
use crate::index::{Indexed, Side};
use crate::kernel::{Loop, Params};
use crate::operand::{BLOCK, Block};
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
        let width = dtype.size();
        let combine = Combine {
            dst,
            src: src.cast_mut(),
            width,
            kernel,
            load: (wanted != dtype).then(|| cast_loop(dtype, wanted)),
            store: (result != dtype).then(|| cast_loop(result, dtype)),
        };
        let (slice, rows) = (&self.slice, self.has_rows(width, false));
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            self.for_each_run(Side::Destination, rows, |run, range| {
                let combine = &combine;
                if !rows {
                    return slice.for_each_run_in(range, |[rd, rs], len, [ds, ss]| {
                        for i in 0..len as isize {
                            let dst = combine.dst.offset(rd + i * ds);
                            let src = combine.src.offset(rs + i * ss);
                            kernel.combine(dst, src, run, dtype);
                        }
                    });
                }
                let mut blocks = [const { Block::NEW }; 2];
                run.for_each(|s, d| {
                    slice.for_each_run_in(range.clone(), |[rd, rs], len, _| {
                        combine.row([d + rd, s + rs], len, &mut blocks);
                    });
                });
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
    /// Combines neighbours.
    ///
    /// # Safety
    /// They lie in destination and source.
    unsafe fn row(&self, [d, s]: [isize; 2], len: usize, blocks: &mut [Block; 2]) {
        // SAFETY: the caller's contract.
        let (to, from) = unsafe { (self.dst.offset(d), self.src.offset(s)) };
        let (Some(load), Some(store)) = (self.load, self.store) else {
            // SAFETY: the caller's contract; a light loop works in place.
            return unsafe { self.kernel.call([to, to, from], len) };
        };
        let [x, y] = blocks.each_mut().map(Block::ptr);
        for start in (0..len).step_by(BLOCK) {
            let len = BLOCK.min(len - start);
            // SAFETY: the caller's contract; a block holds as many elements of any dtype.
            unsafe {
                let (to, from) = (to.add(start * self.width), from.add(start * self.width));
                load([x, to], len, &Params::NONE);
                load([y, from], len, &Params::NONE);
                self.kernel.call([x, x, y], len);
                store([to, x], len, &Params::NONE);
            }
        }
    }
}
