//! The order of integers, digit by digit.
//!
//! A key and its place are one word, so that equal keys keep the order of their places. What all keys have in common is left
//! out; bits that do not fit beside a place wait, and then order what is equal without them.

use crate::par::{Destination, num_threads, par_for, par_slices};
use crate::simd::vectorized;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words for one thread to begin with, at least.
const GRAIN: usize = 1 << 14;

/// Bits of a digit, at most.
const DIGIT: u32 = 8;

/// Parts of a list that threads share, at most.
pub(crate) const PARTS: usize = 16;

/// Fewer words than so many for each digit are compared instead.
const FEW: usize = 96;

/// Memory for words, with zeros in it.
pub fn zeroed(words: &mut [MaybeUninit<u64>]) -> &mut [u64] {
    par_slices(words, GRAIN, |_, words| words.fill(MaybeUninit::zeroed()));
    // SAFETY: all of them have been written.
    unsafe { &mut *(std::ptr::from_mut(words) as *mut [u64]) }
}

/// Writes the places of these keys in ascending order, equal ones in the order of their places. What `spare` holds before
/// does not matter, and after means nothing.
///
/// # Panics
/// When the three differ in length.
pub(crate) fn order(keys: &[u64], places: &mut [u64], spare: &mut [u64]) {
    let n = keys.len();
    assert!(places.len() == n && spare.len() == n);
    par_slices(places, GRAIN, |start, places| {
        (start as u64..)
            .zip(places)
            .for_each(|(at, place)| *place = at);
    });
    let (least, bits) = spread(keys);
    let at_bits = usize::BITS - n.saturating_sub(1).leading_zeros();
    let words = Words {
        keys,
        least,
        at_bits,
        place: (1 << at_bits) - 1,
    };
    words.arrange(places, spare, bits);
    par_slices(places, GRAIN, |_, places| {
        places.iter_mut().for_each(|word| *word &= words.place);
    });
}

/// The least key, and the bits in which distances from it may differ.
fn spread(keys: &[u64]) -> (u64, Range<u32>) {
    let first = keys.first().copied().unwrap_or_default();
    let [least, most, differ] = [first, first, 0].map(AtomicU64::new);
    par_for(keys.len(), GRAIN, |range| {
        let keys = &keys[range];
        let (low, high, bits) = vectorized(
            #[inline(always)]
            || {
                keys.iter()
                    .fold((first, first, 0), |(low, high, bits), &key| {
                        (key.min(low), key.max(high), bits | (key ^ first))
                    })
            },
        );
        least.fetch_min(low, Ordering::Relaxed);
        most.fetch_max(high, Ordering::Relaxed);
        differ.fetch_or(bits, Ordering::Relaxed);
    });
    let least = least.into_inner();
    let end = u64::BITS - (most.into_inner() - least).leading_zeros();
    (least, differ.into_inner().trailing_zeros().min(end)..end)
}

/// Keys of which some bits, and places, are words: the place in the lowest bits.
struct Words<'a> {
    keys: &'a [u64],
    least: u64,
    at_bits: u32,
    /// The bits of the place.
    place: u64,
}

impl Words<'_> {
    /// Orders the words with these places by these bits of their keys; equal ones stay in order.
    fn arrange(&self, words: &mut [u64], spare: &mut [u64], bits: Range<u32>) {
        let fitting = bits.end.saturating_sub(u64::BITS - self.at_bits);
        let now = bits.start.max(fitting)..bits.end;
        let width = now.end - now.start;
        let wanted = u64::MAX.checked_shr(u64::BITS - width).unwrap_or(0);
        let word = |other: u64| {
            let place = other & self.place;
            let key = (self.keys[place as usize] - self.least) >> now.start & wanted;
            key << self.at_bits | place
        };
        let digits = width.div_ceil(DIGIT);
        if words.len() < FEW * digits as usize {
            words.iter_mut().for_each(|w| *w = word(*w));
            words.sort_unstable();
        } else if digits % 2 == 0 {
            par_slices(words, GRAIN, |_, words| {
                words.iter_mut().for_each(|w| *w = word(*w));
            });
            self.by_digits(words, spare, width);
        } else {
            let old = &*words;
            par_slices(spare, GRAIN, |start, new| {
                new.iter_mut()
                    .zip(&old[start..])
                    .for_each(|(new, &w)| *new = word(w));
            });
            self.by_digits(spare, words, width);
        }
        if now.start > bits.start {
            self.arrange_equal(words, spare, bits.start..now.start);
        }
    }

    /// Orders words that are the same but for their places by more bits of their keys.
    fn arrange_equal(&self, words: &mut [u64], spare: &mut [u64], bits: Range<u32>) {
        let n = words.len();
        let is_first = |words: &[u64], i| i == 0 || (words[i] ^ words[i - 1]) > self.place;
        // Parts that begin where others end are found before any of them changes.
        let parts = n.div_ceil(GRAIN).min(PARTS);
        let begins: [usize; PARTS + 1] = std::array::from_fn(|p| {
            (n * p.min(parts) / parts..n)
                .find(|&i| is_first(words, i))
                .unwrap_or(n)
        });
        let [words, spare] = [words, spare].map(|list| Destination(list.as_mut_ptr()));
        par_for(parts, 1, |range| {
            let lists = [&words, &spare];
            let (begin, end) = (begins[range.start], begins[range.end]);
            // SAFETY: parts of both that no other thread has.
            let [words, spare] = lists.map(|list| unsafe {
                std::slice::from_raw_parts_mut(list.0.add(begin), end - begin)
            });
            let mut start = 0;
            while start < words.len() {
                let end = (start + 1..words.len())
                    .find(|&i| is_first(words, i))
                    .unwrap_or(words.len());
                if end - start > 1 {
                    self.arrange(&mut words[start..end], &mut spare[start..end], bits.clone());
                }
                start = end;
            }
        });
    }

    /// Sorts words by so many bits above the place, which become an even number of passes from one list to the other and back,
    /// or an odd one from the second to the first.
    fn by_digits<'b>(&self, mut from: &'b mut [u64], mut to: &'b mut [u64], width: u32) {
        let passes = width.div_ceil(DIGIT);
        let parts = from.len().div_ceil(GRAIN).min(num_threads()).min(PARTS);
        for pass in 0..passes {
            let [begin, end] = [pass, pass + 1].map(|pass| width * pass / passes);
            let digit = Digit {
                shift: self.at_bits + begin,
                mask: u8::MAX >> (DIGIT - (end - begin)),
            };
            if parts <= 1 {
                digit.pass::<1>(from, to, 1);
            } else {
                digit.pass::<PARTS>(from, to, parts);
            }
            (from, to) = (to, from);
        }
    }
}

#[derive(Clone, Copy)]
struct Digit {
    shift: u32,
    mask: u8,
}

impl Digit {
    #[inline(always)]
    fn of(self, word: u64) -> usize {
        ((word >> self.shift) as u8 & self.mask).into()
    }

    /// Moves words by this digit, those with the same one in their order. Threads share parts, of which there are `N` at most.
    fn pass<const N: usize>(self, from: &[u64], to: &mut [u64], parts: usize) {
        let part = from.len().div_ceil(parts);
        let words = |p: usize| &from[from.len().min(p * part)..from.len().min((p + 1) * part)];
        // How often each digit occurs in each part, and then where the next word with it goes.
        let mut next = [[0usize; 1 << DIGIT]; N];
        let next = &mut next[..parts];
        par_slices(next, 1, |first, next| {
            for (p, counts) in (first..).zip(next) {
                words(p).iter().for_each(|&w| counts[self.of(w)] += 1);
            }
        });
        let mut before = 0;
        for digit in 0..=usize::from(self.mask) {
            for counts in next.iter_mut() {
                before += std::mem::replace(&mut counts[digit], before);
            }
        }
        let to = Destination(to.as_mut_ptr());
        par_slices(next, 1, |first, next| {
            let to = &to;
            for (p, next) in (first..).zip(next) {
                for &word in words(p) {
                    let at = &mut next[self.of(word)];
                    // SAFETY: as many places as words, each of which gets one of its own.
                    unsafe { to.0.add(*at).write(word) };
                    *at += 1;
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrambled(i: usize) -> u64 {
        (i as u64 + 1)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    /// Against the standard library's stable sort: one key, few and many of them, in all bits, in some, in clusters whose high
    /// bits are those of many others, and lengths on both sides of each way.
    #[test]
    fn orders_are_those_of_a_stable_sort() {
        let kinds: [fn(usize) -> u64; 9] = [
            |_| 7,
            |i| scrambled(i) % 5,
            |i| scrambled(i) % 1000 + u64::MAX / 2,
            |i| (scrambled(i) % 100_000) << 40,
            scrambled,
            |i| scrambled(i) | (u64::MAX << 60),
            |i| ((scrambled(i) % 3) << 62) | (scrambled(i + 1) % 100_000),
            |i| {
                ((scrambled(i) % 2) << 63)
                    | ((scrambled(i + 1) % 1000) << 20)
                    | (scrambled(i + 2) % 4)
            },
            |i| u64::MAX - i as u64 / 3,
        ];
        for kind in kinds {
            for n in [0, 1, 2, 3, 100, 500, 1500, 40_000] {
                let keys: Vec<u64> = (0..n).map(kind).collect();
                let mut want: Vec<u64> = (0..n as u64).collect();
                want.sort_by_key(|&at| keys[at as usize]);
                let (mut places, mut spare) = (vec![9; n], vec![9; n]);
                order(&keys, &mut places, &mut spare);
                assert_eq!(places, want, "{n} keys, the first {:?}", keys.first());
            }
        }
    }

    #[test]
    fn memory_is_made_zeros() {
        let mut words = [const { MaybeUninit::<u64>::uninit() }; 100];
        assert_eq!(zeroed(&mut words), [0; 100]);
    }
}
