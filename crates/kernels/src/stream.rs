//! Stores past the caches, for results that no cache would hold: a plain store reads the line first that it is going to
//! overwrite, which is a third of the traffic of a copy.

#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};

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
    let count = (len - before) / LINE;
    // SAFETY: the three parts are `len` bytes together; the second begins on a line of the destination.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, before);
        let (to, from) = (dst.add(before), src.add(before));
        lines(to, from, count);
        let done = count * LINE;
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), len - before - done);
    }
}

/// Whole lines, in the widest stores that there are: where a line is written in parts, others may come between them.
///
/// # Safety
/// `count` times [`LINE`] bytes may be read at `src` and written at `dst`, which is aligned to [`LINE`].
#[inline]
unsafe fn lines(dst: *mut u8, src: *const u8, count: usize) {
    // SAFETY: the caller's contract; a variant is chosen where the CPU has its features.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        match level() {
            Level::Avx512 | Level::Avx512Bf16 => x86::lines_512(dst, src, count),
            Level::Avx2 => x86::lines_256(dst, src, count),
            Level::Baseline => x86::lines_128(dst, src, count),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller's contract.
    unsafe {
        std::ptr::copy_nonoverlapping(src, dst, count * LINE)
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::LINE;
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::lines`]; AVX-512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn lines_512(dst: *mut u8, src: *const u8, count: usize) {
        for i in 0..count {
            // SAFETY: the caller's contract.
            unsafe {
                let line = _mm512_loadu_si512(src.add(i * LINE).cast());
                _mm512_stream_si512(dst.add(i * LINE).cast(), line);
            }
        }
    }

    /// # Safety
    /// As [`super::lines`]; AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn lines_256(dst: *mut u8, src: *const u8, count: usize) {
        for i in 0..2 * count {
            // SAFETY: the caller's contract.
            unsafe {
                let half = _mm256_loadu_si256(src.add(i * 32).cast());
                _mm256_stream_si256(dst.add(i * 32).cast(), half);
            }
        }
    }

    /// # Safety
    /// As [`super::lines`].
    pub(super) unsafe fn lines_128(dst: *mut u8, src: *const u8, count: usize) {
        for i in 0..4 * count {
            // SAFETY: the caller's contract; SSE2 is part of x86-64.
            unsafe {
                let quarter = _mm_loadu_si128(src.add(i * 16).cast());
                _mm_stream_si128(dst.add(i * 16).cast(), quarter);
            }
        }
    }
}

/// Asks for a line that is going to be read; any address will do.
#[inline(always)]
pub(crate) fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of x86-64, and a prefetch reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
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
