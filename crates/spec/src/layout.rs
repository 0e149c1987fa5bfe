//! A tensor's shape over its storage: sizes, strides and offset, in elements. Pure arithmetic.

use crate::dims::{Dims, MAX_RANK, checked_product, copied};
use crate::{Error, Kind, Result};
use std::fmt;

/// Sizes, strides and offset, in elements.
///
/// Invariants, checked by every constructor:
/// - **L1** `sizes.len() == strides.len() <= MAX_RANK`.
/// - **L2** every size, every stride and the product of sizes fit `isize`.
/// - **L3** `offset + Σ (size-1)·stride + 1`, the number of elements that a storage must have, fits
///   `isize` after multiplication by 16, the widest element (the sum counts only when no size is 0; the
///   offset fits on its own always).
#[derive(PartialEq, Eq, Hash)]
pub struct Layout {
    sizes: Dims,
    strides: Dims,
    offset: usize,
}

/// The most elements that an offset or extent may reach: `isize::MAX` bytes of the widest element.
pub(crate) const MAX_EXTENT: usize = isize::MAX as usize / 16;

impl Layout {
    /// A layout of exactly these sizes, strides and offset.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the lists differ in length, the rank exceeds 64, or a number overflows.
    pub fn new(sizes: Dims, strides: Dims, offset: usize) -> Result<Layout> {
        if sizes.len() != strides.len() {
            return Err(Error::new(
                Kind::Shape,
                format!("mismatch in length of strides and shape: {sizes:?} and {strides:?}"),
            ));
        }
        if sizes.len() > MAX_RANK {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "tensors have at most {MAX_RANK} dimensions, got {}",
                    sizes.len()
                ),
            ));
        }
        let numel = checked_product(&sizes)?;
        // A size of 0 hides the other sizes from the product, a size of 1 its stride from the
        // extent.
        if sizes
            .iter()
            .chain(&strides)
            .any(|&n| n > isize::MAX as usize)
        {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "a size or stride does not fit 63 bits in sizes {sizes:?}, strides {strides:?}"
                ),
            ));
        }
        let extent = if numel == 0 {
            Some(offset)
        } else {
            sizes
                .iter()
                .zip(&strides)
                .try_fold(offset, |sum, (&n, &s)| {
                    sum.checked_add((n - 1).checked_mul(s)?)
                })
        };
        match extent {
            Some(e) if e < MAX_EXTENT => Ok(Layout {
                sizes,
                strides,
                offset,
            }),
            _ => Err(Error::new(
                Kind::Shape,
                format!(
                    "storage size calculation overflowed with sizes {sizes:?}, strides \
                     {strides:?} and offset {offset}"
                ),
            )),
        }
    }

    /// The same without the checks, for arithmetic that keeps L1–L3 by construction.
    #[inline]
    pub(crate) fn new_unchecked(sizes: Dims, strides: Dims, offset: usize) -> Layout {
        let layout = Layout {
            sizes,
            strides,
            offset,
        };
        layout.debug_check();
        layout
    }

    /// The stride of `n` steps of a stride. It can only overflow where it is never walked, and then
    /// stays at the most that L2 allows.
    #[inline]
    pub(crate) fn stride_of(stride: usize, n: usize) -> usize {
        stride.saturating_mul(n).min(isize::MAX as usize)
    }

    /// A copy, changed by arithmetic that keeps L1-L3. The way to make a view in a few
    /// nanoseconds: nothing is moved about.
    #[inline]
    pub(crate) fn edited(&self, edit: impl FnOnce(&mut Dims, &mut Dims, &mut usize)) -> Layout {
        let mut layout = self.clone();
        edit(&mut layout.sizes, &mut layout.strides, &mut layout.offset);
        layout.debug_check();
        layout
    }

    #[inline]
    fn debug_check(&self) {
        debug_assert!(
            Layout::new(self.sizes.clone(), self.strides.clone(), self.offset).is_ok(),
            "L1-L3 broken by {self:?}"
        );
    }

    /// Row-major sizes from offset 0. Strides count a size of 0 as 1, as PyTorch's do.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the rank exceeds 64 or the number of elements overflows.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// assert_eq!(Layout::contiguous(&[2, 0, 3]).unwrap().strides(), [3, 3, 1]);
    /// ```
    pub fn contiguous(sizes: &[usize]) -> Result<Layout> {
        let (sizes, mut strides) = (copied(sizes), copied(sizes));
        let mut next: usize = 1;
        for stride in strides.iter_mut().rev() {
            let size = std::mem::replace(stride, next);
            next = Layout::stride_of(next, size.max(1));
        }
        if next < MAX_EXTENT && sizes.len() <= MAX_RANK {
            // The product of all sizes but those that are 0 is small enough for L2 and L3.
            return Ok(Layout::new_unchecked(sizes, strides, 0));
        }
        Layout::new(sizes, strides, 0)
    }

    /// The layout of one element at offset 0, without dimensions.
    #[inline]
    pub fn scalar() -> Layout {
        // One element satisfies L1-L3.
        Layout::new_unchecked(Dims::new(), Dims::new(), 0)
    }

    /// The number of dimensions.
    #[inline]
    pub fn rank(&self) -> usize {
        self.sizes.len()
    }

    /// The sizes.
    #[inline]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The strides, in elements.
    #[inline]
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The first element's position in the storage, in elements.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        // L2: the product fits, or a size is 0 and whatever wrapped before ends at 0.
        self.sizes.iter().fold(1, |n, &size| n.wrapping_mul(size))
    }

    /// The number of elements that a storage must have for this layout: the last position + 1, or
    /// 0 for a layout without elements.
    #[inline]
    pub fn required_len(&self) -> usize {
        if self.numel() == 0 {
            return 0;
        }
        // L3: the sum fits.
        let span: usize = self
            .sizes
            .iter()
            .zip(&self.strides)
            .map(|(&n, &s)| (n - 1) * s)
            .sum();
        self.offset + span + 1
    }

    /// The same positions, each once: dims of stride 0, which repeat them, have size 1.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let rows = Layout::contiguous(&[3]).unwrap().expand(&[1000, 3]).unwrap();
    /// assert_eq!(rows.each_once().sizes(), [1, 3]);
    /// ```
    pub fn each_once(&self) -> Layout {
        let size = |(&n, &s): (&usize, &usize)| if s == 0 { n.min(1) } else { n };
        let sizes = self.sizes.iter().zip(&self.strides).map(size).collect();
        // Smaller sizes keep L1-L3.
        Layout::new_unchecked(sizes, self.strides.clone(), self.offset)
    }

    /// The same dims at another offset.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the reach overflows.
    pub fn with_offset(&self, offset: usize) -> Result<Layout> {
        Layout::new(self.sizes.clone(), self.strides.clone(), offset)
    }
}

impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout {
            sizes: copied(&self.sizes),
            strides: copied(&self.strides),
            offset: self.offset,
        }
    }
}

/// `(2, 3)@(3, 1)+4`, the notation of the documentation; the offset is left out when 0.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, v: &[usize]| {
            write!(f, "(")?;
            for (i, x) in v.iter().enumerate() {
                write!(f, "{}{x}", if i > 0 { ", " } else { "" })?;
            }
            write!(f, ")")
        };
        list(f, &self.sizes)?;
        write!(f, "@")?;
        list(f, &self.strides)?;
        if self.offset != 0 {
            write!(f, "+{}", self.offset)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
