//! Positions of two operands along a part of a walk, as lists that loops index.

use osteon_spec::Plan;
use std::mem::MaybeUninit;
use std::ops::Range;

/// The most positions of a list.
pub(super) const LONGEST: usize = 512;

/// The byte offsets of two operands along a part of a plan, kept until another part is asked for.
pub(super) struct List {
    range: Range<usize>,
    at: [[MaybeUninit<isize>; LONGEST]; 2],
}

impl List {
    pub(super) const fn new() -> List {
        List {
            range: 0..0,
            at: [[MaybeUninit::uninit(); LONGEST]; 2],
        }
    }

    /// The positions of this part, which is no longer than [`LONGEST`]; always of the same plan.
    pub(super) fn of(&mut self, plan: &Plan<2>, range: Range<usize>) -> [&[isize]; 2] {
        let len = range.len();
        if self.range != range {
            let [first, second] = &mut self.at;
            let (first, second) = (&mut first[..len], &mut second[..len]);
            let mut filled = 0;
            plan.for_each_run_in(range.clone(), |[a, b], len, [da, db]| {
                for i in 0..len as isize {
                    let at = filled + i as usize;
                    first[at].write(a + da * i);
                    second[at].write(b + db * i);
                }
                filled += len;
            });
            self.range = range;
        }
        self.at.each_ref().map(|list| {
            let list = &list[..len];
            // SAFETY: filled when this range was first asked for, as the walk reports every element of it.
            unsafe { std::slice::from_raw_parts(list.as_ptr().cast::<isize>(), len) }
        })
    }
}
