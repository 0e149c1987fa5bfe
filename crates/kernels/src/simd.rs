//! One loop, compiled for several instruction sets, chosen once at run time.
//!
//! Debug builds have the baseline only: a third of the code to compile. What runs the other
//! variants is built with optimisation: the conformance programs and the benches.

/// What the CPU offers to loops.
#[cfg(not(debug_assertions))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What the target guarantees (SSE2 on x86-64).
    Baseline,
    /// AVX2 and what came with it (x86-64-v3).
    Avx2,
    /// AVX-512 (x86-64-v4).
    Avx512,
}

/// The best level of this CPU. The detection is cached by the standard library.
#[cfg(not(debug_assertions))]
pub(crate) fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl")
            && has!("avx512cd")
        {
            return Level::Avx512;
        }
        if has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("f16c") {
            return Level::Avx2;
        }
    }
    Level::Baseline
}

/// `simd_loop!(N, |ptrs, len, params| body)`: the [`Loop`](crate::kernel::Loop) over `N` dense
/// operands with this body (an unsafe expression under the loop's contract), as the variant for
/// this CPU. What the body calls must be `#[inline(always)]`, or it keeps the baseline's
/// instructions.
macro_rules! simd_loop {
    ($n:literal, |$ptrs:ident, $len:ident, $params:ident| $body:expr) => {{
        #[inline(always)]
        unsafe fn body($ptrs: [*mut u8; $n], $len: usize, $params: &$crate::kernel::Params) {
            // SAFETY: the contract of `Loop`.
            unsafe { $body }
        }
        $crate::simd::variants!($n, body)
    }};
}

#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
macro_rules! variants {
    ($n:literal, $body:ident) => {{
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c")]
        unsafe fn avx2(ptrs: [*mut u8; $n], len: usize, params: &$crate::kernel::Params) {
            // SAFETY: the contract of `Loop`.
            unsafe { $body(ptrs, len, params) }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,fma,bmi1,bmi2,f16c")]
        unsafe fn avx512(ptrs: [*mut u8; $n], len: usize, params: &$crate::kernel::Params) {
            // SAFETY: the contract of `Loop`.
            unsafe { $body(ptrs, len, params) }
        }
        // The contract of a `Loop` speaks of its pointers alone: a variant is chosen here only
        // where the CPU has its features.
        match $crate::simd::level() {
            $crate::simd::Level::Avx512 => avx512 as $crate::kernel::Loop<$n>,
            $crate::simd::Level::Avx2 => avx2,
            $crate::simd::Level::Baseline => $body,
        }
    }};
}

#[cfg(not(all(target_arch = "x86_64", not(debug_assertions))))]
macro_rules! variants {
    ($n:literal, $body:ident) => {
        $body as $crate::kernel::Loop<$n>
    };
}

pub(crate) use simd_loop;
pub(crate) use variants;
