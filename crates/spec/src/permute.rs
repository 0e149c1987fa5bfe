//! Views that reorder dimensions. Sizes and strides move together and the offset stays, so the
//! same positions are reached and L1–L3 hold as before.

use crate::{Dims, Error, Kind, Layout, MAX_RANK, Result, wrap_dim};

impl Layout {
    /// The dimensions in another order: `dims[i]` becomes dimension `i`.
    ///
    /// # Errors
    /// [`Kind::Value`] when `dims` does not name every dimension once, [`Kind::Index`] for one out
    /// of range.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[2, 3, 4]).unwrap();
    /// assert_eq!(x.permute(&[2, 0, 1]).unwrap().to_string(), "(4, 2, 3)@(1, 12, 4)");
    /// ```
    pub fn permute(&self, dims: &[isize]) -> Result<Layout> {
        if dims.len() != self.rank() {
            return Err(permute_count(self, dims).op("permute"));
        }
        let mut seen = 0u64;
        let mut order = [0u8; MAX_RANK];
        for (to, &dim) in order.iter_mut().zip(dims) {
            let d = wrap_dim(dim, self.rank()).map_err(|e| e.op("permute"))?;
            if seen & (1 << d) != 0 {
                return Err(repeated(dims).op("permute"));
            }
            seen |= 1 << d;
            *to = d as u8;
        }
        Ok(self.edited(|sizes, strides, _| {
            let (of_sizes, of_strides) = (self.sizes(), self.strides());
            let to = sizes.iter_mut().zip(strides.iter_mut());
            for ((size, stride), &d) in to.zip(&order) {
                (*size, *stride) = (of_sizes[d as usize], of_strides[d as usize]);
            }
        }))
    }

    /// Two dimensions swapped (`swapaxes`, `swapdims`).
    ///
    /// # Errors
    /// [`Kind::Index`] for a dimension out of range.
    #[inline]
    pub fn transpose(&self, dim0: isize, dim1: isize) -> Result<Layout> {
        let a = wrap_dim(dim0, self.rank()).map_err(|e| e.op("transpose"))?;
        let b = wrap_dim(dim1, self.rank()).map_err(|e| e.op("transpose"))?;
        Ok(self.swapped(a, b))
    }

    #[inline]
    fn swapped(&self, a: usize, b: usize) -> Layout {
        self.edited(|sizes, strides, _| {
            // Rank 0 has the dimension 0 to name, but nothing there to swap.
            if a != b {
                sizes.swap(a, b);
                strides.swap(a, b);
            }
        })
    }

    /// The transpose of a matrix; a vector or scalar as it is.
    ///
    /// # Errors
    /// [`Kind::Shape`] above rank 2.
    #[inline]
    pub fn t(&self) -> Result<Layout> {
        match self.rank() {
            0 | 1 => Ok(self.clone()),
            2 => Ok(self.swapped(0, 1)),
            _ => Err(not_a_matrix(
                self,
                "expects a tensor with <= 2 dimensions",
                "transpose(d0, d1) or mT",
            )
            .op("t")),
        }
    }

    /// The last two dimensions swapped: each matrix of a batch transposed (`mT`). A scalar as it
    /// is.
    ///
    /// # Errors
    /// [`Kind::Shape`] for rank 1.
    pub fn mt(&self) -> Result<Layout> {
        match self.rank() {
            0 => Ok(self.clone()),
            1 => Err(not_a_matrix(
                self,
                "is only supported on matrices or batches of matrices",
                "unsqueeze(d) first",
            )
            .op("mT")),
            n => Ok(self.swapped(n - 2, n - 1)),
        }
    }

    /// Dimensions moved to other places, the rest in their order (`moveaxis`).
    ///
    /// # Errors
    /// [`Kind::Value`] when the lists differ in length or repeat a dimension, [`Kind::Index`] for
    /// one out of range.
    pub fn movedim(&self, source: &[isize], destination: &[isize]) -> Result<Layout> {
        self.movedim_order(source, destination)
            .map(|order| {
                let pick = |from: &[usize]| order.iter().map(|&d| from[d]).collect();
                Layout::new_unchecked(pick(self.sizes()), pick(self.strides()), self.offset())
            })
            .map_err(|e| e.op("movedim"))
    }

    fn movedim_order(&self, source: &[isize], destination: &[isize]) -> Result<Dims> {
        if source.len() != destination.len() {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "source {source:?} and destination {destination:?} must name the same \
                     number of dimensions"
                ),
            ));
        }
        const FREE: usize = MAX_RANK;
        let rank = self.rank();
        let wrapped = |dims: &[isize]| dims.iter().map(|&d| wrap_dim(d, rank)).collect();
        let (from, to): (Result<Dims>, Result<Dims>) = (wrapped(source), wrapped(destination));
        let mut order = Dims::from_elem(FREE, rank.max(1));
        let mut moved = 0u64;
        for (s, d) in from?.into_iter().zip(to?) {
            if moved & (1 << s) != 0 {
                return Err(repeated(source));
            }
            if order[d] != FREE {
                return Err(repeated(destination));
            }
            moved |= 1 << s;
            order[d] = s;
        }
        order.truncate(rank);
        let mut rest = (0..rank).filter(|d| moved & (1 << d) == 0);
        for slot in order.iter_mut().filter(|slot| **slot == FREE) {
            // As many slots are free as dims stayed.
            *slot = rest.next().unwrap_or(FREE);
        }
        Ok(order)
    }
}

#[cold]
fn permute_count(layout: &Layout, dims: &[isize]) -> Error {
    Error::new(
        Kind::Value,
        format!(
            "the order {dims:?} names {} dimensions, but shape {:?} has {}",
            dims.len(),
            layout.sizes(),
            layout.rank()
        ),
    )
}

#[cold]
pub(crate) fn repeated(dims: &[isize]) -> Error {
    Error::new(
        Kind::Value,
        format!("duplicate dims are not allowed: a dimension appears twice in {dims:?}"),
    )
}

#[cold]
fn not_a_matrix(layout: &Layout, expects: &str, instead: &str) -> Error {
    Error::new(
        Kind::Shape,
        format!(
            "{expects}, but shape {:?} has {}; use {instead}",
            layout.sizes(),
            layout.rank()
        ),
    )
}
