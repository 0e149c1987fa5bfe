//! One of two elements, by a mask.

use crate::Kernel;
use crate::element::Bool;
use crate::simd::simd_loop;
use osteon_spec::DType;

/// The kernel of `where(mask, x, y)`: operands are the result, the mask (`bool`), `x` and `y`.
/// Defined for every dtype.
///
/// In place it is `masked_fill`: the result as `y`, and a number as `x`.
pub fn select(dtype: DType) -> Kernel<4> {
    macro_rules! by_width {
        ($($width:literal $T:ty),*) => {
            match dtype.size() {
                $($width => simd_loop!(4, |p, len, _params| {
                    let (dst, mask) = (p[0].cast::<$T>(), p[1].cast::<Bool>());
                    let (x, y) = (p[2].cast::<$T>(), p[3].cast::<$T>());
                    for i in 0..len {
                        // Both are read, so that the loop has no branch.
                        let (x, y) = (x.add(i).read_unaligned(), y.add(i).read_unaligned());
                        dst.add(i).write_unaligned(if mask.add(i).read().get() { x } else { y });
                    }
                }),)*
                width => unreachable!("{dtype} has {width} bytes"),
            }
        };
    }
    let body = by_width!(1 u8, 2 u16, 4 u32, 8 u64, 16 u128);
    Kernel::new([dtype, DType::Bool, dtype, dtype], body)
}
