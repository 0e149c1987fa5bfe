//! Elements of one dtype as another.

use crate::convert::Convert;
use crate::kernel::{Kernel, Loop};
use crate::simd::simd_loop;
use crate::with_element;
use osteon_spec::DType;

/// The kernel that converts `from` to `to`, defined for every pair: PyTorch's `to(dtype)`.
///
/// Integers wrap; floats truncate towards zero (300.7 is 44 as `int8`), and what an integer cannot
/// hold becomes what PyTorch gives on x86 (NaN is 0 as `int8` and `i32::MIN` as `int32`);
/// `float8_e4m3fn` saturates at 448, the other narrow floats overflow to infinity; complex numbers
/// lose their imaginary part; all but zero is true.
pub fn cast(from: DType, to: DType) -> Kernel<2> {
    Kernel::new([to, from], cast_loop(from, to))
}

/// The loop of [`cast`].
pub(crate) fn cast_loop(from: DType, to: DType) -> Loop<2> {
    with_element!(from, S => with_element!(to, T => simd_loop!(2, |p, len, _params| {
        let (dst, src) = (p[0].cast::<T>(), p[1].cast::<S>());
        for i in 0..len {
            dst.add(i).write_unaligned(src.add(i).read_unaligned().to());
        }
    })))
}
