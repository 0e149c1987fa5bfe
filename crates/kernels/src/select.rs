//! One of two elements, by a mask.

use crate::Kernel;
use crate::element::Bool;
use crate::simd::simd_loop;
use osteon_spec::DType;
use std::ops::{BitAnd, BitXor, Not};

/// The kernel of `where(mask, x, y)`: operands are the result, the mask (`bool`), `x` and `y`.
/// Defined for every dtype.
///
/// In place it is `masked_fill`: the result as `y`, and a number as `x`.
pub fn select(dtype: DType) -> Kernel<4> {
    macro_rules! by_width {
        ($($width:literal $T:ty),*) => {
            match dtype.size() {
                $($width => simd_loop!(4, |p, len, _params| {
                    if p[3] == p[0] {
                        // In place: the compiler sees one pointer.
                        choose::<$T>([p[0], p[1], p[2], p[0]], len)
                    } else {
                        choose::<$T>(p, len)
                    }
                }),)*
                width => unreachable!("{dtype} has {width} bytes"),
            }
        };
    }
    let body = by_width!(1 u8, 2 u16, 4 u32, 8 u64, 16 u128);
    Kernel::new([dtype, DType::Bool, dtype, dtype], body).in_place(3)
}

/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
#[inline(always)]
unsafe fn choose<T>(p: [*mut u8; 4], len: usize)
where
    T: Copy + Default + Not<Output = T> + BitAnd<Output = T> + BitXor<Output = T>,
{
    let (dst, mask) = (p[0].cast::<T>(), p[1].cast::<Bool>());
    let (x, y) = (p[2].cast::<T>(), p[3].cast::<T>());
    let none = T::default();
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        unsafe {
            let (x, y) = (x.add(i).read_unaligned(), y.add(i).read_unaligned());
            // By bits: of a choice between two loads the compiler makes one of two addresses, and
            // gathers.
            let bits = if mask.add(i).read().get() {
                !none
            } else {
                none
            };
            dst.add(i).write_unaligned(y ^ ((x ^ y) & bits));
        }
    }
}
