//! Several tensors as one.

use crate::Tensor;
use crate::graph::{record, rule, same, viewed};
use crate::views::signed;
use osteon_spec::{Result, wrap_dim};
use osteon_tensor::View;

pub(crate) fn views<'a>(tensors: &[&'a Tensor]) -> Vec<&'a View> {
    tensors.iter().map(|t| t.as_view()).collect()
}

/// A way to give tensors the dims that they are then joined along.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stack {
    Horizontal,
    Vertical,
    Depth,
    Columns,
}

impl Stack {
    /// The tensors as they are joined, and the dim.
    fn parts(self, tensors: &[&Tensor]) -> Result<(Vec<Tensor>, isize)> {
        let is_vector = tensors.first().is_none_or(|t| t.dim() <= 1);
        let dim = match self {
            Stack::Horizontal => isize::from(!is_vector),
            Stack::Vertical => 0,
            Stack::Depth => 2,
            Stack::Columns => 1,
        };
        let part = |t: &&Tensor| match self {
            Stack::Horizontal => t.atleast_1d(),
            Stack::Vertical => t.atleast_2d(),
            Stack::Depth => t.atleast_3d(),
            Stack::Columns if t.dim() <= 1 => t.reshape([t.numel() as isize, 1]),
            Stack::Columns => Ok((*t).clone()),
        };
        Ok((tensors.iter().map(part).collect::<Result<_>>()?, dim))
    }

    #[track_caller]
    fn fresh(self, tensors: &[&Tensor]) -> Result<Tensor> {
        let (parts, dim) = self.parts(tensors)?;
        Tensor::cat(&parts.iter().collect::<Vec<_>>(), dim)
    }

    /// Into a given tensor.
    #[track_caller]
    pub(crate) fn write(self, tensors: &[&Tensor], out: &View) -> Result<View> {
        let (parts, dim) = self.parts(tensors)?;
        View::cat_out(&views(&parts.iter().collect::<Vec<_>>()), dim, out)
    }
}

impl Tensor {
    /// Tensors one after the other along a dim, in a new tensor; dtypes promote, and empty vectors are left out.
    ///
    /// Allocates the result, and copies each tensor once. Channels-last stays where all have it, otherwise the result
    /// is row-major.
    ///
    /// # Errors
    /// No tensors; 0-dim ones; sizes that differ in another dim; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([[1i64, 2]])?, Tensor::new([[3i64, 4], [5, 6]])?);
    /// assert_eq!(Tensor::cat(&[&a, &b], 0)?.to_vec::<i64>()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], dim: isize) -> Result<Tensor> {
        let out = View::cat(&views(tensors), dim)?;
        record(out, tensors, |_, out| {
            let d = wrap_dim(dim, out.dim())?;
            // Where each part begins, and how long it is; nothing of an empty vector.
            let mut end = 0;
            let mut parts = Vec::with_capacity(tensors.len());
            for t in tensors {
                let len = if t.shape() == [0] { 0 } else { t.shape()[d] };
                parts.push((end as isize, len as isize));
                end += len;
            }
            Ok(rule(move |b| {
                let g = b.grad()?;
                let part = |(k, &(start, len)): (usize, &(isize, isize))| {
                    b.want(k, || match b.sizes(k) {
                        [0] => g.new_zeros([0]),
                        _ => g.narrow(d as isize, start, len),
                    })
                };
                parts.iter().enumerate().map(part).collect()
            }))
        })
    }

    /// Tensors of one shape along a new dim, in a new tensor; dtypes promote. Copies each tensor once.
    ///
    /// # Errors
    /// No tensors; shapes that differ; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([1i64, 2])?, Tensor::new([3i64, 4])?);
    /// assert_eq!(Tensor::stack(&[&a, &b], 1)?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], dim: isize) -> Result<Tensor> {
        let n = tensors.len();
        record(View::stack(&views(tensors), dim)?, tensors, |_, _| {
            Ok(rule(move |b| {
                let g = b.grad()?;
                let part = |k: usize| b.want(k, || g.select(dim, k as isize));
                (0..n).map(part).collect()
            }))
        })
    }

    /// [`Tensor::cat`] along dim 1, or dim 0 of vectors; 0-dim tensors count as vectors.
    ///
    /// # Errors
    /// As [`Tensor::cat`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([[1i64], [2]])?, Tensor::new([[3i64], [4]])?);
    /// assert_eq!(Tensor::hstack(&[&a, &b])?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn hstack(tensors: &[&Tensor]) -> Result<Tensor> {
        Stack::Horizontal.fresh(tensors)
    }

    /// [`Tensor::cat`] along dim 0; vectors count as rows.
    ///
    /// # Errors
    /// As [`Tensor::cat`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let stacked = Tensor::vstack(&[&Tensor::new([1i64, 2])?, &Tensor::new([3i64, 4])?])?;
    /// assert_eq!(stacked.shape(), [2, 2]);
    /// assert_eq!(stacked.to_vec::<i64>()?, [1, 2, 3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn vstack(tensors: &[&Tensor]) -> Result<Tensor> {
        Stack::Vertical.fresh(tensors)
    }

    /// [`Tensor::cat`] along dim 2; tensors of fewer dims as by [`Tensor::atleast_3d`].
    ///
    /// # Errors
    /// As [`Tensor::cat`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let stacked = Tensor::dstack(&[&Tensor::new([1i64, 2])?, &Tensor::new([3i64, 4])?])?;
    /// assert_eq!(stacked.shape(), [1, 2, 2]);
    /// assert_eq!(stacked.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn dstack(tensors: &[&Tensor]) -> Result<Tensor> {
        Stack::Depth.fresh(tensors)
    }

    /// [`Tensor::cat`] along dim 1; vectors count as columns.
    ///
    /// # Errors
    /// As [`Tensor::cat`].
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([1i64, 2])?, Tensor::new([3i64, 4])?);
    /// assert_eq!(Tensor::column_stack(&[&a, &b])?.to_vec::<i64>()?, [1, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn column_stack(tensors: &[&Tensor]) -> Result<Tensor> {
        Stack::Columns.fresh(tensors)
    }

    /// Matrices along the diagonal of a new one, zeros elsewhere; vectors are rows. Dtypes promote.
    ///
    /// # Errors
    /// No tensors; a tensor of more than two dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([[1i64, 2]])?, Tensor::new([[3i64]])?);
    /// assert_eq!(Tensor::block_diag(&[&a, &b])?.to_vec::<i64>()?, [1, 2, 0, 0, 0, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn block_diag(tensors: &[&Tensor]) -> Result<Tensor> {
        record(View::block_diag(&views(tensors))?, tensors, |_, _| {
            let sides: Vec<[isize; 2]> = tensors
                .iter()
                .map(|t| match *t.shape() {
                    [rows, columns] => [rows as isize, columns as isize],
                    _ => [1, t.numel() as isize],
                })
                .collect();
            Ok(rule(move |b| {
                let g = b.grad()?;
                let (mut row, mut column) = (0, 0);
                let block = |(k, &[rows, columns]): (usize, &[isize; 2])| {
                    let at = (row, column);
                    (row, column) = (row + rows, column + columns);
                    b.want(k, || {
                        let block = g.narrow(0, at.0, rows)?.narrow(1, at.1, columns)?;
                        block.reshape(signed(b.sizes(k)))
                    })
                };
                sides.iter().enumerate().map(block).collect()
            }))
        })
    }

    /// The same tensors, expanded to the shape that all broadcast to. Copies nothing.
    ///
    /// # Errors
    /// Shapes that do not broadcast.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([[1i64], [2]])?, Tensor::new([10i64, 20])?);
    /// let list = Tensor::broadcast_tensors(&[&a, &b])?;
    /// assert_eq!(list[0].to_vec::<i64>()?, [1, 1, 2, 2]);
    /// assert_eq!(list[1].to_vec::<i64>()?, [10, 20, 10, 20]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn broadcast_tensors(list: &[&Tensor]) -> Result<Vec<Tensor>> {
        let views = View::broadcast_tensors(&views(list))?;
        let pairs = list.iter().zip(views);
        pairs
            .map(|(of, view)| viewed(of, view, || Ok(same())))
            .collect()
    }
}
