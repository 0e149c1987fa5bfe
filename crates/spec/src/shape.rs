//! Views that add or drop dimensions of size 1, and `as_strided`, which takes any dimensions.

use crate::permute::repeated;
use crate::{Dims, Error, Kind, Layout, MAX_RANK, Result, wrap_dim};

impl Layout {
    /// Without the dimensions of size 1.
    #[inline]
    pub fn squeeze(&self) -> Layout {
        self.squeezed(|_| true)
    }

    /// Without those of these dimensions that have size 1. The others stay, without an error.
    ///
    /// # Errors
    /// [`Kind::Index`] for a dimension out of range, [`Kind::Value`] for one named twice.
    pub fn squeeze_dims(&self, dims: &[isize]) -> Result<Layout> {
        let mut named = 0u64;
        for &dim in dims {
            let bit = 1 << wrap_dim(dim, self.rank()).map_err(|e| e.op("squeeze"))?;
            if named & bit != 0 {
                return Err(repeated(dims).op("squeeze"));
            }
            named |= bit;
        }
        Ok(self.squeezed(|d| named & (1 << d) != 0))
    }

    #[inline]
    fn squeezed(&self, may_go: impl Fn(usize) -> bool) -> Layout {
        let (mut sizes, mut strides) = (Dims::new(), Dims::new());
        for (d, (&size, &stride)) in self.sizes().iter().zip(self.strides()).enumerate() {
            if size != 1 || !may_go(d) {
                sizes.push(size);
                strides.push(stride);
            }
        }
        // L1-L3: a dimension of size 1 counts in no product and no sum.
        Layout::new_unchecked(sizes, strides, self.offset())
    }

    /// A new dimension of size 1 before `dim` (negative from the back, -1 after the last).
    ///
    /// # Errors
    /// [`Kind::Index`] for a place out of range, [`Kind::Shape`] beyond rank 64.
    #[inline]
    pub fn unsqueeze(&self, dim: isize) -> Result<Layout> {
        if self.rank() == MAX_RANK {
            return Err(rank_is_full(self));
        }
        let d = wrap_dim(dim, self.rank() + 1).map_err(|e| e.op("unsqueeze"))?;
        let mut sizes = Dims::from_slice(self.sizes());
        let mut strides = Dims::from_slice(self.strides());
        // PyTorch's choice for a stride that is never walked: over the dimension now behind it.
        strides.insert(
            d,
            if d < self.rank() {
                Layout::stride_of(strides[d], sizes[d])
            } else {
                1
            },
        );
        sizes.insert(d, 1);
        // L1: the rank was below the limit. L2, L3: a size of 1 counts in no product and no sum.
        Ok(Layout::new_unchecked(sizes, strides, self.offset()))
    }

    /// Any sizes and strides over the same storage, from `offset` or this layout's own. They may
    /// overlap themselves, and reach outside this view: the caller compares
    /// [`required_len`](Layout::required_len) with the storage.
    ///
    /// # Errors [`Kind::Shape`] for lists of different lengths, a negative size or an overflow,
    /// [`Kind::Value`] for a negative stride or offset.
    pub fn as_strided(
        &self,
        sizes: &[isize],
        strides: &[isize],
        offset: Option<isize>,
    ) -> Result<Layout> {
        let list = |values: &[isize], kind: Kind, what: &str| -> Result<Dims> {
            let unsigned = values
                .iter()
                .map(|&n| usize::try_from(n).ok())
                .collect::<Option<Dims>>();
            unsigned.ok_or_else(|| {
                Error::new(
                    kind,
                    format!("negative {what} are not supported, got {values:?}"),
                )
            })
        };
        let parts = || -> Result<Layout> {
            let offset = match offset {
                None => self.offset(),
                Some(n) => usize::try_from(n).map_err(|_| {
                    Error::new(
                        Kind::Value,
                        format!(
                            "invalid storage offset {n}; it counts from the start of the storage"
                        ),
                    )
                })?,
            };
            Layout::new(
                list(sizes, Kind::Shape, "sizes")?,
                list(strides, Kind::Value, "strides")?,
                offset,
            )
        };
        parts().map_err(|e| e.op("as_strided"))
    }
}

#[cold]
fn rank_is_full(layout: &Layout) -> Error {
    Error::new(
        Kind::Shape,
        format!(
            "shape {:?} has {MAX_RANK} dimensions already, the most that a tensor may have",
            layout.sizes()
        ),
    )
    .op("unsqueeze")
}
