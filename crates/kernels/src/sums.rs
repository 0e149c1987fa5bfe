//! Sums of many terms: few of them in their own precision, and those in a wider one.
//!
//! Widening every `float32` costs more than reading it from memory. Eight terms that are added first, in pairs of pairs, are
//! three roundings deep; from there on nothing is lost.

use num_complex::Complex;

/// What is added up.
pub(crate) trait Term: Copy {
    /// What sums grow in.
    type Wide: Term<Wide = Self::Wide>;
    const ZERO: Self;
    /// Whether a few terms may leave the range, or the precision, that their sum has in the end.
    const IS_NARROW: bool;
    fn plus(self, other: Self) -> Self;
    fn wide(self) -> Self::Wide;
    fn is_finite(self) -> bool;
}

macro_rules! terms {
    ($($T:ty, $Wide:ty, $zero:expr, $narrow:expr, |$v:ident| $wide:expr, |$a:ident, $b:ident| $plus:expr, $finite:expr;)*) => {$(
        impl Term for $T {
            type Wide = $Wide;
            const ZERO: $T = $zero;
            const IS_NARROW: bool = $narrow;
            #[inline(always)]
            fn plus(self, other: $T) -> $T {
                let ($a, $b) = (self, other);
                $plus
            }
            #[inline(always)]
            fn wide(self) -> $Wide {
                let $v = self;
                $wide
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                let $v = self;
                $finite
            }
        }
    )*};
}

terms! {
    f32, f64, 0.0, true, |x| x as f64, |a, b| a + b, x.is_finite();
    f64, f64, 0.0, false, |x| x, |a, b| a + b, x.is_finite();
    i64, i64, 0, false, |x| x, |a, b| a.wrapping_add(b), { let _ = x; true };
    Complex<f64>, Complex<f64>, Complex::new(0.0, 0.0), false, |x| x, |a, b| a + b, x.is_finite();
}

/// Terms that are added before they are widened.
pub(crate) const NEAR: usize = 8;

/// Sums that grow side by side: two vectors of the widest kind, whose steps overlap.
const LANES: usize = 16;

/// Sums of fewer terms are added in the wide precision alone.
pub(crate) const MANY: usize = LANES * NEAR;

/// [`NEAR`] values as one, in pairs of pairs.
#[inline(always)]
pub(crate) fn pairs<R>(at: impl Fn(usize) -> R, join: impl Fn(R, R) -> R) -> R {
    let pair = |i: usize| join(at(i), at(i + 1));
    let four = |i: usize| join(pair(i), pair(i + 2));
    join(four(0), four(4))
}

/// The sum of [`NEAR`] terms.
#[inline(always)]
pub(crate) fn near<R: Term>(at: impl Fn(usize) -> R) -> R {
    pairs(at, Term::plus)
}

/// The sum of `len` terms, in an order that `len` decides.
#[inline(always)]
pub(crate) fn sum_of<R: Term>(len: usize, at: impl Fn(usize) -> R) -> R::Wide {
    sums_of(len, at, |_| 0i64).0
}

/// Two such sums over the same elements, in one pass.
#[inline(always)]
pub(crate) fn sums_of<R: Term, S: Term>(
    len: usize,
    first: impl Fn(usize) -> R,
    second: impl Fn(usize) -> S,
) -> (R::Wide, S::Wide) {
    let (mut a, mut b) = ([R::Wide::ZERO; LANES], [S::Wide::ZERO; LANES]);
    let mut i = 0;
    // Every index is known once the inner loops are unrolled, so the lanes live in registers.
    while i + MANY <= len {
        for l in 0..LANES {
            let at = |k: usize| i + k * LANES + l;
            a[l] = a[l].plus(near(|k| first(at(k))).wide());
            b[l] = b[l].plus(near(|k| second(at(k))).wide());
        }
        i += MANY;
    }
    while i + LANES <= len {
        for l in 0..LANES {
            a[l] = a[l].plus(first(i + l).wide());
            b[l] = b[l].plus(second(i + l).wide());
        }
        i += LANES;
    }
    // Short runs fill no lanes.
    let mut half = if i > 0 { LANES / 2 } else { 0 };
    while half > 0 {
        for l in 0..half {
            a[l] = a[l].plus(a[l + half]);
            b[l] = b[l].plus(b[l + half]);
        }
        half /= 2;
    }
    (i..len).fold((a[0], b[0]), |(a, b), i| {
        (a.plus(first(i).wide()), b.plus(second(i).wide()))
    })
}

/// Whether a sum of squares is so large or so small that narrow terms may have overflowed or vanished.
#[inline(always)]
pub(crate) fn are_lost<R: Term>(squares: f64) -> bool {
    R::IS_NARROW && !(1e-30..1e37).contains(&squares)
}
