//! The one driver of elementwise loops.
//!
//! A loop knows one case: all operands dense, each of the dtype it computes in. Everything else,
//! that is strides, broadcasting, other dtypes, half precision and work in place, is done here, for
//! all of them: operands that are not as the loop wants them pass through blocks on the stack. An
//! operation is therefore one expression per kind of number, and its code one vectorised loop per
//! dtype.

use crate::lane::computed_in;
use crate::operand::{BLOCK, Block, Operand, Staging};
use crate::par::par_for;
use crate::tile;
use crate::value::Value;
use osteon_spec::{DType, Plan, Scalar};
use std::ops::Range;

/// `loop(ptrs, len, params)` works on `len` elements, dense from each pointer; operand 0 is
/// written.
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

    pub(crate) const NONE: Params = Params([Value::ZERO; Params::MAX]);

    /// One number, a `float64`.
    pub(crate) fn one(number: f64) -> Params {
        let mut params = Params::NONE;
        params.0[0] = Value::of(number);
        params
    }

    /// Number `i` as an element of the loop's dtype.
    #[inline(always)]
    pub(crate) fn get<T: crate::Element>(&self, i: usize) -> T {
        self.0[i].get()
    }
}

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
            params: Params::NONE,
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
        match tile::across(plan, dtypes.map(DType::size)) {
            // SAFETY: the caller's contract; the parts are the plan's elements, each once.
            Some(dim) => tile::split(plan, dim, |part, unit| unsafe {
                self.walk(part, ptrs, dtypes, unit);
            }),
            // SAFETY: the caller's contract.
            None => unsafe { self.walk(plan, ptrs, dtypes, 1) },
        }
    }

    /// Runs the loop over a plan as it is; threads share it in units of so many elements.
    ///
    /// # Safety
    /// As [`Kernel::run`].
    unsafe fn walk(&self, plan: &Plan<N>, ptrs: [*mut u8; N], dtypes: [DType; N], unit: usize) {
        let walk = Walk::new(self, plan, ptrs, dtypes);
        par_for(plan.numel() / unit, self.grain / unit, |range| {
            let walk = &walk;
            // SAFETY: the caller's contract; threads write disjoint elements.
            unsafe { walk.run(range.start * unit..range.end * unit) }
        });
    }
}

/// A kernel at work on a plan.
struct Walk<'a, const N: usize> {
    kernel: &'a Kernel<N>,
    plan: &'a Plan<N>,
    operands: [Operand; N],
    /// The destination is an input as well.
    in_place: bool,
    /// Every run is dense, of the loop's dtypes, and long: no blocks at all.
    direct: bool,
}

// SAFETY: threads read all operands and write disjoint elements of the first.
unsafe impl<const N: usize> Sync for Walk<'_, N> {}

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
            direct &= own == wanted && inner.strides[k] == own.size() as isize;
            Operand::new(ptrs[k], plan.select([k]), own, from, kernel.via(k, own), to)
        });
        // Results of work in place go through a block, so that the compiler's test for overlap lets
        // the vector loop run.
        let first = |k: usize| ptrs[k].wrapping_offset(plan.offsets()[k]);
        let in_place = (1..N).any(|k| first(k) == first(0));
        direct &= !in_place;
        Walk {
            kernel,
            plan,
            operands,
            in_place,
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
        let mut staging = blocks.each_mut().map(Staging::new);
        let mut scratch = Block::NEW;
        let run = self.plan.inner().size;
        let mut start = range.start;
        while start < range.end {
            let mut end = range.end.min(start + BLOCK);
            if run >= SHORT {
                // A part within one run is dense, or one element all along, more often.
                end = end.min(start - start % run + run);
            }
            let part = start..end;
            start = end;
            let mut ptrs = [std::ptr::null_mut(); N];
            // SAFETY: the caller's contract; a block holds the elements of a part.
            unsafe {
                for k in 1..N {
                    ptrs[k] = self.operands[k].load(&part, &mut staging[k], &mut scratch);
                }
                let result = &self.operands[0];
                let direct = if self.in_place {
                    None
                } else {
                    result.in_loop_form(&part)
                };
                let block = staging[0].block();
                ptrs[0] = direct.unwrap_or(block.ptr());
                body(ptrs, part.len(), params);
                if direct.is_none() {
                    result.store(&part, block, &mut scratch);
                }
            }
        }
    }
}
