//! Slow twins of the kernels, by plain counting: what tests compare with.

use osteon_spec::Layout;

/// The position in the storage, in elements, of every element of a layout broadcast to `shape`,
/// in row-major order.
pub fn positions(shape: &[usize], layout: &Layout) -> Vec<usize> {
    let numel: usize = shape.iter().product();
    let missing = shape.len() - layout.rank();
    let position = |mut rest: usize| {
        let mut at = layout.offset();
        for d in (0..shape.len()).rev() {
            let index = rest % shape[d];
            rest /= shape[d];
            if d >= missing && layout.sizes()[d - missing] != 1 {
                at += index * layout.strides()[d - missing];
            }
        }
        at
    };
    (0..numel).map(position).collect()
}
