//! The accumulators of sums of exponentials.

use crate::accumulator::{Accumulator, COLUMNS, Rows, by_rows};
use crate::arithmetic::{Float, Fractional, Ordered};
use crate::extremes::Extreme;
use crate::math::Exponentials as _;
use crate::simd::{Isa, Portable};
use crate::stream::{LINE, prefetch};
use crate::summaries::Sum;
use crate::sums::Term;
use num_complex::Complex;
use std::mem::MaybeUninit;

/// The largest element, and the sum of exponentials of the distances from it: what `logsumexp` and
/// `softmax` are made of. Both are NaN where an element is; the sum is also where the largest is infinite.
#[derive(Clone, Copy)]
pub(crate) struct Exponentials<T> {
    pub(crate) max: T,
    pub(crate) sum: f64,
}

/// Exponentials that are added up while the first-level cache holds them.
const PIECE: usize = 1024;

/// Elements after which the next row is asked for as far: the CPU has few reads of memory under way at a time, and would
/// wait for them if it were asked for all at once.
const PACE: usize = 128;

/// What distances are taken from, once `max` is the largest element. Where nothing is above minus infinity, nothing adds up:
/// they are from zero then, because e^(-inf - -inf) would be NaN.
#[inline(always)]
fn origin<T: Float>(max: T) -> T {
    if max == T::LOWEST {
        <T as Term>::ZERO
    } else {
        max
    }
}

/// What a sum of exponentials is to be scaled by when `max` becomes the largest element.
#[inline(always)]
fn scale<I: Isa, T: Float>(of: T, max: T) -> T {
    I::exp(of - origin(max))
}

/// Of two numbers; a NaN is left out.
#[inline(always)]
fn further<T: Float>(a: T, b: T) -> T {
    if b > a { b } else { a }
}

#[inline(always)]
fn larger<T: Float>(a: T, b: T) -> T {
    if (b > a) | <T as Ordered>::is_nan(b) {
        b
    } else {
        a
    }
}

impl<T: Float> Accumulator for Exponentials<T> {
    type Input = T;
    const EMPTY: Self = Exponentials {
        max: T::LOWEST,
        sum: 0.0,
    };
    #[inline(always)]
    fn with(self, x: T, number: f64) -> Self {
        self.then(Exponentials { max: x, sum: 1.0 }, number)
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        let max = larger(self.max, later.max);
        let part = |of: Self| of.sum * scale::<Portable, T>(of.max, max).wide();
        Exponentials {
            max,
            sum: part(self) + part(later),
        }
    }
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, _: f64) -> Self {
        // SAFETY: the caller's contract.
        unsafe { Self::of_row::<I>(run, len, run, None) }
    }
    #[inline(always)]
    unsafe fn of_rows<I: Isa>(accs: *mut Self, rows: Rows, len: usize, _: f64) {
        let [mut maxima, mut origins, mut scales, mut terms] = [[<T as Term>::ZERO; COLUMNS]; 4];
        let mut sums = [0.0; COLUMNS];
        for start in (0..len).step_by(COLUMNS) {
            let n = COLUMNS.min(len - start);
            let (maxima, sums) = (&mut maxima[..n], &mut sums[..n]);
            let (origins, scales) = (&mut origins[..n], &mut scales[..n]);
            let terms = &mut terms[..n];
            let accs = accs.wrapping_add(start);
            // SAFETY: the caller's contract: `start + i < len`.
            let acc = |i: usize| unsafe { accs.add(i).read() };
            // SAFETY: as above.
            let at = |r: usize, i: usize| unsafe { rows.get::<T>(r, start + i) };
            for i in 0..n {
                (maxima[i], sums[i]) = (acc(i).max, acc(i).sum);
            }
            // What several rows have as their largest element costs one more exponential for all of them. A NaN makes its
            // terms NaN, so that it need not be looked for beside. Wide sums have a loop of their own: with them the others
            // would have half as many elements a vector.
            by_rows!(rows, start..start + n, 8, |r, K| {
                for i in 0..n {
                    let max = (0..K).fold(maxima[i], |max, k| further(max, at(r + k, i)));
                    origins[i] = origin(max);
                    scales[i] = I::lifted_exp(maxima[i] - origins[i]);
                    maxima[i] = max;
                }
                terms.fill(<T as Term>::ZERO);
                for k in 0..K {
                    for i in 0..n {
                        terms[i] = terms[i] + I::lifted_exp(at(r + k, i) - origins[i]);
                    }
                }
                for i in 0..n {
                    sums[i] = (sums[i] * scales[i].wide() + terms[i].wide()) * T::LOWER;
                }
            });
            for i in (0..n).filter(|&i| sums[i].is_nan()) {
                maxima[i] = (0..rows.count).fold(maxima[i], |max, r| larger(max, at(r, i)));
            }
            for i in 0..n {
                let (max, sum) = (maxima[i], sums[i]);
                // SAFETY: as above.
                unsafe { accs.add(i).write(Exponentials { max, sum }) };
            }
        }
    }
}

impl<T: Float> Exponentials<T> {
    /// Those of a dense run, while `next` is asked for, and in `to` the exponentials themselves, lifted.
    ///
    /// # Safety
    /// `len` elements may be read at `run`, and written at `to`, which is not the run; `next` may be any address.
    #[inline(always)]
    pub(crate) unsafe fn of_row<I: Isa>(
        run: *const T,
        len: usize,
        next: *const T,
        to: Option<*mut T>,
    ) -> Self {
        // SAFETY: the caller's contract.
        let max = unsafe { Extreme::<T, true>::of_run::<I>(run, len, 0.0) }.0;
        let (origin, mut sum) = (origin(max), 0.0);
        let mut terms = [const { MaybeUninit::<T>::uninit() }; PIECE];
        for start in (0..len).step_by(PIECE) {
            let piece = PIECE.min(len - start);
            let terms = match to {
                Some(to) => to.wrapping_add(start),
                None => terms.as_mut_ptr().cast(),
            };
            for from in (0..piece).step_by(PACE) {
                let upto = piece.min(from + PACE);
                for i in (from..upto).step_by(LINE / size_of::<T>()) {
                    prefetch(next.wrapping_add(start + i).cast());
                }
                for i in from..upto {
                    // SAFETY: the caller's contract: `start + i < len`; there is room for a piece of terms.
                    unsafe {
                        let x = run.add(start + i).read_unaligned();
                        terms.add(i).write_unaligned(I::lifted_exp(x - origin));
                    }
                }
            }
            // SAFETY: the terms are a run.
            sum += unsafe { Sum::<T>::of_run::<I>(terms, piece, 0.0) }.0;
        }
        let sum = sum * T::LOWER;
        Exponentials { max, sum }
    }

    /// What lifted exponentials of a softmax are multiplied by.
    pub(crate) fn share(self) -> T {
        T::narrow(T::LOWER / self.sum)
    }

    /// The logarithm of the sum of exponentials.
    pub(crate) fn log(self) -> T {
        let max = self.max.wide();
        if max.is_infinite() {
            self.max
        } else {
            T::narrow(max + self.sum.ln())
        }
    }
}

/// The logarithm of the sum of exponentials of complex numbers.
#[derive(Clone, Copy)]
pub(crate) struct LogSum<T>(Complex<f64>, std::marker::PhantomData<T>);

impl<T: Fractional<Wide = Complex<f64>>> LogSum<T> {
    pub(crate) fn value(self) -> T::Value {
        T::narrow(self.0)
    }

    /// With an imaginary part between −π and π.
    pub(crate) fn in_one_turn(self) -> T::Value {
        let (sin, cos) = self.0.im.sin_cos();
        T::narrow(Complex::new(self.0.re, sin.atan2(cos)))
    }
}

impl<T: Fractional<Wide = Complex<f64>>> Accumulator for LogSum<T> {
    type Input = T;
    const EMPTY: Self = LogSum(
        Complex::new(f64::NEG_INFINITY, 0.0),
        std::marker::PhantomData,
    );
    #[inline(always)]
    fn with(self, x: T::Value, number: f64) -> Self {
        self.then(LogSum(T::wide(x), self.1), number)
    }
    /// `log(e^a + e^b) = a + log(1 + e^(b - a))` for the larger `a`.
    fn then(self, later: Self, _: f64) -> Self {
        let (mut a, mut b) = (self.0, later.0);
        if a.re < b.re {
            (a, b) = (b, a);
        }
        let sum = if a.is_nan() || b.is_nan() {
            Complex::new(f64::NAN, f64::NAN)
        } else if b.re == f64::NEG_INFINITY {
            a
        } else if b.re == f64::INFINITY {
            (a.exp() + b.exp()).ln()
        } else {
            a + (Complex::<f64>::ONE + (b - a).exp()).ln()
        };
        LogSum(sum, self.1)
    }
}
