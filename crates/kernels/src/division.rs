//! Division with remainder, in vectors: CPUs divide floats so, but no integers, and the remainder of floats is a loop of
//! the C library.

use crate::binary::BinaryOp;
use crate::convert::Convert;
use crate::kernel::Kernel;
use crate::lane::{computed_in, map2_but};
use crate::simd::{Isa, simd_loop};
use crate::with_element;
use osteon_spec::DType;

/// Integers that are divided.
pub(crate) trait Whole {
    /// The quotient, rounded towards zero; 0 by 0. The smallest integer by -1 is itself.
    fn quotient(self, by: Self) -> Self;
}

macro_rules! whole {
    ($($T:ty => $Float:ty, $Int:ty;)*) => {$(
        impl Whole for $T {
            #[inline(always)]
            fn quotient(self, by: $T) -> $T {
                // The float has digits enough that rounding never reaches the next integer.
                let quotient = self as $Float / (if by == 0 { 1 } else { by }) as $Float;
                // SAFETY: below the largest integer but for the smallest by -1, which wraps.
                let quotient = unsafe { quotient.min(<$Int>::MAX as $Float).to_int_unchecked::<$Int>() };
                match by {
                    0 => 0,
                    #[allow(unused_comparisons)]
                    _ if <$T>::MIN < 0 && by == (0 as $T).wrapping_sub(1) => self.wrapping_neg(),
                    _ => quotient as $T,
                }
            }
        }
    )*};
    (wide $($T:ty)*) => {$(
        impl Whole for $T {
            #[inline(always)]
            fn quotient(self, by: $T) -> $T {
                if by == 0 { 0 } else { self.wrapping_div(by) }
            }
        }
    )*};
}
whole! { i8 => f32, i32; u8 => f32, i32; i16 => f32, i32; u16 => f32, i32; i32 => f64, i32; }
whole! { wide u32 i64 u64 }

/// Floats that are divided.
trait Divided: Copy {
    /// The remainder with the dividend's sign, where the quotient is not [rare](Divided::is_rare).
    fn remainder<I: Isa>(self, by: Self) -> Self;
    /// Whether the quotient has too many digits for that, or is not finite.
    fn is_rare<I: Isa>(self, by: Self) -> bool;
}

impl Divided for f32 {
    /// In `float64`: a quotient below `2^29` has its true integer part there, and all that follows is exact.
    #[inline(always)]
    fn remainder<I: Isa>(self, by: f32) -> f32 {
        let (x, y) = (self as f64, by as f64);
        ((x - (x / y).trunc() * y) as f32).copysign(self)
    }
    #[inline(always)]
    fn is_rare<I: Isa>(self, by: f32) -> bool {
        !((self / by).abs() < (1 << 28) as f32 && by.abs() < f32::INFINITY)
    }
}

impl Divided for f64 {
    /// The rounded quotient is one too large at most, which the sign of the remainder shows; both remainders have an end
    /// where the divisor's digits have, so that they are exact.
    #[inline(always)]
    fn remainder<I: Isa>(self, by: f64) -> f64 {
        if !I::FMA {
            return self;
        }
        let rest = (-(self / by).trunc()).mul_add(by, self);
        let over = (rest < 0.0 && self > 0.0) || (rest > 0.0 && self < 0.0);
        let rest = if over { rest + by.copysign(self) } else { rest };
        rest.copysign(self)
    }
    #[inline(always)]
    fn is_rare<I: Isa>(self, by: f64) -> bool {
        !(I::FMA && (self / by).abs() < (1u64 << 51) as f64 && by.abs() < f64::INFINITY)
    }
}

/// `x / y` rounded down, given the remainder, each step of it rounded by a function.
macro_rules! floored {
    ($x:ident, $y:ident, $r:ident, $round:expr) => {{
        let round = $round;
        let q = round(round($x - $r) / $y);
        let q = if $r != 0.0 && ($y < 0.0) != ($r < 0.0) {
            round(q - 1.0)
        } else {
            q
        };
        let down = q.floor();
        let down = if round(q - down) > 0.5 {
            down + 1.0
        } else {
            down
        };
        if $y == 0.0 {
            $x / $y
        } else if q == 0.0 {
            ($x / $y) * 0.0
        } else {
            down
        }
    }};
}

/// The kernel of an operation that takes the remainder of floats, if it is one; in half precision each step of a division is
/// rounded, if that is asked for.
pub(crate) fn of_floats(op: BinaryOp, dtype: DType, stepwise: bool) -> Option<Kernel<3>> {
    /// The loop of an expression of dividend, divisor and remainder, in a float and stored as another.
    macro_rules! divided {
        ($T:ty, $Stored:ty, |$x:ident, $y:ident, $r:ident| $e:expr) => {{
            #[inline(always)]
            fn f($x: $T, $y: $T, $r: $T) -> $Stored {
                Convert::to($e)
            }
            simd_loop!(3, |p, len, _params| map2_but::<$Stored>(
                p,
                len,
                #[inline(always)]
                |x, y| {
                    let (x, y): ($T, $T) = (x.to(), y.to());
                    f(x, y, x.remainder::<I>(y))
                },
                #[inline(always)]
                |x, y| Convert::to::<$T>(x).is_rare::<I>(y.to()),
                |x, y| {
                    let (x, y): ($T, $T) = (x.to(), y.to());
                    f(x, y, x % y)
                },
            ))
        }};
    }
    macro_rules! of {
        ($T:ty) => {
            match op {
                BinaryOp::Fmod => Some(divided!($T, $T, |_x, _y, r| r)),
                BinaryOp::Remainder => Some(divided!($T, $T, |_x, y, r| {
                    if r != 0.0 && (r < 0.0) != (y < 0.0) {
                        r + y
                    } else {
                        r
                    }
                })),
                BinaryOp::FloorDivide => Some(divided!($T, $T, |x, y, r| floored!(x, y, r, |x| x))),
                _ => None,
            }
        };
    }
    macro_rules! stepwise {
        ($T:ty) => {
            divided!(f32, $T, |x, y, r| floored!(x, y, r, |x: f32| {
                Convert::to::<f32>(<$T>::from_f32(x))
            }))
        };
    }
    if stepwise
        && op == BinaryOp::FloorDivide
        && let Some(body) = with_element!(half: dtype, T => stepwise!(T))
    {
        return Some(Kernel::new([dtype; 3], body));
    }
    let computed = computed_in(dtype);
    let body = with_element!(float: computed, T => of!(T)).flatten()?;
    let kernel = Kernel::new([computed; 3], body);
    Some(if computed == dtype {
        kernel
    } else {
        kernel.rounded_to(dtype)
    })
}
