//! The product of one packed row with a matrix: limited by reading the matrix, which is therefore not packed.
//!
//! Whichever of its dims is dense is read along: lines of steps as dot products, lines of columns as multiples that are
//! added up, several together, so that sums stay in registers. Asking for memory ahead gained nothing where it was measured.

use crate::micro::{Factor, Sum, is_dense, pack_lane};
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

/// `Σ lines[k][i] · row[i]` for each line. The order of a line's sum is the same whatever lines are beside it.
///
/// # Safety
/// `len` elements may be read of each line, and as many sums of the row.
#[inline(always)]
unsafe fn dots<T: Factor, const N: usize>(
    lines: [*const T; N],
    row: *const T::Sum,
    len: usize,
) -> [T::Sum; N] {
    let whole = len - len % LANES;
    // Their own array until here: one that is indexed by variables does not stay in registers.
    // SAFETY: the caller's contract.
    let mut lanes = unsafe { lanes_of::<T, N>(lines, row, whole) };
    for (line, lanes) in lines.into_iter().zip(&mut lanes) {
        for (l, i) in (whole..len).enumerate() {
            // SAFETY: the caller's contract.
            let (a, b) = unsafe { (line.add(i).read_unaligned(), row.add(i).read()) };
            lanes[l] = lanes[l].plus_product(a.to(), b);
        }
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = lanes[l].plus(lanes[l + half]);
            }
            half /= 2;
        }
    }
    lanes.map(|lanes| lanes[0])
}

/// The partial sums of whole lanes.
///
/// # Safety
/// As [`dots`].
#[inline(always)]
unsafe fn lanes_of<T: Factor, const N: usize>(
    lines: [*const T; N],
    row: *const T::Sum,
    len: usize,
) -> [[T::Sum; LANES]; N] {
    let mut lanes = [[T::Sum::ZERO; LANES]; N];
    for start in (0..len).step_by(LANES) {
        // SAFETY: the caller's contract.
        unsafe {
            let b = row.add(start).cast::<[T::Sum; LANES]>().read();
            for (line, lanes) in lines.into_iter().zip(&mut lanes) {
                let a = line.add(start).cast::<[T; LANES]>().read_unaligned();
                for l in 0..LANES {
                    lanes[l] = lanes[l].plus_product(a[l].to(), b[l]);
                }
            }
        }
    }
    lanes
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
    let long =
        columns.len() >= RUN && columns.chunk_by(follows::<T>).count() <= columns.len() / RUN;
    if long && (steps.len() < LANES || !dense) {
        vectorized(
            #[inline(always)]
            || {
                let mut to = to;
                let whole = steps.len() - steps.len() % LINES;
                for run in columns.chunk_by(follows::<T>) {
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
    if !dense {
        for (j, column) in columns.iter().enumerate() {
            // SAFETY: the caller's contract: the scratch has room for all steps.
            let [sum] = unsafe {
                pack_lane::<T>(scratch, matrix.offset(*column), steps);
                let line = [scratch.cast::<T::Sum>().cast_const()];
                vectorized(
                    #[inline(always)]
                    || dots::<T::Sum, 1>(line, row, steps.len()),
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
                let lines = columns.map(|column| at(column + steps[0]));
                // SAFETY: the caller's contract, of dense steps.
                let sums = unsafe { dots::<T, DOTS>(lines, row, steps.len()) };
                for (k, sum) in sums.into_iter().enumerate() {
                    add(i * DOTS + k, sum);
                }
            }
            for (k, column) in rest.iter().enumerate() {
                let line = [at(column + steps[0])];
                // SAFETY: as above.
                let [sum] = unsafe { dots::<T, 1>(line, row, steps.len()) };
                add(fours.len() * DOTS + k, sum);
            }
        },
    );
}

/// Whether one position is the next element after another.
fn follows<T: Factor>(a: &isize, b: &isize) -> bool {
    b - a == size_of::<T>() as isize
}
