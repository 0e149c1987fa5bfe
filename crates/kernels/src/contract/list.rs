//! Positions of two operands along a part of a walk, as lists that loops index.

use osteon_spec::Plan;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The most rows or columns of a list, and the most steps of a sum.
pub(super) const LONGEST: usize = 512;
pub(super) const DEEPEST: usize = 2048;

/// The byte offsets of two operands along a part of a plan, at most `N`, kept until another part is asked for.
pub(super) struct List<const N: usize> {
    range: Range<usize>,
    at: [[MaybeUninit<isize>; N]; 2],
}

impl<const N: usize> List<N> {
    pub(super) const fn new() -> List<N> {
        List {
            range: 0..0,
            at: [[MaybeUninit::uninit(); N]; 2],
        }
    }

    /// The positions of this part, which is no longer than `N`; always of the same plan.
    pub(super) fn of(&mut self, plan: &Plan<2>, range: Range<usize>) -> [&[isize]; 2] {
        let len = range.len();
        if self.range != range {
            let lists = self.at.each_mut().map(|list| &mut list[..len]);
            positions(plan, range.clone(), lists);
            self.range = range;
        }
        self.at.each_ref().map(|list| {
            let list = &list[..len];
            // SAFETY: filled when this range was first asked for, as the walk reports every element of it.
            unsafe { std::slice::from_raw_parts(list.as_ptr().cast::<isize>(), len) }
        })
    }
}

/// Writes the positions of this part, which is as long as the lists.
pub(super) fn positions<'a>(
    plan: &Plan<2>,
    part: Range<usize>,
    lists: [&'a mut [MaybeUninit<isize>]; 2],
) -> [&'a [isize]; 2] {
    let total = part.len();
    let [first, second] = lists;
    assert!(first.len() == total && second.len() == total);
    let mut filled = 0;
    plan.for_each_run_in(part, |[a, b], len, [da, db]| {
        for i in 0..len as isize {
            let at = filled + i as usize;
            first[at].write(a + da * i);
            second[at].write(b + db * i);
        }
        filled += len;
    });
    // SAFETY: filled above, as the walk reports every element of the part.
    [first, second]
        .map(|list| unsafe { std::slice::from_raw_parts(list.as_ptr().cast::<isize>(), total) })
}
