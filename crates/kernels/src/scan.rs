//! Scans: along a dim, what a reduction gives for each beginning.

use crate::operand::{Block, Staging};
use crate::par::par_for;
use crate::reduce::{Accumulators, Out, Reducer, take};
use osteon_spec::{DType, Plan};

/// Accumulators that are alive together.
const WIDE: usize = 256;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

impl Reducer {
    /// Scans elements of dtype `own` at `src`: along `line`, from each element of `starts`. Both walk the source
    /// and both destinations.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation), of all positions of `starts` and `line` together.
    pub unsafe fn scan(
        &self,
        starts: &Plan<3>,
        line: &Plan<3>,
        src: *const u8,
        own: DType,
        outs: [Out; 2],
    ) {
        let (inner, row) = (line.inner(), starts.inner());
        let is_across =
            row.size >= 4 && row.strides[0].unsigned_abs() < inner.strides[0].unsigned_abs();
        let scan = Scan {
            reducer: self,
            starts,
            line,
            src,
            own,
            outs,
        };
        let each = line.numel().max(1);
        par_for(
            starts.numel(),
            (GRAIN / each).max(if is_across { 64 } else { 1 }),
            |range| {
                let scan = &scan;
                for start in range.clone().step_by(WIDE) {
                    let part = start..range.end.min(start + WIDE);
                    // SAFETY: the caller's contract; threads have lines of their own.
                    unsafe {
                        if is_across {
                            scan.across(&part);
                        } else {
                            scan.along(&part);
                        }
                    }
                }
            },
        );
    }
}

struct Scan<'a> {
    reducer: &'a Reducer,
    starts: &'a Plan<3>,
    line: &'a Plan<3>,
    src: *const u8,
    own: DType,
    outs: [Out; 2],
}

// SAFETY: threads read the source and write disjoint lines.
unsafe impl Sync for Scan<'_> {}

impl Scan<'_> {
    /// Scans these lines, one after the other.
    ///
    /// # Safety
    /// The contract of [`Reducer::scan`].
    unsafe fn along(&self, part: &std::ops::Range<usize>) {
        let fold = &self.reducer.fold;
        let mut run = self
            .reducer
            .input(self.src, self.line.select([0]), self.own);
        let mut outputs = [0, 1].map(|k| {
            let output = self
                .reducer
                .output(k, self.outs[k], self.line.select([k + 1]));
            output.zip(self.outs[k])
        });
        let (mut block, mut scratch) = (Block::NEW, Block::NEW);
        let mut staging = Staging::new(&mut block);
        let (mut acc, mut states) = (Accumulators::<1>::NEW, Accumulators::<WIDE>::NEW);
        self.starts
            .for_each_run_in(part.clone(), |offsets, len, strides| {
                for i in 0..len as isize {
                    let at = |k: usize| offsets[k] + i * strides[k];
                    run.ptr = self.src.cast_mut().wrapping_offset(at(0));
                    for (k, output) in outputs.iter_mut().enumerate() {
                        if let Some((output, (ptr, _))) = output {
                            output.at(ptr.wrapping_offset(at(k + 1)));
                        }
                    }
                    // SAFETY: the caller's contract; there is room for a block's states.
                    unsafe {
                        (fold.clear)([acc.ptr()], 1, &fold.params);
                        for start in (0..self.line.numel()).step_by(WIDE) {
                            let block = start..self.line.numel().min(start + WIDE);
                            let from = run.load(&block, &mut staging, &mut scratch);
                            (fold.states)(
                                [states.ptr(), acc.ptr(), from],
                                block.len(),
                                &fold.params,
                            );
                            for (output, _) in outputs.iter().flatten() {
                                output.write(&block, states.ptr(), &fold.params);
                            }
                        }
                    }
                }
            });
    }

    /// Scans these lines side by side.
    ///
    /// # Safety
    /// The contract of [`Reducer::scan`].
    unsafe fn across(&self, part: &std::ops::Range<usize>) {
        let fold = &self.reducer.fold;
        let mut row = self
            .reducer
            .input(self.src, self.starts.select([0]), self.own);
        let mut outputs = [0, 1].map(|k| {
            let output = self
                .reducer
                .output(k, self.outs[k], self.starts.select([k + 1]));
            output.zip(self.outs[k])
        });
        let (mut block, mut scratch) = (Block::NEW, Block::NEW);
        let mut staging = Staging::new(&mut block);
        let mut accs = Accumulators::<WIDE>::NEW;
        // SAFETY: there is room for a part's accumulators.
        unsafe { (fold.clear)([accs.ptr()], part.len(), &fold.params) };
        self.line.for_each_run(|offsets, len, strides| {
            for i in 0..len as isize {
                let at = |k: usize| offsets[k] + i * strides[k];
                row.ptr = self.src.cast_mut().wrapping_offset(at(0));
                // SAFETY: the caller's contract.
                unsafe {
                    let from = row.load(part, &mut staging, &mut scratch);
                    take(fold, accs.ptr(), (from, 1, 0), part.len());
                    for (k, output) in outputs.iter_mut().enumerate() {
                        if let Some((output, (ptr, _))) = output {
                            output.at(ptr.wrapping_offset(at(k + 1)));
                            output.write(part, accs.ptr(), &fold.params);
                        }
                    }
                }
            }
        });
    }
}
