//! The accumulator of means and variances.

use crate::accumulator::{Accumulator, COLUMNS, Rows, by_rows};
use crate::arithmetic::Fractional;
use crate::simd::Isa;
use crate::sums::{MANY, Term, are_lost, sum_of, sums_of};

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
    a.plus(T::scaled(b, -1.0))
}

impl<T: Fractional> Accumulator for Spread<T> {
    type Input = T;
    const EMPTY: Self = Spread {
        count: 0.0,
        mean: T::Wide::ZERO,
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
                self.mean.plus(T::scaled(apart, weight))
            } else {
                // The way from an infinite mean to a finite one would end in NaN.
                T::scaled(self.mean, 1.0 - weight).plus(T::scaled(later.mean, weight))
            },
            squares: self.squares + later.squares + square * self.count * weight,
        }
    }
    /// Block by block, twice over each, which the first-level cache holds then: the mean, then the distances from it, whose own
    /// mean makes up for what rounding left of the first.
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, number: f64) -> Self {
        const BLOCK: usize = 2048;
        let mut total = Self::EMPTY;
        for start in (0..len).step_by(BLOCK) {
            let n = BLOCK.min(len - start);
            // SAFETY: the caller's contract: the block is part of the run.
            let at = |i: usize| unsafe { run.add(start + i).read_unaligned() }.get();
            let scale = 1.0 / n as f64;
            let mean = T::scaled(sum_of(n, |i| T::near(at(i))), scale);
            let center = T::narrow(mean);
            let away = |i: usize| T::near(at(i)) - T::near(center);
            let (apart, squares) = sums_of(n, away, |i| T::near_square(away(i)));
            let block = if !squares.is_finite() || are_lost::<T::Part>(squares) {
                Self::widely(n, at)
            } else {
                let about = Self::about(n, T::wide(center), apart, squares);
                // Of few elements the first sum is as good as can be; of many, that of the small distances is better.
                let mean = if n < MANY { mean } else { about.mean };
                Spread { mean, ..about }
            };
            total = total.then(block, number);
        }
        total
    }
    #[inline(always)]
    unsafe fn of_rows<I: Isa>(accs: *mut Self, rows: Rows, len: usize, number: f64) {
        // Distances are taken from a number among the elements, or near to them: what cancels out in the end is
        // no more than their number times the variance.
        let mut centers = [T::Wide::ZERO; COLUMNS];
        let (mut sums, mut squares) = ([T::Wide::ZERO; COLUMNS], [0.0; COLUMNS]);
        for start in (0..len).step_by(COLUMNS) {
            let n = COLUMNS.min(len - start);
            let (centers, sums, squares) = (&mut centers[..n], &mut sums[..n], &mut squares[..n]);
            let accs = accs.wrapping_add(start);
            // SAFETY: the caller's contract: `start + i < len`.
            let acc = |i: usize| unsafe { accs.add(i).read() };
            // SAFETY: as above.
            let at = |r: usize, i: usize| T::wide(unsafe { rows.get::<T>(r, start + i) });
            let is_first = acc(0).count == 0.0;
            for (i, center) in centers.iter_mut().enumerate() {
                *center = if is_first { at(0, i) } else { acc(i).mean };
            }
            sums.fill(T::Wide::ZERO);
            squares.fill(0.0);
            by_rows!(rows, start..start + n, 4, |r, K| {
                for i in 0..n {
                    let (mut sum, mut square) = (sums[i], squares[i]);
                    for k in 0..K {
                        let away = difference::<T>(at(r + k, i), centers[i]);
                        sum = sum.plus(away);
                        square += T::square(away);
                    }
                    (sums[i], squares[i]) = (sum, square);
                }
            });
            for i in 0..n {
                let column = if squares[i].is_finite() {
                    Self::about(rows.count, centers[i], sums[i], squares[i])
                } else {
                    // SAFETY: the caller's contract.
                    Self::widely(rows.count, |r| unsafe { rows.get::<T>(r, start + i) })
                };
                // SAFETY: as above.
                unsafe { accs.add(i).write(acc(i).then(column, number)) };
            }
        }
    }
}

impl<T: Fractional> Spread<T> {
    /// Of so many elements, whose distances from `center` have this sum, and their squares that one.
    #[inline(always)]
    fn about(n: usize, center: T::Wide, sum: T::Wide, squares: f64) -> Self {
        let count = n as f64;
        let apart = T::scaled(sum, 1.0 / count);
        Spread {
            count,
            mean: center.plus(apart),
            squares: (squares - T::square(apart) * count).max(0.0),
        }
    }

    /// Of elements some of which are too large, or all too small, for the fast way.
    #[inline(never)]
    fn widely(n: usize, at: impl Fn(usize) -> T::Value) -> Self {
        let count = n as f64;
        let mean = T::scaled(sum_of(n, |i| T::wide(at(i))), 1.0 / count);
        let squares = sum_of(n, |i| T::square(difference::<T>(T::wide(at(i)), mean)));
        Spread {
            count,
            mean,
            squares,
        }
    }
}
