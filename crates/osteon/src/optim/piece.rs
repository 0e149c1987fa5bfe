//! Parameters in pieces: what a step needs on the way is as large as a piece, and a piece stays in the cache from one
//! operation of the step to the next.

use crate::{Result, Tensor};
use std::sync::{Mutex, PoisonError};

/// Elements of a piece.
pub(super) const PIECE: usize = 1 << 17;

/// The same runs of elements of several tensors, one after the other. Tensors that do not lie dense in one order
/// come whole. Complex numbers come as pairs.
pub(super) fn pieces(
    tensors: &[&Tensor],
    size: usize,
) -> Result<impl Iterator<Item = Result<Vec<Tensor>>>> {
    let is_flat =
        |t: &Tensor| t.stride() == tensors[0].stride() && t.layout().is_non_overlapping_and_dense();
    let flat = tensors.iter().all(|t| is_flat(t));
    let real = |t: &Tensor| {
        if t.dtype().is_complex() {
            t.view_as_real()
        } else {
            Ok(t.clone())
        }
    };
    let whole: Vec<Tensor> = tensors.iter().map(|t| real(t)).collect::<Result<_>>()?;
    let n = whole.first().map_or(0, Tensor::numel);
    let runs: Vec<Tensor> = if flat && n > 0 {
        let run = |t: &Tensor| t.as_strided([n as isize], [1], None);
        whole.iter().map(run).collect::<Result<_>>()?
    } else {
        whole
    };
    let size = if flat { size } else { n };
    Ok((0..n).step_by(size.max(1)).map(move |start| {
        if start == 0 && size >= n {
            return Ok(runs.clone());
        }
        let piece = |t: &Tensor| t.narrow(0, start as isize, size.min(n - start) as isize);
        runs.iter().map(piece).collect()
    }))
}

/// Room for numbers on the way of a step, kept from piece to piece and from step to step.
#[derive(Debug, Default)]
pub struct Scratch(Mutex<Vec<Tensor>>);

impl Scratch {
    /// Room number `k`, of the shape and dtype of a piece.
    pub(super) fn like(&self, piece: &Tensor, k: usize) -> Result<Tensor> {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while rooms.len() <= k {
            rooms.push(Tensor::empty([0], piece.dtype(), &piece.device())?);
        }
        let room = &mut rooms[k];
        if (room.dtype(), room.device()) != (piece.dtype(), piece.device())
            || room.numel() < piece.numel()
        {
            *room = Tensor::empty([piece.numel()], piece.dtype(), &piece.device())?
                .named("optimizer scratch");
        }
        let sizes: Vec<isize> = piece.shape().iter().map(|&n| n as isize).collect();
        room.narrow(0, 0, piece.numel() as isize)?.view(sizes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_each_element_once_in_one_order() -> Result<()> {
        let base = Tensor::arange(0.0, 24.0, 1.0)?;
        let x = base.view([4, 6])?.t()?; // dense in another order
        let y = x.zeros_like(None)?;
        for size in [1, 5, 24, 100] {
            y.zero_()?;
            for piece in pieces(&[&x, &y], size)? {
                let piece = piece?;
                assert!(piece[0].numel() <= size);
                piece[1].add_(&piece[0])?;
            }
            assert!(y.equal(&x)?, "pieces of {size}");
        }
        let gaps = base.slice_step(0, .., 2)?;
        let whole: Vec<_> = pieces(&[&gaps, &gaps.copy()?], 5)?.collect::<Result<_>>()?;
        assert_eq!((whole.len(), whole[0][0].numel()), (1, 12));
        assert_eq!(pieces(&[&base.slice(0, ..0)?], 5)?.count(), 0);
        Ok(())
    }
}
