//! One loop, compiled for several instruction sets, chosen once at run time.
//!
//! Three layers: an operation is an expression or a loop that knows no instruction; [`simd_loop!`] and [`vectorized`]
//! compile it for each level, and the compiler makes the vectors; only what it cannot find by itself (transposes in
//! registers, tiles of sums, dot products of `bfloat16`, stores past the caches) is written in intrinsics, in the file of
//! its class, beside a portable twin.
//!
//! Debug builds have the baseline of the first two only: a third of the code to compile. What runs the other
//! variants is built with optimisation: the conformance programs and the benches.

use std::sync::OnceLock;

/// What the CPU offers to loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What the target guarantees (SSE2 on x86-64).
    Baseline,
    /// AVX2 and what came with it (x86-64-v3).
    Avx2,
    /// AVX-512 (x86-64-v4).
    Avx512,
    /// The same, and dot products of `bfloat16`.
    Avx512Bf16,
}

/// What formulas know of the instructions that a loop is compiled for.
pub(crate) trait Isa: Copy + 'static {
    /// Whether `x · y + z` is one instruction. (`mul_add` is a call of the C library where it is not.)
    const FMA: bool;
}

/// What the target guarantees.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Portable {}

impl Isa for Portable {
    const FMA: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));
}

/// AVX2 or better.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    all(not(test), any(not(target_arch = "x86_64"), debug_assertions)),
    expect(dead_code, reason = "debug builds have one level")
)]
pub(crate) enum Fused {}

impl Isa for Fused {
    const FMA: bool = true;
}

/// The level of this process: the best of this CPU, or the lower one that the environment variable
/// `OSTEON_CPU_CAPABILITY` names (`default`, `avx2`, `avx512`, `avx512_bf16`).
pub(crate) fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wanted = match std::env::var("OSTEON_CPU_CAPABILITY").as_deref() {
            Ok("default") => Level::Baseline,
            Ok("avx2") => Level::Avx2,
            Ok("avx512") => Level::Avx512,
            _ => Level::Avx512Bf16,
        };
        best().min(wanted)
    })
}

/// The best level of this CPU.
pub(crate) fn best() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let v3 = has!("avx2") && has!("fma") && has!("bmi1") && has!("bmi2") && has!("f16c");
        let v4 = has!("avx512f")
            && has!("avx512bw")
            && has!("avx512dq")
            && has!("avx512vl")
            && has!("avx512cd");
        if v3 && v4 && has!("avx512bf16") {
            return Level::Avx512Bf16;
        }
        if v3 && v4 {
            return Level::Avx512;
        }
        if v3 {
            return Level::Avx2;
        }
    }
    Level::Baseline
}

/// A loop that asks which instructions it is compiled for: a closure that is generic over them.
pub(crate) trait Task {
    type Result;
    /// Must be `#[inline(always)]`, as all that it calls.
    fn run<I: Isa>(self) -> Self::Result;
}

/// Runs a loop as the variant for this CPU: `work` is compiled into one function for each level. It and what it calls must
/// be `#[inline(always)]` (a closure as well), or they keep the baseline's instructions. Costs a load and a branch: it
/// goes around a loop, not inside one.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    struct Plain<F>(F);
    impl<R, F: FnOnce() -> R> Task for Plain<F> {
        type Result = R;
        #[inline(always)]
        fn run<I: Isa>(self) -> R {
            self.0()
        }
    }
    vectorized_task(Plain(work))
}

/// The same for what depends on the instructions.
#[inline(always)]
pub(crate) fn vectorized_task<T: Task>(task: T) -> T::Result {
    #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
    {
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,f16c")]
        fn avx2<T: Task>(task: T) -> T::Result {
            task.run::<Fused>()
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,fma,bmi1,bmi2,f16c")]
        fn avx512<T: Task>(task: T) -> T::Result {
            task.run::<Fused>()
        }
        match level() {
            // SAFETY: the CPU has the level's features.
            Level::Avx512 | Level::Avx512Bf16 => return unsafe { avx512(task) },
            // SAFETY: the same.
            Level::Avx2 => return unsafe { avx2(task) },
            Level::Baseline => {}
        }
    }
    task.run::<Portable>()
}

/// `simd_loop!(N, |ptrs, len, params| body)`: the [`Loop`](crate::kernel::Loop) over `N` dense
/// operands with this body (an unsafe expression under the loop's contract), as the variant for
/// this CPU. What the body calls must be `#[inline(always)]`, or it keeps the baseline's
/// instructions; the type `I` in it is the variant's [`Isa`].
macro_rules! simd_loop {
    ($n:literal, |$ptrs:ident, $len:ident, $params:ident| $body:expr) => {{
        #[inline(always)]
        unsafe fn body<I: $crate::simd::Isa>(
            $ptrs: [*mut u8; $n],
            $len: usize,
            $params: &$crate::kernel::Params,
        ) {
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
            unsafe { $body::<$crate::simd::Fused>(ptrs, len, params) }
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512cd,fma,bmi1,bmi2,f16c")]
        unsafe fn avx512(ptrs: [*mut u8; $n], len: usize, params: &$crate::kernel::Params) {
            // SAFETY: the contract of `Loop`.
            unsafe { $body::<$crate::simd::Fused>(ptrs, len, params) }
        }
        // The contract of a `Loop` speaks of its pointers alone: a variant is chosen here only
        // where the CPU has its features.
        match $crate::simd::level() {
            $crate::simd::Level::Avx512 | $crate::simd::Level::Avx512Bf16 => {
                avx512 as $crate::kernel::Loop<$n>
            }
            $crate::simd::Level::Avx2 => avx2,
            $crate::simd::Level::Baseline => $body::<$crate::simd::Portable>,
        }
    }};
}

#[cfg(not(all(target_arch = "x86_64", not(debug_assertions))))]
macro_rules! variants {
    ($n:literal, $body:ident) => {
        $body::<$crate::simd::Portable> as $crate::kernel::Loop<$n>
    };
}

pub(crate) use simd_loop;
pub(crate) use variants;
