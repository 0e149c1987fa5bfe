//! Equal elements: which there are, how many of each, and which class every element is of.

use crate::key::{key_of_nan, order_keys};
use crate::par::{Destination, par_for, par_slices};
use crate::radix::{PARTS, order};
use osteon_spec::{DType, Plan};
use std::ops::Range;

/// Elements for one thread to begin with, at least.
const GRAIN: usize = 1 << 14;

/// Elements by their keys: runs of equal ones in an order are classes. Each NaN is a class of its own.
#[derive(Debug)]
pub struct Classes<'a> {
    /// In order.
    keys: &'a [u64],
    /// Where each element of the order is; none for the order of places.
    places: Option<&'a [u64]>,
    nan: Option<u64>,
    part: usize,
    /// The classes that begin before each part of the order, and at last all.
    before: [usize; PARTS + 1],
}

/// Where [`Classes::write`] writes its results, as `int64`.
#[derive(Clone, Copy, Debug)]
pub struct ClassLists {
    /// For each class the place of its first element.
    pub firsts: *mut u8,
    /// For each class the number of its elements.
    pub counts: *mut u8,
    /// For each element its class.
    pub inverse: *mut u8,
}

impl<'a> Classes<'a> {
    /// Lists that [`Classes::new`] takes, of a word for each element.
    pub const LISTS: usize = 3;

    /// The classes of all elements in ascending order, or of the neighbours that are equal; none for a dtype without an order.
    /// The plan is in row-major order ([`Plan::row_major`]).
    ///
    /// # Safety
    /// The walk contract (see the [crate] documentation).
    ///
    /// # Panics
    /// When there are not [`Classes::LISTS`] lists of words.
    pub unsafe fn new(
        plan: &Plan<1>,
        ptr: *const u8,
        dtype: DType,
        consecutive: bool,
        words: &'a mut [u64],
    ) -> Option<Classes<'a>> {
        let n = plan.numel();
        let (own, words) = words.split_at_mut(n);
        let (places, spare) = words.split_at_mut(n);
        // SAFETY: the caller's contract.
        if !unsafe { order_keys(plan, ptr, dtype, own) } {
            return None;
        }
        let own = &*own;
        let mut classes = Classes {
            keys: own,
            places: None,
            nan: key_of_nan(dtype),
            part: n.div_ceil(PARTS).max(GRAIN),
            before: [0; PARTS + 1],
        };
        if !consecutive {
            order(own, places, spare);
            let places = &*places;
            par_slices(spare, GRAIN, |start, keys| {
                for (key, &place) in keys.iter_mut().zip(&places[start..]) {
                    *key = own[place as usize];
                }
            });
            (classes.keys, classes.places) = (spare, Some(places));
        }
        let mut counts = [0; PARTS];
        par_slices(&mut counts, 1, |first, counts| {
            for (p, count) in (first..).zip(counts) {
                *count = classes.range(p).filter(|&i| classes.begins(i)).count();
            }
        });
        for (p, count) in counts.into_iter().enumerate() {
            classes.before[p + 1] = classes.before[p] + count;
        }
        Some(classes)
    }

    /// How many there are.
    #[expect(clippy::len_without_is_empty, reason = "not a collection")]
    pub fn len(&self) -> usize {
        self.before[PARTS]
    }

    /// A part of the order.
    fn range(&self, part: usize) -> Range<usize> {
        let n = self.keys.len();
        n.min(part * self.part)..n.min((part + 1) * self.part)
    }

    /// Whether a class begins at this place of the order.
    #[inline(always)]
    fn begins(&self, i: usize) -> bool {
        i == 0 || self.keys[i] != self.keys[i - 1] || Some(self.keys[i]) == self.nan
    }

    /// Writes all that is known of the classes.
    ///
    /// # Safety
    /// There is room for a number for each class, and for each element, aligned.
    pub unsafe fn write(&self, lists: ClassLists) {
        if self.len() == 0 {
            return;
        }
        let ClassLists {
            firsts,
            counts,
            inverse,
        } = lists;
        let [firsts, counts, inverse] =
            [firsts, counts, inverse].map(|list| Destination(list.cast::<i64>()));
        par_for(PARTS, 1, |parts| {
            let (firsts, counts, inverse) = (&firsts, &counts, &inverse);
            for p in parts {
                let mut next = self.before[p];
                for i in self.range(p) {
                    let place = self.places.map_or(i, |places| places[i] as usize);
                    // SAFETY: the caller's contract: every class begins once, and every element has a place.
                    unsafe {
                        if self.begins(i) {
                            firsts.0.add(next).write(place as i64);
                            // Where it begins, for now.
                            counts.0.add(next).write(i as i64);
                            next += 1;
                        }
                        inverse.0.add(place).write(next as i64 - 1);
                    }
                }
            }
        });
        // SAFETY: all of them were written above.
        let counts = unsafe { std::slice::from_raw_parts_mut(counts.0, self.len()) };
        let mut end = self.keys.len() as i64;
        for count in counts.iter_mut().rev() {
            let begin = *count;
            *count = end - begin;
            end = begin;
        }
    }
}
