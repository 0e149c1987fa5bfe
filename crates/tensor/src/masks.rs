//! Elements that a mask picks.

use crate::View;
use crate::backend::{Arg, backend};
use crate::elementwise::{check_broadcasts_to, other_device};
use crate::target::{Reads, with_out};
use crate::write;
use osteon_memory::here;
use osteon_spec::{
    DType, Dims, Error, Kind, Layout, MemoryFormat, Result, broadcast_shapes, elementwise_output,
    result_type,
};

fn check_mask(mask: &View, of: &View, op: &'static str) -> Result<()> {
    if mask.dtype() != DType::Bool {
        return Err(Error::new(
            Kind::DType,
            format!(
                "the mask must be bool, got {}; compare to get one",
                mask.dtype()
            ),
        )
        .op(op));
    }
    if mask.device() != of.device() {
        return Err(other_device(of.device(), mask.device()).op(op));
    }
    Ok(())
}

with_out! { to;
    /// `a` where `condition` (`bool` or `uint8`) is true, else `b`, in a new tensor: all three broadcast, and `a` and `b` promote.
    ///
    /// # Errors
    /// Another condition; shapes that do not broadcast; dtypes that do not promote; out of memory.
    choose choose_out(condition: &View, a: Arg<'_>, b: Arg<'_>) -> View {
        let to = to.named(["where", "where_out"]);
        let op = to.op;
        if !matches!(condition.dtype(), DType::Bool | DType::U8) {
            let found = condition.dtype();
            let message = format!("the condition must be bool, got {found}; compare to get one");
            return Err(Error::new(Kind::DType, message).op(op));
        }
        let dtype = result_type(&[a.operand(), b.operand()]).map_err(|e| e.op(op))?;
        // An operand of another dtype is cast first, which makes it dense.
        let layout = |arg: Arg<'_>| match arg {
            Arg::View(v) if v.device() != condition.device() => {
                Err(other_device(condition.device(), v.device()))
            }
            Arg::View(v) if v.dtype() == dtype => Ok(v.layout().clone()),
            Arg::View(v) => v.layout().like(MemoryFormat::Preserve),
            Arg::Number(_) => Ok(Layout::scalar()),
        };
        let layouts = layout(a).and_then(|a| Ok([a, layout(b)?])).map_err(|e| e.op(op))?;
        let inputs = [condition.layout(), &layouts[0], &layouts[1]];
        let shape = broadcast_shapes(&inputs.map(Layout::sizes)).map_err(|e| e.op(op))?;
        let layout = elementwise_output(&inputs, &shape).map_err(|e| e.op(op))?;
        let view = |arg| match arg {
            Arg::View(v) => v,
            Arg::Number(_) => condition,
        };
        let reads = Reads::Each(&[condition, view(a), view(b)]);
        to.write(layout, (dtype, condition.device()), reads, |out| {
            backend(out.device()).select(out, condition, a, b)
        })
    }

    /// The coordinates of the elements that are not zero, a row for each, in row-major order of the elements. A
    /// new int64 matrix whose columns are dense.
    ///
    /// # Errors
    /// Out of memory; a tensor on `meta`.
    nonzero nonzero_out(&self) -> View {
        let backend = backend(self.device());
        loop {
            let n = backend.count_true(self).map_err(|e| e.op(to.op))?;
            let sizes = Dims::from_slice(&[n, self.dim()]);
            let layout = Layout::new(sizes, Dims::from_slice(&[1, n]), 0).map_err(|e| e.op(to.op))?;
            let mut complete = false;
            let kind = (DType::I64, self.device());
            let found = to.write(layout, kind, Reads::Apart(&[self]), |out| {
                complete = backend.nonzero(out, self)?;
                Ok(())
            })?;
            // Another thread may have written in between.
            if complete {
                return Ok(found);
            }
        }
    }

    /// The elements at which `mask` is true, as a new vector; both broadcast.
    ///
    /// # Errors
    /// A mask that is not `bool`; shapes that do not broadcast; out of memory.
    masked_select masked_select_out(&self, mask: &View) -> View {
        let op = to.op;
        check_mask(mask, self, op)?;
        if let Some(out) = to.out() {
            write::check_apart(out, self, op)?;
            write::check_apart(out, mask, op)?;
        }
        let shape = broadcast_shapes(&[self.shape(), mask.shape()]).map_err(|e| e.op(op))?;
        let src = self.with_layout(self.layout().expand_to(&shape)?, op)?;
        let mask = mask.with_layout(mask.layout().expand_to(&shape)?, op)?;
        let backend = backend(self.device());
        loop {
            let n = backend.count_true(&mask).map_err(|e| e.op(op))?;
            let found = View::alloc(Layout::contiguous(&[n])?, self.dtype(), &self.device(), op)?;
            // Another thread may have written in between.
            if backend.masked_select(&found, &src, &mask).map_err(|e| e.op(op))? {
                return to.put(found);
            }
        }
    }
}

impl View {
    /// Writes the elements of `source`, in row-major order, to those at which `mask`, broadcast to this shape, is true.
    /// A source that is not contiguous is copied first.
    ///
    /// # Errors
    /// A mask that is not `bool`; a source of another dtype, or with fewer elements than the mask selects; overlap.
    #[track_caller]
    pub fn masked_scatter_(&self, mask: &View, source: &View) -> Result<()> {
        let op = "masked_scatter_";
        check_mask(mask, self, op)?;
        if source.dtype() != self.dtype() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the source holds {}, the tensor {}",
                    source.dtype(),
                    self.dtype()
                ),
            )
            .op(op));
        }
        if source.device() != self.device() {
            return Err(other_device(self.device(), source.device()).op(op));
        }
        check_broadcasts_to(mask, self, op)?;
        write::check_itself(self, op)?;
        write::check_apart(self, mask, op)?;
        write::check_apart(self, source, op)?;
        let source = source.dense(op)?;
        let mask = mask.with_layout(mask.layout().expand_to(self.shape())?, op)?;
        backend(self.device())
            .masked_scatter(self, &mask, &source)
            .map_err(|e| e.op(op))?;
        self.storage().record_write(op, here());
        Ok(())
    }
}
