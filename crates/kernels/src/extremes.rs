//! The accumulators of extremes: the largest or smallest element, and where it is.

use crate::accumulator::{Accumulator, COLUMNS, Rows, by_rows};
use crate::arithmetic::Ordered;
use crate::simd::Isa;
use crate::sums::{NEAR, pairs};

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
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, _: f64) -> Self {
        const LANES: usize = 16;
        // SAFETY: the caller's contract: `i < len`.
        let at = |i: usize| unsafe { run.add(i).read_unaligned() }.get();
        let mut lanes = [Self::EMPTY.0; LANES];
        let mut i = 0;
        while i + LANES * NEAR <= len {
            let mut any_nan = false;
            #[allow(clippy::needless_range_loop)]
            for l in 0..LANES {
                let few = |k: usize| at(i + k * LANES + l);
                lanes[l] = Self::further(lanes[l], pairs(few, Self::further));
                any_nan |= pairs(|k| T::is_nan(few(k)), |a, b| a | b);
            }
            if any_nan {
                break;
            }
            i += LANES * NEAR;
        }
        // The lanes may hold elements of a group with NaN already: it comes next, and outdoes them.
        let mut best = Self::EMPTY;
        if i > 0 {
            // In halves: one after the other, each would wait for the one before.
            let mut half = LANES / 2;
            while half > 0 {
                for l in 0..half {
                    lanes[l] = Self::further(lanes[l], lanes[l + half]);
                }
                half /= 2;
            }
            best.0 = lanes[0];
        }
        if i + LANES > len {
            return (i..len).fold(best, |best, i| best.with(at(i), 0.0));
        }
        let mut lanes = [best; LANES];
        while i + LANES <= len {
            #[allow(clippy::needless_range_loop)]
            for l in 0..LANES {
                lanes[l] = lanes[l].with(at(i + l), 0.0);
            }
            i += LANES;
        }
        let best = lanes.into_iter().fold(best, |a, b| a.then(b, 0.0));
        (i..len).fold(best, |best, i| best.with(at(i), 0.0))
    }
    #[inline(always)]
    unsafe fn of_rows<I: Isa>(accs: *mut Self, rows: Rows, len: usize, _: f64) {
        let mut values = [Self::EMPTY; COLUMNS];
        for start in (0..len).step_by(COLUMNS) {
            let values = &mut values[..COLUMNS.min(len - start)];
            let (n, accs) = (values.len(), accs.wrapping_add(start));
            // SAFETY: the caller's contract: `start + i < len`.
            let at = |r: usize, i: usize| unsafe { rows.get::<T>(r, start + i) };
            // SAFETY: as above.
            unsafe { values.as_mut_ptr().copy_from_nonoverlapping(accs, n) };
            by_rows!(rows, start..start + n, NEAR, |r, K| {
                let mut any_nan = K == 1;
                for (i, value) in values.iter_mut().enumerate() {
                    if K == NEAR {
                        let few = |k: usize| at(r + k, i);
                        let further = Self::further(value.0, pairs(few, Self::further));
                        // A NaN stays.
                        value.0 = if T::is_nan(value.0) { value.0 } else { further };
                        any_nan |= pairs(|k| T::is_nan(few(k)), |a, b| a | b);
                    }
                }
                if any_nan {
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = (r..r + K).fold(*value, |value, r| value.with(at(r, i), 0.0));
                    }
                }
            });
            // SAFETY: as above.
            unsafe { accs.copy_from_nonoverlapping(values.as_ptr(), n) };
        }
    }
}

impl<T: Ordered, const MAX: bool> Extreme<T, MAX> {
    /// Of two numbers, neither of which is NaN: one instruction.
    #[inline(always)]
    fn further(a: T::Value, b: T::Value) -> T::Value {
        let beyond = if MAX { b > a } else { b < a };
        if beyond { b } else { a }
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
    unsafe fn of_run<I: Isa>(run: *const T, len: usize, number: f64) -> Self {
        const BLOCK: usize = 1024;
        let mut total = Self::EMPTY;
        for start in (0..len).step_by(BLOCK) {
            let n = BLOCK.min(len - start);
            // SAFETY: the caller's contract: the block is part of the run.
            let at = |i: usize| unsafe { run.add(start + i).read_unaligned().get() };
            // SAFETY: as above.
            let best = unsafe { Extreme::<T, MAX>::of_run::<I>(run.add(start), n, number) }.0;
            if total.index < 0 || Self::replaces(best, total.value) {
                total.value = best;
                total.index = total.len + place::<T, LAST>(n, best, at) as i64;
            }
            total.len += n as i64;
        }
        total
    }
    #[inline(always)]
    unsafe fn of_rows<I: Isa>(accs: *mut Self, rows: Rows, len: usize, _: f64) {
        // Values and places apart, so that each fills vectors.
        let (mut values, mut places) = ([T::LOWEST; COLUMNS], [0i32; COLUMNS]);
        for start in (0..len).step_by(COLUMNS) {
            let n = COLUMNS.min(len - start);
            let (values, places) = (&mut values[..n], &mut places[..n]);
            let accs = accs.wrapping_add(start);
            // SAFETY: the caller's contract: `start + i < len`.
            let acc = |i: usize| unsafe { accs.add(i).read() };
            // SAFETY: as above.
            let at = |r: usize, i: usize| unsafe { rows.get::<T>(r, start + i) };
            let before = acc(0).len;
            // Something has to be first: the least of all numbers would outdo nothing.
            let first = (before == 0).then_some(0);
            for i in 0..n {
                values[i] = first.map_or_else(|| acc(i).value, |r| at(r, i));
                places[i] = first.map_or(-1, |r| r as i32);
            }
            by_rows!(rows, start..start + n, NEAR, |r, K| {
                let mut any_nan = false;
                for i in 0..n {
                    let (mut value, mut place) = (values[i], places[i]);
                    for k in 0..K {
                        let x = at(r + k, i);
                        let newer = Self::goes_beyond(x, value);
                        value = if newer { x } else { value };
                        place = if newer { (r + k) as i32 } else { place };
                    }
                    (values[i], places[i]) = (value, place);
                    any_nan |= (0..K).fold(false, |any, k| any | T::is_nan(at(r + k, i)));
                }
                // Nothing goes beyond a NaN, so that it may come after all the others of its rows.
                if any_nan {
                    for i in 0..n {
                        for k in 0..K {
                            let x = at(r + k, i);
                            if T::is_nan(x) & (LAST | !T::is_nan(values[i])) {
                                (values[i], places[i]) = (x, (r + k) as i32);
                            }
                        }
                    }
                }
            });
            for i in 0..n {
                let acc = Place {
                    value: values[i],
                    index: match places[i] {
                        -1 => acc(i).index,
                        place => before + place as i64,
                    },
                    len: before + rows.count as i64,
                };
                // SAFETY: as above.
                unsafe { accs.add(i).write(acc) };
            }
        }
    }
}

impl<T: Ordered, const MAX: bool, const LAST: bool> Place<T, MAX, LAST> {
    /// Whether a later element that is a number takes the place of the best so far.
    #[inline(always)]
    fn goes_beyond(x: T::Value, best: T::Value) -> bool {
        let beyond = if MAX { x > best } else { x < best };
        beyond | (LAST & (x == best))
    }

    /// Whether a later element takes the place of the best so far.
    #[inline(always)]
    fn replaces(x: T::Value, best: T::Value) -> bool {
        T::beats::<MAX>(x, best) | (LAST & ((x == best) | T::is_nan(x)))
    }
}

/// Where `best` is among `n` elements: first, or with `LAST` last.
#[inline(always)]
fn place<T: Ordered, const LAST: bool>(
    n: usize,
    best: T::Value,
    at: impl Fn(usize) -> T::Value,
) -> usize {
    // Comparisons of so many elements are one vector, where a search would stop at each.
    const PIECE: usize = 64;
    let is_it = |i: usize| {
        let x = at(i);
        (x == best) | (T::is_nan(x) & T::is_nan(best))
    };
    let pieces = n / PIECE;
    let holds = |&piece: &usize| {
        let from = piece * PIECE;
        (from..from + PIECE).fold(false, |any, i| any | is_it(i))
    };
    let found = if LAST {
        let rest = (pieces * PIECE..n).rev().find(|&i| is_it(i));
        rest.or_else(|| {
            let piece = (0..pieces).rev().find(holds)?;
            let from = piece * PIECE;
            (from..from + PIECE).rev().find(|&i| is_it(i))
        })
    } else {
        let from = (0..pieces).find(holds).unwrap_or(pieces) * PIECE;
        (from..n).find(|&i| is_it(i))
    };
    found.unwrap_or(0)
}
