//! Views of one element as many: expand, and the shape that several shapes broadcast to.

use crate::dims::copied;
use crate::{Dims, Error, Kind, Layout, MAX_RANK, Result, checked_product};

/// The shape that all of these broadcast to: aligned at the last dimension, sizes equal or 1.
///
/// # Errors
/// [`Kind::Shape`] when two sizes differ and neither is 1, and when the number of elements
/// overflows.
///
/// ```
/// use osteon_spec::broadcast_shapes;
/// assert_eq!(broadcast_shapes(&[&[3, 1], &[2, 1, 4]]).unwrap().as_slice(), [2, 3, 4]);
/// assert!(broadcast_shapes(&[&[3], &[4]]).is_err());
/// ```
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Dims> {
    let Some((first, rest)) = shapes.split_first() else {
        return Ok(Dims::new());
    };
    let mut result = copied(first);
    let mut grew = false;
    for shape in rest.iter().filter(|shape| *shape != first) {
        grew = true;
        let missing = shape.len().saturating_sub(result.len());
        result.insert_many(0, std::iter::repeat_n(1, missing));
        let lead = result.len() - shape.len();
        for (d, (to, &size)) in result[lead..].iter_mut().zip(*shape).enumerate() {
            if *to == 1 {
                *to = size;
            } else if size != 1 && size != *to {
                let sizes = (*to, size);
                return Err(does_not_broadcast(shapes, sizes, lead + d));
            }
        }
    }
    if grew {
        checked_product(&result)?;
    }
    Ok(result)
}

#[cold]
fn does_not_broadcast(shapes: &[&[usize]], (a, b): (usize, usize), d: usize) -> Error {
    let list = shapes
        .iter()
        .map(|s| format!("{s:?}"))
        .collect::<Vec<_>>()
        .join(" and ");
    Error::new(
        Kind::Shape,
        format!(
            "shapes {list} do not broadcast: size {a} must match size {b} at non-singleton \
             dimension {d}"
        ),
    )
}

impl Layout {
    /// Dimensions of size 1 seen as any size, by stride 0; new dimensions in front; -1 keeps a
    /// size.
    ///
    /// # Errors
    /// [`Kind::Shape`] when another size than 1 would change, when there are too few or too many
    /// dimensions, for a negative size, and when the number of elements overflows.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[3, 1]).unwrap();
    /// assert_eq!(x.expand(&[2, -1, 4]).unwrap().to_string(), "(2, 3, 4)@(0, 1, 0)");
    /// ```
    #[inline]
    pub fn expand(&self, sizes: &[isize]) -> Result<Layout> {
        self.expanded(sizes, |i, existing| match (sizes[i], existing) {
            (-1, existing) => existing,
            (n, _) => usize::try_from(n).ok(),
        })
    }

    /// [`expand`](Layout::expand) to a shape without -1, such as [`broadcast_shapes`] gives.
    ///
    /// # Errors
    /// As for `expand`.
    #[inline]
    pub fn expand_to(&self, shape: &[usize]) -> Result<Layout> {
        self.expanded(shape, |i, _| Some(shape[i]))
    }

    /// `target(i, existing)` is the size of dimension `i`, `None` when it is not one.
    #[inline]
    fn expanded<T: std::fmt::Debug>(
        &self,
        targets: &[T],
        target: impl Fn(usize, Option<usize>) -> Option<usize>,
    ) -> Result<Layout> {
        let rank = targets.len();
        let Some(lead) = rank.checked_sub(self.rank()).filter(|_| rank <= MAX_RANK) else {
            return Err(cannot_expand(self, targets, None));
        };
        let mut sizes = Dims::from_elem(0, rank);
        let mut strides = Dims::from_elem(0, rank);
        let mut grew = false;
        for i in (0..rank).rev() {
            let existing = i.checked_sub(lead).map(|d| self.sizes()[d]);
            let Some(size) = target(i, existing) else {
                return Err(cannot_expand(self, targets, Some(i)));
            };
            sizes[i] = size;
            if size == existing.unwrap_or(1) {
                strides[i] = match i.checked_sub(lead) {
                    Some(d) => self.strides()[d],
                    // A new dimension of size 1 steps over the next one; over a scalar it steps
                    // nowhere.
                    None if self.rank() > 0 => Layout::stride_of(strides[i + 1], sizes[i + 1]),
                    None => 0,
                };
            } else if existing.unwrap_or(1) == 1 {
                grew = true;
            } else {
                return Err(cannot_expand(self, targets, Some(i)));
            }
        }
        if grew {
            // L2 is the one invariant that stride 0 can break.
            if sizes.iter().any(|&n| n > isize::MAX as usize) {
                return Err(cannot_expand(self, targets, None));
            }
            checked_product(&sizes).map_err(|e| e.op("expand"))?;
        }
        // L1: the rank was checked. L3: what grew has stride 0.
        Ok(Layout::new_unchecked(sizes, strides, self.offset()))
    }
}

#[cold]
fn cannot_expand<T: std::fmt::Debug>(layout: &Layout, targets: &[T], at: Option<usize>) -> Error {
    let (shape, rank) = (layout.sizes(), layout.rank());
    let message = match at {
        None => format!(
            "shape {shape:?} does not expand to {targets:?}: the number of sizes must be \
             from {rank} to {MAX_RANK} and each fit 63 bits"
        ),
        Some(i) => match i.checked_sub(targets.len() - rank) {
            Some(d) => format!(
                "the expanded size of the tensor ({:?}) must match the existing size ({}) at \
                 non-singleton dimension {i}. Target sizes: {targets:?}. Tensor sizes: \
                 {shape:?}",
                targets[i], shape[d]
            ),
            None => format!(
                "the expanded size of the tensor ({:?}) isn't allowed in a leading, \
                 non-existing dimension {i}. Target sizes: {targets:?}. Tensor sizes: \
                 {shape:?}",
                targets[i]
            ),
        },
    };
    Error::new(Kind::Shape, message).op("expand")
}
