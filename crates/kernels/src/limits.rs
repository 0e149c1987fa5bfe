//! What the machine can do at most: the loops that other loops are measured against, as simple as they can be. They
//! stream past the caches where the processor has instructions for that.

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// One loop over 64-byte lines, on 64 bytes of `dst` at a time.
    ///
    /// # Safety
    /// AVX-512F; pointers valid for `lines` times 64 bytes, `dst` aligned to 64.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn copy_512(dst: *mut f32, src: *const f32, lines: usize) {
        for i in 0..lines {
            // SAFETY: in bounds by the contract.
            unsafe { _mm512_stream_ps(dst.add(16 * i), _mm512_loadu_ps(src.add(16 * i))) };
        }
        _mm_sfence();
    }

    /// `dst = a + 2 b`.
    ///
    /// # Safety
    /// As [`copy_512`].
    #[target_feature(enable = "avx512f")]
    pub unsafe fn triad_512(dst: *mut f32, a: *const f32, b: *const f32, lines: usize) {
        let two = _mm512_set1_ps(2.0);
        for i in 0..lines {
            // SAFETY: in bounds by the contract.
            unsafe {
                let (x, y) = (
                    _mm512_loadu_ps(a.add(16 * i)),
                    _mm512_loadu_ps(b.add(16 * i)),
                );
                _mm512_stream_ps(dst.add(16 * i), _mm512_fmadd_ps(y, two, x));
            }
        }
        _mm_sfence();
    }

    /// # Safety
    /// AVX2; pointers valid for `lines` times 64 bytes, `dst` aligned to 32.
    #[target_feature(enable = "avx2")]
    pub unsafe fn copy_256(dst: *mut f32, src: *const f32, lines: usize) {
        for i in 0..2 * lines {
            // SAFETY: in bounds by the contract.
            unsafe { _mm256_stream_ps(dst.add(8 * i), _mm256_loadu_ps(src.add(8 * i))) };
        }
        _mm_sfence();
    }

    /// # Safety
    /// As [`copy_256`], and FMA.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn triad_256(dst: *mut f32, a: *const f32, b: *const f32, lines: usize) {
        let two = _mm256_set1_ps(2.0);
        for i in 0..2 * lines {
            // SAFETY: in bounds by the contract.
            unsafe {
                let (x, y) = (_mm256_loadu_ps(a.add(8 * i)), _mm256_loadu_ps(b.add(8 * i)));
                _mm256_stream_ps(dst.add(8 * i), _mm256_fmadd_ps(y, two, x));
            }
        }
        _mm_sfence();
    }

    /// Independent chains of multiply-adds in registers; the sum keeps them from being left out.
    #[target_feature(enable = "avx512f")]
    pub fn fma_512(rounds: usize) -> f32 {
        let (x, mut sums) = (_mm512_set1_ps(0.999), [_mm512_set1_ps(1.0); 16]);
        for _ in 0..rounds {
            for s in &mut sums {
                *s = _mm512_fmadd_ps(*s, x, x);
            }
        }
        sums.iter().map(|&s| _mm512_reduce_add_ps(s)).sum()
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn fma_256(rounds: usize) -> f32 {
        let (x, mut sums) = (_mm256_set1_ps(0.999), [_mm256_set1_ps(1.0); 12]);
        for _ in 0..rounds {
            for s in &mut sums {
                *s = _mm256_fmadd_ps(*s, x, x);
            }
        }
        let mut out = [0.0; 8];
        sums.iter()
            .map(|&s| {
                // SAFETY: room for eight floats.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr(), s) };
                out.iter().sum::<f32>()
            })
            .sum()
    }
}

/// What is left at both ends of `dst` when only whole aligned lines are taken: the floats before, and the lines.
fn lines(dst: &[f32], len: usize) -> (usize, usize) {
    let before = dst.as_ptr().align_offset(64).min(len);
    (before, (len - before) / 16)
}

/// `dst = src`, as many elements as both have.
pub fn copy(dst: &mut [f32], src: &[f32]) {
    let n = dst.len().min(src.len());
    let (before, lines) = lines(dst, n);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    {
        let (to, from) = (dst[before..].as_mut_ptr(), src[before..].as_ptr());
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature is there, and so many lines fit into both, aligned in `dst`.
            unsafe { x86::copy_512(to, from, lines) };
            done = 16 * lines;
        } else if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            unsafe { x86::copy_256(to, from, lines) };
            done = 16 * lines;
        }
    }
    dst[..before].copy_from_slice(&src[..before]);
    dst[before + done..n].copy_from_slice(&src[before + done..n]);
}

/// `dst = a + 2 b`, as many elements as all have.
pub fn triad(dst: &mut [f32], a: &[f32], b: &[f32]) {
    let n = dst.len().min(a.len()).min(b.len());
    let (before, lines) = lines(dst, n);
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    {
        let (to, x, y) = (
            dst[before..].as_mut_ptr(),
            a[before..].as_ptr(),
            b[before..].as_ptr(),
        );
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature is there, and so many lines fit into all, aligned in `dst`.
            unsafe { x86::triad_512(to, x, y, lines) };
            done = 16 * lines;
        } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: as above.
            unsafe { x86::triad_256(to, x, y, lines) };
            done = 16 * lines;
        }
    }
    for i in (0..before).chain(before + done..n) {
        dst[i] = b[i].mul_add(2.0, a[i]);
    }
}

/// The sum of all elements, in sixteen times four running sums.
pub fn read(src: &[f32]) -> f32 {
    let mut sums = [0.0f32; 64];
    let (chunks, rest) = src.as_chunks::<64>();
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(s, x)| *s += x);
    }
    sums.iter().chain(rest).sum()
}

/// Multiply-adds of `f32` in registers; the number of floating-point operations, and a number that depends on all.
pub fn multiply_adds(rounds: usize) -> (usize, f32) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature is there.
            return (rounds * 16 * 16 * 2, unsafe { x86::fma_512(rounds) });
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features are there.
            return (rounds * 12 * 8 * 2, unsafe { x86::fma_256(rounds) });
        }
    }
    let mut sums = [1.0f32; 16];
    for _ in 0..rounds {
        sums.iter_mut().for_each(|s| *s = *s * 0.999 + 0.999);
    }
    (rounds * 16 * 2, sums.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_compute_what_they_say_at_every_alignment() {
        let (a, b): (Vec<f32>, Vec<f32>) = (0..200).map(|i| (i as f32, (i % 7) as f32)).unzip();
        for from in 0..20 {
            for len in [0, 1, 15, 16, 17, 100, 170] {
                let mut out = vec![-1.0f32; 200];
                copy(&mut out[from..from + len], &a[from..]);
                assert_eq!(out[from..from + len], a[from..from + len]);
                assert!(
                    out[..from]
                        .iter()
                        .chain(&out[from + len..])
                        .all(|&x| x == -1.0)
                );
                triad(&mut out[from..from + len], &a[from..], &b[from..]);
                let right = |i: usize| out[i] == a[i] + 2.0 * b[i];
                assert!((from..from + len).all(right));
                assert!(
                    out[..from]
                        .iter()
                        .chain(&out[from + len..])
                        .all(|&x| x == -1.0)
                );
                assert_eq!(read(&a[from..from + len]), a[from..from + len].iter().sum());
            }
        }
        let (flops, sum) = multiply_adds(10);
        assert!(flops >= 320 && sum.is_finite());
    }
}
