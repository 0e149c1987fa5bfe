//! Random numbers by counting: element `i` of a draw depends on the seed and on `i` alone, so that any number of
//! threads gives the same elements.

use crate::convert::Convert;
use crate::math::{Circulars, Logarithms};
use crate::par::par_for;
use crate::simd::{Isa, Task, vectorized, vectorized_task};
use crate::with_element;
use osteon_spec::{DType, Plan};
use std::marker::PhantomData;

/// What numbers to draw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Evenly from the first (included) to the second (excluded).
    Uniform(f64, f64),
    /// Normal, of this mean and standard deviation.
    Normal(f64, f64),
    /// Integers, evenly from the first (included) by as many as the second says.
    Integers(i64, u64),
    /// 1 with this probability, else 0.
    Bernoulli(f64),
}

/// A draw: its numbers are functions of seed and position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Random {
    /// The seed of all draws.
    pub seed: u64,
    /// The position of the first element in the stream of the seed.
    pub start: u64,
    /// What to draw.
    pub distribution: Distribution,
}

impl Random {
    /// 128 random bits for element `i`: Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as
    /// easy as 1, 2, 3"), whose counter is the position and whose key the seed.
    #[inline(always)]
    pub fn bits(&self, i: u64) -> [u64; 2] {
        /// 32 bits in a word of 64: products need no other form, so that loops stay in vectors.
        const LOW: u64 = 0xffff_ffff;
        let position = self.start.wrapping_add(i);
        let mut c = [position & LOW, position >> 32, 0, 0];
        let mut key = [self.seed as u32, (self.seed >> 32) as u32];
        for _ in 0..10 {
            let a = c[0] * 0xD251_1F53;
            let b = c[2] * 0xCD9E_8D57;
            c = [
                (b >> 32) ^ c[1] ^ u64::from(key[0]),
                b & LOW,
                (a >> 32) ^ c[3] ^ u64::from(key[1]),
                a & LOW,
            ];
            key = [
                key[0].wrapping_add(0x9E37_79B9),
                key[1].wrapping_add(0xBB67_AE85),
            ];
        }
        [c[0] | (c[1] << 32), c[2] | (c[3] << 32)]
    }
}

/// The numbers `0..n` in random order, by Fisher and Yates's shuffle: number `i` is changed for one of those before it, or
/// itself, that the `i`th bits of a draw say.
pub fn shuffled(numbers: &mut [i64], how: &Random) {
    (0..)
        .zip(numbers.iter_mut())
        .for_each(|(i, number)| *number = i);
    let mut others = [0; BITS];
    for start in (0..numbers.len()).step_by(BITS).rev() {
        let part = BITS.min(numbers.len() - start);
        vectorized(
            #[inline(always)]
            || {
                for (i, other) in (start as u64..).zip(&mut others) {
                    *other = how.bits(i)[0];
                }
            },
        );
        for i in (start..start + part).rev() {
            numbers.swap(i, below(others[i - start], i as u64 + 1) as usize);
        }
    }
}

/// Elements that are drawn at a time, each step in a loop of its own: together they would not become vectors.
const BITS: usize = 64;

/// Random bits as a number below `n`, evenly: the high half of a product, whose bias is below `n / 2^64`.
#[inline(always)]
fn below(bits: u64, n: u64) -> u64 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u64
}

/// Random bits as a number from 0 (included) to 1 (excluded), a multiple of `2^-digits`.
#[inline(always)]
fn fraction(bits: u64, digits: u32) -> f64 {
    // 53 bits at most: a signed number, which becomes a float in one instruction.
    (bits >> (64 - digits)) as i64 as f64 * f64::from_bits((1023 - u64::from(digits)) << 52)
}

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 11;

/// Writes a draw to every element; elements count in the order of the plan.
///
/// # Safety
/// The walk contract (see the [crate] documentation).
pub unsafe fn random(plan: &Plan<1>, dst: *mut u8, dtype: DType, how: &Random) {
    struct Destination(*mut u8);
    // SAFETY: threads write disjoint elements.
    unsafe impl Sync for Destination {}
    let dst = Destination(dst);
    with_element!(dtype, T => par_for(plan.numel(), GRAIN, |range| {
        let dst = &dst;
        let mut first = range.start as u64;
        plan.for_each_run_in(range, |[offset], len, [stride]| {
            // SAFETY: a run of the plan.
            let to = unsafe { dst.0.offset(offset) };
            vectorized_task(Run::<T> { how, first, to, len, stride, of: PhantomData });
            first += len as u64;
        });
    }));
}

/// A run of elements to draw, from the `first`th of the draw on.
struct Run<'a, T> {
    how: &'a Random,
    first: u64,
    to: *mut u8,
    len: usize,
    stride: isize,
    of: PhantomData<T>,
}

impl<T: Convert> Task for Run<'_, T> {
    type Result = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let how = self.how;
        // As many digits as a uniform number of the dtype has, so that rounding never reaches the upper bound.
        let digits = match T::DTYPE.to_real() {
            DType::F64 => 53,
            DType::F16 => 11,
            DType::BF16 => 8,
            _ => 24,
        };
        match how.distribution {
            Distribution::Uniform(from, to) => self.each(
                #[inline(always)]
                |[a, _]| from + (to - from) * fraction(a, digits),
                T::from_f64,
            ),
            Distribution::Normal(mean, std) => self.each(
                #[inline(always)]
                |[a, b]| {
                    // Box and Muller's; 1 - fraction is above 0.
                    let radius = (-2.0 * I::ln(1.0 - fraction(a, 53))).sqrt();
                    let angle = std::f64::consts::TAU * fraction(b, 53);
                    mean + std * radius * I::cos(angle)
                },
                T::from_f64,
            ),
            Distribution::Integers(from, n) => self.each(
                #[inline(always)]
                |[a, _]| from.wrapping_add(below(a, n) as i64),
                T::from_int,
            ),
            Distribution::Bernoulli(p) => self.each(
                #[inline(always)]
                |[a, _]| (fraction(a, 53) < p) as i64,
                T::from_int,
            ),
        }
    }
}

impl<T: Convert> Run<'_, T> {
    /// Writes a function of each element's bits.
    #[inline(always)]
    fn each<N: Copy + Default>(&self, number: impl Fn([u64; 2]) -> N, convert: impl Fn(N) -> T) {
        let mut bits = [[0; 2]; BITS];
        for start in (0..self.len).step_by(BITS) {
            let part = BITS.min(self.len - start);
            for (i, bits) in bits.iter_mut().enumerate() {
                *bits = self.how.bits(self.first + (start + i) as u64);
            }
            let mut numbers = [N::default(); BITS];
            for (number_of, &bits) in numbers.iter_mut().zip(&bits) {
                *number_of = number(bits);
            }
            let mut values = [T::from_int(0); BITS];
            for (value, &number) in values.iter_mut().zip(&numbers) {
                *value = convert(number);
            }
            for (i, value) in values[..part].iter().enumerate() {
                let at = (start + i) as isize * self.stride;
                // SAFETY: an element of the run.
                unsafe { self.to.offset(at).cast::<T>().write_unaligned(*value) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answer of the generator's authors for a counter and key of zeros.
    #[test]
    fn bits_are_philoxs() {
        let zero = Random {
            seed: 0,
            start: 0,
            distribution: Distribution::Bernoulli(0.5),
        };
        let words = [0x6627_e8d5u64, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        assert_eq!(
            zero.bits(0),
            [words[0] | words[1] << 32, words[2] | words[3] << 32]
        );
    }
}
