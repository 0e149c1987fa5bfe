//! Operations of two elements.

use crate::complex::{self, Power, quotient, wide2};
use crate::convert::Convert;
use crate::division::{self, Whole};
use crate::kernel::{Kernel, Loop, Params};
use crate::lane::{map2, ops};
use crate::math::{Errors, Exponentials, Float, Inverses, Logarithms, Powers};
use crate::par::par_for;
use crate::simd::{simd_loop, vectorized};
use crate::unary::tanh_argument;
use crate::with_element;
use osteon_spec::{Category, DType, Plan};
use std::sync::atomic::{AtomicBool, Ordering};

ops! {
    /// An operation of two elements, by PyTorch's name; integers wrap.
    pub enum BinaryOp;
    /// [`binary`] but for the operations whose half precision is not that of `float32`, rounded once.
    fn computed = map2 over 3;

    /// `x + y`; `or` for `bool`.
    Add: light {
        bool: |x, y| x | y;
        int: |x, y| x.wrapping_add(y);
        float complex: |x, y| x + y;
    }
    /// `x + alpha·y`, with the number `alpha`.
    AddScaled: light {
        bool: |x, y; p| x | (p[0] & y);
        int: |x, y; p| x.wrapping_add(p[0].wrapping_mul(y));
        float complex: |x, y; p| x + p[0] * y;
    }
    /// `x - y`.
    Sub: light {
        int: |x, y| x.wrapping_sub(y);
        float complex: |x, y| x - y;
    }
    /// `x - alpha·y`, with the number `alpha`.
    SubScaled: light {
        int: |x, y; p| x.wrapping_sub(p[0].wrapping_mul(y));
        float complex: |x, y; p| x - p[0] * y;
    }
    /// `x · y`; `and` for `bool`.
    Mul: light {
        bool: |x, y| x & y;
        int: |x, y| x.wrapping_mul(y);
        float: |x, y| x * y;
        complex: |x, y| wide2(x, y, |x, y| x * y);
    }
    /// `x / y`, of floats and complex numbers.
    Div: light { float: |x, y| x / y; complex: |x, y| wide2(x, y, |x, y| quotient!(x, y)); }
    /// `x / y` rounded towards zero.
    DivTrunc {
        int: |x, y| x.quotient(y);
        float: |x, y| (x / y).trunc();
    }
    /// `x / y` rounded down, in Python's sense.
    FloorDivide {
        unsigned: |x, y| x.quotient(y);
        signed: |x, y| {
            let q = x.quotient(y);
            let r = x.wrapping_sub(q.wrapping_mul(y));
            // Where `y` is 0 so is `q`.
            if y != 0 && r != 0 && (r < 0) != (y < 0) { q - 1 } else { q }
        };
    }
    /// The remainder of [`FloorDivide`](BinaryOp::FloorDivide), with the divisor's sign.
    Remainder {
        unsigned: |x, y| if y == 0 { 0 } else { x.wrapping_sub(x.quotient(y).wrapping_mul(y)) };
        signed: |x, y| {
            let r = if y == 0 { 0 } else { x.wrapping_sub(x.quotient(y).wrapping_mul(y)) };
            if r != 0 && (r < 0) != (y < 0) { r + y } else { r }
        };
    }
    /// The remainder of [`DivTrunc`](BinaryOp::DivTrunc), with the dividend's sign.
    Fmod {
        int: |x, y| if y == 0 { 0 } else { x.wrapping_sub(x.quotient(y).wrapping_mul(y)) };
    }
    /// `x^y`. A negative power of an integer is 0 but for the powers of 1 and −1.
    Pow {
        unsigned: |x, y| integer_pow!(x, y);
        signed: |x, y| {
            if y >= 0 {
                integer_pow!(x, y)
            } else if x == 1 {
                1
            } else if x == -1 {
                if y % 2 == 0 { 1 } else { -1 }
            } else {
                0
            }
        };
        float: |x, y| I::pow(x, y);
        complex: |x, y| x.power(y);
    }
    /// The larger one; NaN where either is.
    Maximum: light {
        bool: |x, y| x | y;
        int: |x, y| x.max(y);
        float: |x, y| if x > y || x.is_nan() { x } else { y };
    }
    /// The smaller one; NaN where either is.
    Minimum: light {
        bool: |x, y| x & y;
        int: |x, y| x.min(y);
        float: |x, y| if x < y || x.is_nan() { x } else { y };
    }
    /// The larger one; the other where one is NaN.
    Fmax {
        bool: |x, y| x | y;
        int: |x, y| x.max(y);
        float: |x, y| if x >= y || y.is_nan() { x } else { y };
    }
    /// The smaller one; the other where one is NaN.
    Fmin {
        bool: |x, y| x & y;
        int: |x, y| x.min(y);
        float: |x, y| if x <= y || y.is_nan() { x } else { y };
    }
    /// `x & y`.
    BitwiseAnd { bool int: |x, y| x & y; }
    /// `x | y`.
    BitwiseOr { bool int: |x, y| x | y; }
    /// `x ^ y`.
    BitwiseXor { bool int: |x, y| x ^ y; }
    /// `x << y`; 0 where `y` is negative or the width of `x` or more.
    ShiftLeft {
        int: |x, y| if (y as u64) < Real::BITS as u64 { x << y } else { 0 };
    }
    /// `x >> y`; only the sign is left where `y` is negative or the width of `x` or more.
    ShiftRight {
        unsigned: |x, y| if (y as u64) < Real::BITS as u64 { x >> y } else { 0 };
        signed: |x, y| x >> if (y as u64) < Real::BITS as u64 { y } else { Real::BITS as Real - 1 };
    }
    /// The angle of the point (y, x): `atan2(x, y)` with the arguments in this order.
    Atan2 { float: |x, y| I::atan2(x, y); }
    /// `sqrt(x² + y²)`.
    Hypot { float: |x, y| I::hypot(x, y); }
    /// `x` with the sign of `y`.
    Copysign { float: |x, y| x.copysign(y); }
    /// 0 for negative numbers and NaN, 1 for positive ones, and `y` at 0.
    Heaviside {
        bool: |x, y| x | y;
        unsigned: |x, y| if x == 0 { y } else { 1 };
        signed: |x, y| if x == 0 { y } else { (x > 0).into() };
        float: |x, y| if x == 0.0 { y } else { (x > 0.0) as u8 as Real };
    }
    /// `log(e^x + e^y)`, without overflow on the way.
    LogAddExp {
        float: |x, y| {
            if x.is_infinite() && x == y { x } else { x.max(y) + I::log1p_of_fraction(I::exp(-(x - y).abs())) }
        };
        complex: |x, y| wide2(x, y, complex::log_add_exp);
    }
    /// `log2(2^x + 2^y)`, likewise.
    LogAddExp2 {
        float: |x, y| if x.is_infinite() && x == y {
            x
        } else {
            x.max(y) + I::log1p_of_fraction(I::exp2(-(x - y).abs())) * std::f64::consts::LOG2_E as Real
        };
    }
    /// `x · log(y)`; 0 where `x` is 0, but NaN where `y` is NaN.
    Xlogy { float: |x, y| if x == 0.0 && !y.is_nan() { 0.0 } else { x * I::ln(y) }; }
    /// The complex number of a real and an imaginary part.
    Complex { float -> Pair: |x, y| crate::Complex::new(x, y); }
    /// The complex number of a magnitude and an angle.
    Polar { float -> Pair: |x, y| crate::Complex::new(x * y.cos(), x * y.sin()); }
    /// The neighbour of `x` towards `y`.
    NextAfter { float: |x, y| Float::next_toward(x, y); }
    /// `(x - y)²`.
    SquaredError { float: |x, y| (x - y) * (x - y); }
    /// `½ (x - y)² / beta` where that is less than `|x - y| - ½ beta`, which it is elsewhere.
    SmoothL1 {
        float: |x, y; p| {
            let z = (x - y).abs();
            if z < p[0] { 0.5 * z * z / p[0] } else { z - 0.5 * p[0] }
        };
    }
    /// The same times `delta`.
    Huber {
        float: |x, y; p| {
            let z = (x - y).abs();
            if z <= p[0] { 0.5 * z * z } else { p[0] * (z - 0.5 * p[0]) }
        };
    }
    /// `-(y log(x) + (1 - y) log(1 - x))`, with logarithms of -100 at least.
    BinaryCrossEntropy {
        float: |x, y| (y - 1.0) * I::log1p(-x).max(-100.0) - y * I::ln(x).max(-100.0);
    }
    /// `y (log(y) - x)`, 0 where `y` is.
    KlDiv { float: |x, y| if y == 0.0 && !x.is_nan() { 0.0 } else { y * (I::ln(y) - x) }; }
    /// `e^y (y - x)`.
    KlDivLog { float: |x, y| I::exp(y) * (y - x); }
    /// `x`, times `y` where it is not positive.
    Prelu { float: |x, y| if x > 0.0 { x } else { x * y }; }
    /// `x · sigmoid(y)`.
    Gate { float: |x, y| I::gated(x, y); }
    /// The derivative of [`Threshold`](crate::UnaryOp::Threshold), times `g`: `g`, or 0 where `x` is not above the number.
    ThresholdGrad { float: |g, x; p| if x <= p[0] { 0.0 } else { g }; }
    /// The derivative of [`Hardtanh`](crate::UnaryOp::Hardtanh), times `g`: 0 at and beyond the two numbers.
    HardtanhGrad { float: |g, x; p| if x <= p[0] || x >= p[1] { 0.0 } else { g }; }
    /// The same, but 0 also where `x` is NaN.
    Within { float: |g, x; p| if x > p[0] && x < p[1] { g } else { 0.0 }; }
    /// The derivative of [`Hardshrink`](crate::UnaryOp::Hardshrink) and of
    /// [`Softshrink`](crate::UnaryOp::Softshrink), times `g`.
    HardshrinkGrad { float: |g, x; p| if x >= -p[0] && x <= p[0] { 0.0 } else { g }; }
    /// The derivative of [`LeakyRelu`](crate::UnaryOp::LeakyRelu), times `g`.
    LeakyReluGrad { float: |g, x; p| if x > 0.0 { g } else { g * p[0] }; }
    /// The derivative of [`Elu`](crate::UnaryOp::Elu), times `g`.
    EluGrad { float: |g, x; p| if x <= 0.0 { g * p[2] * p[1] * I::exp(x * p[2]) } else { g * p[0] }; }
    /// The same, where `y` is the result.
    EluGradOfResult { float: |g, y; p| if y <= 0.0 { g * p[2] * (y + p[1]) } else { g * p[0] }; }
    /// The derivative of [`Sigmoid`](crate::UnaryOp::Sigmoid), times `g`, where `y` is the result.
    SigmoidGrad {
        float: |g, y| g * (1.0 - y) * y;
        complex: |g, y| g * ((-y + 1.0) * y).conj();
    }
    /// The derivative of [`Tanh`](crate::UnaryOp::Tanh), times `g`, where `y` is the result.
    TanhGrad {
        float: |g, y| g * (1.0 - y * y);
        complex: |g, y| g * (-(y * y) + 1.0).conj();
    }
    /// The derivative of [`Gelu`](crate::UnaryOp::Gelu), times `g`.
    GeluGrad {
        float: |g, x| g * I::gelu_slope(x);
    }
    /// The derivative of [`GeluTanh`](crate::UnaryOp::GeluTanh), times `g`.
    GeluTanhGrad {
        float: |g, x| {
            let s = I::sigmoid(tanh_argument!(x));
            let slope = (8.0 / std::f64::consts::PI).sqrt() as Real * (1.0 + 3.0 * 0.044715 * x * x);
            g * (s + x * s * (1.0 - s) * slope)
        };
    }
    /// The derivative of [`Silu`](crate::UnaryOp::Silu), times `g`.
    SiluGrad {
        float: |g, x| { let s = I::sigmoid(x); g * s * (1.0 + x * (1.0 - s)) };
        complex: |g, x| {
            let s = quotient!(Input::from(1.0), (-x).exp() + 1.0);
            g * (s * (x * (-s + 1.0) + 1.0)).conj()
        };
    }
    /// The derivative of [`Mish`](crate::UnaryOp::Mish), times `g`.
    MishGrad {
        float: |g, x| {
            let (factor, slope) = I::mish_factor(x);
            g * (factor + slope)
        };
    }
    /// The derivative of [`Softplus`](crate::UnaryOp::Softplus), times `g`.
    SoftplusGrad {
        float: |g, x; p| if x * p[0] > p[1] { g } else { g * I::sigmoid(x * p[0]) };
    }
    /// The derivative of [`Hardswish`](crate::UnaryOp::Hardswish), times `g`.
    HardswishGrad {
        float: |g, x| if x <= -3.0 { 0.0 } else if x < 3.0 { g * (x / 3.0 + 0.5) } else { g };
    }
}

/// The kernel of an operation whose inputs promote to this dtype; none where it is not defined.
/// Inputs of other dtypes are converted on the way. Half precision is computed in `float32` and rounded once.
///
/// Division of integers by zero is no fault here (the result is 0): an operation that
/// [`divides`](BinaryOp::divides) asks [`any_zero`] first.
pub fn binary(op: BinaryOp, dtype: DType) -> Option<Kernel<3>> {
    let half = match op {
        // The neighbour of a half-precision number is not one in float32.
        BinaryOp::NextAfter => with_element!(half: dtype, T => next_after::<T> as Loop<3>),
        // Rounding to a whole number shows whether the quotient was rounded before: 17.98 becomes 18.
        BinaryOp::DivTrunc => with_element!(half: dtype, T => div_trunc!(T)),
        _ => None,
    };
    half.map(|body| Kernel::new([dtype; 3], body))
        .or_else(|| division::of_floats(op, dtype, true))
        .or_else(|| computed(op, dtype))
}

/// [`binary`] where the second operand is one number. PyTorch rounds each step of a division of half precision
/// by a tensor, but only the result of one by a number.
pub fn binary_by_number(op: BinaryOp, dtype: DType) -> Option<Kernel<3>> {
    match op {
        BinaryOp::DivTrunc => computed(op, dtype),
        BinaryOp::FloorDivide => {
            division::of_floats(op, dtype, false).or_else(|| computed(op, dtype))
        }
        _ => binary(op, dtype),
    }
}

/// The loop of `x / y` rounded towards zero in half precision.
macro_rules! div_trunc {
    ($T:ty) => {
        simd_loop!(3, |p, len, _params| map2::<$T, $T>(
            p,
            len,
            #[inline(always)]
            |x, y| {
                let quotient = <$T>::from_f32(Convert::to::<f32>(x) / Convert::to::<f32>(y));
                <$T>::from_f32(Convert::to::<f32>(quotient).trunc())
            }
        ))
    };
}
use div_trunc;

/// The loop of [`NextAfter`](BinaryOp::NextAfter) in half precision, on the bits: those of the magnitude count
/// its steps.
///
/// # Safety
/// The contract of [`Loop`](crate::kernel::Loop).
unsafe fn next_after<T: Convert>(p: [*mut u8; 3], len: usize, _params: &Params) {
    let value = |bits: u16| bytemuck::cast::<u16, T>(bits).to::<f32>();
    for i in 0..len {
        // SAFETY: the caller's contract: `i < len`.
        let [x, y] = [1, 2].map(|k| unsafe { p[k].cast::<u16>().add(i).read_unaligned() });
        let (from, to) = (value(x), value(y));
        let next = if from.is_nan() {
            x
        } else if to.is_nan() || from == to {
            y
        } else if from == 0.0 {
            (y & 0x8000) | 1
        } else if (from < to) == (from > 0.0) {
            x + 1
        } else {
            x - 1
        };
        // SAFETY: the caller's contract.
        unsafe { p[0].cast::<u16>().add(i).write_unaligned(next) };
    }
}

/// `x^y` for `y >= 0` by squaring, wrapping.
macro_rules! integer_pow {
    ($x:ident, $y:ident) => {{
        let (mut base, mut left, mut result) = ($x, $y, 1);
        while left != 0 {
            if left & 1 != 0 {
                result = base.wrapping_mul(result);
            }
            base = base.wrapping_mul(base);
            left >>= 1;
        }
        result
    }};
}
use integer_pow;

impl BinaryOp {
    /// Whether this operation on integers has no result where the second one is 0 (PyTorch's
    /// `ZeroDivisionError`).
    pub fn divides(self) -> bool {
        use BinaryOp::{DivTrunc, FloorDivide, Fmod, Remainder};
        matches!(self, DivTrunc | FloorDivide | Fmod | Remainder)
    }
}

/// Whether any element of an operand of integers or `bool` is zero: the question before a division. Operands
/// of other dtypes divide without fault, and the answer is no.
///
/// # Safety
/// The walk contract (see the [crate] documentation).
pub unsafe fn any_zero(plan: &Plan<1>, ptr: *const u8, dtype: DType) -> bool {
    if dtype.category() > Category::Integer {
        return false;
    }
    // Zero is zero bits in all of them.
    struct Source(*const u8);
    // SAFETY: it is only read through.
    unsafe impl Sync for Source {}
    let (found, src) = (AtomicBool::new(false), Source(ptr));
    par_for(plan.numel(), 1 << 15, |range| {
        let (found, src) = (&found, &src);
        plan.for_each_run_in(range, |[offset], len, [stride]| {
            // SAFETY: a run of the plan.
            let any = unsafe {
                let from = src.0.offset(offset);
                match dtype.size() {
                    1 => any_zero_in::<u8>(from, len, stride),
                    2 => any_zero_in::<u16>(from, len, stride),
                    4 => any_zero_in::<u32>(from, len, stride),
                    _ => any_zero_in::<u64>(from, len, stride),
                }
            };
            if any {
                found.store(true, Ordering::Relaxed);
            }
        });
    });
    found.into_inner()
}

/// # Safety
/// `len` elements may be read from `ptr` on, `stride` bytes apart.
unsafe fn any_zero_in<T: Copy + Default + PartialEq>(
    ptr: *const u8,
    len: usize,
    stride: isize,
) -> bool {
    // SAFETY: the caller's contract.
    let is_zero = |i: usize, stride| unsafe {
        ptr.offset(i as isize * stride).cast::<T>().read_unaligned() == T::default()
    };
    let dense = size_of::<T>() as isize;
    vectorized(
        #[inline(always)]
        || {
            if stride == dense {
                (0..len).fold(false, |any, i| any | is_zero(i, dense))
            } else {
                (0..len).fold(false, |any, i| any | is_zero(i, stride))
            }
        },
    )
}
