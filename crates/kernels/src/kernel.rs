//! The one driver of elementwise loops.
//!
//! A loop knows one case: all operands dense, each of the dtype it computes in. Everything else,
//! that is strides, broadcasting, other dtypes, half precision and work in place, is done here, for
//! all of them: operands that are not as the loop wants them pass through blocks on the stack. An
//! operation is therefore one expression per kind of number, and its code one vectorised loop per
//! dtype; light operations have variants for what is frequent besides (see [`lane`](crate::lane)).
//!
//! There are three ways through a plan: run by run along the inner dim; where runs are short, in
//! blocks that go on from one run to the next; and where operands are dense along different dims,
//! in tiles, whose rows are runs again.

use crate::index::Run;
use crate::lane::computed_in;
use crate::operand::{BLOCK, Block, Form, Operand, Staging};
use crate::par::par_for;
use crate::stream;
use crate::tile::{Tiles, Turned};
use crate::value::Value;
use osteon_spec::Scalar;
use osteon_spec::{DType, Plan, PlanDim};
use std::array;
use std::ops::Range;

/// `loop(ptrs, len, params)` works on `len` elements, dense from each pointer; operand 0 is
/// written.
///
/// # Safety (of calling one)
/// `len` elements lie at each pointer, and the written ones overlap no other, but that operand 0
/// may be an input itself where the loop's [`Kernel`] says so. Of the input that the parameters say
/// is one number, only one element lies there.
pub(crate) type Loop<const N: usize> = unsafe fn([*mut u8; N], usize, &Params);

/// `combine(dst, src, run, params, stored)` works on the elements of dtype `stored` at each position of a run, in order.
///
/// # Safety (of calling one)
/// The positions lie in destination and source as those move; the indices may be read, and are in range.
pub(crate) type Combine = unsafe fn(*mut u8, *const u8, &Run, &Params, DType);

/// Numbers that an operation takes beside its operands (`alpha`, bounds, slopes), each as an
/// element of the dtype that the loop computes in.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    numbers: [Value; Params::MAX],
    /// The input that is one element, the same for all of the others, if one is; 0 if none.
    pub(crate) number: usize,
}

impl Params {
    /// The most numbers that an operation takes.
    pub const MAX: usize = 4;

    pub(crate) const NONE: Params = Params {
        numbers: [Value::ZERO; Params::MAX],
        number: 0,
    };

    /// One number, a `float64`.
    pub(crate) fn one(number: f64) -> Params {
        let mut params = Params::NONE;
        params.numbers[0] = Value::of(number);
        params
    }

    /// Number `i` as an element of the loop's dtype.
    #[inline(always)]
    pub(crate) fn get<T: crate::Element>(&self, i: usize) -> T {
        self.numbers[i].get()
    }
}

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// Runs shorter than this go on from one to the next in blocks: a call costs as much as this.
const SHORT: usize = 16;

/// The same where operands of each run pass through blocks of their own.
const SHORT_STAGED: usize = 96;

/// Elements of several inputs whose results go past the caches at a time. Reads come to a halt while
/// a long block of results leaves: with blocks so short, and the next part asked for before, sums of
/// 64 MiB take a fifth less time. With one input, longer ones are as good.
const STREAMED: usize = 256;

/// An elementwise loop, looked up for an operation and a dtype: operand 0 is the result.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<const N: usize> {
    dtypes: [DType; N],
    /// The dtype of the operation, where the loop computes in a wider one.
    rounded: Option<DType>,
    body: Loop<N>,
    params: Params,
    grain: usize,
    /// The input that may be the destination itself.
    in_place: Option<usize>,
    /// An input, any but not all, may be one number.
    takes_number: bool,
    /// The loop through indices.
    combine: Option<Combine>,
}

impl<const N: usize> Kernel<N> {
    /// A loop and the dtypes it takes.
    pub(crate) fn new(dtypes: [DType; N], body: Loop<N>) -> Kernel<N> {
        Kernel {
            dtypes,
            rounded: None,
            body,
            params: Params::NONE,
            grain: GRAIN,
            in_place: None,
            takes_number: false,
            combine: None,
        }
    }

    /// The same kernel with a loop through indices.
    pub(crate) fn combining(mut self, combine: Combine) -> Kernel<N> {
        self.combine = Some(combine);
        self
    }

    /// `dst = kernel(dst, src)` at each position of a run, of elements of this dtype: the operation's own.
    ///
    /// # Panics
    /// Where the kernel has no such loop: it is not light, or not of two elements.
    ///
    /// # Safety
    /// The contract of [`Combine`].
    #[inline]
    pub(crate) unsafe fn combine(&self, dst: *mut u8, src: *const u8, run: &Run, dtype: DType) {
        let combine = self.combine.expect("a light operation of two elements");
        // SAFETY: the caller's contract.
        unsafe { combine(dst, src, run, &self.params, dtype) }
    }

    /// The kernel of a loop with the variants of [`lane::light`](crate::lane::light).
    pub(crate) fn light(mut self) -> Kernel<N> {
        self.takes_number = N == 3;
        self.in_place(1)
    }

    /// The kernel of a loop for which operand 0 may be this input as well: it reads each element
    /// before it writes it.
    pub(crate) fn in_place(mut self, k: usize) -> Kernel<N> {
        self.in_place = Some(k);
        self
    }

    /// The kernel of an operation in half precision, by the loop for `float32`.
    pub(crate) fn rounded_to(mut self, dtype: DType) -> Kernel<N> {
        self.rounded = Some(dtype);
        self
    }

    /// The same loop with these numbers, converted to the dtype that the loop computes in.
    ///
    /// # Panics
    /// When there are more than [`Params::MAX`].
    #[inline]
    pub fn with(mut self, numbers: &[Scalar]) -> Kernel<N> {
        let params = &mut self.params.numbers[..numbers.len()];
        for (param, &number) in params.iter_mut().zip(numbers) {
            *param = Value::new(number, self.dtypes[N - 1]);
        }
        self
    }

    /// The dtypes that the loop reads and writes without conversion. Operands of any other dtype
    /// are accepted, and converted as [`cast`](crate::cast()) does.
    pub fn dtypes(&self) -> [DType; N] {
        self.dtypes
    }

    /// The dtype of the operation's result.
    pub fn result(&self) -> DType {
        match self.rounded {
            Some(rounded) if self.dtypes[0] == computed_in(rounded) => rounded,
            _ => self.dtypes[0],
        }
    }

    /// The dtype by way of which operand `k` of dtype `own` is converted, if there is one: an
    /// operation in half precision takes inputs of that precision and gives a result of it,
    /// whatever is passed in. (An input of the loop's own dtype is a number that PyTorch would not
    /// round either.)
    pub(crate) fn via(&self, k: usize, own: DType) -> Option<DType> {
        let wanted = self.dtypes[k];
        self.rounded
            .filter(|&r| own != r && wanted == computed_in(r) && (k == 0 || own != wanted))
    }

    /// Calls the loop itself.
    ///
    /// # Safety
    /// The contract of [`Loop`].
    #[inline]
    pub(crate) unsafe fn call(&self, ptrs: [*mut u8; N], len: usize) {
        // SAFETY: the caller's contract.
        unsafe { (self.body)(ptrs, len, &self.params) }
    }

    /// Runs the loop over a plan: operand `k` lies at `ptrs[k]` and is of `dtypes[k]`; operand 0 is
    /// written, the others are only read.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation).
    pub unsafe fn run(&self, plan: &Plan<N>, ptrs: [*mut u8; N], dtypes: [DType; N]) {
        let offsets = plan.offsets();
        // Positions of the plan, so within the operands.
        let first = array::from_fn(|k| ptrs[k].wrapping_offset(offsets[k]));
        if let Some(number) = self.in_one_call(plan, first, dtypes) {
            // With few elements, copying the numbers takes longer than the loop.
            let with_number;
            let params = if number == self.params.number {
                &self.params
            } else {
                with_number = Params {
                    number,
                    ..self.params
                };
                &with_number
            };
            // SAFETY: the caller's contract, and the run is as the loop wants it.
            return unsafe { (self.body)(first, plan.numel(), params) };
        }
        let tiles = Tiles::new(plan, dtypes.map(DType::size));
        let walk = Walk::new(self, plan, ptrs, dtypes, tiles.as_ref());
        let (units, grain) = match &tiles {
            Some(tiles) => (tiles.count(), self.grain / tiles.area()),
            None => (plan.numel(), self.grain),
        };
        par_for(units, grain, |range| {
            let walk = &walk;
            // SAFETY: the caller's contract; threads write disjoint elements.
            unsafe { walk.part(range) }
        });
    }

    /// Whether the loop takes few elements of operands that begin at `first` as they are, in one call, and if so which
    /// input is one number (0 for none). Most calls of a program are such, and a [`Walk`] costs more than their loop.
    #[inline]
    fn in_one_call(
        &self,
        plan: &Plan<N>,
        first: [*mut u8; N],
        dtypes: [DType; N],
    ) -> Option<usize> {
        let PlanDim { size, strides } = plan.inner();
        let is_loops = self.rounded.is_none() && dtypes == self.dtypes;
        if plan.numel() != size || size > self.grain.min(GRAIN) || !is_loops {
            return None;
        }
        let mut number = 0;
        for k in 0..N {
            let is_dense = size == 1 || strides[k] == dtypes[k].size() as isize;
            let takes_number = k > 0 && number == 0 && strides[k] == 0 && self.takes_number;
            match (is_dense, takes_number) {
                (true, _) if k == 0 || first[k] != first[0] || self.in_place == Some(k) => {}
                (false, true) => number = k,
                _ => return None,
            }
        }
        (!stream::pays(size * dtypes[0].size())).then_some(number)
    }
}

/// A kernel at work on a plan.
struct Walk<'a, const N: usize> {
    kernel: &'a Kernel<N>,
    plan: &'a Plan<N>,
    ptrs: [*mut u8; N],
    forms: [Form; N],
    params: Params,
    way: Way<'a, N>,
    /// The loop takes all operands of a run as they are, or from their tile.
    is_plain: bool,
    /// Results are collected in a block before they are written.
    is_staged: bool,
    /// They are written past the caches.
    streams: bool,
}

/// The way through a plan.
#[derive(Clone, Copy)]
enum Way<'a, const N: usize> {
    /// Runs, and each is one call.
    Direct,
    /// Runs, some operands of which pass through blocks.
    Runs,
    /// Blocks of elements from one run or many.
    Blocks,
    Tiles(&'a Tiles<N>),
}

// SAFETY: threads read all operands and write disjoint elements of the first.
unsafe impl<const N: usize> Sync for Walk<'_, N> {}

impl<'a, const N: usize> Walk<'a, N> {
    fn new(
        kernel: &'a Kernel<N>,
        plan: &'a Plan<N>,
        ptrs: [*mut u8; N],
        dtypes: [DType; N],
        tiles: Option<&'a Tiles<N>>,
    ) -> Walk<'a, N> {
        let forms: [Form; N] = std::array::from_fn(|k| {
            let (own, wanted) = (dtypes[k], kernel.dtypes[k]);
            let (from, to) = if k == 0 { (wanted, own) } else { (own, wanted) };
            Form::new(own, from, kernel.via(k, own), to)
        });
        let inner = plan.inner();
        let steps = tiles.map_or(inner.strides, |t| t.steps());
        let is_dense = |k: usize| {
            forms[k].is_loops() && (steps[k] == forms[k].width as isize || inner.size == 1)
        };
        let mut params = kernel.params;
        if kernel.takes_number && inner.size > 1 {
            let is_number = |k: &usize| forms[*k].is_loops() && steps[*k] == 0;
            params.number = (1..N).rev().find(is_number).unwrap_or(0);
        }
        // Results of work in place go through a block where the loop does not know of it: the
        // compiler's test for overlap would send it to the variant without vectors.
        let first = |k: usize| ptrs[k].wrapping_offset(plan.offsets()[k]);
        let in_place = |k: usize| k > 0 && first(k) == first(0);
        let is_staged = (1..N).any(|k| in_place(k) && kernel.in_place != Some(k));
        // Rows of tiles lie apart: it pays for converted results, too, not to read their lines first.
        let streams = (is_dense(0) || tiles.is_some() && steps[0] == forms[0].width as isize)
            && !(1..N).any(in_place)
            && inner.size >= SHORT_STAGED
            && stream::pays(plan.numel() * forms[0].width);
        let is_staged = is_staged || streams || !forms[0].is_loops();
        let is_plain = !is_staged && (0..N).all(|k| is_dense(k) || (k > 0 && params.number == k));
        let short = if is_plain { SHORT } else { SHORT_STAGED };
        let way = match tiles {
            Some(tiles) => Way::Tiles(tiles),
            None if plan.dims().len() > 1 && inner.size < short => Way::Blocks,
            None if is_plain => Way::Direct,
            None => Way::Runs,
        };
        if matches!(way, Way::Blocks) {
            params.number = 0;
        }
        Walk {
            kernel,
            plan,
            ptrs,
            forms,
            params,
            way,
            is_plain,
            is_staged,
            streams,
        }
    }

    /// The operands at these offsets.
    #[inline(always)]
    fn at(&self, offsets: [isize; N]) -> [*mut u8; N] {
        // Positions of the plan, so within the operands.
        std::array::from_fn(|k| self.ptrs[k].wrapping_offset(offsets[k]))
    }

    /// Does this range of the walk: of its elements, or of its tiles.
    ///
    /// # Safety
    /// The contract of [`Kernel::run`]; nobody else does the same elements.
    unsafe fn part(&self, range: Range<usize>) {
        // SAFETY: the caller's contract.
        unsafe {
            match self.way {
                Way::Direct => self.direct(range),
                Way::Runs => self.runs(range),
                Way::Blocks => self.blocks(range),
                Way::Tiles(tiles) => self.tiles(tiles, range),
            }
        }
        if self.streams {
            stream::fence();
        }
    }

    /// Does the elements of this range of the walk, each run in one call.
    ///
    /// # Safety
    /// As [`Walk::part`].
    unsafe fn direct(&self, range: Range<usize>) {
        let (body, params) = (self.kernel.body, &self.params);
        self.plan.for_each_run_in(range, |offsets, len, _| {
            // SAFETY: each run is as the loop wants it.
            unsafe { body(self.at(offsets), len, params) };
        });
    }

    /// Does the elements of this range of the walk, run by run.
    ///
    /// # Safety
    /// As [`Walk::part`].
    // Not inlined, as all that have blocks: their pages of stack are touched on entry, 28 for three operands.
    #[inline(never)]
    unsafe fn runs(&self, range: Range<usize>) {
        let mut blocks = [const { Block::NEW }; N];
        let mut staging = blocks.each_mut().map(Staging::new);
        let mut scratch = Block::NEW;
        self.plan.for_each_run_in(range, |offsets, len, steps| {
            // SAFETY: a run of the plan.
            unsafe { self.run(self.at(offsets), steps, len, &mut staging, &mut scratch) };
        });
    }

    /// Does one run.
    ///
    /// # Safety
    /// As [`Walk::part`], for `len` elements that are `steps` bytes apart from these pointers on.
    unsafe fn run(
        &self,
        ptrs: [*mut u8; N],
        steps: [isize; N],
        len: usize,
        staging: &mut [Staging<'_>; N],
        scratch: &mut Block,
    ) {
        let (body, params) = (self.kernel.body, &self.params);
        if self.is_plain {
            // SAFETY: the caller's contract; the run is as the loop wants it.
            return unsafe { body(ptrs, len, params) };
        }
        let several = self.streams && N > 2;
        let step = if several { STREAMED } else { BLOCK };
        for start in (0..len).step_by(step) {
            let part = step.min(len - start);
            let at = |k: usize| ptrs[k].wrapping_offset(start as isize * steps[k]);
            let mut from = [at(0); N];
            // SAFETY: the caller's contract; a block holds the elements of a part.
            unsafe {
                for k in 1..N {
                    from[k] = if params.number == k {
                        at(k)
                    } else {
                        self.forms[k].load(at(k), steps[k], part, &mut staging[k], scratch)
                    };
                }
                let is_dense = steps[0] == self.forms[0].width as isize || part == 1;
                if is_dense && !self.is_staged {
                    body(from, part, params);
                    continue;
                }
                let block = staging[0].block();
                from[0] = block.ptr();
                body(from, part, params);
                let to = (is_dense && !self.streams).then(|| at(0));
                let results = self.forms[0].finish(part, block, scratch, to);
                if several && !matches!(self.way, Way::Tiles(_)) {
                    let next = |k: usize| at(k).wrapping_add(part * self.forms[k].width);
                    self.prefetch(next, steps, part);
                }
                if self.streams {
                    stream::store(at(0), results, part * self.forms[0].width);
                } else if to != Some(results) {
                    self.forms[0].store(at(0), steps[0], results, part);
                }
            }
        }
    }

    /// Asks for the part of the inputs that comes next. Hardware foresees neither the end of a run nor the row of a tile.
    #[inline(always)]
    fn prefetch(&self, next: impl Fn(usize) -> *mut u8, steps: [isize; N], part: usize) {
        for (k, (form, step)) in self.forms.iter().zip(steps).enumerate().skip(1) {
            if step == form.width as isize {
                for line in (0..part * form.width).step_by(stream::LINE) {
                    stream::prefetch(next(k).wrapping_add(line));
                }
            }
        }
    }

    /// Does these tiles.
    ///
    /// # Safety
    /// As [`Walk::part`].
    #[inline(never)]
    unsafe fn tiles(&self, tiles: &Tiles<N>, range: Range<usize>) {
        let mut turned = [const { Turned::NEW }; N];
        let mut blocks = [const { Block::NEW }; N];
        let mut staging = blocks.each_mut().map(Staging::new);
        let mut scratch = Block::NEW;
        let (steps, inner) = (tiles.steps(), self.plan.inner());
        for tile in range {
            let tile = tiles.get(tile);
            let mut ptrs = self.at(tile.offsets);
            let mut down = tiles.down();
            for k in 1..N {
                if tiles.is_across(k) {
                    let (from, width) = (ptrs[k].cast_const(), self.forms[k].width);
                    // SAFETY: the tile lies in the operand.
                    (ptrs[k], down[k]) =
                        unsafe { turned[k].fill(&tile, from, inner.strides[k], width) };
                }
            }
            for _ in 0..tile.rows {
                if tiles.are_far() {
                    self.prefetch(|k| ptrs[k].wrapping_offset(down[k]), steps, tile.cols);
                }
                // SAFETY: a run of the plan, or of its turned elements.
                unsafe { self.run(ptrs, steps, tile.cols, &mut staging, &mut scratch) };
                ptrs = std::array::from_fn(|k| ptrs[k].wrapping_offset(down[k]));
            }
        }
    }

    /// Does the elements of this range of the walk in blocks, each operand in runs as long as its
    /// own strides allow.
    ///
    /// # Safety
    /// As [`Walk::part`].
    #[inline(never)]
    unsafe fn blocks(&self, range: Range<usize>) {
        let operands: [Operand; N] = std::array::from_fn(|k| {
            Operand::new(self.ptrs[k], self.plan.select([k]), self.forms[k].clone())
        });
        let mut blocks = [const { Block::NEW }; N];
        let mut staging = blocks.each_mut().map(Staging::new);
        let mut scratch = Block::NEW;
        let run = self.plan.inner().size;
        let mut start = range.start;
        while start < range.end {
            // Whole runs, if possible: then rows that are broadcast begin alike in every block.
            let end = start + BLOCK;
            let end = range.end.min(if end - end % run > start {
                end - end % run
            } else {
                end
            });
            let part = start..end;
            start = end;
            let mut ptrs = [std::ptr::null_mut(); N];
            // SAFETY: the caller's contract; a block holds the elements of a part.
            unsafe {
                for k in 1..N {
                    ptrs[k] = operands[k].load(&part, &mut staging[k], &mut scratch);
                }
                let result = &operands[0];
                let direct = match self.is_staged {
                    true => None,
                    false => result.in_loop_form(&part),
                };
                let block = staging[0].block();
                ptrs[0] = direct.unwrap_or(block.ptr());
                (self.kernel.body)(ptrs, part.len(), &self.params);
                if direct.is_none() {
                    result.store(&part, block, &mut scratch);
                }
            }
        }
    }
}
