//! Reductions by index tensors, and elements by their number in row-major order.

use crate::View;
use crate::advanced::Lookup;
use crate::backend::Arg;
use crate::elementwise::{Call, Compute, Op};
use crate::index::Move;
use crate::target::{Reads, with_out};
use crate::write;
use osteon_kernels::{BinaryOp, CompareOp};
use osteon_spec::{Category, DType, Error, Kind, Layout, MemoryFormat, Result, Scalar};

/// How elements that meet at one place become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Their sum.
    Sum,
    /// Their product.
    Prod,
    /// Their mean; of integers, rounded down.
    Mean,
    /// The largest.
    Amax,
    /// The smallest.
    Amin,
}

impl Reduce {
    fn op(self) -> BinaryOp {
        match self {
            Reduce::Sum | Reduce::Mean => BinaryOp::Add,
            Reduce::Prod => BinaryOp::Mul,
            Reduce::Amax => BinaryOp::Maximum,
            Reduce::Amin => BinaryOp::Minimum,
        }
    }

    /// The number that changes nothing.
    fn identity(self, dtype: DType) -> Scalar {
        let (least, largest) = bounds(dtype);
        match self {
            Reduce::Sum | Reduce::Mean => Scalar::Int(0),
            Reduce::Prod => Scalar::Int(1),
            Reduce::Amax => least,
            Reduce::Amin => largest,
        }
    }
}

/// The least and the largest number of a dtype.
fn bounds(dtype: DType) -> (Scalar, Scalar) {
    let bits = 8 * dtype.size() as u32;
    match dtype.category() {
        Category::Bool => (Scalar::Bool(false), Scalar::Bool(true)),
        Category::Integer if dtype.is_signed() => (
            Scalar::Int(i64::MIN >> (64 - bits)),
            Scalar::Int(i64::MAX >> (64 - bits)),
        ),
        Category::Integer => (Scalar::UInt(0), Scalar::UInt(u64::MAX >> (64 - bits))),
        Category::Float | Category::Complex => (
            Scalar::Float(f64::NEG_INFINITY),
            Scalar::Float(f64::INFINITY),
        ),
    }
}

with_out! { to;
    /// The elements of these numbers in row-major order, in a new row-major tensor of the index's shape.
    ///
    /// # Errors
    /// An index out of range, or not of int64; out of memory.
    take take_out(&self, index: &View) -> View {
        let (of, indices) = self.by_number(index, to.op)?;
        let lookup = Lookup::new(&of, &indices, to.op)?;
        let layout = Layout::contiguous(index.shape()).map_err(|e| e.op(to.op))?;
        let kind = (self.dtype(), self.device());
        to.write(layout, kind, Reads::Apart(&[self, index]), |out| {
            lookup.run(Move::Get, &of, out.into(), to.op)
        })
    }
}

impl View {
    /// Reduces each element of `source`, or one number, into the place along a dim that `index` names. Without
    /// `include_self`, what was in those places does not count.
    ///
    /// # Errors
    /// As [`View::scatter_`]; complex numbers have no largest.
    #[track_caller]
    pub fn scatter_reduce_(
        &self,
        dim: isize,
        index: &View,
        source: Arg<'_>,
        reduce: Reduce,
        include_self: bool,
    ) -> Result<()> {
        let op = "scatter_reduce_";
        if self.dtype().is_complex() && matches!(reduce, Reduce::Amax | Reduce::Amin) {
            return Err(Error::new(Kind::DType, "complex numbers have no order").op(op));
        }
        let counts = match reduce {
            Reduce::Mean => Some(self.counts(dim, index, include_self)?),
            _ => None,
        };
        let first = (!include_self).then(|| reduce.identity(self.dtype()));
        self.scattered(
            dim,
            index,
            source,
            first,
            Move::Reduce(reduce.op(), &[]),
            op,
        )?;
        let Some(counts) = counts else { return Ok(()) };
        let op = if self.dtype().is_float() || self.dtype().is_complex() {
            BinaryOp::Div
        } else {
            BinaryOp::FloorDivide
        };
        Call {
            name: "scatter_reduce_",
            op: Op::Binary(op),
            compute: Compute::Promoted,
            args: &[self.into(), (&counts).into()],
            numbers: &[],
        }
        .in_place(self)
    }

    /// How many elements a mean has at each place; 1 where there are none.
    #[track_caller]
    fn counts(&self, dim: isize, index: &View, include_self: bool) -> Result<View> {
        let op = "scatter_reduce_";
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(op))?;
        let counts = View::alloc(layout, self.dtype(), &self.device(), op)?;
        counts.fill_(Scalar::Bool(include_self))?;
        let add = Move::Reduce(BinaryOp::Add, &[]);
        counts.scattered(dim, index, Arg::Number(Scalar::Int(1)), None, add, op)?;
        let none = Call {
            name: op,
            op: Op::Compare(CompareOp::Eq),
            compute: Compute::Promoted,
            args: &[(&counts).into(), Arg::Number(Scalar::Int(0))],
            numbers: &[],
        };
        counts.masked_fill_(&none.fresh()?, Scalar::Int(1).into())?;
        Ok(counts)
    }

    /// Writes the elements of `source` to those of these numbers in row-major order; of numbers that repeat, the last
    /// stays, or, with `accumulate`, all are added.
    ///
    /// # Errors
    /// As [`View::take`]; a source of another dtype or number of elements; overlap.
    #[track_caller]
    pub fn put_(&self, index: &View, source: &View, accumulate: bool) -> Result<()> {
        let op = "put_";
        if source.numel() != index.numel() {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "the source has {} elements, the index {}",
                    source.numel(),
                    index.numel()
                ),
            )
            .op(op));
        }
        write::check_itself(self, op)?;
        write::check_apart(self, source, op)?;
        write::check_apart(self, index, op)?;
        let shape: Vec<isize> = index.shape().iter().map(|&n| n as isize).collect();
        let source = source.reshape(&shape)?;
        let (of, indices) = self.by_number(index, op)?;
        of.put_at(op, &indices, &source, accumulate)
    }

    /// A view of the same elements, and an index tensor for each of its dims, for numbers in row-major order.
    #[track_caller]
    fn by_number(&self, index: &View, op: &'static str) -> Result<(View, Vec<Option<View>>)> {
        if index.dtype() != DType::I64 {
            let message = format!("the index must be int64, got {}", index.dtype());
            return Err(Error::new(Kind::DType, message).op(op));
        }
        if let Ok(vector) = self.layout().view(&[-1]) {
            return Ok((self.with_layout(vector, op)?, vec![Some(index.clone())]));
        }
        // No one stride: the numbers become coordinates.
        let mut rest = index.to_vec::<i64>()?;
        let numel = self.numel() as i64;
        for n in &mut rest {
            if *n < -numel || *n >= numel {
                let message = format!("index {n} is out of range for a tensor of {numel} elements");
                return Err(Error::new(Kind::Index, message).op(op));
            }
            *n = n.rem_euclid(numel);
        }
        let mut indices = vec![None; self.dim()];
        let mut coordinates = crate::create::reserved(rest.len(), op)?;
        for (d, &size) in self.shape().iter().enumerate().rev() {
            coordinates.clear();
            for n in &mut rest {
                coordinates.push(*n % size as i64);
                *n /= size as i64;
            }
            indices[d] = Some(View::from_slice(
                &coordinates,
                index.shape(),
                &self.device(),
            )?);
        }
        Ok((self.clone(), indices))
    }

    /// A copy of the whole storage under the same layout, so that what the layout leaves out is kept too; of a tensor that
    /// overlaps itself, its elements alone.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn copy_of_storage(&self) -> Result<View> {
        if write::check_itself(self, "copy").is_err() {
            return self.copy(MemoryFormat::Preserve);
        }
        let len = (self.storage().nbytes() / self.element_size()) as isize;
        let copy = self
            .as_strided(&[len], &[1], Some(0))?
            .copy(MemoryFormat::Contiguous)?;
        // Whole, and not a view of anything.
        View::new(
            copy.storage().clone(),
            self.layout().clone(),
            self.dtype(),
            "copy",
        )
    }
}
