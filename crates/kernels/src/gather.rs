//! Reading through indices: `index_select`, `gather`, `take`, `x[indices]`.

use crate::index::{Indexed, Run, Side};
use crate::runs::move_run;
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
        let rows = self.has_rows(width, true);
        // SAFETY: the caller's contract.
        unsafe {
            self.for_each_run(side, rows, |run, range| {
                let at = &at;
                match width {
                    1 => at.run::<u8>(self, side, run, range, rows),
                    2 => at.run::<u16>(self, side, run, range, rows),
                    4 => at.run::<u32>(self, side, run, range, rows),
                    8 => at.run::<u64>(self, side, run, range, rows),
                    16 => at.run::<u128>(self, side, run, range, rows),
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
    /// Moves these elements of the slices of a run of positions.
    ///
    /// # Safety
    /// They lie in destination and source, as elements of `T`'s size.
    unsafe fn run<T: Copy>(
        &self,
        how: &Indexed<'_>,
        side: Side,
        run: &Run,
        range: Range<usize>,
        rows: bool,
    ) {
        let width = size_of::<T>();
        if rows {
            let row = |d: isize, s: isize| {
                how.slice
                    .for_each_run_in(range.clone(), |[rd, rs], len, [ds, ss]| {
                        // SAFETY: the caller's contract.
                        unsafe {
                            let (dst, src) = (self.dst.offset(d + rd), self.src.offset(s + rs));
                            move_run(dst, ds, src, ss, len, width);
                        }
                    });
            };
            return match side {
                // SAFETY: the caller's contract.
                Side::Source => unsafe { run.for_each(row) },
                // SAFETY: the same.
                Side::Destination => unsafe { run.for_each(|s, d| row(d, s)) },
            };
        }
        how.slice.for_each_run_in(range, |[rd, rs], len, [ds, ss]| {
            for i in 0..len as isize {
                // SAFETY: the caller's contract.
                unsafe {
                    let (dst, src) = (self.dst.offset(rd + i * ds), self.src.offset(rs + i * ss));
                    let one = |d: isize, s: isize| {
                        let value = src.offset(s).cast::<T>().read_unaligned();
                        dst.offset(d).cast::<T>().write_unaligned(value);
                    };
                    match side {
                        Side::Source => run.for_each(one),
                        Side::Destination => run.for_each(|s, d| one(d, s)),
                    }
                }
            }
        });
    }
}
