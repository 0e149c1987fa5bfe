//! Borders around a tensor.

use crate::View;
use crate::advanced::Lookup;
use crate::backend::backend;
use crate::copy::transfer;
use crate::index::Move;
use osteon_memory::{CopyReason, here};
use osteon_spec::{DType, Error, Kind, Layout, MemoryFormat, Result, Scalar};
use std::ops::Range;

/// What is in a border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// One number.
    Constant(Scalar),
    /// The elements mirrored at the edge, which is not repeated.
    Reflect,
    /// The element at the edge.
    Replicate,
    /// The elements from the opposite side of what is kept.
    Circular,
}

impl PadMode {
    /// Which element of `n` stands at a place before, in or behind them, where those outside of `kept` are cut off; `None`
    /// where that would need more than there are.
    fn place(self, at: isize, n: isize, kept: Range<isize>) -> Option<isize> {
        let len = kept.end - kept.start;
        Some(match self {
            _ if kept.contains(&at) => at,
            PadMode::Replicate if n > 0 => at.clamp(0, n - 1),
            PadMode::Reflect if -n < at && at < 0 => -at,
            PadMode::Reflect if n <= at && at < 2 * n - 1 => 2 * (n - 1) - at,
            PadMode::Circular if kept.start - len <= at && at < kept.end + len => {
                kept.start + (at - kept.start).rem_euclid(len)
            }
            _ => return None,
        })
    }
}

/// One dim with its border: elements before and behind it.
struct Border {
    dim: usize,
    before: isize,
    size: isize,
}

impl View {
    /// A new tensor of another shape, its elements unspecified, that is channels-last where this one is.
    ///
    /// # Errors
    /// Out of memory.
    #[track_caller]
    pub fn new_like(&self, shape: &[usize]) -> Result<View> {
        let layout = Layout::dense(shape, self.layout().suggest_memory_format())?;
        View::alloc(layout, self.dtype(), &self.device(), "empty")
    }

    /// The tensor with borders in a new tensor: `pads` are the elements before and behind the last dim, then those of the dim before
    /// it, and so on; negative ones cut elements off. Channels-last stays, otherwise the result is row-major.
    ///
    /// # Errors
    /// Pads that are no pairs, or more than the dims have; a border that needs more elements than there are; a number
    /// that the dtype cannot hold; out of memory.
    #[track_caller]
    pub fn pad(&self, pads: &[isize], mode: PadMode) -> Result<View> {
        let op = "pad";
        let (shape, borders) = self.borders(pads).map_err(|e| e.op(op))?;
        let layout = Layout::dense(&shape, self.layout().suggest_memory_format());
        let layout = layout.map_err(|e| e.op(op))?;
        if let PadMode::Constant(value) = mode {
            value.check_fits(self.dtype()).map_err(|e| e.op(op))?;
            return self.framed(&borders, layout, value, op);
        }
        let indices = self.padding_places(pads, mode)?;
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        if out.numel() > 0 {
            Lookup::new(self, &indices, op)?.run(Move::Get, self, (&out).into(), op)?;
        }
        Ok(out)
    }

    /// The shape with these pads, and what is put around each dim.
    fn borders(&self, pads: &[isize]) -> Result<(Vec<usize>, Vec<Border>)> {
        if !pads.len().is_multiple_of(2) || pads.len() / 2 > self.dim() {
            return Err(Error::new(
                Kind::Value,
                format!(
                    "needs a pair of numbers for each dim from the last on, of {} dims, got {pads:?}",
                    self.dim()
                ),
            ));
        }
        let mut shape: Vec<usize> = self.shape().to_vec();
        let mut borders = Vec::new();
        for (pair, dim) in pads.chunks_exact(2).zip((0..self.dim()).rev()) {
            let own = shape[dim] as isize;
            let size = own.saturating_add(pair[0]).saturating_add(pair[1]);
            shape[dim] = usize::try_from(size).map_err(|_| {
                Error::new(
                    Kind::Shape,
                    format!("pads {pair:?} leave dim {dim} of size {own} less than nothing"),
                )
            })?;
            borders.push(Border {
                dim,
                before: pair[0],
                size,
            });
        }
        Ok((shape, borders))
    }

    /// Index tensors that name the elements which a pad shows, in a mode other than a constant.
    ///
    /// # Errors
    /// A mode that is not for this shape or dtype; fewer elements than the pads need.
    pub fn padding_places(&self, pads: &[isize], mode: PadMode) -> Result<Vec<Option<View>>> {
        let op = "pad";
        let (_, borders) = self.borders(pads).map_err(|e| e.op(op))?;
        if mode == PadMode::Replicate && self.dtype() == DType::Bool {
            return Err(Error::new(Kind::DType, "Replicate is not defined for bool").op(op));
        }
        let free = self.dim() - borders.len();
        if !(1..=2).contains(&free) || !(1..=3).contains(&borders.len()) {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "{mode:?} is for the last 1, 2 or 3 dims behind one or two others, got {} pads for shape {:?}",
                    pads.len(),
                    self.shape()
                ),
            )
            .op(op));
        }
        let mut indices = vec![None; self.dim()];
        for b in &borders {
            let own = self.shape()[b.dim] as isize;
            let kept = (-b.before).max(0)..own.min(b.size - b.before);
            let place = |at: isize| mode.place(at - b.before, own, kept.clone());
            let places = (0..b.size).map(|at| place(at).map(|i| i as i64));
            let Some(places) = places.collect::<Option<Vec<i64>>>() else {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "{mode:?} needs more elements than dim {} of size {own} has",
                        b.dim
                    ),
                )
                .op(op));
            };
            let places = View::from_slice(&places, &[places.len()], &self.device())?;
            // Along its own dim, to broadcast with the others.
            let behind = borders.iter().filter(|other| other.dim > b.dim).count();
            let mut shape = vec![1isize; behind + 1];
            shape[0] = -1;
            indices[b.dim] = Some(if places.numel() == 0 {
                places
            } else {
                places.view(&shape)?
            });
        }
        Ok(indices)
    }

    /// The tensor in a frame of one number.
    #[track_caller]
    fn framed(
        &self,
        borders: &[Border],
        layout: Layout,
        value: Scalar,
        op: &'static str,
    ) -> Result<View> {
        let mut from = self.clone();
        for b in borders {
            // What is cut off, in turn.
            let d = b.dim as isize;
            let (own, after) = (
                from.shape()[b.dim] as isize,
                b.size - b.before - from.shape()[b.dim] as isize,
            );
            let start = (-b.before).max(0);
            from = from
                .narrow(d, start.min(own), own - start + after.min(0))
                .map_err(|e| e.op(op))?;
        }
        let is_smaller =
            |b: &Border| b.before <= 0 && b.size - b.before <= self.shape()[b.dim] as isize;
        if borders.iter().all(is_smaller) {
            return from.copy(MemoryFormat::Preserve).map_err(|e| e.op(op));
        }
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        backend(self.device())
            .fill(&out, value)
            .map_err(|e| e.op(op))?;
        let mut to = out.clone();
        for b in borders {
            to = to.narrow(
                b.dim as isize,
                b.before.max(0),
                from.shape()[b.dim] as isize,
            )?;
        }
        transfer(&to, &from, CopyReason::Assigned, op, here())?;
        Ok(out)
    }
}
