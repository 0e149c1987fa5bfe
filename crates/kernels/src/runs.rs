//! Moves of elements along one dim, and of rows of them, by width.

use crate::simd::vectorized;
use crate::stream::prefetch;

/// Elements of a run from which on it is worth the choice of a loop.
const MANY: usize = 32;

/// Moves `len` elements of `width` bytes from one run to another that does not overlap it. Strides
/// are in bytes; a source stride of 0 repeats one element.
///
/// # Safety
/// The positions of the destination's run may be written, those of the source's read.
///
/// # Panics
/// When `width` is not 1, 2, 4, 8 or 16.
#[inline]
pub(crate) unsafe fn move_run(
    dst: *mut u8,
    ds: isize,
    src: *const u8,
    ss: isize,
    len: usize,
    width: usize,
) {
    // SAFETY: the caller's contract.
    unsafe {
        match width {
            _ if ds == width as isize && ss == ds => {
                std::ptr::copy_nonoverlapping(src, dst, len * width);
            }
            _ if len >= MANY => {
                let (to, from) = (
                    Side {
                        at: dst,
                        step: ds,
                        row: 0,
                    },
                    Side {
                        at: src,
                        step: ss,
                        row: 0,
                    },
                );
                move_rows(to, from, len, 1, width);
            }
            1 => move_strided::<u8>(dst, ds, src, ss, len),
            2 => move_strided::<u16>(dst, ds, src, ss, len),
            4 => move_strided::<u32>(dst, ds, src, ss, len),
            8 => move_strided::<u64>(dst, ds, src, ss, len),
            16 => move_strided::<u128>(dst, ds, src, ss, len),
            _ => panic!("no element has {width} bytes"),
        }
    }
}

/// The same for elements of `T`'s size. Unaligned accesses, because a complex element of 8 bytes is
/// aligned to 4 only, and elements in files may be aligned to nothing.
///
/// # Safety
/// As [`move_run`].
#[inline(always)]
pub(crate) unsafe fn move_strided<T: Copy>(
    dst: *mut u8,
    ds: isize,
    src: *const u8,
    ss: isize,
    len: usize,
) {
    // SAFETY: the caller's contract: every position below is of a run.
    unsafe {
        if ss == 0 {
            fill_run(dst, ds, len, src.cast::<T>().read_unaligned());
        } else if ds == size_of::<T>() as isize {
            for i in 0..len as isize {
                let value = src.offset(i * ss).cast::<T>().read_unaligned();
                dst.cast::<T>().offset(i).write_unaligned(value);
            }
        } else {
            for i in 0..len as isize {
                let value = src.offset(i * ss).cast::<T>().read_unaligned();
                dst.offset(i * ds).cast::<T>().write_unaligned(value);
            }
        }
    }
}

/// Writes one value along a run.
///
/// # Safety
/// `dst + i·stride` may be written as a `T`, for every `i < len`.
#[inline(always)]
pub(crate) unsafe fn fill_run<T: Copy>(dst: *mut u8, stride: isize, len: usize, value: T) {
    // SAFETY: the caller's contract.
    unsafe {
        if stride == size_of::<T>() as isize {
            for i in 0..len {
                dst.cast::<T>().add(i).write_unaligned(value);
            }
        } else {
            for i in 0..len as isize {
                dst.offset(i * stride).cast::<T>().write_unaligned(value);
            }
        }
    }
}

/// One side of a move of rows: where it begins, and the bytes from an element to the next and from a row to the next.
#[derive(Clone, Copy)]
pub(crate) struct Side<P> {
    pub(crate) at: P,
    pub(crate) step: isize,
    pub(crate) row: isize,
}

macro_rules! side {
    ($($ptr:ty),*) => {$(
        impl Side<$ptr> {
            /// The same from another row and column on.
            ///
            /// # Safety
            /// They lie in the rows.
            #[inline(always)]
            pub(crate) unsafe fn skip(self, rows: usize, cols: usize) -> Self {
                let by = rows as isize * self.row + cols as isize * self.step;
                // SAFETY: the caller's contract.
                Side { at: unsafe { self.at.offset(by) }, ..self }
            }

            /// The same with columns for rows.
            #[inline(always)]
            pub(crate) fn turned(self) -> Self {
                Side { step: self.row, row: self.step, ..self }
            }
        }
    )*};
}
side!(*mut u8, *const u8);

/// Moves `rows` rows of `cols` elements of `width` bytes to others that they do not overlap: one choice of a loop for all
/// of them.
///
/// # Safety
/// The positions of the destination may be written, those of the source read.
///
/// # Panics
/// When `width` is not 1, 2, 4, 8 or 16.
pub(crate) unsafe fn move_rows(
    to: Side<*mut u8>,
    from: Side<*const u8>,
    cols: usize,
    rows: usize,
    width: usize,
) {
    vectorized(
        #[inline(always)]
        || {
            // SAFETY: the caller's contract.
            unsafe {
                match width {
                    _ if to.step == width as isize && from.step == to.step => {
                        dense_rows(to, from, cols * width, rows)
                    }
                    1 => strided_rows::<u8>(to, from, cols, rows),
                    2 => strided_rows::<u16>(to, from, cols, rows),
                    4 => strided_rows::<u32>(to, from, cols, rows),
                    8 => strided_rows::<u64>(to, from, cols, rows),
                    16 => strided_rows::<u128>(to, from, cols, rows),
                    _ => panic!("no element has {width} bytes"),
                }
            }
        },
    )
}

/// Rows of `bytes` bytes: short ones in the widest pieces that fit, the last over the one before.
///
/// # Safety
/// As [`move_rows`].
#[inline(always)]
unsafe fn dense_rows(to: Side<*mut u8>, from: Side<*const u8>, bytes: usize, rows: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            CALL.. => {
                for r in 0..rows {
                    let (to, from) = (to.skip(r, 0).at, from.skip(r, 0).at);
                    std::ptr::copy_nonoverlapping(from, to, bytes);
                }
            }
            1024.. => pieces::<256, false>(to, from, bytes, rows),
            128.. => pieces::<64, true>(to, from, bytes, rows),
            64.. => pieces::<64, false>(to, from, bytes, rows),
            32.. => pieces::<32, false>(to, from, bytes, rows),
            16.. => pieces::<16, false>(to, from, bytes, rows),
            _ if to.row == bytes as isize && from.row.unsigned_abs() >= bytes => {
                packed_rows(to, from, bytes, rows)
            }
            8.. => pieces::<8, false>(to, from, bytes, rows),
            4.. => pieces::<4, false>(to, from, bytes, rows),
            2.. => pieces::<2, false>(to, from, bytes, rows),
            _ => pieces::<1, false>(to, from, bytes, rows),
        }
    }
}

/// Bytes of a row from which on the C library's copy is the better one: it takes a third longer for rows of 8 KiB.
const CALL: usize = 1 << 15;

/// Rows in pieces of `N` bytes. With `FAR` they are asked for ahead: hardware does not foresee rows that lie apart; but
/// long ones it does, and short ones are begun before those before them have come.
///
/// # Safety
/// As [`move_rows`]; `bytes >= N`.
#[inline(always)]
unsafe fn pieces<const N: usize, const FAR: bool>(
    to: Side<*mut u8>,
    from: Side<*const u8>,
    bytes: usize,
    rows: usize,
) {
    /// Bytes of rows that are asked for ahead.
    const AHEAD: usize = 1024;
    let ahead = (AHEAD / bytes).max(1) as isize * from.row;
    // SAFETY: the caller's contract.
    unsafe {
        for r in 0..rows {
            let (to, from) = (to.skip(r, 0).at, from.skip(r, 0).at);
            let mut i = 0;
            while i + N < bytes {
                if FAR {
                    prefetch(from.add(i).wrapping_offset(ahead));
                }
                std::ptr::copy_nonoverlapping(from.add(i), to.add(i), N);
                i += N;
            }
            if FAR {
                prefetch(from.add(bytes - N).wrapping_offset(ahead));
            }
            std::ptr::copy_nonoverlapping(from.add(bytes - N), to.add(bytes - N), N);
        }
    }
}

/// Rows of less than 16 bytes that follow each other without a gap in the destination: each is moved as so many bytes as
/// a register holds, and the next one is written over those beyond it.
///
/// # Safety
/// As [`move_rows`]; `to.row` is `bytes`, and rows of the source lie at least so far apart.
#[inline(always)]
unsafe fn packed_rows(to: Side<*mut u8>, from: Side<*const u8>, bytes: usize, rows: usize) {
    /// # Safety
    /// As [`packed_rows`]; `bytes <= N <= 2 * bytes`.
    #[inline(always)]
    unsafe fn moved<const N: usize>(
        to: Side<*mut u8>,
        from: Side<*const u8>,
        bytes: usize,
        rows: usize,
    ) {
        // What is read beyond a row is part of another one that lies behind it: not so for the hindmost one, nor, as to
        // what is written, for the last one.
        let first = usize::from(from.row < 0);
        // SAFETY: rows of both sides, and the bytes between them and the next.
        unsafe {
            let exact = |r: usize| {
                let (to, from) = (to.skip(r, 0).at, from.skip(r, 0).at);
                for i in 0..bytes {
                    to.add(i).write(from.add(i).read());
                }
            };
            if first > 0 {
                exact(0);
            }
            for r in first..rows - 1 {
                let (to, from) = (to.skip(r, 0).at, from.skip(r, 0).at);
                std::ptr::copy_nonoverlapping(from, to, N);
            }
            if rows > first {
                exact(rows - 1);
            }
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        match bytes {
            9.. => moved::<16>(to, from, bytes, rows),
            5.. => moved::<8>(to, from, bytes, rows),
            3.. => moved::<4>(to, from, bytes, rows),
            2 => moved::<2>(to, from, bytes, rows),
            _ => moved::<1>(to, from, bytes, rows),
        }
    }
}

/// Rows of elements that are not dense on both sides.
///
/// # Safety
/// As [`move_rows`], with elements of `T`'s size.
#[inline(always)]
unsafe fn strided_rows<T: Copy>(
    to: Side<*mut u8>,
    from: Side<*const u8>,
    cols: usize,
    rows: usize,
) {
    let size = size_of::<T>() as isize;
    // SAFETY: the caller's contract.
    unsafe {
        for r in 0..rows {
            let (d, s) = (to.skip(r, 0).at, from.skip(r, 0).at);
            if to.step != size || from.step == 0 || from.step % size != 0 {
                move_strided::<T>(d, to.step, s, from.step, cols);
                continue;
            }
            // A stride that the compiler knows becomes shuffles of vectors.
            match from.step / size {
                -1 => gather::<T, -1>(d, s, cols),
                2 => gather::<T, 2>(d, s, cols),
                3 => gather::<T, 3>(d, s, cols),
                4 => gather::<T, 4>(d, s, cols),
                _ => move_strided::<T>(d, size, s, from.step, cols),
            }
        }
    }
}

/// # Safety
/// `len` elements may be written at `dst`, and every `STEP`th read from `src` on; they do not overlap.
#[inline(always)]
unsafe fn gather<T: Copy, const STEP: isize>(dst: *mut u8, src: *const u8, len: usize) {
    let (dst, src) = (dst.cast::<T>(), src.cast::<T>());
    for i in 0..len as isize {
        // SAFETY: the caller's contract.
        unsafe {
            dst.offset(i)
                .write_unaligned(src.offset(i * STEP).read_unaligned())
        };
    }
}
