//! What reductions and scans carry along: a summary of the elements so far, and the loops over it.

use crate::kernel::{Loop, Params};
use crate::lane::Lane;
use crate::simd::Isa;
use crate::stream::{LINE, prefetch};
use osteon_spec::DType;

/// The value of an element that an accumulator takes in.
pub(crate) type Taken<A> = <<A as Accumulator>::Input as Lane>::Value;

/// A summary of a sequence of elements. Two summaries of sequences next to each other join into the
/// summary of both, so that runs and threads may work apart.
///
/// `number` is what the operation takes beside the elements (the order of a norm); most take none.
pub(crate) trait Accumulator: Copy {
    /// The element type that loops take.
    type Input: Lane;

    /// The summary of nothing.
    const EMPTY: Self;

    /// With one more element at the end.
    fn with(self, x: Taken<Self>, number: f64) -> Self;

    /// With the elements of another summary after these.
    fn then(self, later: Self, number: f64) -> Self;

    /// The summary of a dense run, in an order of the loop's own: where order matters, this must be written anew.
    ///
    /// # Safety
    /// `len` elements may be read at `run`.
    #[inline(always)]
    unsafe fn of_run<I: Isa>(run: *const Self::Input, len: usize, number: f64) -> Self {
        // SAFETY: the caller's contract.
        unsafe {
            match len {
                64.. => side_by_side::<Self, 32>(run, len, number),
                16.. => side_by_side::<Self, 8>(run, len, number),
                _ => side_by_side::<Self, 1>(run, len, number),
            }
        }
    }

    /// Each of `len` accumulators takes the elements of a column in. They have all met as many elements before.
    ///
    /// # Safety
    /// `len` accumulators lie at `accs`, and as many elements in each row, of which there is at least one.
    #[inline(always)]
    unsafe fn of_rows<I: Isa>(accs: *mut Self, rows: Rows, len: usize, number: f64) {
        // A copy, because the compiler knows that nothing else lies there.
        let mut some = [Self::EMPTY; COLUMNS];
        for start in (0..len).step_by(COLUMNS) {
            let some = &mut some[..COLUMNS.min(len - start)];
            let accs = accs.wrapping_add(start);
            // SAFETY: the caller's contract: `start + i < len`.
            let at = |r: usize, i: usize| unsafe { rows.get::<Self::Input>(r, start + i) };
            for (i, acc) in some.iter_mut().enumerate() {
                // SAFETY: as above.
                *acc = unsafe { accs.add(i).read() };
            }
            let n = some.len();
            by_rows!(rows, start..start + n, 4, |r, K| {
                for (i, acc) in some.iter_mut().enumerate() {
                    *acc = (0..K).fold(*acc, |acc, k| acc.with(at(r + k, i), number));
                }
            });
            for (i, &mut acc) in some.iter_mut().enumerate() {
                // SAFETY: as above.
                unsafe { accs.add(i).write(acc) };
            }
        }
    }
}

/// Columns that loops over rows take together: few enough that what they know of each stays in the first-level cache,
/// and as many that memory is read in long pieces.
pub(crate) const COLUMNS: usize = 1024;

/// Rows of elements, below each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) first: *const u8,
    pub(crate) count: usize,
    /// Bytes from one to the next.
    pub(crate) step: isize,
    /// Whether they are short pieces of memory far from each other: the CPU foresees none of them then.
    pub(crate) are_apart: bool,
}

/// Runs a loop over columns for so many rows together (`K`), `r` and those after it, then for each of the rest.
macro_rules! by_rows {
    ($rows:expr, $columns:expr, $many:expr, |$r:ident, $K:ident| $body:block) => {{
        let (rows, mut $r) = ($rows, 0);
        while $r + $many <= rows.count {
            const $K: usize = $many;
            if rows.are_apart {
                rows.prefetch::<Self>($r + $many, $many, $columns);
            }
            $body
            $r += $many;
        }
        while $r < rows.count {
            const $K: usize = 1;
            $body
            $r += 1;
        }
    }};
}
pub(crate) use by_rows;

impl Rows {
    /// So many rows, `step` bytes apart, of `len` elements of this size that are used.
    pub(crate) fn new(
        first: *const u8,
        count: usize,
        step: isize,
        len: usize,
        size: usize,
    ) -> Rows {
        Rows {
            first,
            count,
            step,
            are_apart: step.unsigned_abs() > 2 * len * size,
        }
    }

    /// Asks for a part of the next rows.
    #[inline(always)]
    pub(crate) fn prefetch<A: Accumulator>(
        &self,
        from: usize,
        count: usize,
        columns: std::ops::Range<usize>,
    ) {
        let size = size_of::<A::Input>();
        for r in from..(from + count).min(self.count) {
            let row = self.first.wrapping_offset(r as isize * self.step);
            for at in (columns.start * size..columns.end * size).step_by(LINE) {
                prefetch(row.wrapping_add(at));
            }
        }
    }

    /// Element `i` of row `r`.
    ///
    /// # Safety
    /// It may be read.
    #[inline(always)]
    pub(crate) unsafe fn get<T: Lane>(&self, r: usize, i: usize) -> T::Value {
        let row = self.first.wrapping_offset(r as isize * self.step);
        // SAFETY: the caller's contract.
        unsafe { row.cast::<T>().add(i).read_unaligned().get() }
    }
}

/// The summary of a dense run by summaries of every `LANES`th element: they fill vectors, and hide the time that one step
/// takes.
///
/// # Safety
/// `len` elements may be read at `run`.
#[inline(always)]
unsafe fn side_by_side<A: Accumulator, const LANES: usize>(
    run: *const A::Input,
    len: usize,
    number: f64,
) -> A {
    // SAFETY: for both calls: `i < len`.
    let at = |i: usize| unsafe { run.add(i).read_unaligned().get() };
    let whole = len / LANES * LANES;
    let mut lanes = [A::EMPTY; LANES];
    let mut i = 0;
    while i < whole {
        // Every index is known once this is unrolled, so the lanes live in registers.
        #[allow(clippy::needless_range_loop)]
        for l in 0..LANES {
            lanes[l] = lanes[l].with(at(i + l), number);
        }
        i += LANES;
    }
    let total = lanes[1..]
        .iter()
        .fold(lanes[0], |total, &lane| total.then(lane, number));
    (whole..len).fold(total, |total, i| total.with(at(i), number))
}

/// The loops of an accumulator, looked up for an operation and a dtype.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    /// The dtype that the loops take.
    pub(crate) input: DType,
    /// Bytes of an accumulator.
    pub(crate) size: usize,
    /// Each of `len` accumulators becomes empty: `[accumulators]`.
    pub(crate) clear: Loop<1>,
    /// One accumulator takes a run in: `[accumulator, run]`.
    pub(crate) along: Loop<2>,
    /// Each of `len` accumulators takes a column in: `[accumulators, the Rows]`.
    pub(crate) across: Loop<2>,
    /// Each of `len` accumulators takes a later one in: `[accumulators, later ones]`.
    pub(crate) join: Loop<2>,
    /// One accumulator takes a run in, and each state of it on the way is kept: `[states, accumulator, run]`.
    pub(crate) states: Loop<3>,
    /// The results of `len` accumulators, each with its dtype: `[results, accumulators]`.
    pub(crate) outputs: [Option<(DType, Loop<2>)>; 2],
    pub(crate) params: Params,
}

/// The most bytes of an accumulator.
pub(crate) const MAX_SIZE: usize = 32;

/// # Safety
/// `len` accumulators lie at `p[0]`, aligned.
pub(crate) unsafe fn clear<A: Accumulator>(p: [*mut u8; 1], len: usize, _: &Params) {
    for i in 0..len {
        // SAFETY: the caller's contract.
        unsafe { p[0].cast::<A>().add(i).write(A::EMPTY) };
    }
}

/// # Safety
/// An accumulator lies at `p[0]`, aligned, and `len` elements at `p[1]`.
#[inline(always)]
pub(crate) unsafe fn along<I: Isa, A: Accumulator>(p: [*mut u8; 2], len: usize, params: &Params) {
    let number = params.get::<f64>(0);
    // SAFETY: the caller's contract.
    unsafe {
        let acc = p[0].cast::<A>();
        let run = A::of_run::<I>(p[1].cast(), len, number);
        acc.write(acc.read().then(run, number));
    }
}

/// # Safety
/// `len` accumulators lie at `p[0]`, aligned; at `p[1]` lie [`Rows`] of as many elements.
#[inline(always)]
pub(crate) unsafe fn across<I: Isa, A: Accumulator>(p: [*mut u8; 2], len: usize, params: &Params) {
    // SAFETY: the caller's contract.
    unsafe {
        let rows = p[1].cast::<Rows>().read();
        A::of_rows::<I>(p[0].cast(), rows, len, params.get::<f64>(0));
    }
}

/// # Safety
/// `len` accumulators lie at each pointer, aligned.
pub(crate) unsafe fn join<A: Accumulator>(p: [*mut u8; 2], len: usize, params: &Params) {
    let number = params.get::<f64>(0);
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            let acc = p[0].cast::<A>().add(i);
            let later = p[1].cast::<A>().add(i).read();
            acc.write(acc.read().then(later, number));
        }
    }
}

/// # Safety
/// There is room for `len` accumulators at `p[0]`, aligned; one lies at `p[1]`, aligned; and `len`
/// elements lie at `p[2]`.
pub(crate) unsafe fn states<A: Accumulator>(p: [*mut u8; 3], len: usize, params: &Params) {
    let number = params.get::<f64>(0);
    // SAFETY: the caller's contract: `i < len`.
    unsafe {
        let mut acc = p[1].cast::<A>().read();
        for i in 0..len {
            acc = acc.with(
                p[2].cast::<A::Input>().add(i).read_unaligned().get(),
                number,
            );
            p[0].cast::<A>().add(i).write(acc);
        }
        p[1].cast::<A>().write(acc);
    }
}

/// # Safety
/// `len` accumulators lie at `p[1]`, aligned, and there is room for as many results at `p[0]`.
#[inline(always)]
pub(crate) unsafe fn finish<A: Accumulator, R: Lane>(
    p: [*mut u8; 2],
    len: usize,
    f: impl Fn(A) -> R::Value,
) {
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            let result = f(p[1].cast::<A>().add(i).read());
            p[0].cast::<R>().add(i).write_unaligned(R::put(result));
        }
    }
}

/// `fold!(Accumulator => Result: |acc, number| expression; …)`: the loops of an accumulator, and its one or
/// two results.
macro_rules! fold {
    ($A:ty => $($R:ty: |$acc:pat_param, $number:pat_param| $e:expr);+ $(;)?) => {{
        use $crate::accumulator as acc;
        type A = $A;
        const { assert!(size_of::<A>() <= acc::MAX_SIZE) };
        let outputs = [$({
            unsafe fn finish(p: [*mut u8; 2], len: usize, params: &$crate::Params) {
                #[allow(unused_variables)]
                let number = params.get::<f64>(0);
                // SAFETY: the contract of `finish`.
                unsafe {
                    acc::finish::<A, $R>(p, len, |a| {
                        let ($acc, $number) = (a, number);
                        $e
                    })
                }
            }
            Some((<$R as $crate::Element>::DTYPE, finish as $crate::kernel::Loop<2>))
        }),+];
        acc::Fold {
            input: <<A as acc::Accumulator>::Input as $crate::Element>::DTYPE,
            size: size_of::<A>(),
            clear: acc::clear::<A>,
            along: $crate::simd::simd_loop!(2, |p, len, params| acc::along::<I, A>(p, len, params)),
            across: $crate::simd::simd_loop!(2, |p, len, params| acc::across::<I, A>(p, len, params)),
            join: acc::join::<A>,
            states: acc::states::<A>,
            outputs: acc::padded(outputs),
            params: $crate::Params::NONE,
        }
    }};
}
pub(crate) use fold;

/// One or two outputs as two.
pub(crate) fn padded<const N: usize>(
    outputs: [Option<(DType, Loop<2>)>; N],
) -> [Option<(DType, Loop<2>)>; 2] {
    std::array::from_fn(|i| outputs.get(i).copied().flatten())
}
