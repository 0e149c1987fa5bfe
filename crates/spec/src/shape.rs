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
        // L1-L3: a dimension of size 1 counts in no product and no sum.
        self.edited(|sizes, strides, _| {
            let mut kept = 0;
            for d in 0..sizes.len() {
                if sizes[d] != 1 || !may_go(d) {
                    (sizes[kept], strides[kept]) = (sizes[d], strides[d]);
                    kept += 1;
                }
            }
            sizes.truncate(kept);
            strides.truncate(kept);
        })
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
        // L1: the rank was below the limit. L2, L3: a size of 1 counts in no product and no sum.
        Ok(self.edited(|sizes, strides, _| {
            // PyTorch's choice for a stride that is never walked: over the dimension now behind it.
            let stride = match strides.get(d) {
                Some(&behind) => Layout::stride_of(behind, sizes[d]),
                None => 1,
            };
            strides.insert(d, stride);
            sizes.insert(d, 1);
        }))
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
