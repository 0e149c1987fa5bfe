//! Maxima and averages over windows of two dims.
//!
//! Results that read alike are done together: those of channels whose elements lie next to each other, else those of
//! windows along a line that are whole and equally far apart.

use crate::convert::Convert;
use crate::par::par_for;
use crate::with_element;
use half::{bf16, f16};
use osteon_spec::DType;

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
}

struct Pointers([*mut u8; 3]);

// SAFETY: threads read the input and write disjoint results.
unsafe impl Sync for Pointers {}

impl Pooling<'_> {
    /// Calls `f` for every place, on several threads; all places of a channel on one if `apart` says so.
    fn for_each(&self, size: usize, apart: bool, f: impl Fn(Place) + Sync) {
        let [rows, cols] = self.spans;
        let by_channel = self.strides[2][1] == size as isize;
        let together = if by_channel { LANES } else { 1 };
        let blocks = self.channels.div_ceil(together);
        let taps = |spans: &[Span]| spans.first().map_or(1, |s| s.count.max(1));
        let grain = GRAIN / (together * cols.len() * taps(rows) * taps(cols)).max(1);
        let task = if apart { rows.len() } else { 1 };
        let tasks = self.batch * blocks * rows.len() / task;
        par_for(tasks, (grain / task).max(1), |range| {
            for line in range.start * task..range.end * task {
                let (row, rest) = (line % rows.len(), line / rows.len());
                let (image, channel) = (rest / blocks, rest % blocks * together);
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
                            together.min(self.channels - channel)
                        } else {
                            run
                        },
                        at: [of(0, row, col), of(1, row, col), of(2, 0, 0)],
                        step,
                        apart,
                        spans: [rows[row], cols[col]],
                    });
                    col += run;
                }
            }
        });
    }

    /// Calls `f` with the position of each element of a window, and the bytes to the first channel's.
    #[inline(always)]
    fn for_each_tap(&self, place: &Place, mut f: impl FnMut(usize, isize)) {
        let [_, _, down, across] = self.strides[2];
        let [rows, cols] = place.spans;
        for i in 0..rows.count {
            let y = rows.start + i * self.step[0];
            for j in 0..cols.count {
                let x = cols.start + j * self.step[1];
                f(
                    y * self.width + x,
                    place.at[2] + y as isize * down + x as isize * across,
                );
            }
        }
    }
}

/// How many windows along a line have the size of the first one and are as far apart as the first two, and how far.
fn alike(spans: &[Span]) -> (usize, usize) {
    let first = spans[0];
    let apart = spans
        .get(1)
        .map_or(0, |next| next.start.wrapping_sub(first.start));
    let fits = |&(i, span): &(usize, &Span)| {
        let start = first.start.wrapping_add(apart.wrapping_mul(i));
        (span.start, span.count, span.full) == (start, first.count, first.full)
    };
    let run = spans[..spans.len().min(LANES)].iter().enumerate();
    (run.take_while(fits).count(), apart)
}

/// # Safety
/// The walk contract (see the [crate] documentation) of results, positions unless null, and the windows' elements.
unsafe fn maxima<T: Pooled>(pool: &Pooling<'_>, ptrs: [*mut u8; 3]) {
    let ptrs = Pointers(ptrs);
    pool.for_each(size_of::<T>(), false, |place| {
        let ptrs = &ptrs;
        let [dst, positions, src] = ptrs.0;
        let (mut best, mut at) = ([T::LEAST; LANES], [0; LANES]);
        let (best, at) = (&mut best[..place.lanes], &mut at[..place.lanes]);
        let mut first = true;
        // SAFETY: for the whole body: the caller's contract; a place has at most `LANES` results.
        unsafe {
            pool.for_each_tap(&place, |position, offset| {
                let from = src.offset(offset);
                let value = |l: usize| -> T::Acc {
                    let at = from.offset(place.step[2] * l as isize);
                    at.cast::<T>().read_unaligned().to()
                };
                if first {
                    for l in 0..best.len() {
                        (best[l], at[l]) = (value(l), position);
                    }
                    first = false;
                    return;
                }
                for l in 0..best.len() {
                    let value = value(l);
                    // A NaN is larger than everything, and the first of equals stays.
                    let larger = value > best[l] || value.partial_cmp(&value).is_none();
                    best[l] = if larger { value } else { best[l] };
                    at[l] = if larger { position } else { at[l] };
                }
            });
            for l in 0..best.len() {
                let [to, position, _] = place.step.map(|step| step * l as isize);
                dst.offset(place.at[0] + to)
                    .cast::<T>()
                    .write_unaligned(best[l].to());
                if !positions.is_null() {
                    positions
                        .offset(place.at[1] + position)
                        .cast::<i64>()
                        .write_unaligned((at[l] + place.apart * l) as i64);
                }
            }
        }
    });
}

/// # Safety
/// As [`maxima`], without positions.
unsafe fn averages<T: Pooled>(pool: &Pooling<'_>, ptrs: [*mut u8; 3], divisor: Divisor) {
    let ptrs = Pointers(ptrs);
    pool.for_each(size_of::<T>(), false, |place| {
        let ptrs = &ptrs;
        let [dst, _, src] = ptrs.0;
        let [rows, cols] = place.spans;
        let n = divisor.of(rows, cols);
        let zero: T::Acc = T::from_int(0).to();
        let mut sums = [zero; LANES];
        // SAFETY: for the whole body: the caller's contract; a place has at most `LANES` results.
        unsafe {
            pool.for_each_tap(&place, |_, offset| {
                for (l, sum) in sums[..place.lanes].iter_mut().enumerate() {
                    let from = src.offset(offset + place.step[2] * l as isize);
                    *sum = T::plus(*sum, from.cast::<T>().read_unaligned().to());
                }
            });
            for (l, &sum) in sums[..place.lanes].iter().enumerate() {
                // Of a window within the border there is nothing to average.
                let average = if rows.count * cols.count == 0 {
                    zero
                } else {
                    T::over(sum, n)
                };
                dst.offset(place.at[0] + place.step[0] * l as isize)
                    .cast::<T>()
                    .write_unaligned(average.to());
            }
        }
    });
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
        // SAFETY: for the whole body: the caller's contract; a place has at most `LANES` results, and no other thread
        // has these channels.
        unsafe {
            for (l, share) in shares[..place.lanes].iter_mut().enumerate() {
                let from = src
                    .offset(place.at[0] + place.step[0] * l as isize)
                    .cast::<T>();
                *share = T::over(from.read_unaligned().to(), n);
            }
            pool.for_each_tap(&place, |_, offset| {
                for (l, &share) in shares[..place.lanes].iter().enumerate() {
                    let to = dst.offset(offset + place.step[2] * l as isize).cast::<T>();
                    let sum = T::plus(to.read_unaligned().to(), share);
                    to.write_unaligned(sum.to());
                }
            });
        }
    });
}
