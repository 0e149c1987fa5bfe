//! The triangles of matrices: `tril` and `triu`.

use crate::par::par_for;
use crate::runs::{fill_run, move_run};
use osteon_spec::Plan;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// Which elements of a matrix stay; the others become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// Those on this diagonal and below it: 0 is the main one, positive ones lie to its right.
    Lower(isize),
    /// Those on this diagonal and above it.
    Upper(isize),
}

impl Triangle {
    /// The columns of a row that stay, of so many.
    fn kept(self, row: usize, columns: usize) -> (usize, usize) {
        let clamp = |diagonal: isize| (row as isize).saturating_add(diagonal).max(0) as usize;
        match self {
            Triangle::Lower(d) => (0, clamp(d.saturating_add(1)).min(columns)),
            Triangle::Upper(d) => (clamp(d).min(columns), columns),
        }
    }
}

/// Matrices to be made triangular.
#[derive(Debug)]
pub struct Matrices {
    /// Where each row begins in destination and source, in row-major order ([`Plan::row_major`]): the rows of
    /// a matrix are its last dim.
    pub starts: Plan<2>,
    /// Rows of one matrix.
    pub rows: usize,
    /// Elements of a row.
    pub columns: usize,
    /// Bytes from one element of a row to the next, in destination and source.
    pub steps: [isize; 2],
}

/// Copies one triangle of each matrix, and writes zeros to the rest; where both sides are one, only the zeros are
/// written. Elements have `width` bytes: 1, 2, 4, 8 or 16.
///
/// # Safety
/// The walk contract (see the [crate] documentation), for the rows at the plan's positions.
pub unsafe fn triangle(keep: Triangle, at: &Matrices, dst: *mut u8, src: *const u8, width: usize) {
    let sides = Sides { dst, src };
    let in_place = std::ptr::eq(dst, src);
    par_for(
        at.starts.numel(),
        (GRAIN / at.columns.max(1)).max(1),
        |range| {
            let sides = &sides;
            let mut row = range.start;
            at.starts
                .for_each_run_in(range, |[d, s], len, [down_d, down_s]| {
                    for i in 0..len as isize {
                        let (from, to) = keep.kept(row % at.rows, at.columns);
                        let [step_d, step_s] = at.steps;
                        // SAFETY: the elements of a row.
                        unsafe {
                            let (d, s) = (
                                sides.dst.offset(d + i * down_d),
                                sides.src.offset(s + i * down_s),
                            );
                            let column = |c: usize| d.wrapping_offset(c as isize * step_d);
                            zero(d, step_d, from, width);
                            if !in_place && from < to {
                                let s = s.offset(from as isize * step_s);
                                move_run(column(from), step_d, s, step_s, to - from, width);
                            }
                            zero(column(to), step_d, at.columns - to, width);
                        }
                        row += 1;
                    }
                });
        },
    );
}

/// # Safety
/// The positions of the run may be written.
unsafe fn zero(at: *mut u8, step: isize, len: usize, width: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match width {
            1 => fill_run(at, step, len, 0u8),
            2 => fill_run(at, step, len, 0u16),
            4 => fill_run(at, step, len, 0u32),
            8 => fill_run(at, step, len, 0u64),
            16 => fill_run(at, step, len, 0u128),
            _ => panic!("no element has {width} bytes"),
        }
    }
}

struct Sides {
    dst: *mut u8,
    src: *const u8,
}

// SAFETY: threads write disjoint rows, and nobody writes the source but element for element.
unsafe impl Sync for Sides {}
