//! Maxima, averages and weighted sums over windows of two dims.
//!
//! Results that read alike are done together: those of channels whose elements lie next to each other, else those of
//! windows along a line that are whole and equally far apart. Vectors of them are what a loop holds in registers while it
//! goes through a window.

mod weighted;
mod window;

pub use weighted::{Weighted, weighted};

use crate::convert::Convert;
use crate::par::par_for;
use crate::simd::vectorized;
use crate::with_element;
use half::{bf16, f16};
use osteon_spec::DType;
use window::{Block, Window, converted, in_blocks, line, lines};

/// Results that are done together.
const LANES: usize = 64;
/// Elements that are worth a thread.
const GRAIN: usize = 1 << 14;

/// The part of a dim that one result is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first index within the input.
    pub start: usize,
    /// The number of indices within the input.
    pub count: usize,
    /// How many of the window come before it, in the border.
    pub skipped: usize,
    /// The same with the border.
    pub full: usize,
}

/// What averages are divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// The elements of the window, also those of the border.
    Full,
    /// The elements of the window within the input.
    Present,
    /// This number.
    Fixed(i64),
}

impl Divisor {
    fn of(self, rows: Span, cols: Span) -> i64 {
        match self {
            Divisor::Full => (rows.full * cols.full) as i64,
            Divisor::Present => (rows.count * cols.count) as i64,
            Divisor::Fixed(n) => n,
        }
    }
}

/// Windows over the last two dims of a batch of channels.
#[derive(Clone, Copy, Debug)]
pub struct Pooling<'a> {
    /// The size of the batch.
    pub batch: usize,
    /// The number of channels.
    pub channels: usize,
    /// The windows of both dims, one for each index of the result.
    pub spans: [&'a [Span]; 2],
    /// Steps within a window.
    pub step: [usize; 2],
    /// The size of the input's last dim, for positions of maxima.
    pub width: usize,
    /// Strides in bytes of result, positions and input, along batch, channels and both dims.
    pub strides: [[isize; 4]; 3],
}

/// An element and what it is compared and summed in.
trait Pooled: Convert {
    type Acc: Convert + PartialOrd;
    const LEAST: Self::Acc;
    fn plus(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    /// Whether a maximum so far gives way: a NaN is larger than everything, and the first of equals stays.
    #[inline(always)]
    #[expect(clippy::eq_op, reason = "a NaN is not itself")]
    fn larger(a: Self::Acc, best: Self::Acc) -> bool {
        (a > best) | (a != a)
    }
    fn over(sum: Self::Acc, n: i64) -> Self::Acc;
}

macro_rules! pooled {
    ($($ty:ty => $acc:ty, $least:expr, |$a:ident, $b:ident| $plus:expr;)*) => {$(
        impl Pooled for $ty {
            type Acc = $acc;
            const LEAST: $acc = $least;
            #[inline(always)]
            fn plus($a: $acc, $b: $acc) -> $acc {
                $plus
            }
            #[inline(always)]
            fn over(sum: $acc, n: i64) -> $acc {
                sum / n as $acc
            }
        }
    )*};
}

pooled! {
    u8 => u8, u8::MIN, |a, b| a.wrapping_add(b);
    i8 => i8, i8::MIN, |a, b| a.wrapping_add(b);
    i16 => i16, i16::MIN, |a, b| a.wrapping_add(b);
    i32 => i32, i32::MIN, |a, b| a.wrapping_add(b);
    i64 => i64, i64::MIN, |a, b| a.wrapping_add(b);
    u16 => u16, u16::MIN, |a, b| a.wrapping_add(b);
    u32 => u32, u32::MIN, |a, b| a.wrapping_add(b);
    u64 => u64, u64::MIN, |a, b| a.wrapping_add(b);
    f16 => f32, f32::NEG_INFINITY, |a, b| a + b;
    bf16 => f32, f32::NEG_INFINITY, |a, b| a + b;
    f32 => f32, f32::NEG_INFINITY, |a, b| a + b;
    f64 => f64, f64::NEG_INFINITY, |a, b| a + b;
}

type Max = unsafe fn(&Pooling<'_>, [*mut u8; 3]);
type Average = unsafe fn(&Pooling<'_>, [*mut u8; 3], Divisor);

/// The maxima of windows, and where they are, for this dtype; `None` where it is not defined.
/// It is called with the pointers of result, positions (null if they are not wanted) and input.
pub fn max_pool(dtype: DType) -> Option<Max> {
    with_element!(int: dtype, T => maxima::<T> as Max)
        .or_else(|| with_element!(float: dtype, T => maxima::<T> as Max))
        .or_else(|| (dtype == DType::F16).then_some(maxima::<f16> as Max))
        .or_else(|| (dtype == DType::BF16).then_some(maxima::<bf16> as Max))
}

/// The averages of windows for this dtype, floats or `int64`; `None` where it is not defined.
/// It is called with the pointers of result, nothing and input.
pub fn avg_pool(dtype: DType) -> Option<Average> {
    with_element!(float: dtype, T => averages::<T> as Average)
        .or_else(|| (dtype == DType::I64).then_some(averages::<i64> as Average))
        .or_else(|| (dtype == DType::F16).then_some(averages::<f16> as Average))
        .or_else(|| (dtype == DType::BF16).then_some(averages::<bf16> as Average))
}

/// The transpose of [`avg_pool`] for this dtype, floats: each element of the result's shape is added, divided, to all
/// elements of its window. It is called with the pointers of what is read, nothing and what is added to.
pub fn avg_spread(dtype: DType) -> Option<Average> {
    with_element!(float: dtype, T => spread::<T> as Average)
        .or_else(|| (dtype == DType::F16).then_some(spread::<f16> as Average))
        .or_else(|| (dtype == DType::BF16).then_some(spread::<bf16> as Average))
}

/// Results that are done together: of neighbouring channels, or of neighbouring windows along a line.
struct Place {
    lanes: usize,
    /// Bytes to the first one's result and position, and to its channel's element at index (0, 0).
    at: [isize; 3],
    /// Bytes from each one's result, position and elements to the next one's.
    step: [isize; 3],
    /// By how much the positions of their elements differ.
    apart: usize,
    /// Of the first one.
    spans: [Span; 2],
    /// The first one's channel, and whether each has its own.
    channel: usize,
    by_channel: bool,
}

struct Pointers([*mut u8; 3]);

// SAFETY: threads read the input and write disjoint results.
unsafe impl Sync for Pointers {}

impl Pooling<'_> {
    /// Calls `f` for every place, on several threads; all places of a channel on one if `apart` says so.
    #[inline(always)]
    fn for_each(&self, size: usize, apart: bool, f: impl Fn(Place) + Sync) {
        let [rows, cols] = self.spans;
        let by_channel = self.channels > 1 && self.strides[2][1] == size as isize;
        let together = if by_channel { LANES } else { 1 };
        let blocks = self.channels.div_ceil(together);
        let taps = |spans: &[Span]| spans.first().map_or(1, |s| s.count.max(1));
        let grain = GRAIN / (together * cols.len() * taps(rows) * taps(cols)).max(1);
        let task = if apart { rows.len() } else { 1 };
        let tasks = self.batch * blocks * rows.len() / task;
        let lines = rows.len();
        par_for(tasks, (grain / task).max(1), |range| {
            vectorized(
                #[inline(always)]
                || {
                    for line in range.start * task..range.end * task {
                        let (row, rest) = (line % lines, line / lines);
                        let (image, block) = (rest / blocks, rest % blocks);
                        self.along_line([image, block * together, row], by_channel, &f);
                    }
                },
            );
        });
    }

    /// Calls `f` for every place of a line of results.
    #[inline(always)]
    fn along_line(&self, [image, channel, row]: [usize; 3], by_channel: bool, f: &impl Fn(Place)) {
        let [rows, cols] = self.spans;
        let mut col = 0;
        while col < cols.len() {
            let of = |k: usize, row: usize, col: usize| {
                let index = [image, channel, row, col];
                self.strides[k]
                    .iter()
                    .zip(index)
                    .map(|(s, i)| s * i as isize)
                    .sum()
            };
            let (run, apart) = if by_channel {
                (1, 0)
            } else {
                alike(&cols[col..])
            };
            let step = match by_channel {
                true => self.strides.map(|s| s[1]),
                false => {
                    let [result, position, input] = self.strides.map(|s| s[3]);
                    [result, position, input * apart as isize]
                }
            };
            f(Place {
                lanes: if by_channel {
                    LANES.min(self.channels - channel)
                } else {
                    run
                },
                at: [of(0, row, col), of(1, row, col), of(2, 0, 0)],
                step,
                apart,
                spans: [rows[row], cols[col]],
                channel,
                by_channel,
            });
            col += run;
        }
    }
}

/// How many windows along a line have the size and the place in the border of the first one and are as far apart as the
/// first two, and how far.
fn alike(spans: &[Span]) -> (usize, usize) {
    let first = spans[0];
    let apart = spans
        .get(1)
        .map_or(0, |next| next.start.wrapping_sub(first.start));
    let fits = |&(i, span): &(usize, &Span)| {
        let start = first.start.wrapping_add(apart.wrapping_mul(i));
        *span == Span { start, ..first }
    };
    let run = spans[..spans.len().min(LANES)].iter().enumerate();
    (run.take_while(fits).count(), apart)
}

/// # Safety
/// The walk contract (see the [crate] documentation) of results, positions unless null, and the windows' elements.
unsafe fn maxima<T: Pooled>(pool: &Pooling<'_>, ptrs: [*mut u8; 3]) {
    let [_, positions, _] = ptrs;
    if positions.is_null() {
        let block = Maxima::<false>(Pointers(ptrs));
        pool.for_each(
            size_of::<T>(),
            false,
            #[inline(always)]
            // SAFETY: the caller's contract.
            |place| unsafe { in_blocks::<T>(pool, &place, &block) },
        );
    } else {
        let block = Maxima::<true>(Pointers(ptrs));
        pool.for_each(
            size_of::<T>(),
            false,
            #[inline(always)]
            // SAFETY: the caller's contract.
            |place| unsafe { in_blocks::<T>(pool, &place, &block) },
        );
    }
}

/// Maxima, with or without their positions.
struct Maxima<const POSITIONS: bool>(Pointers);

impl<T: Pooled, const POSITIONS: bool> Block<T> for Maxima<POSITIONS> {
    #[inline(always)]
    unsafe fn block<const N: usize, const HOW: u8>(&self, window: &Window<'_>) {
        let [dst, positions, _] = window.lane(self.0.0);
        let [to, position, _] = window.place.step;
        // The least of all is not larger than itself: then it is the first element.
        let (mut best, mut at) = ([T::LEAST; N], [window.tap(0, 0).0 as i64; N]);
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            window.for_each_tap::<T, T::Acc, N, HOW>(
                self.0.0[2],
                #[inline(always)]
                |value, place, _| {
                    for l in 0..N {
                        let larger = T::larger(value[l], best[l]);
                        best[l] = if larger { value[l] } else { best[l] };
                        if POSITIONS {
                            at[l] = if larger { place as i64 } else { at[l] };
                        }
                    }
                },
            );
            window.write(dst, to, converted::<_, T, N>(best));
            if POSITIONS {
                let first = (window.place.apart * window.first) as i64;
                for (l, at) in at.iter_mut().enumerate() {
                    *at += first + (window.place.apart * l) as i64;
                }
                window.write(positions, position, at);
            }
        }
    }
}

/// # Safety
/// As [`maxima`], without positions.
unsafe fn averages<T: Pooled>(pool: &Pooling<'_>, ptrs: [*mut u8; 3], divisor: Divisor) {
    let block = Averages(Pointers(ptrs), divisor);
    pool.for_each(
        size_of::<T>(),
        false,
        #[inline(always)]
        // SAFETY: the caller's contract.
        |place| unsafe { in_blocks::<T>(pool, &place, &block) },
    );
}

struct Averages(Pointers, Divisor);

impl<T: Pooled> Block<T> for Averages {
    #[inline(always)]
    unsafe fn block<const N: usize, const HOW: u8>(&self, window: &Window<'_>) {
        let [dst, ..] = window.lane(self.0.0);
        let [rows, cols] = window.place.spans;
        let zero: T::Acc = T::from_int(0).to();
        let mut sums = [zero; N];
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            if N == 1 && window.lies::<T>() {
                sums[0] = along::<T>(window, self.0.0[2]);
            } else {
                window.for_each_tap::<T, T::Acc, N, HOW>(
                    self.0.0[2],
                    #[inline(always)]
                    |value, _, _| {
                        for l in 0..N {
                            sums[l] = T::plus(sums[l], value[l]);
                        }
                    },
                );
            }
            let n = self.1.of(rows, cols);
            // Of a window within the border there is nothing to average.
            let empty = rows.count * cols.count == 0;
            for sum in &mut sums {
                *sum = if empty { zero } else { T::over(*sum, n) };
            }
            window.write(dst, window.place.step[0], converted::<_, T, N>(sums));
        }
    }
}

/// Sums of a line that do not wait for each other.
const WIDE: usize = 32;
const SOME: usize = 8;

/// The sum of a window whose lines' elements lie next to each other.
///
/// # Safety
/// They may be read.
#[inline(always)]
unsafe fn along<T: Pooled>(window: &Window<'_>, src: *const u8) -> T::Acc {
    let zero: T::Acc = T::from_int(0).to();
    let (mut wide, mut some, mut one) = ([zero; WIDE], [zero; SOME], zero);
    let (count, apart, first, len) = lines::<T>(window);
    for i in 0..count {
        let from = src.wrapping_offset(first + i as isize * apart);
        let mut at = 0;
        // SAFETY: the caller's contract, of all elements of the line.
        unsafe {
            while len - at >= WIDE {
                let value = line::<T, T::Acc, WIDE>(from, at);
                for l in 0..WIDE {
                    wide[l] = T::plus(wide[l], value[l]);
                }
                at += WIDE;
            }
            while len - at >= SOME {
                let value = line::<T, T::Acc, SOME>(from, at);
                for l in 0..SOME {
                    some[l] = T::plus(some[l], value[l]);
                }
                at += SOME;
            }
            while at < len {
                one = T::plus(one, line::<T, T::Acc, 1>(from, at)[0]);
                at += 1;
            }
        }
    }
    for l in 0..WIDE {
        some[l % SOME] = T::plus(some[l % SOME], wide[l]);
    }
    some.into_iter().fold(one, T::plus)
}

/// # Safety
/// As [`averages`], but that the windows' elements are written.
unsafe fn spread<T: Pooled>(pool: &Pooling<'_>, ptrs: [*mut u8; 3], divisor: Divisor) {
    let ptrs = Pointers(ptrs);
    // Windows of neighbouring rows may overlap.
    pool.for_each(size_of::<T>(), true, |place| {
        let ptrs = &ptrs;
        let [src, _, dst] = ptrs.0;
        let [rows, cols] = place.spans;
        let n = divisor.of(rows, cols);
        let zero: T::Acc = T::from_int(0).to();
        let mut shares = [zero; LANES];
        let window = Window {
            pool,
            place: &place,
            first: 0,
        };
        // SAFETY: for the whole body: the caller's contract; a place has at most `LANES` results, and no other thread
        // has these channels.
        unsafe {
            for (l, share) in shares[..place.lanes].iter_mut().enumerate() {
                let from = src
                    .offset(place.at[0] + place.step[0] * l as isize)
                    .cast::<T>();
                *share = T::over(from.read_unaligned().to(), n);
            }
            for (i, j) in (0..rows.count).flat_map(|i| (0..cols.count).map(move |j| (i, j))) {
                let offset = window.tap(i, j).1;
                for (l, &share) in shares[..place.lanes].iter().enumerate() {
                    let to = dst.offset(offset + place.step[2] * l as isize).cast::<T>();
                    let sum = T::plus(to.read_unaligned().to(), share);
                    to.write_unaligned(sum.to());
                }
            }
        }
    });
}

#[cfg(test)]
mod tests;
