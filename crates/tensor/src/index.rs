//! Moves in which index tensors say where elements come from or go to.
//!
//! All of them are one pattern (see [`osteon_kernels::Indexed`]): at each *position*, to which the indices
//! broadcast, a *slice* of elements moves.

use crate::View;
use crate::backend::{Arg, backend};
use crate::elementwise::other_device;
use crate::target::{Reads, Target, with_out};
use crate::write;
use osteon_kernels::BinaryOp;
use osteon_memory::here;
use osteon_spec::{DType, Dims, Error, Kind, Layout, Result, Scalar, wrap_dim};

/// What happens at each position.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Move<'a> {
    /// The indices address the source.
    Get,
    /// The indices address the destination; of positions that meet, the last stays.
    Set,
    /// `dst = op(dst, src)`; positions that meet all count.
    Reduce(BinaryOp, &'a [Scalar]),
}

/// The dims that both sides walk together: sizes, and strides in elements for the destination and the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Walk {
    pub(crate) shape: Dims,
    pub(crate) strides: [Dims; 2],
}

impl Walk {
    pub(crate) fn push(&mut self, size: usize, dst: usize, src: usize) {
        self.shape.push(size);
        self.strides[0].push(dst);
        self.strides[1].push(src);
    }
}

/// Where an index tensor points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer<'a> {
    /// The indices, broadcast to the positions.
    pub(crate) index: &'a View,
    /// The size of the dim that they address.
    pub(crate) size: usize,
    /// Its stride on the indexed side, in elements.
    pub(crate) stride: usize,
    /// Whether negative indices count from the end.
    pub(crate) wrap: bool,
}

impl<'a> Pointer<'a> {
    /// Indices of dim `d` of a side with these sizes and strides.
    fn along(index: &'a View, d: usize, (sizes, strides): (&Dims, &Dims), wrap: bool) -> Self {
        Pointer {
            index,
            size: sizes[d],
            stride: strides[d],
            wrap,
        }
    }
}

/// One indexed move.
#[derive(Clone, Debug)]
pub(crate) struct Indexed<'a> {
    pub(crate) positions: Walk,
    pub(crate) slice: Walk,
    pub(crate) pointers: &'a [Pointer<'a>],
}

impl Indexed<'_> {
    /// Runs it, and counts a write of `dst` unless that is fresh.
    pub(crate) fn run(
        &self,
        what: Move<'_>,
        dst: &View,
        src: Arg<'_>,
        op: &'static str,
    ) -> Result<()> {
        backend(dst.device())
            .indexed(what, dst, src, self)
            .map_err(|e| e.op(op))
    }
}

/// Sizes and strides of a view, a rank-0 one as a vector of one element, as PyTorch indexes it.
fn as_dims(view: &View) -> (Dims, Dims) {
    if view.dim() == 0 {
        return (Dims::from_elem(1, 1), Dims::from_elem(1, 1));
    }
    (
        Dims::from_slice(view.shape()),
        Dims::from_slice(view.stride()),
    )
}

/// Checks an index tensor's dtype and device.
pub(crate) fn check_index(
    index: &View,
    of: &View,
    allow_int32: bool,
    op: &'static str,
) -> Result<()> {
    if index.device() != of.device() {
        return Err(other_device(of.device(), index.device()).op(op));
    }
    match index.dtype() {
        DType::I64 => Ok(()),
        DType::I32 if allow_int32 => Ok(()),
        other => {
            let wanted = if allow_int32 {
                "int64 or int32"
            } else {
                "int64"
            };
            Err(Error::new(
                Kind::DType,
                format!("the index must be {wanted}, got {other}"),
            )
            .op(op))
        }
    }
}

/// Checks that an index is a vector, or a scalar that counts as one.
fn check_vector(index: &View, op: &'static str) -> Result<()> {
    if index.dim() <= 1 {
        return Ok(());
    }
    Err(Error::new(
        Kind::Shape,
        format!("the index must be a vector, got shape {:?}", index.shape()),
    )
    .op(op))
}

fn check_same_dtype(dst: &View, src: &View, op: &'static str) -> Result<()> {
    if dst.dtype() == src.dtype() {
        return Ok(());
    }
    Err(Error::new(
        Kind::DType,
        format!(
            "the source holds {}, the tensor {}; cast the source with to() first",
            src.dtype(),
            dst.dtype()
        ),
    )
    .op(op))
}

/// The walk of rows along `dim`: positions are rows, a slice is all the rest. `None` for a side that is one number.
fn rows(
    n: usize,
    dim: usize,
    dst: Option<(&Dims, &Dims)>,
    src: Option<(&Dims, &Dims)>,
    get: bool,
) -> (Walk, Walk) {
    let (mut positions, mut slice) = (Walk::default(), Walk::default());
    let stride = |side: Option<(&Dims, &Dims)>, d: usize| side.map_or(0, |(_, strides)| strides[d]);
    // Along `dim` the indexed side moves by the index alone.
    let (to, from) = if get {
        (stride(dst, dim), 0)
    } else {
        (0, stride(src, dim))
    };
    positions.push(n, to, from);
    let sizes = if get { src.or(dst) } else { dst.or(src) };
    if let Some((sizes, _)) = sizes {
        for (d, &size) in sizes.iter().enumerate() {
            if d != dim {
                slice.push(size, stride(dst, d), stride(src, d));
            }
        }
    }
    (positions, slice)
}

with_out! { to;
    /// The rows of a dim that a vector of indices names, in a new tensor.
    ///
    /// # Errors
    /// An index out of range (negative ones are), or no int64 or int32 vector; out of memory.
    index_select index_select_out(&self, dim: isize, index: &View) -> View {
        let op = to.op;
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        check_index(index, self, true, op)?;
        check_vector(index, op)?;
        let (sizes, strides) = as_dims(self);
        let n = index.numel();
        let mut shape = sizes.clone();
        shape[d] = n;
        if self.dim() == 0 {
            if n != 1 {
                let message = format!("a 0-dim tensor takes one index, got {n}");
                return Err(Error::new(Kind::Index, message).op(op));
            }
            shape.clear();
        }
        let kind = (self.dtype(), self.device());
        to.write(Layout::contiguous(&shape)?, kind, Reads::Apart(&[self, index]), |out| {
            let (out_sizes, out_strides) = as_dims(out);
            let (positions, slice) = rows(
                n,
                d,
                Some((&out_sizes, &out_strides)),
                Some((&sizes, &strides)),
                true,
            );
            let pointers = [Pointer::along(index, d, (&sizes, &strides), false)];
            Indexed { positions, slice, pointers: &pointers }.run(Move::Get, out, self.into(), op)
        })
    }

    /// Along a dim, the element that `index`, of the same rank, names at each of its places, in a new
    /// tensor of the index's shape.
    ///
    /// # Errors
    /// An index out of range; another rank; an index larger than the tensor in another dim.
    gather gather_out(&self, dim: isize, index: &View) -> View {
        self.gathered(dim, index, false, to)
    }
}

impl View {
    /// [`View::gather`], where negative indices may count from the end.
    #[track_caller]
    pub(crate) fn gathered(
        &self,
        dim: isize,
        index: &View,
        wrap: bool,
        to: Target<'_>,
    ) -> Result<View> {
        let op = to.op;
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        if index.numel() > 0 {
            check_index(index, self, true, op)?;
            check_places(self, index, d, op)?;
        }
        let kind = (self.dtype(), self.device());
        let layout = Layout::contiguous(index.shape())?;
        to.write(layout, kind, Reads::Apart(&[self, index]), |out| {
            if index.numel() == 0 {
                return Ok(());
            }
            let (sizes, strides) = as_dims(self);
            let (_, out_strides) = as_dims(out);
            let mut base = strides.clone();
            base[d] = 0;
            let (index, [positions, slice]) = places(index, d, [&out_strides, &base])?;
            let pointers = [Pointer::along(&index, d, (&sizes, &strides), wrap)];
            Indexed {
                positions,
                slice,
                pointers: &pointers,
            }
            .run(Move::Get, out, self.into(), op)
        })
    }

    /// Writes one number into the rows of a dim that a vector of indices names.
    ///
    /// # Errors
    /// An index out of range, or no int64 vector; a number that the dtype cannot hold; overlap.
    #[track_caller]
    pub fn index_fill_(&self, dim: isize, index: &View, value: Scalar) -> Result<()> {
        let op = "index_fill_";
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        check_index(index, self, false, op)?;
        check_vector(index, op)?;
        value.check_fits(self.dtype()).map_err(|e| e.op(op))?;
        write::check_apart(self, index, op)?;
        let (sizes, strides) = as_dims(self);
        let (positions, slice) = rows(index.numel(), d, Some((&sizes, &strides)), None, false);
        let pointers = [Pointer::along(index, d, (&sizes, &strides), true)];
        Indexed {
            positions,
            slice,
            pointers: &pointers,
        }
        .run(Move::Set, self, Arg::Number(value), op)?;
        self.storage().record_write(op, here());
        Ok(())
    }

    /// Adds `alpha` times the rows of `source` to the rows of a dim that a vector of indices names.
    ///
    /// # Errors
    /// An index out of range (negative ones are); a source of another shape or dtype; overlap.
    #[track_caller]
    pub fn index_add_(&self, dim: isize, index: &View, source: &View, alpha: Scalar) -> Result<()> {
        let op = "index_add_";
        alpha.check_fits(self.dtype()).map_err(|e| e.op(op))?;
        let numbers = [alpha];
        self.index_rows(
            dim,
            index,
            source,
            Move::Reduce(BinaryOp::AddScaled, &numbers),
            true,
            op,
        )
    }

    /// Writes the rows of `source` into the rows of a dim that a vector of indices names; of an index
    /// that repeats, the last row stays.
    ///
    /// # Errors
    /// As [`View::index_add_`].
    #[track_caller]
    pub fn index_copy_(&self, dim: isize, index: &View, source: &View) -> Result<()> {
        self.index_rows(dim, index, source, Move::Set, false, "index_copy_")
    }

    #[track_caller]
    fn index_rows(
        &self,
        dim: isize,
        index: &View,
        source: &View,
        what: Move<'_>,
        allow_int32: bool,
        op: &'static str,
    ) -> Result<()> {
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        check_index(index, self, allow_int32, op)?;
        check_vector(index, op)?;
        check_same_dtype(self, source, op)?;
        if source.device() != self.device() {
            return Err(other_device(self.device(), source.device()).op(op));
        }
        let ((sizes, strides), (source_sizes, source_strides)) = (as_dims(self), as_dims(source));
        let n = index.numel();
        let fits = sizes.len() == source_sizes.len()
            && source_sizes
                .iter()
                .enumerate()
                .all(|(i, &s)| s == if i == d { n } else { sizes[i] });
        if !fits {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "the source must have the tensor's shape {:?} with {n} rows, one an index, in dim {d}; got {:?}",
                    self.shape(),
                    source.shape()
                ),
            )
            .op(op));
        }
        write::check_itself(self, op)?;
        write::check_apart(self, index, op)?;
        write::check_apart(self, source, op)?;
        if self.numel() == 0 && allow_int32 {
            // Nothing to add to: PyTorch does not look at the indices.
            self.storage().record_write(op, here());
            return Ok(());
        }
        let (positions, slice) = rows(
            n,
            d,
            Some((&sizes, &strides)),
            Some((&source_sizes, &source_strides)),
            false,
        );
        let pointers = [Pointer::along(index, d, (&sizes, &strides), false)];
        Indexed {
            positions,
            slice,
            pointers: &pointers,
        }
        .run(what, self, source.into(), op)?;
        self.storage().record_write(op, here());
        Ok(())
    }

    /// Writes each element of `source`, or one number, to the place along a dim that `index` names; of
    /// places that repeat, the last stays.
    ///
    /// # Errors
    /// An index out of range; ranks that differ; an index larger than the source, or than the tensor
    /// in another dim; another dtype; overlap.
    #[track_caller]
    pub fn scatter_(&self, dim: isize, index: &View, source: Arg<'_>) -> Result<()> {
        self.scattered(dim, index, source, None, Move::Set, "scatter_")
    }

    /// Adds each element of `source` to the place along a dim that `index` names.
    ///
    /// # Errors
    /// As [`View::scatter_`].
    #[track_caller]
    pub fn scatter_add_(&self, dim: isize, index: &View, source: &View) -> Result<()> {
        self.scattered(
            dim,
            index,
            source.into(),
            None,
            Move::Reduce(BinaryOp::Add, &[]),
            "scatter_add_",
        )
    }

    /// Moves the source to the places that the index names, after one number, if there is a first.
    #[track_caller]
    pub(crate) fn scattered(
        &self,
        dim: isize,
        index: &View,
        source: Arg<'_>,
        first: Option<Scalar>,
        what: Move<'_>,
        op: &'static str,
    ) -> Result<()> {
        let d = wrap_dim(dim, self.dim()).map_err(|e| e.op(op))?;
        if index.numel() > 0 {
            check_index(index, self, true, op)?;
        }
        let (sizes, strides) = as_dims(self);
        let mut source_strides = Dims::from_elem(0, sizes.len());
        match source {
            Arg::Number(n) => n.check_fits(self.dtype()).map_err(|e| e.op(op))?,
            Arg::View(v) => {
                check_same_dtype(self, v, op)?;
                if v.device() != self.device() {
                    return Err(other_device(self.device(), v.device()).op(op));
                }
                let (source_sizes, own) = as_dims(v);
                let (index_sizes, _) = as_dims(index);
                let fits = index.numel() == 0
                    || (source_sizes.len() == index_sizes.len()
                        && index_sizes.iter().zip(&source_sizes).all(|(i, s)| i <= s));
                if !fits {
                    return Err(Error::new(
                        Kind::Shape,
                        format!(
                            "the index, shape {:?}, must not exceed the source, shape {:?}, in any dim",
                            index.shape(),
                            v.shape()
                        ),
                    )
                    .op(op));
                }
                write::check_apart(self, v, op)?;
                source_strides = own;
            }
        }
        write::check_itself(self, op)?;
        write::check_apart(self, index, op)?;
        if index.numel() > 0 {
            check_places(self, index, d, op)?;
            let mut base = strides.clone();
            base[d] = 0;
            let (index, [positions, slice]) = places(index, d, [&base, &source_strides])?;
            let pointers = [Pointer::along(&index, d, (&sizes, &strides), false)];
            let places = Indexed {
                positions,
                slice,
                pointers: &pointers,
            };
            if let Some(first) = first {
                let mut places = places.clone();
                places.positions.strides[1].fill(0);
                places.slice.strides[1].fill(0);
                places.run(Move::Set, self, Arg::Number(first), op)?;
            }
            places.run(what, self, source, op)?;
        }
        self.storage().record_write(op, here());
        Ok(())
    }
}

/// The walk of an index with a place for each element, given the strides of destination and source along its dims: the
/// positions, and as slices what an index that was expanded repeats in dims other than `dim`. The index comes without these.
#[track_caller]
fn places(index: &View, dim: usize, [dst, src]: [&Dims; 2]) -> Result<(View, [Walk; 2])> {
    let (mut positions, mut slice) = (Walk::default(), Walk::default());
    let mut each = match index.dim() {
        0 => index.unsqueeze(0)?,
        _ => index.clone(),
    };
    let (sizes, strides) = as_dims(&each);
    for (d, (&size, &stride)) in sizes.iter().zip(&strides).enumerate() {
        if d != dim && stride == 0 && size > 1 {
            slice.push(size, dst[d], src[d]);
        } else {
            positions.push(size, dst[d], src[d]);
        }
    }
    for d in (0..sizes.len()).rev() {
        if d != dim && strides[d] == 0 && sizes[d] > 1 {
            each = each.select(d as isize, 0)?;
        }
    }
    Ok((each, [positions, slice]))
}

/// Checks that an index has the rank of the tensor and does not exceed it but along `dim`.
fn check_places(of: &View, index: &View, dim: usize, op: &'static str) -> Result<()> {
    let (sizes, index_sizes) = (as_dims(of).0, as_dims(index).0);
    let fits = sizes.len() == index_sizes.len()
        && index_sizes
            .iter()
            .zip(&sizes)
            .enumerate()
            .all(|(d, (i, s))| d == dim || i <= s);
    if fits {
        return Ok(());
    }
    Err(Error::new(
        Kind::Shape,
        format!(
            "the index, shape {:?}, must have the rank of the tensor, shape {:?}, and not exceed it but in dim {dim}",
            index.shape(),
            of.shape()
        ),
    )
    .op(op))
}
