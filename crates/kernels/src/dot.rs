//! The product of one packed row with a matrix: limited by reading the matrix, which is therefore not packed.
//!
//! Whichever of its dims is dense is read along: lines of steps as dot products, lines of columns as multiples that are
//! added up, several together, so that sums stay in registers. Asking for memory ahead gained nothing where it was measured.

use crate::micro::{Factor, Sum, in_runs, is_dense, pack_lane, runs};
use crate::simd::vectorized;

/// Partial sums of a dot product, so that additions do not wait for each other, and errors stay small.
const LANES: usize = 32;
/// Dot products that are done together.
const DOTS: usize = 4;
/// Lines of columns that are added together: sums are read and written once for all of them.
const LINES: usize = 8;
/// Sums of those that stay in registers, and what is taken at the end of a line.
const SUMS: usize = 64;
const SOME: usize = 16;
const FEW: usize = 8;
/// Columns next to each other that are worth a call.
const RUN: usize = 8;

/// Partial sums of some lines: of whole lanes, of what is left of a run, and of what is left of that. Three arrays, as one
/// that is indexed by variables does not stay in registers.
struct Partial<S, const N: usize> {
    lanes: [[S; LANES]; N],
    few: [[S; FEW]; N],
    one: [S; N],
}

impl<S: Sum, const N: usize> Partial<S, N> {
    const ZERO: Self = Partial {
        lanes: [[S::ZERO; LANES]; N],
        few: [[S::ZERO; FEW]; N],
        one: [S::ZERO; N],
    };

    /// Adds the products of each line with the row.
    ///
    /// # Safety
    /// `len` elements may be read of each line, and as many sums of the row.
    #[inline(always)]
    unsafe fn plus<T: Factor<Sum = S>>(
        self,
        lines: [*const T; N],
        row: *const S,
        len: usize,
    ) -> Self {
        let Partial {
            mut lanes,
            mut few,
            mut one,
        } = self;
        // SAFETY: the caller's contract.
        unsafe {
            let wide = len - len % LANES;
            for i in (0..wide).step_by(LANES) {
                add_products(&mut lanes, lines.map(|line| line.add(i)), row.add(i));
            }
            let whole = len - len % FEW;
            for i in (wide..whole).step_by(FEW) {
                add_products(&mut few, lines.map(|line| line.add(i)), row.add(i));
            }
            for i in whole..len {
                for (line, one) in lines.into_iter().zip(&mut one) {
                    *one = one.plus_product(line.add(i).read_unaligned().to(), row.add(i).read());
                }
            }
        }
        Partial { lanes, few, one }
    }

    /// The sum of each line, in an order of its own whatever lines are beside it.
    #[inline(always)]
    fn sums(mut self) -> [S; N] {
        std::array::from_fn(|k| {
            let (lanes, few) = (&mut self.lanes[k], self.few[k]);
            let mut half = LANES / 2;
            while half > 0 {
                if half == FEW / 2 {
                    for (lane, few) in lanes.iter_mut().zip(few) {
                        *lane = lane.plus(few);
                    }
                }
                for l in 0..half {
                    lanes[l] = lanes[l].plus(lanes[l + half]);
                }
                half /= 2;
            }
            lanes[0].plus(self.one[k])
        })
    }
}

/// The products of `W` elements of each line with those of the row.
///
/// # Safety
/// As many may be read.
#[inline(always)]
unsafe fn add_products<T: Factor, const N: usize, const W: usize>(
    lanes: &mut [[T::Sum; W]; N],
    lines: [*const T; N],
    row: *const T::Sum,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let b = row.cast::<[T::Sum; W]>().read();
        for (line, lanes) in lines.into_iter().zip(lanes) {
            let a = line.cast::<[T; W]>().read_unaligned();
            for l in 0..W {
                lanes[l] = lanes[l].plus_product(a[l].to(), b[l]);
            }
        }
    }
}

/// `Σ line[steps[p]] · row[p]` for each line.
///
/// # Safety
/// Those elements may be read of each line, and as many sums of the row.
#[inline(always)]
unsafe fn dots<T: Factor, const N: usize>(
    lines: [*const T; N],
    mut row: *const T::Sum,
    steps: &[isize],
    dense: bool,
) -> [T::Sum; N] {
    let at = |lines: [*const T; N], step: isize| lines.map(|line| line.wrapping_byte_offset(step));
    if dense {
        // Not a loop over one run: its sums would not stay in registers.
        // SAFETY: the caller's contract.
        return unsafe { Partial::ZERO.plus(at(lines, steps[0]), row, steps.len()) }.sums();
    }
    let mut sums = Partial::ZERO;
    for run in runs::<T>(steps) {
        // SAFETY: the caller's contract.
        sums = unsafe { sums.plus(at(lines, run[0]), row, run.len()) };
        row = row.wrapping_add(run.len());
    }
    sums.sums()
}

/// `to[i] += Σ lines[k][i] · factors[k]` for `W` of them, one line after the other.
///
/// # Safety
/// `W` elements may be read of each line, and as many sums be read and written at `to`.
#[inline(always)]
unsafe fn add_block<T: Factor, const N: usize, const W: usize>(
    to: *mut T::Sum,
    lines: [*const T; N],
    factors: [T::Sum; N],
) {
    // SAFETY: the caller's contract.
    unsafe {
        let to = to.cast::<[T::Sum; W]>();
        let mut sums = to.read();
        for k in 0..N {
            for (l, sum) in sums.iter_mut().enumerate() {
                *sum = sum.plus_product(lines[k].add(l).read_unaligned().to(), factors[k]);
            }
        }
        to.write(sums);
    }
}

/// The same for `len` of them.
///
/// # Safety
/// As [`add_block`], for `len` elements.
#[inline(always)]
unsafe fn add_lines<T: Factor, const N: usize>(
    to: *mut T::Sum,
    lines: [*const T; N],
    factors: [T::Sum; N],
    len: usize,
) {
    let mut i = 0;
    // SAFETY: the caller's contract.
    unsafe {
        while len - i >= SUMS {
            let lines = lines.map(|line| line.add(i));
            add_block::<T, N, SUMS>(to.add(i), lines, factors);
            i += SUMS;
        }
        while len - i >= SOME {
            let lines = lines.map(|line| line.add(i));
            add_block::<T, N, SOME>(to.add(i), lines, factors);
            i += SOME;
        }
        while len - i >= FEW {
            let lines = lines.map(|line| line.add(i));
            add_block::<T, N, FEW>(to.add(i), lines, factors);
            i += FEW;
        }
        while i < len {
            let lines = lines.map(|line| line.add(i));
            add_block::<T, N, 1>(to.add(i), lines, factors);
            i += 1;
        }
    }
}

/// See [`row_times_matrix`]: sums, row, matrix, columns, steps, scratch, and whether this is the first part.
pub(crate) type Row = unsafe fn(*mut u8, *const u8, *const u8, &[isize], &[isize], *mut u8, bool);

/// For each column the sum of its products with the packed row, written to `sums`, or added to them unless this is the
/// `first` part.
///
/// # Safety
/// As [`pack_lane`], for the positions of all columns and steps; `sums` has room for a sum for each column, `row` and
/// `scratch` for one for each step.
pub(crate) unsafe fn row_times_matrix<T: Factor>(
    sums: *mut u8,
    row: *const u8,
    matrix: *const u8,
    columns: &[isize],
    steps: &[isize],
    scratch: *mut u8,
    first: bool,
) {
    let (to, row) = (sums.cast::<T::Sum>(), row.cast::<T::Sum>());
    let at = |position: isize| matrix.wrapping_offset(position).cast::<T>();
    if first {
        for j in 0..columns.len() {
            // SAFETY: the caller's contract.
            unsafe { to.add(j).write(T::Sum::ZERO) };
        }
    }
    let dense = is_dense::<T>(steps);
    let long = in_runs::<T>(columns, RUN);
    if long && (steps.len() < LANES || !dense) {
        vectorized(
            #[inline(always)]
            || {
                let mut to = to;
                let whole = steps.len() - steps.len() % LINES;
                for run in runs::<T>(columns) {
                    let line = |p: usize| at(run[0] + steps[p]);
                    for p in (0..whole).step_by(LINES) {
                        let lines = std::array::from_fn(|k| line(p + k));
                        // SAFETY: the caller's contract, of the lines' elements and of as many sums.
                        unsafe {
                            let factors = row.add(p).cast::<[T::Sum; LINES]>().read();
                            add_lines::<T, LINES>(to, lines, factors, run.len());
                        }
                    }
                    for p in whole..steps.len() {
                        // SAFETY: as above.
                        unsafe {
                            add_lines::<T, 1>(to, [line(p)], [row.add(p).read()], run.len());
                        }
                    }
                    to = to.wrapping_add(run.len());
                }
            },
        );
        return;
    }
    if steps.is_empty() {
        return;
    }
    // SAFETY: the caller's contract: there is a sum for each column.
    let add = |j: usize, sum: T::Sum| unsafe { to.add(j).write(to.add(j).read().plus(sum)) };
    if !dense && !in_runs::<T>(steps, RUN) {
        for (j, column) in columns.iter().enumerate() {
            // SAFETY: the caller's contract: the scratch has room for all steps.
            let [sum] = unsafe {
                pack_lane::<T>(scratch, matrix.offset(*column), steps);
                let line = [scratch.cast::<T::Sum>().cast_const()];
                vectorized(
                    #[inline(always)]
                    || Partial::ZERO.plus::<T::Sum>(line, row, steps.len()).sums(),
                )
            };
            add(j, sum);
        }
        return;
    }
    vectorized(
        #[inline(always)]
        || {
            let (fours, rest) = columns.as_chunks::<DOTS>();
            for (i, columns) in fours.iter().enumerate() {
                let lines = columns.map(at);
                // SAFETY: the caller's contract.
                let sums = unsafe { dots::<T, DOTS>(lines, row, steps, dense) };
                for (k, sum) in sums.into_iter().enumerate() {
                    add(i * DOTS + k, sum);
                }
            }
            for (k, column) in rest.iter().enumerate() {
                // SAFETY: as above.
                let [sum] = unsafe { dots::<T, 1>([at(*column)], row, steps, dense) };
                add(fours.len() * DOTS + k, sum);
            }
        },
    );
}
