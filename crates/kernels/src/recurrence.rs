//! Linear recurrences: sums in which each step multiplies what came before.

use crate::par::par_for;
use crate::with_element;
use osteon_spec::{DType, Plan};
use std::ops::{Add, Mul};

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// The lines of one call.
#[derive(Debug)]
pub struct Lines {
    /// Where each line begins in results and summands, and where its second step finds its factor.
    pub starts: Plan<3>,
    /// Bytes from one step of a line to the next.
    pub steps: [isize; 3],
    /// Steps of a line.
    pub len: usize,
}

/// Writes `y[0] = x[0]` and then `y[i] = x[i] + factor[i - 1] · y[i - 1]` along each line; false, and nothing is written,
/// for other dtypes than floats and complex numbers of full precision.
///
/// # Safety
/// The walk contract (see the [crate] documentation) of all steps of all lines; a line has one factor less than steps.
pub unsafe fn recurrence(lines: &Lines, pointers: [*mut u8; 3], dtype: DType) -> bool {
    let run = with_element!(float: dtype, T => run::<T> as Run)
        .or_else(|| with_element!(complex: dtype, T => run::<T> as Run));
    let Some(run) = run else {
        return false;
    };
    let sides = Sides(pointers);
    par_for(
        lines.starts.numel(),
        (GRAIN / lines.len.max(1)).max(1),
        |range| {
            let Sides(pointers) = &sides;
            lines
                .starts
                .for_each_run_in(range, |offsets, count, across| {
                    let at = std::array::from_fn(|k| pointers[k].wrapping_offset(offsets[k]));
                    // SAFETY: the caller's contract; threads have lines of their own.
                    unsafe { run(at, (count, across), (lines.len, lines.steps)) };
                });
        },
    );
    true
}

/// The operands of a call, for threads.
struct Sides([*mut u8; 3]);

// SAFETY: threads read the operands and write disjoint lines.
unsafe impl Sync for Sides {}

type Run = unsafe fn([*mut u8; 3], (usize, [isize; 3]), (usize, [isize; 3]));

/// # Safety
/// The contract of [`recurrence`], for so many lines and so many steps.
unsafe fn run<T: Copy + Add<Output = T> + Mul<Output = T>>(
    at: [*mut u8; 3],
    (lines, across): (usize, [isize; 3]),
    (len, steps): (usize, [isize; 3]),
) {
    let step = |line: usize, i: usize| {
        let place = |k: usize, i: usize| {
            let offset = line as isize * across[k] + i as isize * steps[k];
            at[k].wrapping_offset(offset).cast::<T>()
        };
        // SAFETY: the caller's contract: `i` is below `len`, and step `i - 1` was written before.
        unsafe {
            let mut y = place(1, i).read_unaligned();
            if i > 0 {
                y = y + place(2, i - 1).read_unaligned() * place(0, i - 1).read_unaligned();
            }
            place(0, i).write_unaligned(y);
        }
    };
    // In the order in which memory lies.
    if across[0].unsigned_abs() < steps[0].unsigned_abs() {
        (0..len).for_each(|i| (0..lines).for_each(|line| step(line, i)));
    } else {
        (0..lines).for_each(|line| (0..len).for_each(|i| step(line, i)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_forwards_and_backwards_side_by_side() {
        // Two columns of three rows: x = 1 2, 3 4, 5 6 and factors 10 100, 2 3, 4 5.
        let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let factor = [10.0f32, 100.0, 2.0, 3.0, 4.0, 5.0];
        let solve = |down: bool| {
            let mut y = [0.0f32; 6];
            let row = 8;
            let (first, of_factor) = if down { (0, row) } else { (2 * row, 2 * row) };
            let lines = Lines {
                starts: Plan::from_strides(&[2], [first, first, of_factor], [&[4]; 3]),
                steps: [if down { row } else { -row }; 3],
                len: 3,
            };
            let pointers = [
                y.as_mut_ptr().cast(),
                x.as_ptr().cast_mut().cast(),
                factor.as_ptr().cast_mut().cast(),
            ];
            // SAFETY: the lines are those of the arrays.
            assert!(unsafe { recurrence(&lines, pointers, DType::F32) });
            y
        };
        assert_eq!(
            solve(true),
            [1.0, 2.0, 3.0 + 2.0, 4.0 + 6.0, 5.0 + 20.0, 6.0 + 50.0]
        );
        assert_eq!(
            solve(false),
            [1.0 + 46.0, 2.0 + 102.0, 3.0 + 20.0, 4.0 + 30.0, 5.0, 6.0]
        );
    }
}
