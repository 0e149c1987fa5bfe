//! The order in which accumulators meet the elements, which the shape alone decides, so that no result depends on the number
//! of threads: along a run pairs of halves down to short runs, across rows a few hundred of them at a time, so that rounding
//! errors stay small.

use super::Reducer;
use crate::Params;
use crate::accumulator::{Fold, MAX_SIZE, Rows};
use crate::operand::{BLOCK, Block, Form, Operand, Staging};
use crate::par::{Destination, num_threads, par_for};
use crate::transpose::transpose_matrix;
use osteon_spec::{DType, Plan};
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements in a block of the reduced dims that is added up without splitting it further.
const SHORT: usize = 1 << 15;

/// Elements of a dense run among several from which on a call for it costs less than collecting them.
const LONG: usize = 64;

/// Rows that are taken together where the accumulators of many results grow side by side: many enough that what a call
/// costs for each result does not count, and few enough that the next part of the same rows is not far in memory.
const FEW_ROWS: usize = 256;

/// Accumulators that grow side by side on the stack: as many as a block has elements.
const WIDE: usize = BLOCK;

/// Accumulators that grow side by side in the scratch. Rows that lie below each other are read from their beginning to
/// their end then, as memory wants it, where parts of them would be pieces far from each other.
const BAND: usize = 8192;

/// Parts that the rows of a band are in, at most, and how many rows each has at least.
const PARTS: usize = 16;
const PART: usize = 512;

/// Elements of a reduced row, at most, from which on rows that follow each other are turned into columns, whose accumulators
/// grow side by side: a call for each row costs as much as that many elements.
const SHORT_ROW: usize = 16;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// Accumulators of parts that threads work on, all together, where there are few results.
const PARTIAL: usize = 2048;

/// Bytes to which accumulators are aligned.
const ALIGN: usize = 64;

/// Accumulators on the stack.
#[repr(C, align(64))]
pub(crate) struct Accumulators<const N: usize>(MaybeUninit<[[u8; MAX_SIZE]; N]>);

impl<const N: usize> Accumulators<N> {
    pub(crate) const NEW: Self = Accumulators(MaybeUninit::uninit());

    pub(crate) fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// A destination of results: its first byte and its dtype.
pub type Out = Option<(*mut u8, DType)>;

impl Reducer {
    /// The dtypes of the results as the loops give them; they are converted to what is asked for.
    pub fn dtypes(&self) -> [Option<DType>; 2] {
        self.fold.outputs.map(|o| o.map(|(dtype, _)| dtype))
    }

    /// The input in the form that the loops take.
    pub(crate) fn input(&self, ptr: *const u8, plan: Plan<1>, own: DType) -> Operand {
        let wanted = self.fold.input;
        let via = (self.dtype != wanted && own != self.dtype && wanted != DType::Bool)
            .then_some(self.dtype);
        Operand::new(ptr.cast_mut(), plan, Form::new(own, own, via, wanted))
    }

    /// A destination, for results of output `k`.
    pub(crate) fn output(&self, k: usize, out: Out, plan: Plan<1>) -> Option<Output> {
        let ((ptr, own), (from, finish)) = (out?, self.fold.outputs[k]?);
        Some(Output {
            operand: Operand::new(ptr, plan, Form::new(own, from, None, own)),
            finish,
        })
    }

    /// The bytes of scratch that [`Reducer::run`] needs.
    pub fn scratch(&self, kept: &Plan<3>, reduced: &Plan<1>, own: DType) -> usize {
        match Split::new(kept, reduced, Way::new(kept, reduced, own)) {
            Some(split) => split.parts * split.band * self.fold.size + ALIGN,
            None => 0,
        }
    }

    /// Reduces elements of dtype `own` at `src`: for each element of `kept` (source, and both
    /// destinations), those of `reduced` from there, in the order of that plan.
    ///
    /// # Panics
    /// When there is less scratch than [`Reducer::scratch`] says.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation), of all positions of `kept` and `reduced` together.
    pub unsafe fn run(
        &self,
        kept: &Plan<3>,
        reduced: &Plan<1>,
        src: *const u8,
        own: DType,
        outs: [Out; 2],
        scratch: &mut [MaybeUninit<u8>],
    ) {
        let walk = Walk::new(self, kept, reduced, src, own, outs);
        let (results, each) = (kept.numel(), reduced.numel());
        if let Some(split) = Split::new(kept, reduced, walk.way) {
            let needed = split.parts * split.band * self.fold.size + ALIGN;
            assert!(scratch.len() >= needed, "too little scratch");
            let base = scratch.as_mut_ptr().cast::<u8>();
            let accs = Destination(base.wrapping_add(base.align_offset(ALIGN)));
            walk.for_each_part(0..results, split.band, |band| {
                // SAFETY: the caller's contract; the scratch holds an accumulator for each of the band in each part.
                unsafe { walk.in_parts(&band, split.parts, &accs) };
            });
            return;
        }
        let mut grain = (GRAIN / each.max(1)).max(1);
        if walk.way == Way::Across {
            // Each result is made by one thread, whatever they share: few pieces of long rows suit the memory.
            grain = grain.max((results / (2 * num_threads())).clamp(64, WIDE));
        }
        par_for(results, grain, |range| {
            let walk = &walk;
            let mut accs = Accumulators::<WIDE>::NEW;
            walk.for_each_part(range, WIDE, |part| {
                // SAFETY: the caller's contract; threads have results of their own.
                unsafe {
                    walk.accumulate(&part, 0..each, accs.ptr());
                    walk.finish(&part, accs.ptr());
                }
            });
        });
    }
}

/// How accumulators meet the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One takes all its elements.
    Along,
    /// Those of neighbouring results grow side by side.
    Across,
    /// They do because rows are turned into columns first.
    Turned,
}

impl Way {
    fn new(kept: &Plan<3>, reduced: &Plan<1>, own: DType) -> Way {
        let (inner, row) = (reduced.inner(), kept.inner());
        let is_across = row.size >= 4
            && reduced.numel() > 1
            && row.strides[0].unsigned_abs() < inner.strides[0].unsigned_abs();
        let is_turned = (2..=SHORT_ROW).contains(&reduced.numel())
            && reduced.dims().len() == 1
            && inner.strides[0] == own.size() as isize
            && row.size >= LONG
            && row.strides[0] > 0;
        match (is_across, is_turned) {
            (true, _) => Way::Across,
            (_, true) => Way::Turned,
            _ => Way::Along,
        }
    }
}

/// How threads share the elements of each result, which the shape alone decides.
struct Split {
    /// Parts of the elements.
    parts: usize,
    /// Results that are made together, at most.
    band: usize,
}

impl Split {
    /// None where each result is better made by one thread.
    fn new(kept: &Plan<3>, reduced: &Plan<1>, way: Way) -> Option<Split> {
        let (results, each) = (kept.numel(), reduced.numel());
        let (parts, band) = if results == 0 {
            return None;
        } else if results <= PARTIAL / 2 {
            let work = results.saturating_mul(each) / GRAIN;
            ((PARTIAL / results).min(each).min(work), results)
        } else if way == Way::Across && kept.inner().size > WIDE {
            ((each / PART).min(PARTS), kept.inner().size.min(BAND))
        } else {
            return None;
        };
        (parts >= 2).then_some(Split { parts, band })
    }
}

/// Where results go.
pub(crate) struct Output {
    operand: Operand,
    finish: crate::kernel::Loop<2>,
}

impl Output {
    /// Writes the results of these accumulators, [`BLOCK`] at most.
    ///
    /// # Safety
    /// As many accumulators lie at `accs` as the part has positions, which may be written.
    pub(crate) unsafe fn write(&self, part: &Range<usize>, accs: *mut u8, params: &Params) {
        let (mut block, mut scratch) = (Block::NEW, Block::NEW);
        // SAFETY: the caller's contract; a block has room for the results.
        unsafe {
            (self.finish)([block.ptr(), accs], part.len(), params);
            self.operand.store(part, &mut block, &mut scratch);
        }
    }

    /// Moves the destination.
    pub(crate) fn at(&mut self, ptr: *mut u8) {
        self.operand.ptr = ptr;
    }
}

/// A reduction at work.
struct Walk<'a> {
    reducer: &'a Reducer,
    kept: &'a Plan<3>,
    reduced: &'a Plan<1>,
    src: *const u8,
    own: DType,
    way: Way,
    /// The reduced elements are dense runs of the loops' dtype, long enough for a call each.
    has_runs: bool,
    outputs: [Option<Output>; 2],
}

// SAFETY: threads read the source and write disjoint results.
unsafe impl Sync for Walk<'_> {}

impl<'a> Walk<'a> {
    fn new(
        reducer: &'a Reducer,
        kept: &'a Plan<3>,
        reduced: &'a Plan<1>,
        src: *const u8,
        own: DType,
        outs: [Out; 2],
    ) -> Walk<'a> {
        let [first, second] = outs;
        let inner = reduced.inner();
        let form = reducer.input(src, reduced.clone(), own);
        Walk {
            reducer,
            kept,
            reduced,
            src,
            own,
            way: Way::new(kept, reduced, own),
            has_runs: form
                .in_loop_form(&(0..inner.size.min(reduced.numel())))
                .is_some()
                && (reduced.dims().len() <= 1 || inner.size >= LONG),
            outputs: [
                reducer.output(0, first, kept.select([1])),
                reducer.output(1, second, kept.select([2])),
            ],
        }
    }

    /// Parts of this range of results of so many at most: where long rows of results end, so do parts, so that each is one run.
    fn for_each_part(&self, range: Range<usize>, most: usize, mut f: impl FnMut(Range<usize>)) {
        let row = self.kept.inner().size;
        let mut start = range.start;
        while start < range.end {
            let mut end = range.end.min(start + most);
            if self.way != Way::Along && row >= LONG {
                end = end.min(start + row - start % row);
            }
            f(start..end);
            start = end;
        }
    }

    /// Accumulates this part of the elements for this part of the results, which is one of [`Walk::for_each_part`], into
    /// accumulators, whatever they are.
    ///
    /// # Safety
    /// The contract of [`Reducer::run`]; there is room for the accumulators.
    unsafe fn accumulate(&self, part: &Range<usize>, elements: Range<usize>, accs: *mut u8) {
        let fold = &self.reducer.fold;
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            (fold.clear)([accs], part.len(), &fold.params);
            let mut block = Block::NEW;
            let mut staging = Staging::new(&mut block);
            if self.way != Way::Along {
                let mut row = self
                    .reducer
                    .input(self.src, self.kept.select([0]), self.own);
                if self.way == Way::Turned {
                    return self.turned(&row, part, elements, accs, &mut staging);
                }
                return self.across(&mut row, part, elements, accs, &mut staging);
            }
            let mut acc = accs;
            let mut run = self.reducer.input(self.src, self.reduced.clone(), self.own);
            self.kept
                .for_each_run_in(part.clone(), |[offset, ..], len, [stride, ..]| {
                    for i in 0..len as isize {
                        run.ptr = self.src.cast_mut().wrapping_offset(offset + i * stride);
                        self.along(&run, elements.clone(), acc, &mut staging);
                        acc = acc.wrapping_add(fold.size);
                    }
                });
        }
    }

    /// Takes these elements into one accumulator.
    ///
    /// # Safety
    /// As [`Walk::accumulate`].
    unsafe fn along(
        &self,
        run: &Operand,
        elements: Range<usize>,
        acc: *mut u8,
        staging: &mut Staging<'_>,
    ) {
        let fold = &self.reducer.fold;
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            if elements.len() > SHORT {
                let half = (elements.len() / 2).next_multiple_of(SHORT);
                let middle = elements.start + half.min(elements.len() - 1);
                let mut later = Accumulators::<1>::NEW;
                (fold.clear)([later.ptr()], 1, &fold.params);
                self.along(run, elements.start..middle, acc, staging);
                self.along(run, middle..elements.end, later.ptr(), staging);
                (fold.join)([acc, later.ptr()], 1, &fold.params);
            } else if self.has_runs {
                self.reduced.for_each_run_in(elements, |[offset], len, _| {
                    (fold.along)([acc, run.ptr.offset(offset)], len, &fold.params);
                });
            } else {
                self.along_blocks(run, elements, acc, staging);
            }
        }
    }

    /// The same of elements that are not as the loops take them.
    ///
    /// # Safety
    /// As [`Walk::accumulate`].
    // Apart, because room on the stack costs time wherever it is not needed.
    #[inline(never)]
    unsafe fn along_blocks(
        &self,
        run: &Operand,
        elements: Range<usize>,
        acc: *mut u8,
        staging: &mut Staging<'_>,
    ) {
        let fold = &self.reducer.fold;
        let mut scratch = Block::NEW;
        for start in elements.clone().step_by(BLOCK) {
            let part = start..elements.end.min(start + BLOCK);
            // SAFETY: the caller's contract.
            unsafe {
                let ptr = run.load(&part, staging, &mut scratch);
                (fold.along)([acc, ptr], part.len(), &fold.params);
            }
        }
    }

    /// Takes these elements of a row of results into an accumulator for each.
    ///
    /// # Safety
    /// As [`Walk::accumulate`].
    unsafe fn across(
        &self,
        row: &mut Operand,
        part: &Range<usize>,
        elements: Range<usize>,
        accs: *mut u8,
        staging: &mut Staging<'_>,
    ) {
        let fold = &self.reducer.fold;
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            row.ptr = self.src.cast_mut();
            if let Some(base) = row.in_loop_form(part) {
                return self
                    .reduced
                    .for_each_run_in(elements, |[offset], count, [step]| {
                        let first = base.wrapping_offset(offset).cast_const();
                        for start in (0..count).step_by(FEW_ROWS) {
                            let first = first.wrapping_offset(start as isize * step);
                            let count = FEW_ROWS.min(count - start);
                            take(fold, accs, (first, count, step), part.len());
                        }
                    });
            }
            for start in part.clone().step_by(BLOCK) {
                let some = start..part.end.min(start + BLOCK);
                let accs = accs.wrapping_add((start - part.start) * fold.size);
                self.across_blocks(row, &some, elements.clone(), accs, staging);
            }
        }
    }

    /// The same of rows that are not as the loops take them, of [`BLOCK`] results at most.
    ///
    /// # Safety
    /// As [`Walk::accumulate`].
    #[inline(never)]
    unsafe fn across_blocks(
        &self,
        row: &mut Operand,
        part: &Range<usize>,
        elements: Range<usize>,
        accs: *mut u8,
        staging: &mut Staging<'_>,
    ) {
        let fold = &self.reducer.fold;
        // As many rows as a few blocks hold are converted before the accumulators meet them.
        let mut scratch = Block::NEW;
        let mut rows = [Block::NEW; 4];
        let bytes = part.len() * fold.input.size();
        let first = rows.as_mut_ptr().cast::<u8>();
        let (mut count, step) = (0, bytes as isize);
        // SAFETY: for the whole body: the caller's contract.
        unsafe {
            self.reduced
                .for_each_run_in(elements, |[offset], len, [stride]| {
                    for i in 0..len as isize {
                        row.ptr = self.src.cast_mut().wrapping_offset(offset + i * stride);
                        let from = row.load(part, staging, &mut scratch);
                        first
                            .add(count * bytes)
                            .copy_from_nonoverlapping(from, bytes);
                        count += 1;
                        if (count + 1) * bytes > size_of_val(&rows) {
                            take(fold, accs, (first, count, step), part.len());
                            count = 0;
                        }
                    }
                });
            if count > 0 {
                take(fold, accs, (first, count, step), part.len());
            }
        }
    }

    /// The same of rows that are dense along the reduced elements: they are turned first.
    ///
    /// # Safety
    /// As [`Walk::accumulate`].
    #[inline(never)]
    unsafe fn turned(
        &self,
        row: &Operand,
        part: &Range<usize>,
        elements: Range<usize>,
        accs: *mut u8,
        staging: &mut Staging<'_>,
    ) {
        let (fold, width, len) = (&self.reducer.fold, self.own.size(), part.len());
        let [at] = self.reduced.offsets();
        let mut scratch = Block::NEW;
        let (mut turned, mut rows) = ([Block::NEW; 2], [Block::NEW; 2]);
        let [turned, rows] =
            [&mut turned, &mut rows].map(|blocks| blocks.as_mut_ptr().cast::<u8>());
        let (own, wanted) = (len * width, len * fold.input.size());
        let many = (size_of::<[Block; 2]>() / own.max(wanted)).max(1);
        for start in elements.clone().step_by(many) {
            let count = many.min(elements.end - start);
            // SAFETY: the caller's contract; a part is one run, and the blocks have room for so many rows.
            unsafe {
                let from = row.at(part.start).offset(at + (start * width) as isize);
                let pitch = self.kept.inner().strides[0];
                transpose_matrix((turned, own as isize), (from, pitch), count, len, width);
                let is_converted = !row.form().is_loops();
                for r in (0..count).filter(|_| is_converted) {
                    let from = turned.add(r * own);
                    let form = row.form();
                    let from = form.load(from, width as isize, len, staging, &mut scratch);
                    rows.add(r * wanted).copy_from_nonoverlapping(from, wanted);
                }
                let (first, step) = match is_converted {
                    true => (rows, wanted as isize),
                    false => (turned, own as isize),
                };
                let first = first.cast_const();
                take(fold, accs, (first, count, step), len);
            }
        }
    }

    /// Writes the results of a part, whose accumulators these are.
    ///
    /// # Safety
    /// As [`Walk::accumulate`].
    unsafe fn finish(&self, part: &Range<usize>, accs: *mut u8) {
        for output in self.outputs.iter().flatten() {
            // SAFETY: the caller's contract.
            unsafe { output.write(part, accs, &self.reducer.fold.params) };
        }
    }

    /// Makes the results of a band with their elements in parts, which threads share.
    ///
    /// # Safety
    /// The contract of [`Reducer::run`]; there is room for an accumulator for each result in each part.
    unsafe fn in_parts(&self, band: &Range<usize>, parts: usize, accs: &Destination<u8>) {
        let (fold, elements) = (&self.reducer.fold, self.reduced.numel());
        let at = |part: usize, result: usize| {
            let place = part * band.len() + result - band.start;
            accs.0.wrapping_add(place * fold.size)
        };
        let bound = |part: usize| part * (elements / parts) + part.min(elements % parts);
        par_for(parts, 1, |range| {
            for part in range {
                // SAFETY: the caller's contract; each part has accumulators of its own.
                unsafe {
                    self.accumulate(band, bound(part)..bound(part + 1), at(part, band.start))
                };
            }
        });
        // Neighbours join, then pairs of neighbours, and so on.
        par_for(band.len(), WIDE, |range| {
            for start in range.clone().step_by(WIDE) {
                let some = band.start + start..band.start + range.end.min(start + WIDE);
                let mut step = 1;
                while step < parts {
                    for part in (0..parts - step).step_by(2 * step) {
                        let pair = [part, part + step].map(|part| at(part, some.start));
                        // SAFETY: the parts have accumulators for these results, which are this thread's.
                        unsafe { (fold.join)(pair, some.len(), &fold.params) };
                    }
                    step *= 2;
                }
                // SAFETY: the caller's contract.
                unsafe { self.finish(&some, at(0, some.start)) };
            }
        });
    }
}

/// Each of `len` accumulators takes its column of so many rows in, which begin at a pointer and are so many bytes apart.
///
/// # Safety
/// `len` accumulators lie at `accs`, aligned, and as many elements in each row.
#[inline(always)]
pub(crate) unsafe fn take(
    fold: &Fold,
    accs: *mut u8,
    (first, count, step): (*const u8, usize, isize),
    len: usize,
) {
    if count > 0 {
        let mut rows = Rows::new(first, count, step, len, fold.input.size());
        let rows = std::ptr::from_mut(&mut rows).cast();
        // SAFETY: the caller's contract.
        unsafe { (fold.across)([accs, rows], len, &fold.params) };
    }
}
