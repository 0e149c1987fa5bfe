//! What a layout is: contiguous, channels-last, dense.

use crate::dims::copied;
use crate::{Dims, Error, Kind, Layout, Result};
use std::fmt;

/// The order in which the dimensions of a dense tensor are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MemoryFormat {
    /// Row-major.
    #[default]
    Contiguous,
    /// The strides of the tensor that is copied, where they are dense; else its order of
    /// dimensions.
    Preserve,
    /// Rank 4, `(N, C, H, W)` laid out as N, H, W, C.
    ChannelsLast,
    /// Rank 5, `(N, C, D, H, W)` laid out as N, D, H, W, C.
    ChannelsLast3d,
}

/// PyTorch's name (`contiguous_format`, …), without the `torch.` prefix.
impl fmt::Display for MemoryFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MemoryFormat::Contiguous => "contiguous_format",
            MemoryFormat::Preserve => "preserve_format",
            MemoryFormat::ChannelsLast => "channels_last",
            MemoryFormat::ChannelsLast3d => "channels_last_3d",
        })
    }
}

/// The dimensions of a channels-last tensor, innermost first.
const CHANNELS_LAST: [usize; 4] = [1, 3, 2, 0];
const CHANNELS_LAST_3D: [usize; 5] = [1, 4, 3, 2, 0];

impl Layout {
    /// Whether the elements follow each other in row-major order without gaps. Strides of
    /// dimensions of size 1 do not matter, nor any where a size is 0; nor does the offset.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[2, 3]).unwrap();
    /// assert!(x.is_contiguous());
    /// assert!(!x.t().unwrap().is_contiguous());
    /// ```
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1usize;
        for (&size, &stride) in self.sizes().iter().zip(self.strides()).rev() {
            if size != 1 {
                if stride != expected {
                    return self.sizes().contains(&0);
                }
                expected = expected.wrapping_mul(size);
            }
        }
        true
    }

    /// Whether a rank-4 layout is dense in the order N, H, W, C. A layout can be both this and
    /// contiguous (one channel, or one pixel).
    pub fn is_channels_last(&self) -> bool {
        self.is_dense_in(&CHANNELS_LAST)
    }

    /// Whether a rank-5 layout is dense in the order N, D, H, W, C.
    pub fn is_channels_last_3d(&self) -> bool {
        self.is_dense_in(&CHANNELS_LAST_3D)
    }

    fn is_dense_in(&self, innermost_first: &[usize]) -> bool {
        let mut expected = 1usize;
        self.rank() == innermost_first.len()
            && innermost_first.iter().all(|&d| {
                let size = self.sizes()[d];
                if size == 1 {
                    return true;
                }
                let fits = self.strides()[d] == expected;
                expected = expected.wrapping_mul(size);
                fits
            })
    }

    /// Whether the elements lie densely in the order of a format; for [`MemoryFormat::Preserve`], in any.
    ///
    /// ```
    /// use osteon_spec::{Layout, MemoryFormat};
    /// let x = Layout::contiguous(&[2, 3]).unwrap().t().unwrap();
    /// assert!(!x.is_contiguous_in(MemoryFormat::Contiguous));
    /// assert!(x.is_contiguous_in(MemoryFormat::Preserve));
    /// ```
    pub fn is_contiguous_in(&self, format: MemoryFormat) -> bool {
        match format {
            MemoryFormat::Contiguous => self.is_contiguous(),
            MemoryFormat::Preserve => self.is_non_overlapping_and_dense(),
            MemoryFormat::ChannelsLast => self.is_channels_last(),
            MemoryFormat::ChannelsLast3d => self.is_channels_last_3d(),
        }
    }

    /// The format that an operation passes on to its result: PyTorch's reading of the strides,
    /// which is stricter than [`Layout::is_channels_last`] in that strides of size-1 dimensions
    /// count, and looser in that gaps are allowed. Never [`MemoryFormat::Preserve`].
    pub fn suggest_memory_format(&self) -> MemoryFormat {
        if self.rank() == 4 && self.strides_ascend(&CHANNELS_LAST) {
            MemoryFormat::ChannelsLast
        } else if self.rank() == 5 && self.strides_ascend(&CHANNELS_LAST_3D) {
            MemoryFormat::ChannelsLast3d
        } else {
            MemoryFormat::Contiguous
        }
    }

    fn strides_ascend(&self, innermost_first: &[usize]) -> bool {
        let (sizes, strides) = (self.sizes(), self.strides());
        if strides[1] == 0 || sizes.contains(&0) {
            return false;
        }
        let mut least = 0;
        for &d in innermost_first {
            // With nothing but the channels before the batch, (N, 1, 1, 1) could be either.
            if strides[d] < least || (d == 0 && least == strides[1]) {
                return false;
            }
            least = strides[d].saturating_mul(sizes[d]);
        }
        true
    }

    /// Whether the elements fill a range of the storage, each position once, in any order of
    /// dimensions. True where there are no elements.
    pub fn is_non_overlapping_and_dense(&self) -> bool {
        if self.is_contiguous() {
            return true;
        }
        // Not empty (that is contiguous), so L2 holds for every partial product.
        let mut left: usize = self.sizes().iter().filter(|&&n| n > 1).count();
        let mut expected = 1;
        while left > 0 {
            // Two dims of the same stride never both fit: the next one needs a larger stride.
            let next = self
                .sizes()
                .iter()
                .zip(self.strides())
                .find(|&(&n, &s)| n > 1 && s == expected);
            match next {
                Some((&n, _)) => expected *= n,
                None => return false,
            }
            left -= 1;
        }
        true
    }

    /// A dense layout of these sizes from offset 0.
    ///
    /// # Errors
    /// [`Kind::Shape`] when the rank is wrong for the format or the number of elements overflows;
    /// [`Kind::Value`] for [`MemoryFormat::Preserve`], which needs a layout to preserve
    /// ([`Layout::like`]).
    pub fn dense(sizes: &[usize], format: MemoryFormat) -> Result<Layout> {
        let innermost_first: &[usize] = match format {
            MemoryFormat::Contiguous => return Layout::contiguous(sizes),
            MemoryFormat::Preserve => {
                return Err(Error::new(
                    Kind::Value,
                    "preserve_format needs a tensor to take after; use contiguous_format, \
                     channels_last or channels_last_3d",
                ));
            }
            MemoryFormat::ChannelsLast => &CHANNELS_LAST,
            MemoryFormat::ChannelsLast3d => &CHANNELS_LAST_3D,
        };
        if sizes.len() != innermost_first.len() {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "required rank {} tensor to use {format}, got shape {sizes:?}",
                    innermost_first.len()
                ),
            ));
        }
        Layout::new(
            copied(sizes),
            strides_in_order(sizes, innermost_first.iter().copied()),
            0,
        )
    }
}

/// Strides of a dense tensor whose dimensions are laid out in this order. As in PyTorch, a size
/// of 0 makes the strides further out 0: there is nothing to step over.
pub(crate) fn strides_in_order(
    sizes: &[usize],
    innermost_first: impl IntoIterator<Item = usize>,
) -> Dims {
    let mut strides = Dims::from_elem(0, sizes.len());
    let mut next: usize = 1;
    for d in innermost_first {
        strides[d] = next;
        next = Layout::stride_of(next, sizes[d]);
    }
    strides
}
