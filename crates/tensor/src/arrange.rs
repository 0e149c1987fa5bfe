//! The elements of one tensor in another order, or several times, in a new tensor.

use crate::View;
use crate::backend::backend;
use crate::copy::transfer;
use crate::target::{Reads, with_out};
use crate::write;
use osteon_kernels::Triangle;
use osteon_memory::{CopyReason, here};
use osteon_spec::{Dims, Error, Kind, Layout, MemoryFormat, Result, Scalar, wrap_dim};

/// Dims counted from the front, each once.
pub(crate) fn wrap_dims(dims: &[isize], rank: usize) -> Result<Vec<usize>> {
    let mut wrapped = Vec::with_capacity(dims.len());
    for &dim in dims {
        let d = wrap_dim(dim, rank)?;
        if wrapped.contains(&d) {
            return Err(Error::new(
                Kind::Value,
                format!("dim {d} is named twice in {dims:?}"),
            ));
        }
        wrapped.push(d);
    }
    Ok(wrapped)
}

with_out! { to;
    /// A vector as a diagonal of a new matrix of zeros; a diagonal of a matrix as a new vector.
    ///
    /// # Errors
    /// Another number of dims; out of memory.
    diag diag_out(&self, diagonal: isize) -> View {
        let (kind, reads) = ((self.dtype(), self.device()), Reads::Apart(&[self]));
        let (op, site) = (to.op, here());
        if self.dim() == 2 {
            let line = self.diagonal(diagonal, 0, 1)?;
            return to.write(Layout::contiguous(line.shape())?, kind, reads, |out| {
                transfer(out, &line, CopyReason::Assigned, op, site)
            });
        }
        let &[n] = self.shape() else {
            let message = format!("needs one or two dims, got shape {:?}", self.shape());
            return Err(Error::new(Kind::Shape, message).op(op));
        };
        let n = n.saturating_add(diagonal.unsigned_abs());
        let layout = Layout::contiguous(&[n, n]).map_err(|e| e.op(op))?;
        to.write(layout, kind, reads, |out| {
            backend(out.device()).fill(out, Scalar::Bool(false))?;
            let line = out.diagonal(diagonal, 0, 1)?;
            transfer(&line, self, CopyReason::Assigned, op, site)
        })
    }

    /// One triangle of each matrix, zeros elsewhere, in a new row-major tensor.
    ///
    /// # Errors
    /// Fewer than two dims; out of memory.
    triangle triangle_out(&self, keep: Triangle) -> View {
        let to = to.named([name(keep, ["tril", "triu"]), name(keep, ["tril_out", "triu_out"])]);
        self.check_matrices(to.op)?;
        let layout = Layout::contiguous(self.shape()).map_err(|e| e.op(to.op))?;
        let kind = (self.dtype(), self.device());
        to.write(layout, kind, Reads::Each(&[self]), |out| {
            backend(self.device()).triangle(keep, out, self)
        })
    }
}

impl View {
    /// These dims from the last index to the first, in a new tensor that keeps the order of dims.
    ///
    /// # Errors
    /// A dim out of range or named twice; out of memory.
    #[track_caller]
    pub fn flip(&self, dims: &[isize]) -> Result<View> {
        let op = "flip";
        let mut wrapped = wrap_dims(dims, self.dim()).map_err(|e| e.op(op))?;
        wrapped.retain(|&d| d < self.dim());
        let layout = self
            .layout()
            .like(MemoryFormat::Preserve)
            .map_err(|e| e.op(op))?;
        let out = View::alloc(layout, self.dtype(), &self.device(), op)?;
        backend(self.device())
            .flip(&out, self, &wrapped)
            .map_err(|e| e.op(op))?;
        Ok(out)
    }

    /// Elements moved by so many places along each of these dims, those that fall off the end to the beginning.
    /// Without dims, as if the tensor were a vector.
    ///
    /// # Errors
    /// No shifts; not one for each dim; a dim out of range; out of memory.
    #[track_caller]
    pub fn roll(&self, shifts: &[isize], dims: &[isize]) -> Result<View> {
        let op = "roll";
        if let ([shift], []) = (shifts, dims) {
            let rolled = self.flatten(0, -1)?.roll(&[*shift], &[0])?;
            return rolled.with_layout(Layout::contiguous(self.shape())?, op);
        }
        if shifts.is_empty() || shifts.len() != dims.len() {
            return Err(Error::new(
                Kind::Value,
                format!("needs a shift for each dim, got {shifts:?} and {dims:?}"),
            )
            .op(op));
        }
        if self.numel() == 0 {
            return self.copy(MemoryFormat::Preserve);
        }
        let mut rolled = self.clone();
        for (&shift, &dim) in shifts.iter().zip(dims) {
            let d = self.existing_dim(dim, op)?;
            let n = self.shape()[d] as isize;
            let start = (n - shift.rem_euclid(n)) % n;
            let (d, end) = (d as isize, n - start);
            let parts = [rolled.narrow(d, start, end)?, rolled.narrow(d, 0, start)?];
            rolled = View::cat(&[&parts[0], &parts[1]], d).map_err(|e| e.op(op))?;
        }
        Ok(rolled)
    }

    /// The tensor so many times along each dim, in a new row-major one; more numbers than dims make new dims in
    /// front.
    ///
    /// # Errors
    /// Fewer numbers than dims; a negative one; out of memory.
    #[track_caller]
    pub fn repeat(&self, repeats: &[isize]) -> Result<View> {
        let op = "repeat";
        let Some(new) = repeats.len().checked_sub(self.dim()) else {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "needs a number for each dim of {:?}, got {repeats:?}",
                    self.shape()
                ),
            )
            .op(op));
        };
        let times = non_negative(repeats).map_err(|e| e.op(op))?;
        let mut sizes = Dims::from_elem(1, new);
        sizes.extend_from_slice(self.shape());
        let shape: Dims = sizes
            .iter()
            .zip(&times)
            .map(|(n, t)| n.saturating_mul(*t))
            .collect();
        let out = View::alloc(
            Layout::contiguous(&shape).map_err(|e| e.op(op))?,
            self.dtype(),
            &self.device(),
            op,
        )?;
        if out.numel() > 0 {
            // Each dim as two: which repetition, and where in it.
            let (mut apart, mut each) = (Vec::new(), Vec::new());
            for (&n, &t) in sizes.iter().zip(&times) {
                apart.extend([t as isize, n as isize]);
                each.extend([1, n as isize]);
            }
            let mut strides: Vec<isize> = Vec::new();
            for d in 0..sizes.len() {
                let own = d.checked_sub(new).map_or(0, |d| self.stride()[d] as isize);
                strides.extend([0, own]);
            }
            let to = out.with_layout(out.layout().view(&apart)?, op)?;
            let from = self.as_strided(&each, &strides, None)?;
            transfer(&to, &from, CopyReason::Assigned, op, here())?;
        }
        Ok(out)
    }

    /// As [`View::repeat`], but fewer numbers than dims count for the last ones.
    ///
    /// # Errors
    /// A negative number; out of memory.
    #[track_caller]
    pub fn tile(&self, repeats: &[isize]) -> Result<View> {
        let mut all = vec![1; self.dim().saturating_sub(repeats.len())];
        all.extend_from_slice(repeats);
        self.repeat(&all).map_err(|e| e.op("tile"))
    }

    /// Each index of a dim so many times in a row, in a new row-major tensor; without a dim, of all elements as a
    /// vector.
    ///
    /// # Errors
    /// A negative number; a dim out of range, or any of a 0-dim tensor; out of memory.
    #[track_caller]
    pub fn repeat_interleave(&self, repeats: isize, dim: Option<isize>) -> Result<View> {
        let op = "repeat_interleave";
        let Some(dim) = dim else {
            return self.flatten(0, -1)?.repeat_interleave(repeats, Some(0));
        };
        let d = self.existing_dim(dim, op)?;
        let times = non_negative(&[repeats]).map_err(|e| e.op(op))?[0];
        let mut shape = Dims::from_slice(self.shape());
        shape[d] = shape[d].saturating_mul(times);
        let out = View::alloc(
            Layout::contiguous(&shape).map_err(|e| e.op(op))?,
            self.dtype(),
            &self.device(),
            op,
        )?;
        if out.numel() > 0 {
            let sizes = [self.shape()[d] as isize, repeats];
            let to = out.with_layout(out.layout().unflatten(d as isize, &sizes)?, op)?;
            let from = self.unsqueeze(d as isize + 1)?;
            transfer(&to, &from, CopyReason::Assigned, op, here())?;
        }
        Ok(out)
    }

    /// The indices of a dim, index `i` `repeats[i]` times in a row, as a vector.
    ///
    /// # Errors
    /// Not one int64 or int32 number for each index (or one for all); a negative number; a dim out of range; out of
    /// memory.
    #[track_caller]
    pub fn repeated_indices(&self, repeats: &View, dim: isize) -> Result<View> {
        let op = "repeat_interleave";
        let d = self.existing_dim(dim, op)?;
        if !matches!(
            repeats.dtype(),
            osteon_spec::DType::I64 | osteon_spec::DType::I32
        ) {
            return Err(Error::new(
                Kind::DType,
                format!("repeats must be int64 or int32, got {}", repeats.dtype()),
            )
            .op(op));
        }
        let n = self.shape()[d];
        if repeats.dim() > 1 || (repeats.numel() != 1 && repeats.numel() != n) {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "needs one number, or one for each of {n} indices, got shape {:?}",
                    repeats.shape()
                ),
            )
            .op(op));
        }
        let times = repeats.to_dtype(osteon_spec::DType::I64)?.to_vec::<i64>()?;
        let times = if times.len() == 1 {
            vec![times[0]; n]
        } else {
            times
        };
        let times: Vec<isize> = times.into_iter().map(|t| t as isize).collect();
        let times = non_negative(&times).map_err(|e| e.op(op))?;
        let total = times.iter().fold(0usize, |a, t| a.saturating_add(*t));
        let mut indices = crate::create::reserved(total, op)?;
        for (i, &t) in times.iter().enumerate() {
            indices.extend(std::iter::repeat_n(i as i64, t));
        }
        View::from_slice(&indices, &[total], &self.device())
    }

    /// A dim that there is, counted from the front, of a tensor that has dims.
    ///
    /// # Errors
    /// A dim out of range; a 0-dim tensor.
    pub fn existing_dim(&self, dim: isize, op: &'static str) -> Result<usize> {
        if self.dim() == 0 {
            return Err(Error::new(
                Kind::Index,
                format!("dim {dim} is named, but the tensor has no dims; unsqueeze(0) first"),
            )
            .op(op));
        }
        wrap_dim(dim, self.dim()).map_err(|e| e.op(op))
    }

    /// Writes zeros outside of one triangle of each matrix.
    ///
    /// # Errors
    /// Fewer than two dims; a tensor that overlaps itself; a guard in the way.
    #[track_caller]
    pub fn triangle_(&self, keep: Triangle) -> Result<()> {
        let op = name(keep, ["tril_", "triu_"]);
        self.check_matrices(op)?;
        write::check_itself(self, op)?;
        backend(self.device())
            .triangle(keep, self, self)
            .map_err(|e| e.op(op))?;
        self.storage().record_write(op, here());
        Ok(())
    }

    fn check_matrices(&self, op: &'static str) -> Result<()> {
        if self.dim() >= 2 {
            return Ok(());
        }
        let message = format!("needs at least two dims, got shape {:?}", self.shape());
        Err(Error::new(Kind::Shape, message).op(op))
    }
}

fn name(keep: Triangle, [lower, upper]: [&'static str; 2]) -> &'static str {
    match keep {
        Triangle::Lower(_) => lower,
        Triangle::Upper(_) => upper,
    }
}

fn non_negative(repeats: &[isize]) -> Result<Vec<usize>> {
    let times: Option<Vec<usize>> = repeats.iter().map(|&n| usize::try_from(n).ok()).collect();
    times.ok_or_else(|| {
        Error::new(
            Kind::Value,
            format!("repeats must not be negative, got {repeats:?}"),
        )
    })
}
