//! Moving elements, blind to their dtype: by width in bytes.

mod across;

use crate::par::par_for;
use crate::runs::{Side, move_rows};
use crate::stream;
use osteon_spec::Plan;

/// Bytes for one thread to begin with, at least.
const GRAIN: usize = 1 << 16;

/// The same of dense memory, which one thread copies in the time that it takes to wake another.
const DENSE_GRAIN: usize = 1 << 19;

/// Bytes of a row from which on it is worth being split, and its own calls cost nothing.
const LONG: usize = 1 << 15;

/// Bytes of short rows that are packed in the cache before they go past it.
const PACKED: usize = 1 << 13;

/// The same of long ones. Reads come to a halt while a long piece leaves: with pieces so short, and the next one asked
/// for before, every second element of 128 MiB takes a third less time.
const PIECE: usize = 1 << 9;

/// Bytes of rows that are asked for ahead: hardware does not foresee rows that lie apart.
const AHEAD: usize = 1 << 12;

/// Copies every element of operand 1 to operand 0. `width` is an element's bytes: 1, 2, 4, 8 or 16.
///
/// Reads and writes each element once whatever the strides. Where both are dense (or dense enough) along the same dim
/// rows are moved, where they are along different ones matrices are turned in registers; results that no cache would
/// hold go past them.
///
/// # Safety
/// The walk contract (see the [crate] documentation) with elements of `width` bytes, and source and
/// destination do not overlap at all.
///
/// # Panics
/// When `width` is none of the five.
pub unsafe fn copy(plan: &Plan<2>, dst: *mut u8, src: *const u8, width: usize) {
    let at = Pointers { dst, src };
    let wider;
    let (plan, width) = match widened(plan, width) {
        Some((plan, width)) => {
            wider = plan;
            (&wider, width)
        }
        None => (plan, width),
    };
    // SAFETY: the caller's contract, passed on.
    unsafe {
        match across::dim(plan) {
            Some(dim) => across::copy(plan, dim, at, width),
            None => copy_rows(plan, at, width),
        }
    }
}

/// The two base pointers, for closures that several threads run.
#[derive(Clone, Copy)]
struct Pointers {
    dst: *mut u8,
    src: *const u8,
}

// SAFETY: threads get disjoint parts of the destination, and nobody else writes the source.
unsafe impl Sync for Pointers {}

/// A few elements that lie next to each other everywhere are one wider element: pairs can be turned in registers, too.
fn widened(plan: &Plan<2>, width: usize) -> Option<(Plan<2>, usize)> {
    let (inner, outer) = plan.dims().split_first()?;
    let wide = inner.size * width;
    let fits = inner.strides == [width as isize; 2] && wide <= 16 && wide.is_power_of_two();
    (fits && !outer.is_empty())
        .then(|| (Plan::from_dims(plan.offsets(), outer.iter().copied()), wide))
}

/// # Safety
/// As [`copy`].
unsafe fn copy_rows(plan: &Plan<2>, at: Pointers, width: usize) {
    let inner = plan.inner();
    let bytes = inner.size * width;
    // The limit is that of sums of two operands, which touch three times as much as they write. A repeated row is read
    // once, and what lies between elements comes with their lines.
    let distinct = plan.dims().iter().filter(|d| d.strides[1] != 0);
    let apart = inner.strides[1].unsigned_abs().clamp(width, stream::LINE);
    let read = distinct.map(|d| d.size).product::<usize>() * apart;
    let streamed = stream::pays((plan.numel() * width + read) / 3);
    let rows = |[d, s]: [isize; 2], cols, count, row: [isize; 2]| {
        let at = &at;
        // SAFETY: the rows lie in both.
        let (to, from) = unsafe { (at.dst.offset(d), at.src.offset(s)) };
        let to = Side {
            at: to,
            step: inner.strides[0],
            row: row[0],
        };
        let from = Side {
            at: from,
            step: inner.strides[1],
            row: row[1],
        };
        // SAFETY: the caller's contract.
        unsafe {
            if streamed {
                stream_rows(to, from, cols, count, width);
            } else {
                move_rows(to, from, cols, count, width);
            }
        }
    };
    let done = || {
        if streamed {
            stream::fence();
        }
    };
    match plan.dims().split_first() {
        Some((_, outer)) if !outer.is_empty() && bytes < LONG => {
            let outer = Plan::from_dims(plan.offsets(), outer.iter().copied());
            par_for(outer.numel(), GRAIN.div_ceil(bytes), |range| {
                outer.for_each_run_in(range, |at, count, row| rows(at, inner.size, count, row));
                done();
            });
        }
        _ => {
            let dense = inner.strides == [width as isize; 2];
            let grain = if dense { DENSE_GRAIN } else { GRAIN };
            par_for(plan.numel(), grain / width, |range| {
                plan.for_each_run_in(range, |at, len, _| rows(at, len, 1, [0; 2]));
                done();
            });
        }
    }
}

/// Moves rows past the caches: dense ones from where they are, others after they have been packed.
///
/// # Safety
/// As [`move_rows`].
unsafe fn stream_rows(
    to: Side<*mut u8>,
    from: Side<*const u8>,
    cols: usize,
    rows: usize,
    width: usize,
) {
    #[repr(align(64))]
    struct Pack(std::mem::MaybeUninit<[u8; PACKED]>);

    let (dense, bytes) = (width as isize, cols * width);
    // SAFETY: positions of the rows; what is packed has room.
    unsafe {
        if to.step != dense {
            return move_rows(to, from, cols, rows, width);
        }
        let aligned = (to.at as isize | to.row | bytes as isize) % stream::LINE as isize == 0;
        if from.step == dense && (bytes >= PACKED / 4 || aligned) {
            let next = (AHEAD / bytes) as isize * from.row;
            for r in 0..rows as isize {
                if next != 0 {
                    prefetch(from.at.wrapping_offset(r * from.row + next), bytes, 1);
                }
                stream::store(
                    to.at.offset(r * to.row),
                    from.at.offset(r * from.row),
                    bytes,
                );
            }
            return;
        }
        let mut pack = Pack(std::mem::MaybeUninit::uninit());
        let pack = pack.0.as_mut_ptr().cast::<u8>();
        let side = |row| Side {
            at: pack,
            step: dense,
            row,
        };
        if bytes < PACKED / 4 && (rows == 1 || to.row == bytes as isize) {
            let many = PACKED / bytes;
            for r in (0..rows).step_by(many) {
                let count = many.min(rows - r);
                move_rows(side(bytes as isize), from.skip(r, 0), cols, count, width);
                stream::store(to.skip(r, 0).at, pack, count * bytes);
            }
            return;
        }
        for r in 0..rows {
            for piece in 0..cols.div_ceil(PIECE / width) {
                // Forwards in the source: hardware does not foresee steps back as well.
                let c = PIECE / width
                    * match from.step < 0 {
                        true => cols.div_ceil(PIECE / width) - 1 - piece,
                        false => piece,
                    };
                let count = (PIECE / width).min(cols - c);
                let (from, span) = (from.skip(r, c), count as isize * from.step);
                prefetch(
                    from.at.wrapping_offset(span.max(0)),
                    span.unsigned_abs(),
                    from.step.unsigned_abs(),
                );
                move_rows(side(0), from, count, 1, width);
                stream::store(to.skip(r, c).at, pack, count * width);
            }
        }
    }
}

/// Asks for the lines of these bytes, or for those of them that are so far apart; any address will do.
#[inline]
fn prefetch(at: *const u8, bytes: usize, apart: usize) {
    for line in (0..bytes).step_by(apart.max(stream::LINE)) {
        stream::prefetch(at.wrapping_add(line));
    }
}
