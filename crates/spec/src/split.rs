//! Views that cut a dimension into pieces. Each allocates the list of pieces.

use crate::{Error, Kind, Layout, Result, wrap_dim};

/// Where to cut: into a number of sections, or before each of these indices.
#[derive(Clone, Copy, Debug)]
pub enum Sections<'a> {
    /// This many pieces of nearly equal size.
    Count(isize),
    /// A piece up to each index and one after the last, each as `slice` would take it.
    Indices(&'a [isize]),
}

impl From<isize> for Sections<'_> {
    fn from(count: isize) -> Self {
        Sections::Count(count)
    }
}

impl<'a> From<&'a [isize]> for Sections<'a> {
    fn from(indices: &'a [isize]) -> Self {
        Sections::Indices(indices)
    }
}

impl<'a, const N: usize> From<&'a [isize; N]> for Sections<'a> {
    fn from(indices: &'a [isize; N]) -> Self {
        Sections::Indices(indices)
    }
}

impl Layout {
    /// Pieces of `size` indices of a dimension, the last one smaller where it does not come out
    /// even.
    ///
    /// # Errors
    /// [`Kind::Value`] for rank 0 and for a size that is negative, or 0 where there is something to
    /// split; [`Kind::Index`] for a dimension out of range.
    ///
    /// ```
    /// use osteon_spec::Layout;
    /// let x = Layout::contiguous(&[5]).unwrap();
    /// let sizes: Vec<_> = x.split(2, 0).unwrap().iter().map(|p| p.sizes()[0]).collect();
    /// assert_eq!(sizes, [2, 2, 1]);
    /// ```
    pub fn split(&self, size: isize, dim: isize) -> Result<Vec<Layout>> {
        let bad_size = || {
            Error::new(
                Kind::Value,
                format!(
                    "split_size must be positive, or 0 where the dimension's size is 0; \
                     got {size} for dimension {dim} of shape {:?}",
                    self.sizes()
                ),
            )
        };
        usize::try_from(size)
            .map_err(|_| bad_size())
            .and_then(|size| {
                let (d, len) = self.splittable(dim)?;
                if size == 0 && len != 0 {
                    return Err(bad_size());
                }
                self.split_evenly(d, len, size)
            })
            .map_err(|e| e.op("split"))
    }

    fn split_evenly(&self, d: usize, len: usize, size: usize) -> Result<Vec<Layout>> {
        // Nothing to split is one empty piece.
        let count = if len == 0 { 1 } else { len.div_ceil(size) };
        pieces(
            count,
            (0..count).map(|i| self.piece(d, i * size, size.min(len - i * size))),
        )
    }

    /// Pieces of these sizes, which add up to the dimension's.
    ///
    /// # Errors
    /// [`Kind::Value`] when the sizes do not add up or one is negative, and for rank 0;
    /// [`Kind::Index`] for a dimension out of range.
    pub fn split_with_sizes(&self, sizes: &[isize], dim: isize) -> Result<Vec<Layout>> {
        self.splittable(dim)
            .and_then(|(d, len)| {
                let sum = sizes
                    .iter()
                    .try_fold(0usize, |sum, &n| sum.checked_add(usize::try_from(n).ok()?));
                if sum != Some(len) {
                    return Err(Error::new(
                        Kind::Value,
                        format!(
                            "split_sizes must be non-negative and add up to {len}, the \
                            size of dimension {d} of shape {:?}, but got {sizes:?}",
                            self.sizes()
                        ),
                    ));
                }
                let mut start = 0;
                pieces(
                    sizes.len(),
                    sizes.iter().map(|&n| {
                        start += n as usize;
                        self.piece(d, start - n as usize, n as usize)
                    }),
                )
            })
            .map_err(|e| e.op("split_with_sizes"))
    }

    /// At most `chunks` pieces of equal size, the last one smaller; fewer where the size rounds up.
    /// (A dimension of size 0 gives exactly `chunks` empty pieces.)
    ///
    /// # Errors
    /// [`Kind::Value`] unless `chunks` is positive, and for rank 0; [`Kind::Index`] for a dimension
    /// out of range.
    pub fn chunk(&self, chunks: isize, dim: isize) -> Result<Vec<Layout>> {
        if chunks <= 0 {
            let message = format!("expects `chunks` to be greater than 0, got {chunks}");
            return Err(Error::new(Kind::Value, message).op("chunk"));
        }
        self.splittable(dim)
            .and_then(|(d, len)| match len {
                0 => pieces(chunks as usize, (0..chunks).map(|_| Ok(self.clone()))),
                _ => self.split_evenly(d, len, len.div_ceil(chunks as usize)),
            })
            .map_err(|e| e.op("chunk"))
    }

    /// Exactly so many pieces, the first ones one larger where it does not come out even; or the
    /// pieces between indices, which may lie in any order and out of range.
    ///
    /// # Errors
    /// [`Kind::Value`] unless the number of sections is positive, and for rank 0; [`Kind::Index`]
    /// for a dimension out of range.
    pub fn tensor_split<'a>(
        &self,
        sections: impl Into<Sections<'a>>,
        dim: isize,
    ) -> Result<Vec<Layout>> {
        self.splittable(dim)
            .and_then(|(d, len)| match sections.into() {
                Sections::Count(count) if count <= 0 => Err(Error::new(
                    Kind::Value,
                    format!("number of sections must be larger than 0, got {count}"),
                )),
                Sections::Count(count) => {
                    let count = count as usize;
                    let (size, larger) = (len / count, len % count);
                    pieces(
                        count,
                        (0..count).map(|i| {
                            self.piece(d, i * size + i.min(larger), size + usize::from(i < larger))
                        }),
                    )
                }
                Sections::Indices(indices) => {
                    let bound = |i: usize| indices.get(i).copied();
                    pieces(
                        indices.len() + 1,
                        (0..=indices.len()).map(|i| {
                            let start = i.checked_sub(1).and_then(bound);
                            self.slice(d as isize, start, bound(i), 1)
                        }),
                    )
                }
            })
            .map_err(|e| e.op("tensor_split"))
    }

    /// [`tensor_split`](Layout::tensor_split) along dimension 1 (0 for a vector); a number of
    /// sections must divide the size.
    ///
    /// # Errors
    /// [`Kind::Value`] for rank 0 and where the sections do not divide the size.
    pub fn hsplit<'a>(&self, sections: impl Into<Sections<'a>>) -> Result<Vec<Layout>> {
        self.split_exactly(1, usize::from(self.rank() > 1), sections.into())
            .map_err(|e| e.op("hsplit"))
    }

    /// [`tensor_split`](Layout::tensor_split) along dimension 0; a number of sections must divide
    /// the size.
    ///
    /// # Errors
    /// [`Kind::Value`] below rank 2 and where the sections do not divide the size.
    pub fn vsplit<'a>(&self, sections: impl Into<Sections<'a>>) -> Result<Vec<Layout>> {
        self.split_exactly(2, 0, sections.into())
            .map_err(|e| e.op("vsplit"))
    }

    /// [`tensor_split`](Layout::tensor_split) along dimension 2; a number of sections must divide
    /// the size.
    ///
    /// # Errors
    /// [`Kind::Value`] below rank 3 and where the sections do not divide the size.
    pub fn dsplit<'a>(&self, sections: impl Into<Sections<'a>>) -> Result<Vec<Layout>> {
        self.split_exactly(3, 2, sections.into())
            .map_err(|e| e.op("dsplit"))
    }

    fn split_exactly(
        &self,
        least_rank: usize,
        d: usize,
        sections: Sections<'_>,
    ) -> Result<Vec<Layout>> {
        if self.rank() < least_rank {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "requires a tensor with at least {least_rank} dimension(s), but shape \
                     {:?} has {}",
                    self.sizes(),
                    self.rank()
                ),
            ));
        }
        if let Sections::Count(count) = sections
            && (count <= 0 || !self.sizes()[d].is_multiple_of(count as usize))
        {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "the size {} of dimension {d} of shape {:?} is not divisible by {count} \
                     sections",
                    self.sizes()[d],
                    self.sizes()
                ),
            ));
        }
        self.tensor_split(sections, d as isize)
    }

    fn splittable(&self, dim: isize) -> Result<(usize, usize)> {
        if self.rank() == 0 {
            return Err(Error::new(
                Kind::Value,
                "expects at least a 1-dimensional tensor; unsqueeze(0) first",
            ));
        }
        let d = wrap_dim(dim, self.rank())?;
        Ok((d, self.sizes()[d]))
    }

    fn piece(&self, d: usize, start: usize, len: usize) -> Result<Layout> {
        self.narrow(d as isize, start as isize, len as isize)
    }
}

/// The list of so many pieces.
pub(crate) fn pieces(
    count: usize,
    each: impl Iterator<Item = Result<Layout>>,
) -> Result<Vec<Layout>> {
    let mut list = Vec::new();
    list.try_reserve_exact(count).map_err(|_| {
        Error::new(
            Kind::OutOfMemory,
            format!("no memory for a list of {count} views"),
        )
    })?;
    for piece in each {
        list.push(piece?);
    }
    Ok(list)
}
