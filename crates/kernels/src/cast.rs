//! Elements of one dtype as another.

use crate::convert::Convert;
use crate::kernel::{Kernel, Loop};
use crate::simd::simd_loop;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Level, level};
use crate::with_element;
use osteon_spec::DType;

/// The kernel that converts `from` to `to`, defined for every pair: PyTorch's `to(dtype)`.
///
/// Integers wrap; floats truncate towards zero (300.7 is 44 as `int8`), and what an integer cannot
/// hold becomes what PyTorch gives on x86 (NaN is 0 as `int8` and `i32::MIN` as `int32`);
/// `float8_e4m3fn` saturates at 448, the other narrow floats overflow to infinity; complex numbers
/// lose their imaginary part; all but zero is true.
pub fn cast(from: DType, to: DType) -> Kernel<2> {
    Kernel::new([to, from], cast_loop(from, to))
}

/// The loop of [`cast`].
pub(crate) fn cast_loop(from: DType, to: DType) -> Loop<2> {
    #[cfg(target_arch = "x86_64")]
    if level() >= Level::Avx2 {
        if [from, to] == [DType::F16, DType::F32] {
            return x86::widen;
        }
        if [from, to] == [DType::F32, DType::F16] {
            return x86::narrow;
        }
    }
    with_element!(from, S => with_element!(to, T => simd_loop!(2, |p, len, _params| {
        let (dst, src) = (p[0].cast::<T>(), p[1].cast::<S>());
        for i in 0..len {
            dst.add(i).write_unaligned(src.add(i).read_unaligned().to());
        }
    })))
}

/// `float16`, which the CPU converts itself: from the expressions in [`crate::convert`] compilers make tens of instructions.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use crate::convert::Convert;
    use crate::kernel::Params;
    use half::f16;
    use std::arch::x86_64::*;

    /// Elements of a vector.
    const LANES: usize = 8;

    /// # Safety
    /// The contract of [`Loop`](crate::kernel::Loop); F16C, AVX.
    #[target_feature(enable = "avx,f16c")]
    pub(super) unsafe fn widen(p: [*mut u8; 2], len: usize, _: &Params) {
        let (to, from) = (p[0].cast::<f32>(), p[1].cast::<f16>());
        let whole = len / LANES * LANES;
        // SAFETY: the caller's contract, for `i < len`.
        unsafe {
            for i in (0..whole).step_by(LANES) {
                let x = _mm_loadu_si128(from.add(i).cast());
                _mm256_storeu_ps(to.add(i), _mm256_cvtph_ps(x));
            }
            for i in whole..len {
                to.add(i).write_unaligned(from.add(i).read_unaligned().to());
            }
        }
    }

    /// # Safety
    /// The contract of [`Loop`](crate::kernel::Loop); F16C, AVX.
    #[target_feature(enable = "avx,f16c")]
    pub(super) unsafe fn narrow(p: [*mut u8; 2], len: usize, _: &Params) {
        let (to, from) = (p[0].cast::<f16>(), p[1].cast::<f32>());
        let whole = len / LANES * LANES;
        let (sign, nan) = (_mm256_set1_ps(-0.0), _mm256_set1_ps(f32::NAN));
        // SAFETY: the caller's contract, for `i < len`.
        unsafe {
            for i in (0..whole).step_by(LANES) {
                let x = _mm256_loadu_ps(from.add(i));
                // One NaN of each sign, as everywhere.
                let one = _mm256_or_ps(_mm256_and_ps(x, sign), nan);
                let x = _mm256_blendv_ps(x, one, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x));
                let y = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(x);
                _mm_storeu_si128(to.add(i).cast(), y);
            }
            for i in whole..len {
                to.add(i).write_unaligned(from.add(i).read_unaligned().to());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Params;
    use crate::convert::Convert;
    use half::f16;

    #[test]
    fn every_half_and_what_rounds_to_it() {
        let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        let mut floats = vec![0f32; halves.len()];
        let run = |p: [*mut u8; 2], from, to| {
            // SAFETY: the arrays have as many elements.
            unsafe { cast_loop(from, to)(p, 1 << 16, &Params::NONE) }
        };
        let first = halves.as_ptr().cast_mut().cast();
        run([floats.as_mut_ptr().cast(), first], DType::F16, DType::F32);
        for (half, &float) in halves.iter().zip(&floats) {
            let wanted: f32 = half.to();
            assert!(float == wanted || float.is_nan() && wanted.is_nan());
        }
        for apart in [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff] {
            let near: Vec<f32> = floats
                .iter()
                .map(|x| f32::from_bits(x.to_bits() ^ apart))
                .collect();
            let mut back = vec![f16::ZERO; near.len()];
            let last = near.as_ptr().cast_mut().cast();
            run([back.as_mut_ptr().cast(), last], DType::F32, DType::F16);
            for (&x, got) in near.iter().zip(&back) {
                let wanted: f16 = x.to();
                assert_eq!(got.to_bits(), wanted.to_bits(), "{x}");
            }
        }
    }
}
