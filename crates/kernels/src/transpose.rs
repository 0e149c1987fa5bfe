//! Matrices turned in registers: squares of 16-byte rows, as many next to each other as a vector holds.

use crate::simd::{Level, level};

/// Bytes of a square's row in the source: what the narrowest vector holds.
const PIECE: usize = 16;

/// Bytes of a cache line.
const LINE: usize = 64;

/// A matrix to be turned: the destination is dense along a row, the source along a column.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub(crate) to: *mut u8,
    /// Bytes from one row of the destination to the next.
    pub(crate) to_row: isize,
    pub(crate) from: *const u8,
    /// Bytes from one column of the source to the next.
    pub(crate) from_col: isize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
}

impl Matrix {
    /// Whether it can be turned in registers: neither side is shorter than a square's, or only rows are, which then lie
    /// packed in the destination.
    #[inline]
    pub(crate) fn fits(&self, width: usize) -> bool {
        let least = least(width);
        self.rows >= least && (self.cols >= least || self.to_row == (self.cols * width) as isize)
    }
}

/// Copies a matrix that has at least [`least`] rows and columns, or [fits](Matrix::fits) otherwise.
///
/// # Safety
/// The elements may be read and written, and do not overlap.
pub(crate) type Turner = unsafe fn(&Matrix);

/// The rows and columns of the smallest matrix that can be turned in registers.
#[inline]
pub(crate) fn least(width: usize) -> usize {
    PIECE / width
}

/// The variant for this CPU and elements of `width` bytes: 1, 2, 4, 8 or 16.
#[inline]
pub(crate) fn turner(width: usize) -> Turner {
    turner_at(level(), width)
}

fn turner_at(level: Level, width: usize) -> Turner {
    match width {
        1 => variant::<1>(level),
        2 => variant::<2>(level),
        4 => variant::<4>(level),
        8 => variant::<8>(level),
        16 => variant::<16>(level),
        _ => panic!("no element has {width} bytes"),
    }
}

fn variant<const W: usize>(level: Level) -> Turner {
    #[cfg(target_arch = "x86_64")]
    return match level {
        Level::Avx512 | Level::Avx512Bf16 => x86::avx512::<W>,
        Level::Avx2 => x86::avx2::<W>,
        Level::Baseline => x86::sse2::<W>,
    };
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = level;
        turn_any::<[u8; PIECE], W>
    }
}

/// Copies a small matrix of any size, given as two pointers with the bytes from row to row, and from column to column.
///
/// # Safety
/// The elements may be read and written, and do not overlap.
#[inline]
pub(crate) unsafe fn transpose_matrix(
    (to, to_row): (*mut u8, isize),
    (from, from_col): (*const u8, isize),
    rows: usize,
    cols: usize,
    width: usize,
) {
    let matrix = Matrix {
        to,
        to_row,
        from,
        from_col,
        rows,
        cols,
    };
    // SAFETY: the caller's contract.
    unsafe {
        if matrix.fits(width) {
            turner(width)(&matrix);
            return;
        }
        for row in 0..rows {
            let (to, from) = (to.offset(row as isize * to_row), from.add(row * width));
            crate::runs::move_run(to, width as isize, from, from_col, cols, width);
        }
    }
}

/// A register of squares: row `k` of each of them, next to each other.
trait Vector: Copy {
    /// How many squares.
    const SQUARES: usize;
    const ZERO: Self;

    /// The 16 bytes at each of `from`, `from + apart`, …
    ///
    /// # Safety
    /// They may be read.
    unsafe fn gather(from: *const u8, apart: isize) -> Self;

    /// # Safety
    /// The vector's bytes may be written.
    unsafe fn store(self, to: *mut u8);

    /// The elements of `W` bytes of the first and of the second half of two squares' rows, interleaved.
    ///
    /// # Safety
    /// The CPU has the vector's instructions.
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self);
}

/// [`Turner`]: strips of a vector's width, the last one over the one before where they do not come out even.
///
/// # Safety
/// As [`Turner`]; the CPU has the vector's instructions.
#[inline(always)]
unsafe fn turn<V: Vector, const W: usize>(m: &Matrix) {
    let side = PIECE / W;
    let wide = side * V::SQUARES;
    // SAFETY: each strip lies in the matrix, which is as wide as one, and each square in its strip.
    unsafe {
        each(m.cols, wide, |c| {
            let from = m.from.offset(c as isize * m.from_col);
            let to = m.to.add(c * W);
            // High strips where the lines of their columns would take turns in the eight places that the first cache
            // has for lines some power of two apart, so that a line is read once, as a whole.
            let crowded = W <= 2 || wide > 8 && m.from_col % 2048 == 0;
            if crowded && m.rows >= LINE / W {
                each(m.rows, LINE / W, |r| {
                    let lines = Lines::read(from.add(r * W), m.from_col, wide);
                    for k in (0..LINE / W).step_by(side) {
                        let to = to.offset((r + k) as isize * m.to_row);
                        square::<V, W, true>(to, m.to_row, lines.at(k * W), LINE as isize, side);
                    }
                });
            } else {
                each(m.rows, side, |r| {
                    let to = to.offset(r as isize * m.to_row);
                    square::<V, W, true>(to, m.to_row, from.add(r * W), m.from_col, side);
                });
            }
        });
    }
}

/// [`turn`] of fewer columns than a square has, whose rows in the destination follow each other without a gap: what is
/// written beyond a row is the next one, which is written after it.
///
/// # Safety
/// As [`turn`]; `to_row` is the bytes of a row.
#[inline(always)]
unsafe fn few_cols<V: Vector, const W: usize>(m: &Matrix) {
    let side = PIECE / W;
    // From the next row on 16 bytes reach beyond the last one.
    let end = (m.rows + 1).saturating_sub(side.div_ceil(m.cols));
    let at = |r: usize| m.to.wrapping_offset(r as isize * m.to_row);
    let mut r = 0;
    // SAFETY: rows are the matrix's, and so are 16 bytes from a row before `end` on.
    unsafe {
        while r + side <= end {
            square::<V, W, false>(at(r), m.to_row, m.from.add(r * W), m.from_col, m.cols);
            r += side;
        }
        while r < m.rows {
            r = r.min(m.rows - side);
            let mut rows = [[0; PIECE]; PIECE];
            let to = rows.as_mut_ptr().cast();
            square::<V, W, false>(to, PIECE as isize, m.from.add(r * W), m.from_col, m.cols);
            for (i, row) in rows.iter().enumerate().take(side) {
                std::ptr::copy_nonoverlapping(row.as_ptr(), at(r + i), m.cols * W);
            }
            r += side;
        }
    }
}

/// [`turn`] or [`few_cols`], for vectors that hold one square.
///
/// # Safety
/// As both.
#[inline(always)]
unsafe fn turn_any<V: Vector, const W: usize>(m: &Matrix) {
    // SAFETY: the caller's contract.
    unsafe {
        if m.cols >= PIECE / W {
            turn::<V, W>(m)
        } else {
            few_cols::<V, W>(m)
        }
    }
}

/// Calls `f` with where pieces of `step` begin that together are `len`, which is at least one.
#[inline(always)]
fn each(len: usize, step: usize, mut f: impl FnMut(usize)) {
    let mut at = 0;
    loop {
        f(at);
        if at + step >= len {
            return;
        }
        at = (at + step).min(len - step);
    }
}

/// A line of each of up to 64 columns of the source.
#[repr(C, align(64))]
struct Lines(std::mem::MaybeUninit<[[u8; LINE]; LINE]>);

impl Lines {
    /// # Safety
    /// A line may be read at each of `count <= 64` places, `apart` bytes from one to the next.
    #[inline(always)]
    unsafe fn read(from: *const u8, apart: isize, count: usize) -> Lines {
        let mut lines = Lines(std::mem::MaybeUninit::uninit());
        let to = lines.0.as_mut_ptr().cast::<u8>();
        for i in 0..count {
            // SAFETY: the caller's contract; there is room for 64.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    from.offset(i as isize * apart),
                    to.add(i * LINE),
                    LINE,
                )
            };
        }
        lines
    }

    /// From this byte of the first line on.
    #[inline(always)]
    fn at(&self, byte: usize) -> *const u8 {
        self.0.as_ptr().cast::<u8>().wrapping_add(byte)
    }
}

/// Turns `SQUARES` squares that lie next to each other in the destination; where they have fewer columns, the last one
/// stands for those that are missing. Each round interleaves row `k` with row `k + side/2` and lays the two halves next to
/// each other; after log2 `side` rounds rows have become columns. Rows are written in order.
///
/// # Safety
/// The squares may be read, but for columns that are missing, and written; the CPU has the vector's instructions.
#[inline(always)]
unsafe fn square<V: Vector, const W: usize, const WHOLE: bool>(
    to: *mut u8,
    to_row: isize,
    from: *const u8,
    from_col: isize,
    cols: usize,
) {
    let side = PIECE / W;
    let mut rows = [V::ZERO; PIECE];
    // SAFETY: the caller's contract.
    unsafe {
        for (k, row) in rows.iter_mut().enumerate().take(side) {
            let k = if WHOLE { k } else { k.min(cols - 1) };
            let column = from.offset(k as isize * from_col);
            *row = V::gather(column, side as isize * from_col);
        }
        let mut round = side;
        while round > 1 {
            let mut next = rows;
            for k in 0..side / 2 {
                (next[2 * k], next[2 * k + 1]) = rows[k].zip::<W>(rows[k + side / 2]);
            }
            rows = next;
            round /= 2;
        }
        for (k, row) in rows.iter().enumerate().take(side) {
            row.store(to.offset(k as isize * to_row));
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
impl Vector for [u8; PIECE] {
    const SQUARES: usize = 1;
    const ZERO: Self = [0; PIECE];

    #[inline(always)]
    unsafe fn gather(from: *const u8, _: isize) -> Self {
        // SAFETY: the trait's contract.
        unsafe { from.cast::<Self>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the trait's contract.
        unsafe { to.cast::<Self>().write_unaligned(self) };
    }

    #[inline(always)]
    unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
        let both = |at: usize| {
            let from = if (at / W).is_multiple_of(2) {
                self
            } else {
                other
            };
            from[at / (2 * W) * W + at % W]
        };
        (
            std::array::from_fn(both),
            std::array::from_fn(|at| both(at + PIECE)),
        )
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Matrix, PIECE, Vector, turn, turn_any};
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::Turner`]; AVX-512F and AVX-512BW.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) unsafe fn avx512<const W: usize>(m: &Matrix) {
        // SAFETY: the caller's contract.
        unsafe {
            if m.cols >= 4 * PIECE / W {
                turn::<Zmm, W>(m)
            } else {
                turn_any::<Xmm, W>(m)
            }
        }
    }

    /// # Safety
    /// As [`super::Turner`]; AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn avx2<const W: usize>(m: &Matrix) {
        // SAFETY: the caller's contract.
        unsafe {
            if m.cols >= 2 * PIECE / W {
                turn::<Ymm, W>(m)
            } else {
                turn_any::<Xmm, W>(m)
            }
        }
    }

    /// # Safety
    /// As [`super::Turner`].
    pub(super) unsafe fn sse2<const W: usize>(m: &Matrix) {
        // SAFETY: the caller's contract; SSE2 is part of x86-64.
        unsafe { turn_any::<Xmm, W>(m) }
    }

    #[derive(Clone, Copy)]
    struct Xmm(__m128i);

    #[derive(Clone, Copy)]
    struct Ymm(__m256i);

    #[derive(Clone, Copy)]
    struct Zmm(__m512i);

    /// # Safety
    /// 16 bytes may be read at the `i`th of places that are `apart` bytes from each other.
    #[inline(always)]
    unsafe fn piece(from: *const u8, apart: isize, i: isize) -> __m128i {
        // SAFETY: the caller's contract; SSE2 is part of x86-64.
        unsafe { _mm_loadu_si128(from.offset(i * apart).cast()) }
    }

    impl Vector for Xmm {
        const SQUARES: usize = 1;
        // SAFETY: any bytes are a vector.
        const ZERO: Self = Xmm(unsafe { std::mem::zeroed() });

        #[inline(always)]
        unsafe fn gather(from: *const u8, apart: isize) -> Self {
            // SAFETY: the trait's contract.
            Xmm(unsafe { piece(from, apart, 0) })
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the trait's contract.
            unsafe { _mm_storeu_si128(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
            let (a, b) = (self.0, other.0);
            // SAFETY: the trait's contract.
            let (low, high) = unsafe {
                match W {
                    1 => (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)),
                    2 => (_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)),
                    4 => (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)),
                    _ => (_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)),
                }
            };
            (Xmm(low), Xmm(high))
        }
    }

    impl Vector for Ymm {
        const SQUARES: usize = 2;
        // SAFETY: any bytes are a vector.
        const ZERO: Self = Ymm(unsafe { std::mem::zeroed() });

        #[inline(always)]
        unsafe fn gather(from: *const u8, apart: isize) -> Self {
            // SAFETY: the trait's contract.
            unsafe {
                let low = _mm256_castsi128_si256(piece(from, apart, 0));
                Ymm(_mm256_inserti128_si256(low, piece(from, apart, 1), 1))
            }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the trait's contract.
            unsafe { _mm256_storeu_si256(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
            let (a, b) = (self.0, other.0);
            // SAFETY: the trait's contract.
            let (low, high) = unsafe {
                match W {
                    1 => (_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)),
                    2 => (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)),
                    4 => (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)),
                    _ => (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)),
                }
            };
            (Ymm(low), Ymm(high))
        }
    }

    impl Vector for Zmm {
        const SQUARES: usize = 4;
        // SAFETY: any bytes are a vector.
        const ZERO: Self = Zmm(unsafe { std::mem::zeroed() });

        #[inline(always)]
        unsafe fn gather(from: *const u8, apart: isize) -> Self {
            // SAFETY: the trait's contract.
            unsafe {
                let all = _mm512_castsi128_si512(piece(from, apart, 0));
                let all = _mm512_inserti32x4(all, piece(from, apart, 1), 1);
                let all = _mm512_inserti32x4(all, piece(from, apart, 2), 2);
                Zmm(_mm512_inserti32x4(all, piece(from, apart, 3), 3))
            }
        }

        #[inline(always)]
        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the trait's contract.
            unsafe { _mm512_storeu_si512(to.cast(), self.0) }
        }

        #[inline(always)]
        unsafe fn zip<const W: usize>(self, other: Self) -> (Self, Self) {
            let (a, b) = (self.0, other.0);
            // SAFETY: the trait's contract.
            let (low, high) = unsafe {
                match W {
                    1 => (_mm512_unpacklo_epi8(a, b), _mm512_unpackhi_epi8(a, b)),
                    2 => (_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)),
                    4 => (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)),
                    _ => (_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)),
                }
            };
            (Zmm(low), Zmm(high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::best;

    fn check<const W: usize>(turner: Turner, what: &str) {
        for (rows, cols) in [
            (1, 1),
            (1, 4),
            (1, 9),
            (2, 2),
            (3, 7),
            (3, 150),
            (150, 3),
            (5, 70),
            (70, 5),
            (13, 33),
            (1, 64),
            (64, 1),
            (16, 16),
            (17, 70),
            (40, 33),
            (130, 67),
            (64, 129),
        ] {
            // Packed where it must be.
            let pad = if cols < least(W) { 0 } else { 3 };
            if rows < least(W) {
                continue;
            }
            let (to_row, from_col) = (cols * W + pad, rows * W + 5);
            let src: Vec<u8> = (0..cols * from_col).map(|i| (i % 251) as u8).collect();
            let mut got = vec![255; rows * to_row + 1];
            let mut want = got.clone();
            for r in 0..rows {
                for c in 0..cols {
                    want[1 + r * to_row + c * W..][..W]
                        .copy_from_slice(&src[c * from_col + r * W..][..W]);
                }
            }
            let matrix = Matrix {
                to: got[1..].as_mut_ptr(),
                to_row: to_row as isize,
                from: src.as_ptr(),
                from_col: from_col as isize,
                rows,
                cols,
            };
            assert!(matrix.fits(W));
            // SAFETY: both buffers hold the matrix.
            unsafe { turner(&matrix) };
            assert!(got == want, "{what}: {rows} x {cols} of {W} bytes");
        }
    }

    #[test]
    fn every_level_turns_as_counting_does() {
        fn all<const W: usize>() {
            check::<W>(turn_any::<[u8; PIECE], W>, "portable");
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                if level <= best() {
                    check::<W>(turner_at(level, W), &format!("{level:?}"));
                }
            }
        }
        all::<1>();
        all::<2>();
        all::<4>();
        all::<8>();
        all::<16>();
    }
}
