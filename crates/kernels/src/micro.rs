//! What elements are multiplied and summed as.

use crate::convert::Convert;
use crate::element::Element;
use half::{bf16, f16};
use num_complex::Complex;

/// What products are summed in.
pub(crate) trait Sum: Factor<Sum = Self> {
    /// Zero.
    const ZERO: Self;
    /// `self + a · b`.
    fn plus_product(self, a: Self, b: Self) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

/// An element and what its products are summed in: `float32` for half precision, `complex128` for complex numbers (their
/// parts may cancel), and integers of 32 or 64 bits without regard to sign, since products that wrap have the same low bits
/// whatever the width and sign.
pub(crate) trait Factor: Convert {
    type Sum: Sum;
}

macro_rules! factors {
    ($($ty:ty => $sum:ty;)*) => {$(
        impl Factor for $ty {
            type Sum = $sum;
        }
    )*};
}

factors! {
    u8 => u32; i8 => u32; u16 => u32; i16 => u32; u32 => u32; i32 => u32; u64 => u64; i64 => u64;
    f16 => f32; bf16 => f32; f32 => f32; f64 => f64;
    Complex<f32> => Complex<f64>; Complex<f64> => Complex<f64>;
}

macro_rules! sums {
    ($($ty:ty: $zero:expr, |$s:ident, $a:ident, $b:ident| $product:expr, $plus:expr;)*) => {$(
        impl Sum for $ty {
            const ZERO: $ty = $zero;
            #[inline(always)]
            fn plus_product(self, $a: $ty, $b: $ty) -> $ty {
                let $s = self;
                $product
            }
            #[inline(always)]
            fn plus(self, $b: $ty) -> $ty {
                let $s = self;
                $plus
            }
        }
    )*};
}

sums! {
    u32: 0, |s, a, b| s.wrapping_add(a.wrapping_mul(b)), s.wrapping_add(b);
    u64: 0, |s, a, b| s.wrapping_add(a.wrapping_mul(b)), s.wrapping_add(b);
    f32: 0.0, |s, a, b| s + a * b, s + b;
    f64: 0.0, |s, a, b| s + a * b, s + b;
    Complex<f64>: Complex::new(0.0, 0.0), |s, a, b| s + a * b, s + b;
}

/// Packs one lane: the elements at `ptr + steps[p]`, one after the other as they are summed.
///
/// # Safety
/// All those elements may be read; `to` is aligned and has room.
pub(crate) unsafe fn pack_lane<T: Factor>(to: *mut u8, ptr: *const u8, steps: &[isize]) {
    let to = to.cast::<T::Sum>();
    for (p, &step) in steps.iter().enumerate() {
        // SAFETY: the caller's contract.
        unsafe {
            to.add(p)
                .write(ptr.offset(step).cast::<T>().read_unaligned().to())
        };
    }
}

/// Whether positions follow each other like the elements of an array.
pub(crate) fn is_dense<T: Element>(positions: &[isize]) -> bool {
    let size = size_of::<T>() as isize;
    // Without a branch for each, it takes a fraction of the time.
    let differ = |w: &[isize]| (w[1] - w[0]) ^ size;
    positions.windows(2).fold(0, |all, w| all | differ(w)) == 0
}

/// Positions that are compared at a time.
const LOOK: usize = 16;

/// The runs of positions that follow each other like the elements of an array.
#[inline(always)]
pub(crate) fn runs<T: Element>(positions: &[isize]) -> impl Iterator<Item = &[isize]> {
    let mut rest = positions;
    std::iter::from_fn(
        #[inline(always)]
        move || {
            let (&first, size) = (rest.first()?, size_of::<T>() as isize);
            let at = |i: usize| first + i as isize * size;
            let mut len = 0;
            // As for `is_dense`: without a branch for each.
            for block in rest.chunks_exact(LOOK) {
                let differ = |(l, p): (usize, &isize)| p ^ at(len + l);
                if block
                    .iter()
                    .enumerate()
                    .map(differ)
                    .fold(0, |all, d| all | d)
                    != 0
                {
                    break;
                }
                len += LOOK;
            }
            while len < rest.len() && rest[len] == at(len) {
                len += 1;
            }
            let (run, after) = rest.split_at(len);
            rest = after;
            Some(run)
        },
    )
}

/// Whether most positions seem to lie in runs of so many: whether one of the first two does.
#[inline(always)]
pub(crate) fn in_runs<T: Element>(positions: &[isize], len: usize) -> bool {
    runs::<T>(positions).take(2).any(|run| run.len() >= len)
}
