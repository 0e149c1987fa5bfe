//! Indexing as Python writes it: `x[1:3, ..., None]` is `x.i(s![1..3, ..., None])`.

use crate::Tensor;
use osteon_spec::{Error, Kind, Layout, Result};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One item of an index, made by [`s!`](crate::s).
#[derive(Clone, Debug)]
pub enum Index {
    /// `i`: one index of a dim, which goes.
    Int(isize),
    /// `a:b:step`.
    Slice {
        /// The first index; `None` for the first of all.
        start: Option<isize>,
        /// The index after the last; `None` for all.
        end: Option<isize>,
        /// How far apart.
        step: isize,
    },
    /// `None`: a new dim of size 1.
    NewAxis,
    /// `...`: as many whole dims as are left.
    Ellipsis,
}

impl Index {
    /// The same slice in steps.
    #[must_use]
    pub fn step(self, by: isize) -> Index {
        match self {
            Index::Slice { start, end, step } => {
                Index::Slice { start, end, step: step.saturating_mul(by) }
            }
            other => other,
        }
    }

    fn range(start: Option<isize>, end: Option<isize>) -> Index {
        Index::Slice { start, end, step: 1 }
    }
}

/// `..=-1` ends with the last index, which no exclusive bound counted from the end says.
fn after(last: isize) -> Option<isize> {
    if last == -1 { None } else { Some(last.saturating_add(1)) }
}

macro_rules! index_from {
    ($($ty:ty)*) => { $(
        impl From<$ty> for Index {
            fn from(i: $ty) -> Index {
                Index::Int(i as isize)
            }
        }
        impl From<Range<$ty>> for Index {
            fn from(r: Range<$ty>) -> Index {
                Index::range(Some(r.start as isize), Some(r.end as isize))
            }
        }
        impl From<RangeInclusive<$ty>> for Index {
            fn from(r: RangeInclusive<$ty>) -> Index {
                Index::range(Some(*r.start() as isize), after(*r.end() as isize))
            }
        }
        impl From<RangeFrom<$ty>> for Index {
            fn from(r: RangeFrom<$ty>) -> Index {
                Index::range(Some(r.start as isize), None)
            }
        }
        impl From<RangeTo<$ty>> for Index {
            fn from(r: RangeTo<$ty>) -> Index {
                Index::range(None, Some(r.end as isize))
            }
        }
        impl From<RangeToInclusive<$ty>> for Index {
            fn from(r: RangeToInclusive<$ty>) -> Index {
                Index::range(None, after(r.end as isize))
            }
        }
    )* };
}

index_from! { i32 isize usize }

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::range(None, None)
    }
}

/// An index as Python writes it, for [`Tensor::i`] and [`Tensor::index_put_`]: integers, ranges (`1..3`,
/// `..` for a whole dim, negative bounds from the end, `0..9;2` in steps), `None` for a new dim, `...` for all
/// dims that are left.
///
/// ```
/// # use osteon_autograd::{s, Tensor};
/// let x = Tensor::arange(0, 24, 1)?.view([2, 3, 4])?;
/// assert_eq!(x.i(s![1, .., 0])?.to_vec::<i64>()?, [12, 16, 20]);
/// assert_eq!(x.i(s![..., 1..4;2])?.shape(), [2, 3, 2]);
/// assert_eq!(x.i(s![None, -1])?.shape(), [1, 3, 4]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[macro_export]
macro_rules! s {
    (@ [$($done:expr),*]) => { [$($done),*] };
    (@ [$($done:expr),*] ... $(, $($rest:tt)*)?) => {
        $crate::s!(@ [$($done,)* $crate::Index::Ellipsis] $($($rest)*)?)
    };
    (@ [$($done:expr),*] None $(, $($rest:tt)*)?) => {
        $crate::s!(@ [$($done,)* $crate::Index::NewAxis] $($($rest)*)?)
    };
    (@ [$($done:expr),*] $item:expr; $step:expr $(, $($rest:tt)*)?) => {
        $crate::s!(@ [$($done,)* $crate::Index::from($item).step($step)] $($($rest)*)?)
    };
    (@ [$($done:expr),*] $item:expr $(, $($rest:tt)*)?) => {
        $crate::s!(@ [$($done,)* $crate::Index::from($item)] $($($rest)*)?)
    };
    ($($items:tt)*) => { $crate::s!(@ [] $($items)*) };
}

impl Tensor {
    /// The tensor at an index, a view: PyTorch's `x[index]`.
    ///
    /// # Errors
    /// More items than dims; an index out of range; a step below 1.
    ///
    /// ```
    /// # use osteon_autograd::{s, Tensor};
    /// let a = Tensor::new([1i64, 2, 3, 4])?;
    /// assert!(a.i(s![1..3])?.shares_storage(&a));
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn i(&self, index: impl AsRef<[Index]>) -> Result<Tensor> {
        let layout = indexed(self.layout(), index.as_ref()).map_err(|e| e.op("index"))?;
        self.as_view().with_layout(layout, "index").map(Tensor::from_view)
    }

    /// Writes `value`, broadcast and cast, at an index: PyTorch's `x[index] = value`. Leading dims of size
    /// 1 of the value are dropped.
    ///
    /// # Errors
    /// As [`Tensor::i`] and [`Tensor::copy_`].
    ///
    /// ```
    /// # use osteon_autograd::{s, Tensor};
    /// let x = Tensor::new([0i64, 0, 0, 0])?;
    /// x.index_put_(s![1..3], &Tensor::new([7i64, 8])?)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 7, 8, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_put_(&self, index: impl AsRef<[Index]>, value: &Tensor) -> Result<()> {
        let target = self.i(index)?;
        let mut value = value.clone();
        while value.dim() > target.dim() && value.shape()[0] == 1 {
            value = value.select(0, 0)?;
        }
        target.copy_(&value).map_err(|e| e.op("index_put_"))
    }
}

fn indexed(layout: &Layout, index: &[Index]) -> Result<Layout> {
    let taken = index.iter().filter(|i| matches!(i, Index::Int(_) | Index::Slice { .. })).count();
    let left = layout.rank().checked_sub(taken).ok_or_else(|| {
        Error::new(
            Kind::Index,
            format!("too many indices for shape {:?}: {taken}", layout.sizes()),
        )
    })?;
    let mut layout = layout.clone();
    let mut dim = 0;
    let mut ellipsis = Some(left as isize);
    for item in index {
        match *item {
            Index::Int(i) => layout = layout.select(dim, i)?,
            Index::Slice { start, end, step } => {
                layout = layout.slice(dim, start, end, step)?;
                dim += 1;
            }
            Index::NewAxis => {
                layout = layout.unsqueeze(dim)?;
                dim += 1;
            }
            // A second one stands for nothing, as in PyTorch.
            Index::Ellipsis => dim += ellipsis.take().unwrap_or(0),
        }
    }
    Ok(layout)
}
