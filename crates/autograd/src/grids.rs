//! Grids, diagonals and borders: tensors composed of the elements of others.

use crate::Tensor;
use crate::graph::{linear, one, record, rule};
use osteon_memory::{attribute, here};
use osteon_spec::{DType, Device, Error, Kind, MemoryFormat, Result, Scalar, wrap_dim};
use osteon_tensor::{PadMode, View};

/// In which order [`Tensor::meshgrid`] takes its first two vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The first along dim 0: rows, then columns.
    Ij,
    /// The first along dim 1: `x`, then `y`.
    Xy,
}

impl Tensor {
    /// The coordinates of the points of a grid: for each vector a tensor of all their lengths that says its element at
    /// each point. 0-dim tensors count as vectors. Copies nothing: the results are expanded views.
    ///
    /// # Errors
    /// No tensors; tensors of more dims; dtypes that differ.
    ///
    /// ```
    /// # use osteon_autograd::{Indexing, Tensor};
    /// let (x, y) = (Tensor::new([1i64, 2])?, Tensor::new([3i64, 4, 5])?);
    /// let grids = Tensor::meshgrid(&[&x, &y], Indexing::Ij)?;
    /// assert_eq!(grids[0].to_vec::<i64>()?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn meshgrid(tensors: &[&Tensor], indexing: Indexing) -> Result<Vec<Tensor>> {
        let op = "meshgrid";
        let Some(first) = tensors.first() else {
            return Err(Error::new(Kind::Value, "expected at least one tensor").op(op));
        };
        if let Some(other) = tensors
            .iter()
            .find(|t| t.dim() > 1 || t.dtype() != first.dtype())
        {
            let message = format!(
                "expected {} vectors, got {} {:?}",
                first.dtype(),
                other.dtype(),
                other.shape()
            );
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        let swap = indexing == Indexing::Xy && tensors.len() >= 2;
        let mut places: Vec<usize> = (0..tensors.len()).collect();
        if swap {
            places.swap(0, 1);
        }
        let mut shape: Vec<isize> = vec![0; tensors.len()];
        for (t, &place) in tensors.iter().zip(&places) {
            shape[place] = t.numel() as isize;
        }
        let mut grids = Vec::with_capacity(tensors.len());
        for (t, &place) in tensors.iter().zip(&places) {
            let mut own = vec![1; tensors.len()];
            own[place] = t.numel() as isize;
            let grid = t.view(&own)?.expand(&shape)?;
            grids.push(grid);
        }
        Ok(grids)
    }

    /// Every combination of one element of each vector, as the rows of a new matrix; of one vector, itself.
    ///
    /// # Errors
    /// No tensors; no vectors; dtypes that differ; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (a, b) = (Tensor::new([1i64, 2])?, Tensor::new([3i64, 4])?);
    /// let rows = Tensor::cartesian_prod(&[&a, &b])?;
    /// assert_eq!(rows.to_vec::<i64>()?, [1, 3, 1, 4, 2, 3, 2, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn cartesian_prod(tensors: &[&Tensor]) -> Result<Tensor> {
        if let Some(other) = tensors.iter().find(|t| t.dim() != 1) {
            let message = format!("expected vectors, got shape {:?}", other.shape());
            return Err(Error::new(Kind::Shape, message).op("cartesian_prod"));
        }
        if let [only] = tensors {
            return Ok((*only).clone());
        }
        let grids = Tensor::meshgrid(tensors, Indexing::Ij)?;
        let flat = || {
            grids
                .iter()
                .map(|g| g.flatten(0, -1))
                .collect::<Result<Vec<Tensor>>>()
        };
        let columns = attribute(here(), flat)?;
        Tensor::stack(&columns.iter().collect::<Vec<_>>(), 1)
    }

    /// The ways to take `r` elements of a vector, in the order of their places, as the rows of a new matrix; with or without taking one
    /// again.
    ///
    /// # Errors
    /// No vector; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let pairs = Tensor::new([1i64, 2, 3])?.combinations(2, false)?;
    /// assert_eq!(pairs.to_vec::<i64>()?, [1, 2, 1, 3, 2, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn combinations(&self, r: usize, with_replacement: bool) -> Result<Tensor> {
        let op = "combinations";
        if self.dim() != 1 {
            let message = format!("expected a vector, got shape {:?}", self.shape());
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        if r == 0 {
            return Tensor::empty([0], self.dtype(), &self.device());
        }
        let places = choices(self.numel(), r, with_replacement).ok_or_else(|| {
            Error::new(
                Kind::OutOfMemory,
                format!("no memory for the combinations of {r} of {}", self.numel()),
            )
            .op(op)
        })?;
        let rows = (places.len() / r) as isize;
        let places = Tensor::from_vec(places, [rows as usize * r])?;
        self.index_select(0, &places)?.view([rows, r as isize])
    }

    /// The coordinates of the elements of a matrix on a diagonal and below it, as the two rows of a new int64 tensor.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::Device;
    /// let at = Tensor::tril_indices(2, 2, 0, &Device::cpu())?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 1, 1, 0, 0, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn tril_indices(
        rows: usize,
        columns: usize,
        offset: isize,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::ones([rows, columns], DType::Bool, device)?
            .tril(offset)?
            .rows_of_coordinates()
    }

    /// The coordinates of the elements of a matrix on a diagonal and above it, as the two rows of a new int64 tensor.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// # use osteon_spec::Device;
    /// let at = Tensor::triu_indices(2, 2, 0, &Device::cpu())?;
    /// assert_eq!(at.to_vec::<i64>()?, [0, 0, 1, 0, 1, 1]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn triu_indices(
        rows: usize,
        columns: usize,
        offset: isize,
        device: &Device,
    ) -> Result<Tensor> {
        Tensor::ones([rows, columns], DType::Bool, device)?
            .triu(offset)?
            .rows_of_coordinates()
    }

    #[track_caller]
    fn rows_of_coordinates(&self) -> Result<Tensor> {
        self.nonzero()?.t()?.copy_in(MemoryFormat::Contiguous)
    }

    /// A vector as a diagonal of a new matrix of zeros; a diagonal of a matrix as a new vector.
    ///
    /// # Errors
    /// Another number of dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// assert_eq!(Tensor::new([1i64, 2])?.diag(0)?.to_vec::<i64>()?, [1, 0, 0, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn diag(&self, diagonal: isize) -> Result<Tensor> {
        match self.dim() {
            1 => self.diag_embed(diagonal, 0, 1),
            2 => self
                .diagonal(diagonal, 0, 1)?
                .copy_in(MemoryFormat::Contiguous),
            _ => {
                let message = format!("needs one or two dims, got shape {:?}", self.shape());
                Err(Error::new(Kind::Shape, message).op("diag"))
            }
        }
    }

    /// All elements as a diagonal of a new matrix of zeros.
    ///
    /// # Errors
    /// Out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64], [2]])?;
    /// assert_eq!(x.diagflat(1)?.to_vec::<i64>()?, [0, 1, 0, 0, 0, 2, 0, 0, 0]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn diagflat(&self, offset: isize) -> Result<Tensor> {
        self.reshape([-1])?.diag(offset)
    }

    /// The last dim as a diagonal of new matrices of zeros, whose dims are `dim1` and `dim2` of the result.
    ///
    /// # Errors
    /// Dims that are the same or out of range; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.diag_embed(0, -2, -1)?.to_vec::<i64>()?, [1, 0, 0, 2, 3, 0, 0, 4]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn diag_embed(&self, offset: isize, dim1: isize, dim2: isize) -> Result<Tensor> {
        let op = "diag_embed";
        let [d1, d2] = [dim1, dim2].map(|d| wrap_dim(d, self.dim() + 1).map_err(|e| e.op(op)));
        let (d1, d2) = (d1?, d2?);
        if d1 == d2 {
            let message = format!("the dims of the diagonal cannot be identical: {dim1}, {dim2}");
            return Err(Error::new(Kind::Value, message).op(op));
        }
        let mut shape = self.shape().to_vec();
        let side = shape
            .pop()
            .unwrap_or(1)
            .saturating_add(offset.unsigned_abs());
        for d in [d1.min(d2), d1.max(d2)] {
            shape.insert(d, side);
        }
        let [d1, d2] = [d1 as isize, d2 as isize];
        let out = View::zeros(&shape, self.dtype(), &self.device())?;
        out.diagonal(offset, d1, d2)?.copy_(self.as_view())?;
        record(named(out, op)?, &[self], |_, _| {
            Ok(linear(move |g| g.diagonal(offset, d1, d2)))
        })
    }

    /// The tensor turned by so many quarters from the first of two dims towards the second. Always a copy.
    ///
    /// # Errors
    /// Not two different dims; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([[1i64, 2], [3, 4]])?;
    /// assert_eq!(x.rot90(1, [0, 1])?.to_vec::<i64>()?, [2, 4, 1, 3]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn rot90(&self, k: isize, dims: impl AsRef<[isize]>) -> Result<Tensor> {
        let op = "rot90";
        let dims = dims.as_ref();
        let wrapped: Vec<usize> = dims
            .iter()
            .map(|&d| wrap_dim(d, self.dim()))
            .collect::<Result<_>>()
            .map_err(|e| e.op(op))?;
        if self.dim() < 2 || wrapped.len() != 2 || wrapped[0] == wrapped[1] {
            let message = format!(
                "needs two different dims of two or more, got {dims:?} of {:?}",
                self.shape()
            );
            return Err(Error::new(Kind::Value, message).op(op));
        }
        match k.rem_euclid(4) {
            1 => self.flip([dims[1]])?.transpose(dims[0], dims[1]),
            2 => self.flip(dims),
            3 => self.flip([dims[0]])?.transpose(dims[0], dims[1]),
            _ => self.copy_in(MemoryFormat::Contiguous),
        }
    }

    /// The differences of neighbours along a dim, taken `n` times, of the tensor between `prepend` and `append`; of `bool` whether they
    /// differ.
    ///
    /// # Errors
    /// No dims; sizes that differ in another dim; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::new([1i64, 4, 9])?;
    /// assert_eq!(x.diff(1, -1, None, None)?.to_vec::<i64>()?, [3, 5]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn diff(
        &self,
        n: usize,
        dim: isize,
        prepend: Option<&Tensor>,
        append: Option<&Tensor>,
    ) -> Result<Tensor> {
        let op = "diff";
        if n == 0 && self.dim() > 0 {
            return self.copy();
        }
        let d = self.as_view().existing_dim(dim, op)? as isize;
        let parts: Vec<&Tensor> = [prepend, Some(self), append]
            .into_iter()
            .flatten()
            .collect();
        let mut values = match parts[..] {
            [only] => only.clone(),
            _ => Tensor::cat(&parts, d).map_err(|e| e.op(op))?,
        };
        for _ in 0..n.min(values.shape()[d as usize]) {
            let len = values.shape()[d as usize] as isize - 1;
            let (later, earlier) = (values.narrow(d, 1, len)?, values.narrow(d, 0, len)?);
            values = if self.dtype() == DType::Bool {
                later.logical_xor(&earlier)?
            } else {
                later.sub(&earlier)?
            };
        }
        Ok(values)
    }

    /// The area below the points of a curve that are `dx` apart along a dim, by the trapezoidal rule.
    ///
    /// # Errors
    /// A dim out of range; `bool`; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let y = Tensor::new([0f64, 2.0, 4.0])?;
    /// assert_eq!(y.trapezoid(0.5, -1)?.item::<f64>()?, 2.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn trapezoid(&self, dx: impl Into<Scalar>, dim: isize) -> Result<Tensor> {
        let d = self.as_view().existing_dim(dim, "trapezoid")? as isize;
        if self.shape()[d as usize] == 0 {
            return self.sum_dims([d], false);
        }
        let ends = self.select(d, 0)?.add(&self.select(d, -1)?)?;
        self.sum_dims([d], false)?
            .sub(&ends.mul(0.5)?)?
            .mul(dx.into())
    }

    /// [`Tensor::trapezoid`] with the places of the points, `x`: of the shape of the curve, or a vector along the dim.
    ///
    /// # Errors
    /// As there; shapes that do not broadcast.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let (x, y) = (Tensor::new([0f64, 1.0, 3.0])?, Tensor::new([0f64, 2.0, 4.0])?);
    /// assert_eq!(y.trapezoid_at(&x, -1)?.item::<f64>()?, 7.0);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn trapezoid_at(&self, x: &Tensor, dim: isize) -> Result<Tensor> {
        let d = self.as_view().existing_dim(dim, "trapezoid")? as isize;
        let (rank, n) = (self.dim() as isize, self.shape()[d as usize] as isize);
        if n == 0 {
            return self.sum_dims([d], false);
        }
        // The dim, counted from the end: `x` may have fewer dims.
        let from_end = d - rank;
        let x = if x.dim() == 1 && rank > 1 {
            let mut shape = vec![1; rank as usize];
            shape[d as usize] = x.numel() as isize;
            x.reshape(shape)?
        } else {
            x.clone()
        };
        let steps = x.diff(1, from_end, None, None)?;
        let pairs = self.narrow(d, 0, n - 1)?.add(&self.narrow(d, 1, n - 1)?)?;
        pairs.mul(&steps)?.sum_dims([d], false)?.div(2.0)
    }

    /// Channels in groups of `factor²` as blocks of pixels: `(…, C·r², H, W)` to `(…, C, H·r, W·r)`, in a new tensor.
    /// Channels-last stays.
    ///
    /// # Errors
    /// Fewer than three dims; a factor of 0; channels that are no multiple of its square; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::Tensor;
    /// let x = Tensor::arange(0, 8, 1)?.view([4, 1, 2])?.pixel_shuffle(2)?;
    /// assert_eq!(x.shape(), [1, 2, 4]);
    /// assert_eq!(x.to_vec::<i64>()?, [0, 2, 1, 3, 4, 6, 5, 7]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn pixel_shuffle(&self, factor: usize) -> Result<Tensor> {
        let op = "pixel_shuffle";
        let square = factor.saturating_mul(factor);
        let fits =
            self.dim() >= 3 && square > 0 && self.shape()[self.dim() - 3].is_multiple_of(square);
        if !fits {
            let message = format!(
                "shape {:?} has no channels in groups of {square}",
                self.shape()
            );
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        let (outer, own) = self.shape().split_at(self.dim() - 3);
        let (c, h, w, r) = (own[0] / square, own[1], own[2], factor);
        let shape = [outer, &[c, h * r, w * r]].concat();
        let out = self.as_view().new_like(&shape)?;
        let [h, w, r, c] = [h, w, r, c].map(|n| n as isize);
        // (…, C, H, r, W, r), from (…, C, r, r, H, W).
        let blocks = out.unflatten(-2, &[h, r])?.unflatten(-1, &[w, r])?;
        let groups = self.as_view().unflatten(-3, &[c, r, r])?;
        let k = outer.len() as isize;
        let dims: Vec<isize> = (0..=k).chain([k + 3, k + 1, k + 4, k + 2]).collect();
        blocks.copy_(&groups.permute(&dims)?)?;
        record(named(out, op)?, &[self], |_, _| {
            let back: Vec<isize> = (0..=k).chain([k + 2, k + 4, k + 1, k + 3]).collect();
            Ok(linear(move |g| {
                let blocks = g.unflatten(-2, [h, r])?.unflatten(-1, [w, r])?;
                blocks.permute(&back)?.flatten(-5, -3)
            }))
        })
    }

    /// The tensor with borders, in a new tensor: `pads` are the elements before and behind the last dim, then those of the
    /// dim before it, and so on; negative ones cut elements off.
    ///
    /// # Errors
    /// Pads that are no pairs, or more than the dims have; a border that needs more elements than there are; a number
    /// that the dtype cannot hold; out of memory.
    ///
    /// ```
    /// # use osteon_autograd::{PadMode, Tensor};
    /// let x = Tensor::new([[1i64, 2, 3]])?;
    /// assert_eq!(x.pad([2, 1], PadMode::Reflect)?.to_vec::<i64>()?, [3, 2, 1, 2, 3, 2]);
    /// assert_eq!(x.pad([1, -1], PadMode::Constant(0.into()))?.to_vec::<i64>()?, [0, 1, 2]);
    /// # Ok::<(), osteon_spec::Error>(())
    /// ```
    #[track_caller]
    pub fn pad(&self, pads: impl AsRef<[isize]>, mode: PadMode) -> Result<Tensor> {
        let pads = pads.as_ref();
        record(self.as_view().pad(pads, mode)?, &[self], |r, _| {
            if !matches!(mode, PadMode::Constant(_)) {
                r.save_number();
            }
            let pads = pads.to_vec();
            Ok(rule(move |b| {
                if let PadMode::Constant(_) = mode {
                    let back: Vec<isize> = pads.iter().map(|n| -n).collect();
                    return one(b.grad()?.pad(back, PadMode::Constant(Scalar::Int(0)))?);
                }
                let (g, whole) = b.zeros(0)?;
                if g.numel() > 0 {
                    let places = whole.as_view().padding_places(&pads, mode)?;
                    whole.put_indexed_(&places, &g, true)?;
                }
                one(whole)
            }))
        })
    }
}

/// A fresh result under the name of the operation that made it.
#[track_caller]
fn named(out: View, op: &'static str) -> Result<View> {
    View::new(out.storage().clone(), out.layout().clone(), out.dtype(), op)
}

/// The choices of `r` of the numbers `0..n` in ascending order, one after the other; none where there is no memory.
fn choices(n: usize, r: usize, again: bool) -> Option<Vec<i64>> {
    let mut all: Vec<i64> = Vec::new();
    let mut choice: Vec<usize> = (0..r).map(|i| if again { 0 } else { i }).collect();
    // The largest number at each place.
    let last = |i: usize| if again { n - 1 } else { n + i - r };
    if n == 0 || (!again && r > n) {
        return Some(all);
    }
    loop {
        all.try_reserve(r).ok()?;
        all.extend(choice.iter().map(|&i| i as i64));
        let Some(place) = (0..r).rev().find(|&i| choice[i] < last(i)) else {
            return Some(all);
        };
        let next = choice[place] + 1;
        for (i, number) in choice[place..].iter_mut().enumerate() {
            *number = if again { next } else { next + i };
        }
    }
}
