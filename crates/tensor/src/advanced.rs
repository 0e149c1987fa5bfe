//! Index tensors: `x[indices]` and its assignment.

use crate::View;
use crate::backend::Arg;
use crate::elementwise::other_device;
use crate::index::{Indexed, Move, Pointer, Walk};
use crate::write;
use osteon_kernels::BinaryOp;
use osteon_memory::here;
use osteon_spec::{
    DType, Dims, Error, Kind, Layout, MemoryFormat, Result, broadcast_shapes, elementwise_output,
};

/// An indexed tensor taken apart: which dims index tensors address, and where their shape goes in the result.
pub(crate) struct Lookup {
    /// The index tensors in the order of their dims, all int64 or int32.
    indices: Vec<View>,
    /// Size and stride of the dim that each addresses.
    dims: Vec<(usize, usize)>,
    /// What the indices broadcast to.
    positions: Dims,
    /// Sizes and strides of the dims that are left whole.
    whole: (Dims, Dims),
    /// How many of those come before the positions in the result.
    before: usize,
}

impl Lookup {
    pub(crate) fn new(of: &View, indices: &[Option<View>], op: &'static str) -> Result<Lookup> {
        let said = |e: Error| e.op(op);
        let per_dim = expand_masks(of, indices).map_err(said)?;
        if per_dim.len() > of.dim() {
            return Err(said(Error::new(
                Kind::Index,
                format!(
                    "too many indices for shape {:?}: {}",
                    of.shape(),
                    per_dim.len()
                ),
            )));
        }
        let mut lookup = Lookup {
            indices: Vec::new(),
            dims: Vec::new(),
            positions: Dims::new(),
            whole: (Dims::new(), Dims::new()),
            before: 0,
        };
        let mut places = Vec::new();
        for d in 0..of.dim() {
            let (size, stride) = (of.shape()[d], of.stride()[d]);
            if let Some(Some(index)) = per_dim.get(d) {
                places.push(d);
                lookup.indices.push(index.clone());
                lookup.dims.push((size, stride));
            } else {
                lookup.whole.0.push(size);
                lookup.whole.1.push(stride);
            }
        }
        let shapes: Vec<&[usize]> = lookup.indices.iter().map(View::shape).collect();
        lookup.positions = broadcast_shapes(&shapes).map_err(|_| {
            said(Error::new(
                Kind::Index,
                format!("the index tensors do not broadcast together: shapes {shapes:?}"),
            ))
        })?;
        // Neighbours leave their result where they were; apart, it goes first.
        let adjacent = places.windows(2).all(|w| w[1] == w[0] + 1);
        lookup.before = if adjacent {
            places.first().copied().unwrap_or(0)
        } else {
            0
        };
        Ok(lookup)
    }

    /// The positions' part of a list put between the others.
    fn arranged(&self, positions: &[usize], whole: &[usize]) -> Dims {
        let (before, after) = whole.split_at(self.before);
        [before, positions, after].concat().into()
    }

    fn shape(&self) -> Dims {
        self.arranged(&self.positions, &self.whole.0)
    }

    /// The layout of a fresh result, which follows the tensor and the indices as if all were operands element by
    /// element.
    fn layout(&self) -> Result<Layout> {
        let shape = self.shape();
        let zeros = Dims::from_elem(0, self.positions.len());
        let src = Layout::new(shape.clone(), self.arranged(&zeros, &self.whole.1), 0)?;
        let ones = Dims::from_elem(1, self.whole.0.len());
        let mut inputs = vec![src];
        for index in &self.indices {
            let broadcast = index.layout().expand_to(&self.positions)?;
            // Indices of 32 bits are widened, which makes them dense.
            let own = match index.dtype() {
                DType::I64 => broadcast,
                _ => broadcast.like(MemoryFormat::Preserve)?,
            };
            // A dim of size 1 has the stride that a reshape gives it.
            let sizes = self.arranged(own.sizes(), &ones);
            let shape: Vec<isize> = sizes.iter().map(|&n| n as isize).collect();
            inputs.push(own.with_offset(0)?.view(&shape)?);
        }
        elementwise_output(&inputs.iter().collect::<Vec<_>>(), &shape)
    }

    /// Moves elements between `of`, which the indices address, and `other`, which broadcasts to the result's shape.
    pub(crate) fn run(
        &self,
        what: Move<'_>,
        of: &View,
        other: Arg<'_>,
        op: &'static str,
    ) -> Result<()> {
        let get = matches!(what, Move::Get);
        if self.shape().contains(&0) {
            // Nothing to move, and no index is looked at, but there is nothing that it could name.
            let nowhere = self.dims.iter().any(|&(size, _)| size == 0);
            if nowhere && !self.positions.contains(&0) {
                let message = "an index is out of range for a dim of size 0";
                return Err(Error::new(Kind::Index, message).op(op));
            }
            return Ok(());
        }
        let strides = match other {
            Arg::View(v) => v.layout().expand_to(&self.shape())?.strides().into(),
            Arg::Number(_) => Dims::from_elem(0, self.shape().len()),
        };
        let (before, rest) = strides.split_at(self.before);
        let (at, after) = rest.split_at(self.positions.len());
        let mut positions = Walk::default();
        for (&size, &stride) in self.positions.iter().zip(at) {
            if get {
                positions.push(size, stride, 0)
            } else {
                positions.push(size, 0, stride)
            }
        }
        let mut slice = Walk::default();
        let others = before.iter().chain(after);
        for ((&size, &own), &stride) in self.whole.0.iter().zip(&self.whole.1).zip(others) {
            if get {
                slice.push(size, stride, own)
            } else {
                slice.push(size, own, stride)
            }
        }
        let pointers: Vec<Pointer<'_>> = self
            .indices
            .iter()
            .zip(&self.dims)
            .map(|(index, &(size, stride))| Pointer {
                index,
                size,
                stride,
                wrap: true,
            })
            .collect();
        let indexed = Indexed {
            positions,
            slice,
            pointers: &pointers,
        };
        match (get, other) {
            (true, Arg::View(dst)) => indexed.run(what, dst, of.into(), op),
            _ => indexed.run(what, of, other, op),
        }
    }
}

/// One index for each dim: masks become the coordinates of their true elements.
fn expand_masks(of: &View, indices: &[Option<View>]) -> Result<Vec<Option<View>>> {
    let mut per_dim = Vec::with_capacity(of.dim());
    for index in indices {
        let Some(index) = index else {
            per_dim.push(None);
            continue;
        };
        if index.device() != of.device() {
            return Err(other_device(of.device(), index.device()));
        }
        let dtype = index.dtype();
        if matches!(dtype, DType::I64 | DType::I32) {
            per_dim.push(Some(index.clone()));
            continue;
        }
        if !matches!(dtype, DType::Bool | DType::U8) {
            return Err(Error::new(
                Kind::Index,
                format!("tensors used as indices must be int64, int32, bool or uint8, got {dtype}"),
            ));
        }
        let covered = of.shape().get(per_dim.len()..per_dim.len() + index.dim());
        if covered != Some(index.shape()) {
            return Err(Error::new(
                Kind::Index,
                format!(
                    "the mask, shape {:?}, does not match the dims of shape {:?} from dim {} on",
                    index.shape(),
                    of.shape(),
                    per_dim.len()
                ),
            ));
        }
        per_dim.extend(index.nonzero()?.unbind(1)?.into_iter().map(Some));
    }
    Ok(per_dim)
}

impl View {
    /// The elements that index tensors name, one for each dim or `None` for all of it, in a new tensor. The
    /// indices broadcast; negative ones count from the end; `bool` and `uint8` tensors are masks over as many dims as they
    /// have. The indices' shape takes the place of their dims, or comes first where other dims lie between
    /// them.
    ///
    /// # Errors
    /// An index out of range or of another dtype; indices that do not broadcast; a mask of another shape;
    /// out of memory.
    #[track_caller]
    pub fn index(&self, indices: &[Option<View>]) -> Result<View> {
        let op = "index";
        if let Some(mask) = self.whole_mask(indices) {
            return self.masked_select(mask).map_err(|e| e.op(op));
        }
        let lookup = Lookup::new(self, indices, op)?;
        let layout = lookup.layout().map_err(|e| e.op(op))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        lookup.run(Move::Get, self, (&out).into(), op)?;
        Ok(out)
    }

    /// The one index, if it is a mask over all dims: its coordinates need not be written down.
    fn whole_mask<'a>(&self, indices: &'a [Option<View>]) -> Option<&'a View> {
        match indices {
            [Some(mask)] if mask.dtype() == DType::Bool && self.dim() > 0 => {
                Some(mask).filter(|m| m.shape() == self.shape() && m.device() == self.device())
            }
            _ => None,
        }
    }

    /// Writes `value`, broadcast, where index tensors say (see [`View::index`]); of places that repeat, the last
    /// stays, or, with `accumulate`, all are added.
    ///
    /// # Errors
    /// As [`View::index`]; a value of another dtype, or that does not broadcast; overlap.
    #[track_caller]
    pub fn index_put_(
        &self,
        indices: &[Option<View>],
        value: &View,
        accumulate: bool,
    ) -> Result<()> {
        self.put_at("index_put_", indices, value, accumulate)
    }

    /// [`View::index_put_`] for an operation of this name.
    #[track_caller]
    pub(crate) fn put_at(
        &self,
        op: &'static str,
        indices: &[Option<View>],
        value: &View,
        accumulate: bool,
    ) -> Result<()> {
        if value.dtype() != self.dtype() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the value holds {}, the tensor {}; cast the value with to() first",
                    value.dtype(),
                    self.dtype()
                ),
            )
            .op(op));
        }
        if value.device() != self.device() {
            return Err(other_device(self.device(), value.device()).op(op));
        }
        if let Some(mask) = self.whole_mask(indices)
            && value.dim() == 0
            && !accumulate
        {
            return self.masked_fill_(mask, value.into()).map_err(|e| e.op(op));
        }
        let lookup = Lookup::new(self, indices, op)?;
        let shape = lookup.shape();
        if value.layout().expand_to(&shape).is_err() {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "the value, shape {:?}, does not broadcast to the indexed shape {shape:?}",
                    value.shape()
                ),
            )
            .op(op));
        }
        write::check_itself(self, op)?;
        write::check_apart(self, value, op)?;
        for index in &lookup.indices {
            write::check_apart(self, index, op)?;
        }
        let what = if accumulate {
            Move::Reduce(BinaryOp::Add, &[])
        } else {
            Move::Set
        };
        lookup.run(what, self, value.into(), op)?;
        self.storage().record_write(op, here());
        Ok(())
    }
}
