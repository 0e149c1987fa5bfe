//! Slow twins of the kernels, by plain counting: what tests compare with.

use crate::{Kernel, Value};
use osteon_spec::{DType, Layout, Plan};

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

/// [`Kernel::run`] one element at a time: every input is converted on its own, and the loop sees
/// single elements.
///
/// # Safety
/// As [`Kernel::run`], for positions in elements of the layouts' own dtypes.
pub unsafe fn run<const N: usize>(
    kernel: &Kernel<N>,
    shape: &[usize],
    layouts: [&Layout; N],
    ptrs: [*mut u8; N],
    dtypes: [DType; N],
) {
    let at = layouts.map(|layout| positions(shape, layout));
    let position = |k: usize, i: usize| at[k][i] * dtypes[k].size();
    let single = Plan::new(&[], [(&Layout::contiguous(&[]).expect("a scalar"), 0); N]);
    let wanted = kernel.dtypes();
    let numel: usize = shape.iter().product();
    for i in 0..numel {
        let mut elements: [Value; N] = std::array::from_fn(|k| {
            // SAFETY: a position of the layout.
            let own = unsafe { Value::load(ptrs[k].add(position(k, i)), dtypes[k]) };
            convert(
                own,
                &[Some(dtypes[k]), kernel.via(k, dtypes[k]), Some(wanted[k])],
            )
        });
        let inputs = elements.each_mut().map(|v| std::ptr::from_mut(v).cast());
        // SAFETY: one element each, of the loop's dtypes.
        unsafe { kernel.run(&single, inputs, wanted) };
        let steps = [Some(wanted[0]), kernel.via(0, dtypes[0]), Some(dtypes[0])];
        let value = convert(elements[0], &steps);
        // SAFETY: a position of the layout.
        unsafe {
            let to = ptrs[0].add(position(0, i));
            std::ptr::copy_nonoverlapping(value.as_ptr(), to, dtypes[0].size());
        }
    }
}

/// An element by way of these dtypes, from the first to the last.
fn convert(value: Value, steps: &[Option<DType>]) -> Value {
    let steps: Vec<DType> = steps.iter().copied().flatten().collect();
    steps
        .windows(2)
        .fold(value, |v, step| Value::new(v.read(step[0]), step[1]))
}
