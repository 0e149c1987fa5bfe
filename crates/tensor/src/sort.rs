//! Order along a dim.

use crate::View;
use crate::backend::backend;
use osteon_kernels::Pick;
use osteon_spec::{DType, Dims, Error, Kind, Layout, MemoryFormat, Result, wrap_dim};

impl View {
    /// The elements along a dim in order, and where each was (int64): stable, NaN as the largest. Two new tensors
    /// that keep the order of dims.
    ///
    /// # Errors
    /// A dim out of range; complex elements, which have no order; out of memory.
    #[track_caller]
    pub fn sort(&self, dim: isize, descending: bool) -> Result<(View, View)> {
        let op = "sort";
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        let layout = self
            .layout()
            .like(MemoryFormat::Preserve)
            .map_err(|e| e.op(op))?;
        let n = self.shape().get(d).copied().unwrap_or(1);
        self.picked(
            Pick::Ranks {
                ranks: 0..n,
                descending,
            },
            d,
            layout,
            op,
        )
    }

    /// The `k` largest elements along a dim, or the smallest, in order, and where they were: two new row-major
    /// tensors.
    ///
    /// # Errors
    /// More than there are; as [`View::sort`].
    #[track_caller]
    pub fn topk(&self, k: isize, dim: isize, largest: bool) -> Result<(View, View)> {
        let op = "topk";
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        let n = self.shape().get(d).copied().unwrap_or(1);
        let Some(k) = usize::try_from(k).ok().filter(|&k| k <= n) else {
            return Err(Error::new(
                Kind::Value,
                format!("k is {k}, but dim {d} has {n} elements"),
            )
            .op(op));
        };
        check_numbers(self, op)?;
        let mut shape = Dims::from_slice(self.shape());
        // A 0-dim tensor has its one element in any case.
        let k = if self.dim() == 0 { 1 } else { k };
        if let Some(size) = shape.get_mut(d) {
            *size = k;
        }
        let layout = Layout::contiguous(&shape).map_err(|e| e.op(op))?;
        self.picked(
            Pick::Ranks {
                ranks: 0..k,
                descending: largest,
            },
            d,
            layout,
            op,
        )
    }

    /// The `k`th smallest element along a dim, counted from 1, and where it was.
    ///
    /// # Errors
    /// Fewer elements than that; as [`View::sort`].
    #[track_caller]
    pub fn kthvalue(&self, k: isize, dim: isize, keepdim: bool) -> Result<(View, View)> {
        let op = "kthvalue";
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        let n = self.shape().get(d).copied().unwrap_or(1);
        let Some(k) = usize::try_from(k).ok().filter(|k| (1..=n).contains(k)) else {
            return Err(Error::new(
                Kind::Value,
                format!("k is {k}, but dim {d} has {n} elements"),
            )
            .op(op));
        };
        self.one_of_each(
            Pick::Ranks {
                ranks: k - 1..k,
                descending: false,
            },
            dim,
            keepdim,
            op,
        )
    }

    /// One element of each lane along a dim, and where it was: the median, the mode.
    ///
    /// # Errors
    /// An empty dim; a dim out of range; `bool` or complex elements; out of memory.
    #[track_caller]
    pub fn one_of_each(
        &self,
        pick: Pick,
        dim: isize,
        keepdim: bool,
        op: &'static str,
    ) -> Result<(View, View)> {
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
        if let Some(size) = shape.get_mut(d) {
            *size = 1;
        }
        let layout = Layout::contiguous(&shape).map_err(|e| e.op(op))?;
        let (values, indices) = self.picked(pick, d, layout, op)?;
        if keepdim || self.dim() == 0 {
            return Ok((values, indices));
        }
        let without = |v: View| v.with_layout(v.layout().squeeze_dims(&[d as isize])?, op);
        Ok((without(values)?, without(indices)?))
    }

    #[track_caller]
    fn picked(
        &self,
        pick: Pick,
        d: usize,
        layout: Layout,
        op: &'static str,
    ) -> Result<(View, View)> {
        if self.dtype().is_complex() {
            return Err(Error::new(Kind::DType, "complex numbers have no order").op(op));
        }
        let device = self.device();
        let values = View::alloc(layout.clone(), self.dtype(), &device, op)?;
        let indices = View::alloc(layout, DType::I64, &device, op)?;
        let lane = |v: &View| {
            if v.dim() == 0 {
                v.unsqueeze(0)
            } else {
                Ok(v.clone())
            }
        };
        backend(device)
            .sort(&pick, [&lane(&values)?, &lane(&indices)?], &lane(self)?, d)
            .map_err(|e| e.op(op))?;
        Ok((values, indices))
    }
}

fn check_numbers(view: &View, op: &'static str) -> Result<()> {
    if view.dtype() != DType::Bool {
        return Ok(());
    }
    Err(Error::new(Kind::DType, "not defined for bool; cast with to() first").op(op))
}
