//! Elements as a set: the different ones, how often each occurs, and which are where.
//!
//! Elements are compared by the integers that [`Backend::keys`](crate::backend::Backend::keys) gives, so that nothing here
//! depends on a dtype.

use crate::View;
use crate::backend::backend;
use crate::create::reserved;
use crate::target::with_out;
use osteon_kernels::{key_of_nan, par::par_slices};
use osteon_memory::{attribute, here};
use osteon_spec::{DType, Error, Kind, Result};

/// Elements that are searched for by one thread, at least.
const GRAIN: usize = 1 << 10;

/// The different elements of a tensor.
#[derive(Clone, Debug)]
pub struct Unique {
    /// Each of them once.
    pub values: View,
    /// For each element its place among them (int64).
    pub inverse: View,
    /// For each of them how often it occurs (int64).
    pub counts: View,
}

/// Runs of equal items in an order.
struct Runs {
    /// The item that each run begins with.
    firsts: Vec<i64>,
    inverse: Vec<i64>,
    counts: Vec<i64>,
}

impl Runs {
    /// The runs of items `0..n`, visited in an order, in which neighbours may be the same.
    fn new(order: &[usize], same: impl Fn(usize, usize) -> bool, op: &'static str) -> Result<Runs> {
        let mut runs = Runs {
            firsts: Vec::new(),
            inverse: reserved(order.len(), op)?,
            counts: Vec::new(),
        };
        runs.inverse.resize(order.len(), 0);
        let mut previous = None;
        for &item in order {
            if !previous.is_some_and(|p| same(p, item)) {
                runs.firsts.push(item as i64);
                runs.counts.push(0);
            }
            previous = Some(item);
            let run = runs.counts.len() - 1;
            runs.counts[run] += 1;
            runs.inverse[item] = run as i64;
        }
        Ok(runs)
    }
}

/// The numbers `0..n`.
fn places(n: usize, op: &'static str) -> Result<Vec<usize>> {
    let mut places = reserved(n, op)?;
    places.extend(0..n);
    Ok(places)
}

impl View {
    /// The integer that stands for each element, in row-major order.
    #[track_caller]
    pub(crate) fn keys(&self, op: &'static str) -> Result<Vec<u64>> {
        let mut keys = reserved(self.numel(), op)?;
        keys.resize(self.numel(), 0);
        backend(self.device())
            .keys(self, &mut keys)
            .map_err(|e| e.op(op))?;
        Ok(keys)
    }

    #[track_caller]
    fn whole_numbers(&self, numbers: &[i64], shape: &[usize]) -> Result<View> {
        View::from_slice(numbers, shape, &self.device())
    }

    /// The different elements in ascending order, or, of a `consecutive` search, one for each run of equal elements in
    /// row-major order. Each NaN is different from all others.
    ///
    /// # Errors
    /// Complex elements; out of memory.
    #[track_caller]
    pub fn unique(&self, consecutive: bool) -> Result<Unique> {
        let op = if consecutive {
            "unique_consecutive"
        } else {
            "unique"
        };
        let run = || {
            let [firsts, inverse, counts] = backend(self.device()).classes(self, consecutive)?;
            Ok(Unique {
                values: self.take(&firsts)?,
                inverse,
                counts,
            })
        };
        attribute(here(), run).map_err(|e: Error| e.op(op))
    }

    /// The different slices at the indices of a dim, in lexicographic order, or, of a `consecutive` search, one for each run of equal
    /// ones.
    ///
    /// # Errors
    /// A dim out of range; no elements in slices that there are; complex elements; out of memory.
    #[track_caller]
    pub fn unique_dim(&self, dim: isize, consecutive: bool) -> Result<Unique> {
        let op = if consecutive {
            "unique_consecutive"
        } else {
            "unique"
        };
        let d = self.existing_dim(dim, op)?;
        let first = self.movedim(&[d as isize], &[0])?;
        let n = first.shape()[0];
        if self.numel() == 0 && n > 0 {
            let message = format!(
                "the slices of shape {:?} along dim {d} have no elements",
                self.shape()
            );
            return Err(Error::new(Kind::Shape, message).op(op));
        }
        let keys = first.keys(op)?;
        let len = keys.len().checked_div(n).unwrap_or(0);
        let slice = |i: usize| &keys[i * len..(i + 1) * len];
        let mut order = places(n, op)?;
        if !consecutive {
            order.sort_by(|&a, &b| slice(a).cmp(slice(b)));
        }
        let nan = key_of_nan(self.dtype());
        let same = |a: usize, b: usize| {
            slice(a) == slice(b) && !slice(a).iter().any(|&key| Some(key) == nan)
        };
        let runs = Runs::new(&order, same, op)?;
        let kept = runs.firsts.len();
        let values = first.index_select(0, &self.whole_numbers(&runs.firsts, &[kept])?)?;
        let values = match n {
            // Nothing was moved.
            0 => View::empty(self.shape(), self.dtype(), &self.device())?,
            _ => values.movedim(&[0], &[d as isize])?,
        };
        Ok(Unique {
            values,
            inverse: self.whole_numbers(&runs.inverse, &[n])?,
            counts: self.whole_numbers(&runs.counts, &[kept])?,
        })
    }

    /// Whether each element is one of `test`: a new `bool` tensor. NaN is none.
    ///
    /// # Errors
    /// Dtypes that do not promote; `bool` or complex elements; out of memory.
    #[track_caller]
    pub fn isin(&self, test: &View, invert: bool) -> Result<View> {
        let op = "isin";
        if self.dtype() == DType::Bool || test.dtype() == DType::Bool {
            return Err(
                Error::new(Kind::DType, "not defined for bool; cast with to() first").op(op),
            );
        }
        let dtype = self.dtype().promote(test.dtype()).map_err(|e| e.op(op))?;
        let mut wanted = test.promoted(dtype, op)?.keys(op)?;
        wanted.sort_unstable();
        let nan = key_of_nan(dtype);
        let keys = self.promoted(dtype, op)?.keys(op)?;
        let mut found: Vec<bool> = reserved(keys.len(), op)?;
        found.resize(keys.len(), false);
        let is_in = |key: &u64| Some(*key) != nan && wanted.binary_search(key).is_ok();
        par_slices(&mut found, GRAIN, |start, found| {
            for (found, key) in found.iter_mut().zip(&keys[start..]) {
                *found = is_in(key) != invert;
            }
        });
        View::from_slice(&found, self.shape(), &self.device())
    }
}

with_out! { to;
    /// For each of `values` how many elements of the last dim of this tensor, in ascending order, are smaller, or, from the
    /// `right`, not larger: a new int64 tensor. `self` is a vector, or has the dims of `values` but the last; `sorter` are
    /// the indices that sort it.
    ///
    /// # Errors
    /// Dims that differ; another dtype; a sorter of another shape, or with indices out of range; out of memory.
    searchsorted searchsorted_out(&self, values: &View, right: bool, sorter: Option<&View>) -> View {
        let op = to.op;
        if self.dtype() == DType::Bool {
            let message = "not defined for bool; cast with to() first";
            return Err(Error::new(Kind::DType, message).op(op));
        }
        if values.dtype() != self.dtype() {
            return Err(Error::new(
                Kind::DType,
                format!(
                    "the boundaries hold {}, the values {}",
                    self.dtype(),
                    values.dtype()
                ),
            )
            .op(op));
        }
        let rank = self.dim();
        let fits = rank == 1
            || (rank > 1
                && rank == values.dim()
                && self.shape()[..rank - 1] == values.shape()[..rank - 1]);
        if !fits {
            return Err(Error::new(
                Kind::Shape,
                format!(
                    "the boundaries must be a vector or have the dims of the values but the last, got shapes {:?} and {:?}",
                    self.shape(),
                    values.shape()
                ),
            )
            .op(op));
        }
        let sorted = match sorter {
            None => self.clone(),
            Some(order) if order.shape() != self.shape() || order.dtype() != DType::I64 => {
                return Err(Error::new(
                    Kind::Shape,
                    format!(
                        "the sorter must be int64 of shape {:?}, got {:?}",
                        self.shape(),
                        order.shape()
                    ),
                )
                .op(op));
            }
            Some(order) => self.gather(-1, order).map_err(|e| e.op(op))?,
        };
        let (sorted, wanted) = (sorted.keys(op)?, values.keys(op)?);
        let len = self.shape()[rank - 1];
        let per_row = if rank == 1 {
            wanted.len()
        } else {
            values.shape()[rank - 1]
        };
        let nan = key_of_nan(self.dtype());
        let mut found: Vec<i64> = reserved(wanted.len(), op)?;
        found.resize(wanted.len(), 0);
        par_slices(&mut found, GRAIN, |first, found| {
            for (i, found) in (first..).zip(found) {
                let (key, row) = (wanted[i], if rank == 1 { 0 } else { i / per_row });
                let row = &sorted[row * len..(row + 1) * len];
                // NaN, as a boundary or a value, is below or above nothing, which sends the search on.
                let below =
                    |x: u64| x < key || Some(key) == nan || Some(x) == nan || (right && x == key);
                let (mut start, mut end) = (0, len);
                while start < end {
                    let middle = start + (end - start) / 2;
                    if below(row[middle]) {
                        start = middle + 1;
                    } else {
                        end = middle;
                    }
                }
                *found = start as i64;
            }
        });
        to.put(self.whole_numbers(&found, values.shape())?)
    }
}
