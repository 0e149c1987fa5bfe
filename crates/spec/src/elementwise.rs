//! The layout of an operation's result, taken from its inputs as PyTorch takes it.

use crate::dims::{copied, equal};
use crate::predicates::strides_in_order;
use crate::{Layout, MemoryFormat, Result};
use smallvec::SmallVec;

/// The layout of an elementwise operation's new result of this shape, to which the inputs
/// broadcast. Dense; its dimensions lie in the order of the first input that has an opinion.
///
/// # Errors
/// [`Kind::Shape`](crate::Kind::Shape) when a tensor of this shape is too large to exist.
///
/// ```
/// use osteon_spec::{Layout, elementwise_output};
/// let row_major = Layout::contiguous(&[2, 3]).unwrap();
/// let column_major = Layout::contiguous(&[3, 2]).unwrap().t().unwrap();
/// let out = elementwise_output(&[&column_major, &row_major], &[2, 3]).unwrap();
/// assert_eq!(out.strides(), [1, 2]);
/// ```
pub fn elementwise_output(inputs: &[&Layout], shape: &[usize]) -> Result<Layout> {
    let all = |property: fn(&Layout) -> bool| inputs.iter().all(|x| property(x));
    if inputs.iter().all(|x| equal(x.sizes(), shape)) {
        if all(Layout::is_contiguous) {
            return Layout::contiguous(shape);
        }
        if all(Layout::is_channels_last) {
            return Layout::dense(shape, MemoryFormat::ChannelsLast);
        }
        if let [first, rest @ ..] = inputs
            && all(Layout::is_non_overlapping_and_dense)
            && rest.iter().all(|x| x.strides() == first.strides())
        {
            return Layout::new(copied(shape), copied(first.strides()), 0);
        }
    }
    let order = dim_order(inputs, shape);
    if order.is_sorted_by(|inner, outer| inner > outer) {
        return Layout::contiguous(shape);
    }
    Layout::new(copied(shape), strides_in_order(shape, order), 0)
}

impl Layout {
    /// The layout of a copy of this layout, or of a new tensor like it (`empty_like`, …).
    ///
    /// [`MemoryFormat::Preserve`] keeps the strides where they are dense, else the order of the
    /// dimensions; an expanded dimension becomes a full one.
    ///
    /// # Errors [`Kind::Shape`](crate::Kind::Shape) when the rank is wrong for the format or the
    /// tensor is too large to exist.
    pub fn like(&self, format: MemoryFormat) -> Result<Layout> {
        if format != MemoryFormat::Preserve {
            return Layout::dense(self.sizes(), format);
        }
        if self.is_contiguous() || self.is_non_overlapping_and_dense() {
            return self.with_offset(0);
        }
        // Not dense, so not empty.
        Layout::new(
            copied(self.sizes()),
            strides_in_order(self.sizes(), dim_order(&[self], self.sizes())),
            0,
        )
    }
}

/// The dimensions of a result, innermost first.
///
/// An insertion sort from row-major order, in which a comparison may have no answer: the inputs are
/// asked in turn, and one that is broadcast along either dimension does not say. As the relation is
/// no order, the answer depends on the steps taken, which are therefore PyTorch's.
fn dim_order(inputs: &[&Layout], shape: &[usize]) -> SmallVec<[usize; 8]> {
    let stride = |input: &Layout, d: usize| match (d + input.rank()).checked_sub(shape.len()) {
        Some(own) if input.sizes()[own] == shape[d] => input.strides()[own],
        _ => 0,
    };
    // Whether `inner` should lie inside `outer`, if any input knows.
    let is_inside = |inner: usize, outer: usize| {
        inputs.iter().find_map(|input| {
            let (a, b) = (stride(input, inner), stride(input, outer));
            match a.cmp(&b) {
                _ if a == 0 || b == 0 => None,
                std::cmp::Ordering::Less => Some(true),
                std::cmp::Ordering::Greater => Some(false),
                // Of equal strides the smaller size goes inside.
                std::cmp::Ordering::Equal => (shape[inner] > shape[outer]).then_some(false),
            }
        })
    };
    let mut order: SmallVec<[usize; 8]> = (0..shape.len()).rev().collect();
    for i in 1..order.len() {
        let mut moving = i;
        for other in (0..i).rev() {
            match is_inside(order[other], order[moving]) {
                Some(true) => break,
                Some(false) => {
                    order.swap(other, moving);
                    moving = other;
                }
                None => {}
            }
        }
    }
    order
}
