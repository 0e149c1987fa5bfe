//! Stores past the caches, for results that no cache would hold: a plain store reads the line first that it is going to
//! overwrite, which is a third of the traffic of a copy.

/// Bytes of a result from which on it is written past the caches: what follows would not find it there anyway. Debug
/// builds begin early, so that tests need no large results.
const FROM: usize = if cfg!(debug_assertions) {
    4 << 10
} else {
    16 << 20
};

/// The line that is written at a time.
pub(crate) const LINE: usize = 64;

/// Whether a result of so many bytes is to be written past the caches.
#[inline]
pub(crate) fn pays(bytes: usize) -> bool {
    bytes >= FROM && cfg!(target_arch = "x86_64")
}

/// Copies bytes that the caches hold (a block of results) to memory that they need not hold afterwards; whole lines
/// of the destination go past the caches, the ends before and after them do not. [`fence`] comes after the last one.
///
/// # Safety
/// `len` bytes may be read at `src` and written at `dst`; they do not overlap.
#[inline]
pub(crate) unsafe fn store(dst: *mut u8, src: *const u8, len: usize) {
    let before = dst.align_offset(LINE).min(len);
    let lines = (len - before) / LINE;
    // SAFETY: the three parts are `len` bytes together; the second begins on a line of the destination.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, before);
        let (to, from) = (dst.add(before), src.add(before));
        for i in 0..lines {
            line(to.add(i * LINE), from.add(i * LINE));
        }
        let done = lines * LINE;
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), len - before - done);
    }
}

/// One line. Four stores of 16 bytes fill a write-combining buffer as well as one of 64, and every x86-64 has them.
///
/// # Safety
/// [`LINE`] bytes may be read at `src` and written at `dst`, which is aligned to as many.
#[inline(always)]
pub(crate) unsafe fn line(dst: *mut u8, src: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract; SSE2 is part of x86-64.
    unsafe {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        for i in 0..LINE / 16 {
            let from = src.cast::<__m128i>().add(i);
            _mm_stream_si128(dst.cast::<__m128i>().add(i), _mm_loadu_si128(from));
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's contract.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, LINE)
    };
}

/// Orders stores past the caches before whatever this thread stores next: other threads see a result that they are told of.
#[inline]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_alignment_arrives_and_nothing_else_changes() {
        let src: Vec<u8> = (0..400).map(|i| (i % 251) as u8).collect();
        for from in [0, 1, 7, 63] {
            for to in [0, 1, 16, 63, 64] {
                for len in [0, 1, 63, 64, 65, 128, 200, 300] {
                    let mut dst = vec![255; 400];
                    // SAFETY: all of it lies in the two.
                    unsafe { store(dst[to..].as_mut_ptr(), src[from..].as_ptr(), len) };
                    fence();
                    assert_eq!(dst[to..to + len], src[from..from + len]);
                    let mut rest = dst[..to].iter().chain(&dst[to + len..]);
                    assert!(rest.all(|&b| b == 255));
                }
            }
        }
    }
}
