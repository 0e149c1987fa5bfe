//! Indexing as Python writes it: `x[1:3, ..., None]` is `x.i(s![1..3, ..., None])`.

use crate::Tensor;
use crate::graph::{Back, Recorder, Strided, one, record, rule, two, viewed};
use osteon_spec::{DType, Device, Error, Kind, Layout, MemoryFormat, Result};
use osteon_tensor::View;
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
    /// A truth value: a new dim of size 1, or of size 0. Copies.
    Bool(bool),
    /// An index tensor (int64 or int32), or a mask (`bool` or `uint8`) over as many dims as it has. Copies, but for an integer
    /// without dims, which counts as [`Index::Int`].
    Tensor(Tensor),
}

impl Index {
    /// The same slice in steps.
    ///
    /// ```
    /// # use osteon_autograd::{Index, Tensor};
    /// let x = Tensor::arange(0, 5, 1)?;
    /// assert_eq!(x.i([Index::from(1..5).step(2)])?.to_vec::<i64>()?, [1, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[must_use]
    pub fn step(self, by: isize) -> Index {
        match self {
            Index::Slice { start, end, step } => Index::Slice {
                start,
                end,
                step: step.saturating_mul(by),
            },
            other => other,
        }
    }

    fn range(start: Option<isize>, end: Option<isize>) -> Index {
        Index::Slice {
            start,
            end,
            step: 1,
        }
    }
}

/// `..=-1` ends with the last index, which no exclusive bound counted from the end says.
fn after(last: isize) -> Option<isize> {
    if last == -1 {
        None
    } else {
        Some(last.saturating_add(1))
    }
}

impl From<&Tensor> for Index {
    fn from(tensor: &Tensor) -> Index {
        Index::Tensor(tensor.clone())
    }
}

impl From<Tensor> for Index {
    fn from(tensor: Tensor) -> Index {
        Index::Tensor(tensor)
    }
}

impl From<bool> for Index {
    fn from(value: bool) -> Index {
        Index::Bool(value)
    }
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
    /// The tensor at an index: PyTorch's `x[index]`. A view, unless there is a tensor or a truth value in the index: then a new
    /// tensor.
    ///
    /// # Errors
    /// More items than dims; an index out of range; a step below 1; index tensors that do not broadcast together; a mask of
    /// another shape than the dims that it covers; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{s, Tensor};
    /// let a = Tensor::new([1i64, 2, 3, 4])?;
    /// assert!(a.i(s![1..3])?.shares_storage(&a));
    /// assert_eq!(a.i(s![&a.gt(2)?])?.to_vec::<i64>()?, [3, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn i(&self, index: impl AsRef<[Index]>) -> Result<Tensor> {
        let (target, tensors) = sliced(self, index.as_ref()).map_err(|e| e.op("index"))?;
        if tensors.is_empty() {
            return Ok(target);
        }
        target.indexed(&tensors)
    }

    /// Writes `value`, broadcast and cast, at an index: PyTorch's `x[index] = value`. Leading dims of size
    /// 1 of the value are dropped. Of places that index tensors name repeatedly, the last value stays.
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
        let op = "index_put_";
        if let [Index::Bool(false)] = index.as_ref() {
            return Ok(());
        }
        let (target, tensors) = sliced(self, index.as_ref()).map_err(|e| e.op(op))?;
        let mut value = value.clone();
        while value.dim() > 0
            && value.shape()[0] == 1
            && (value.dim() > target.dim() || !tensors.is_empty())
        {
            value = value.select(0, 0)?;
        }
        if tensors.is_empty() {
            return target.copy_(&value).map_err(|e| e.op(op));
        }
        target.put_indexed_(&tensors, &value.to(self.dtype())?, false)
    }

    /// Adds `value`, broadcast, at an index; places that index tensors name repeatedly count each time: PyTorch's
    /// `index_put_` with `accumulate`.
    ///
    /// # Errors
    /// As [`Tensor::i`]; a value of another dtype or that does not broadcast; overlap.
    ///
    /// ```
    /// # use osteon_autograd::{s, Tensor};
    /// let x = Tensor::new([0i64, 0, 0])?;
    /// let places = Tensor::new([1i64, 1, 2])?;
    /// x.index_put_accumulate_(s![&places], &Tensor::new(5i64)?)?;
    /// assert_eq!(x.to_vec::<i64>()?, [0, 10, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_put_accumulate_(&self, index: impl AsRef<[Index]>, value: &Tensor) -> Result<()> {
        let (target, tensors) = sliced(self, index.as_ref()).map_err(|e| e.op("index_put_"))?;
        target.put_indexed_(&tensors, value, true)
    }

    /// A copy with `value`, of the same dtype, written at an index: [`Tensor::index_put_`] out of place. The copy keeps the
    /// order of dims.
    ///
    /// # Errors
    /// As [`Tensor::index_put_`]; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{s, Tensor};
    /// let x = Tensor::new([0i64, 0, 0])?;
    /// let y = x.index_put(s![1..3], &Tensor::new([7i64, 8])?)?;
    /// assert_eq!(y.to_vec::<i64>()?, [0, 7, 8]);
    /// assert_eq!(x.to_vec::<i64>()?, [0, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_put(&self, index: impl AsRef<[Index]>, value: &Tensor) -> Result<Tensor> {
        self.changed(MemoryFormat::Preserve, |x| x.index_put_(index, value))
    }

    /// A copy with `value` added at an index: [`Tensor::index_put_accumulate_`] out of place.
    ///
    /// # Errors
    /// As there; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{s, Tensor};
    /// let places = Tensor::new([0i64, 0])?;
    /// let y = Tensor::new([1i64, 1])?.index_put_accumulate(s![&places], &Tensor::new(5i64)?)?;
    /// assert_eq!(y.to_vec::<i64>()?, [11, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn index_put_accumulate(
        &self,
        index: impl AsRef<[Index]>,
        value: &Tensor,
    ) -> Result<Tensor> {
        self.changed(MemoryFormat::Preserve, |x| {
            x.index_put_accumulate_(index, value)
        })
    }

    /// The elements at index tensors, one for each dim or none.
    #[track_caller]
    fn indexed(&self, tensors: &[Option<View>]) -> Result<Tensor> {
        record(self.as_view().index(tensors)?, &[self], |r, _| {
            let places = Places::of(tensors);
            Places::save(r, tensors)?;
            Ok(rule(move |b| {
                let (g, whole) = b.zeros(0)?;
                whole.put_indexed_(&places.saved(b)?, &g, true)?;
                one(whole)
            }))
        })
    }

    /// Writes or adds at index tensors.
    #[track_caller]
    pub(crate) fn put_indexed_(
        &self,
        tensors: &[Option<View>],
        value: &Tensor,
        accumulate: bool,
    ) -> Result<()> {
        let run = || {
            self.as_view()
                .index_put_(tensors, value.as_view(), accumulate)
        };
        let save = |r: &mut Recorder| Places::save(r, tensors);
        Recorder::in_place("index_put_", &[self, value], save, run, |_| {
            let places = Places::of(tensors);
            Ok(rule(move |b| {
                let (g, tensors) = (b.grad()?, places.saved(b)?);
                let kept = b.want(0, || {
                    if accumulate {
                        return Ok(g.clone());
                    }
                    let rest = g.copy()?;
                    rest.put_indexed_(&tensors, &g.new_zeros([])?, false)?;
                    Ok(rest)
                })?;
                two(kept, b.want(1, || g.indexed(&tensors))?)
            }))
        })
    }
}

/// Which dims have index tensors, and these as what a node saves.
struct Places(Vec<bool>);

impl Places {
    fn of(tensors: &[Option<View>]) -> Places {
        Places(tensors.iter().map(Option::is_some).collect())
    }

    fn save(r: &mut Recorder, tensors: &[Option<View>]) -> Result<()> {
        tensors.iter().flatten().try_for_each(|t| r.save_view(t))
    }

    fn saved(&self, b: &Back<'_>) -> Result<Vec<Option<View>>> {
        let mut next = 0;
        let place = |&there: &bool| {
            let tensor = there.then(|| b.saved(next)).transpose()?;
            next += usize::from(there);
            Ok(tensor.map(|t| t.as_view().clone()))
        };
        self.0.iter().map(place).collect()
    }
}

/// What integers, slices and new dims make of a tensor, and the tensors in the index, each at the first dim that it
/// takes. No tensors, no list.
#[track_caller]
fn sliced(of: &Tensor, index: &[Index]) -> Result<(Tensor, Vec<Option<View>>)> {
    let (layout, tensors) = looked(of.layout(), index, of.device())?;
    if !tensors.is_empty() && layout == *of.layout() {
        return Ok((of.clone(), tensors));
    }
    let view = of.as_view().with_layout(layout, "index")?;
    let target = viewed(of, view, || {
        Strided::over(of, |l| Ok(looked(l, index, of.device())?.0))
    })?;
    Ok((target, tensors))
}

/// The same of a layout.
#[track_caller]
fn looked(layout: &Layout, index: &[Index], device: Device) -> Result<(Layout, Vec<Option<View>>)> {
    let taken: usize = index.iter().map(dims_taken).sum();
    let left = layout.rank().checked_sub(taken).ok_or_else(|| {
        Error::new(
            Kind::Index,
            format!("too many indices for shape {:?}: {taken}", layout.sizes()),
        )
    })?;
    let mut layout = layout.clone();
    let mut dim = 0;
    let mut tensors = Tensors::default();
    let mut ellipsis = Some(left);
    for item in index {
        let d = dim as isize;
        match item {
            Index::Int(i) => layout = layout.select(d, *i)?,
            Index::Slice { start, end, step } => {
                layout = layout.slice(d, *start, *end, *step)?;
                dim += 1;
            }
            Index::NewAxis => {
                layout = layout.unsqueeze(d)?;
                dim += 1;
            }
            // A second one stands for nothing, as in PyTorch.
            Index::Ellipsis => dim += ellipsis.take().unwrap_or(0),
            Index::Bool(b) => {
                layout = layout.unsqueeze(d)?;
                tensors.push(dim, truth(*b, &device)?, 1);
                dim += 1;
            }
            Index::Tensor(t) if t.dim() == 0 && is_truth(t) => {
                layout = layout.unsqueeze(d)?;
                tensors.push(dim, truth(t.item::<bool>()?, &device)?, 1);
                dim += 1;
            }
            Index::Tensor(t) if t.dim() == 0 && t.dtype().is_integer() => {
                layout = layout.select(d, t.item::<i64>()? as isize)?;
            }
            Index::Tensor(t) => {
                tensors.push(dim, t.as_view().clone(), dims_taken(item));
                dim += dims_taken(item);
            }
        }
    }
    Ok((layout, tensors.list))
}

/// Index tensors, with `None` for the dims between them.
#[derive(Default)]
struct Tensors {
    list: Vec<Option<View>>,
    /// The dims that the list covers.
    dims: usize,
}

impl Tensors {
    fn push(&mut self, dim: usize, tensor: View, takes: usize) {
        self.list.resize(self.list.len() + dim - self.dims, None);
        self.list.push(Some(tensor));
        self.dims = dim + takes;
    }
}

fn is_truth(tensor: &Tensor) -> bool {
    matches!(tensor.dtype(), DType::Bool | DType::U8)
}

/// The dims of the tensor that an item stands for.
fn dims_taken(item: &Index) -> usize {
    match item {
        Index::Int(_) | Index::Slice { .. } => 1,
        Index::NewAxis | Index::Ellipsis | Index::Bool(_) => 0,
        Index::Tensor(t) if is_truth(t) => t.dim(),
        Index::Tensor(_) => 1,
    }
}

/// The index into a new dim of size 1 that keeps it, or empties it.
#[track_caller]
fn truth(value: bool, device: &Device) -> Result<View> {
    let indices: &[i64] = if value { &[0] } else { &[] };
    View::from_slice(indices, &[indices.len()], device)
}
