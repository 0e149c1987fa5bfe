//! The product of one packed row with a matrix: limited by reading the matrix, which is therefore not packed.

use crate::kernel::Params;
use crate::micro::{Factor, Sum, is_dense, pack};

/// Partial sums of a dot product, so that additions do not wait for each other, and errors stay small.
const LANES: usize = 32;
/// Columns next to each other that are worth a call.
const RUN: usize = 8;

/// `*p[0] += Σ p[1][i] · p[2][i]`: a sum, elements, sums.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop), but for the one sum at `p[0]`.
#[inline(always)]
pub(crate) unsafe fn dot<T: Factor>(p: [*mut u8; 3], len: usize) {
    let (to, a, b) = (
        p[0].cast::<T::Sum>(),
        p[1].cast::<T>(),
        p[2].cast::<T::Sum>(),
    );
    let mut lanes = [T::Sum::ZERO; LANES];
    // SAFETY: the caller's contract.
    unsafe {
        let product = |sum: T::Sum, i: usize| {
            sum.plus_product(a.add(i).read_unaligned().to(), b.add(i).read_unaligned())
        };
        let whole = len - len % LANES;
        for start in (0..whole).step_by(LANES) {
            for (l, lane) in lanes.iter_mut().enumerate() {
                *lane = product(*lane, start + l);
            }
        }
        for (l, i) in (whole..len).enumerate() {
            lanes[l] = product(lanes[l], i);
        }
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                lanes[l] = lanes[l].plus(lanes[l + half]);
            }
            half /= 2;
        }
        to.write(to.read().plus(lanes[0]));
    }
}

/// `p[0][i] += p[1][i] · *p[2]`: sums, elements, a sum.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop), but for the one factor at `p[2]`.
#[inline(always)]
pub(crate) unsafe fn axpy<T: Factor>(p: [*mut u8; 3], len: usize) {
    let (to, a) = (p[0].cast::<T::Sum>(), p[1].cast::<T>());
    // SAFETY: the caller's contract.
    unsafe {
        let factor = p[2].cast::<T::Sum>().read();
        for i in 0..len {
            let sum = to.add(i).read();
            to.add(i)
                .write(sum.plus_product(a.add(i).read_unaligned().to(), factor));
        }
    }
}

/// See [`row_times_matrix`]: sums, row, matrix, columns, steps, scratch, and whether this is the first part.
pub(crate) type Row = unsafe fn(*mut u8, *const u8, *const u8, &[isize], &[isize], *mut u8, bool);

/// For each column the sum of its products with the packed row, written to `sums`, or added to them unless this is the
/// `first` part.
///
/// # Safety
/// As [`pack`], for the positions of all columns and steps; `sums` has room for a sum for each column, `row` and
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
    let to = sums.cast::<T::Sum>();
    let size = size_of::<T::Sum>();
    // SAFETY: for the whole body: the caller's contract.
    unsafe {
        if first {
            for j in 0..columns.len() {
                to.add(j).write(T::Sum::ZERO);
            }
        }
        let long =
            columns.len() >= RUN && columns.chunk_by(follows::<T>).count() <= columns.len() / RUN;
        if long && (steps.len() < LANES || !is_dense::<T>(steps)) {
            let axpy = T::axpy();
            let mut to = sums;
            for run in columns.chunk_by(follows::<T>) {
                for (p, &step) in steps.iter().enumerate() {
                    let line = matrix.offset(run[0] + step).cast_mut();
                    axpy(
                        [to, line, row.add(p * size).cast_mut()],
                        run.len(),
                        &Params::NONE,
                    );
                }
                to = to.add(run.len() * size);
            }
            return;
        }
        let in_place = is_dense::<T>(steps);
        let dot = if in_place { T::dot() } else { T::Sum::dot() };
        for (j, column) in columns.iter().enumerate().filter(|_| !steps.is_empty()) {
            let line = if in_place {
                matrix.offset(column + steps[0]).cast_mut()
            } else {
                pack::<T>(scratch, 1, matrix, std::slice::from_ref(column), steps);
                scratch
            };
            dot(
                [to.add(j).cast(), line, row.cast_mut()],
                steps.len(),
                &Params::NONE,
            );
        }
    }
}

/// Whether one position is the next element after another.
fn follows<T: Factor>(a: &isize, b: &isize) -> bool {
    b - a == size_of::<T>() as isize
}
