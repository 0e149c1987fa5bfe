//! Copies whose source and destination are dense along different dims, through tiles of whole
//! cache lines.

use crate::par::par_for;
use osteon_spec::{Plan, PlanDim};

/// Bytes of a cache line: a tile's rows in the source and in the destination.
const LINE: usize = 64;

/// Tiles along each side of a block: the pages that a block touches fit the second-level TLB, and a
/// thread walks one block after the other.
const BLOCK: usize = 8;

/// Copies operand 1 to operand 0 if the destination is dense along the plan's inner dim and the
/// source along another one; otherwise does nothing and returns false.
///
/// # Safety
/// As [`crate::copy`].
pub(crate) unsafe fn transpose(plan: &Plan<2>, dst: *mut u8, src: *const u8, width: usize) -> bool {
    let dense = width as isize;
    let dims = plan.dims();
    let Some(along_src) = dims.iter().position(|d| d.strides[1] == dense) else {
        return false;
    };
    if dims[0].strides[0] != dense || along_src == 0 {
        return false;
    }
    let (rows, cols) = (dims[along_src], dims[0]);
    // Tiles that are mostly edge are slower than plain loops.
    if rows.size < 4 || cols.size < 4 {
        return false;
    }
    let side = LINE / width;
    let task = Task {
        dst,
        src,
        rows: rows.size,
        cols: cols.size,
        dst_stride: rows.strides[0],
        src_stride: cols.strides[1],
        width,
        tile: tile_of(width),
    };
    // The dims around a matrix, and blocks of the matrix inside them: a unit of work is a block.
    let block = side * BLOCK;
    let outer = Outer::new(dims, along_src, plan.offsets());
    let (down, across) = (rows.size.div_ceil(block), cols.size.div_ceil(block));
    let units = outer.count * down * across;
    let elements = plan.numel() / units.max(1);
    par_for(units, (1 << 16) / elements.max(1), |range| {
        let task = &task;
        for unit in range {
            let (matrix, at) = (unit / (down * across), unit % (down * across));
            let (r, c) = (at / across * block, at % across * block);
            let [d, s] = outer.offsets(matrix);
            // SAFETY: the block lies in the matrix, whose positions are the plan's.
            unsafe {
                task.block(
                    d,
                    s,
                    r..task.rows.min(r + block),
                    c..task.cols.min(c + block),
                )
            };
        }
    });
    true
}

/// Copies a small matrix of `rows` × `cols` elements: the destination is dense along a row, the
/// source along a column; each is given with the bytes from one row, or column, to the next.
///
/// # Safety
/// The elements may be read and written, and do not overlap.
pub(crate) unsafe fn transpose_matrix(
    (dst, dst_stride): (*mut u8, isize),
    (src, src_stride): (*const u8, isize),
    rows: usize,
    cols: usize,
    width: usize,
) {
    let tile = tile_of(width);
    let task = Task {
        dst,
        src,
        rows,
        cols,
        dst_stride,
        src_stride,
        width,
        tile,
    };
    // SAFETY: the caller's contract.
    unsafe { task.block(0, 0, 0..rows, 0..cols) };
}

/// The dims that are neither side of the matrix.
struct Outer<'a> {
    dims: &'a [PlanDim<2>],
    skip: usize,
    offsets: [isize; 2],
    count: usize,
}

impl<'a> Outer<'a> {
    fn new(dims: &'a [PlanDim<2>], along_src: usize, offsets: [isize; 2]) -> Outer<'a> {
        let outer = Outer {
            dims: &dims[1..],
            skip: along_src - 1,
            offsets,
            count: 1,
        };
        let count = outer.iter().map(|d| d.size).product();
        Outer { count, ..outer }
    }

    fn iter(&self) -> impl Iterator<Item = &PlanDim<2>> {
        let skip = self.skip;
        self.dims
            .iter()
            .enumerate()
            .filter(move |(i, _)| *i != skip)
            .map(|(_, d)| d)
    }

    /// The byte offsets of the `n`th matrix.
    fn offsets(&self, n: usize) -> [isize; 2] {
        let mut rest = n;
        let mut offsets = self.offsets;
        for dim in self.iter() {
            let index = (rest % dim.size) as isize;
            rest /= dim.size;
            offsets[0] += index * dim.strides[0];
            offsets[1] += index * dim.strides[1];
        }
        offsets
    }
}

/// A matrix of `rows` × `cols` elements, dense along a row of the destination and along a column of
/// the source.
struct Task {
    dst: *mut u8,
    src: *const u8,
    rows: usize,
    cols: usize,
    /// Bytes from one row of the destination to the next.
    dst_stride: isize,
    /// Bytes from one column of the source to the next.
    src_stride: isize,
    width: usize,
    tile: unsafe fn(&mut Lines, &mut Lines),
}

// SAFETY: threads take disjoint blocks of the destination, and nobody else writes the source.
unsafe impl Sync for Task {}

/// A tile: 64 lines at most, of 64 bytes each.
#[repr(C, align(64))]
struct Lines([[u8; LINE]; LINE]);

impl Task {
    /// Copies the elements of these rows and columns; `d` and `s` are the matrix's byte offsets.
    ///
    /// # Safety
    /// They lie in the matrix.
    unsafe fn block(
        &self,
        d: isize,
        s: isize,
        rows: std::ops::Range<usize>,
        cols: std::ops::Range<usize>,
    ) {
        let side = LINE / self.width;
        let mut read = Lines([[0; LINE]; LINE]);
        let mut turned = Lines([[0; LINE]; LINE]);
        for c in cols.clone().step_by(side) {
            let wide = side.min(cols.end - c);
            for r in rows.clone().step_by(side) {
                let high = side.min(rows.end - r);
                // SAFETY: positions of the matrix; the bytes of `high` (`wide`) elements fit a
                // line.
                unsafe {
                    let from = self
                        .src
                        .offset(s + c as isize * self.src_stride + (r * self.width) as isize);
                    let to = self
                        .dst
                        .offset(d + r as isize * self.dst_stride + (c * self.width) as isize);
                    for (i, line) in read.0.iter_mut().enumerate().take(wide) {
                        let from = from.offset(i as isize * self.src_stride);
                        copy_line(line.as_mut_ptr(), from, high * self.width);
                    }
                    (self.tile)(&mut read, &mut turned);
                    for (i, line) in turned.0.iter().enumerate().take(high) {
                        let to = to.offset(i as isize * self.dst_stride);
                        copy_line(to, line.as_ptr(), wide * self.width);
                    }
                }
            }
        }
    }
}

/// # Safety
/// `bytes <= 64` of each may be read and written.
#[inline(always)]
unsafe fn copy_line(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's contract; the first branch is a copy of known size: a few vector moves.
    unsafe {
        if bytes == LINE {
            std::ptr::copy_nonoverlapping(src, dst, LINE);
        } else {
            std::ptr::copy_nonoverlapping(src, dst, bytes);
        }
    }
}

/// [`tile`] for elements of `width` bytes.
fn tile_of(width: usize) -> unsafe fn(&mut Lines, &mut Lines) {
    match width {
        1 => tile::<1>,
        2 => tile::<2>,
        4 => tile::<4>,
        8 => tile::<8>,
        16 => tile::<16>,
        _ => panic!("no element has {width} bytes"),
    }
}

/// Turns a tile of elements of `W` bytes: line `i`, element `j` of `from` becomes line `j`, element
/// `i` of `to`.
///
/// # Safety
/// None beyond the types; unsafe to be of one type with variants that need a CPU feature.
unsafe fn tile<const W: usize>(from: &mut Lines, to: &mut Lines) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        sse2::tile::<W>(from, to)
    };
    #[cfg(not(target_arch = "x86_64"))]
    for i in 0..LINE / W {
        for j in 0..LINE / W {
            to.0[j][i * W..][..W].copy_from_slice(&from.0[i][j * W..][..W]);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{LINE, Lines};
    use std::arch::x86_64::*;

    /// A square of 16-byte rows at a time: `16 / W` rows, turned by rounds of interleaving.
    ///
    #[target_feature(enable = "sse2")]
    pub(super) fn tile<const W: usize>(from: &mut Lines, to: &mut Lines) {
        let n = 16 / W;
        for i in (0..LINE / W).step_by(n) {
            for j in (0..LINE / W).step_by(n) {
                let mut rows = [_mm_setzero_si128(); 16];
                for (k, row) in rows.iter_mut().enumerate().take(n) {
                    // SAFETY: 16 bytes within a line.
                    *row = unsafe { _mm_load_si128(from.0[i + k].as_ptr().add(j * W).cast()) };
                }
                let rows = turn::<W>(rows);
                for (k, row) in rows.iter().enumerate().take(n) {
                    // SAFETY: 16 bytes within a line.
                    unsafe { _mm_store_si128(to.0[j + k].as_mut_ptr().add(i * W).cast(), *row) };
                }
            }
        }
    }

    /// Transposes `16 / W` rows: each round interleaves row `k` with row `k + n/2` and lays the two
    /// halves next to each other; after log2 n rounds rows have become columns.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn turn<const W: usize>(mut rows: [__m128i; 16]) -> [__m128i; 16] {
        let n = 16 / W;
        let mut round = n;
        while round > 1 {
            let mut next = rows;
            for k in 0..n / 2 {
                let (a, b) = (rows[k], rows[k + n / 2]);
                (next[2 * k], next[2 * k + 1]) = match W {
                    1 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
                    2 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
                    4 => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
                    _ => (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
                };
            }
            rows = next;
            round /= 2;
        }
        rows
    }
}
