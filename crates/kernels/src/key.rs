//! Elements as integers in the same order, so that what compares need not know a dtype.

use crate::element::{Bool, Element};
use crate::par::par_slices;
use crate::simd::vectorized;
use half::{bf16, f16};
use osteon_spec::{DType, Plan};

/// The key of NaN, which is larger than that of any number of a dtype of so many bytes.
fn nan_key(size: usize) -> u64 {
    if size == 8 {
        u64::MAX
    } else {
        u64::from(u32::MAX)
    }
}

/// The key of NaN for a dtype of floats.
pub fn key_of_nan(dtype: DType) -> Option<u64> {
    dtype.is_float().then(|| nan_key(dtype.size()))
}

trait Key: Element {
    /// An integer in the order of the elements: NaN above all and equal to itself, both zeros equal. It fits 32 bits
    /// where an element does.
    fn key(self) -> u64;
}

macro_rules! keys {
    ($($ty:ty: |$x:ident| $key:expr;)*) => { $(
        impl Key for $ty {
            #[inline(always)]
            fn key(self) -> u64 {
                let $x = self;
                $key
            }
        }
    )* };
}

keys! {
    Bool: |x| x.get().into();
    u8: |x| x.into(); u16: |x| x.into(); u32: |x| x.into(); u64: |x| x;
    i8: |x| (x as u8 ^ 1 << 7).into();
    i16: |x| (x as u16 ^ 1 << 15).into();
    i32: |x| (x as u32 ^ 1 << 31).into();
    i64: |x| x as u64 ^ 1 << 63;
    f16: |x| x.to_f32().key();
    bf16: |x| x.to_f32().key();
    f32: |x| {
        // Adding zero makes -0 to 0.
        let bits = (x + 0.0).to_bits();
        let key = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        if x.is_nan() { nan_key(4) } else { key.into() }
    };
    f64: |x| {
        let bits = (x + 0.0).to_bits();
        let key = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        if x.is_nan() { nan_key(8) } else { key }
    };
}

/// Writes the keys of a run of elements, `step` bytes apart.
///
/// # Safety
/// As many elements as there is room for keys may be read.
pub(crate) type Keys = unsafe fn(*const u8, isize, &mut [u64]);

/// # Safety
/// As [`Keys`].
unsafe fn keys_of<T: Key>(at: *const u8, step: isize, keys: &mut [u64]) {
    if step == size_of::<T>() as isize {
        return vectorized(
            #[inline(always)]
            || {
                for (i, key) in keys.iter_mut().enumerate() {
                    // SAFETY: the caller's contract.
                    *key = unsafe { at.cast::<T>().add(i).read_unaligned() }.key();
                }
            },
        );
    }
    for (i, key) in keys.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        *key = unsafe { at.offset(i as isize * step).cast::<T>().read_unaligned() }.key();
    }
}

/// The keys of a dtype; none where its elements have no order.
pub(crate) fn keys(dtype: DType) -> Option<Keys> {
    if dtype.is_float() && dtype.size() == 2 {
        return Some(if dtype == DType::F16 {
            keys_of::<f16>
        } else {
            keys_of::<bf16>
        });
    }
    crate::with_element!(bool: dtype, T => keys_of::<T> as Keys)
        .or_else(|| crate::with_element!(int: dtype, T => keys_of::<T> as Keys))
        .or_else(|| crate::with_element!(float: dtype, T => keys_of::<T> as Keys))
}

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 14;

struct Source(*const u8);

// SAFETY: nobody writes what is read.
unsafe impl Sync for Source {}

/// Writes an integer for each element, in row-major order, that compares with the others as the elements do: NaN above
/// all ([`key_of_nan`]), both zeros equal. False, and nothing is written, for a dtype without an order.
/// The plan is in row-major order ([`Plan::row_major`]).
///
/// # Safety
/// The walk contract (see the [crate] documentation).
///
/// # Panics
/// When there is not room for the plan's elements.
pub unsafe fn order_keys(plan: &Plan<1>, ptr: *const u8, dtype: DType, out: &mut [u64]) -> bool {
    let Some(keys) = keys(dtype) else {
        return false;
    };
    let from = Source(ptr);
    par_slices(&mut out[..plan.numel()], GRAIN, |start, out| {
        let (from, mut done) = (&from, 0);
        plan.for_each_run_in(start..start + out.len(), |[at], len, [step]| {
            // SAFETY: a run of the plan.
            unsafe { keys(from.0.offset(at), step, &mut out[done..done + len]) };
            done += len;
        });
    });
    true
}
