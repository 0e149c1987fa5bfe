//! The accumulators.

use crate::accumulator::Accumulator;
use crate::arithmetic::{Arithmetic, Fractional, Ordered};
use crate::element::Bool;
use crate::math::Math;
use num_complex::Complex;

/// The sum.
#[derive(Clone, Copy)]
pub(crate) struct Sum<T: Arithmetic>(pub(crate) T::Wide);

impl<T: Arithmetic> Accumulator for Sum<T> {
    type Input = T;
    const EMPTY: Self = Sum(T::ZERO);
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        Sum(T::add(self.0, T::wide(x)))
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        Sum(T::add(self.0, later.0))
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
        sum: T::ZERO,
        count: 0.0,
    };
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        let (x, one) = if T::is_nan(x) {
            (T::ZERO, 0.0)
        } else {
            (T::wide(x), 1.0)
        };
        NanSum {
            sum: T::add(self.sum, x),
            count: self.count + one,
        }
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        NanSum {
            sum: T::add(self.sum, later.sum),
            count: self.count + later.count,
        }
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

/// The largest (or smallest) element; NaN where there is one.
#[derive(Clone, Copy)]
pub(crate) struct Extreme<T: Ordered, const MAX: bool>(pub(crate) T::Value);

impl<T: Ordered, const MAX: bool> Accumulator for Extreme<T, MAX> {
    type Input = T;
    const EMPTY: Self = Extreme(if MAX { T::LOWEST } else { T::HIGHEST });
    #[inline(always)]
    fn with(self, x: T::Value, _: f64) -> Self {
        // A NaN stays: nothing is beyond it.
        let beyond = if MAX { x > self.0 } else { x < self.0 };
        Extreme(if beyond | T::is_nan(x) { x } else { self.0 })
    }
    #[inline(always)]
    fn then(self, later: Self, number: f64) -> Self {
        self.with(later.0, number)
    }
}

/// The largest (or smallest) element and its place: the first of equal ones, or with `LAST` the last.
#[derive(Clone, Copy)]
pub(crate) struct Place<T: Ordered, const MAX: bool, const LAST: bool> {
    pub(crate) value: T::Value,
    /// −1 before the first element.
    pub(crate) index: i64,
    len: i64,
}

impl<T: Ordered, const MAX: bool, const LAST: bool> Accumulator for Place<T, MAX, LAST> {
    type Input = T;
    const EMPTY: Self = Place {
        value: if MAX { T::LOWEST } else { T::HIGHEST },
        index: -1,
        len: 0,
    };
    #[inline(always)]
    fn with(self, x: T::Value, number: f64) -> Self {
        self.then(
            Place {
                value: x,
                index: 0,
                len: 1,
            },
            number,
        )
    }
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        let x = later.value;
        let equal = LAST & ((x == self.value) | T::is_nan(x));
        let newer =
            (later.index >= 0) & ((self.index < 0) | T::beats::<MAX>(x, self.value) | equal);
        Place {
            value: if newer { x } else { self.value },
            index: if newer {
                self.len + later.index
            } else {
                self.index
            },
            len: self.len + later.len,
        }
    }
    /// Block by block: the extreme itself in vectors, and its place only where it is new.
    #[inline(always)]
    unsafe fn of_run(run: *const T, len: usize, number: f64) -> Self {
        const BLOCK: usize = 512;
        let mut total = Self::EMPTY;
        for start in (0..len).step_by(BLOCK) {
            let n = BLOCK.min(len - start);
            // SAFETY: the caller's contract: the block is part of the run.
            let at = |i: usize| unsafe { run.add(start + i).read_unaligned().get() };
            // SAFETY: as above.
            let best = unsafe { Extreme::<T, MAX>::of_run(run.add(start), n, number) }.0;
            let is_it = |&i: &usize| {
                let x = at(i);
                (x == best) | (T::is_nan(x) & T::is_nan(best))
            };
            let place = if LAST {
                (0..n).rev().find(is_it)
            } else {
                (0..n).find(is_it)
            };
            let index = place.map_or(-1, |i| i as i64);
            total = total.then(
                Place {
                    value: best,
                    index,
                    len: n as i64,
                },
                number,
            );
        }
        total
    }
}

/// What a norm makes of each element before it adds them up, and of the sum.
pub(crate) trait Norm {
    fn term<T: Fractional>(x: T::Wide, order: f64) -> f64;
    fn root(sum: f64, order: f64) -> f64;
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
}

impl Norm for Order2 {
    #[inline(always)]
    fn term<T: Fractional>(x: T::Wide, _: f64) -> f64 {
        T::square(x)
    }
    fn root(sum: f64, _: f64) -> f64 {
        sum.sqrt()
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

/// How many, their mean, and the sum of squared distances from it.
#[derive(Clone, Copy)]
pub(crate) struct Spread<T: Fractional> {
    count: f64,
    mean: T::Wide,
    squares: f64,
}

impl<T: Fractional> Spread<T> {
    pub(crate) fn mean(self) -> T::Value {
        T::narrow(if self.count == 0.0 {
            T::scaled(self.mean, f64::NAN)
        } else {
            self.mean
        })
    }

    /// The variance, divided by `count - correction`, or by 0 where that is negative; NaN where an element is infinite,
    /// in whatever order the elements came.
    pub(crate) fn variance(self, correction: f64) -> f64 {
        if T::magnitude(self.mean).is_finite() {
            self.squares / (self.count - correction).max(0.0)
        } else {
            f64::NAN
        }
    }
}

#[inline(always)]
fn difference<T: Fractional>(a: T::Wide, b: T::Wide) -> T::Wide {
    T::add(a, T::scaled(b, -1.0))
}

impl<T: Fractional> Accumulator for Spread<T> {
    type Input = T;
    const EMPTY: Self = Spread {
        count: 0.0,
        mean: T::ZERO,
        squares: 0.0,
    };
    #[inline(always)]
    fn with(self, x: T::Value, number: f64) -> Self {
        self.then(
            Spread {
                count: 1.0,
                mean: T::wide(x),
                squares: 0.0,
            },
            number,
        )
    }
    /// After Chan, Golub and LeVeque.
    #[inline(always)]
    fn then(self, later: Self, _: f64) -> Self {
        let count = self.count + later.count;
        if later.count == 0.0 {
            return self;
        }
        let apart = difference::<T>(later.mean, self.mean);
        let square = T::square(apart);
        let weight = later.count / count;
        Spread {
            count,
            mean: if square.is_finite() {
                T::add(self.mean, T::scaled(apart, weight))
            } else {
                // The way from an infinite mean to a finite one would end in NaN.
                T::add(
                    T::scaled(self.mean, 1.0 - weight),
                    T::scaled(later.mean, weight),
                )
            },
            squares: self.squares + later.squares + square * self.count * weight,
        }
    }
    /// Block by block, twice over each: the mean, then the distances from it.
    #[inline(always)]
    unsafe fn of_run(run: *const T, len: usize, number: f64) -> Self {
        const BLOCK: usize = 1024;
        const LANES: usize = 16;
        let mut total = Self::EMPTY;
        for start in (0..len).step_by(BLOCK) {
            let n = BLOCK.min(len - start);
            // SAFETY: the caller's contract: the block is part of the run.
            let at = |i: usize| T::wide(unsafe { run.add(start + i).read_unaligned() }.get());
            // SAFETY: as above.
            let sum = unsafe { Sum::<T>::of_run(run.add(start), n, number) }.0;
            let mean = T::scaled(sum, 1.0 / n as f64);
            let square = |i: usize| T::square(difference::<T>(at(i), mean));
            let mut lanes = [0.0; LANES];
            let whole = n / LANES * LANES;
            for i in (0..whole).step_by(LANES) {
                for (l, lane) in lanes.iter_mut().enumerate() {
                    *lane += square(i + l);
                }
            }
            let squares = lanes.iter().sum::<f64>() + (whole..n).map(square).sum::<f64>();
            total = total.then(
                Spread {
                    count: n as f64,
                    mean,
                    squares,
                },
                number,
            );
        }
        total
    }
}

/// The largest element, and the sum of exponentials of the distances from it: what `logsumexp` and
/// `softmax` are made of. Both are NaN where an element is; the sum is also where the largest is infinite.
#[derive(Clone, Copy)]
pub(crate) struct Exponentials<T: Ordered> {
    pub(crate) max: T::Value,
    pub(crate) sum: f64,
}

/// Exponentials that are computed together.
const TOGETHER: usize = 128;

macro_rules! exponentials {
    ($T:ty) => {
        impl Exponentials<$T> {
            /// What a sum is of, once `max` is the largest element. Where nothing is above minus infinity, nothing adds
            /// up: e^(-inf - -inf) would be NaN.
            #[inline(always)]
            fn scale(of: $T, max: $T) -> $T {
                let e = Math::exp(of - max);
                if of == <$T>::NEG_INFINITY { 0.0 } else { e }
            }

            #[inline(always)]
            fn larger(a: $T, b: $T) -> $T {
                if (b > a) | b.is_nan() { b } else { a }
            }
        }

        impl Accumulator for Exponentials<$T> {
            type Input = $T;
            const EMPTY: Self = Exponentials {
                max: <$T>::NEG_INFINITY,
                sum: 0.0,
            };
            #[inline(always)]
            fn with(self, x: $T, number: f64) -> Self {
                self.then(Exponentials { max: x, sum: 1.0 }, number)
            }
            #[inline(always)]
            fn then(self, later: Self, _: f64) -> Self {
                let max = Self::larger(self.max, later.max);
                let part = |of: Self| of.sum * Self::scale(of.max, max) as f64;
                Exponentials {
                    max,
                    sum: part(self) + part(later),
                }
            }
            #[inline(always)]
            unsafe fn of_run(run: *const $T, len: usize, number: f64) -> Self {
                // SAFETY: the caller's contract.
                let max = unsafe { Extreme::<$T, true>::of_run(run, len, number) }.0;
                let mut sum = 0.0;
                let mut terms = [0.0; TOGETHER];
                for start in (0..len).step_by(TOGETHER) {
                    let terms = &mut terms[..TOGETHER.min(len - start)];
                    for (i, term) in terms.iter_mut().enumerate() {
                        // SAFETY: the caller's contract: `start + i < len`.
                        let x = unsafe { run.add(start + i).read_unaligned() };
                        *term = Self::scale(x, max);
                    }
                    // SAFETY: the terms are a run.
                    sum += unsafe { Sum::<$T>::of_run(terms.as_ptr(), terms.len(), number) }.0;
                }
                Exponentials { max, sum }
            }
            #[inline(always)]
            unsafe fn of_row(accs: *mut Self, row: *const $T, len: usize, _: f64) {
                let [mut max, mut before, mut now] = [[0.0; TOGETHER]; 3];
                for start in (0..len).step_by(TOGETHER) {
                    let n = TOGETHER.min(len - start);
                    for (i, max) in max[..n].iter_mut().enumerate() {
                        // SAFETY: the caller's contract: `start + i < len`.
                        *max = unsafe { accs.add(start + i).read() }.max;
                    }
                    for i in 0..n {
                        // SAFETY: as above.
                        let x = unsafe { row.add(start + i).read_unaligned() };
                        let larger = Self::larger(max[i], x);
                        before[i] = Self::scale(max[i], larger);
                        now[i] = Self::scale(x, larger);
                        max[i] = larger;
                    }
                    for i in 0..n {
                        // SAFETY: as above.
                        unsafe {
                            let acc = accs.add(start + i);
                            let sum = acc.read().sum * before[i] as f64 + now[i] as f64;
                            acc.write(Exponentials { max: max[i], sum });
                        }
                    }
                }
            }
        }

        impl Exponentials<$T> {
            /// The logarithm of the sum of exponentials.
            pub(crate) fn log(self) -> $T {
                if self.max.is_infinite() {
                    self.max
                } else {
                    (self.max as f64 + self.sum.ln()) as $T
                }
            }
        }
    };
}

exponentials!(f32);
exponentials!(f64);

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
