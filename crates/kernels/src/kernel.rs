//! The one driver of elementwise loops.
//!
//! A loop knows one case: all operands dense, each of the dtype it computes in. Everything else, that is strides,
//! broadcasting, other dtypes, half precision and work in place, is done here, for all of them: operands that are
//! not as the loop wants them pass through blocks on the stack. An operation is therefore one expression
//! per kind of number, and its code one vectorised loop per dtype.

use crate::cast::cast_loop;
use crate::lane::computed_in;
use crate::par::par_for;
use crate::runs::move_run;
use crate::value::Value;
use osteon_spec::{DType, Plan, Scalar};
use std::mem::MaybeUninit;
use std::ops::Range;

/// `loop(ptrs, len, params)` works on `len` elements, dense from each pointer; operand 0 is written.
///
/// # Safety (of calling one)
/// `len` elements lie at each pointer, and the written ones overlap no other.
pub(crate) type Loop<const N: usize> = unsafe fn([*mut u8; N], usize, &Params);

/// Numbers that an operation takes beside its operands (`alpha`, bounds, slopes), each as an
/// element of the dtype that the loop computes in.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Params([Value; Params::MAX]);

impl Params {
    /// The most numbers that an operation takes.
    pub const MAX: usize = 4;

    /// Number `i` as an element of the loop's dtype.
    #[inline(always)]
    pub(crate) fn get<T: crate::Element>(&self, i: usize) -> T {
        self.0[i].get()
    }
}

/// Elements in a block: as many as one dim of a run's worth of work, and few enough that the blocks of all
/// operands stay in the first-level cache.
const BLOCK: usize = 1024;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 15;

/// Runs shorter than this go through blocks even when they are dense: a call costs as much as this.
const SHORT: usize = 256;

/// An elementwise loop, looked up for an operation and a dtype: operand 0 is the result.
#[derive(Clone, Copy, Debug)]
pub struct Kernel<const N: usize> {
    dtypes: [DType; N],
    /// The dtype of the operation, where the loop computes in a wider one.
    rounded: Option<DType>,
    body: Loop<N>,
    params: Params,
    grain: usize,
}

impl<const N: usize> Kernel<N> {
    /// A loop and the dtypes it takes.
    pub(crate) fn new(dtypes: [DType; N], body: Loop<N>) -> Kernel<N> {
        Kernel {
            dtypes,
            rounded: None,
            body,
            params: Params([Value::ZERO; Params::MAX]),
            grain: GRAIN,
        }
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
    pub fn with(mut self, numbers: &[Scalar]) -> Kernel<N> {
        for (param, &number) in self.params.0[..numbers.len()].iter_mut().zip(numbers) {
            *param = Value::new(number, self.dtypes[N - 1]);
        }
        self
    }

    /// The dtypes that the loop reads and writes without conversion. Operands of any other dtype are
    /// accepted, and converted as [`cast`](crate::cast()) does.
    pub fn dtypes(&self) -> [DType; N] {
        self.dtypes
    }

    /// The dtype by way of which operand `k` of dtype `own` is converted, if there is one: an
    /// operation in half precision takes inputs of that precision and gives a result of it, whatever
    /// is passed in. (An input of the loop's own dtype is a number that PyTorch would not round either.)
    pub(crate) fn via(&self, k: usize, own: DType) -> Option<DType> {
        let wanted = self.dtypes[k];
        self.rounded
            .filter(|&r| own != r && wanted == computed_in(r) && (k == 0 || own != wanted))
    }

    /// Runs the loop over a plan: operand `k` lies at `ptrs[k]` and is of `dtypes[k]`; operand 0 is
    /// written, the others are only read.
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation).
    pub unsafe fn run(&self, plan: &Plan<N>, ptrs: [*mut u8; N], dtypes: [DType; N]) {
        let walk = Walk::new(self, plan, ptrs, dtypes);
        par_for(plan.numel(), self.grain, |range| {
            let walk = &walk;
            // SAFETY: the caller's contract; threads write disjoint elements.
            unsafe { walk.run(range) }
        });
    }
}

/// A kernel at work on a plan.
struct Walk<'a, const N: usize> {
    kernel: &'a Kernel<N>,
    plan: &'a Plan<N>,
    operands: [Operand; N],
    /// Every run is dense, of the loop's dtypes, and long: no blocks at all.
    direct: bool,
}

/// An operand, walked on its own: in the same order of elements, but in runs as long as its own
/// strides allow.
struct Operand {
    ptr: *mut u8,
    plan: Plan<1>,
    width: usize,
    /// The conversion between the operand and the loop, in the direction that it needs.
    convert: Option<Loop<2>>,
    /// A conversion before that one, to the dtype of the operation.
    round: Option<Loop<2>>,
    /// The destination is an input: results pass through a block, so that the compiler's test for overlap lets the
    /// vector loop run.
    in_place: bool,
}

// SAFETY: threads read all operands and write disjoint elements of the first.
unsafe impl<const N: usize> Sync for Walk<'_, N> {}

/// A block on the stack: room for `BLOCK` elements of any dtype.
#[repr(C, align(64))]
struct Block(MaybeUninit<[u8; BLOCK * 16]>);

impl Block {
    const NEW: Block = Block(MaybeUninit::uninit());

    fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

impl<'a, const N: usize> Walk<'a, N> {
    fn new(
        kernel: &'a Kernel<N>,
        plan: &'a Plan<N>,
        ptrs: [*mut u8; N],
        dtypes: [DType; N],
    ) -> Walk<'a, N> {
        let inner = plan.inner();
        let mut direct = plan.dims().len() <= 1 || inner.size >= SHORT;
        let operands: [Operand; N] = std::array::from_fn(|k| {
            let (own, wanted) = (dtypes[k], kernel.dtypes[k]);
            let (from, to) = if k == 0 { (wanted, own) } else { (own, wanted) };
            let via = kernel.via(k, own);
            let convert = match via.unwrap_or(from) {
                from if from == to => None,
                from => Some(cast_loop(from, to)),
            };
            let in_place = k == 0
                && (1..N).any(|i| {
                    let first = |k: usize| ptrs[k].wrapping_offset(plan.offsets()[k]);
                    first(i) == first(0)
                });
            let width = own.size();
            direct &= convert.is_none() && !in_place && inner.strides[k] == width as isize;
            Operand {
                ptr: ptrs[k],
                plan: plan.select([k]),
                width,
                convert,
                round: via.map(|r| cast_loop(from, r)),
                in_place,
            }
        });
        Walk {
            kernel,
            plan,
            operands,
            direct,
        }
    }

    /// Does the elements of this range of the walk.
    ///
    /// # Safety
    /// The contract of [`Kernel::run`]; nobody else does the same elements.
    unsafe fn run(&self, range: Range<usize>) {
        let body = self.kernel.body;
        let params = &self.kernel.params;
        if self.direct {
            self.plan.for_each_run_in(range, |offsets, len, _| {
                let ptrs = std::array::from_fn(|k| {
                    // SAFETY: a position of the plan.
                    unsafe { self.operands[k].ptr.offset(offsets[k]) }
                });
                // SAFETY: each run is dense, and the destination is no input.
                unsafe { body(ptrs, len, params) };
            });
            return;
        }
        let mut blocks = [const { Block::NEW }; N];
        let mut scratch = Block::NEW;
        let mut constants = [Constant::default(); N];
        for start in range.clone().step_by(BLOCK) {
            let part = start..range.end.min(start + BLOCK);
            let len = part.len();
            let mut ptrs = [std::ptr::null_mut(); N];
            let result = &self.operands[0];
            let mut buffered = true;
            // SAFETY: the caller's contract; blocks hold `BLOCK` elements.
            unsafe {
                for k in 1..N {
                    let operand = &self.operands[k];
                    ptrs[k] = operand.load(&part, &mut blocks[k], &mut scratch, &mut constants[k]);
                }
                ptrs[0] = match result.dense(&part) {
                    Some(ptr) if !result.in_place && result.convert.is_none() => {
                        buffered = false;
                        ptr
                    }
                    _ => blocks[0].ptr(),
                };
                body(ptrs, len, params);
                if buffered {
                    result.store(&part, &mut blocks[0], &mut scratch);
                }
            }
        }
    }
}

/// The single element that fills an operand's block, so that the next part need not fill it again.
#[derive(Clone, Copy)]
struct Constant {
    at: *const u8,
    len: usize,
}

impl Default for Constant {
    fn default() -> Constant {
        Constant {
            at: std::ptr::null(),
            len: 0,
        }
    }
}

impl Operand {
    /// The elements of this part of the walk, where they are one dense run.
    fn dense(&self, part: &Range<usize>) -> Option<*mut u8> {
        let inner = self.plan.inner();
        let at = part.start % inner.size;
        if part.len() > inner.size - at
            || (inner.strides[0] != self.width as isize && part.len() > 1)
        {
            return None;
        }
        let mut found = None;
        self.plan.for_each_run_in(part.clone(), |[offset], _, _| {
            // SAFETY: a position of the plan.
            found = Some(unsafe { self.ptr.offset(offset) });
        });
        found
    }

    /// The elements of this part, dense and as the loop wants them: in place, or in the block.
    ///
    /// # Safety
    /// The part's positions may be read; its length is at most `BLOCK`.
    unsafe fn load(
        &self,
        part: &Range<usize>,
        block: &mut Block,
        scratch: &mut Block,
        constant: &mut Constant,
    ) -> *mut u8 {
        let len = part.len();
        // SAFETY: for the whole body: the caller's contract, and `len` elements of any dtype fit a block.
        unsafe {
            if let Some(ptr) = self.dense(part) {
                *constant = Constant::default();
                let Some(convert) = self.convert else {
                    return ptr;
                };
                self.convert_in(convert, ptr, len, block, scratch);
                return block.ptr();
            }
            let inner = self.plan.inner();
            if inner.strides[0] == 0 && part.start / inner.size == (part.end - 1) / inner.size {
                // One element along the whole part: a scalar, or a column that is broadcast.
                let mut at = self.ptr;
                self.plan
                    .for_each_run_in(part.start..part.start + 1, |[offset], _, _| {
                        at = self.ptr.offset(offset);
                    });
                if constant.at != at.cast_const() || constant.len < len {
                    *constant = Constant { at, len };
                    let filled = match self.convert {
                        None => block.ptr(),
                        Some(_) => scratch.ptr(),
                    };
                    move_run(filled, self.width as isize, at, 0, len, self.width);
                    if let Some(convert) = self.convert {
                        let mut second = Block::NEW;
                        self.convert_in(convert, filled, len, block, &mut second);
                    }
                }
                return block.ptr();
            }
            *constant = Constant::default();
            match self.convert {
                None => self.gather(part, block.ptr()),
                Some(convert) => {
                    self.gather(part, scratch.ptr());
                    let mut second = Block::NEW;
                    self.convert_in(convert, scratch.ptr(), len, block, &mut second);
                }
            }
            block.ptr()
        }
    }

    /// Converts `len` dense elements into the block, by way of the operation's dtype if it asks for it.
    ///
    /// # Safety
    /// `len` elements lie at `from`, which is in neither block.
    unsafe fn convert_in(
        &self,
        convert: Loop<2>,
        from: *mut u8,
        len: usize,
        block: &mut Block,
        scratch: &mut Block,
    ) {
        // SAFETY: the caller's contract; `len` elements fit a block.
        unsafe {
            let mut from = from;
            if let Some(round) = self.round {
                round([scratch.ptr(), from], len, &NO_PARAMS);
                from = scratch.ptr();
            }
            convert([block.ptr(), from], len, &NO_PARAMS);
        }
    }

    /// Collects the elements of this part at `to`, dense.
    ///
    /// # Safety
    /// The part's positions may be read, and `to` has room.
    unsafe fn gather(&self, part: &Range<usize>, to: *mut u8) {
        let mut to = to;
        self.plan
            .for_each_run_in(part.clone(), |[offset], len, [stride]| {
                // SAFETY: the run's positions; `to` has room for the rest of the part.
                unsafe {
                    move_run(
                        to,
                        self.width as isize,
                        self.ptr.offset(offset),
                        stride,
                        len,
                        self.width,
                    );
                    to = to.add(len * self.width);
                }
            });
    }

    /// Writes a block of results to this part.
    ///
    /// # Safety
    /// The block holds the part's results, and its positions may be written.
    unsafe fn store(&self, part: &Range<usize>, block: &mut Block, scratch: &mut Block) {
        let mut from = block.ptr();
        let mut to = scratch.ptr();
        for step in [self.round, self.convert].into_iter().flatten() {
            // SAFETY: one block holds the results; as many elements fit the other.
            unsafe { step([to, from], part.len(), &NO_PARAMS) };
            (from, to) = (to, from);
        }
        self.plan
            .for_each_run_in(part.clone(), |[offset], len, [stride]| {
                // SAFETY: the run's positions; the block holds the rest of the part.
                unsafe {
                    move_run(
                        self.ptr.offset(offset),
                        stride,
                        from,
                        self.width as isize,
                        len,
                        self.width,
                    );
                    from = from.add(len * self.width);
                }
            });
    }
}

const NO_PARAMS: Params = Params([Value::ZERO; Params::MAX]);
