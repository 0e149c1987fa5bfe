//! The accumulators: sums, products, truth and norms.

use crate::accumulator::{Accumulator, COLUMNS, Rows, by_rows};
use crate::arithmetic::{Arithmetic, Fractional, Ordered};
use crate::element::Bool;
use crate::simd::Isa;
use crate::sums::{NEAR, Term, are_lost, near, sum_of, sums_of};

/// The sum.
#[derive(Clone, Copy)]
pub(crate) struct Sum<T: Arithmetic>(pub(crate) T::Wide);

impl<T: Arithmetic> Accumulator for Sum<T> {
    type Input = T;
    const EMPTY: Self = Sum(T::Wide::ZERO);
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        Sum(self.0.plus(T::wide(x)))
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        Sum(self.0.plus(later.0))
    }
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, _: f64) -> Self {
        // SAFETY: the caller's contract: `i < len`.
        let at = |i: usize| unsafe { run.add(i).read_unaligned() }.get();
        let sum = sum_of(len, |i| T::near(at(i)));
        // Few numbers may be too large for a sum that all together have.
        Sum(if T::Near::IS_NARROW && !sum.is_finite() {
            sum_of(len, |i| T::wide(at(i)))
        } else {
            sum
        })
    }
    #[inline(always)]
    unsafe fn of_rows<I: Isa>(accs: *mut Self, rows: Rows, len: usize, _: f64) {
        let mut sums = [T::Wide::ZERO; COLUMNS];
        for start in (0..len).step_by(COLUMNS) {
            let sums = &mut sums[..COLUMNS.min(len - start)];
            // SAFETY: the caller's contract: `start + i < len`.
            let at = |r: usize, i: usize| unsafe { rows.get::<T>(r, start + i) };
            sums.fill(T::Wide::ZERO);
            let (n, mut is_finite) = (sums.len(), true);
            by_rows!(rows, start..start + n, NEAR, |r, K| {
                for (i, sum) in sums.iter_mut().enumerate() {
                    *sum = if K == NEAR {
                        let few = near(|k| T::near(at(r + k, i)));
                        is_finite &= few.is_finite();
                        sum.plus(few.wide())
                    } else {
                        sum.plus(T::wide(at(r, i)))
                    };
                }
            });
            if T::Near::IS_NARROW && !is_finite {
                for (i, sum) in sums.iter_mut().enumerate() {
                    let column = (0..rows.count).map(|r| T::wide(at(r, i)));
                    *sum = column.fold(T::Wide::ZERO, Term::plus);
                }
            }
            for (i, &mut sum) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                unsafe {
                    let acc = accs.add(start + i);
                    acc.write(Sum(acc.read().0.plus(sum)));
                }
            }
        }
    }
}

/// The product.
#[derive(Clone, Copy)]
pub(crate) struct Prod<T: Arithmetic>(pub(crate) T::Wide);

impl<T: Arithmetic> Accumulator for Prod<T> {
    type Input = T;
    const EMPTY: Self = Prod(T::ONE);
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        Prod(T::mul(self.0, T::wide(x)))
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        Prod(T::mul(self.0, later.0))
    }
}

/// The sum of what is a number, and how many those are.
#[derive(Clone, Copy)]
pub(crate) struct NanSum<T: Fractional> {
    pub(crate) sum: T::Wide,
    pub(crate) count: f64,
}

impl<T: Fractional> Accumulator for NanSum<T> {
    type Input = T;
    const EMPTY: Self = NanSum {
        sum: T::Wide::ZERO,
        count: 0.0,
    };
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        let (x, one) = if T::is_nan(x) {
            (T::Wide::ZERO, 0.0)
        } else {
            (T::wide(x), 1.0)
        };
        NanSum {
            sum: self.sum.plus(x),
            count: self.count + one,
        }
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        NanSum {
            sum: self.sum.plus(later.sum),
            count: self.count + later.count,
        }
    }
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, _: f64) -> Self {
        // SAFETY: the caller's contract: `i < len`.
        let at = |i: usize| unsafe { run.add(i).read_unaligned() }.get();
        let number = |i: usize| {
            let x = at(i);
            if T::is_nan(x) {
                T::Near::ZERO
            } else {
                T::near(x)
            }
        };
        let (sum, count) = sums_of(len, number, |i| f32::from(!T::is_nan(at(i)) as u8));
        // Few numbers may be too large for a sum that all together have.
        let sum = if T::Near::IS_NARROW && !sum.is_finite() {
            sum_of(len, |i| number(i).wide())
        } else {
            sum
        };
        NanSum { sum, count }
    }
}

/// Whether any (with `ALL`, every) element is true.
#[derive(Clone, Copy)]
pub(crate) struct Truth<const ALL: bool>(pub(crate) bool);

impl<const ALL: bool> Accumulator for Truth<ALL> {
    type Input = Bool;
    const EMPTY: Self = Truth(ALL);
    #[inline(always)]
    fn with(self, x: bool, _: f64) -> Self {
        Truth(if ALL { self.0 & x } else { self.0 | x })
    }
    #[inline(always)]
    fn then(self, later: Self, number: f64) -> Self {
        self.with(later.0, number)
    }
}

/// How many elements are true.
#[derive(Clone, Copy)]
pub(crate) struct Count(pub(crate) i64);

impl Accumulator for Count {
    type Input = Bool;
    const EMPTY: Self = Count(0);
    #[inline(always)]
    fn with(self, x: bool, _: f64) -> Self {
        Count(self.0 + x as i64)
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        Count(self.0 + later.0)
    }
}

/// What a norm makes of each element before it adds them up, and of the sum.
pub(crate) trait Norm {
    fn term<T: Fractional>(x: T::Wide, order: f64) -> f64;
    fn root(sum: f64, order: f64) -> f64;
    /// The sum of the terms of so many elements.
    #[inline(always)]
    fn sum<T: Fractional>(len: usize, order: f64, at: impl Fn(usize) -> T::Value) -> f64 {
        sum_of(len, |i| Self::term::<T>(T::wide(at(i)), order))
    }
}

/// The order 0: how many are not zero.
#[derive(Clone, Copy)]
pub(crate) struct Order0;
/// The order 1.
#[derive(Clone, Copy)]
pub(crate) struct Order1;
/// The order 2.
#[derive(Clone, Copy)]
pub(crate) struct Order2;
/// Any other order.
#[derive(Clone, Copy)]
pub(crate) struct OrderP;

impl Norm for Order0 {
    #[inline(always)]
    fn term<T: Fractional>(x: T::Wide, _: f64) -> f64 {
        (T::square(x) != 0.0 || T::magnitude(x) != 0.0) as u8 as f64
    }
    fn root(sum: f64, _: f64) -> f64 {
        sum
    }
}

impl Norm for Order1 {
    #[inline(always)]
    fn term<T: Fractional>(x: T::Wide, _: f64) -> f64 {
        T::magnitude(x)
    }
    fn root(sum: f64, _: f64) -> f64 {
        sum
    }
    #[inline(always)]
    fn sum<T: Fractional>(len: usize, _: f64, at: impl Fn(usize) -> T::Value) -> f64 {
        let sum = sum_of(len, |i| T::near_magnitude(T::near(at(i))));
        if T::Part::IS_NARROW && !sum.is_finite() {
            return sum_of(len, |i| T::magnitude(T::wide(at(i))));
        }
        sum
    }
}

impl Norm for Order2 {
    #[inline(always)]
    fn term<T: Fractional>(x: T::Wide, _: f64) -> f64 {
        T::square(x)
    }
    fn root(sum: f64, _: f64) -> f64 {
        sum.sqrt()
    }
    #[inline(always)]
    fn sum<T: Fractional>(len: usize, _: f64, at: impl Fn(usize) -> T::Value) -> f64 {
        let sum = sum_of(len, |i| T::near_square(T::near(at(i))));
        if are_lost::<T::Part>(sum) {
            return sum_of(len, |i| T::square(T::wide(at(i))));
        }
        sum
    }
}

impl Norm for OrderP {
    #[inline(always)]
    fn term<T: Fractional>(x: T::Wide, order: f64) -> f64 {
        T::magnitude(x).powf(order)
    }
    fn root(sum: f64, order: f64) -> f64 {
        sum.powf(1.0 / order)
    }
}

/// The sum under the root of a norm.
#[derive(Clone, Copy)]
pub(crate) struct Terms<T, N>(pub(crate) f64, std::marker::PhantomData<(T, N)>);

impl<T: Fractional, N: Norm + Copy> Accumulator for Terms<T, N> {
    type Input = T;
    const EMPTY: Self = Terms(0.0, std::marker::PhantomData);
    #[inline(always)]
    fn with(self, x: T::Value, order: f64) -> Self {
        Terms(self.0 + N::term::<T>(T::wide(x), order), self.1)
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        Terms(self.0 + later.0, self.1)
    }
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, order: f64) -> Self {
        // SAFETY: the caller's contract: `i < len`.
        let at = |i: usize| unsafe { run.add(i).read_unaligned() }.get();
        Terms(N::sum::<T>(len, order, at), std::marker::PhantomData)
    }
}

/// The largest (or smallest) magnitude: the norms of infinite order.
#[derive(Clone, Copy)]
pub(crate) struct Magnitude<T, const MAX: bool>(pub(crate) f64, std::marker::PhantomData<T>);

impl<T: Fractional, const MAX: bool> Accumulator for Magnitude<T, MAX> {
    type Input = T;
    const EMPTY: Self = Magnitude(
        if MAX { 0.0 } else { f64::INFINITY },
        std::marker::PhantomData,
    );
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        let x = T::magnitude(T::wide(x));
        Magnitude(
            if f64::beats::<MAX>(x, self.0) {
                x
            } else {
                self.0
            },
            self.1,
        )
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        let x = later.0;
        Magnitude(
            if f64::beats::<MAX>(x, self.0) {
                x
            } else {
                self.0
            },
            self.1,
        )
    }
}
