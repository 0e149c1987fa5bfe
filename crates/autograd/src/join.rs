//! Several tensors as one.

use crate::Tensor;
use crate::graph::{same, viewed};
use osteon_spec::Result;
use osteon_tensor::View;

fn views<'a>(tensors: &[&'a Tensor]) -> Vec<&'a View> {
    tensors.iter().map(|t| t.as_view()).collect()
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
        View::cat(&views(tensors), dim).map(Tensor::from_view)
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
        View::stack(&views(tensors), dim).map(Tensor::from_view)
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
        let dim = if tensors.first().is_some_and(|t| t.dim() > 1) {
            1
        } else {
            0
        };
        Tensor::cat_each(tensors, dim, |t| t.atleast_1d())
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
        Tensor::cat_each(tensors, 0, |t| t.atleast_2d())
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
        Tensor::cat_each(tensors, 2, |t| t.atleast_3d())
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
        Tensor::cat_each(tensors, 1, |t| {
            if t.dim() <= 1 {
                t.reshape([t.numel() as isize, 1])
            } else {
                Ok(t.clone())
            }
        })
    }

    #[track_caller]
    fn cat_each(
        tensors: &[&Tensor],
        dim: isize,
        form: impl Fn(&Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let formed = tensors
            .iter()
            .map(|t| form(t))
            .collect::<Result<Vec<_>>>()?;
        Tensor::cat(&formed.iter().collect::<Vec<_>>(), dim)
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
        View::block_diag(&views(tensors)).map(Tensor::from_view)
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
