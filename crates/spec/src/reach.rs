//! Which bytes a layout reaches.

use crate::{Error, Kind, Layout, Result};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;

/// A layout over elements of a size, somewhere in memory: what is needed to speak of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placed<'a> {
    layout: &'a Layout,
    itemsize: usize,
    base: usize,
}

impl<'a> Placed<'a> {
    /// A layout over elements of this size (at most 16 bytes, the widest), with byte 0 the first of
    /// its storage.
    pub fn new(layout: &'a Layout, itemsize: usize) -> Placed<'a> {
        debug_assert!((1..=16).contains(&itemsize));
        Placed {
            layout,
            itemsize,
            base: 0,
        }
    }

    /// The same with the storage's first byte at `base`, so that different storages compare: an
    /// address, or a distance between two of them.
    #[must_use]
    pub fn at(self, base: usize) -> Placed<'a> {
        Placed { base, ..self }
    }

    /// The layout.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The bytes of an element.
    pub fn itemsize(&self) -> usize {
        self.itemsize
    }

    /// The first byte's position.
    pub(crate) fn start(&self) -> usize {
        self.base + self.layout.offset() * self.itemsize
    }

    /// From the first to the last byte reached; empty where there are no elements.
    pub fn extent(&self) -> Range<usize> {
        if self.layout.numel() == 0 {
            return self.base..self.base;
        }
        self.start()..self.base + self.layout.required_len() * self.itemsize
    }
}

/// The runs of bytes that a layout reaches: ascending, apart, exact for any strides.
///
/// Needs memory for the rank alone where dimensions nest (all that slicing and permuting make).
/// Where strides interleave (`as_strided`, some `unfold`s) it keeps the runs of one stride.
///
/// # Errors
/// [`Kind::OutOfMemory`] when there is no memory for those.
///
/// ```
/// use osteon_spec::{Layout, Placed, byte_runs};
/// let x = Layout::contiguous(&[2, 4]).unwrap().narrow(1, 1, 2).unwrap();
/// let runs: Vec<_> = byte_runs(Placed::new(&x, 4)).unwrap().collect();
/// assert_eq!(runs, [4..12, 20..28]);
/// ```
pub fn byte_runs(placed: Placed<'_>) -> Result<Runs> {
    Pattern::new(placed).map_or(Ok(Runs::none()), Pattern::runs)
}

/// A set of bytes: a run, repeated by steps, each of which repeats all that was before.
///
/// Invariants: strides ascend and are larger than `run`; counts are at least 2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pattern {
    pub start: usize,
    pub run: usize,
    pub steps: SmallVec<[Step; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    pub stride: usize,
    pub count: usize,
}

impl Pattern {
    /// The bytes of a layout; `None` where there are none.
    pub fn new(placed: Placed<'_>) -> Option<Pattern> {
        let (layout, itemsize) = (placed.layout, placed.itemsize);
        if layout.numel() == 0 {
            return None;
        }
        let mut steps: SmallVec<[Step; 4]> = layout
            .sizes()
            .iter()
            .zip(layout.strides())
            .filter(|&(&n, &s)| n > 1 && s > 0)
            .map(|(&count, &s)| Step {
                stride: s * itemsize,
                count,
            })
            .collect();
        steps.sort_unstable();
        Some(
            Pattern {
                start: placed.start(),
                run: itemsize,
                steps,
            }
            .simplified(),
        )
    }

    /// With steps joined: one that lands within or at the end of what a smaller one walks, at a
    /// multiple of its stride, only makes that walk longer. (Contiguous dimensions and most
    /// unfolded ones end here.)
    fn simplified(mut self) -> Pattern {
        let steps = std::mem::take(&mut self.steps);
        for step in steps {
            let Step { stride, count } = step;
            if stride <= self.run {
                self.run += stride * (count - 1);
            } else if let Some(inner) = self
                .steps
                .iter_mut()
                .find(|inner| stride % inner.stride == 0 && stride / inner.stride <= inner.count)
            {
                inner.count += stride / inner.stride * (count - 1);
            } else {
                self.steps.push(step);
            }
        }
        self
    }

    /// Bytes from the first to the end of the last after the innermost `k` steps.
    pub fn span(&self, k: usize) -> usize {
        self.run
            + self.steps[..k]
                .iter()
                .map(|s| s.stride * (s.count - 1))
                .sum::<usize>()
    }

    pub fn extent(&self) -> Range<usize> {
        self.start..self.start + self.span(self.steps.len())
    }

    /// Whether step `k` repeats what is before it without interleaving.
    pub fn nests(&self, k: usize) -> bool {
        self.steps[k].stride >= self.span(k)
    }

    /// With the innermost steps filled in, gaps and all, until at most `most` repetitions are left,
    /// and whether any gap was filled.
    pub fn coarse(mut self, most: usize) -> (Pattern, bool) {
        let mut repetitions = 1usize;
        let keep = self.steps.iter().rev().take_while(|step| {
            repetitions = repetitions.saturating_mul(step.count);
            repetitions <= most
        });
        let filled = self.steps.len() - keep.count();
        self.run = self.span(filled);
        self.steps.drain(..filled);
        (self.simplified(), filled > 0)
    }

    pub fn runs(self) -> Result<Runs> {
        let mut levels = SmallVec::new();
        // How many runs the steps so far can make: what an interleaving level must remember.
        let mut most = 1usize;
        for (k, &step) in self.steps.iter().enumerate() {
            let mut interleaved = None;
            if self.nests(k) {
                most = most.saturating_mul(step.count);
            } else {
                // Within one stride every run begins and ends once, and a byte is the least there
                // is.
                let remembered = most
                    .saturating_mul(2)
                    .saturating_add(2)
                    .min(step.stride + 1);
                interleaved = Some(Interleaved::new(remembered)?);
                most = remembered.saturating_mul(step.count + self.span(k) / step.stride + 1);
            }
            levels.push(Level {
                step,
                index: 0,
                interleaved,
            });
        }
        Ok(Runs {
            start: self.start,
            run: Some(self.run),
            run_len: self.run,
            levels,
            ahead: None,
        })
    }
}

/// An iterator over runs of bytes; see [`byte_runs`].
#[derive(Debug)]
pub struct Runs {
    start: usize,
    /// The innermost run, until it was given.
    run: Option<usize>,
    run_len: usize,
    levels: SmallVec<[Level; 4]>,
    /// The run after the one that is being put together.
    ahead: Option<Range<usize>>,
}

#[derive(Debug)]
struct Level {
    step: Step,
    /// How often the inner levels were repeated already.
    index: usize,
    interleaved: Option<Interleaved>,
}

/// The state of a level whose repetitions interleave.
///
/// A byte is reached by repeating an inner byte, or by one step from a byte that took fewer than
/// all. So the level is the merge of the inner runs with its own output, delayed by a stride, where
/// each piece remembers the fewest steps that lead to it. The time is that of the output, however
/// many repetitions reach the same bytes.
#[derive(Debug)]
struct Interleaved {
    inner: Option<Range<usize>>,
    inner_is_done: bool,
    delayed: VecDeque<(Range<usize>, usize)>,
    end: usize,
}

impl Interleaved {
    fn new(remembered: usize) -> Result<Interleaved> {
        let mut delayed = VecDeque::new();
        delayed.try_reserve_exact(remembered).map_err(|_| {
            Error::new(
                Kind::OutOfMemory,
                format!(
                    "no memory to list the bytes of interleaved strides ({remembered} \
                    runs); a copy() has simple ones"
                ),
            )
        })?;
        Ok(Interleaved {
            inner: None,
            inner_is_done: false,
            delayed,
            end: 0,
        })
    }

    fn reset(&mut self) {
        self.inner = None;
        self.inner_is_done = false;
        self.delayed.clear();
        self.end = 0;
    }

    /// The next piece, where `self.inner` is the next run of the inner levels; takes it when used.
    fn next(&mut self, step: Step) -> Option<Range<usize>> {
        // What was walked past, or took all steps, leads no further.
        while let Some((range, steps)) = self.delayed.front()
            && (*steps + 1 >= step.count || range.end + step.stride <= self.end)
        {
            self.delayed.pop_front();
        }
        let inner_start = self.inner.as_ref().map_or(usize::MAX, |r| r.start);
        let later = self.delayed.front().map(|(range, steps)| {
            let start = (range.start + step.stride).max(self.end);
            (start..range.end + step.stride, steps + 1)
        });
        let (range, steps) = match later {
            Some((range, steps)) if range.start < inner_start => {
                (range.start..range.end.min(inner_start), steps)
            }
            _ => (self.inner.take()?, 0),
        };
        self.end = range.end;
        debug_assert!(self.delayed.len() < self.delayed.capacity());
        self.delayed.push_back((range.clone(), steps));
        Some(range)
    }
}

impl Runs {
    pub(crate) fn none() -> Runs {
        Runs {
            start: 0,
            run: None,
            run_len: 0,
            levels: SmallVec::new(),
            ahead: None,
        }
    }

    /// The next run of the innermost `k` levels, from 0.
    fn next_of(&mut self, k: usize) -> Option<Range<usize>> {
        if k == 0 {
            return self.run.take().map(|len| 0..len);
        }
        if self.levels[k - 1].interleaved.is_some() {
            return self.next_interleaved(k);
        }
        loop {
            let inner = self.next_of(k - 1);
            let level = &mut self.levels[k - 1];
            if let Some(run) = inner {
                let shift = level.index * level.step.stride;
                return Some(run.start + shift..run.end + shift);
            }
            if level.index + 1 >= level.step.count {
                return None;
            }
            level.index += 1;
            self.restart(k - 1);
        }
    }

    fn next_interleaved(&mut self, k: usize) -> Option<Range<usize>> {
        let wants_inner = |i: &Interleaved| i.inner.is_none() && !i.inner_is_done;
        if self.levels[k - 1]
            .interleaved
            .as_ref()
            .is_some_and(wants_inner)
        {
            let inner = self.next_of(k - 1);
            if let Some(state) = &mut self.levels[k - 1].interleaved {
                state.inner_is_done = inner.is_none();
                state.inner = inner;
            }
        }
        let level = &mut self.levels[k - 1];
        let step = level.step;
        level.interleaved.as_mut()?.next(step)
    }

    fn restart(&mut self, k: usize) {
        self.run = Some(self.run_len);
        for level in &mut self.levels[..k] {
            level.index = 0;
            if let Some(state) = &mut level.interleaved {
                state.reset();
            }
        }
    }
}

impl Iterator for Runs {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let top = self.levels.len();
        let mut run = match self.ahead.take() {
            Some(run) => run,
            None => self.next_of(top)?,
        };
        self.ahead = loop {
            match self.next_of(top) {
                Some(next) if next.start <= run.end => run.end = run.end.max(next.end),
                other => break other,
            }
        };
        Some(run.start + self.start..run.end + self.start)
    }
}
