//! One element of any dtype to any other, with PyTorch's results on x86.

use crate::element::{Bool, Element, F8E4M3FN, F8E5M2};
use half::{bf16, f16};
use num_complex::Complex;

/// Conversion between all elements, each through the widest value of its kind.
///
/// The rules: integers wrap; floats truncate towards zero, and what the integer cannot hold becomes
/// what the CPU's conversion gives; reals narrower than `float32` are reached through `float32`,
/// rounding to nearest even; a complex number's imaginary part is dropped; a number is true unless
/// it is zero (a NaN is true).
pub(crate) trait Convert: Element {
    /// This value as another element.
    fn to<T: Convert>(self) -> T;
    /// From any integer but `u64`.
    fn from_int(v: i64) -> Self;
    /// From a `u64`.
    fn from_uint(v: u64) -> Self;
    /// From a real of 32 bits or fewer.
    fn from_f32(v: f32) -> Self;
    /// From a `float64`.
    fn from_f64(v: f64) -> Self;
    /// From a complex number: its real part, unless this type can say more.
    #[inline(always)]
    fn from_c64(v: Complex<f32>) -> Self {
        Self::from_f32(v.re)
    }
    /// The same for the wider complex.
    #[inline(always)]
    fn from_c128(v: Complex<f64>) -> Self {
        Self::from_f64(v.re)
    }
}

/// How the CPU converts floats to 32-bit integers: truncation, and the smallest integer for what
/// does not fit.
trait Truncate: Copy {
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn to_u64(self) -> u64;
    fn to_u8(self) -> u8;
}

macro_rules! truncate {
    ($f:ty, below_i32: $below:expr, u8 through $wide:ident) => {
        impl Truncate for $f {
            #[inline(always)]
            fn to_i32(self) -> i32 {
                if self > $below && self < 2147483648.0 {
                    // SAFETY: the truncated value is in range.
                    unsafe { self.to_int_unchecked() }
                } else {
                    i32::MIN
                }
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                if (-9223372036854775808.0..9223372036854775808.0).contains(&self) {
                    // SAFETY: the truncated value is in range.
                    unsafe { self.to_int_unchecked() }
                } else {
                    i64::MIN
                }
            }
            /// Compilers convert the upper half of `u64` by way of a difference.
            #[inline(always)]
            fn to_u64(self) -> u64 {
                const HALF: $f = 9223372036854775808.0;
                if self >= HALF {
                    (self - HALF).to_i64() as u64 ^ (1 << 63)
                } else {
                    self.to_i64() as u64
                }
            }
            #[inline(always)]
            fn to_u8(self) -> u8 {
                self.$wide() as u8
            }
        }
    };
}

// No `float32` lies strictly between the bound and i32::MIN. PyTorch's `u8` goes through 64 bits;
// for a `float32` beyond 32 bits the low byte is 0 either way, and the 32-bit loop is vectorised.
truncate!(f32, below_i32: -2147483904.0, u8 through to_i32);
truncate!(f64, below_i32: -2147483649.0, u8 through to_i64);

macro_rules! integers {
    ($($int:ident $from:ident $as:ident, $through:ident;)*) => {$(
        impl Convert for $int {
            #[inline(always)]
            fn to<T: Convert>(self) -> T {
                T::$from(self as $as)
            }
            #[inline(always)]
            fn from_int(v: i64) -> $int {
                v as $int
            }
            #[inline(always)]
            fn from_uint(v: u64) -> $int {
                v as $int
            }
            #[inline(always)]
            fn from_f32(v: f32) -> $int {
                v.$through() as $int
            }
            #[inline(always)]
            fn from_f64(v: f64) -> $int {
                v.$through() as $int
            }
        }
    )*};
}

integers! {
    u8 from_int i64, to_u8;
    i8 from_int i64, to_i32;
    i16 from_int i64, to_i32;
    u16 from_int i64, to_i32;
    i32 from_int i64, to_i32;
    u32 from_int i64, to_i64;
    i64 from_int i64, to_i64;
    u64 from_uint u64, to_u64;
}

impl Convert for Bool {
    #[inline(always)]
    fn to<T: Convert>(self) -> T {
        T::from_int(self.get() as i64)
    }
    #[inline(always)]
    fn from_int(v: i64) -> Bool {
        (v != 0).into()
    }
    #[inline(always)]
    fn from_uint(v: u64) -> Bool {
        (v != 0).into()
    }
    #[inline(always)]
    fn from_f32(v: f32) -> Bool {
        (v != 0.0).into()
    }
    #[inline(always)]
    fn from_f64(v: f64) -> Bool {
        (v != 0.0).into()
    }
    #[inline(always)]
    fn from_c64(v: Complex<f32>) -> Bool {
        (v.re != 0.0 || v.im != 0.0).into()
    }
    #[inline(always)]
    fn from_c128(v: Complex<f64>) -> Bool {
        (v.re != 0.0 || v.im != 0.0).into()
    }
}

macro_rules! wide_floats {
    ($($float:ident $from:ident;)*) => {$(
        impl Convert for $float {
            #[inline(always)]
            fn to<T: Convert>(self) -> T {
                T::$from(self)
            }
            #[inline(always)]
            fn from_int(v: i64) -> $float {
                v as $float
            }
            #[inline(always)]
            fn from_uint(v: u64) -> $float {
                v as $float
            }
            #[inline(always)]
            fn from_f32(v: f32) -> $float {
                v as $float
            }
            #[inline(always)]
            fn from_f64(v: f64) -> $float {
                v as $float
            }
        }
    )*};
}

wide_floats! { f32 from_f32; f64 from_f64; }

macro_rules! narrow_floats {
    ($($float:ident, |$x:ident| $widen:expr, |$y:ident| $narrow:expr;)*) => {$(
        impl Convert for $float {
            #[inline(always)]
            fn to<T: Convert>(self) -> T {
                let $x = self;
                T::from_f32($widen)
            }
            #[inline(always)]
            fn from_int(v: i64) -> $float {
                Self::from_f32(v as f32)
            }
            #[inline(always)]
            fn from_uint(v: u64) -> $float {
                Self::from_f32(v as f32)
            }
            #[inline(always)]
            fn from_f32($y: f32) -> $float {
                $narrow
            }
            #[inline(always)]
            fn from_f64(v: f64) -> $float {
                Self::from_f32(v as f32)
            }
        }
    )*};
}

narrow_floats! {
    f16, |x| f16_to_f32(x.to_bits()), |y| f16::from_bits(f32_to_f16(y));
    bf16, |x| f32::from_bits((x.to_bits() as u32) << 16), |y| bf16::from_bits(f32_to_bf16(y));
    F8E4M3FN, |x| e4m3fn_to_f32(x.0), |y| F8E4M3FN(f32_to_e4m3fn(y));
    F8E5M2, |x| f16_to_f32((x.0 as u16) << 8), |y| F8E5M2(f32_to_e5m2(y));
}

macro_rules! complexes {
    ($($part:ident $from:ident;)*) => {$(
        impl Convert for Complex<$part> {
            #[inline(always)]
            fn to<T: Convert>(self) -> T {
                T::$from(self)
            }
            #[inline(always)]
            fn from_int(v: i64) -> Self {
                Complex::new(v as $part, 0.0)
            }
            #[inline(always)]
            fn from_uint(v: u64) -> Self {
                Complex::new(v as $part, 0.0)
            }
            #[inline(always)]
            fn from_f32(v: f32) -> Self {
                Complex::new(v as $part, 0.0)
            }
            #[inline(always)]
            fn from_f64(v: f64) -> Self {
                Complex::new(v as $part, 0.0)
            }
            #[inline(always)]
            fn from_c64(v: Complex<f32>) -> Self {
                Complex::new(v.re as $part, v.im as $part)
            }
            #[inline(always)]
            fn from_c128(v: Complex<f64>) -> Self {
                Complex::new(v.re as $part, v.im as $part)
            }
        }
    )*};
}

complexes! { f32 from_c64; f64 from_c128; }

// The conversions below are free of branches and tables, so that loops over them are vectorised.

/// `2^n` for exponents of normal numbers.
const fn exp2(n: i32) -> f32 {
    f32::from_bits(((127 + n) as u32) << 23)
}

/// The exponent and mantissa of a narrow float, moved to their place in a `float32`, are its value
/// but for the difference of the biases; a multiplication corrects it, for subnormals too.
#[inline(always)]
fn f16_to_f32(bits: u16) -> f32 {
    let magnitude = (bits as u32 & 0x7fff) << 13;
    let finite = (f32::from_bits(magnitude) * exp2(112)).to_bits();
    let special = magnitude | 0x7f80_0000;
    let value = if magnitude >= 0x7c00 << 13 {
        special
    } else {
        finite
    };
    f32::from_bits(value | (bits as u32 & 0x8000) << 16)
}

#[inline(always)]
fn e4m3fn_to_f32(bits: u8) -> f32 {
    let magnitude = (bits as u32 & 0x7f) << 20;
    let finite = (f32::from_bits(magnitude) * exp2(120)).to_bits();
    let value = if magnitude == 0x7f << 20 {
        0x7fc0_0000
    } else {
        finite
    };
    f32::from_bits(value | (bits as u32 & 0x80) << 24)
}

/// Rounds the magnitude of a `float32`, given as bits, to nearest even in a format with `M`
/// mantissa bits and this exponent bias; the result's exponent may be one beyond the largest.
#[inline(always)]
fn round_magnitude<const M: u32, const BIAS: u32>(magnitude: u32) -> u32 {
    let shift = 23 - M;
    // Below the smallest normal number: a sum with the power of two whose last place is the narrow
    // format's, so that the addition rounds.
    let anchor = exp2(24 - M as i32 - BIAS as i32);
    let subnormal = (f32::from_bits(magnitude) + anchor).to_bits() - anchor.to_bits();
    // Otherwise half a unit in the last place, less where the kept part is even, carries.
    let odd = magnitude >> shift & 1;
    let rebased = magnitude.wrapping_sub((127 - BIAS) << 23);
    let normal = rebased.wrapping_add((1 << (shift - 1)) - 1 + odd) >> shift;
    if magnitude < (128 - BIAS) << 23 {
        subnormal
    } else {
        normal
    }
}

#[inline(always)]
fn f32_to_f16(v: f32) -> u16 {
    let bits = v.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let finite = round_magnitude::<10, 15>(magnitude);
    let value = if magnitude > 0x7f80_0000 {
        0x7e00
    } else if magnitude >= exp2(16).to_bits() {
        0x7c00
    } else {
        finite
    };
    (value | bits >> 16 & 0x8000) as u16
}

#[inline(always)]
fn f32_to_bf16(v: f32) -> u16 {
    let bits = v.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    (if v.is_nan() { 0x7fc0 } else { rounded }) as u16
}

/// Beyond the largest number, infinity included, PyTorch saturates.
#[inline(always)]
fn f32_to_e4m3fn(v: f32) -> u8 {
    let bits = v.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let finite = round_magnitude::<3, 7>(magnitude).min(0x7e);
    let value = if magnitude > 0x7f80_0000 {
        0x7f
    } else if magnitude >= exp2(9).to_bits() {
        0x7e
    } else {
        finite
    };
    (value | bits >> 24 & 0x80) as u8
}

#[inline(always)]
fn f32_to_e5m2(v: f32) -> u8 {
    let bits = v.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let finite = round_magnitude::<2, 15>(magnitude);
    let value = if magnitude > 0x7f80_0000 {
        0x7f
    } else if magnitude >= exp2(16).to_bits() {
        0x7c
    } else {
        finite
    };
    (value | bits >> 24 & 0x80) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_as_the_half_crate_says() {
        for bits in 0..=u16::MAX {
            let (got, want) = (f16_to_f32(bits), f16::from_bits(bits).to_f32());
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "{bits:#x}"
            );
            let (got, want): (f32, f32) =
                (bf16::from_bits(bits).to(), bf16::from_bits(bits).to_f32());
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "{bits:#x}"
            );
        }
    }

    /// Every boundary of rounding: the midpoints between neighbours, and their neighbours.
    #[test]
    fn floats_round_to_the_nearest_half() {
        let mut cases = vec![];
        for bits in 0..=0x7c00u16 {
            let a = f16::from_bits(bits).to_f32();
            let b = if bits < 0x7bff {
                f16::from_bits(bits + 1).to_f32()
            } else {
                65536.0
            };
            let middle = ((a as f64 + b as f64) / 2.0) as f32;
            cases.extend([a, middle, middle.next_up(), middle.next_down()]);
        }
        cases.extend((0..=u32::MAX).step_by(65_537).map(f32::from_bits));
        for v in cases.into_iter().flat_map(|v| [v, -v]) {
            let (got, want) = (f16::from_bits(f32_to_f16(v)), f16::from_f32(v));
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "{v:e}"
            );
            let (got, want) = (bf16::from_bits(f32_to_bf16(v)), bf16::from_f32(v));
            assert!(
                got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                "{v:e}"
            );
        }
    }

    /// A value's nearest neighbours in a narrow format, found by looking at all of them.
    fn nearest(v: f32, all: &[(u8, f32)]) -> u8 {
        let mut best = all[0];
        for &(bits, x) in all {
            let (d, e) = (
                (x as f64 - v as f64).abs(),
                (best.1 as f64 - v as f64).abs(),
            );
            if d < e || d == e && bits & 1 == 0 {
                best = (bits, x);
            }
        }
        best.0
    }

    #[test]
    fn floats_round_to_the_nearest_8_bit_float() {
        let e4m3: Vec<_> = (0..0x7f).map(|b| (b, e4m3fn_to_f32(b))).collect();
        assert_eq!(
            (e4m3[1].1, e4m3[8].1, e4m3[0x7e].1),
            (exp2(-9), exp2(-6), 448.0)
        );
        let e5m2: Vec<_> = (0..0x7c).map(|b| (b, F8E5M2(b).to::<f32>())).collect();
        assert_eq!(
            (e5m2[1].1, e5m2[4].1, e5m2[0x7b].1),
            (exp2(-16), exp2(-14), 57344.0)
        );
        for i in 0..40_000u32 {
            let v = f32::from_bits(exp2(-20).to_bits() + i * 7919);
            if v < 57344.0 {
                assert_eq!(f32_to_e5m2(v), nearest(v, &e5m2), "{v:e}");
            }
            assert_eq!(f32_to_e4m3fn(v), nearest(v, &e4m3), "{v:e}");
        }
        for pair in e4m3.windows(2) {
            let v = (pair[0].1 + pair[1].1) / 2.0;
            assert_eq!(f32_to_e4m3fn(-v), 0x80 | nearest(v, &e4m3), "{v:e}");
        }
    }
}
