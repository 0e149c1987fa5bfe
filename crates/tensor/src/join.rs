//! Several tensors as one.

use crate::View;
use crate::copy::transfer;
use crate::elementwise::other_device;
use crate::target::{Reads, Target, with_out};
use osteon_memory::{CopyReason, attribute, here};
use osteon_spec::{
    DType, Dims, Error, Kind, Layout, MemoryFormat, Operand, Result, broadcast_shapes, result_type,
    wrap_dim,
};

/// The first of a list of tensors that are all on one device.
pub(crate) fn first<'a>(views: &[&'a View], op: &'static str) -> Result<&'a View> {
    let Some(first) = views.first() else {
        return Err(Error::new(Kind::Value, "expected at least one tensor").op(op));
    };
    match views.iter().find(|v| v.device() != first.device()) {
        None => Ok(first),
        Some(other) => Err(other_device(first.device(), other.device()).op(op)),
    }
}

/// A tensor that says nothing in a [`View::cat`]: an empty vector, as PyTorch has it from before there were shapes
/// with zeros.
fn is_nothing(view: &View) -> bool {
    view.shape() == [0]
}

/// The format that all agree on.
fn common_format(views: &[&View]) -> MemoryFormat {
    let mut formats = views.iter().map(|v| v.layout().suggest_memory_format());
    let first = formats.next().unwrap_or(MemoryFormat::Contiguous);
    if formats.all(|f| f == first) {
        first
    } else {
        MemoryFormat::Contiguous
    }
}

with_out! { to;
    /// Tensors one after the other along a dim, in a new one; dtypes promote. Empty vectors are left out.
    /// Channels-last stays where all have it, otherwise the result is row-major.
    ///
    /// # Errors
    /// No tensors; 0-dim ones; sizes that differ in another dim; out of memory.
    cat cat_out(views: &[&View], dim: isize) -> View {
        View::joined(views, dim, to)
    }

    /// Tensors of one shape as a new one, along a new dim; dtypes promote.
    ///
    /// # Errors
    /// No tensors; shapes that differ; out of memory.
    stack stack_out(views: &[&View], dim: isize) -> View {
        let op = to.op;
        let model = first(views, op)?;
        let d = wrap_dim(dim, model.dim() + 1).map_err(|e| e.op(op))?;
        if let Some(other) = views.iter().find(|v| v.shape() != model.shape()) {
            let (a, b) = (model.shape(), other.shape());
            let message = format!("shapes must be equal, got {a:?} and {b:?}");
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        if d < model.dim() && !to.is_given() {
            // The new dim is split off the one that they are joined along.
            let joined = View::joined(views, d as isize, to)?;
            let mut shape: Vec<isize> = model.shape().iter().map(|&n| n as isize).collect();
            shape.insert(d, views.len() as isize);
            return joined.with_layout(joined.layout().view(&shape)?, op);
        }
        let slices: Vec<View> =
            views.iter().map(|v| v.unsqueeze(d as isize)).collect::<Result<_>>()?;
        View::joined(&slices.iter().collect::<Vec<_>>(), d as isize, to)
    }

    /// [`View::gather`] of view and index broadcast to each other in all other dims; negative indices count from the
    /// end.
    ///
    /// # Errors
    /// Ranks that differ; sizes that do not broadcast; as [`View::gather`].
    take_along_dim take_along_dim_out(&self, index: &View, dim: isize) -> View {
        let op = to.op;
        let d = self.existing_dim(dim, op)?;
        if index.dtype() != DType::I64 {
            let message = format!("the index must be int64, got {}", index.dtype());
            return Err(Error::new(Kind::DType, message).op(op));
        }
        if index.dim() != self.dim() {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "ranks must be equal, got shapes {:?} and {:?}",
                    self.shape(),
                    index.shape()
                ),
            )
            .op(op));
        }
        let mut shapes = [self, index].map(|v| Dims::from_slice(v.shape()));
        shapes.iter_mut().for_each(|shape| shape[d] = 1);
        let common = broadcast_shapes(&shapes.each_ref().map(|s| &s[..])).map_err(|e| e.op(op))?;
        let expanded = |v: &View| {
            let mut shape = common.clone();
            shape[d] = v.shape()[d];
            v.with_layout(v.layout().expand_to(&shape)?, op)
        };
        expanded(self)?.gathered(dim, &expanded(index)?, true, to)
    }
}

impl View {
    #[track_caller]
    fn joined(views: &[&View], dim: isize, to: Target<'_>) -> Result<View> {
        let op = to.op;
        let device = first(views, op)?.device();
        if let Some(place) = views.iter().position(|v| v.dim() == 0) {
            return Err(Error::new(
                Kind::Shape,
                format!("the tensor at place {place} has no dims; stack() joins 0-dim tensors"),
            )
            .op(op));
        }
        let operands: Vec<Operand> = views
            .iter()
            .map(|v| Operand::new(v.dtype(), v.dim()))
            .collect();
        let dtype = result_type(&operands).map_err(|e| e.op(op))?;
        let (to, reads) = (to.casting(), Reads::Apart(views));
        let parts: Vec<&View> = views.iter().copied().filter(|v| !is_nothing(v)).collect();
        let Some(model) = parts.first() else {
            return to.write(
                Layout::contiguous(&[0])?,
                (dtype, device),
                reads,
                |_| Ok(()),
            );
        };
        let d = wrap_dim(dim, model.dim()).map_err(|e| e.op(op))?;
        let mut shape = Dims::from_slice(model.shape());
        shape[d] = 0;
        for part in &parts {
            let agrees = part.dim() == model.dim()
                && (0..shape.len()).all(|i| i == d || part.shape()[i] == shape[i]);
            if !agrees {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "shapes must be equal but in dim {d}, got {:?} and {:?}",
                        model.shape(),
                        part.shape()
                    ),
                )
                .op(op));
            }
            shape[d] = shape[d].saturating_add(part.shape()[d]);
        }
        let layout = Layout::dense(&shape, common_format(views)).map_err(|e| e.op(op))?;
        let site = here();
        to.write(layout, (dtype, device), reads, |out| {
            let mut at = 0;
            for part in parts {
                let n = part.shape()[d] as isize;
                let place = out.narrow(d as isize, at, n)?;
                transfer(&place, part, CopyReason::Assigned, op, site)?;
                at += n;
            }
            Ok(())
        })
    }

    /// The same views, expanded to the shape that all broadcast to. Copies nothing.
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    #[track_caller]
    pub fn broadcast_tensors(views: &[&View]) -> Result<Vec<View>> {
        let op = "broadcast_tensors";
        let shapes: Vec<&[usize]> = views.iter().map(|v| v.shape()).collect();
        let shape = broadcast_shapes(&shapes).map_err(|e| e.op(op))?;
        let expand = |v: &&View| v.with_layout(v.layout().expand_to(&shape)?, op);
        attribute(here(), || views.iter().map(expand).collect())
    }

    /// Checks that a source has this shape.
    ///
    /// # Errors
    /// [`Kind::Shape`].
    pub fn check_same_shape(&self, source: &View, op: &'static str) -> Result<()> {
        if source.shape() == self.shape() {
            return Ok(());
        }
        let message = format!(
            "the source must have shape {:?}, got {:?}",
            self.shape(),
            source.shape()
        );
        Err(Error::new(Kind::Shape, message).op(op))
    }

    /// Matrices along the diagonal of a new one, zeros elsewhere; vectors are rows, 0-dim tensors single elements. Dtypes
    /// promote.
    ///
    /// # Errors
    /// A tensor of more dims; out of memory.
    #[track_caller]
    pub fn block_diag(views: &[&View]) -> Result<View> {
        let op = "block_diag";
        let device = first(views, op)?.device();
        let mut matrices = Vec::with_capacity(views.len());
        for view in views {
            matrices.push(match view.dim() {
                0 => view.view(&[1, 1])?,
                1 => view.unsqueeze(0)?,
                2 => (*view).clone(),
                _ => {
                    return Err(Error::new(
                        Kind::Shape,
                        format!(
                            "expected tensors of 2 dims at most, got shape {:?}",
                            view.shape()
                        ),
                    )
                    .op(op));
                }
            });
        }
        let operands: Vec<Operand> = views
            .iter()
            .map(|v| Operand::new(v.dtype(), v.dim()))
            .collect();
        let dtype = result_type(&operands).map_err(|e| e.op(op))?;
        let total = |d: usize| {
            matrices
                .iter()
                .fold(0usize, |n, m| n.saturating_add(m.shape()[d]))
        };
        let out = View::zeros(&[total(0), total(1)], dtype, &device)?;
        let (mut row, mut column) = (0, 0);
        for matrix in &matrices {
            let (rows, columns) = (matrix.shape()[0] as isize, matrix.shape()[1] as isize);
            let to = out.narrow(0, row, rows)?.narrow(1, column, columns)?;
            transfer(&to, matrix, CopyReason::Assigned, op, here())?;
            (row, column) = (row + rows, column + columns);
        }
        Ok(out)
    }
}
