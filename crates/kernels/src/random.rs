//! Random numbers by counting: element `i` of a draw depends on the seed and on `i` alone, so that any number of
//! threads gives the same elements.

use crate::convert::Convert;
use crate::par::par_for;
use crate::with_element;
use osteon_spec::{DType, Plan};

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
    #[inline]
    pub fn bits(&self, i: u64) -> [u64; 2] {
        let position = self.start.wrapping_add(i);
        let mut c = [position as u32, (position >> 32) as u32, 0, 0];
        let mut key = [self.seed as u32, (self.seed >> 32) as u32];
        for _ in 0..10 {
            let a = u64::from(c[0]) * 0xD251_1F53;
            let b = u64::from(c[2]) * 0xCD9E_8D57;
            c = [
                (b >> 32) as u32 ^ c[1] ^ key[0],
                b as u32,
                (a >> 32) as u32 ^ c[3] ^ key[1],
                a as u32,
            ];
            key = [
                key[0].wrapping_add(0x9E37_79B9),
                key[1].wrapping_add(0xBB67_AE85),
            ];
        }
        [
            u64::from(c[0]) | (u64::from(c[1]) << 32),
            u64::from(c[2]) | (u64::from(c[3]) << 32),
        ]
    }

    /// A number below `n`, evenly: the high half of a product, whose bias is below `n / 2^64`.
    pub fn below(&self, i: u64, n: u64) -> u64 {
        ((u128::from(self.bits(i)[0]) * u128::from(n)) >> 64) as u64
    }

    /// The number of element `i`, with `digits` binary digits of a uniform one.
    fn number(&self, i: u64, digits: u32) -> f64 {
        let [a, b] = self.bits(i);
        match self.distribution {
            Distribution::Uniform(from, to) => from + (to - from) * fraction(a, digits),
            Distribution::Normal(mean, std) => {
                // Box and Muller's; 1 - fraction is above 0.
                let radius = (-2.0 * (1.0 - fraction(a, 53)).ln()).sqrt();
                mean + std * radius * (std::f64::consts::TAU * fraction(b, 53)).cos()
            }
            Distribution::Integers(from, _) => from as f64,
            Distribution::Bernoulli(p) => (fraction(a, 53) < p) as u8 as f64,
        }
    }
}

/// Random bits as a number from 0 (included) to 1 (excluded), a multiple of `2^-digits`.
fn fraction(bits: u64, digits: u32) -> f64 {
    (bits >> (64 - digits)) as f64 * 0.5f64.powi(digits as i32)
}

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 12;

/// Writes a draw to every element; elements count in the order of the plan.
///
/// # Safety
/// The walk contract (see the [crate] documentation).
pub unsafe fn random(plan: &Plan<1>, dst: *mut u8, dtype: DType, how: &Random) {
    struct Destination(*mut u8);
    // SAFETY: threads write disjoint elements.
    unsafe impl Sync for Destination {}
    let dst = Destination(dst);
    // As many digits as a uniform number of the dtype has, so that rounding never reaches the upper bound.
    let digits = match dtype.to_real() {
        DType::F64 => 53,
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    with_element!(dtype, T => par_for(plan.numel(), GRAIN, |range| {
        let dst = &dst;
        let mut i = range.start as u64;
        plan.for_each_run_in(range, |[offset], len, [stride]| {
            for k in 0..len as isize {
                let value: T = match how.distribution {
                    Distribution::Integers(from, n) => {
                        T::from_int(from.wrapping_add(how.below(i, n) as i64))
                    }
                    _ => T::from_f64(how.number(i, digits)),
                };
                i += 1;
                // SAFETY: a position of the plan.
                unsafe { dst.0.offset(offset + k * stride).cast::<T>().write_unaligned(value) };
            }
        });
    }));
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
