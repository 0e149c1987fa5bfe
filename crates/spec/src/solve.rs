//! Whether a sum of multiples can land in an interval: the question behind every overlap.

use smallvec::SmallVec;

/// A number `value` that may be taken 0 to `most` times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term {
    pub value: i128,
    pub most: i128,
}

/// Tries left before giving up: some tenths of a second. The problem is NP-hard in the number of terms,
/// while the layouts that occur take a handful of tries.
pub(crate) struct Budget(pub u32);

impl Budget {
    pub fn full() -> Budget {
        Budget(1_000_000)
    }
}

/// Whether `Σ cᵢ·valueᵢ` is in `low..=high` for some counts `0 <= cᵢ <= mostᵢ`; `None` when the
/// budget ended first. Values are not negative.
pub(crate) fn reaches(
    terms: impl IntoIterator<Item = Term>,
    low: i128,
    high: i128,
    budget: &mut Budget,
) -> Option<bool> {
    let terms = simplified(
        terms
            .into_iter()
            .filter(|t| t.value > 0 && t.most > 0)
            .collect(),
    );
    let mut levels: SmallVec<[Level; 8]> = SmallVec::new();
    let (mut reach, mut gcd) = (0, 0);
    for &term in &terms {
        levels.push(Level {
            term,
            rest: reach,
            rest_gcd: gcd,
        });
        reach += term.value * term.most;
        gcd = gcd_of(gcd, term.value);
    }
    search(&levels, reach, gcd, low, high, budget)
}

/// Ascending by value, with every term that only prolongs a smaller one joined to it.
fn simplified(mut terms: SmallVec<[Term; 8]>) -> SmallVec<[Term; 8]> {
    terms.sort_unstable_by_key(|t| t.value);
    let mut joined: SmallVec<[Term; 8]> = SmallVec::new();
    for term in terms {
        let prolongs =
            |t: &&mut Term| term.value % t.value == 0 && term.value / t.value <= t.most + 1;
        match joined.iter_mut().find(prolongs) {
            Some(smaller) => smaller.most += term.value / smaller.value * term.most,
            None => joined.push(term),
        }
    }
    joined
}

/// A term and what the smaller ones before it can do.
struct Level {
    term: Term,
    /// Their largest sum.
    rest: i128,
    /// The divisor of all their sums.
    rest_gcd: i128,
}

/// `reach` and `gcd` are those of all levels.
fn search(
    levels: &[Level],
    reach: i128,
    gcd: i128,
    low: i128,
    high: i128,
    budget: &mut Budget,
) -> Option<bool> {
    let (low, high) = (low.max(0), high.min(reach));
    if low > high {
        return Some(false);
    }
    let Some((
        Level {
            term,
            rest,
            rest_gcd,
        },
        smaller,
    )) = levels.split_last()
    else {
        return Some(true);
    };
    if high - high % gcd < low {
        return Some(false);
    }
    if smaller.is_empty() {
        // A multiple of the one value, and not too large.
        return Some(true);
    }
    let last = term.most.min(high / term.value);
    let mut count = div_ceil(low - rest, term.value).max(0);
    // Only counts whose remainder the rest can make up are worth a try.
    while let Some(next) =
        first_in_residue(count, term.value, low, high - low, *rest_gcd).filter(|&c| c <= last)
    {
        if smaller.len() == 1 {
            // The rest is every multiple of one value up to its largest: what remains is one of
            // those.
            return Some(true);
        }
        budget.0 = budget.0.checked_sub(1)?;
        let taken = next * term.value;
        if search(smaller, *rest, *rest_gcd, low - taken, high - taken, budget)? {
            return Some(true);
        }
        count = next + 1;
    }
    Some(false)
}

/// The first `c >= from` for which a multiple of `modulus` is in `low - c·value ..= low + width -
/// c·value`.
fn first_in_residue(
    from: i128,
    value: i128,
    low: i128,
    width: i128,
    modulus: i128,
) -> Option<i128> {
    // A multiple is there iff (c·value - low) mod modulus <= width, counting down from the top: the
    // distance from `low - c·value` up to the next multiple is that remainder.
    let start = (from * value - low).rem_euclid(modulus);
    if start <= width {
        return Some(from);
    }
    // Steps t with (start + t·value) mod modulus in 0..=width.
    let first = modulus - start;
    first_multiple_within(value % modulus, modulus, first, first + width).map(|t| from + t)
}

/// The least `t` with `low <= t·step mod modulus <= high`, where `0 < low <= high`, in the steps of
/// Euclid's algorithm. (`high` may pass the modulus only where `low..modulus` is all that counts.)
fn first_multiple_within(step: i128, modulus: i128, low: i128, high: i128) -> Option<i128> {
    if step == 0 {
        return None;
    }
    let t = div_ceil(low, step);
    if t * step <= high {
        return Some(t);
    }
    // No multiple of the step lies within, so the walk must wrap y times first:
    // low <= t·step - y·modulus <= high, which says where y·modulus mod step must be.
    let wraps = first_multiple_within(
        modulus % step,
        step,
        (-high).rem_euclid(step),
        (-low).rem_euclid(step),
    )?;
    Some(div_ceil(low + wraps * modulus, step))
}

fn div_ceil(a: i128, b: i128) -> i128 {
    -(-a).div_euclid(b)
}

fn gcd_of(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd_of(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn first_multiple_is_the_first() {
        for modulus in 1..40 {
            for step in 0..modulus {
                for low in 1..modulus {
                    for high in low..modulus {
                        let naive =
                            (0..modulus).find(|t| (low..=high).contains(&(t * step % modulus)));
                        let got = first_multiple_within(step, modulus, low, high);
                        assert_eq!(got, naive, "{step} mod {modulus} in {low}..={high}");
                    }
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn sums_are_found_where_they_are(
            terms in prop::collection::vec((0..90i128, 0..7i128), 0..5),
            low in -50..1500i128,
            width in 0..12i128,
        ) {
            let mut sums = vec![0];
            for &(value, most) in &terms {
                sums = sums.iter().flat_map(|s| (0..=most).map(move |c| s + c * value)).collect();
            }
            let naive = sums.iter().any(|s| (low..=low + width).contains(s));
            let terms = terms.iter().map(|&(value, most)| Term { value, most });
            prop_assert_eq!(reaches(terms, low, low + width, &mut Budget::full()), Some(naive));
        }
    }

    /// A subset sum too large to search: the search ends, and says that it does not know.
    #[test]
    fn the_budget_ends_the_search() {
        let values =
            (0..60).map(|i| 2 * ((1i128 << 50) + (i * i * 7919 + i * 104_729) % 1_000_003));
        let sum: i128 = values.clone().sum();
        let terms = values
            .map(|value| Term { value, most: 1 })
            .chain([Term { value: 3, most: 1 }]);
        let mut budget = Budget(10_000);
        assert_eq!(reaches(terms, sum / 2, sum / 2, &mut budget), None);
    }
}
