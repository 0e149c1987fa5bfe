//! Elements in another order: several tensors as one, triangles, elements that indices name.

use super::{into, outs};
use crate::join::{Stack, views};
use crate::{Operand, Tensor};
use osteon_spec::Result;
use osteon_tensor::{Arg, Triangle, View};

outs! { out: One;
    /// It may hold another dtype of the same category or a higher one.
    cat_out of cat(tensors: &[&Tensor], dim: isize) reads tensors.iter().copied()
        => View::cat_out(&views(tensors), dim, out);
    x = [1.0, 2.0], y = [3.0]; Tensor::cat_out(&[&x, &y], 0, &out); [1.0, 2.0, 3.0];

    /// It may hold another dtype of the same category or a higher one.
    stack_out of stack(tensors: &[&Tensor], dim: isize) reads tensors.iter().copied()
        => View::stack_out(&views(tensors), dim, out);
    x = [1.0, 2.0], y = [3.0, 4.0]; Tensor::stack_out(&[&x, &y], 1, &out); [[1.0, 3.0], [2.0, 4.0]];

    /// It may hold another dtype of the same category or a higher one.
    hstack_out of hstack(tensors: &[&Tensor]) reads tensors.iter().copied()
        => Stack::Horizontal.write(tensors, out);
    x = [1.0, 2.0], y = 3.0; Tensor::hstack_out(&[&x, &y], &out); [1.0, 2.0, 3.0];

    /// It may hold another dtype of the same category or a higher one.
    vstack_out of vstack(tensors: &[&Tensor]) reads tensors.iter().copied()
        => Stack::Vertical.write(tensors, out);
    x = [1.0, 2.0], y = [3.0, 4.0]; Tensor::vstack_out(&[&x, &y], &out); [[1.0, 2.0], [3.0, 4.0]];

    /// It may hold another dtype of the same category or a higher one.
    dstack_out of dstack(tensors: &[&Tensor]) reads tensors.iter().copied()
        => Stack::Depth.write(tensors, out);
    x = [1.0, 2.0], y = [3.0, 4.0]; Tensor::dstack_out(&[&x, &y], &out); [[[1.0, 3.0], [2.0, 4.0]]];

    /// It may hold another dtype of the same category or a higher one.
    column_stack_out of column_stack(tensors: &[&Tensor]) reads tensors.iter().copied()
        => Stack::Columns.write(tensors, out);
    x = [1.0, 2.0], y = [3.0, 4.0]; Tensor::column_stack_out(&[&x, &y], &out); [[1.0, 3.0], [2.0, 4.0]];

    /// It may be `self`.
    tril_out of tril(&self, diagonal: isize) reads [self]
        => self.as_view().triangle_out(Triangle::Lower(diagonal), out);
    x = [[1.0, 2.0], [3.0, 4.0]]; x.tril_out(0, &out); [[1.0, 0.0], [3.0, 4.0]];

    /// It may be `self`.
    triu_out of triu(&self, diagonal: isize) reads [self]
        => self.as_view().triangle_out(Triangle::Upper(diagonal), out);
    x = [[1.0, 2.0], [3.0, 4.0]]; x.triu_out(0, &out); [[1.0, 2.0], [0.0, 4.0]];

    diag_out of diag(&self, diagonal: isize) reads [self] => self.as_view().diag_out(diagonal, out);
    x = [[1.0, 2.0], [3.0, 4.0]]; x.diag_out(0, &out); [1.0, 4.0];

    /// Through a temporary of the result's size. It may hold another dtype of the same category or a higher one.
    diff_out of diff(&self, n: usize, dim: isize, prepend: Option<&Tensor>, append: Option<&Tensor>)
        reads [Some(self), prepend, append].into_iter().flatten()
        => self.diff(n, dim, prepend, append)?.into_out(out, true, "diff_out");
    x = [1.0, 4.0, 9.0]; x.diff_out(1, -1, None, None, &out); [3.0, 5.0];

    index_select_out of index_select(&self, dim: isize, index: &Tensor) reads [self]
        => self.as_view().index_select_out(dim, index.as_view(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], index = [1i64, 1]; x.index_select_out(0, &index, &out); [[3.0, 4.0], [3.0, 4.0]];

    gather_out of gather(&self, dim: isize, index: &Tensor) reads [self]
        => self.as_view().gather_out(dim, index.as_view(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], index = [[1i64], [0]]; x.gather_out(1, &index, &out); [[2.0], [3.0]];

    take_out of take(&self, index: &Tensor) reads [self] => self.as_view().take_out(index.as_view(), out);
    x = [[1.0, 2.0], [3.0, 4.0]], index = [3i64, 0]; x.take_out(&index, &out); [4.0, 1.0];

    take_along_dim_out of take_along_dim(&self, index: &Tensor, dim: Option<isize>) reads [self]
        => match dim {
            Some(dim) => self.as_view().take_along_dim_out(index.as_view(), dim, out),
            None => self.as_view().flatten(0, -1)?.gather_out(0, &index.as_view().flatten(0, -1)?, out),
        };
    x = [[1.0, 2.0], [3.0, 4.0]], index = [[-1i64], [0]]; x.take_along_dim_out(&index, Some(1), &out); [[2.0], [3.0]];

    /// Through a temporary of the result's size.
    masked_select_out of masked_select(&self, mask: &Tensor) reads [self]
        => self.as_view().masked_select_out(mask.as_view(), out);
    x = [1.0, -2.0, 3.0], mask = [true, false, true]; x.masked_select_out(&mask, &out); [1.0, 3.0];

    nonzero_out of nonzero(&self) reads [self] => self.as_view().nonzero_out(out);
    x = [[1.0, 0.0], [0.0, 3.0]]; x.nonzero_out(&out); [[0i64, 0], [1, 1]];
}

impl Tensor {
    /// [`Tensor::where`] into `out`, which may be one of the operands.
    ///
    /// # Errors
    /// As there; an `out` of another shape or dtype, or that overlaps itself or partly what is read.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1.0, -2.0, 3.0])?;
    /// x.where_out(&x.gt(0)?, 0, &x)?;
    /// assert_eq!(x.to_vec::<f64>()?, [1.0, 0.0, 3.0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn where_out<'a>(
        &self,
        condition: &Tensor,
        other: impl Into<Operand<'a>>,
        out: &Tensor,
    ) -> Result<()> {
        let other = other.into();
        let out = into(out, [self.into(), other], "where_out")?;
        View::choose_out(
            condition.as_view(),
            Arg::View(self.as_view()),
            other.arg(),
            out,
        )
        .map(drop)
    }
}
