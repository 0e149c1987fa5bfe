//! Views of a part: select, slice, narrow, diagonal, unfold.

use crate::dims::copied;
use crate::layout::MAX_EXTENT;
use crate::{Error, Kind, Layout, Result, wrap_dim};

impl Layout {
    /// The dimension of an operation that needs one to exist.
    #[inline]
    fn existing_dim(&self, dim: isize) -> Result<usize> {
        if self.rank() == 0 {
            return Err(Error::new(
                Kind::Index,
                "cannot be applied to a 0-dim tensor; unsqueeze(0) first",
            ));
        }
        wrap_dim(dim, self.rank())
    }

    /// The offset `by` elements of dimension `d` further in.
    ///
    /// Where the element exists this is within L3. One past the end, or in a layout without
    /// elements whose strides are arbitrary, it may not be.
    #[inline]
    fn advanced(&self, d: usize, by: usize) -> Result<usize> {
        let offset = by
            .checked_mul(self.strides()[d])
            .and_then(|n| n.checked_add(self.offset()));
        match offset {
            Some(offset) if offset < MAX_EXTENT => Ok(offset),
            _ => Err(Error::new(
                Kind::Shape,
                format!("the storage offset overflows at index {by} of dimension {d} of {self}"),
            )),
        }
    }

    /// The part at one index of a dimension, without that dimension.
    ///
    /// # Errors
    /// [`Kind::Index`] for a dimension or index out of range and for rank 0.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[2, 3]).unwrap();
    /// assert_eq!(x.select(0, -1).unwrap().to_string(), "(3)@(1)+3");
    /// ```
    #[inline]
    pub fn select(&self, dim: isize, index: isize) -> Result<Layout> {
        let d = self.existing_dim(dim).map_err(|e| e.op("select"))?;
        let size = self.sizes()[d] as isize;
        if index < -size || index >= size {
            return Err(index_out_of_range(self, d, index).op("select"));
        }
        let i = if index < 0 { index + size } else { index } as usize;
        let offset = self.advanced(d, i).map_err(|e| e.op("select"))?;
        // L1-L3: the elements at one index are some of those that were there, and the size that
        // goes is not 0.
        Ok(self.edited(|sizes, strides, start| {
            sizes.remove(d);
            strides.remove(d);
            *start = offset;
        }))
    }

    /// `x[start:end:step]` along a dimension, with Python's meaning of missing, negative and
    /// too large bounds.
    ///
    /// # Errors
    /// [`Kind::Value`] unless the step is positive, [`Kind::Index`] for a dimension out of range
    /// and for rank 0.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[10]).unwrap();
    /// assert_eq!(x.slice(0, Some(-7), None, 2).unwrap().to_string(), "(4)@(2)+3");
    /// ```
    #[inline]
    pub fn slice(
        &self,
        dim: isize,
        start: Option<isize>,
        end: Option<isize>,
        step: isize,
    ) -> Result<Layout> {
        let d = self.existing_dim(dim).map_err(|e| e.op("slice"))?;
        if step <= 0 {
            return Err(bad_step(step).op("slice"));
        }
        let size = self.sizes()[d];
        let clamp = |i: isize| {
            let from_front = if i < 0 {
                i.saturating_add_unsigned(size)
            } else {
                i
            };
            (from_front.max(0) as usize).min(size)
        };
        let start = start.map_or(0, clamp);
        let end = end.map_or(size, clamp).max(start);
        self.sliced(d, start, end - start, step as usize)
            .map_err(|e| e.op("slice"))
    }

    /// `start <= size` and `start + len <= size`.
    #[inline]
    fn sliced(&self, d: usize, start: usize, len: usize, step: usize) -> Result<Layout> {
        let offset = self.advanced(d, start)?;
        // L1-L3: what is left was there before, and `advanced` checked the offset.
        Ok(self.edited(|sizes, strides, start| {
            sizes[d] = len.div_ceil(step);
            strides[d] = Layout::stride_of(strides[d], step);
            *start = offset;
        }))
    }

    /// `length` indices of a dimension, from `start` (negative from the back).
    ///
    /// # Errors
    /// [`Kind::Index`] for a start out of range, [`Kind::Value`] for a length that is negative or
    /// goes beyond the end, and for rank 0.
    #[inline]
    pub fn narrow(&self, dim: isize, start: isize, length: isize) -> Result<Layout> {
        if self.rank() == 0 {
            return Err(narrow_rank_0());
        }
        if length < 0 {
            return Err(negative_length(length));
        }
        let d = wrap_dim(dim, self.rank()).map_err(|e| e.op("narrow"))?;
        let size = self.sizes()[d] as isize;
        if start < -size || start > size {
            return Err(narrow_arguments(self, d, start, length));
        }
        let from = if start < 0 { start + size } else { start };
        if length > size - from {
            return Err(narrow_arguments(self, d, start, length));
        }
        self.sliced(d, from as usize, length as usize, 1)
            .map_err(|e| e.op("narrow"))
    }

    /// The part at each index of a dimension, without that dimension. Allocates the list.
    ///
    /// # Errors
    /// [`Kind::Index`] for a dimension out of range and for rank 0.
    pub fn unbind(&self, dim: isize) -> Result<Vec<Layout>> {
        let d = self.existing_dim(dim).map_err(|e| e.op("unbind"))?;
        let size = self.sizes()[d];
        crate::split::pieces(size, (0..size).map(|i| self.select(d as isize, i as isize)))
            .map_err(|e| e.op("unbind"))
    }

    /// The diagonal of two dimensions, `offset` above (or, negative, below) the main one, as a new
    /// last dimension.
    ///
    /// # Errors
    /// [`Kind::Value`] when both dimensions are the same, [`Kind::Index`] for one out of range.
    pub fn diagonal(&self, offset: isize, dim1: isize, dim2: isize) -> Result<Layout> {
        let d1 = wrap_dim(dim1, self.rank()).map_err(|e| e.op("diagonal"))?;
        let d2 = wrap_dim(dim2, self.rank()).map_err(|e| e.op("diagonal"))?;
        if d1 == d2 {
            return Err(Error::new(
                Kind::Value,
                format!("diagonal dimensions cannot be identical {dim1}, {dim2}"),
            )
            .op("diagonal"));
        }
        // The diagonal starts `down` rows down or `right` columns to the right.
        let right = offset.max(0) as usize;
        let down = offset.min(0).unsigned_abs();
        let rows = self.sizes()[d1].saturating_sub(down);
        let columns = self.sizes()[d2].saturating_sub(right);
        let len = rows.min(columns);
        // A diagonal outside keeps the offset.
        let start = match (len, down) {
            (0, _) => Ok(self.offset()),
            (_, 0) => self.advanced(d2, right),
            (_, _) => self.advanced(d1, down),
        }
        .map_err(|e| e.op("diagonal"))?;
        // Both fit 63 bits; their sum may overflow only where it is never walked.
        let stride = (self.strides()[d1] + self.strides()[d2]).min(isize::MAX as usize);
        // L1-L3: a diagonal's elements are some of those that were there.
        Ok(self.edited(|sizes, strides, offset| {
            for d in [d1.max(d2), d1.min(d2)] {
                sizes.remove(d);
                strides.remove(d);
            }
            sizes.push(len);
            strides.push(stride);
            *offset = start;
        }))
    }

    /// Every window of `size` indices of a dimension, `step` apart, as a new last dimension:
    /// windows overlap where `step < size`. Rank 0 counts as one element.
    ///
    /// # Errors
    /// [`Kind::Value`] when the window does not fit or is negative or the step is not positive,
    /// [`Kind::Index`] for a dimension out of range, [`Kind::Shape`] when the number of elements
    /// overflows.
    pub fn unfold(&self, dim: isize, size: isize, step: isize) -> Result<Layout> {
        let d = wrap_dim(dim, self.rank()).map_err(|e| e.op("unfold"))?;
        let available = self.sizes().get(d).copied().unwrap_or(1);
        if size < 0 || size as usize > available || step <= 0 {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "size {size} and step {step} do not fit dimension {d} of size \
                    {available}: size must be from 0 to {available}, step at least 1"
                ),
            )
            .op("unfold"));
        }
        let mut sizes = copied(self.sizes());
        let mut strides = copied(self.strides());
        sizes.push(size as usize);
        strides.push(self.strides().get(d).copied().unwrap_or(1));
        if self.rank() > 0 {
            sizes[d] = (available - size as usize) / step as usize + 1;
            strides[d] = Layout::stride_of(strides[d], step as usize);
        }
        // Overlapping windows have more elements than the storage: L2 must be checked.
        Layout::new(sizes, strides, self.offset()).map_err(|e| e.op("unfold"))
    }
}

#[cold]
fn index_out_of_range(layout: &Layout, d: usize, index: isize) -> Error {
    let size = layout.sizes()[d];
    Error::new(
        Kind::Index,
        format!(
            "index {index} out of range for tensor of size {:?} at dimension {d}: expected \
             -{size} <= index < {size}",
            layout.sizes()
        ),
    )
}

#[cold]
fn bad_step(step: isize) -> Error {
    let message = if step == 0 {
        "slice step cannot be zero".into()
    } else {
        format!("step must be greater than zero, got {step}; flip(dims) copies in reverse order")
    };
    Error::new(Kind::Value, message)
}

#[cold]
fn narrow_rank_0() -> Error {
    Error::new(
        Kind::Value,
        "cannot be applied to a 0-dim tensor; unsqueeze(0) first",
    )
    .op("narrow")
}

#[cold]
fn negative_length(length: isize) -> Error {
    Error::new(
        Kind::Value,
        format!("length must be non-negative, got {length}"),
    )
    .op("narrow")
}

#[cold]
fn narrow_arguments(layout: &Layout, d: usize, start: isize, length: isize) -> Error {
    let size = layout.sizes()[d] as isize;
    let of = format!("dimension {d} of shape {:?}", layout.sizes());
    if start < -size || start > size {
        Error::new(
            Kind::Index,
            format!(
                "start out of range of {of} (expected to be in range \
            of [{}, {size}], but got {start})",
                -size
            ),
        )
    } else {
        Error::new(
            Kind::Value,
            format!(
                "start ({start}) + length ({length}) exceeds the \
            size ({size}) of {of}"
            ),
        )
    }
    .op("narrow")
}
