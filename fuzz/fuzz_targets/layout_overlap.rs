//! Small layouts of any sort: the bytes that they reach, and whether they share some, against the
//! list of all bytes.

#![no_main]

use osteon_spec::{
    Layout, Placed, byte_runs, coarse_runs, overlaps, reached_bytes, shared_bytes, union_runs,
};
use std::collections::BTreeSet;
use std::ops::Range;

struct View {
    layout: Layout,
    itemsize: usize,
    base: usize,
}

impl View {
    fn read(input: &mut impl Iterator<Item = u8>) -> Option<View> {
        let mut number = |limit: u8| input.next().map(|byte| usize::from(byte % limit));
        let rank = number(5)?;
        let mut dims = || -> Option<(Vec<usize>, Vec<usize>)> {
            let sizes = (0..rank).map(|_| number(6)).collect::<Option<_>>()?;
            Some((sizes, (0..rank).map(|_| number(60)).collect::<Option<_>>()?))
        };
        let (sizes, strides) = dims()?;
        let layout = Layout::new(sizes.into(), strides.into(), number(20)?).ok()?;
        Some(View {
            layout,
            itemsize: 1 << number(5)?,
            base: number(250)?,
        })
    }

    fn placed(&self) -> Placed<'_> {
        Placed::new(&self.layout, self.itemsize).at(self.base)
    }

    fn positions(&self) -> Vec<usize> {
        let dims = self.layout.sizes().iter().zip(self.layout.strides());
        dims.fold(vec![self.layout.offset()], |all, (&size, &stride)| {
            all.iter()
                .flat_map(|at| (0..size).map(move |i| at + i * stride))
                .collect()
        })
    }

    fn bytes(&self) -> BTreeSet<usize> {
        let width = self.itemsize;
        let of = |at| self.base + at * width..self.base + (at + 1) * width;
        self.positions().into_iter().flat_map(of).collect()
    }
}

fn bytes_of(runs: impl IntoIterator<Item = Range<usize>>) -> Vec<usize> {
    let mut end = None;
    runs.into_iter()
        .flat_map(|run| {
            assert!(
                !run.is_empty() && end.is_none_or(|end| run.start > end),
                "runs touch"
            );
            end = Some(run.end);
            run
        })
        .collect()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input = bytes.iter().copied();
    let views: Vec<View> = std::iter::from_fn(|| View::read(&mut input))
        .take(4)
        .collect();
    let mut all = BTreeSet::new();
    for view in &views {
        let naive = view.bytes();
        let positions = view.positions();
        let apart = positions.iter().collect::<BTreeSet<_>>().len() == positions.len();
        assert_eq!(view.layout.overlaps_itself().unwrap(), !apart);
        assert!(
            bytes_of(byte_runs(view.placed()).unwrap())
                .iter()
                .eq(&naive)
        );
        all.extend(naive);
    }
    let placed: Vec<Placed<'_>> = views.iter().map(View::placed).collect();
    assert!(bytes_of(union_runs(&placed).unwrap()).iter().eq(&all));
    assert_eq!(reached_bytes(&placed).unwrap(), all.len());
    let coarse = coarse_runs(&placed, 3).unwrap();
    let filled: BTreeSet<usize> = bytes_of(coarse.runs).into_iter().collect();
    assert!(filled.is_superset(&all) && (filled == all) == coarse.exact);
    if let [a, b, ..] = views.as_slice() {
        let shared: BTreeSet<usize> = a.bytes().intersection(&b.bytes()).copied().collect();
        assert_eq!(
            overlaps(a.placed(), b.placed()).unwrap(),
            !shared.is_empty()
        );
        assert_eq!(
            shared_bytes(a.placed(), b.placed()).map(|run| run.start),
            shared.first().copied()
        );
    }
});
