//! Sizes and strides: short lists, inline up to rank 5.

use crate::{Error, Kind, Result};
use smallvec::SmallVec;

/// The largest rank of a tensor, as in PyTorch.
pub const MAX_RANK: usize = 64;

/// A list of sizes or strides, in elements. No heap up to rank 5.
pub type Dims = SmallVec<[usize; 5]>;

/// A copy of a list. The ranks that occur are copied as arrays of known length: a call of `memcpy`
/// would take longer than the rest of a view.
#[inline]
pub(crate) fn copied(list: &[usize]) -> Dims {
    let inline = match *list {
        [] => [0; 5],
        [a] => [a, 0, 0, 0, 0],
        [a, b] => [a, b, 0, 0, 0],
        [a, b, c] => [a, b, c, 0, 0],
        [a, b, c, d] => [a, b, c, d, 0],
        [a, b, c, d, e] => [a, b, c, d, e],
        _ => return Dims::from_slice(list),
    };
    Dims::from_buf_and_len(inline, list.len())
}

/// Whether two lists are equal; a call of `memcmp` would take longer for such short ones.
#[inline]
pub(crate) fn equal(a: &[usize], b: &[usize]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b)
}

/// A dimension counted from the front (`0..rank`) or, negative, from the back, as an index into
/// a tensor of this rank. A rank-0 tensor has the one dimension that `0` and `-1` name.
///
/// # Errors
/// [`Kind::Index`] when out of range.
///
/// ```
/// use osteon_spec::wrap_dim;
/// assert_eq!(wrap_dim(-1, 3).unwrap(), 2);
/// assert!(wrap_dim(3, 3).is_err());
/// ```
#[inline]
pub fn wrap_dim(dim: isize, rank: usize) -> Result<usize> {
    let n = rank.max(1) as isize;
    if dim >= -n && dim < n {
        Ok(if dim < 0 { dim + n } else { dim } as usize)
    } else {
        Err(dim_out_of_range(dim, n))
    }
}

#[cold]
fn dim_out_of_range(dim: isize, n: isize) -> Error {
    Error::new(
        Kind::Index,
        format!(
            "dimension out of range (expected to be in range of [{}, {}], but got {dim})",
            -n,
            n - 1
        ),
    )
}

/// The product of sizes, checked once for the whole workspace: every number of elements or bytes
/// that is computed from sizes comes from here.
///
/// # Errors
/// [`Kind::Shape`] when the product exceeds `isize::MAX`.
#[inline]
pub fn checked_product(sizes: &[usize]) -> Result<usize> {
    // A zero anywhere makes the product zero, whatever the other sizes are.
    if sizes.contains(&0) {
        return Ok(0);
    }
    let mut n: usize = 1;
    for &s in sizes {
        n = match n.checked_mul(s) {
            Some(n) if n <= isize::MAX as usize => n,
            _ => return Err(product_overflows(sizes)),
        };
    }
    Ok(n)
}

#[cold]
fn product_overflows(sizes: &[usize]) -> Error {
    Error::new(
        Kind::Shape,
        format!("the number of elements of shape {sizes:?} does not fit 63 bits"),
    )
}
