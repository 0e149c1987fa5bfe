//! Maxima and averages of windows.

use crate::Tensor;
use crate::graph::{linear, one, record, rule, wanted};
use osteon_memory::{attribute, here};
use osteon_spec::Result;
use osteon_tensor::{Average, Averages, Pool, View};
use std::sync::Arc;

/// The maxima of windows over the last two dims of images. The result is channels-last where the input is.
///
/// Allocates the result only.
///
/// # Errors
/// Other ranks than 3 and 4; windows that do not fit; `bool` or complex numbers; a guard in the way; out of memory.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[[1f32, 5.0], [3.0, 2.0]]])?;
/// assert_eq!(functional::max_pool2d(&x, &Pool::new([2, 2]))?.to_vec::<f32>()?, [5.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool2d(input: &Tensor, how: &Pool<2>) -> Result<Tensor> {
    let (out, at) = input.as_view().max_pool2d(how, wanted(&[input]))?;
    picked(out, at.as_ref(), input, 2)
}

/// [`max_pool2d`], and where in its image each maximum is.
///
/// # Errors
/// As [`max_pool2d`].
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[[1f32, 5.0], [3.0, 2.0]]])?;
/// let (max, at) = functional::max_pool2d_with_indices(&x, &Pool::new([2, 2]))?;
/// assert_eq!((max.item::<f32>()?, at.item::<i64>()?), (5.0, 1));
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool2d_with_indices(input: &Tensor, how: &Pool<2>) -> Result<(Tensor, Tensor)> {
    let (out, at) = input.as_view().max_pool2d(how, true)?;
    both(out, at, input, 2)
}

/// The maxima of windows over the last dim.
///
/// # Errors
/// As [`max_pool2d`], of ranks 2 and 3; integers, as in PyTorch.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[1f32, 5.0, 3.0, 2.0]])?;
/// assert_eq!(functional::max_pool1d(&x, &Pool::new([2]))?.to_vec::<f32>()?, [5.0, 3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool1d(input: &Tensor, how: &Pool<1>) -> Result<Tensor> {
    let (out, at) = input.as_view().max_pool1d(how, wanted(&[input]))?;
    picked(out, at.as_ref(), input, 1)
}

/// [`max_pool1d`], and where each maximum is.
///
/// # Errors
/// As [`max_pool2d`], of ranks 2 and 3.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Pool}};
/// let x = Tensor::new([[1f32, 5.0, 3.0, 2.0]])?;
/// let (_, at) = functional::max_pool1d_with_indices(&x, &Pool::new([2]))?;
/// assert_eq!(at.to_vec::<i64>()?, [1, 2]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn max_pool1d_with_indices(input: &Tensor, how: &Pool<1>) -> Result<(Tensor, Tensor)> {
    let (out, at) = input.as_view().max_pool1d(how, true)?;
    both(out, at, input, 1)
}

/// The averages of windows over the last two dims of images.
///
/// # Errors
/// As [`max_pool2d`]; integers other than `int64`.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Average, Pool}};
/// let x = Tensor::new([[[1f32, 5.0], [4.0, 2.0]]])?;
/// let y = functional::avg_pool2d(&x, &Pool::new([2, 2]), Average::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn avg_pool2d(input: &Tensor, how: &Pool<2>, average: Average) -> Result<Tensor> {
    let averages = Averages::new(input.as_view(), how, average).map_err(|e| e.op("avg_pool2d"))?;
    averaged(input, &Arc::new(averages)).map_err(|e| e.op("avg_pool2d"))
}

/// The averages of windows over the last dim.
///
/// # Errors
/// As [`avg_pool2d`], of ranks 2 and 3.
///
/// ```
/// # use osteon_autograd::{Tensor, functional::{self, Average, Pool}};
/// let x = Tensor::new([[1f32, 5.0, 4.0, 2.0]])?;
/// let y = functional::avg_pool1d(&x, &Pool::new([2]), Average::default())?;
/// assert_eq!(y.to_vec::<f32>()?, [3.0, 3.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn avg_pool1d(input: &Tensor, how: &Pool<1>, average: Average) -> Result<Tensor> {
    let average = || avg_pool2d(&input.unsqueeze(-2)?, &how.into(), average)?.squeeze_dims([-2]);
    attribute(here(), average).map_err(|e| e.op("avg_pool1d"))
}

/// Averages of windows that divide the last two dims into as many as the result has; `None` keeps a size.
///
/// # Errors
/// As [`avg_pool2d`]; integers.
///
/// ```
/// # use osteon_autograd::{Tensor, functional};
/// let x = Tensor::new([[[1f32, 5.0, 4.0, 2.0], [1.0, 1.0, 0.0, 2.0]]])?;
/// let y = functional::adaptive_avg_pool2d(&x, [Some(1), Some(2)])?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), osteon_spec::Error>(())
/// ```
#[track_caller]
pub fn adaptive_avg_pool2d(input: &Tensor, sizes: [Option<isize>; 2]) -> Result<Tensor> {
    let averages =
        Averages::adaptive(input.as_view(), sizes).map_err(|e| e.op("adaptive_avg_pool2d"))?;
    averaged(input, &Arc::new(averages)).map_err(|e| e.op("adaptive_avg_pool2d"))
}

/// Maxima, and their positions, which were asked for.
fn both(out: View, at: Option<View>, input: &Tensor, dims: isize) -> Result<(Tensor, Tensor)> {
    let out = picked(out, at.as_ref(), input, dims)?;
    let at = at.map_or_else(|| out.clone(), Tensor::from_view);
    Ok((out, at))
}

/// Elements that were picked at positions within the last dims. Positions are there where gradients are wanted.
fn picked(out: View, at: Option<&View>, input: &Tensor, dims: isize) -> Result<Tensor> {
    record(out, &[input], |r, _| {
        at.map_or(Ok(()), |at| r.save_view(at))?;
        Ok(rule(move |b| {
            let flat = |t: Tensor| t.flatten(-dims, -1);
            let (g, whole) = b.zeros(0)?;
            flat(whole.clone())?.scatter_add_(-1, &flat(b.saved(0)?)?, &flat(g)?)?;
            one(whole)
        }))
    })
}

#[track_caller]
fn averaged(input: &Tensor, averages: &Arc<Averages>) -> Result<Tensor> {
    record(averages.pool(input.as_view())?, &[input], |r, _| {
        if !averages.is_mean() {
            r.save_number();
        }
        let averages = averages.clone();
        Ok(linear(move |g| spread(g, &averages)))
    })
}

/// The transpose of [`averaged`], and the other way round.
fn spread(g: &Tensor, averages: &Arc<Averages>) -> Result<Tensor> {
    record(averages.spread(g.as_view())?, &[g], |_, _| {
        let averages = averages.clone();
        Ok(linear(move |g| averaged(g, &averages)))
    })
}
