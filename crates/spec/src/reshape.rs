//! The same elements in another shape: a view where strides can express it, else the reason why
//! not.

use crate::dims::copied;
use crate::{Dims, Error, Kind, Layout, MAX_RANK, Result, checked_product, wrap_dim};
use std::fmt;

/// What `reshape` to a shape would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReshapeInfo {
    /// A view of the same storage.
    View(Layout),
    /// A copy: strides cannot express the shape.
    Copy {
        /// The layout that is reshaped.
        from: Layout,
        /// The shape of the result.
        shape: Dims,
        /// The dimensions that force the copy.
        blocked: Blocked,
    },
}

impl ReshapeInfo {
    /// Whether the result is a view.
    pub fn is_view(&self) -> bool {
        matches!(self, ReshapeInfo::View(_))
    }
}

/// Two neighbouring dimensions (up to those of size 1) that one new dimension would have to span,
/// and cannot, because a step of the outer one is not the whole of the inner one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The outer and the inner dimension.
    pub dims: (usize, usize),
    /// Their sizes.
    pub sizes: (usize, usize),
    /// Their strides.
    pub strides: (usize, usize),
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocked {
            dims,
            sizes,
            strides,
        } = self;
        write!(
            f,
            "dimensions {} and {} do not merge: a step of dimension {} is {} elements, not \
             the {} that dimension {} spans (size {} x stride {})",
            dims.0,
            dims.1,
            dims.0,
            strides.0,
            sizes.1 * strides.1,
            dims.1,
            sizes.1,
            strides.1,
        )
    }
}

impl fmt::Display for ReshapeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReshapeInfo::View(layout) => write!(f, "a view, {layout}: no element moves"),
            ReshapeInfo::Copy {
                from,
                shape,
                blocked,
            } => {
                write!(
                    f,
                    "a copy to shape {:?}: in {from} {blocked}",
                    shape.as_slice()
                )
            }
        }
    }
}

/// A shape for so many elements, where one -1 stands for what is left.
///
/// # Errors [`Kind::Shape`] when the sizes do not multiply to `numel`, when one is below -1 or two
/// are -1, and when -1 could be anything because another size is 0.
///
/// ```
/// use osteon_spec::infer_size;
/// assert_eq!(infer_size(&[2, -1], 6).unwrap().as_slice(), [2, 3]);
/// ```
#[inline]
pub fn infer_size(shape: &[isize], numel: usize) -> Result<Dims> {
    let mut sizes = Dims::with_capacity(shape.len());
    let mut inferred = None;
    for (i, &n) in shape.iter().enumerate() {
        if n == -1 && inferred.is_none() {
            inferred = Some(i);
            sizes.push(1);
        } else {
            sizes.push(usize::try_from(n).map_err(|_| bad_size(shape, i))?);
        }
    }
    // A product that overflows is not `numel` either.
    match (checked_product(&sizes).ok(), inferred) {
        (Some(known), None) if known == numel => {}
        (Some(known), Some(i)) if known != 0 && numel.is_multiple_of(known) => {
            sizes[i] = numel / known
        }
        (known, inferred) => {
            return Err(wrong_product(
                shape,
                numel,
                known == Some(0) && inferred.is_some(),
            ));
        }
    }
    Ok(sizes)
}

#[cold]
fn bad_size(shape: &[isize], i: usize) -> Error {
    Error::new(
        Kind::Shape,
        if shape[i] == -1 {
            format!("only one dimension can be inferred, but shape {shape:?} has more than one -1")
        } else {
            format!(
                "invalid shape dimension {} at index {i} of shape {shape:?}",
                shape[i]
            )
        },
    )
}

#[cold]
fn wrong_product(shape: &[isize], numel: usize, ambiguous: bool) -> Error {
    Error::new(
        Kind::Shape,
        if ambiguous && numel == 0 {
            format!(
                "cannot reshape tensor of 0 elements into shape {shape:?}: the unspecified \
                 dimension size -1 can be any value and is ambiguous"
            )
        } else {
            format!("shape '{shape:?}' is invalid for input of size {numel}")
        },
    )
}

impl Layout {
    /// The same elements in another shape, without moving one. One size may be -1.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the sizes do not multiply to the number of elements, [`Kind::Layout`]
    /// when strides cannot express the shape (`reshape` would copy).
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[2, 6]).unwrap();
    /// assert_eq!(x.view(&[2, -1, 2]).unwrap().to_string(), "(2, 3, 2)@(6, 2, 1)");
    /// assert!(x.t().unwrap().view(&[12]).unwrap_err().is_layout());
    /// ```
    #[inline]
    pub fn view(&self, shape: &[isize]) -> Result<Layout> {
        let shape = self.inferred(shape).map_err(|e| e.op("view"))?;
        self.try_view(&shape)
            .map_err(|blocked| view_is_blocked(self, &shape, &blocked))
    }

    /// Whether `reshape` to this shape is a view or a copy, and why. Nothing is done.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the sizes do not multiply to the number of elements.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[3, 4]).unwrap().t().unwrap();
    /// assert_eq!(
    ///     x.reshape_info(&[12]).unwrap().to_string(),
    ///     "a copy to shape [12]: in (4, 3)@(1, 4) dimensions 0 and 1 do not merge: a step of \
    ///      dimension 0 is 1 elements, not the 12 that dimension 1 spans (size 3 x stride 4)"
    /// );
    /// ```
    pub fn reshape_info(&self, shape: &[isize]) -> Result<ReshapeInfo> {
        let shape = self.inferred(shape).map_err(|e| e.op("reshape"))?;
        Ok(self.reshaped(shape))
    }

    /// The dimensions from `start_dim` to `end_dim` as one; `None` where that is the tensor itself.
    ///
    /// # Errors
    /// [`Kind::Index`] for a dimension out of range, [`Kind::Value`] when the start comes after the
    /// end, [`Kind::Shape`] when their product overflows (beside a size of 0).
    pub fn flatten(&self, start_dim: isize, end_dim: isize) -> Result<Option<ReshapeInfo>> {
        let start = wrap_dim(start_dim, self.rank()).map_err(|e| e.op("flatten"))?;
        let end = wrap_dim(end_dim, self.rank()).map_err(|e| e.op("flatten"))?;
        if start > end {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "start_dim cannot come after end_dim, got {start_dim} and {end_dim} \
                    for shape {:?}",
                    self.sizes()
                ),
            )
            .op("flatten"));
        }
        if self.rank() > 0 && start == end {
            return Ok(None);
        }
        let (sizes, end) = (self.sizes(), (end + 1).min(self.rank()));
        let merged = checked_product(&sizes[start..end]).map_err(|e| e.op("flatten"))?;
        let mut shape = copied(&sizes[..start]);
        shape.push(merged);
        shape.extend_from_slice(&sizes[end..]);
        Ok(Some(self.reshaped(shape)))
    }

    /// One dimension as several, whose sizes multiply to its size; one may be -1. Always a view.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the sizes do not multiply to the dimension's or are none,
    /// [`Kind::Index`] for a dimension out of range, [`Kind::Value`] for rank 0.
    pub fn unflatten(&self, dim: isize, sizes: &[isize]) -> Result<Layout> {
        let shape = || -> Result<Dims> {
            if self.rank() == 0 {
                return Err(Error::new(
                    Kind::Value,
                    "cannot be applied to a 0-dim tensor; unsqueeze(0) first",
                ));
            }
            let d = wrap_dim(dim, self.rank())?;
            if sizes.is_empty() {
                return Err(Error::new(Kind::Shape, "sizes must be non-empty"));
            }
            let parts = infer_size(sizes, self.sizes()[d]).map_err(|e| {
                e.context(format_args!(
                    "sizes {sizes:?} do not multiply to size {} of dimension {d} of shape {:?}",
                    self.sizes()[d],
                    self.sizes()
                ))
            })?;
            let mut shape = copied(self.sizes());
            shape.remove(d);
            shape.insert_from_slice(d, &parts);
            rank_fits(shape.len())?;
            Ok(shape)
        };
        let shape = shape().map_err(|e| e.op("unflatten"))?;
        self.try_view(&shape)
            .map_err(|blocked| view_is_blocked(self, &shape, &blocked).op("unflatten"))
    }

    #[inline]
    fn inferred(&self, shape: &[isize]) -> Result<Dims> {
        rank_fits(shape.len())?;
        infer_size(shape, self.numel())
    }

    fn reshaped(&self, shape: Dims) -> ReshapeInfo {
        match self.try_view(&shape) {
            Ok(view) => ReshapeInfo::View(view),
            Err(blocked) => ReshapeInfo::Copy {
                from: self.clone(),
                shape,
                blocked,
            },
        }
    }

    /// `shape` has as many elements as this layout and at most 64 dimensions.
    #[inline]
    fn try_view(&self, shape: &[usize]) -> Result<Layout, Blocked> {
        let numel = self.numel();
        debug_assert_eq!(checked_product(shape).ok(), Some(numel));
        let strides = if numel == 0 && shape == self.sizes() {
            copied(self.strides())
        } else if numel == 0 {
            empty_strides(shape)
        } else {
            self.view_strides(shape)?
        };
        // L1: the rank was checked. L2: the product is the same. L3: so are the positions reached.
        Ok(Layout::new_unchecked(copied(shape), strides, self.offset()))
    }

    /// The strides of a non-empty layout in another shape.
    ///
    /// Old dimensions are gathered from the last into chunks that one stride walks. The new
    /// dimensions, again from the last, must split each chunk exactly.
    #[inline]
    fn view_strides(&self, shape: &[usize]) -> Result<Dims, Blocked> {
        let (sizes, old) = (self.sizes(), self.strides());
        let mut strides = Dims::from_elem(1, shape.len());
        let mut new = shape.len();
        let mut base = old.last().copied().unwrap_or(1);
        let mut chunk = 1;
        for d in (0..sizes.len()).rev() {
            chunk *= sizes[d];
            let grows = d > 0 && (sizes[d - 1] == 1 || Some(old[d - 1]) == base.checked_mul(chunk));
            if grows {
                continue;
            }
            let mut consumed = 1;
            while new > 0 && (consumed < chunk || shape[new - 1] == 1) {
                new -= 1;
                strides[new] = Layout::stride_of(base, consumed);
                consumed *= shape[new];
            }
            if consumed != chunk {
                return Err(self.blocked_before(d));
            }
            if d > 0 {
                base = old[d - 1];
                chunk = 1;
            }
        }
        Ok(strides)
    }

    /// The chunk of old dimensions that ends at `d` was too small for a new dimension.
    #[cold]
    fn blocked_before(&self, d: usize) -> Blocked {
        // A chunk of one element blocks nothing, so that one of its dimensions is larger than 1;
        // and the products are equal, so that there is a dimension before it, larger than 1 as it
        // did not join the chunk.
        let inner = (d..self.rank()).find(|&i| self.sizes()[i] > 1).unwrap_or(d);
        let outer = d.saturating_sub(1);
        Blocked {
            dims: (outer, inner),
            sizes: (self.sizes()[outer], self.sizes()[inner]),
            strides: (self.strides()[outer], self.strides()[inner]),
        }
    }
}

/// Strides for a shape without elements: row-major, a size of 0 counted as 1.
fn empty_strides(shape: &[usize]) -> Dims {
    let mut strides = Dims::from_elem(1, shape.len());
    for d in (1..shape.len()).rev() {
        strides[d - 1] = Layout::stride_of(strides[d], shape[d].max(1));
    }
    strides
}

fn rank_fits(rank: usize) -> Result<()> {
    if rank > MAX_RANK {
        return Err(Error::new(
            Kind::Shape,
            format!("tensors have at most {MAX_RANK} dimensions, got {rank}"),
        ));
    }
    Ok(())
}

#[cold]
fn view_is_blocked(layout: &Layout, shape: &[usize], blocked: &Blocked) -> Error {
    Error::new(
        Kind::Layout,
        format!(
            "shape {shape:?} is not compatible with the size and stride of {layout}: \
            {blocked}; use reshape(...), which copies"
        ),
    )
    .op("view")
}
