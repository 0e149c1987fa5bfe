//! The one recipe for loops: broadcast, order dims by stride, coalesce.

use crate::{Layout, checked_product};
use smallvec::SmallVec;
use std::ops::Range;

/// How to walk `N` operands of one broadcast shape together: byte strides for each, dims from the
/// innermost to the outermost. By convention operand 0 is the destination. No heap up to rank 5.
///
/// Invariants, from every constructor:
/// - **P1** `numel` is the product of the sizes of `dims`, and fits `isize`.
/// - **P2** every position that a walk reports, `offset + Σ index·stride` with `index < size`, is one
///   that the operand's own layout reaches; the set of positions of operand `k`, with the positions
///   of the other operands at the same element, is that of the broadcast shape exactly.
/// - **P3** no dim has size 1; when `numel` is 0 there are no dims.
///
/// ```
/// use osteon_spec::{Layout, Plan};
/// let out = Layout::contiguous(&[2, 3]).unwrap();
/// let row = Layout::contiguous(&[3]).unwrap();
/// let plan = Plan::new(&[2, 3], [(&out, 4), (&row, 8)]);
/// let mut runs = vec![];
/// plan.for_each_run(|offsets, len, strides| runs.push((offsets, len, strides)));
/// assert_eq!(runs, [([0, 0], 3, [4, 8]), ([12, 0], 3, [4, 8])]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<const N: usize> {
    dims: SmallVec<[PlanDim<N>; 5]>,
    offsets: [isize; N],
    numel: usize,
}

/// One dim of a [`Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanDim<const N: usize> {
    /// The number of steps, at least 2.
    pub size: usize,
    /// Bytes from one step to the next, for each operand.
    pub strides: [isize; N],
}

impl<const N: usize> PlanDim<N> {
    /// Takes the next dim out in, where every operand walks both as one.
    #[inline]
    fn join(&mut self, outer: &PlanDim<N>) -> bool {
        let span = self.size as isize;
        // Strides of a dim beyond reach (an overflow here) never join.
        let joins = (0..N).all(|k| self.strides[k].checked_mul(span) == Some(outer.strides[k]));
        if joins {
            self.size *= outer.size;
        }
        joins
    }
}

impl<const N: usize> Plan<N> {
    /// A walk over `shape` with the dims in the order that suits the operands, the first operand
    /// before the later ones. Each operand is a layout that broadcasts to `shape`, and the bytes of
    /// one of its elements.
    ///
    /// # Panics
    /// When an operand does not broadcast to `shape`, or the product of `shape` does not fit:
    /// both have been checked by whoever computed `shape`.
    pub fn new(shape: &[usize], operands: [(&Layout, usize); N]) -> Plan<N> {
        let mut plan = Plan::before(shape, offsets(operands));
        plan.broadcast(shape, operands);
        plan.sort();
        plan
    }

    /// The same walk, in row-major order of `shape`: for operations whose meaning depends on the
    /// order of elements (`nonzero`, assignment through indices that repeat).
    ///
    /// # Panics
    /// As [`Plan::new`].
    pub fn row_major(shape: &[usize], operands: [(&Layout, usize); N]) -> Plan<N> {
        let mut plan = Plan::before(shape, offsets(operands));
        plan.broadcast(shape, operands);
        plan
    }

    #[inline(always)]
    fn broadcast(&mut self, shape: &[usize], operands: [(&Layout, usize); N]) {
        for (layout, _) in operands {
            let missing = shape.len().checked_sub(layout.rank());
            assert!(
                missing.is_some_and(|m| layout
                    .sizes()
                    .iter()
                    .zip(&shape[m..])
                    .all(|(&size, &to)| size == to || size == 1)),
                "layout {layout} does not broadcast to {shape:?}"
            );
        }
        self.fill(shape, |k, d| {
            let (layout, item) = operands[k];
            match (d + layout.rank()).checked_sub(shape.len()) {
                Some(own) if layout.sizes()[own] != 1 => (layout.strides()[own] * item) as isize,
                _ => 0,
            }
        });
    }

    /// A walk in row-major order from its parts: for each operand the byte offset of the first
    /// element and the byte strides, one for each size of `shape`; negative strides walk backwards
    /// (`flip`).
    ///
    /// # Panics
    /// When a list of strides is not as long as `shape`, or the product of `shape` does not fit.
    pub fn from_strides(shape: &[usize], offsets: [isize; N], strides: [&[isize]; N]) -> Plan<N> {
        assert!(
            strides.iter().all(|s| s.len() == shape.len()),
            "a stride for every size"
        );
        let mut plan = Plan::before(shape, offsets);
        plan.fill(shape, |k, d| strides[k][d]);
        plan
    }

    /// A walk over these dims as they are, innermost first; dims of size 1 are left out.
    ///
    /// # Panics
    /// When the product of the sizes does not fit.
    pub fn from_dims(offsets: [isize; N], dims: impl IntoIterator<Item = PlanDim<N>>) -> Plan<N> {
        let mut dims: SmallVec<[PlanDim<N>; 5]> =
            dims.into_iter().filter(|d| d.size != 1).collect();
        let sizes: SmallVec<[usize; 8]> = dims.iter().map(|d| d.size).collect();
        let numel = checked_product(&sizes).expect("the sizes of a walk have been checked");
        if numel == 0 {
            dims.clear();
        }
        Plan {
            dims,
            offsets,
            numel,
        }
    }

    /// The same elements with the dims in the order that suits the operands.
    #[must_use]
    pub fn sorted(mut self) -> Plan<N> {
        self.sort();
        self
    }

    /// A plan whose dims are to come. What follows fills it where it lies: moving it costs as much as making it.
    #[inline(always)]
    fn before(shape: &[usize], offsets: [isize; N]) -> Plan<N> {
        Plan {
            dims: SmallVec::new(),
            offsets,
            numel: checked_product(shape).expect("the shape of a result has been checked"),
        }
    }

    #[inline(always)]
    fn fill(&mut self, shape: &[usize], stride: impl Fn(usize, usize) -> isize) {
        if self.numel == 0 {
            return;
        }
        for (d, &size) in shape.iter().enumerate().rev() {
            if size != 1 {
                let strides = std::array::from_fn(|k| stride(k, d));
                self.surround(PlanDim { size, strides });
            }
        }
    }

    /// Puts a dim around the others: joined with the outermost one where every operand walks both as one.
    #[inline]
    fn surround(&mut self, outer: PlanDim<N>) {
        if let Some(inner) = self.dims.last_mut()
            && inner.join(&outer)
        {
            return;
        }
        self.dims.push(outer);
    }

    /// Inner dims get the smaller strides. A stable insertion sort, because the order is partial:
    /// a dim on which an operand does not move says nothing about that operand.
    #[inline]
    fn sort(&mut self) {
        if self.dims.len() > 1 {
            self.sort_dims();
            self.coalesce();
        }
    }

    fn sort_dims(&mut self) {
        for i in 1..self.dims.len() {
            let mut at = i;
            for inner in (0..i).rev() {
                match goes_outside(&self.dims[inner], &self.dims[at]) {
                    Some(true) => {
                        self.dims.swap(inner, at);
                        at = inner;
                    }
                    Some(false) => break,
                    None => {}
                }
            }
        }
    }

    /// Joins what has become neighbours.
    fn coalesce(&mut self) {
        let mut kept = 0;
        for i in 1..self.dims.len() {
            let outer = self.dims[i];
            if !self.dims[kept].join(&outer) {
                kept += 1;
                self.dims[kept] = outer;
            }
        }
        self.dims.truncate(kept + 1);
    }

    /// The number of elements of the broadcast shape.
    #[inline]
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// The dims, innermost first. None when there is at most one element.
    #[inline]
    pub fn dims(&self) -> &[PlanDim<N>] {
        &self.dims
    }

    /// The byte offset of each operand's first element.
    #[inline]
    pub fn offsets(&self) -> [isize; N] {
        self.offsets
    }

    /// The innermost dim: a run's length and its byte strides (length 1 and strides 0 without
    /// dims).
    #[inline]
    pub fn inner(&self) -> PlanDim<N> {
        self.dims.first().copied().unwrap_or(PlanDim {
            size: 1,
            strides: [0; N],
        })
    }

    /// The plan of some of the operands, over the same dims in the same order.
    #[inline]
    pub fn select<const M: usize>(&self, operands: [usize; M]) -> Plan<M> {
        let mut plan = Plan {
            dims: SmallVec::new(),
            offsets: operands.map(|k| self.offsets[k]),
            numel: self.numel,
        };
        for d in &self.dims {
            plan.surround(PlanDim {
                size: d.size,
                strides: operands.map(|k| d.strides[k]),
            });
        }
        plan
    }

    /// Calls `run(offsets, len, strides)` for every run along the innermost dim, all in bytes but
    /// `len`, which counts elements.
    #[inline]
    pub fn for_each_run(&self, run: impl FnMut([isize; N], usize, [isize; N])) {
        self.for_each_run_in(0..self.numel, run);
    }

    /// The same for the elements of this range only, counted in the order of the walk: what one
    /// thread does. The first and the last run may be parts of a run.
    ///
    /// # Panics
    /// When the range reaches beyond [`Plan::numel`].
    #[inline]
    pub fn for_each_run_in(
        &self,
        range: Range<usize>,
        mut run: impl FnMut([isize; N], usize, [isize; N]),
    ) {
        assert!(
            range.end <= self.numel,
            "range {range:?} of {} elements",
            self.numel
        );
        if range.is_empty() {
            return;
        }
        let inner = self.inner();
        if self.dims.len() <= 1 {
            let offsets = step(self.offsets, inner.strides, range.start);
            return run(offsets, range.len(), inner.strides);
        }
        let outer = &self.dims[1..];
        let mut at = range.start % inner.size;
        let mut offsets = self.offsets;
        let mut index: SmallVec<[usize; 5]> = SmallVec::with_capacity(outer.len());
        let mut rest = range.start / inner.size;
        for dim in outer {
            index.push(rest % dim.size);
            offsets = step(offsets, dim.strides, rest % dim.size);
            rest /= dim.size;
        }
        let mut left = range.len();
        loop {
            let len = left.min(inner.size - at);
            run(step(offsets, inner.strides, at), len, inner.strides);
            left -= len;
            if left == 0 {
                return;
            }
            at = 0;
            for (i, dim) in index.iter_mut().zip(outer) {
                *i += 1;
                if *i < dim.size {
                    offsets = step(offsets, dim.strides, 1);
                    break;
                }
                offsets = step(offsets, dim.strides.map(isize::wrapping_neg), dim.size - 1);
                *i = 0;
            }
        }
    }
}

#[inline(always)]
fn offsets<const N: usize>(operands: [(&Layout, usize); N]) -> [isize; N] {
    operands.map(|(layout, item)| (layout.offset() * item) as isize)
}

/// Whether `a`, now the inner dim of the two, belongs outside `b`: the first operand that moves on
/// both and tells them apart decides.
fn goes_outside<const N: usize>(a: &PlanDim<N>, b: &PlanDim<N>) -> Option<bool> {
    for k in 0..N {
        let (sa, sb) = (a.strides[k].unsigned_abs(), b.strides[k].unsigned_abs());
        if sa == 0 || sb == 0 {
            continue;
        }
        if sa != sb {
            return Some(sa > sb);
        }
        if a.size > b.size {
            return Some(true);
        }
    }
    None
}

#[inline(always)]
fn step<const N: usize>(mut offsets: [isize; N], strides: [isize; N], by: usize) -> [isize; N] {
    for (offset, stride) in offsets.iter_mut().zip(strides) {
        *offset += stride * by as isize;
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dims;
    use proptest::prelude::*;

    /// The positions of every element, by plain counting over the shape.
    fn naive<const N: usize>(shape: &[usize], operands: [(&Layout, usize); N]) -> Vec<[isize; N]> {
        let numel: usize = shape.iter().product();
        (0..numel)
            .map(|i| {
                operands.map(|(layout, item)| {
                    let mut rest = i;
                    let mut at = layout.offset();
                    for d in (0..shape.len()).rev() {
                        let index = rest % shape[d];
                        rest /= shape[d];
                        if let Some(own) = (d + layout.rank()).checked_sub(shape.len())
                            && layout.sizes()[own] != 1
                        {
                            at += index * layout.strides()[own];
                        }
                    }
                    (at * item) as isize
                })
            })
            .collect()
    }

    fn walk<const N: usize>(plan: &Plan<N>, range: Range<usize>) -> Vec<[isize; N]> {
        let mut seen = vec![];
        plan.for_each_run_in(range, |offsets, len, strides| {
            assert!(len > 0);
            for i in 0..len {
                seen.push(step(offsets, strides, i));
            }
        });
        seen
    }

    /// A layout that broadcasts to `shape`: some dims dropped or of size 1, any strides.
    fn operand(shape: Vec<usize>) -> impl Strategy<Value = Layout> {
        let rank = shape.len();
        (
            0..=rank,
            proptest::collection::vec((any::<bool>(), 0usize..40), rank),
            0usize..9,
            Just(shape),
            proptest::option::of(Just((0..rank).collect::<Vec<_>>()).prop_shuffle()),
        )
            .prop_map(|(drop, dims, offset, shape, order)| {
                let sizes: Dims = shape[drop..]
                    .iter()
                    .zip(&dims)
                    .map(|(&n, &(one, _))| if one { 1 } else { n })
                    .collect();
                let strides: Dims = match order {
                    // Dense strides in some order of dims: what plans meet most.
                    Some(order) => {
                        let mut strides = Dims::from_elem(1, sizes.len());
                        let mut next = 1;
                        for d in order.into_iter().filter(|&d| d < sizes.len()) {
                            strides[d] = next;
                            next *= sizes[d].max(1);
                        }
                        strides
                    }
                    None => dims[..sizes.len()].iter().map(|&(_, s)| s).collect(),
                };
                Layout::new(sizes, strides, offset).unwrap()
            })
    }

    fn case() -> impl Strategy<Value = (Vec<usize>, Layout, Layout, Layout)> {
        proptest::collection::vec(prop_oneof![1 => 0usize..2, 6 => 1usize..5], 0..=6).prop_flat_map(
            |shape| {
                let op = || operand(shape.clone());
                (op(), op(), op(), Just(shape.clone())).prop_map(|(a, b, c, s)| (s, a, b, c))
            },
        )
    }

    proptest! {
        #[test]
        fn a_plan_visits_what_counting_visits((shape, a, b, c) in case(), cut in 0.0..1.0f64) {
            let operands = [(&a, 4), (&b, 1), (&c, 16)];
            let want = naive(&shape, operands);
            let plan = Plan::row_major(&shape, operands);
            prop_assert_eq!(plan.numel(), want.len());
            prop_assert_eq!(&walk(&plan, 0..want.len()), &want);

            let plan = Plan::new(&shape, operands);
            let whole = walk(&plan, 0..want.len());
            let mut sorted = whole.clone();
            sorted.sort();
            let mut want = want;
            want.sort();
            prop_assert_eq!(sorted, want);
            // Any split is the same walk.
            let mid = (whole.len() as f64 * cut) as usize;
            let parts = [walk(&plan, 0..mid), walk(&plan, mid..whole.len())].concat();
            prop_assert_eq!(&parts, &whole);
            // And so is the walk of some of the operands.
            let two: Vec<_> = walk(&plan.select([2, 0]), 0..whole.len());
            prop_assert_eq!(two, whole.iter().map(|p| [p[2], p[0]]).collect::<Vec<_>>());
        }
    }

    fn layout(sizes: &[usize], strides: &[usize]) -> Layout {
        Layout::new(Dims::from_slice(sizes), Dims::from_slice(strides), 0).unwrap()
    }

    #[test]
    fn operands_that_are_dense_alike_are_one_run() {
        for strides in [[12, 4, 1], [1, 2, 6], [4, 8, 1], [1, 8, 2]] {
            let l = layout(&[2, 3, 4], &strides);
            let plan = Plan::new(&[2, 3, 4], [(&l, 8), (&l, 2)]);
            assert_eq!(
                plan.dims(),
                [PlanDim {
                    size: 24,
                    strides: [8, 2]
                }],
                "{l}"
            );
        }
    }

    #[test]
    fn the_destination_decides_the_order() {
        let rows = layout(&[2, 3], &[3, 1]);
        let cols = layout(&[2, 3], &[1, 2]);
        assert_eq!(
            Plan::new(&[2, 3], [(&rows, 1), (&cols, 1)]).inner().strides,
            [1, 2]
        );
        assert_eq!(
            Plan::new(&[2, 3], [(&cols, 1), (&rows, 1)]).inner().strides,
            [1, 3]
        );
        // A destination that does not move leaves it to the inputs.
        let one = layout(&[1, 1], &[1, 1]);
        assert_eq!(
            Plan::new(&[2, 3], [(&one, 1), (&cols, 1)]).inner().strides,
            [0, 1]
        );
    }

    #[test]
    fn empty_and_single() {
        let none = layout(&[0, 3], &[3, 1]);
        let plan = Plan::new(&[0, 3], [(&none, 4)]);
        assert_eq!((plan.numel(), plan.dims().len()), (0, 0));
        plan.for_each_run(|_, _, _| panic!("an empty plan has no runs"));

        let one = Layout::new(Dims::new(), Dims::new(), 7).unwrap();
        let plan = Plan::new(&[1, 1], [(&one, 4)]);
        assert_eq!(walk(&plan, 0..1), [[28]]);
    }

    #[test]
    fn negative_strides_walk_backwards() {
        let plan = Plan::from_strides(&[2, 3], [0, 20], [&[12, 4], &[-12, -4]]);
        assert_eq!(
            plan.dims(),
            [PlanDim {
                size: 6,
                strides: [4, -4]
            }]
        );
        assert_eq!(walk(&plan, 4..6), [[16, 4], [20, 0]]);
    }

    #[test]
    #[should_panic(expected = "does not broadcast")]
    fn an_operand_that_does_not_fit_is_a_bug_of_the_caller() {
        let l = layout(&[2], &[1]);
        let _ = Plan::new(&[3], [(&l, 1)]);
    }
}
