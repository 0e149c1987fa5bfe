//! Reading through indices: `index_select`, `gather`, `take`, `x[indices]`.

use crate::index::{Indexed, Side, Starts};
use crate::runs::move_run;
use osteon_spec::Plan;
use std::ops::Range;

impl Indexed<'_> {
    /// Copies from the source, which the indices address, to the destination. Elements have `width`
    /// bytes: 1, 2, 4, 8 or 16.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation), of the indices and of all that they and
    /// the plans address; all indices have been found in range by
    /// [`Index::first_out_of_range`](crate::Index::first_out_of_range).
    pub unsafe fn get(&self, dst: *mut u8, src: *const u8, width: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.transfer(Side::Source, dst, src, width) };
    }

    /// Copies from the source to the destination, which the indices address, position after
    /// position: where positions meet, the last one stays.
    ///
    /// # Safety
    /// As [`Indexed::get`]; nothing that is read, the indices included, overlaps the destination.
    pub unsafe fn set(&self, dst: *mut u8, src: *const u8, width: usize) {
        // SAFETY: the caller's contract.
        unsafe { self.transfer(Side::Destination, dst, src, width) };
    }

    /// # Safety
    /// As [`Indexed::get`].
    unsafe fn transfer(&self, side: Side, dst: *mut u8, src: *const u8, width: usize) {
        let at = Pointers { dst, src };
        let slice = &self.slice;
        // SAFETY: the caller's contract.
        unsafe {
            self.for_each_block(side, |starts, range| {
                let at = &at;
                match width {
                    1 => at.block::<u8>(slice, starts, range),
                    2 => at.block::<u16>(slice, starts, range),
                    4 => at.block::<u32>(slice, starts, range),
                    8 => at.block::<u64>(slice, starts, range),
                    16 => at.block::<u128>(slice, starts, range),
                    _ => panic!("no element has {width} bytes"),
                }
            });
        }
    }
}

struct Pointers {
    dst: *mut u8,
    src: *const u8,
}

// SAFETY: threads write disjoint elements of the destination, and nobody writes the source.
unsafe impl Sync for Pointers {}

impl Pointers {
    /// Moves these elements of the slice at every start.
    ///
    /// # Safety
    /// They lie in destination and source, as elements of `T`'s size.
    unsafe fn block<T: Copy>(&self, slice: &Plan<2>, starts: &Starts<'_>, range: Range<usize>) {
        let one = |d: isize, s: isize| {
            // SAFETY: the caller's contract.
            unsafe {
                let value = self.src.offset(s).cast::<T>().read_unaligned();
                self.dst.offset(d).cast::<T>().write_unaligned(value);
            }
        };
        let width = size_of::<T>();
        let rows = slice.inner().strides == [width as isize; 2];
        if slice.numel() > 1 && rows {
            for (&d, &s) in starts.dst.iter().zip(starts.src) {
                slice.for_each_run_in(range.clone(), |[rd, rs], len, [ds, ss]| {
                    // SAFETY: the caller's contract.
                    unsafe {
                        let (dst, src) = (self.dst.offset(d + rd), self.src.offset(s + rs));
                        move_run(dst, ds, src, ss, len, width);
                    }
                });
            }
        } else {
            // Neighbours in a slice are far apart, neighbouring starts often are not.
            slice.for_each_run_in(range, |[rd, rs], len, [ds, ss]| {
                for i in 0..len as isize {
                    for (&d, &s) in starts.dst.iter().zip(starts.src) {
                        one(d + rd + i * ds, s + rs + i * ss);
                    }
                }
            });
        }
    }
}
