//! Order along a dim.

use crate::View;
use crate::backend::backend;
use crate::target::{Reads, Target, with_out};
use osteon_kernels::Pick;
use osteon_spec::{DType, Dims, Error, Kind, Layout, MemoryFormat, Result, wrap_dim};

with_out! { to;
    /// The elements along a dim in order, and where each was (int64): stable, NaN as the largest. Two new tensors
    /// that keep the order of dims.
    ///
    /// # Errors
    /// A dim out of range; complex elements, which have no order; out of memory.
    sort sort_out(&self, dim: isize, descending: bool) -> (View, View) {
        self.sorted(dim, descending, to)
    }

    /// The elements along the first dim in order, without their places.
    ///
    /// # Errors
    /// As [`View::sort`].
    msort msort_out(&self) -> View {
        Ok(self.sorted(0, false, to)?.0)
    }

    /// The `k` largest elements along a dim, or the smallest, in order, and where they were: two new row-major
    /// tensors.
    ///
    /// # Errors
    /// More than there are; as [`View::sort`].
    topk topk_out(&self, k: isize, dim: isize, largest: bool) -> (View, View) {
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(to.op))?;
        let k = self.checked_rank(k, 0, d, to.op)?;
        check_numbers(self, to.op)?;
        let mut shape = Dims::from_slice(self.shape());
        // A 0-dim tensor has its one element in any case.
        let k = if self.dim() == 0 { 1 } else { k };
        if let Some(size) = shape.get_mut(d) {
            *size = k;
        }
        let layout = Layout::contiguous(&shape).map_err(|e| e.op(to.op))?;
        self.picked(Pick::Ranks { ranks: 0..k, descending: largest }, d, layout, to)
    }

    /// The `k`th smallest element along a dim, counted from 1, and where it was.
    ///
    /// # Errors
    /// Fewer elements than that; as [`View::sort`].
    kthvalue kthvalue_out(&self, k: isize, dim: isize, keepdim: bool) -> (View, View) {
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(to.op))?;
        let k = self.checked_rank(k, 1, d, to.op)?;
        self.one_each(Pick::Ranks { ranks: k - 1..k, descending: false }, dim, keepdim, to)
    }

    /// One element of each lane along a dim, and where it was: the median, the mode.
    ///
    /// # Errors
    /// An empty dim; a dim out of range; complex elements, or `bool` but for the mode; out of memory.
    one_of_each one_of_each_out(&self, pick: Pick, dim: isize, keepdim: bool, op: &'static str) -> (View, View) {
        self.one_each(pick, dim, keepdim, to.named([op, op]))
    }
}

impl View {
    #[track_caller]
    fn sorted(&self, dim: isize, descending: bool, to: Target<'_>) -> Result<(View, View)> {
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(to.op))?;
        let layout = self
            .layout()
            .like(MemoryFormat::Preserve)
            .map_err(|e| e.op(to.op))?;
        let ranks = 0..self.shape().get(d).copied().unwrap_or(1);
        self.picked(Pick::Ranks { ranks, descending }, d, layout, to)
    }

    /// A rank from `least` to the number of elements along a dim.
    fn checked_rank(&self, k: isize, least: usize, d: usize, op: &'static str) -> Result<usize> {
        let n = self.shape().get(d).copied().unwrap_or(1);
        let rank = usize::try_from(k).ok().filter(|k| (least..=n).contains(k));
        rank.ok_or_else(|| {
            let message = format!("k is {k}, but dim {d} has {n} elements");
            Error::new(Kind::Value, message).op(op)
        })
    }

    /// One element of each lane along a dim, and where it was.
    #[track_caller]
    fn one_each(
        &self,
        pick: Pick,
        dim: isize,
        keepdim: bool,
        to: Target<'_>,
    ) -> Result<(View, View)> {
        let op = to.op;
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        if pick != Pick::Mode {
            check_numbers(self, op)?;
        }
        if self.shape().get(d) == Some(&0) {
            return Err(Error::new(
                Kind::Index,
                format!(
                    "dim {d} of shape {:?} is empty, and has no such element",
                    self.shape()
                ),
            )
            .op(op));
        }
        let mut shape = Dims::from_slice(self.shape());
        if d < shape.len() {
            if keepdim {
                shape[d] = 1;
            } else {
                shape.remove(d);
            }
        }
        let layout = Layout::contiguous(&shape).map_err(|e| e.op(op))?;
        self.picked(pick, d, layout, to)
    }

    /// What is asked for of each lane, in results of this layout, which may lack the dim.
    #[track_caller]
    fn picked(&self, pick: Pick, d: usize, layout: Layout, to: Target<'_>) -> Result<(View, View)> {
        if self.dtype().is_complex() {
            return Err(Error::new(Kind::DType, "complex numbers have no order").op(to.op));
        }
        let source = if self.dim() == 0 {
            self.unsqueeze(0)?
        } else {
            self.clone()
        };
        let kind = ([Some(self.dtype()), Some(DType::I64)], self.device());
        let made = to.write_both(&layout, kind, Reads::Apart(&[self]), |made| {
            let lane = |k: usize| {
                let v = made[k].expect("both results were asked for");
                if v.dim() < source.dim() {
                    v.unsqueeze(d as isize)
                } else {
                    Ok(v.clone())
                }
            };
            backend(self.device()).sort(&pick, [&lane(0)?, &lane(1)?], &source, d)
        })?;
        let [values, indices] = made;
        Ok(values.zip(indices).expect("both results were asked for"))
    }
}

fn check_numbers(view: &View, op: &'static str) -> Result<()> {
    if view.dtype() != DType::Bool {
        return Ok(());
    }
    Err(Error::new(Kind::DType, "not defined for bool; cast with to() first").op(op))
}
