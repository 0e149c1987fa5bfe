//! The CPU: storages are held, and kernels walk a plan over their bytes.

#![allow(
    unsafe_code,
    reason = "kernels take pointers; here views become pointers that satisfy them"
)]

mod arrange;
mod attention;
mod contract;
mod index;
mod pooling;
mod reduce;
mod rows;
mod scratch;

use crate::View;
use crate::attention::Attention;
use crate::backend::{Arg, Backend, Body, Peek, To};
use crate::index::{Indexed, Move};
use crate::reduce::Reduction;
use osteon_kernels::{
    self as kernels, Axis, Divisor, Kernel, NormalizeOp, Pick, Pooling, Random, RowOp, Sequence,
    SoftmaxOp, Triangle, Value,
};
use osteon_memory::{Held, Storage, hold};
use osteon_spec::{DType, Error, Kind, Layout, Plan, Result, Scalar};
use std::array;

pub(crate) struct Cpu;

/// Holds the storages of one operation: the destination for writing, unless it is new, the sources for reading.
#[inline]
fn held<'a, const N: usize>(dst: impl Into<To<'a>>, args: [Arg<'a>; N]) -> Result<Held<'a>> {
    let dst = dst.into();
    let to = dst.view().storage();
    let mut reads: [&Storage; N] = [to; N];
    let mut n = 0;
    for arg in args {
        if let Arg::View(view) = arg {
            reads[n] = view.storage();
            n += 1;
        }
    }
    match dst {
        To::New(_) => hold(&reads[..n], &[]),
        To::Given(_) => hold(&reads[..n], &[to]),
    }
}

/// Runs a kernel: operand 0 is written, the others are views or numbers, broadcast to its shape.
///
/// Callers have checked that the sources broadcast to `dst`, and that `dst` overlaps neither itself nor a
/// source but element for element.
fn run<const N: usize>(kernel: &Kernel<N>, dst: To<'_>, args: [Arg<'_>; N]) -> Result<()> {
    let (to, dst) = (dst, dst.view());
    // args[0] stands for the destination, so that the arrays have the kernel's length.
    debug_assert!(matches!(args[0], Arg::View(v) if v.viewer().is_same(dst.viewer())));
    let _held = held(to, args)?;
    if dst.numel() == 0 {
        return Ok(());
    }
    let scalar = Layout::scalar();
    let wanted = kernel.dtypes();
    let mut numbers = [Value::ZERO; N];
    let dtypes = array::from_fn(|k| match args[k] {
        Arg::View(v) => v.dtype(),
        Arg::Number(_) => wanted[k],
    });
    for (k, number) in numbers.iter_mut().enumerate() {
        if let Arg::Number(scalar) = args[k] {
            *number = Value::new(scalar, wanted[k]);
        }
    }
    let layouts = array::from_fn(|k| match args[k] {
        Arg::View(v) => (v.layout(), v.element_size()),
        Arg::Number(_) => (&scalar, wanted[k].size()),
    });
    let ptrs = array::from_fn(|k| match args[k] {
        Arg::View(v) => v.storage().data_mut(),
        Arg::Number(_) => numbers[k].as_ptr().cast_mut(),
    });
    let plan = Plan::new(dst.shape(), layouts);
    // SAFETY: the walk contract: every view is in bounds of its storage (V1 of the registry), whose bytes are
    // initialised (S1) and held for the length of this call, the destination alone; numbers are read only and
    // outlive the call. Overlap is the caller's promise, above.
    unsafe { kernel.run(&plan, ptrs, dtypes) };
    Ok(())
}

#[cold]
fn undefined(name: impl std::fmt::Debug, dtype: DType) -> Error {
    Error::new(
        Kind::DType,
        format!("{name:?} is not defined for {dtype}; cast with to() first"),
    )
}

/// Checks that bytes from outside are those of all elements: what makes them, [`crate::Data`], may be a user's
/// own code.
fn check_length(view: &View, bytes: usize) -> Result<()> {
    if view.nbytes() == bytes {
        return Ok(());
    }
    Err(Error::new(
        Kind::Shape,
        format!(
            "shape {:?} of {} is {} bytes, but the elements given are {bytes}",
            view.shape(),
            view.dtype(),
            view.nbytes()
        ),
    ))
}

/// One element at a position of a storage, in elements.
///
/// # Safety
/// The position is in bounds, and the storage is held or fresh.
unsafe fn element(view: &View, position: usize) -> Scalar {
    // SAFETY: the caller's promise, and S1 of the storage.
    unsafe {
        let at = view
            .storage()
            .data_ptr()
            .add(position * view.element_size());
        Value::load(at, view.dtype()).read(view.dtype())
    }
}

impl Backend for Cpu {
    fn copy(&self, dst: &View, src: &View) -> Result<()> {
        if dst.dtype() != src.dtype() {
            return run(
                &kernels::cast(src.dtype(), dst.dtype()),
                dst.into(),
                [dst.into(), src.into()],
            );
        }
        let _held = held(dst, [Arg::View(src)])?;
        if dst.numel() == 0 {
            return Ok(());
        }
        let size = dst.element_size();
        let plan = Plan::new(dst.shape(), [(dst.layout(), size), (src.layout(), size)]);
        // SAFETY: as in `run`.
        unsafe {
            kernels::copy(
                &plan,
                dst.storage().data_mut(),
                src.storage().data_ptr(),
                size,
            )
        };
        Ok(())
    }

    fn fill(&self, dst: &View, value: Scalar) -> Result<()> {
        let _held = held(dst, [])?;
        if dst.numel() == 0 {
            return Ok(());
        }
        let size = dst.element_size();
        let value = Value::new(value, dst.dtype());
        let once;
        let layout = if dst.stride().contains(&0) {
            // An expanded view may have more elements than can ever be visited.
            once = dst.layout().each_once();
            &once
        } else {
            dst.layout()
        };
        let plan = Plan::new(layout.sizes(), [(layout, size)]);
        // SAFETY: as in `run`; `value` is an element of the destination's dtype.
        unsafe { kernels::fill(&plan, dst.storage().data_mut(), value.as_ptr(), size) };
        Ok(())
    }

    fn upload(&self, dst: &View, bytes: &[u8]) -> Result<()> {
        debug_assert!(dst.layout().is_contiguous());
        check_length(dst, bytes.len())?;
        let _held = held(dst, [])?;
        if !bytes.is_empty() {
            let at = dst.storage_offset() * dst.element_size();
            // SAFETY: a contiguous view of exactly this many bytes, in bounds, held alone; `bytes` is borrowed from
            // elsewhere.
            unsafe {
                let to = dst.storage().data_mut().add(at);
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        Ok(())
    }

    fn generate(&self, dst: &View, item: &dyn Fn(usize) -> Scalar) -> Result<()> {
        let _held = held(dst, [])?;
        let (size, step) = (
            dst.element_size(),
            dst.stride().first().copied().unwrap_or(0),
        );
        for i in 0..dst.numel() {
            let value = Value::new(item(i), dst.dtype());
            let at = (dst.storage_offset() + i * step) * size;
            // SAFETY: in bounds, held alone; a `Value` has room for every element.
            unsafe {
                let to = dst.storage().data_mut().add(at);
                to.copy_from_nonoverlapping(value.as_ptr(), size);
            }
        }
        Ok(())
    }

    fn sequence(&self, dst: &View, how: Sequence) -> Result<()> {
        let _held = held::<0>(dst, [])?;
        let plan = Plan::row_major(dst.shape(), [(dst.layout(), dst.element_size())]);
        // SAFETY: as in `run`.
        unsafe { kernels::sequence(&plan, dst.storage().data_mut(), dst.dtype(), how) };
        Ok(())
    }

    fn download(&self, src: &View, bytes: &mut [u8]) -> Result<()> {
        check_length(src, bytes.len())?;
        let _held = hold(&[src.storage()], &[])?;
        if bytes.is_empty() {
            return Ok(());
        }
        let size = src.element_size();
        let dense = Layout::contiguous(src.shape())?;
        let plan = Plan::new(src.shape(), [(&dense, size), (src.layout(), size)]);
        // SAFETY: as in `run`; `bytes` is as long as the dense layout.
        unsafe { kernels::copy(&plan, bytes.as_mut_ptr(), src.storage().data_ptr(), size) };
        Ok(())
    }

    fn peek(&self, src: &View, look: &mut dyn FnMut(&Peek<'_>)) -> Result<()> {
        let _held = hold(&[src.storage()], &[])?;
        let (shape, strides) = (src.shape(), src.stride());
        look(&|index| {
            assert!(index.len() == shape.len() && index.iter().zip(shape).all(|(i, n)| i < n));
            let steps: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
            // SAFETY: an index within the shape, and the storage is held.
            unsafe { element(src, src.storage_offset() + steps) }
        });
        Ok(())
    }

    fn elementwise(&self, body: &Body, dst: To<'_>, args: &[Arg<'_>]) -> Result<()> {
        let to = dst.view().into();
        match (body, args) {
            (Body::Unary(kernel), &[a]) => run(kernel, dst, [to, a]),
            (Body::Binary(kernel), &[a, b]) => run(kernel, dst, [to, a, b]),
            (Body::Ternary(kernel), &[a, b, c]) => run(kernel, dst, [to, a, b, c]),
            _ => Err(Error::new(Kind::Value, "wrong number of operands")),
        }
    }

    fn any_zero(&self, src: Arg<'_>) -> Result<bool> {
        Ok(match src {
            Arg::Number(n) => Value::new(n, DType::I64).read(DType::I64) == Scalar::Int(0),
            Arg::View(v) => {
                let _held = hold(&[v.storage()], &[])?;
                let plan = Plan::new(v.shape(), [(v.layout(), v.element_size())]);
                let at = v.storage().data_ptr();
                // SAFETY: as in `run`.
                v.numel() > 0 && unsafe { kernels::any_zero(&plan, at, v.dtype()) }
            }
        })
    }

    fn random(&self, dst: &View, how: &Random) -> Result<()> {
        let _held = held(dst, [])?;
        if dst.numel() > 0 {
            let plan = Plan::new(dst.shape(), [(dst.layout(), dst.element_size())]);
            // SAFETY: as in `run`.
            unsafe { kernels::random(&plan, dst.storage().data_mut(), dst.dtype(), how) };
        }
        Ok(())
    }

    fn shuffled(&self, dst: &View, how: &Random) -> Result<()> {
        let _held = held::<0>(dst, [])?;
        if dst.numel() == 0 {
            return Ok(());
        }
        let first = dst.storage().data_mut().cast::<i64>();
        // SAFETY: in bounds, held alone; a dense vector of int64.
        let numbers =
            unsafe { std::slice::from_raw_parts_mut(first.add(dst.storage_offset()), dst.numel()) };
        kernels::shuffled(numbers, how);
        Ok(())
    }

    fn indexed(&self, what: Move<'_>, dst: &View, src: Arg<'_>, how: &Indexed<'_>) -> Result<()> {
        index::indexed(what, dst, src, how)
    }

    fn select(&self, dst: &View, condition: &View, a: Arg<'_>, b: Arg<'_>) -> Result<()> {
        run(
            &kernels::select(dst.dtype()),
            dst.into(),
            [dst.into(), condition.into(), a, b],
        )
    }

    fn max_pool(
        &self,
        dst: &View,
        positions: Option<&View>,
        src: &View,
        how: &Pooling<'_>,
    ) -> Result<()> {
        pooling::max_pool(dst, positions, src, how)
    }

    fn avg_pool(&self, dst: &View, src: &View, how: &Pooling<'_>, divisor: Divisor) -> Result<()> {
        pooling::avg_pool(dst, src, how, divisor)
    }

    fn avg_spread(
        &self,
        dst: &View,
        src: &View,
        how: &Pooling<'_>,
        divisor: Divisor,
    ) -> Result<()> {
        pooling::avg_spread(dst, src, how, divisor)
    }

    fn weighted(
        &self,
        dst: &View,
        src: &View,
        weight: &View,
        how: &Pooling<'_>,
        backwards: bool,
    ) -> Result<()> {
        pooling::weighted(dst, src, weight, how, backwards)
    }

    fn contract(
        &self,
        dst: &View,
        lhs: &View,
        rhs: &View,
        axes: &[Axis],
        summed: &[Axis],
    ) -> Result<()> {
        contract::contract(dst, lhs, rhs, axes, summed)
    }

    fn attention(&self, dst: &View, of: [&View; 3], how: &Attention<'_>) -> Result<()> {
        attention::attention(dst, of, how)
    }

    fn flip(&self, dst: &View, src: &View, dims: &[usize]) -> Result<()> {
        arrange::flip(dst, src, dims)
    }

    fn triangle(&self, keep: Triangle, dst: &View, src: &View) -> Result<()> {
        arrange::triangle(keep, dst, src)
    }

    fn sort(&self, pick: &Pick, out: [&View; 2], src: &View, dim: usize) -> Result<()> {
        arrange::sort(pick, out, src, dim)
    }

    fn keys(&self, src: &View, out: &mut [u64]) -> Result<()> {
        arrange::keys(src, out)
    }

    fn classes(&self, src: &View, consecutive: bool) -> Result<[View; 3]> {
        arrange::classes(src, consecutive)
    }

    fn count_true(&self, src: &View) -> Result<usize> {
        arrange::count_true(src)
    }

    fn nonzero(&self, dst: &View, src: &View) -> Result<bool> {
        arrange::nonzero(dst, src)
    }

    fn masked_select(&self, dst: &View, src: &View, mask: &View) -> Result<bool> {
        arrange::masked_select(dst, src, mask)
    }

    fn masked_scatter(&self, dst: &View, mask: &View, src: &View) -> Result<()> {
        arrange::masked_scatter(dst, mask, src)
    }

    fn reduce(&self, how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> Result<()> {
        reduce::reduce(how, dst, src)
    }

    fn scan(&self, how: &Reduction<'_>, dst: [Option<&View>; 2], src: &View) -> Result<()> {
        reduce::scan(how, dst, src)
    }

    fn recurrence(&self, dst: &View, from: [&View; 2], dim: usize, backwards: bool) -> Result<()> {
        reduce::recurrence(dst, from, dim, backwards)
    }

    fn rows(&self, op: RowOp, how: (DType, f64), args: &[Arg<'_>], dims: &[usize]) -> Result<bool> {
        rows::rows(op, how, args, dims)
    }

    fn softmax(
        &self,
        op: SoftmaxOp,
        dtype: DType,
        dst: &View,
        [x, max, sum]: [Arg<'_>; 3],
    ) -> Result<()> {
        let kernel = kernels::softmax(op, dtype).ok_or_else(|| undefined(op, dtype))?;
        run(&kernel, dst.into(), [dst.into(), x, max, sum])
    }

    fn normalize(
        &self,
        dtype: DType,
        dst: &View,
        [x, mean, scale, weight, bias]: [Arg<'_>; 5],
    ) -> Result<()> {
        let op = NormalizeOp::Normalize;
        let kernel = kernels::normalize(op, dtype).ok_or_else(|| undefined(op, dtype))?;
        run(
            &kernel,
            dst.into(),
            [dst.into(), x, mean, scale, weight, bias],
        )
    }
}
